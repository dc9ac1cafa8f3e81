// Overview: health, pending requests and load.

import { get, path, query } from "./api.js";
import { chart } from "./chart.js";
import { add, fill, h, heading, keyed, prose, say, select } from "./dom.js";
import { firstSteps } from "./first-steps.js";
import { details, KIND_WORDS, mark, sentence, word } from "./marks.js";
import { queueState } from "./queue-state.js";
import { preference, prefer } from "./session.js";
import { CALLS_AT_ONCE, isOpen, loadCalls, on, refreshStatus, state, waiting, waitingCount } from "./store.js";
import { agoTime, clock, everySecond, failedLists, gatewayTime, lasting, latency, leftTime, number, plural, serverCount, stateCount, together } from "./words.js";

const SPANS = [["900", "15 minutes"], ["3600", "1 hour"], ["21600", "6 hours"], ["86400", "24 hours"]];
const BUCKETS = 30;
const MOST_CLOSED = 200;
// The interval for reading values that no event reports.
const AGAIN_MS = 15_000;
const WAITS = [["within 5 s", 5, "5 s"], ["within 15 s", 15, "15 s"], ["within 30 s", 30, "30 s"], ["within a minute", 60, "1 min"], ["within 5 minutes", 300, "5 min"], ["later", Infinity, "later"]];
const TROUBLE = new Set(["parked", "needs sign-in", "retrying"]);

