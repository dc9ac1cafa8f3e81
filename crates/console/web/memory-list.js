// Memories, newest first, or the results of a search, best first.

import { button, empty, field, fill, h, keyed, problem, say, select } from "./dom.js";
import { chip } from "./marks.js";
import { chosenScope, isScoped, scopeFilter } from "./memory-scope.js";
import { ask, brief, entityHref, fromField, kindWords, KINDS, memoryHref, scopeWords, timeInput } from "./memory-tools.js";
import { list } from "./payload.js";
import { agoTime, atTime, gatewayTime, number, plural } from "./words.js";

const PAGE = 20;
const FOUND = 30;
const TYPING_MS = 250;
const MOST_NAMES = 8;
const WAYS = [["lexical", "words"], ["vector", "meaning"], ["graph", "mentions"]];
const VECTORS = { __proto__: null, off: "There is no embedding model: memories are found by keyword and by mentions.", loading: "The embedding model is loading: until then, memories are found by keyword and by mentions.", filling: "Not all embeddings are computed yet: until then, memories are found by keyword and by mentions." };
// The filter survives a visit to one memory.
const kept = { text: "", kind: "", ended: false, asOf: "", knownAt: "" };

export function openList(_, { scopes }) {
  const search = h("input", { type: "search", placeholder: "Question or keywords", "aria-label": "Search memories", value: kept.text, autocomplete: "off", maxlength: 4000 });
  const kind = select([["", "All types"], ...KINDS], kept.kind, { "aria-label": "Type" });
  const ended = h("input", { type: "checkbox", checked: kept.ended });
  const [asOf, knownAt] = [timeInput(kept.asOf), timeInput(kept.knownAt)];
  const count = h("p", { class: "muted", role: "status" });
  const rows = h("ul", { class: "memories" });
  const none = h("div");
  const more = button("Show more", () => read(true), { class: "show-more", hidden: true });
  let shown = [];
  let next;
  let asked = 0;
  let typing = null;

  const filter = () => ({ ...chosenScope(), memory_type: kept.kind, as_of: kept.asOf, known_at: kept.knownAt, include_invalid: kept.ended || undefined });

  async function read(onward = false) {
    asked += 1;
    const mine = asked;
    const query = kept.text.trim();
    try {
      const said = query ? await ask("recall", { query, limit: FOUND, ...filter() }) : await ask("list_memories", { limit: PAGE, offset: onward ? next : undefined, ...filter() });
      if (mine !== asked) return;
      shown = onward ? [...shown, ...list(said.memories)] : list(said.memories);
      next = said.next_offset;
      more.hidden = next === undefined;
      say(count, query ? `${plural(shown.length, "memory", "memories")} found, best first. ${VECTORS[said.vectors] ?? ""}` : `${plural(said.total, "memory", "memories")}${said.total > 0 ? ", newest first" : ""}`);
      draw(query);
    } catch (error) {
      if (mine === asked) fill(none, problem(error));
    }
  }

  function draw(query) {
    keyed(rows, shown, (memory) => JSON.stringify([memory.id, memory.version, memory.score, memory.valid_until]), row);
    const narrowed = isScoped() || kept.kind || kept.asOf || kept.knownAt;
    fill(none, shown.length ? null : query ? empty("No matching memories.", "Use other words, or change the filter.")
      : narrowed ? empty("No matching memories.", "Change or clear the filter.")
        : empty("No memories yet.", "Agents store memories with the tool memory:store_memory. You can add one yourself, or import a file under Status and files."));
  }

  const typed = () => {
    if (search.value === kept.text) return;
    kept.text = search.value;
    clearTimeout(typing);
    typing = setTimeout(read, TYPING_MS);
  };
  for (const event of ["input", "change"]) search.addEventListener(event, typed);
  const changed = () => {
    Object.assign(kept, { kind: kind.value, ended: ended.checked, asOf: fromField(asOf) ?? "", knownAt: fromField(knownAt) ?? "" });
    read();
  };
  for (const control of [kind, ended, asOf, knownAt]) control.addEventListener("change", changed);
  read();

  const times = h("details", { class: "times", open: Boolean(kept.asOf || kept.knownAt || kept.ended) }, h("summary", null, "Time filters"),
    h("div", { class: "field-row moments" },
      field("True at", asOf, "Only memories that were true at this time."), field("As known at", knownAt, "Only versions that were stored at this time.")),
    h("label", { class: "check" }, ended, h("span", null, "Include memories that are no longer valid")));
  return {
    node: h("div", { class: "stack" },
      h("div", { class: "filters" }, search, kind, h("a", { class: "button", href: "#memory/new" }, "Add a memory")),
      scopeFilter(scopes, () => read()), times,
      h("div", { class: "list-head" }, count, button("Refresh", () => read(), { class: "quiet small" })), rows, none, more),
    close: () => clearTimeout(typing),
  };
}

function row(memory) {
  const names = list(memory.entities);
  return h("li", { "data-state": state(memory) },
    h("a", { class: "row", href: memoryHref(memory.id) }, brief(memory.content) || "(empty)"),
    memory.score === undefined ? null : why(memory),
    h("p", { class: "memory-facts" }, h("span", null, kindWords(memory.memory_type)), h("span", null, "learned ", agoTime(memory.learned_at)), validity(memory), scopeWords(memory)),
    names.length ? h("p", { class: "names" }, names.slice(0, MOST_NAMES).map((name) => h("a", { class: "name", href: entityHref(name) }, brief(name, 40))), names.length > MOST_NAMES ? h("span", { class: "muted" }, ` and ${names.length - MOST_NAMES} more`) : null) : null);
}

// The validity of a memory: "ended", "later", or null if it is true now.
function state(memory) {
  const now = gatewayTime();
  if (Date.parse(memory.valid_until) <= now) return "ended";
  return Date.parse(memory.valid_from) > now ? "later" : null;
}

// The period in which a memory is true, if it has one.
export function validity(memory) {
  const how = state(memory);
  if (how === "ended") return h("span", { class: "warn-text" }, "no longer valid since ", atTime(memory.valid_until));
  if (how === "later") return h("span", { class: "warn-text" }, "true from ", atTime(memory.valid_from));
  if (memory.valid_until) return h("span", null, "true until ", atTime(memory.valid_until));
  return memory.valid_from ? h("span", null, "true since ", atTime(memory.valid_from)) : null;
}

// The score of a result, and the reasons for the match.
function why({ score, channels, why: reasons }) {
  const ways = WAYS.filter(([name]) => channels?.[name] !== undefined);
  const because = [...new Set([...list(reasons?.words), ...list(reasons?.entities)].map((word) => String(word).toLowerCase()))];
  return h("div", { class: "why" }, h("meter", { min: "0", max: "1", value: score, "aria-label": "Score" }), h("strong", null, number(Math.round(score * 100) / 100)),
    h("span", { class: "muted" }, "found by"), ways.map(([name, words]) => h("span", { class: "way", title: `${words}: ${channels[name]}` }, chip(words))),
    because.length ? h("span", { class: "muted" }, brief(because.join(", "), 80)) : null);
}
