// The server filter above a list. The servers may load later, or change.

import { fill, h } from "./dom.js";
import { on, state } from "./store.js";

// serverFilter("All servers", "files") → {node, choose, close}
export function serverFilter(words, chosen) {
  const node = h("select", { "aria-label": "Server" });
  function draw(wanted = node.options.length ? node.value : chosen) {
    const names = (state.status?.servers ?? []).map((server) => server.name);
    // A removed server is kept while it is selected.
    if (wanted && !names.includes(wanted)) names.unshift(wanted);
    const key = JSON.stringify(names);
    if (node.dataset.shown !== key) fill(node, h("option", { value: "" }, words), names.map((name) => h("option", { value: name }, name)));
    node.dataset.shown = key;
    node.value = wanted;
  }
  draw();
  return { node, choose: draw, close: on("status", () => draw()) };
}
