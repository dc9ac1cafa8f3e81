// The first steps, shown until there is a server besides the built-in memory.

import { button, fill, h, prose } from "./dom.js";
import { copyText } from "./payload.js";

const STEPS = [
  ["Import the servers of your clients", "Reads the configuration of Claude, Cursor, VS Code and other clients, and shows the changes before it makes them.", "switchboard import"],
  ["Or add one server", "A program on this machine, or the address of a remote server.", "switchboard add time -- uvx mcp-server-time"],
  ["Connect a client", "Adds the gateway to the configuration of the client. `switchboard connect` lists the supported clients.", "switchboard connect claude-code"],
];

// → {node, draw(servers)}
export function firstSteps() {
  const node = h("div");
  return {
    node,
    draw(servers) {
      const fresh = servers.every((server) => server.kind === "built-in");
      if (node.dataset.shown === String(fresh)) return;
      node.dataset.shown = String(fresh);
      fill(node, fresh ? steps() : null);
    },
  };
}

function steps() {
  return h("section", { class: "card first-steps", "aria-labelledby": "first-steps-title" },
    h("h2", { id: "first-steps-title" }, "Get started"),
    h("p", { class: "muted" }, "You have no servers yet. Run these commands in a terminal; this page updates automatically."),
    h("ol", null, STEPS.map(([title, text, command]) => h("li", null, h("h3", null, title), h("p", { class: "muted" }, prose(text)),
      h("div", { class: "copy-row" }, h("pre", { class: "command", tabindex: "0", "aria-label": title }, h("code", null, command)),
        button("Copy", () => copyText(command), { class: "small", "aria-label": `Copy: ${command}` }))))));
}
