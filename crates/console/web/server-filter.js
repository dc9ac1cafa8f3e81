// The choice of a server above a list. The servers may be known only later, or change.

import { fill, h } from "./dom.js";
import { on, state } from "./store.js";

// serverFilter("Every server", "files") → {node, choose, close}
export function serverFilter(words, chosen) {
  const node = h("select", { "aria-label": "Server" });
  function draw(wanted = node.options.length ? node.value : chosen) {
    const names = (state.status?.servers ?? []).map((server) => server.name);
    // One that has gone is kept while it is chosen.
    if (wanted && !names.includes(wanted)) names.unshift(wanted);
    const key = JSON.stringify(names);
    if (node.dataset.shown !== key) fill(node, h("option", { value: "" }, words), names.map((name) => h("option", { value: name }, name)));
    node.dataset.shown = key;
    node.value = wanted;
  }
  draw();
  return { node, choose: draw, close: on("status", () => draw()) };
}
