// The graph of entities and relations, and the details of one entity.

import { empty, fill, h, plain, problem, say, select } from "./dom.js";
import { graphView, spoken } from "./graph-view.js";
import { chip } from "./marks.js";
import { chosenScope, scopeFilter } from "./memory-scope.js";
import { ask, brief, entityHref, memoryHref, scopeWords } from "./memory-tools.js";
import { list } from "./payload.js";
import { number, plural } from "./words.js";

const MOST = 150;
const COUNTS = [["25", "25 most mentioned"], ["60", "60 most mentioned"], ["150", "150 most mentioned"]];
const kept = { count: null };

export function openGraph(first, { scopes }) {
  const isNarrow = matchMedia("(max-width: 760px)").matches;
  kept.count ??= isNarrow ? "25" : "60";
  const count = select(COUNTS, kept.count, { "aria-label": "Number of entities" });
  const view = graphView({ label: "Graph of entities: arrow keys move, Enter opens", open: (key) => { location.hash = entityHref(key); } });
  const words = h("p", { class: "muted", role: "status" });
  const none = h("div");
  const side = h("section", { class: "graph-side", "aria-label": "Selected entity" });
  const asList = h("details", { class: "graph-list" }, h("summary", null, "As a list"), h("div"));
  const drawing = h("div", { class: "graph-main" }, view.node, words, asList);
  const split = h("div", { class: "graph-split" }, drawing, side);
  let whole = { entities: [], relations: [] };
  let chosen = null;
  let asked = 0;

  async function read() {
    asked += 1;
    const mine = asked;
    try {
      const said = await ask("get_related", { limit: Number(kept.count), ...chosenScope() });
      if (mine !== asked) return;
      whole = merged(said);
      await look(chosen);
    } catch (error) {
      if (mine === asked) fill(none, problem(error));
    }
  }

  // Shows one entity with its relations.
  async function look(wanted) {
    asked += 1;
    const mine = asked;
    chosen = wanted;
    if (!wanted) {
      fill(side, h("p", { class: "muted split-empty" }, "Select an entity to see its relations and memories."));
      draw(whole, null);
      return;
    }
    try {
      const said = await ask("get_related", { entity: wanted, limit: MOST, ...chosenScope() });
      if (mine !== asked) return;
      const around = merged(said);
      const [center] = around.entities;
      if (!center) throw new Error("There is no entity with this name.");
      const rest = whole.entities.filter((one) => around.entities.every((other) => other.id !== one.id));
      const relations = [...around.relations, ...whole.relations.filter((one) => around.relations.every((other) => other.id !== one.id))];
      draw({ entities: [...around.entities, ...rest].slice(0, MOST), relations }, center.id);
      fill(side, about(around, center, list(said.memories)));
      side.querySelector("h2").focus({ preventScroll: !isNarrow });
    } catch (error) {
      if (mine !== asked) return;
      draw(whole, null);
      fill(side, error.body?.kind === "not_found" ? empty("Entity not found.", "It may have been deleted, or it belongs to another scope.") : problem(error), back());
    }
  }

  function draw({ entities, relations }, id) {
    split.hidden = !entities.length;
    fill(none, entities.length ? null : empty("No entities yet.", "People and things appear here once memories mention them. Agents relate them with memory:create_relation."));
    view.show(entities, relations, id);
    say(words, `${plural(entities.length, "node")} and ${plural(relations.length, "relation")}. The larger the node, the more memories mention it.`);
    fill(asList.lastChild, names(entities, relations));
  }

  count.addEventListener("change", () => {
    kept.count = count.value;
    read();
  });
  chosen = first[0] ?? null;
  read();
  return {
    node: h("div", { class: "stack" }, h("div", { class: "filters" }, count, scopeFilter(scopes, read)), none, split),
    go([id]) {
      look(id ?? null);
      return true;
    },
    focus: () => side.querySelector("h2"),
    back: () => (chosen ? "#memory/graph" : "#memory"),
    close() {
      asked += 1;
      view.close();
    },
  };
}

// Merges entities with the same name in several scopes, as recall does.
function merged(said) {
  const [byKey, keys, relations] = [new Map(), new Map(), new Map()];
  for (const one of list(said.entities)) {
    const key = plain(one.name).trim().toLowerCase().replace(/\s+/g, " ");
    keys.set(one.id, key);
    const known = byKey.get(key);
    if (!known) byKey.set(key, { ...one, id: key, in: [one] });
    else Object.assign(known, { mentions: (known.mentions ?? 0) + (one.mentions ?? 0), entity_type: known.entity_type ?? one.entity_type, description: known.description ?? one.description, in: [...known.in, one] });
  }
  for (const one of list(said.relations)) {
    const [from, to] = [keys.get(one.from), keys.get(one.to)];
    if (from === undefined || to === undefined) continue;
    const id = JSON.stringify([from, to, one.relation_type]);
    if (!(relations.get(id)?.weight >= one.weight)) relations.set(id, { ...one, id, from, to });
  }
  return { entities: [...byKey.values()], relations: [...relations.values()] };
}

function back() {
  return h("p", null, h("a", { href: "#memory/graph" }, "All entities"));
}

function about({ entities, relations }, center, memories) {
  const by = new Map(entities.map((one) => [one.id, one]));
  const own = relations.filter((one) => one.from === center.id || one.to === center.id);
  return h("div", { class: "card" },
    h("h2", { tabindex: "-1" }, plain(center.name), center.entity_type ? chip(center.entity_type) : null),
    center.description ? h("p", null, center.description) : null,
    h("p", { class: "memory-facts" }, h("span", null, `mentioned in ${plural(center.mentions ?? 0, "memory", "memories")}`), center.in.length > 1 ? h("span", null, `in ${number(center.in.length)} scopes`) : scopeWords(center)),
    own.length ? [h("h3", null, "Relations"), h("ul", { class: "plain-list relations" }, own.map((one) => relation(one, by)))] : null,
    h("h3", null, "Memories"),
    memories.length ? h("ul", { class: "plain-list" }, memories.map((memory) => h("li", null, h("a", { class: "row", href: memoryHref(memory.id) }, brief(memory.content, 160))))) : h("p", { class: "muted" }, "No memory mentions it."),
    memories.length < (center.mentions ?? 0) ? h("p", { class: "muted" }, `Only the newest ${number(memories.length)} are shown.`) : null,
    back());
}

function relation(one, by) {
  const end = (id) => h("a", { href: entityHref(id) }, brief(by.get(id)?.name ?? id, 60));
  return h("li", null, end(one.from), h("span", { class: "muted" }, ` ${brief(one.relation_type, 60)} `), end(one.to));
}

// The graph as text.
function names(entities, relations) {
  const by = new Map(entities.map((one) => [one.id, one]));
  const shown = relations.filter((one) => by.has(one.from) && by.has(one.to));
  return [
    h("ul", { class: "plain-list" }, entities.map((one) => h("li", null, h("a", { href: entityHref(one.id) }, brief(spoken(one), 160))))),
    shown.length ? h("ul", { class: "plain-list relations" }, shown.map((one) => relation(one, by))) : null,
  ];
}
