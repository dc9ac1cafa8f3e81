// Approvals: the queue of those that wait, the history of the others, and beside them the one that is open.

import { get, path, query } from "./api.js";
import { openApproval } from "./approval.js";
import { add, button, empty, fill, h, heading, keyed, problem, say, select } from "./dom.js";
import { KIND_WORDS, mark, sentence, word } from "./marks.js";
import { serverFilter } from "./server-filter.js";
import { isOpen, isWaiting, oldestFirst, on, state, waiting } from "./store.js";
import { agoTime, leftTime } from "./words.js";

// A request that appears under the pointer is not for the click that was already on its way.
const FRESH_MS = 500;
const PAGE = 50;
const CLOSED = ["approved", "rejected", "accepted", "declined", "cancelled", "timed_out", "withdrawn", "failed"];

export function open(rest) {
  const side = h("div", { class: "split-list" });
  const main = h("section", { class: "split-main", "aria-label": "The approval that is open" });
  const split = h("div", { class: "split" }, side, main);
  const tabs = [["#approvals", "Waiting"], ["#approvals/history", "History"]].map(([href, words]) => h("a", { href, class: "tab" }, words, href === "#approvals" ? h("span", { class: "badge", hidden: true }) : null));
  const node = h("div", { class: "page wide" }, heading("Approvals", h("nav", { class: "tabs", "aria-label": "Approvals" }, tabs)), split);
  let list = null;
  let detail = null;
  let openId = null;
  let mode = null;

  function go([what]) {
    const id = what === "history" ? null : what ?? null;
    const wanted = what === "history" ? "history" : id === null || mode === null ? "queue" : mode;
    if (wanted !== mode) {
      list?.close();
      mode = wanted;
      list = mode === "history" ? openHistory() : openQueue();
      fill(side, list.node);
    }
    tabs.forEach((tab, at) => {
      if ((at === 1) === (mode === "history")) tab.setAttribute("aria-current", "page");
      else tab.removeAttribute("aria-current");
    });
    if (id !== openId || !detail) {
      detail?.close();
      openId = id;
      detail = id ? openApproval(id) : null;
      fill(main, detail?.node ?? h("div", { class: "split-empty muted" }, h("p", null, "Choose one to see who asks, and why.")));
    }
    split.dataset.state = id ? "open" : "list";
    list.choose(id);
    return true;
  }

  function count() {
    const badge = tabs[0].lastChild;
    badge.hidden = waiting().length === 0;
    say(badge, String(waiting().length));
  }

  go(rest);
  count();
  const off = on("approvals", count);
  const does = (name) => () => detail?.keys?.[name]?.();
  return {
    node,
    go,
    title: () => (openId ? `Approval ${openId}` : mode === "history" ? "Past approvals" : "Approvals"),
    focus: () => (openId ? detail.heading() : null),
    back: () => (openId ? (mode === "history" ? "#approvals/history" : "#approvals") : "#overview"),
    keys: { a: does("a"), e: does("e"), r: does("r") },
    close() {
      off();
      list.close();
      detail?.close();
    },
  };
}

function row(approval) {
  const node = h("li", { class: "ask" });
  return drawRow(node, approval);
}

function drawRow(node, approval) {
  const shown = JSON.stringify([approval.status, approval.escalatedAt, approval.summary]);
  if (node.dataset.shown === shown) return node;
  node.dataset.shown = shown;
  const link = node.querySelector("a") ?? h("a", { class: "row", href: `#approvals/${encodeURIComponent(approval.id)}` });
  fill(link, sentence(approval));
  const foot = h("p", { class: "ask-foot" });
  if (isOpen(approval)) {
    add(foot, approval.expiresAt ? leftTime(approval.expiresAt) : h("span", { class: "muted" }, "no time limit"));
    if (approval.escalatedAt) add(foot, mark("escalated"));
    if (approval.status !== "pending") add(foot, mark(approval.status));
    if (approval.warnings?.length) add(foot, mark("warn", "look twice"));
  } else {
    add(foot, [mark(approval.status), h("span", { class: "muted" }, approval.decision?.by ? `by ${approval.decision.by}` : "")]);
  }
  const head = h("p", { class: "ask-head" }, h("span", { class: "kind", "data-kind": approval.kind }, KIND_WORDS[approval.kind] ?? approval.kind), h("span", { class: "ask-server" }, approval.server ?? ""), agoTime(approval.createdAt));
  node.classList.toggle("settled", !isOpen(approval));
  // The link stays the same node, so that the focus does.
  for (const child of [...node.children]) if (child !== link) child.remove();
  if (!link.isConnected || link.parentNode !== node) node.append(link);
  link.before(head);
  link.after(foot);
  return node;
}

