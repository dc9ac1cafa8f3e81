// Sends a decision once, reports an earlier one, and offers to remember it.

import { get, path, post, withRaw } from "./api.js";
import { add, button, fill, h, newId, prose, select } from "./dom.js";
import { word } from "./marks.js";
import { announce } from "./notices.js";
import { isOpen, takeApproval } from "./store.js";
import { moment } from "./words.js";

// Delays before a button is enabled, so that a click or a key that was meant for something else does not decide: after
// the button appears, and longer after the page comes to the front, since another page may have opened it.
const GUARD_MS = 500;
const ARRIVAL_MS = 1000;
const DONE = { __proto__: null, approve: "Approved.", reject: "Rejected.", accept: "Your answer was sent.", decline: "Declined.", cancel: "Cancelled.", respond: "Your answer was sent." };

let arrived = performance.now();
const states = new WeakMap();

function arrive() {
  arrived = performance.now();
  for (const node of document.querySelectorAll("button.guarded")) rest(node);
}
addEventListener("focus", arrive);
addEventListener("pageshow", arrive);
document.addEventListener("visibilitychange", arrive);

// A user who types text for another window presses letters without a meaning here, and spaces soon after letters.
// Neither may press a button that one of the letters has focused.
const STRAY_MS = 1500;
const SPACE_MS = 400;
const MEANT = "aerjkg/?";
let [pressed, strayed, lastKey] = [-Infinity, -Infinity, ""];

document.addEventListener("keydown", (event) => {
  lastKey = event.key;
  if (event.key.length !== 1 || event.key === " " || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target instanceof Element && event.target.matches("input, textarea, select")) return;
  pressed = performance.now();
  if (!MEANT.includes(event.key)) strayed = pressed;
}, true);

function isStray(event) {
  const now = performance.now();
  // A click from the keyboard has the count 0.
  return event.detail === 0 && (now - strayed < STRAY_MS || (lastKey === " " && now - pressed < SPACE_MS));
}

function readyAt(since) {
  return Math.max(since + GUARD_MS, arrived + ARRIVAL_MS);
}

// Disables a button until its delay has passed; a button that had the focus gets it back.
function rest(node) {
  const state = states.get(node);
  state.focused ||= node === document.activeElement;
  state.resting = true;
  settle(node);
  clearTimeout(state.timer);
  state.timer = setTimeout(() => {
    state.resting = false;
    settle(node);
    if (state.focused && document.activeElement === document.body) node.focus();
    state.focused = false;
  }, readyAt(state.since) - performance.now());
}

function settle(node) {
  const { resting, held } = states.get(node);
  node.disabled = resting || held;
}

// A button that is disabled at first: an early click was meant for something else.
export function guarded(label, act, props) {
  const node = button(label, (event) => !isStray(event) && act(), { ...props, class: `${props?.class ?? ""} guarded` });
  states.set(node, { since: performance.now(), resting: false, held: false });
  rest(node);
  return node;
}

// Disables a button while parts are truncated (`cut`) or not loaded yet (`unread`). Returns the text beside it, and the
// function that checks again.
export function readFirst(node, parts) {
  const words = h("p", { class: "read-first", role: "status", hidden: true });
  const look = () => {
    const cut = parts.querySelectorAll(".cut").length;
    const unread = parts.querySelectorAll(".unread").length;
    const why = unread ? "You can approve this once it is loaded completely." : cut ? `${cut === 1 ? "One part" : `${cut} parts`} ${cut === 1 ? "is" : "are"} truncated: show everything before you approve. ` : "";
    const next = cut && !unread ? button(cut === 1 ? "Show it" : "Show the next part", () => parts.querySelector(".cut button")?.click(), { class: "small" }) : null;
    if (words.dataset.key !== why) fill(words, why, next);
    words.dataset.key = why;
    words.hidden = !why;
    states.get(node).held = Boolean(why);
    settle(node);
  };
  parts.addEventListener("uncut", look);
  look();
  return { node: words, look };
}