export function open() {
  const tiles = h("dl", { class: "tiles" });
  const queue = h("div");
  const notice = h("div");
  const servers = h("ul", { class: "server-list" });
  const serverLine = h("p", { class: "muted small-text" });
  const start = firstSteps();
  const parts = h("ul", { class: "part-list" });
  const trouble = h("div");
  const charts = { calls: h("figure", { class: "chart" }), latency: h("figure", { class: "chart" }), waits: h("figure", { class: "chart" }) };
  const span = select(SPANS, preference("span") ?? "3600", { "aria-label": "Period of the charts" });
  let closed = [];
  let drawnAt = 0;
  let readAt = gatewayTime();
  let planned = null;

  const node = h("div", { class: "page" },
    heading("Overview"),
    trouble,
    start.node,
    tiles,
    h("div", { class: "columns" },
      h("section", { class: "card", "aria-labelledby": "waiting-title" }, h("div", { class: "card-head" }, h("h2", { id: "waiting-title" }, "Pending requests"), h("a", { href: "#approvals" }, "All requests")), notice, queue),
      h("section", { class: "card", "aria-labelledby": "servers-title" }, h("div", { class: "card-head" }, h("h2", { id: "servers-title" }, "Servers"), h("a", { href: "#servers" }, "All servers")), serverLine, servers,
        h("h3", { class: "card-sub" }, "Parts of the gateway"), parts)),
    h("section", { class: "card", "aria-labelledby": "charts-title" },
      h("div", { class: "card-head" }, h("h2", { id: "charts-title" }, "Calls and approvals"), h("label", { class: "inline-label" }, "Last ", span)),
      h("div", { class: "charts" }, charts.calls, charts.latency, charts.waits)));

  function drawStatus() {
    const { status } = state;
    if (!status) return;
    const now = gatewayTime();
    const lastMinute = state.calls.filter((call) => now - Date.parse(call.at) < 60_000);
    const failed = lastMinute.filter((call) => call.outcome !== "ok" && call.outcome !== "cancelled");
    const has = (...states) => status.servers.some((server) => states.includes(server.state));
    const held = status.held ?? 0;
    drawTiles(tiles, [
      ["Pending requests", state.queue === "reading" || state.queue === "failed" ? (waitingCount() ? `${number(waitingCount())} or more` : "–") : number(waitingCount()), waitingCount() ? "warn" : null, "#approvals"],
      ["Calls in the last minute", state.callsLoaded ? number(lastMinute.length) : "–", null, "#activity"],
      ["Errors in the last minute", state.callsLoaded ? number(failed.length) : "–", failed.length ? "bad" : null, "#activity"],
      ["Servers", number(status.servers.length), has("parked") ? "bad" : has("needs sign-in", "retrying") ? "warn" : null, "#servers", stateCount(status.servers)],
      ["Tools", number(status.tools), null, "#tools"],
      ["Held", number(held), held ? "warn" : null, "#tools"],
      ["Clients", number(status.clients), null, "#access"],
    ]);
    keyed(servers, [...status.servers].sort((a, b) => Number(TROUBLE.has(b.state)) - Number(TROUBLE.has(a.state)) || a.name.localeCompare(b.name)),
      (server) => server.name, (server) => drawServer(h("li"), server), drawServer);
    start.draw(status.servers);
    say(serverLine, serverCount(status.servers));
    keyed(parts, status.parts.filter((part) => !part.name.startsWith("server:")), (part) => part.name, (part) => drawPart(h("li"), part), drawPart);
    const wrong = status.configProblem;
    if (trouble.dataset.shown !== String(wrong)) {
      trouble.dataset.shown = String(wrong);
      fill(trouble, wrong ? h("div", { class: "callout", "data-tone": "warn", role: "status" }, h("strong", null, "The gateway keeps the previous configuration, because the new one is invalid: "), prose(wrong)) : null);
    }
  }

  function drawQueue() {
    const all = waiting();
    const about = `${all.length > 0} ${state.queue} ${state.queueProblem?.message}`;
    if (notice.dataset.shown !== about) fill(notice, queueState(all.length));
    notice.dataset.shown = about;
    queue.hidden = !all.length;
    if (!all.length) return;
    if (queue.dataset.shown !== "some") fill(queue, h("ul", { class: "mini-queue" }), h("p", { class: "muted" }));
    queue.dataset.shown = "some";
    keyed(queue.firstChild, ofEach(all, 6), (approval) => approval.id, (approval) => drawWaiting(h("li"), approval), drawWaiting);
    say(queue.lastChild, all.length > 6 ? `and ${all.length - 6} more` : "");
  }

  function drawCharts() {
    const now = gatewayTime();
    drawnAt = now;
    const seconds = Number(span.value);
    const from = now - seconds * 1000;
    const step = (seconds * 1000) / BUCKETS;
    const labels = Array.from({ length: BUCKETS }, (_, at) => clock(from + at * step).slice(0, 5));
    const fill_ = () => Array.from({ length: BUCKETS }, () => []);
    const [good, bad] = [fill_(), fill_()];
    for (const call of state.calls) {
      const at = Math.floor((Date.parse(call.at) - from) / step);
      if (at >= 0 && at < BUCKETS) (call.outcome === "ok" ? good : bad)[at].push(latency(call));
    }
    const oldest = state.calls.at(-1);
    // Only the newest calls of this period are loaded.
    const cut = oldest && state.calls.length >= CALLS_AT_ONCE && Date.parse(oldest.at) > from;
    const newest = cut ? `the newest ${plural(state.calls.length, "call")}` : null;
    const [goodCount, badCount] = [good.flat().length, bad.flat().length];
    chart(charts.calls, {
      title: "Calls", kind: "bars", labels, show: (value) => number(Math.round(value * 10) / 10), empty: "No calls in this period.",
      summary: cut ? `Only ${newest}, since ${clock(oldest.at)}: ${number(badCount)} of them failed.` : `${plural(goodCount + badCount, "call")}, ${number(badCount)} of them failed.`,
      series: [{ name: "answered", tone: "accent", values: good.map((list) => list.length) }, { name: "failed", tone: "bad", values: bad.map((list) => list.length) }],
    });
    const all = good.map((list, at) => [...list, ...bad[at]].sort((a, b) => a - b));
    const whole = all.flat().sort((a, b) => a - b);
    chart(charts.latency, {
      title: "Latency", kind: "lines", labels, show: lasting, empty: "No calls in this period.",
      summary: `Half of ${newest ?? "the calls"} took at most ${lasting(share(whole, 0.5))}, 95 % at most ${lasting(share(whole, 0.95))}, without the time spent waiting for an approver.`,
      series: [{ name: "p50", tone: "accent", values: all.map((list) => share(list, 0.5)) }, { name: "p95", tone: "warn", values: all.map((list) => share(list, 0.95)) }],
    });
    drawWaits(from);
  }

  function drawWaits(from) {
    const oldest = closed.length >= MOST_CLOSED ? closed.at(-1) : null;
    const cut = oldest && Date.parse(oldest.createdAt) > from;
    const decided = closed.filter((approval) => Date.parse(approval.createdAt) >= from && approval.kind !== "trust");
    const values = WAITS.map(() => 0);
    const times = [];
    for (const approval of decided) {
      if (!approval.decision?.at) continue;
      const seconds = (Date.parse(approval.decision.at) - Date.parse(approval.createdAt)) / 1000;
      times.push(seconds * 1000);
      values[WAITS.findIndex(([, most]) => seconds < most)] += 1;
    }
    const late = decided.filter((approval) => approval.status === "timed_out").length;
    times.sort((a, b) => a - b);
    chart(charts.waits, {
      title: "Time to decide", kind: "bars", labels: [...WAITS.map(([words]) => words), "timed out"], short: [...WAITS.map(([, , words]) => words), "never"], show: (value) => number(Math.round(value * 10) / 10), empty: "No requests were decided in this period.",
      summary: `${cut ? `Only the newest ${number(closed.length)}: ` : ""}${plural(times.length, "request")} decided, half of them within ${lasting(share(times, 0.5) ?? NaN)}; ${number(late)} timed out.`,
      series: [{ name: "decided", tone: "accent", values: [...values, 0] }, { name: "timed out", tone: "warn", values: [...values.map(() => 0), late] }],
    });
  }

  async function readClosed() {
    const said = await get(query(path("approvals"), { status: "closed", limit: MOST_CLOSED })).catch(() => null);
    if (!said) return;
    closed = said.approvals;
    drawCharts();
  }

  span.addEventListener("change", () => {
    prefer("span", span.value);
    drawCharts();
  });
  drawStatus();
  drawQueue();
  drawCharts();
  if (state.status) refreshStatus().catch(() => {});
  loadCalls().catch(() => {});
  readClosed();
  const offs = [
    on("status", drawStatus),
    on("calls", () => { drawStatus(); drawCharts(); }),
    on("approvals", ({ approval }) => {
      if (approval && !isOpen(approval)) closed = [approval, ...closed.filter((other) => other.id !== approval.id)].slice(0, MOST_CLOSED);
      planned ??= requestAnimationFrame(() => {
        planned = null;
        drawQueue();
        drawStatus();
        drawCharts();
      });
    }),
    everySecond((now) => {
      if (now - drawnAt > AGAIN_MS) { drawStatus(); drawCharts(); }
      if (now - readAt <= AGAIN_MS || document.hidden) return;
      readAt = now;
      refreshStatus().catch(() => {});
    }),
  ];
  return { title: () => "Overview", node, close: () => offs.forEach((off) => off()) };
}

