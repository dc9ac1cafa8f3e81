// The status of the memory: its store, index, embeddings and size; and export and import.

import { path, post } from "./api.js";
import { add, button, fill, h, problem } from "./dom.js";
import { mark } from "./marks.js";
import { exporting, importing } from "./memory-files.js";
import { ask, doing } from "./memory-tools.js";
import { confirm, notice } from "./notices.js";
import { list } from "./payload.js";
import { bytes, number, plural } from "./words.js";

const PATIENCE_MS = 15 * 60_000;
const MOST_PROBLEMS = 50;
const NAMES = { __proto__: null, store: "Store", index: "Index", embeddings: "Embeddings" };
const SAYS = { __proto__: null, off: "There is no embedding model: memories are found by keyword and by mentions.", loading: "The model is loading.", filling: "The embeddings of stored memories are being computed." };

// The parts that failed or are starting, with advice; empty if all are ready.
export function troubles(status) {
  const wrong = Object.keys(NAMES).map((name) => [name, status.parts?.[name]]).filter(([, part]) => part?.state === "error" || part?.state === "initializing");
  // Without the store, the other parts cannot work.
  return (wrong[0]?.[0] === "store" ? wrong.slice(0, 1) : wrong).map(([name, part]) => h("div", { class: part.state === "error" && name === "store" ? "callout loud" : "callout", "data-tone": part.state === "error" ? "bad" : "warn", role: part.state === "error" ? "alert" : "status" },
    h("p", null, h("strong", null, part.state === "error" ? `${NAMES[name] ?? name}: not working. ` : `${NAMES[name] ?? name}: starting. `), part.message),
    part.action ? h("p", null, h("strong", null, "What you can do: "), part.action) : null));
}

// The actions for a damaged file: recover its readable part, or start empty.
export function mending(done) {
  const mend = async (discard) => {
    const said = await post(path("memory", "repair"), { discard }, { patience: PATIENCE_MS });
    const problems = list(said.problems);
    const found = `${plural(said.versions, "version")} of memories, ${plural(said.entities, "entity", "entities")} and ${plural(said.relations, "relation")} were recovered.`;
    notice(discard ? "The memory is now empty. The damaged file is kept." : found, "good");
    done(problems.length ? h("div", { class: "callout", "data-tone": "warn" }, h("p", null, found, " Some parts could not be read:"), h("ul", null, problems.slice(0, MOST_PROBLEMS).map((text) => h("li", null, text)))) : null);
  };
  const repair = button("Recover readable memories", () => doing(repair, () => mend(false)), { class: "primary" });
  const discard = button("Start empty…", () => doing(discard, async () => {
    const agreed = await confirm({ title: "Start with an empty memory?", text: "The memories in the damaged file are not recovered. The file is kept.", yes: "Start empty", danger: true });
    if (agreed) await mend(true);
  }), { class: "danger" });
  return h("section", { class: "card", "aria-labelledby": "mend-title" }, h("h2", { id: "mend-title" }, "The file is damaged"),
    h("p", null, "It was set aside, and is kept. Agents cannot use the memory until you decide."), h("div", { class: "buttons" }, repair, discard));
}

export function openStore(_, first) {
  const facts = h("div", { class: "stack" });
  let closed = false;

  function draw(status) {
    const parts = status.parts ?? {};
    const rows = [["Memories, including ended ones", number(status.memories)], ["Versions", number(status.versions)], ["Entities", number(status.entities)], ["Relations", number(status.relations)],
      ["Embeddings", `${number(parts.embeddings?.embedded)}${parts.embeddings?.waiting ? `, ${number(parts.embeddings.waiting)} pending` : ""}`],
      ["Embedding model", parts.embeddings?.model ? h("code", null, parts.embeddings.model) : "none"],
      ["Index size", parts.index?.bytes ? bytes(parts.index.bytes) : "not built yet"],
      ["Entity extraction", status.extraction ? "yes" : "no"]];
    fill(facts,
      h("dl", { class: "facts" }, rows.map(([title, value]) => h("div", null, h("dt", null, title), h("dd", null, value)))),
      h("ul", { class: "part-list" }, Object.keys(NAMES).filter((name) => parts[name]).map((name) => [name, parts[name]]).map(([name, part]) => {
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
    update: draw,
    node: h("div", { class: "stack" },
      h("section", { class: "card", "aria-labelledby": "store-title" }, h("div", { class: "card-head" }, h("h2", { id: "store-title" }, "Status"), button("Refresh", read, { class: "small" })), facts),
      h("div", { class: "columns" }, exporting(first.scopes), importing(read))),
    close: () => { closed = true; },
  };
}
