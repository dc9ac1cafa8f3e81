// Export of memories as JSON lines or Markdown, and import of JSON lines.

import { button, field, fill, h, problem, say, select } from "./dom.js";
import { chosenScope, isScoped, scopeFilter } from "./memory-scope.js";
import { ask, doing } from "./memory-tools.js";
import { notice } from "./notices.js";
import { list, save } from "./payload.js";
import { bytes, number, plural } from "./words.js";

const PAGE = 1000;
const MOST_OUT = 256 * 1024 * 1024;
const MOST_IN = 64 * 1024 * 1024;
// The most that is sent at once: the gateway accepts 4 MB, and a line break becomes two characters in JSON.
const PIECE_BYTES = 1_500_000;
const MOST_ERRORS = 20;
const KINDS = { jsonl: ["jsonl", "application/x-ndjson", ""], markdown: ["md", "text/markdown", "# Memories\n\n"] };

export function exporting(scopes) {
  const history = h("input", { type: "checkbox", checked: true });
  const progress = h("p", { class: "muted", role: "status" });
  const act = (format) => (event) => doing(event.currentTarget, () => take(format, history.checked, (count) => say(progress, count === null ? "" : `${number(count)} exported so far…`)));
  return h("section", { class: "card", "aria-labelledby": "export-title" }, h("h2", { id: "export-title" }, "Export"),
    h("p", { class: "muted" }, "JSON lines can be imported again. Markdown is for reading, and has only the current versions."),
    scopeFilter(scopes, () => {}),
    h("label", { class: "check" }, history, h("span", null, "Include all versions in JSON lines")),
    h("div", { class: "buttons" }, button("Export JSON lines", act("jsonl")), button("Export Markdown", act("markdown"))), progress);
}

async function take(format, withHistory, tell) {
  const [ending, type, head] = KINDS[format];
  const parts = [head];
  let [count, size] = [0, 0];
  for (let cursor; ;) {
    const said = await ask("export_memory", { format, cursor, limit: PAGE, include_history: (withHistory && format === "jsonl") || undefined, ...chosenScope() });
    parts.push(said.data);
    count += said.count;
    size += said.data.length;
    cursor = said.next_cursor;
    tell(count);
    if (cursor === undefined) break;
    if (size > MOST_OUT) throw new Error("The export is too large for a browser: run “switchboard memory export” in a terminal.");
  }
  tell(null);
  const name = `switchboard-memory-${new Date().toISOString().slice(0, 19).replaceAll(":", "-")}.${ending}`;
  save(name, type, parts.join(""));
  notice(`${plural(count, "line")} exported to ${name}${isScoped() ? ", from the selected scope only" : ""}.`, "good");
}

export function importing(changed) {
  const file = h("input", { type: "file" });
  const conflict = select([["skip", "keep the stored one"], ["replace", "replace it"], ["copy", "keep both"]], "skip");
  const result = h("div", { class: "stack", "aria-live": "polite" });
  let lines = null;

  async function look() {
    lines = null;
    const [chosen] = file.files;
    if (!chosen) {
      fill(result);
      return;
    }
    try {
      if (chosen.size > MOST_IN) throw new Error(`The file is too large for a browser (${bytes(chosen.size)}): run “switchboard memory import” in a terminal.`);
      lines = (await chosen.text()).split("\n");
      const said = await run(true);
      const go = button("Import", () => doing(go, bring), { class: "primary", disabled: said.memories + said.entities + said.relations === 0 });
      fill(result, told("In the file", said), h("div", { class: "buttons" }, go));
    } catch (error) {
      fill(result, problem(error));
    }
  }

  async function bring() {
    const said = await run(false);
    file.value = "";
    fill(result, told("Imported", said));
    notice("Imported.", "good");
    changed();
  }

  async function run(isTrial) {
    const sum = { memories: 0, entities: 0, relations: 0, skipped: 0, errors: [] };
    const all = pieces(lines);
    for (const [at, piece] of all.entries()) {
      if (all.length > 1) fill(result, h("p", { class: "muted" }, `${isTrial ? "Checking" : "Importing"} part ${at + 1} of ${all.length}…`));
      const said = await ask("import_memory", { jsonl: piece.map(({ text }) => text).join("\n"), on_conflict: conflict.value, dry_run: isTrial || undefined });
      for (const name of ["memories", "entities", "relations", "skipped"]) sum[name] += said[name] ?? 0;
      for (const { line, message } of list(said.errors)) sum.errors.push({ line: piece[line - 1]?.line ?? line, message });
    }
    return sum;
  }

  file.addEventListener("change", look);
  conflict.addEventListener("change", look);
  return h("section", { class: "card", "aria-labelledby": "import-title" }, h("h2", { id: "import-title" }, "Import"),
    h("p", { class: "muted" }, "JSON lines of an export, or the file of the MCP reference memory server. The console checks the file first."),
    field("File", file), field("If a memory already exists", conflict), result);
}

// Splits the lines into parts to send: entities first, then memories with all versions of one together, then relations.
function pieces(lines) {
  const ranks = { __proto__: null, entity: 0, memory: 1, relation: 2 };
  const groups = new Map();
  lines.forEach((text, at) => {
    if (!text.trim()) return;
    let read = {};
    try {
      read = JSON.parse(text) ?? {};
    } catch {
      // The memory reports the error.
    }
    const rank = ranks[read.type] ?? 1;
    const key = rank === 1 && typeof read.id === "string" ? `id ${read.id}` : `line ${at}`;
    if (!groups.has(key)) groups.set(key, { rank, size: 0, rows: [] });
    const group = groups.get(key);
    group.rows.push({ text, line: at + 1 });
    group.size += new Blob([JSON.stringify(text)]).size;
  });
  const all = [[]];
  let size = 0;
  for (const group of [...groups.values()].sort((a, b) => a.rank - b.rank)) {
    if (size && size + group.size > PIECE_BYTES) {
      all.push([]);
      size = 0;
    }
    all.at(-1).push(...group.rows);
    size += group.size;
  }
  return all.filter((piece) => piece.length);
}

function told(title, said) {
  const count = said.errors.length;
  return [
    h("p", null, h("strong", null, `${title}: `), `${plural(said.memories, "memory", "memories")}, ${plural(said.entities, "entity", "entities")}, ${plural(said.relations, "relation")}${said.skipped ? `; ${plural(said.skipped, "line")} skipped, because their memories already exist` : ""}.`),
    count ? h("div", { class: "callout", "data-tone": "warn" }, h("p", null, h("strong", null, `${plural(count, "line")} cannot be read:`)),
      h("ul", null, said.errors.slice(0, MOST_ERRORS).map(({ line, message }) => h("li", null, `Line ${number(line)}: ${message}`))), count > MOST_ERRORS ? h("p", null, `and ${number(count - MOST_ERRORS)} more`) : null) : null,
  ];
}