// The first few, spread over the servers: one server with many requests does not hide others.
function ofEach(all, most) {
  const counts = new Map();
  const turn = all.map((approval) => {
    const before = counts.get(approval.server) ?? 0;
    counts.set(approval.server, before + 1);
    return [Math.floor(before / 2), approval];
  });
  return turn.sort(([a], [b]) => a - b).slice(0, most).map(([, approval]) => approval);
}

function share(sorted, part) {
  return sorted.length ? sorted[Math.min(sorted.length - 1, Math.ceil(sorted.length * part) - 1)] : null;
}

function drawTiles(list, tiles) {
  keyed(list, tiles, ([name]) => name,
    ([name, value, tone, href, more]) => h("div", { class: "tile", "data-tone": tone }, h("dt", null, href ? h("a", { href }, name) : name, h("span", { class: "tile-more" }, together(more ?? ""))), h("dd", null, value)),
    (node, [, value, tone, , more]) => {
      say(node.lastChild, value);
      const small = node.querySelector(".tile-more");
      if (small.textContent.trim() !== (more ?? "")) fill(small, together(more ?? ""));
      if (tone) node.dataset.tone = tone;
      else delete node.dataset.tone;
    });
}

function drawServer(node, server) {
  const shown = JSON.stringify([server.state, server.reason, server.failedLists, server.calls, server.errors, server.inFlight]);
  if (node.dataset.shown === shown) return node;
  node.dataset.shown = shown;
  const had = node.contains(document.activeElement);
  fill(node, h("a", { class: "row", href: `#servers/${encodeURIComponent(server.name)}` }, server.name), mark(server.state),
    h("span", { class: "muted numbers-line" }, `${plural(server.calls, "call")}${server.errors ? `, ${plural(server.errors, "error")}` : ""}`),
    server.reason && TROUBLE.has(server.state) ? h("p", { class: "reason" }, prose(server.reason)) : null,
    failedLists(server).map((text) => h("p", { class: "reason" }, prose(text))));
  if (had) node.querySelector("a").focus();
  return node;
}

function drawPart(node, part) {
  const shown = JSON.stringify(part);
  if (node.dataset.shown === shown) return node;
  node.dataset.shown = shown;
  fill(node, h("span", null, part.name), mark(part.state), part.message ? h("p", { class: "reason" }, prose(part.message)) : null, part.note ? h("p", { class: "muted" }, prose(part.note)) : null);
  return node;
}

function argumentsLine(approval) {
  const text = details(approval);
  return text ? h("span", { class: "ask-details" }, text) : null;
}

function drawWaiting(node, approval) {
  const shown = `${approval.status} ${approval.escalatedAt ?? ""}`;
  if (node.dataset.shown === shown) return node;
  node.dataset.shown = shown;
  fill(node, h("a", { class: "row", href: `#approvals/${encodeURIComponent(approval.id)}` }, sentence(approval)), argumentsLine(approval),
    h("span", { class: "muted" }, `${KIND_WORDS[approval.kind] ?? approval.kind} · ${approval.server} · `, agoTime(approval.createdAt)));
  const end = h("span", { class: "queue-end" });
  if (approval.escalatedAt) add(end, mark("escalated"));
  if (approval.status !== "pending") add(end, mark(approval.status, word(approval.status)));
  if (approval.expiresAt) add(end, leftTime(approval.expiresAt));
  add(node, end);
  return node;
}
