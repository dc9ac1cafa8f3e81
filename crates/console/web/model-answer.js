// A sampling request: the conversation for the model, which the user can edit, approve or reject; the review of the
// model's answer before it is delivered; or the user's own answer.

import { get, path } from "./api.js";
import { arrange, keysTo, panel, readFirst, rejection, rememberFields } from "./decide.js";
import { diffView } from "./diff.js";
import { field, fill, h, newId, plain, say } from "./dom.js";
import { lacksModel } from "./marks.js";
import { usageWords } from "./outcome.js";
import { block, blocks, json, list, longText, WHOLE } from "./payload.js";
import { isWaiting } from "./store.js";

export function modelAnswer(approval) {
  const request = approval.request ?? {};
  if (approval.status === "reviewing") return review(approval, request);
  if (!isWaiting(approval)) return { node: h("div", { class: "stack" }, conversation(request)) };
  return ask(approval, request);
}

const WHO = new Map([["user", "User"], ["assistant", "Model"]]);

function who(one) {
  return WHO.get(one?.role) ?? (plain(one?.role) || "?");
}

// A part that a decision depends on, shown in full.
function whole(part) {
  return block(part, WHOLE);
}

// The conversation, read-only; `none` if no model is configured.
function conversation(request, none = false) {
  const preferences = request.modelPreferences ?? {};
  const wishes = list(preferences.hints).map((hint) => plain(hint?.name)).filter(Boolean).join(", ");
  const settings = [
    // The gateway selects the model: the approver's choice, or a configured one that matches.
    ["Model", none ? null : plain(request.model) || `as configured${wishes ? `; the server prefers ${wishes}` : ""}`],
    ["Priorities", ["intelligence", "speed", "cost"].filter((what) => preferences[`${what}Priority`] > 0).map((what) => `${what} ${preferences[`${what}Priority`]}`).join(", ") || null],
    ["Max. tokens", request.maxTokens], ["Temperature", request.temperature],
    ["Stop sequences", list(request.stopSequences).map((one) => JSON.stringify(one)).join(", ") || null],
    ["Requested context", request.includeContext && request.includeContext !== "none" ? request.includeContext : null],
  ].filter(([, value]) => value !== undefined && value !== null);
  const title = none ? "Request for a model" : "Request to the model";
  return h("section", { class: "card", "aria-label": title },
    h("h3", null, title),
    settings.length ? h("dl", { class: "facts inline" }, settings.map(([title, value]) => h("div", null, h("dt", null, title), h("dd", null, plain(value))))) : null,
    h("ol", { class: "talk" },
      request.systemPrompt ? message("system", "System prompt", longText(plain(request.systemPrompt), { class: "text" }, WHOLE)) : null,
      list(request.messages).map((one) => message(one?.role, who(one), blocks(one?.content).map(whole)))),
    list(request.tools).length ? h("details", { open: true }, h("summary", null, `Tools that the model may use (${request.tools.length})`), json(request.tools, "Tools", WHOLE)) : null);
}

function message(role, who, ...content) {
  return h("li", { class: "talk-turn", "data-kind": role === "user" || role === "assistant" ? role : "system" }, h("span", { class: "talk-who" }, who), h("div", { class: "talk-text" }, content));
}

// The conversation as plain text, for comparison.
export function asText(request) {
  const lines = [`model: ${plain(request.model) || "(as configured)"}`, `max. tokens: ${plain(request.maxTokens) || "–"}`, `temperature: ${plain(request.temperature) || "–"}`, `stop sequences: ${list(request.stopSequences).map((one) => JSON.stringify(one)).join(", ") || "–"}`, "", "system prompt", plain(request.systemPrompt) || "(none)"];
  for (const one of list(request.messages)) {
    lines.push("", who(one), ...blocks(one?.content).map((part) => (part?.type === "text" ? plain(part.text) : `(${plain(part?.type) || "content"})`)));
  }
  return lines.join("\n");
}

