// How the memory is: its store, its index, its model of meaning, and how much it holds; and files out and in.

import { add, button, fill, h, problem } from "./dom.js";
import { exporting, importing } from "./memory-files.js";
import { mark } from "./marks.js";
import { ask } from "./memory-tools.js";
import { bytes, number } from "./words.js";

const NAMES = { __proto__: null, store: "Store", index: "Index", embeddings: "Meaning" };
const SAYS = { __proto__: null, off: "There is no model of meaning: memories are found by words and mentions.", loading: "The model is loading.", filling: "The meaning of what is stored is being worked out." };

// What is wrong, or not ready yet, and what to do about it; nothing if all is well.
export function troubles(status) {
  const parts = Object.entries(status.parts ?? {}).filter(([, part]) => part.state === "error" || part.state === "initializing");
  return parts.map(([name, part]) => h("div", { class: part.state === "error" && name === "store" ? "callout loud" : "callout", "data-tone": part.state === "error" ? "bad" : "warn", role: part.state === "error" ? "alert" : "status" },
    h("p", null, h("strong", null, part.state === "error" ? `${NAMES[name] ?? name}: it does not work. ` : `${NAMES[name] ?? name}: it is not ready yet. `), part.message),
    part.action ? h("p", null, h("strong", null, "What you can do: "), part.action) : null));
}

export function openStore(_, first) {
  const facts = h("div", { class: "stack" });
  let closed = false;

  function draw(status) {
    const parts = status.parts ?? {};
    const rows = [["Memories", number(status.memories)], ["Versions of them", number(status.versions)], ["People and things", number(status.entities)], ["Relations", number(status.relations)],
      ["With their meaning worked out", `${number(parts.embeddings?.embedded)}${parts.embeddings?.waiting ? `, ${number(parts.embeddings.waiting)} to go` : ""}`],
      ["Model of meaning", parts.embeddings?.model ? h("code", null, parts.embeddings.model) : "none"],
      ["Index in memory", parts.index?.bytes ? bytes(parts.index.bytes) : "not made yet"],
      ["Finds names in what is stored", status.extraction ? "yes" : "no"]];
    fill(facts,
      h("dl", { class: "facts" }, rows.map(([title, value]) => h("div", null, h("dt", null, title), h("dd", null, value)))),
      h("ul", { class: "part-list" }, Object.entries(parts).map(([name, part]) => {
        const text = part.message ?? SAYS[part.state];
        return h("li", null, h("span", null, NAMES[name] ?? name), mark(part.state), text ? h("p", { class: "muted" }, text) : null, part.action ? h("p", null, h("strong", null, "What you can do: "), part.action) : null);
      })));
  }

  async function read() {
    try {
      const status = await ask("get_status");
      if (!closed) draw(status);
    } catch (error) {
      if (!closed) add(facts, problem(error));
    }
  }

  draw(first);
  return {
    node: h("div", { class: "stack" },
      h("section", { class: "card", "aria-labelledby": "store-title" }, h("div", { class: "card-head" }, h("h2", { id: "store-title" }, "How it is"), button("Look again", read, { class: "small" })), facts),
      h("div", { class: "columns" }, exporting(first.scopes), importing(read))),
    close: () => { closed = true; },
  };
}
