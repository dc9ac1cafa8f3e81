// A held tool: its findings, its text, and the buttons that decide.

import { path, post } from "./api.js";
import { guarded, readFirst } from "./decide.js";
import { changesView, writtenDiff } from "./diff.js";
import { h, plain } from "./dom.js";
import { mark } from "./marks.js";
import { confirm, notice } from "./notices.js";
import { json, list, longText, WHOLE } from "./payload.js";

const WHY = { __proto__: null, changed: "changed since approval", new: "new", hidden: "hidden characters", dangerous: "dangerous text", rejected: "rejected" };
const SEVERITY = { __proto__: null, note: "note", hidden: "hidden", danger: "danger" };
// Tests if the gateway left out a part of a change.
const isCut = (change) => change.field === "and more" || /… \(\d+ more characters\)$/.test(plain(change.after));

// The findings that need a confirmation.
export function suspicions(found) {
  return list(found).filter((finding) => finding.severity !== "note");
}

// Asks for confirmation before suspicious definitions are approved, and lists the findings: [[name, findings], …].
// → true if the user confirms, or if there are no findings
export async function secondLook(title, named) {
  const some = named.filter(([, found]) => found.length);
  if (!some.length) return true;
  return confirm({
    title,
    text: "This is suspicious. A model may follow the definition as instructions:",
    detail: h("div", { class: "second-look" }, some.map(([name, found]) => [some.length > 1 ? h("h3", null, name) : null, findings(found)])),
    yes: "Approve anyway",
    danger: true,
  });
}

export function heldTool(server, tool, level = "h4") {
  const suspicious = suspicions(tool.findings);
  const decide = (verb) => async () => {
    if (verb === "approve" && !(await secondLook(`Approve ${tool.name}?`, [[tool.tool, suspicious]]))) return;
    try {
      await post(path("trust", server, verb), { tool: tool.tool, fingerprint: tool.fingerprint });
      notice(`${tool.name} is ${verb === "approve" ? "approved" : "rejected"}.`, "good");
      document.querySelector("main h1")?.focus();
    } catch (error) {
      notice(error.message, "bad");
    }
  };
  const node = h("article", { class: "held-tool", "aria-label": tool.name },
    h(level, null, h("a", { href: `#tools/${encodeURIComponent(server)}/${encodeURIComponent(tool.tool)}` }, tool.tool), mark(tool.why, WHY[tool.why] ?? tool.why)),
    findings(tool.findings),
    heldText(tool) ?? h("p", { class: "bad-text unread" }, tool.omitted ? "Omitted, because the list is too long: open the tool to read it and decide." : "The definition is too large to be stored; only its fingerprint is known."));
  const approve = guarded(suspicious.length ? "Approve…" : "Approve", decide("approve"), { class: suspicious.length ? null : "primary", "aria-label": `Approve ${tool.name}` });
  const first = readFirst(approve, node);
  node.append(first.node, h("div", { class: "buttons" }, approve, tool.why === "rejected" ? null : guarded("Reject", decide("reject"), { "aria-label": `Reject ${tool.name}` })));
  return node;
}

// The whole text of a tool: its changes since approval, or its definition.
export function heldText(tool) {
  const changes = list(tool.changes);
  const compared = changes.length ? changesView(changes) : tool.diff ? writtenDiff(plain(tool.diff)) : null;
  if (compared && !changes.some(isCut)) return compared;
  if (!tool.definition) return null;
  const says = plain(tool.definition.description);
  return [compared, says ? longText(says, { class: "text" }, WHOLE) : null,
    h("details", { open: true }, h("summary", null, "Definition"), json(tool.definition, "Definition", WHOLE))];
}

export function findings(found) {
  if (!list(found).length) return null;
  return h("ul", { class: "findings" }, found.map((finding) => h("li", null, mark(finding.severity, SEVERITY[finding.severity] ?? "warning"),
    h("span", null, finding.says, " ", finding.field ? h("code", null, finding.field) : null), finding.excerpt ? h("blockquote", null, finding.excerpt) : null)));
}