// The controls and messages of one request. It sends at most one decision.
export function panel(approval) {
  const message = h("div", { "aria-live": "assertive" });
  const controls = h("fieldset", { class: "decide", "aria-label": "Your decision" });
  const since = performance.now();
  let busy = false;

  return {
    controls,
    message,
    // The status on the page: a decision applies to this status only.
    seen: approval.status,
    // True once a decision of this page is in flight or done.
    sent: false,
    // The message about an earlier decision.
    conflict: null,
    button: guarded,
    fail(text) {
      fill(message, h("div", { class: "callout", "data-tone": "bad" }, prose(text)));
    },
    lock() {
      controls.disabled = true;
    },
    // The request has a new status, which the page shows: it can be decided again.
    follow(status) {
      this.seen = status;
      if (this.conflict) controls.disabled = false;
      this.conflict = null;
    },
    // Sends a decision. One member of the body may be JSON text, [name, text]. → problems of the content, if the
    // gateway rejected it
    async decide(verb, body = {}, raw = null) {
      if (busy || controls.disabled) return [];
      if (performance.now() < readyAt(since)) {
        fill(message, h("div", { class: "callout" }, "This request has just appeared, or you have just returned to this page. Read it, then decide again."));
        return [];
      }
      busy = true;
      this.sent = true;
      const had = controls.contains(document.activeElement) ? document.activeElement : null;
      controls.disabled = true;
      fill(message);
      let problems = [];
      try {
        const whole = { ...body, seen: this.seen };
        takeApproval(await post(path("approvals", approval.id, verb), raw ? withRaw(whole, ...raw) : whole), "approval.decided");
        announce(DONE[body.action ?? verb] ?? "Done.");
      } catch (error) {
        this.sent = false;
        controls.disabled = false;
        if (error.status === 409) {
          controls.disabled = true;
          this.conflict = conflict(error);
          fill(message, this.conflict);
          get(path("approvals", approval.id)).then((now) => takeApproval(now, "conflict"), () => {});
        } else if (error.status === 422 && error.body.problems?.length) {
          problems = error.body.problems;
          this.fail(`The values are invalid: ${problems.map((one) => `${one.path || "content"}: ${one.message}`).join("; ")}`);
        } else {
          this.fail(error.message);
        }
        if (!controls.disabled && document.activeElement === document.body) had?.focus();
      }
      busy = false;
      return problems;
    },
  };
}

function conflict(error) {
  const { decision, was } = error.body;
  const said = (strong, rest) => h("div", { class: "callout", "data-tone": "warn" }, h("strong", null, strong), rest, "Your decision had no effect.");
  if (typeof was === "string" && isOpen({ status: was })) return said("The request has changed. ", `Its status is now ${word(was)}. `);
  if (!decision || typeof was !== "string") return said("The request has changed: ", `${error.message}. `);
  // The earlier decision may be the user's own, from another tab or with a lost response.
  return said(decision.door === "console" ? "This request was already decided in a console, perhaps by you. " : "Another approver decided first. ", `It was already ${word(was)} by ${decision.by ?? "an approver"} at ${moment(decision.at)}. `);
}

const EXPIRY = [["", "until I forget it"], ["3600", "for an hour"], ["86400", "for a day"], ["2592000", "for 30 days"]];

// The controls for remembering a decision; by default it applies once.
export function rememberFields(kind) {
  const scope = select([["", "Just this once"], ["session", "For this session"], ["project", "For this project"], ["always", "Always"]], "", { id: newId("remember") });
  const args = kind === "tool_call" || kind === "prompt" ? select([["exact", "these exact arguments"], ["any", "any arguments"]], "exact", { "aria-label": "Arguments to remember" }) : null;
  const expiry = select(EXPIRY, "", { "aria-label": "Duration" });
  const rest = h("span", { class: "remember-rest", hidden: true }, args ? [" with ", args] : null, " ", expiry);
  scope.addEventListener("change", () => {
    rest.hidden = scope.value === "";
  });
  return {
    node: h("div", { class: "remember" }, h("label", { for: scope.id }, "Remember"), scope, rest),
    read() {
      if (!scope.value) return {};
      const remember = { scope: scope.value, arguments: args?.value ?? "any" };
      if (expiry.value) remember.expiresInSeconds = Number(expiry.value);
      return { remember };
    },
  };
}

// The reason, and the button that rejects with it; Enter in the reason rejects.
export function rejection(own, act) {
  const reason = h("input", { type: "text", placeholder: "Reason (optional)", "aria-label": "Reason for the rejection", maxlength: "1000", autocomplete: "off" });
  const say = () => act(reason.value.trim() ? { reason: reason.value.trim() } : {});
  reason.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing || event.repeat) return;
    // With Ctrl, too: a user who writes a reason for a rejection does not mean to approve.
    event.stopPropagation();
    event.preventDefault();
    say();
  });
  return { node: h("div", { class: "reject" }, reason, own.button("Reject", say, { class: "danger" })), focus: () => reason.focus() };
}

// The keys of a request: one goes to the button, another presses it from within a field.
export function keysTo(approve, act, parts) {
  return {
    a: () => (approve.disabled ? parts?.querySelector(".cut button") ?? approve : approve).focus(),
    send: () => (approve.matches(":disabled") ? undefined : act()),
  };
}

// Stacks the parts of a decision.
export function arrange(own, ...rows) {
  add(own.controls, rows);
  return h("div", { class: "decide-box" }, own.controls, own.message);
}
