// Deciding: sending a decision once, telling who was faster, and remembering it for the next time.

import { get, path, post, withRaw } from "./api.js";
import { add, button, fill, h, newId, select } from "./dom.js";
import { word } from "./marks.js";
import { announce } from "./notices.js";
import { takeApproval } from "./store.js";
import { moment } from "./words.js";

// Long enough that a click meant for what was there before does not decide.
const GUARD_MS = 500;
const DONE = { approve: "Approved.", reject: "Rejected.", accept: "Your answer was sent.", decline: "Declined.", cancel: "Cancelled.", respond: "Your answer was sent." };

// A button that cannot be pressed in its first moments: whoever presses then meant something else.
export function guarded(label, act, props) {
  const node = button(label, act, { ...props, disabled: true });
  setTimeout(() => {
    node.disabled = false;
  }, GUARD_MS);
  return node;
}

// The buttons of one approval and what belongs to them. It decides at most once.
export function panel(approval) {
  const message = h("div", { "aria-live": "assertive" });
  const controls = h("fieldset", { class: "decide", "aria-label": "Your decision" });
  let busy = false;
  let ready = false;
  setTimeout(() => {
    ready = true;
  }, GUARD_MS);

  return {
    controls,
    message,
    // Whether a decision of our own is on its way or done.
    sent: false,
    // What is said of somebody who was faster.
    conflict: null,
    button: guarded,
    fail(text) {
      fill(message, h("div", { class: "callout", "data-tone": "bad" }, text));
    },
    lock() {
      controls.disabled = true;
    },
    // Edits may be given as JSON text. → problems of the content, if it was refused for them
    async decide(verb, body = {}, rawEdits = null) {
      if (busy || !ready || controls.disabled) return [];
      busy = true;
      this.sent = true;
      controls.disabled = true;
      fill(message);
      let problems = [];
      try {
        const whole = { ...body, by: "console" };
        const said = rawEdits ? withRaw(whole, "edits", rawEdits) : whole;
        takeApproval(await post(path("approvals", approval.id, verb), said), "approval.decided");
        announce(DONE[body.action ?? verb] ?? "Done.");
      } catch (error) {
        this.sent = false;
        controls.disabled = false;
        if (error.status === 409) {
          controls.disabled = true;
          this.conflict = conflict(error);
          fill(message, this.conflict);
          get(path("approvals", approval.id)).then((now) => takeApproval(now), () => {});
        } else if (error.status === 422 && error.body.problems?.length) {
          problems = error.body.problems;
          this.fail(`It does not fit: ${problems.map((one) => `${one.path || "the answer"}: ${one.message}`).join("; ")}`);
        } else {
          this.fail(error.message);
        }
      }
      busy = false;
      return problems;
    },
  };
}

function conflict(error) {
  const { decision, was } = error.body;
  return h("div", { class: "callout", "data-tone": "warn" }, h("strong", null, "Somebody was faster. "),
    decision && was ? `It was already ${word(was)} by ${decision.by ?? "somebody"} at ${moment(decision.at)}. ` : `${error.message[0].toUpperCase()}${error.message.slice(1)}. `,
    "Your decision changes nothing.");
}

const EXPIRY = [["", "until I forget it"], ["3600", "for an hour"], ["86400", "for a day"], ["2592000", "for 30 days"]];

// What is to be remembered of a decision; nothing, unless somebody says so.
export function rememberFields(kind) {
  const scope = select([["", "Just this once"], ["session", "For this session"], ["project", "For this project"], ["always", "Always"]], "", { id: newId("remember") });
  const args = kind === "tool_call" ? select([["exact", "these exact arguments"], ["any", "any arguments"]], "exact", { "aria-label": "For which arguments" }) : null;
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
    if (event.key === "Enter" && !event.isComposing) say();
  });
  return { node: h("div", { class: "reject" }, reason, own.button("Reject", say, { class: "danger" })), focus: () => reason.focus() };
}


// Puts the parts of a decision below each other.
export function arrange(own, ...rows) {
  add(own.controls, rows);
  return h("div", { class: "decide-box" }, own.controls, own.message);
}
