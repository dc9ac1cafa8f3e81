// One call and its timeline, as far as it was recorded.

import { get, path, query } from "./api.js";
import { empty, fill, h, heading, problem, prose, say } from "./dom.js";
import { KIND_WORDS, mark } from "./marks.js";
import { bytes, clock, lasting, latency, whole } from "./words.js";

// Calls and approvals are recorded with the same clock, but not at the same instant.
const SLACK_MS = 100;
// A call with a shorter wait had no approval.
const LEAST_WAIT_MS = 1;

export function openCall(id) {
  const body = h("div", { class: "stack" });
  const head = h("div");
  const node = h("div", { class: "page" }, h("p", { class: "crumb" }, h("a", { href: "#activity" }, "Activity")), head, body);
  fill(head, heading(`Call ${id}`));

  async function read() {
    const place = Number(id);
    if (!Number.isSafeInteger(place) || place < 1) {
      fill(body, empty("Call not found."));
      return;
    }
    try {
      const said = await get(query(path("activity"), { since: place - 1, before: place + 1, limit: 1 }));
      const call = said.activity[0];
      if (!call) {
        fill(body, empty("Call not found.", "The gateway deletes the oldest calls."));
        return;
      }
      draw(call, []);
      if (!(call.waitedMs >= LEAST_WAIT_MS)) return;
      const approvals = await get(query(path("approvals"), { server: call.server, limit: 200 })).then((answer) => answer.approvals, () => null);
      draw(call, approvals === null ? null : approvals.filter((approval) => belongs(approval, call)));
    } catch (error) {
      fill(body, problem(error));
    }
  }

  function draw(call, approvals) {
    say(head.querySelector("h1"), `${call.server}:${call.name || call.method}`);
    fill(body, facts(call), timeline(call, approvals));
  }

  read();
  return { title: () => `Call ${id}`, node, back: () => "#activity" };
}

// Tests if a request may belong to this call: same tool and client, created and decided while the call was in flight.
function belongs(approval, call) {
  const began = Date.parse(call.at) - SLACK_MS;
  const ended = began + call.durationMs + 2 * SLACK_MS;
  const within = (at) => at === undefined || (Date.parse(at) >= began && Date.parse(at) <= ended);
  return approval.kind !== "trust" && (!approval.tool || approval.tool === call.name) && (!approval.client || approval.client === call.client)
    && within(approval.createdAt) && within(approval.decision?.at);
}

function facts(call) {
  const rows = [["Outcome", mark(call.outcome)], ["Method", h("code", null, call.method)], ["Client", call.client], ["Took", lasting(latency(call))], ["Waited for an approver", call.waitedMs ? lasting(call.waitedMs) : null],
    ["Request", bytes(call.requestBytes)], ["Response", bytes(call.responseBytes)], ["Error code", call.code === undefined ? null : String(call.code)]];
  return h("div", { class: "card" },
    h("dl", { class: "facts" }, rows.filter(([, value]) => value).map(([title, value]) => h("div", null, h("dt", null, title), h("dd", null, value)))),
    call.error ? h("div", { class: "callout call-error", "data-tone": "bad" }, h("strong", null, call.outcome === "tool_error" ? "The tool says: " : "Error: "), h("span", { class: "call-error-text" }, prose(call.error))) : null,
    h("p", null, h("a", { href: `#tools/${encodeURIComponent(call.server)}/${encodeURIComponent(call.name)}` }, "Show the tool"), " · ", h("a", { href: `#servers/${encodeURIComponent(call.server)}` }, "Show the server")));
}

function timeline(call, approvals) {
  const began = Date.parse(call.at);
  const moments = [{ at: began, what: "Called", text: `by ${call.client}` }];
  for (const approval of approvals ?? []) {
    const link = h("a", { href: `#approvals/${encodeURIComponent(approval.id)}` }, KIND_WORDS[approval.kind] ?? approval.kind);
    moments.push({ at: Date.parse(approval.createdAt), what: "Approval requested", text: link });
    if (approval.escalatedAt) moments.push({ at: Date.parse(approval.escalatedAt), what: "Escalated", text: "no answer yet" });
    if (approval.decision?.at) moments.push({ at: Date.parse(approval.decision.at), what: decided(approval), text: `by ${approval.decision.by ?? "an approver"}` });
    if (approval.deliveredAt) moments.push({ at: Date.parse(approval.deliveredAt), what: "Delivered to the caller", text: null });
  }
  moments.sort((a, b) => a.at - b.at);
  moments.push({ at: began + call.durationMs, what: call.outcome === "ok" ? "Answered" : "Ended", text: mark(call.outcome) });
  return h("section", { class: "card", "aria-labelledby": "life-title" }, h("h2", { id: "life-title" }, "Timeline"),
    h("ol", { class: "timeline" }, moments.map((moment) => h("li", null,
      h("time", { datetime: new Date(moment.at).toISOString(), title: whole(moment.at) }, clock(moment.at)),
      h("span", { class: "timeline-what" }, h("strong", null, moment.what), " ", moment.text),
      h("span", { class: "muted" }, moment.at - began < 1 ? "" : `+${lasting(moment.at - began)}`)))),
    h("p", { class: "muted small-text" }, note(call, approvals)));
}

function decided(approval) {
  return { __proto__: null, approve: "Approved", reject: "Rejected", accept: "Accepted", decline: "Declined", cancel: "Cancelled", respond: "Answered" }[approval.decision.action] ?? "Decided";
}

function note(call, approvals) {
  if (approvals === null) return "Cannot load the approvals, so only the call itself is shown.";
  if (approvals.length) return "Calls and approvals are recorded separately, and matched by server, tool, client and time.";
  return call.waitedMs >= LEAST_WAIT_MS ? "The approval that this call waited for is no longer recorded." : "This call did not wait for an approval.";
}
