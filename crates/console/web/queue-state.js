// What is said above the approvals that wait, or in their place: that they are being read, that they could
// not be, or that there are none.

import { button, empty, h, problem } from "./dom.js";
import { reload, state } from "./store.js";

export function queueState(count) {
  if (state.queue === "failed") {
    return h("div", { class: "stack" }, problem(new Error(`${count ? "Perhaps not all approvals are shown" : "Whether approvals are waiting is not known"}: ${(state.queueProblem?.message ?? "they could not be read").replace(/[.]$/, "")}. It is tried again every few seconds.`)),
      h("div", { class: "buttons" }, button("Try again now", reload, { class: "small" })));
  }
  if (state.queue === "part") return h("p", { class: "callout", "data-tone": "warn" }, "There are more than 10,000 approvals that wait: these are the newest.");
  if (count) return null;
  if (state.queue === "reading") return h("p", { class: "muted" }, "Reading…");
  return empty("No approvals are waiting.", "When a server asks a question, wants an answer of a model, or a rule says that a call needs you, it shows up here, and the tab's title counts it.");
}