function ask(approval, request) {
  const own = panel(approval);
  const reading = conversation(request, lacksModel(approval));
  const shown = h("div", null, reading);
  const changes = h("div");
  const remember = rememberFields("sampling");
  const written = ownAnswer(own);
  let editor = null;

  const edits = () => editor?.edits() ?? {};
  const changed = () => Object.keys(edits()).length > 0;
  function drawChanges() {
    const now = edits();
    const some = Object.keys(now).length > 0;
    say(approve, some ? "Approve with changes" : "Approve");
    fill(changes);
    fill(changes, some ? [h("h4", null, "Your changes"), diffView(asText(request), asText({ ...request, ...now }), "Your changes to the request")] : null);
  }

  function edit() {
    editor = editor ? null : editRequest(request, drawChanges);
    say(editButton, editor ? "Cancel editing" : "Edit");
    fill(shown, editor?.node ?? reading);
    first.look();
    drawChanges();
    editor?.node.querySelector("textarea")?.focus();
  }

  async function accept() {
    const problem = editor?.problem();
    if (problem) own.fail(problem);
    else await own.decide("approve", { ...(changed() ? { edits: edits() } : {}), ...remember.read() });
  }

  const approve = own.button("Approve", accept, { class: "primary" });
  const first = readFirst(approve, shown);
  const editButton = own.button("Edit", edit);
  const reject = rejection(own, (reason) => own.decide("reject", { ...reason, ...remember.read() }));
  const node = h("div", { class: "stack" }, shown,
    arrange(own, changes, remember.node, first.node, h("div", { class: "decide-row" }, approve, editButton, written.toggle, reject.node), written.node));
  const toModel = [remember.node, approve, editButton, written.toggle];
  const show = (is) => toModel.forEach((part) => { part.hidden = !is; });
  if (lacksModel(approval)) {
    // Without a model, the request cannot be approved, unless one was configured after it arrived.
    show(false);
    written.open();
    get(path("config")).then(({ config }) => config?.sampling?.provider && show(true), () => {});
  }
  const keys = keysTo(approve, accept, shown);
  return {
    node,
    own,
    dirty: () => changed() || written.text() !== "",
    keys: {
      a: () => (approve.hidden ? written.focus() : keys.a()),
      send: () => (approve.hidden ? undefined : keys.send()),
      e: () => (approve.hidden ? undefined : editor ? editor.node.querySelector("textarea")?.focus() : edit()),
      r: reject.focus,
    },
  };
}

// An answer of the user in place of the model's.
function ownAnswer(own) {
  const text = h("textarea", { rows: 6, id: newId("own-answer") });
  const give = () => (text.value.trim() ? own.decide("respond", { text: text.value }) : own.fail("Enter your answer first."));
  const send = own.button("Send answer", give, { class: "primary" });
  const node = h("div", { class: "own-answer", hidden: true }, field("Your answer", text, "The server receives it in place of a model's answer. No model is called."), send);
  // Here, the keys that approve elsewhere send the answer.
  text.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey) || event.isComposing) return;
    event.stopPropagation();
    event.preventDefault();
    if (!event.repeat && !send.matches(":disabled")) give();
  });
  const open = (is) => {
    node.hidden = !is;
    toggle.setAttribute("aria-expanded", String(is));
  };
  const toggle = own.button("Answer yourself", () => {
    open(node.hidden);
    if (!node.hidden) text.focus();
  }, { "aria-expanded": "false" });
  return { node, toggle, open: () => open(true), focus: () => text.focus(), text: () => text.value };
}

