// The message above the pending requests, or in their place: they are loading, cannot be loaded, or there are none.

import { button, empty, h, problem } from "./dom.js";
import { reload, state } from "./store.js";

export function queueState(count) {
  if (state.queue === "failed") {
    return h("div", { class: "stack" }, problem(new Error(`${count ? "The list of pending requests may be incomplete" : "Cannot load the pending requests"}: ${(state.queueProblem?.message ?? "unknown error").replace(/[.]$/, "")}. The console tries again every 5 s.`)),
      h("div", { class: "buttons" }, button("Try again now", reload, { class: "small" })));
  }
  if (state.queue === "part") return h("p", { class: "callout", "data-tone": "warn" }, "More than 10,000 requests are pending; only the newest are shown.");
  if (count) return null;
  if (state.queue === "reading") return h("p", { class: "muted" }, "Loading…");
  return empty("No pending requests.", "Questions and sampling requests from servers, held tools, and calls that need approval appear here. The title of the tab shows their number.");
}
