// One request: its origin, reason, deadline, content and outcome.

import { get, path } from "./api.js";
import { arrange, panel } from "./decide.js";
import { add, button, fill, h, problem, prose, say } from "./dom.js";
import { outcome } from "./outcome.js";
import { KIND_WORDS, lacksModel, mark, sentence, suspicious } from "./marks.js";
import { modelAnswer } from "./model-answer.js";
import { json, WHOLE } from "./payload.js";
import { question } from "./question.js";
import { isOpen, isWaiting, isWhole, on, state, takeApproval, waiting } from "./store.js";
import { toolCall } from "./tool-call.js";
import { trustRequest } from "./trust-request.js";
import { agoTime, everySecond, gatewayTime, left, leftTime } from "./words.js";

const KINDS = { __proto__: null, sampling: modelAnswer, elicitation: question, tool_call: toolCall, resource: toolCall, prompt: toolCall, trust: trustRequest };

export function openApproval(id) {
  const title = h("h2", { tabindex: "-1", class: "approval-title" }, "Loading…");
  const back = h("p", { class: "crumb split-back" }, h("a", { href: "#approvals" }, "Approvals"));
  const meta = h("div");
  const said = h("div", { role: "status" });
  const body = h("div", { class: "stack" });
  const node = h("article", { class: "approval", "aria-label": `Request ${id}` }, back, title, meta, said, body);
  let view = null;
  let drawn = null;
  let shown = null;
  let reading = false;
  let readAfter = false;

  // Draws a form once per status of the request, and not again while the user fills it in.
  function draw(approval) {
    if (shown && (shown.version ?? 0) > (approval.version ?? 0)) return;
    const again = shown?.version === approval.version;
    shown = approval;
    say(title, sentence(approval));
    drawMeta(meta, approval);
    // An orphaned request is answered in the same form.
    const form = approval.status === "orphaned" ? "pending" : approval.status;
    if (drawn === form && (again || isOpen(approval))) {
      view?.own?.follow(approval.status);
      return;
    }
    const typed = drawn !== null && view?.dirty?.() && !view.own.sent;
    if (typed && form !== "pending") {
      // Another approver decided first: the user can still read and copy the input.
      keepTyped(approval);
      drawn = form;
      return;
    }
    if (!isWhole(approval)) {
      // A decision needs the whole request: lock the old form, and read all of it.
      view?.own?.lock();
      if (drawn === null) fill(body, h("p", { class: "muted" }, "Loading the whole request…"));
      read();
      return;
    }
    const hadFocus = body.contains(document.activeElement) || (view?.own?.sent && document.activeElement === document.body);
    drawn = form;
    // An earlier decision is still reported when the form is gone.
    fill(said, view?.own?.conflict);
    try {
      view = (Object.hasOwn(KINDS, approval.kind) ? KINDS[approval.kind] : unreadable)(approval);
      fill(body, outcome(approval), isOpen(approval) ? null : next(), view.node);
    } catch {
      // The user can read and reject a malformed request, too.
      view = unreadable(approval);
      fill(body, view.node);
    }
    if (hadFocus) title.focus();
  }

  function keepTyped(approval) {
    view.own.lock();
    const words = isOpen(approval) ? "Another approver has approved it. " : `${closedWords(approval)} `;
    const go = button(isOpen(approval) ? "Show the current status" : "Show the outcome", () => {
      view = null;
      drawn = null;
      draw(shown);
      title.focus();
    }, { class: "small" });
    fill(said, h("div", { class: "callout", "data-tone": "warn" }, h("strong", null, words), "Your input was not sent. ", go));
    view = { ...view, keys: {} };
  }

  // Reads the whole request, one read at a time.
  async function read() {
    if (reading) {
      readAfter = true;
      return;
    }
    reading = true;
    try {
      const approval = await get(path("approvals", id));
      if (isOpen(approval) || state.approvals.has(id)) takeApproval(approval, "read");
      if (said.firstElementChild?.classList.contains("no-read")) fill(said);
      draw(approval);
    } catch (error) {
      if (drawn === null) fill(body);
      if (!shown) say(title, error.status === 404 ? "Request not found" : "Cannot load the request");
      fill(said, h("div", { class: "no-read" }, problem(error), error.status === 404 ? null : button("Try again", read, { class: "small" })));
    }
    reading = false;
    if (readAfter) {
      readAfter = false;
      read();
    }
  }

  const known = state.approvals.get(id);
  if (known) draw(known);
  // Closed requests are not kept current.
  if (!reading && (!known || !isOpen(known))) read();
  const offs = [
    on("approvals", ({ approval, many, gone }) => {
      const news = approval?.id === id ? approval : many?.get(id);
      if (gone?.has(id)) read();
      else if (news) draw(news);
    }),
    everySecond(() => shown && isOpen(shown) && drawClock(meta, shown)),
  ];
  const does = (name) => () => view?.keys?.[name]?.();
  return {
    node,
    heading: () => title,
    keys: { a: does("a"), e: does("e"), r: does("r") },
    // Only from within the request, and only while its button is enabled; on a button or a link, Enter presses that.
    send: (target) => node.contains(target) && !target.closest("button, a, summary") && view?.keys?.send?.() !== undefined,
    close: () => offs.forEach((off) => off()),
  };
}

