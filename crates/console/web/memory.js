// Memory: its presence, its health, and the selected view.

import { button, fill, h, heading, problem } from "./dom.js";
import { openGraph } from "./memory-graph.js";
import { openList } from "./memory-list.js";
import { openMerge } from "./memory-merge.js";
import { openNew } from "./memory-edit.js";
import { openOne } from "./memory-one.js";
import { mending, openStore, troubles } from "./memory-store.js";
import { ask, presence } from "./memory-tools.js";
import { on } from "./store.js";

const VIEWS = { __proto__: null, list: openList, one: openOne, new: openNew, graph: openGraph, duplicates: openMerge, store: openStore };
const TABS = [["list", "#memory", "Memories"], ["graph", "#memory/graph", "Graph"], ["duplicates", "#memory/duplicates", "Duplicates"], ["store", "#memory/store", "Status and files"]];
const AGAIN_MS = 1000;
const LATEST_MS = 30_000;
const UNSETTLED = new Set(["initializing", "error"]);

export function open([name = "list", ...rest]) {
  const view = VIEWS[name] ?? openList;
  const tabs = TABS.map(([tab, href, words]) => h("a", { class: "tab", href, "aria-current": VIEWS[tab] === view || (tab === "list" && (view === openOne || view === openNew)) ? "page" : null }, words));
  const notes = h("div", { class: "stack" });
  const mended = h("div");
  const place = h("div", { class: "stack" });
  const node = h("div", { class: "page wide" }, heading("Memory", h("nav", { class: "tabs", "aria-label": "Memory" }, tabs)), notes, mended, place);
  let inner = null;
  let shown = null;
  let closed = false;
  let again = null;
  let wait = AGAIN_MS;
  // True while the page shows the failure of the store.
  let isTold = false;

  function draw() {
    const now = presence();
    if (now === null || now === shown) return;
    shown = now;
    inner?.close?.();
    inner = null;
    clearTimeout(again);
    fill(notes);
    if (now === "here") read();
    else fill(place, ABSENT[now]());
  }

  // Reads the status before anything else: reports damage, and waits for parts that are starting.
  async function read() {
    let status;
    try {
      status = await ask("get_status", { scopes: true });
    } catch (error) {
      if (closed) return;
      isTold = false;
      if (inner) fill(notes, problem(error));
      else fill(place, problem(error), h("div", { class: "buttons" }, button("Try again", read)));
      return;
    }
    if (closed || shown !== "here") return;
    const key = JSON.stringify(status.parts);
    if (notes.dataset.shown !== key) fill(notes, troubles(status));
    notes.dataset.shown = key;
    const store = status.parts?.store?.state;
    // Polls until all parts have recovered.
    clearTimeout(again);
    if (Object.values(status.parts ?? {}).some((part) => UNSETTLED.has(part.state))) again = setTimeout(read, wait);
    wait = Math.min(wait * 1.5, LATEST_MS);
    if (store === "error" && !isTold) {
      isTold = true;
      inner?.close?.();
      inner = null;
      fill(place, status.parts.store.damaged ? mending((said) => { fill(mended, said); read(); }) : null, h("div", { class: "buttons" }, button("Try again", read)));
    }
    if (store !== "ready") return;
    isTold = false;
    if (inner) inner.update?.(status);
    inner ??= view(rest, { ...status, scopes: status.scopes ?? [] });
    if (!place.contains(inner.node)) fill(place, inner.node);
  }

  draw();
  const off = on("status", draw);
  return {
    title: () => "Memory",
    node,
    back: () => (name === "list" || !VIEWS[name] ? "#overview" : inner?.back?.() ?? "#memory"),
    go: (next) => next[0] === name && Boolean(inner?.go?.(next.slice(1))),
    focus: () => inner?.focus?.(),
    close() {
      closed = true;
      clearTimeout(again);
      off();
      inner?.close?.();
    },
  };
}

const ABSENT = {
  off: () => absent("The memory is disabled in the configuration.", "To enable it, write this into the configuration, or remove the key:", "\"memory\": { \"enabled\": true }"),
  disabled: () => absent("The memory is disabled.", "To use it again, enable the server “memory” under Servers. Its memories are kept."),
  replaced: () => absent("Another server replaces the built-in memory.", "A server in the configuration is named “memory”. To use the built-in memory, rename that server. Its tools are under Tools."),
};

function absent(title, text, command) {
  return h("div", { class: "empty" }, h("p", { class: "empty-title" }, title), h("p", null, text), command ? h("pre", { class: "command" }, h("code", null, command)) : null,
    h("p", null, h("a", { href: "#servers" }, "Servers"), " · ", h("a", { href: "#settings" }, "Configuration")));
}
