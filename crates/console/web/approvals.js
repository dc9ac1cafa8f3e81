// Approvals: the queue of pending requests, the history, and beside them the selected request.

import { get, path, query } from "./api.js";
import { openApproval } from "./approval.js";
import { add, button, empty, fill, h, heading, keyed, problem, say, select } from "./dom.js";
import { details, KIND_WORDS, mark, sentence, suspicious, word } from "./marks.js";
import { queueState } from "./queue-state.js";
import { serverFilter } from "./server-filter.js";
import { isOpen, isWaiting, oldestFirst, on, state, waiting, waitingCount } from "./store.js";
import { agoTime, leftTime, plural } from "./words.js";

// A request that appears under the pointer ignores a click that was meant for something else.
const FRESH_MS = 500;
const PAGE = 50;
// The width from which the list and the request are side by side; see layout.css.
const WIDE = matchMedia("(min-width: 1021px)");
const MOST_PAST = 1000;
const CLOSED = ["approved", "rejected", "accepted", "declined", "cancelled", "timed_out", "withdrawn", "failed"];

export function open(rest) {
  const side = h("div", { class: "split-list" });
  const main = h("section", { class: "split-main", "aria-label": "Selected request" });
  const split = h("div", { class: "split" }, side, main);
  const tabs = [["#approvals", "Pending"], ["#approvals/history", "History"]].map(([href, words]) => h("a", { href, class: "tab" }, words, href === "#approvals" ? h("span", { class: "badge", hidden: true }) : null));
  const node = h("div", { class: "page wide" }, heading("Approvals", h("nav", { class: "tabs", "aria-label": "Approvals" }, tabs)), split);
  let list = null;
  let detail = null;
  let openId = null;
  let mode = null;
  // The request that the address names. If it names none, a wide screen shows the first pending one.
  let named = null;

  function go([what]) {
    named = what === "history" ? null : what ?? null;
    const isClosed = named !== null && mode === "history" && !(state.approvals.has(named) && isOpen(state.approvals.get(named)));
    const wanted = what === "history" || isClosed ? "history" : "queue";
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
    show(named ?? first());
    split.dataset.state = named ? "open" : "list";
    return true;
  }

  function show(id) {
    if (id !== openId || !main.firstChild || (!id && main.dataset.state !== mode)) {
      detail?.close();
      openId = id;
      main.dataset.state = mode;
      detail = id ? openApproval(id) : null;
      fill(main, detail?.node ?? h("div", { class: "split-empty muted" }, h("p", null, mode === "history" ? "Select a request to see its content and outcome." : "The next request opens here.")));
    }
    list.choose(id);
  }

  function first() {
    return mode === "queue" && WIDE.matches ? waiting()[0]?.id ?? null : null;
  }

  // Shows the first request that arrives; a request that is shown stays.
  function follow() {
    if (openId === null && named === null) show(first());
  }

  function count() {
    const badge = tabs[0].lastChild;
    badge.hidden = waitingCount() === 0;
    say(badge, String(waitingCount()));
  }

  go(rest);
  count();
  const off = on("approvals", () => {
    count();
    follow();
  });
  WIDE.addEventListener("change", follow);
  // Not while another row has the focus: the key may be meant for that one.
  const isMeant = () => !side.contains(document.activeElement) || document.activeElement.getAttribute("aria-current") === "true";
  const does = (name) => () => isMeant() && detail?.keys[name]();
  return {
    node,
    go,
    title: () => (named ? `Request ${named}` : mode === "history" ? "Closed requests" : "Approvals"),
    focus: () => (named ? detail.heading() : null),
    back: () => (named ? (mode === "history" ? "#approvals/history" : "#approvals") : "#overview"),
    keys: { a: does("a"), e: does("e"), r: does("r") },
    send: (target) => detail?.send(target),
    close() {
      off();
      WIDE.removeEventListener("change", follow);
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
  const said = details(approval);
  const foot = h("div", null, said ? h("p", { class: "ask-details" }, said) : null);
  add(foot, footOf(approval));
  const head = h("p", { class: "ask-head" }, h("span", { class: "kind", "data-kind": approval.kind }, KIND_WORDS[approval.kind] ?? approval.kind), h("span", { class: "ask-server" }, approval.server ?? ""), agoTime(approval.createdAt));
  node.classList.toggle("settled", !isOpen(approval));
  // The link stays the same node, so that it keeps the focus.
  for (const child of [...node.children]) if (child !== link) child.remove();
  if (!link.isConnected || link.parentNode !== node) node.append(link);
  link.before(head);
  link.after(foot);
  return node;
}

function footOf(approval) {
  if (!isOpen(approval)) return h("p", { class: "ask-foot" }, mark(approval.status), h("span", { class: "muted" }, approval.decision?.by ? `by ${approval.decision.by}` : ""));
  return h("p", { class: "ask-foot" }, approval.expiresAt ? leftTime(approval.expiresAt) : h("span", { class: "muted" }, "no time limit"),
    approval.escalatedAt ? mark("escalated") : null,
    approval.status !== "pending" ? mark(approval.status) : null,
    suspicious(approval).length ? mark("warn", "warning") : null);
}

function choose(list, id) {
  for (const link of list.querySelectorAll("a.row")) {
    const is = link.parentNode.dataset.key === id;
    if (is && !link.hasAttribute("aria-current")) link.parentNode.scrollIntoView({ block: "nearest" });
    if (is) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

// With more requests than this, a server is folded, so that it does not hide others.
const CROWD = 20;
const GROUP_PAGE = 100;

function openQueue() {
  const list = h("ul", { class: "asks", "aria-label": "Pending requests" });
  const groups = h("div", { class: "ask-groups" });
  const none = h("div");
  const node = h("div", null, none, list, groups);
  let chosen = null;
  // While the pointer or the focus is in the list, decided requests stay in place.
  const stay = new Set();
  const many = new Map();
  let inside = false;
  let planned = false;

  function draw() {
    planned = false;
    const busy = inside || node.contains(document.activeElement);
    if (!busy) stay.clear();
    const open = [...state.approvals.values()].filter((approval) => isOpen(approval) || stay.has(approval.id)).sort(oldestFirst);
    for (const approval of open) stay.add(approval.id);
    const byServer = Map.groupBy(open, (approval) => approval.server ?? "");
    const crowds = [...byServer].filter(([, asks]) => asks.length > CROWD);
    const alone = open.filter((approval) => byServer.get(approval.server ?? "").length <= CROWD);
    keyed(list, alone, (approval) => approval.id, (approval) => fresh(row(approval)), drawRow);
    keyed(groups, crowds, ([server]) => server, newGroup, drawGroup);
    drawNone(open.length);
    choose(node, chosen);
  }

  function newGroup([server, asks]) {
    const rows = h("ul", { class: "asks", "aria-label": `Pending requests of ${server}` });
    const more = button("Show more", () => {
      many.set(server, (many.get(server) ?? GROUP_PAGE) + GROUP_PAGE);
      draw();
    }, { class: "show-more", hidden: true });
    const group = h("details", { class: "ask-group" }, h("summary", { class: "row" }), rows, more);
    group.addEventListener("toggle", draw);
    drawGroup(group, [server, asks]);
    return group;
  }

  function drawGroup(group, [server, asks]) {
    const [summary, rows, more] = group.children;
    const most = many.get(server) ?? GROUP_PAGE;
    say(summary, `${server}: ${plural(asks.filter(isOpen).length, "request")}`);
    keyed(rows, group.open ? asks.slice(0, most) : [], (approval) => approval.id, (approval) => fresh(row(approval)), drawRow);
    more.hidden = !group.open || asks.length <= most;
  }

  function drawNone(count) {
    const key = `${count > 0} ${state.queue} ${state.queueProblem?.message}`;
    if (none.dataset.shown === key) return;
    none.dataset.shown = key;
    fill(none, queueState(count));
  }

  // Draws once per frame, regardless of the number of events.
  function plan() {
    if (!planned) requestAnimationFrame(draw);
    planned = true;
  }

  node.addEventListener("pointerenter", () => {
    inside = true;
  });
  node.addEventListener("pointerleave", () => {
    inside = false;
    draw();
  });
  node.addEventListener("focusout", () => requestAnimationFrame(() => !inside && draw()));
  draw();
  const off = on("approvals", plan);
  return {
    node,
    choose(id) {
      chosen = id;
      choose(node, id);
    },
    close: off,
  };
}

// Ignores clicks for FRESH_MS.
function fresh(node) {
  node.classList.add("fresh");
  setTimeout(() => node.classList.remove("fresh"), FRESH_MS);
  return node;
}

function openHistory() {
  const kind = select([["", "All kinds"], ...Object.entries(KIND_WORDS)], "", { "aria-label": "Kind" });
  const status = select([["closed", "All outcomes"], ...CLOSED.map((one) => [one, word(one)])], "closed", { "aria-label": "Outcome" });
  const choice = serverFilter("All servers", "");
  const server = choice.node;
  const list = h("ul", { class: "asks", "aria-label": "Closed requests" });
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
    fill(none, all.length ? null : empty("No closed requests.", "Requests that are decided, withdrawn or timed out appear here."));
    choose(list, chosen);
  }

  for (const one of [kind, status, server]) one.addEventListener("change", () => read(false));
  read(false);
  const fits = (approval) => (status.value === "closed" || status.value === approval.status) && (!kind.value || kind.value === approval.kind) && (!server.value || server.value === approval.server);
  const off = on("approvals", ({ approval }) => {
    if (!approval || isOpen(approval) || isWaiting(approval)) return;
    const at = all.findIndex((one) => one.id === approval.id);
    if (at >= 0) all[at] = approval;
    else if (fits(approval)) all = [approval, ...all].slice(0, MOST_PAST);
    else return;
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
