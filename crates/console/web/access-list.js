// A list of the access page: a table with the actions on each row.

import { get } from "./api.js";
import { fill, h, keyed, problem } from "./dom.js";

// accessList("Tokens", titles, {where, rows, keyOf, cells}) → {node, read(), refresh(), close()}
export function accessList(caption, titles, { where, rows, keyOf, cells }) {
  const body = h("tbody");
  const table = h("table", { class: "list cards", hidden: true }, h("caption", { class: "unseen" }, caption),
    h("thead", null, h("tr", null, titles.map((title) => h("th", { scope: "col" }, title)))), body);
  const problems = h("div");
  let asked = 0;

  function draw(items) {
    table.hidden = items.length === 0;
    keyed(body, items, keyOf, (item) => drawRow(h("tr"), item), drawRow);
  }

  function drawRow(row, item) {
    const shown = JSON.stringify(item);
    if (row.dataset.shown === shown) return row;
    row.dataset.shown = shown;
    const focused = row.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    const [first, ...rest] = cells(item);
    fill(row, h("th", { scope: "row" }, first), rest.map((cell, at) => h("td", { class: at === rest.length - 1 ? "actions" : null, "data-label": titles[at + 1] }, cell)));
    if (focused) row.querySelector(`[data-key="${focused}"]`)?.focus();
    return row;
  }

  // Ignores a response that a later request has overtaken, or that arrives after the page was left.
  async function ask(fail) {
    asked += 1;
    const mine = asked;
    try {
      const items = rows(await get(where));
      if (mine !== asked) return;
      fill(problems);
      draw(items);
    } catch (error) {
      if (mine === asked) fail?.(error);
    }
  }

  return {
    node: h("div", { class: "stack" }, problems, table),
    read: () => ask((error) => fill(problems, problem(error))),
    // In the background: an error changes nothing.
    refresh: () => ask(),
    close() {
      asked += 1;
    },
  };
}