// Fields for the parts of the request that can be edited.
function editRequest(request, changed) {
  const system = h("textarea", { rows: 3, value: plain(request.systemPrompt) });
  const systemBefore = system.value;
  const model = h("input", { type: "text", autocomplete: "off", spellcheck: "false", placeholder: "as configured", value: "" });
  const tokens = h("input", { type: "text", inputmode: "numeric", autocomplete: "off", value: plain(request.maxTokens) });
  const temperature = h("input", { type: "text", inputmode: "decimal", autocomplete: "off", placeholder: "default of the model", value: plain(request.temperature) });
  const stops = h("input", { type: "text", autocomplete: "off", spellcheck: "false", placeholder: "none", value: request.stopSequences === undefined ? "" : JSON.stringify(request.stopSequences) });
  const stopsBefore = stops.value;
  const readStops = () => {
    try {
      const said = JSON.parse(stops.value.trim() || "[]");
      return Array.isArray(said) && said.every((one) => typeof one === "string") ? said : null;
    } catch {
      return null;
    }
  };
  const turns = list(request.messages).map((one, at) => {
    const leave = h("input", { type: "checkbox" });
    const parts = blocks(one?.content).map((part) => (part?.type === "text" ? { part, area: h("textarea", { rows: Math.min(14, plain(part.text).split("\n").length + 2), value: plain(part.text), "aria-label": `Message ${at + 1}, ${who(one)}` }) } : { part }));
    const node = message(one?.role, who(one), parts.map(({ part, area }) => area ?? whole(part)), h("label", { class: "check small-text" }, leave, h("span", null, "Omit this message")));
    // A field changes line ends: unchanged text is sent verbatim.
    for (const part of parts) part.start = part.area?.value;
    const touched = ({ area, start }) => area && area.value !== start;
    const read = () => {
      const content = parts.map((entry) => (touched(entry) ? { ...entry.part, text: entry.area.value } : entry.part));
      return { ...one, content: Array.isArray(one?.content) ? content : content[0] };
    };
    return { leave, node, read, changed: () => leave.checked || parts.some(touched) };
  });
  const node = h("section", { class: "card", "aria-label": "Edit the request to the model" }, h("h3", null, "Edit the request to the model"),
    h("div", { class: "field-row" }, field("Model", model), field("Max. tokens", tokens), field("Temperature", temperature), field("Stop sequences (JSON)", stops)),
    field("System prompt", system), h("ol", { class: "talk" }, turns.map((turn) => turn.node)));
  node.addEventListener("input", changed);
  node.addEventListener("change", changed);

  const asNumber = (input) => (input.value.trim() === "" ? undefined : Number(input.value));
  return {
    node,
    problem() {
      const [most, warmth] = [asNumber(tokens), asNumber(temperature)];
      if (most !== undefined && !(Number.isInteger(most) && most > 0)) return "Max. tokens must be a whole number greater than 0.";
      if (warmth !== undefined && !(warmth >= 0 && warmth <= 2)) return "The temperature must be a number from 0 to 2.";
      // Values that the server set can be changed, but not removed.
      if (most === undefined && request.maxTokens !== undefined) return `Max. tokens cannot be empty; the server requested ${plain(request.maxTokens)}.`;
      if (warmth === undefined && request.temperature !== undefined) return `The temperature cannot be empty; the server requested ${plain(request.temperature)}.`;
      if (stops.value !== stopsBefore && !readStops()) return "Stop sequences must be a JSON array of strings, such as [\"END\"].";
      if (turns.length && turns.every((turn) => turn.leave.checked)) return "Keep at least one message.";
      return null;
    },
    // Only the changed parts.
    edits() {
      const edits = {};
      if (turns.some((turn) => turn.changed())) edits.messages = turns.filter((turn) => !turn.leave.checked).map((turn) => turn.read());
      if (system.value !== systemBefore) edits.systemPrompt = system.value;
      if (model.value.trim()) edits.model = model.value.trim();
      if (asNumber(tokens) !== request.maxTokens && asNumber(tokens) !== undefined) edits.maxTokens = asNumber(tokens);
      if (asNumber(temperature) !== request.temperature && asNumber(temperature) !== undefined) edits.temperature = asNumber(temperature);
      if (stops.value !== stopsBefore && readStops()) edits.stopSequences = readStops();
      return edits;
    },
  };
}

export function textOf(result) {
  return blocks(result?.content).map((part) => (part?.type === "text" ? plain(part.text) : "")).filter(Boolean).join("\n");
}

// The review of the model's answer before it is delivered.
function review(approval, request) {
  const own = panel(approval);
  const before = textOf(approval.draft);
  const area = h("textarea", { rows: Math.min(20, before.split("\n").length + 3), value: before, "aria-label": "The model's answer" });
  const start = area.value;
  const reading = blocks(approval.draft?.content).map(whole);
  const shown = h("div", { class: "talk-text" }, reading);
  const changes = h("div");
  let editing = false;
  const changed = () => editing && area.value !== start;
  function drawChanges() {
    say(approve, changed() ? "Approve with changes" : "Approve");
    fill(changes);
    fill(changes, changed() ? [h("h4", null, "Your changes"), diffView(before, area.value, "Your changes to the answer")] : null);
  }
  function edit() {
    editing = !editing;
    if (!editing) area.value = before;
    say(editButton, editing ? "Cancel editing" : "Edit");
    fill(shown, editing ? area : reading);
    first.look();
    drawChanges();
    if (editing) area.focus();
  }
  area.addEventListener("input", drawChanges);
  const accept = () => own.decide("approve", changed() ? { edits: { text: area.value } } : {});
  const approve = own.button("Approve", accept, { class: "primary" });
  const first = readFirst(approve, shown);
  const editButton = own.button("Edit", edit);
  const reject = rejection(own, (reason) => own.decide("reject", reason));
  const node = h("div", { class: "stack" },
    h("section", { class: "card answer" }, h("h3", null, "The model's answer, before it is delivered"), approval.usage ? h("p", { class: "muted" }, usageWords(approval.usage)) : approval.draft?.model ? h("p", { class: "muted" }, plain(approval.draft.model)) : null, shown),
    arrange(own, changes, first.node, h("div", { class: "decide-row" }, approve, editButton, reject.node)),
    h("details", null, h("summary", null, "Request to the model"), conversation({ ...request, ...approval.decision?.edits })));
  return { node, own, dirty: changed, keys: { ...keysTo(approve, accept, shown), e: () => (editing ? area.focus() : edit()), r: reject.focus } };
}
