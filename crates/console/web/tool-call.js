// A tool call that a rule says to ask about: its arguments, to be read, changed, allowed or refused.

import { arrange, panel, rejection, rememberFields } from "./decide.js";
import { diffView } from "./diff.js";
import { add, fill, h, say } from "./dom.js";
import { json, pretty } from "./payload.js";
import { isWaiting } from "./store.js";
import { hints } from "./tool.js";

export function toolCall(approval) {
  const request = approval.request ?? {};
  const before = pretty(request.arguments ?? {});
  const shown = h("div", null, json(request.arguments ?? {}, "Arguments"));
  const node = h("div", { class: "stack" },
    h("section", { class: "card" }, h("h3", null, "Call of ", h("code", null, `${approval.server}:${request.name ?? approval.tool ?? ""}`)), hints(request.annotations), h("h4", null, "Arguments"), shown));
  if (!isWaiting(approval)) return { node };

  const own = panel(approval);
  const editor = h("textarea", { class: "code", rows: Math.min(24, before.split("\n").length + 2), spellcheck: "false", "aria-label": "Arguments as JSON", value: before });
  const changes = h("div");
  const remember = rememberFields("tool_call");
  let editing = false;

  // What was written, or null if it cannot be read.
  function read() {
    try {
      const value = JSON.parse(editor.value);
      if (value && typeof value === "object" && !Array.isArray(value)) return value;
      own.fail("The arguments have to be an object.");
    } catch (error) {
      own.fail(`The arguments are not JSON: ${error.message}`);
    }
    return null;
  }

  const changed = () => editing && editor.value !== before;
  function drawChanges() {
    say(approve, changed() ? "Approve with changes" : "Approve");
    let after = editor.value;
    try {
      after = pretty(JSON.parse(editor.value));
    } catch {
      // It is compared as it stands until it is JSON again.
    }
    fill(changes, changed() ? [h("h4", null, "Your changes"), diffView(before, after, "Your changes to the arguments")] : null);
  }

  async function accept() {
    const value = changed() ? read() : undefined;
    if (value === null) return;
    await own.decide("approve", { ...(value ? { edits: { arguments: value } } : {}), ...remember.read() });
  }

  function edit() {
    editing = !editing;
    say(editButton, editing ? "Stop editing" : "Edit");
    if (!editing) editor.value = before;
    fill(shown, editing ? editor : json(request.arguments ?? {}, "Arguments"));
    drawChanges();
    if (editing) editor.focus();
  }

  editor.addEventListener("input", drawChanges);
  const approve = own.button("Approve", accept, { class: "primary" });
  const editButton = own.button("Edit", edit);
  const reject = rejection(own, (reason) => own.decide("reject", { ...reason, ...remember.read() }));
  add(node, [changes, arrange(own, remember.node, h("div", { class: "decide-row" }, approve, editButton, reject.node))]);
  return {
    node,
    dirty: changed,
    own,
    keys: { a: accept, e: edit, r: reject.focus },
  };
}
