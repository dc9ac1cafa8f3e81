// Tools: search, and decisions about held tools.

import { get, path, query } from "./api.js";
import { add, button, empty, fill, h, heading, keyed, problem, say } from "./dom.js";
import { heldTool } from "./held.js";
import { chip, mark } from "./marks.js";
import { serverFilter } from "./server-filter.js";
import { on, state } from "./store.js";
import { openTool } from "./tool.js";
import { number, plural } from "./words.js";

const AT_ONCE = 100;
const HELD_AT_ONCE = 3;
const TYPING_MS = 200;
// The server is part of the address, so that the menu leads to the tools of all servers. The search text survives a
// visit to one tool.
const kept = { text: "", server: "" };

export function open(rest, from) {
  if (rest.length >= 2) return openTool(rest[0], rest.slice(1).join("/"), listHref);
  if (!/^#tools\/[^/]+\//.test(from ?? "")) kept.text = "";
  kept.server = rest[0] ?? "";
  return openList();
}

function listHref() {
  return kept.server ? `#tools/${encodeURIComponent(kept.server)}` : "#tools";
}

function openList() {
  const search = h("input", { type: "search", id: "tool-search", placeholder: "What should the tool do?", value: kept.text, autocomplete: "off", "aria-label": "Search tools" });
  const filter = serverFilter("All servers", kept.server);
  const server = filter.node;
  const count = h("p", { class: "muted", role: "status" });
  const list = h("ul", { class: "tool-list" });
  const none = h("div");
  const more = button("Show more", () => { shown += AT_ONCE; draw(); }, { class: "show-more" });
  const held = h("div");
  let all = null;
  let starting = [];
  let found = null;
  let shown = AT_ONCE;
  let asked = 0;
  let typing = null;
  let flagged = new Set();
  let heldOn = [];

  function draw() {
    const tools = found ?? (all ?? []).filter((tool) => !kept.server || tool.server === kept.server);
    const unknown = kept.server && state.status && !state.status.servers.some((one) => one.name === kept.server) && !tools.length;
    if (unknown) {
      fill(list);
      more.hidden = true;
      say(count, "");
      fill(none, empty(`There is no server called ${kept.server}.`, null, h("p", null, h("a", { href: "#tools" }, "Show the tools of all servers"))));
      return;
    }
    // During a search, held tools would push the results off the screen.
    held.hidden = found !== null;
    if (!found && !all) return;
    const unseen = starting.filter((name) => !kept.server || name === kept.server);
    keyed(list, tools.slice(0, shown), (tool) => `${tool.name} ${flagged.has(tool.name)}`, (tool) => row(tool, flagged.has(tool.name)));
    more.hidden = tools.length <= shown;
    say(count, found ? `${plural(tools.length, "tool")} found, best first` : `${plural(tools.length, "tool")}${unseen.length ? `; not listed yet: ${unseen.join(", ")}` : ""}`);
    fill(none, tools.length ? null : found
      ? empty("No matching tools.", "Use other words: describe what the tool does, or what it works on.")
      : empty("No tools yet.", "Tools appear after the first start of a server. To start a server now, restart it under Servers."));
  }

  async function readAll() {
    try {
      const said = await get(path("tools"));
      all = said.tools;
      starting = said.starting ?? [];
      draw();
    } catch (error) {
      fill(none, problem(error));
    }
  }

  async function find() {
    kept.text = search.value.trim();
    shown = AT_ONCE;
    asked += 1;
    const mine = asked;
    drawHeld(held, heldOn.filter((one) => !kept.server || one.name === kept.server));
    if (!kept.text) {
      found = null;
      draw();
      return;
    }
    try {
      const said = await get(query(path("search"), { q: kept.text, server: kept.server, limit: 50 }));
      if (mine !== asked) return;
      found = said.tools;
      draw();
    } catch (error) {
      if (mine !== asked) return;
      found = [];
      draw();
      if (error.status !== 404) fill(none, problem(error));
    }
  }

  async function readHeld() {
    const said = await get(path("trust")).catch(() => null);
    if (!said) return;
    heldOn = said.servers;
    drawHeld(held, heldOn.filter((one) => !kept.server || one.name === kept.server));
    flagged = new Set(said.servers.flatMap((one) => one.flagged.map((tool) => tool.name)));
    draw();
  }

  search.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(find, TYPING_MS);
  });
  server.addEventListener("change", () => {
    kept.server = server.value;
    location.replace(listHref());
    find();
  });
  readAll();
  readHeld();
  if (kept.text) find();
  let toolCount = state.status?.tools;
  const offs = [
    filter.close,
    on("trust", () => { readHeld(); readAll(); }),
    on("status", () => {
      if (state.status.tools !== toolCount) readAll();
      else if (kept.server) draw();
      toolCount = state.status.tools;
    }),
  ];
  return {
    title: () => "Tools",
    // A link or the menu may lead to another server, or to all servers.
    go(rest) {
      if (rest.length >= 2) return false;
      if ((rest[0] ?? "") === kept.server) return true;
      Object.assign(kept, { text: "", server: rest[0] ?? "" });
      search.value = "";
      filter.choose(kept.server);
      find();
      return true;
    },
    node: h("div", { class: "page" }, heading("Tools", count), held, h("div", { class: "filters", role: "search" }, search, server), list, none, more),
    close() {
      clearTimeout(typing);
      offs.forEach((off) => off());
    },
  };
}

function row(tool, suspicious) {
  const annotations = tool.definition?.annotations ?? {};
  return h("li", null,
    h("a", { class: "row", href: `#tools/${encodeURIComponent(tool.server)}/${encodeURIComponent(tool.tool)}` }, h("span", { class: "tool-server" }, `${tool.server}:`), tool.tool),
    suspicious ? h("span", { class: "chip-mark" }, mark("warn", "suspicious")) : null,
    annotations.readOnlyHint === true ? chip("claims to be read-only") : annotations.destructiveHint === true ? chip("claims to be destructive", "warn") : null,
    h("p", { class: "summary" }, firstLine(tool.summary ?? tool.description ?? "")));
}

function firstLine(text) {
  const line = text.trim().split(/\n/, 1)[0];
  return line.length > 180 ? `${line.slice(0, 179)}…` : line;
}

// The held tools. They are not drawn again while nothing changes, so that open parts and the focus stay.
function drawHeld(place, servers) {
  const some = servers.filter((server) => server.held.length);
  const shown = JSON.stringify(some.map((server) => [server.name, server.held.map((tool) => [tool.tool, tool.fingerprint, tool.why])]));
  if (place.dataset.shown === shown) return;
  place.dataset.shown = shown;
  const total = some.reduce((sum, server) => sum + server.held.length, 0);
  fill(place, total ? h("section", { class: "card held", "aria-labelledby": "held-title" },
    h("h2", { id: "held-title" }, mark("held", `Held: ${number(total)}`)),
    h("p", { class: "muted" }, "Agents do not see these tools until you approve them. Read the text: a model may follow it as instructions."),
    some.map(heldOf)) : null);
}

// The held tools of one server, a few at a time.
function heldOf({ name, held }) {
  const tools = h("div");
  let count = 0;
  const more = button("", () => {
    add(tools, held.slice(count, count + HELD_AT_ONCE).map((tool) => heldTool(name, tool)));
    count = Math.min(held.length, count + HELD_AT_ONCE);
    more.hidden = count === held.length;
    say(more, `Show more (${number(held.length - count)} left)`);
  }, { class: "small" });
  more.click();
  return h("section", null, h("h3", null, name), tools, more);
}