function choose(list, id) {
  for (const link of list.querySelectorAll("a.row")) {
    const is = link.parentNode.dataset.key === id;
    if (is && !link.hasAttribute("aria-current")) link.parentNode.scrollIntoView({ block: "nearest" });
    if (is) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

function openQueue() {
  const list = h("ul", { class: "asks", "aria-label": "Waiting approvals" });
  const none = h("div");
  const node = h("div", null, list, none);
  let chosen = null;
  // While the pointer or the focus is in the list, those that are decided stay where they are.
  const stay = new Set();
  let inside = false;

  function draw() {
    const busy = inside || list.contains(document.activeElement);
    const open = [...state.approvals.values()].filter((approval) => isOpen(approval) || (busy && stay.has(approval.id)));
    if (!busy) stay.clear();
    for (const approval of open) stay.add(approval.id);
    keyed(list, open.sort(oldestFirst), (approval) => approval.id, (approval) => fresh(row(approval)), drawRow);
    fill(none, open.length ? null : empty("No approvals are waiting.", "When a server asks a question, wants an answer of a model, or a rule says that a call needs you, it shows up here, and the tab's title counts it."));
    choose(list, chosen);
  }

  const settle = () => {
    inside = false;
    draw();
  };
  list.addEventListener("pointerenter", () => {
    inside = true;
  });
  list.addEventListener("pointerleave", settle);
  list.addEventListener("focusout", () => requestAnimationFrame(() => !inside && draw()));
  draw();
  const off = on("approvals", draw);
  return {
    node,
    choose(id) {
      chosen = id;
      choose(list, id);
    },
    close: off,
  };
}

// Not to be clicked in its first moments.
function fresh(node) {
  node.classList.add("fresh");
  setTimeout(() => node.classList.remove("fresh"), FRESH_MS);
  return node;
}

function openHistory() {
  const kind = select([["", "Every kind"], ...Object.entries(KIND_WORDS)], "", { "aria-label": "Kind" });
  const status = select([["closed", "However it ended"], ...CLOSED.map((one) => [one, word(one)])], "closed", { "aria-label": "How it ended" });
  const choice = serverFilter("Every server", "");
  const server = choice.node;
  const list = h("ul", { class: "asks", "aria-label": "Past approvals" });
  const none = h("div");
  const more = button("Show more", () => read(true), { class: "show-more", hidden: true });
  let all = [];
  let chosen = null;
  let asked = 0;

  async function read(onward) {
    asked += 1;
    const mine = asked;
    try {
      const said = await get(query(path("approvals"), { status: status.value, kind: kind.value, server: server.value, limit: PAGE, before: onward ? all.at(-1)?.id : "" }));
      if (mine !== asked) return;
      all = onward ? [...all, ...said.approvals.filter((one) => !all.some((other) => other.id === one.id))] : said.approvals;
      more.hidden = said.approvals.length < PAGE;
      draw();
    } catch (error) {
      fill(none, problem(error));
    }
  }

  function draw() {
    keyed(list, all, (approval) => approval.id, row, drawRow);
    fill(none, all.length ? null : empty("Nothing here.", "Approvals that are decided, withdrawn or out of time are kept here."));
    choose(list, chosen);
  }

  for (const one of [kind, status, server]) one.addEventListener("change", () => read(false));
  read(false);
  const fits = (approval) => (status.value === "closed" || status.value === approval.status) && (!kind.value || kind.value === approval.kind) && (!server.value || server.value === approval.server);
  const off = on("approvals", ({ approval }) => {
    if (!approval || isOpen(approval) || isWaiting(approval)) return;
    const at = all.findIndex((one) => one.id === approval.id);
    if (at >= 0) all[at] = approval;
    else if (fits(approval)) all.unshift(approval);
    draw();
  });
  return {
    node: h("div", null, h("div", { class: "filters" }, kind, status, server), list, none, more),
    choose(id) {
      chosen = id;
      choose(list, id);
    },
    close() {
      choice.close();
      off();
    },
  };
}