// A link to the oldest pending request.
function next() {
  const [first, ...others] = waiting();
  if (!first) return null;
  return h("p", { class: "next" }, h("a", { href: `#approvals/${encodeURIComponent(first.id)}` }, others.length ? `Next of ${others.length + 1} pending requests` : "Next, the last pending request"), h("span", { class: "muted" }, ` ${sentence(first)}`));
}

function closedWords(approval) {
  const by = approval.decision?.by;
  const done = { __proto__: null, timed_out: "The request timed out.", withdrawn: "The request was withdrawn: the caller no longer waits." }[approval.status];
  return done ?? `Already ${approval.status}${by ? ` by ${by}` : ""}.`;
}

function drawMeta(place, approval) {
  const key = JSON.stringify([approval.status, approval.escalatedAt, approval.expiresAt, approval.warnings]);
  if (place.dataset.shown === key) return;
  place.dataset.shown = key;
  const facts = [
    ["Kind", KIND_WORDS[approval.kind] ?? approval.kind],
    ["Server", h("a", { href: `#servers/${encodeURIComponent(approval.server ?? "")}` }, approval.server ?? "–")],
    ["Tool", approval.tool ? h("a", { href: `#tools/${encodeURIComponent(approval.server ?? "")}/${encodeURIComponent(approval.tool)}` }, approval.tool) : null],
    ["Client", approval.client ? approval.client : null],
    ["Created", agoTime(approval.createdAt)],
    ["Rule", approval.rule ? h("code", null, approval.rule) : null],
  ];
  fill(place,
    h("div", { class: "approval-state" }, mark(approval.status), approval.escalatedAt && isOpen(approval) ? mark("escalated", "escalated: no answer yet") : null),
    isOpen(approval) && approval.expiresAt ? h("div", { class: "countdown" }, h("progress", { "aria-label": "Time left", max: "1" }), h("span", null, leftTime(approval.expiresAt), h("span", { class: "muted escalates" }))) : null,
    h("dl", { class: "facts inline" }, facts.filter(([, value]) => value).map(([title, value]) => h("div", null, h("dt", null, title), h("dd", null, value)))),
    suspicious(approval).length ? h("div", { class: "callout loud", "data-tone": "bad", role: "note" }, h("strong", null, "Warnings"), h("ul", null, suspicious(approval).map((text) => h("li", null, prose(text))))) : null,
    lacksModel(approval) && isWaiting(approval) ? h("div", { class: "callout", role: "note" }, "No model is configured. Answer the request yourself, or set ", h("code", null, "sampling.provider"), " in the configuration to let a model answer.") : null,
    approval.status === "orphaned" ? h("div", { class: "callout" }, "The caller has disconnected, perhaps because the gateway restarted. Your answer is kept, and delivered if the caller repeats the request.") : null,
    approval.status === "generating" ? h("div", { class: "callout" }, "The request is approved, and the model is generating an answer.") : null);
  drawClock(place, approval);
}

function drawClock(place, approval) {
  const bar = place.querySelector("progress");
  if (!bar) return;
  const [from, to, now] = [Date.parse(approval.createdAt), Date.parse(approval.expiresAt), gatewayTime()];
  bar.value = Math.max(0, Math.min(1, (to - now) / Math.max(1, to - from)));
  bar.classList.toggle("soon", to - now < 60_000);
  const escalates = Date.parse(approval.escalatesAt);
  say(place.querySelector(".escalates"), !approval.escalatedAt && escalates > now ? ` · escalates in ${left(approval.escalatesAt, now)}` : "");
}

function unreadable(approval) {
  const node = h("div", { class: "stack" },
    h("div", { class: "callout", "data-tone": "warn" }, "The console does not support this request. You can read it as JSON and reject it; ", h("code", null, "switchboard approvals"), " offers more options."),
    json(approval, "Whole request", WHOLE));
  if (!isWaiting(approval)) return { node };
  const own = panel(approval);
  const [verb, body] = approval.kind === "elicitation" ? ["respond", { action: "decline" }] : ["reject", {}];
  add(node, arrange(own, h("div", { class: "decide-row" }, own.button(approval.kind === "elicitation" ? "Decline" : "Reject", () => own.decide(verb, body), { class: "danger" }))));
  return { node, own };
}
