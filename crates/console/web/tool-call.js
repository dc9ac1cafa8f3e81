// A tool call, resource or prompt that needs approval: approve or reject it, or edit the arguments of a call.

import { withRaw } from "./api.js";
import { arrange, keysTo, panel, readFirst, rejection, rememberFields } from "./decide.js";
import { diffView } from "./diff.js";
import { add, fill, h, plain, say } from "./dom.js";
import { indent, longText, pretty, WHOLE } from "./payload.js";
import { isWaiting } from "./store.js";
import { hints } from "./tool.js";

const TITLES = { __proto__: null, tool_call: "Call to ", resource: "Resource ", prompt: "Prompt " };

export function toolCall(approval) {
  const isCall = approval.kind === "tool_call";
  const request = approval.request ?? {};
  // Verbatim, since they are sent verbatim.
  const before = approval.argumentsText ? indent(approval.argumentsText) : pretty(request.arguments ?? {});
  const reading = longText(before, { class: "json", "aria-label": "Arguments" }, WHOLE);
  const shown = h("div", null, approval.kind === "resource" ? null : [h("h4", null, "Arguments"), reading]);
  const node = h("div", { class: "stack" },
    h("section", { class: "card" }, h("h3", null, TITLES[approval.kind], h("code", null, `${approval.server}:${plain(request.name ?? request.uri ?? approval.tool)}`)), isCall ? hints(request.annotations) : null, shown));
  if (!isWaiting(approval)) return { node };

  const own = panel(approval);
  const editor = h("textarea", { class: "code", rows: Math.min(24, before.split("\n").length + 2), spellcheck: "false", "aria-label": "Arguments as JSON", value: before });
  const changes = h("div");
  const remember = rememberFields(approval.kind);
  let editing = false;

  // The edited text, or null if it is not an object.
  function read() {
    try {
      const value = JSON.parse(editor.value);
      if (value && typeof value === "object" && !Array.isArray(value)) return editor.value;
      own.fail("The arguments must be a JSON object.");
    } catch (error) {
      own.fail(`The arguments are not valid JSON: ${error.message}`);
    }
    return null;
  }

  const changed = () => editing && editor.value !== before;
  function drawChanges() {
    say(approve, changed() ? "Approve with changes" : "Approve");
    fill(changes);
    fill(changes, changed() ? [h("h4", null, "Your changes"), diffView(before, indent(editor.value), "Your changes to the arguments")] : null);
  }

  async function accept() {
    const text = changed() ? read() : undefined;
    if (text === null) return;
    await own.decide("approve", remember.read(), text === undefined ? null : ["edits", withRaw({}, "arguments", text)]);
  }

  function edit() {
    editing = !editing;
    say(editButton, editing ? "Cancel editing" : "Edit");
    if (!editing) editor.value = before;
    fill(shown, [h("h4", null, "Arguments"), editing ? editor : reading]);
    first.look();
    drawChanges();
    if (editing) editor.focus();
  }

  editor.addEventListener("input", drawChanges);
  const approve = own.button("Approve", accept, { class: "primary" });
  const first = readFirst(approve, shown);
  const editButton = own.button("Edit", edit);
  const reject = rejection(own, (reason) => own.decide("reject", { ...reason, ...remember.read() }));
  add(node, [arrange(own, changes, remember.node, first.node, h("div", { class: "decide-row" }, approve, isCall ? editButton : null, reject.node))]);
  return {
    node,
    dirty: changed,
    own,
    keys: { ...keysTo(approve, accept, shown), ...(isCall ? { e: () => (editing ? editor.focus() : edit()) } : null), r: reject.focus },
  };
}
