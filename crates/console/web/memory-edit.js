// The form to edit or add a memory.

import { add, button, field, fill, h, problem, select } from "./dom.js";
import { chosenScope, nameInput } from "./memory-scope.js";
import { ask, brief, fromField, KINDS, memoryHref, PARTS, timeInput, toField } from "./memory-tools.js";
import { list } from "./payload.js";

const START = { content: "", memory_type: "semantic", importance: 0.5 };

// memoryForm(memory, {done, cancel}) edits a memory; without a memory, and with scopes, it adds one.
export function memoryForm(memory, { done, cancel, scopes = [] }) {
  const was = memory ?? START;
  const names = list(was.entities).join("\n");
  const content = h("textarea", { rows: Math.min(16, Math.max(4, was.content.length / 90)), value: was.content, maxlength: 1_000_000 });
  const kind = select(KINDS, was.memory_type);
  const importance = h("input", { type: "text", inputmode: "decimal", autocomplete: "off", value: String(was.importance) });
  const [from, until] = [timeInput(was.valid_from), timeInput(was.valid_until)];
  const entities = h("textarea", { rows: 3, value: names, spellcheck: "false" });
  const chosen = chosenScope();
  const scope = memory ? [] : PARTS.map(([name, words]) => [name, words, nameInput(name, scopes, { value: chosen[name] })]);
  const problems = h("div");
  const send = h("button", { type: "submit", class: "primary" }, memory ? "Save" : "Store");

  // The changed fields; null if one is invalid, which is reported.
  function read() {
    const share = Number(importance.value.trim().replace(",", "."));
    if (!content.value.trim()) return wrong(content, "Enter the text to remember.");
    if (!importance.value.trim() || !(share >= 0 && share <= 1)) return wrong(importance, "The importance must be a number from 0 to 1.");
    for (const input of [from, until]) if (input.validity.badInput) return wrong(input, "Enter a complete date and time.");
    const said = {};
    if (content.value !== was.content) said.content = content.value;
    if (!memory || kind.value !== was.memory_type) said.memory_type = kind.value;
    if (!memory || share !== was.importance) said.importance = share;
    // An unchanged time keeps its precision; null removes it.
    for (const [name, input] of [["valid_from", from], ["valid_until", until]]) {
      if (input.value !== toField(was[name])) said[name] = fromField(input) ?? null;
    }
    if (entities.value.trim() !== names) said.entities = [...new Set(entities.value.split("\n").map((line) => line.trim()).filter(Boolean))];
    for (const [name, , [input]] of scope) said[name] = input.value.trim();
    return said;
  }

  function wrong(control, text) {
    fill(problems, problem(new Error(text)));
    control.focus();
    return null;
  }

  async function submit(event) {
    event.preventDefault();
    fill(problems);
    const said = read();
    if (!said) return;
    if (memory && !Object.keys(said).length) {
      cancel();
      return;
    }
    send.disabled = true;
    try {
      if (memory && (await ask("get_memory", { id: memory.id })).version !== memory.version) throw new Error("The memory has changed since you opened it. Copy your text, and open the memory again.");
      done(await (memory ? ask("update_memory", { id: memory.id, ...said }) : ask("store_memory", said)));
    } catch (error) {
      fill(problems, problem(error));
    }
    send.disabled = false;
  }

  const node = h("form", { class: "form wide-form", on: { submit } },
    field("Content", content, "One fact, event or procedure, in a sentence that can be understood on its own."),
    h("div", { class: "field-row" }, field("Type", kind), field("Importance", importance, "From 0 to 1.")),
    h("div", { class: "field-row moments" }, field("True since", from, "Leave empty if unknown."), field("True until", until, "Leave empty if it is still true.")),
    field("Mentions", entities, "People and things that it is about, one per line. Names found in the content are added."),
    scope.length ? h("fieldset", null, h("legend", null, "Scope"), h("div", { class: "field-row" }, scope.map(([, words, [input, options]]) => [field(words, input), options]))) : null,
    problems, h("div", { class: "buttons" }, send, cancel ? button("Cancel", cancel) : null));
  return { node, focus: () => content.focus() };
}

export function openNew(_, { scopes }) {
  const place = h("div");
  function draw() {
    const form = memoryForm(null, { scopes, done: stored, cancel: () => { location.hash = "#memory"; } });
    fill(place, h("section", { class: "card" }, h("h2", null, "Add a memory"), form.node));
    form.focus();
  }
  function stored({ id, similar }) {
    const title = h("h2", { tabindex: "-1" }, "The memory is stored.");
    fill(place, h("section", { class: "card" }, title, h("p", null, h("a", { class: "row", href: memoryHref(id) }, "Open the memory"))));
    if (list(similar).length) {
      add(place.firstChild, [h("p", null, "Similar memories:"), h("ul", { class: "plain-list" }, similar.map((one) => h("li", null, h("a", { class: "row", href: memoryHref(one.id) }, brief(one.content)), h("span", { class: "muted" }, ` ${Math.round(one.similarity * 100)} % similar`))))]);
    }
    add(place.firstChild, h("div", { class: "buttons" }, button("Add another", draw)));
    title.focus();
  }
  draw();
  return { node: h("div", { class: "stack" }, h("p", { class: "crumb" }, h("a", { href: "#memory" }, "Memories")), place), focus: () => place.querySelector("textarea") };
}
