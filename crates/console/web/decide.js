// Deciding: sending a decision once, telling who was faster, and remembering it for the next time.

import { get, path, post, withRaw } from "./api.js";
import { add, button, fill, h, newId, prose, select } from "./dom.js";
import { word } from "./marks.js";
import { announce } from "./notices.js";
import { isOpen, takeApproval } from "./store.js";
import { moment } from "./words.js";

// Long enough that a click or a key meant for what was there before does not decide: when something has
// just appeared, and longer when the page itself has, since another page may have brought it up.
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

// Whoever writes prose to a page that is no more in front presses letters that mean nothing here, and
// spaces soon after letters: neither may press a button that one of the letters has gone to.
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
  // A click of the keyboard has no count.
  return event.detail === 0 && (now - strayed < STRAY_MS || (lastKey === " " && now - pressed < SPACE_MS));
}

function readyAt(since) {
  return Math.max(since + GUARD_MS, arrived + ARRIVAL_MS);
}

// Keeps a button from being pressed until it is time; one that had the focus gets it back.
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

// A button that cannot be pressed in its first moments: whoever presses then meant something else.
export function guarded(label, act, props) {
  const node = button(label, (event) => !isStray(event) && act(), { ...props, class: `${props?.class ?? ""} guarded` });
  states.set(node, { since: performance.now(), resting: false, held: false });
  rest(node);
  return node;
}

// Keeps a button from being pressed while something has not been read: parts that are cut, or not there
// yet (`unread`). Answers with the words beside it, and what asks again.
export function readFirst(node, parts) {
  const words = h("p", { class: "read-first", role: "status", hidden: true });
  const look = () => {
    const cut = parts.querySelectorAll(".cut").length;
    const unread = parts.querySelectorAll(".unread").length;
    const why = unread ? "It can be approved once all of it is shown." : cut ? `${cut === 1 ? "A part" : `${cut} parts`} of it ${cut === 1 ? "is" : "are"} cut: show all of it before you approve. ` : "";
    const next = cut && !unread ? button(cut === 1 ? "Show it" : "Show the next", () => parts.querySelector(".cut button")?.click(), { class: "small" }) : null;
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

// The buttons of one approval and what belongs to them. It decides at most once.
export function panel(approval) {
  const message = h("div", { "aria-live": "assertive" });
  const controls = h("fieldset", { class: "decide", "aria-label": "Your decision" });
  const since = performance.now();
  let busy = false;

  return {
    controls,
    message,
    // The status that is on the page: a decision is about that, and about no other.
    seen: approval.status,
    // Whether a decision of our own is on its way or done.
    sent: false,
    // What is said of somebody who was faster.
    conflict: null,
    button: guarded,
    fail(text) {
      fill(message, h("div", { class: "callout", "data-tone": "bad" }, prose(text)));
    },
    lock() {
      controls.disabled = true;
    },
    // The same request has another status now, which is on the page too: it can be decided (again).
    follow(status) {
      this.seen = status;
      if (this.conflict) controls.disabled = false;
      this.conflict = null;
    },
    // A member of the body may be given as JSON text, [name, text]. → problems of the content, if it was
    // refused for them
    async decide(verb, body = {}, raw = null) {
      if (busy || controls.disabled) return [];
      if (performance.now() < readyAt(since)) {
        fill(message, h("div", { class: "callout" }, "This has only just appeared, or you have only just come back: look at it, then decide again."));
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
          this.fail(`It does not fit: ${problems.map((one) => `${one.path || "the answer"}: ${one.message}`).join("; ")}`);
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
  const said = (strong, rest) => h("div", { class: "callout", "data-tone": "warn" }, h("strong", null, strong), rest, "Your decision changed nothing.");
  if (typeof was === "string" && isOpen({ status: was })) return said("It is not what you saw any more. ", `It is now: ${word(was)}. `);
  if (!decision || typeof was !== "string") return said("It is not what you saw any more. ", `${error.message} `);
  // Whoever has two tabs, or whose answer was lost on the way, was faster than oneself.
  return said(decision.door === "console" ? "It was decided in a console already, perhaps by you. " : "Somebody was faster. ", `It was already ${word(was)} by ${decision.by ?? "somebody"} at ${moment(decision.at)}. `);
}

const EXPIRY = [["", "until I forget it"], ["3600", "for an hour"], ["86400", "for a day"], ["2592000", "for 30 days"]];

// What is to be remembered of a decision; nothing, unless somebody says so.
export function rememberFields(kind) {
  const scope = select([["", "Just this once"], ["session", "For this session"], ["project", "For this project"], ["always", "Always"]], "", { id: newId("remember") });
  const args = kind === "tool_call" || kind === "prompt" ? select([["exact", "these exact arguments"], ["any", "any arguments"]], "exact", { "aria-label": "For which arguments" }) : null;
  const expiry = select(EXPIRY, "", { "aria-label": "For how long" });
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

// The reason and the button that rejects with it; Enter in the reason rejects.
export function rejection(own, act) {
  const reason = h("input", { type: "text", placeholder: "Reason (optional)", "aria-label": "Reason for rejecting", maxlength: "1000", autocomplete: "off" });
  const say = () => act(reason.value.trim() ? { reason: reason.value.trim() } : {});
  reason.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.isComposing || event.repeat) return;
    // With Ctrl as well: nobody who writes why not means yes.
    event.stopPropagation();
    event.preventDefault();
    say();
  });
  return { node: h("div", { class: "reject" }, reason, own.button("Reject", say, { class: "danger" })), focus: () => reason.focus() };
}

// What keys do in an approval: one goes to the button, another presses it from wherever one writes.
export function keysTo(approve, act, parts) {
  return {
    a: () => (approve.disabled ? parts?.querySelector(".cut button") ?? approve : approve).focus(),
    send: () => (approve.matches(":disabled") ? undefined : act()),
  };
}

// Puts the parts of a decision below each other.
export function arrange(own, ...rows) {
  add(own.controls, rows);
  return h("div", { class: "decide-box" }, own.controls, own.message);
}
