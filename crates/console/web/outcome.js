// The outcome of a request: the decision, the edits and the answer.

import { diffView } from "./diff.js";
import { add, h, plain } from "./dom.js";
import { mark } from "./marks.js";
import { asText, textOf } from "./model-answer.js";
import { block, blocks, indent, json, pretty } from "./payload.js";
import { isOpen } from "./store.js";
import { atTime, lasting, number } from "./words.js";

export function outcome(approval) {
  if (isOpen(approval)) return null;
  const { decision, error, result, usage } = approval;
  const node = h("section", { class: "card outcome", "aria-label": "Outcome" }, h("h3", null, mark(approval.status)));
  const took = decision?.at ? Date.parse(decision.at) - Date.parse(approval.createdAt) : NaN;
  add(node, [
    decision ? h("p", null, `Decided by ${decision.by ?? "an approver"} at `, atTime(decision.at), Number.isFinite(took) ? `, after ${lasting(took)}.` : ".") : null,
    decision?.reason ? h("p", null, h("strong", null, "Reason: "), decision.reason) : null,
    decision?.remember ? h("p", null, h("strong", null, "Remembered: "), rememberWords(decision.remember)) : null,
    error ? h("p", null, h("strong", null, "Error sent to the caller: "), error) : null,
    edits(approval),
    delivered(approval, result),
    usage ? h("p", { class: "muted" }, usageWords(usage)) : null,
    approval.deliveredAt ? h("p", { class: "muted" }, "Delivered at ", atTime(approval.deliveredAt), ".") : null,
  ]);
  return node;
}

function rememberWords(remember) {
  const scope = { __proto__: null, session: "for the session", project: "for the project", always: "always" }[plain(remember.scope)] ?? plain(remember.scope);
  return `${scope}, with ${remember.arguments === "exact" ? "these exact arguments" : "any arguments"}${remember.expiresInSeconds ? `, for ${lasting(remember.expiresInSeconds * 1000)}` : ""}`;
}

function edits(approval) {
  const changed = approval.decision?.edits;
  if (!changed || !approval.request) return null;
  const [before, after] = approval.kind === "tool_call"
    ? [approval.argumentsText ? indent(approval.argumentsText) : pretty(approval.request.arguments ?? {}), pretty(changed.arguments ?? {})]
    : [asText(approval.request), asText({ ...approval.request, ...changed })];
  if (before === after) return null;
  return [h("h4", null, "Edits"), diffView(before, after)];
}

function delivered(approval, result) {
  if (!result) return null;
  if (approval.kind === "sampling") return [h("h4", null, "Answer"), blocks(result.content).length ? blocks(result.content).map((one) => block(one)) : textOf(result)];
  if (approval.kind === "elicitation") return result.content ? [h("h4", null, "Answer"), json(result.content)] : null;
  return null;
}

export function usageWords(usage) {
  const parts = [usage.model, usage.inputTokens === undefined ? null : `${number(usage.inputTokens)} tokens in`, usage.outputTokens === undefined ? null : `${number(usage.outputTokens)} tokens out`,
    usage.cost === undefined ? null : `cost ${usage.cost}`, usage.seconds === undefined ? null : lasting(usage.seconds * 1000)];
  return parts.filter(Boolean).join(" · ");
}
