// One memory: its content, scope, times and history.

import { diffView } from "./diff.js";
import { button, empty, field, fill, h, problem } from "./dom.js";
import { memoryForm } from "./memory-edit.js";
import { validity } from "./memory-list.js";
import { ask, brief, doing, entityHref, fromField, kindWords, memoryHref, PARTS, timeInput } from "./memory-tools.js";
import { confirm, notice } from "./notices.js";
import { json, list, longText, WHOLE } from "./payload.js";
import { agoTime, atTime, number } from "./words.js";

export function openOne([id = ""]) {
  const body = h("div", { class: "stack" });
  const node = h("div", { class: "stack" }, h("p", { class: "crumb" }, h("a", { href: "#memory" }, "Memories")), body);
  let closed = false;

  async function read() {
    try {
      const memory = await ask("get_memory", { id, history: true });
      if (!closed) draw(memory);
    } catch (error) {
      if (!closed) fill(body, error.body?.kind === "not_found" ? empty("Memory not found.", "It may have been deleted.") : problem(error));
    }
  }

  function draw(memory) {
    const heading = h("h2", { tabindex: "-1" }, "Memory");
    const edit = button("Edit", () => {
      const form = memoryForm(memory, { done: (said) => { notice("Saved.", "good"); if (said) read(); }, cancel: () => draw(memory) });
      fill(body, h("section", { class: "card" }, h("h2", null, "Edit"), form.node));
      form.focus();
    });
    const over = button("No longer valid…", () => doing(over, () => invalidate(memory, read)));
    const forget = button("Delete…", () => doing(forget, () => remove(memory)), { class: "danger" });
    fill(body,
      h("section", { class: "card" }, h("div", { class: "card-head" }, heading, h("div", { class: "buttons" }, edit, over, forget)),
        ended(memory), longText(memory.content, { class: "text memory-text", "aria-label": "Content" }, WHOLE), facts(memory)),
      history(list(memory.history)));
    heading.focus({ preventScroll: true });
  }

  read();
  return { node, close: () => { closed = true; } };
}

function ended(memory) {
  if (!memory.valid_until) return null;
  return h("div", { class: "callout", "data-tone": "warn" }, h("p", null, validity(memory), memory.reason ? [": ", memory.reason] : "."),
    memory.superseded_by ? h("p", null, "Superseded by ", h("a", { href: memoryHref(memory.superseded_by) }, "another memory")) : null);
}

function facts(memory) {
  const names = list(memory.entities);
  const rows = [
    ["Type", kindWords(memory.memory_type)],
    ["Importance", number(memory.importance)],
    ["True", span(memory.valid_from, memory.valid_until, "always")],
    ["Known", span(memory.learned_at, memory.learned_until)],
    ...PARTS.filter(([name]) => memory[name] !== undefined).map(([name, words]) => [words, memory[name]]),
    ["Version", number(memory.version)],
    ["ID", h("code", null, memory.id)],
  ];
  return [
    h("dl", { class: "facts" }, rows.map(([title, value]) => h("div", null, h("dt", null, title), h("dd", null, value)))),
    names.length ? h("p", { class: "names" }, h("span", { class: "muted" }, "Mentions "), names.map((name) => h("a", { class: "name", href: entityHref(name) }, brief(name, 60)))) : null,
    memory.metadata === undefined ? null : h("details", null, h("summary", null, "Metadata"), json(memory.metadata, "Metadata")),
  ];
}

// A period, in words.
function span(from, until, unsaid) {
  if (!from && !until) return unsaid;
  return [from ? ["since ", atTime(from)] : null, until ? [" until ", atTime(until)] : null];
}

const FIELDS = [["memory_type", "Type", kindWords], ["importance", "Importance", number], ["valid_from", "True since", time], ["valid_until", "True until", time], ["reason", "Reason", String], ["superseded_by", "Superseded by", String],
  ["entities", "Mentions", (names) => list(names).join(", ")], ["metadata", "Metadata", (value) => JSON.stringify(value)]];

function time(at) {
  return atTime(at);
}

// All versions, newest first, each with its changes from the previous one.
function history(versions) {
  if (!versions.length) return null;
  const newest = versions.toReversed();
  return h("section", { class: "card", "aria-labelledby": "history-title" }, h("h2", { id: "history-title" }, "History"),
    h("ol", { class: "history" }, newest.map((version, at) => {
      const before = newest[at + 1];
      return h("li", null, h("h3", null, `Version ${version.version}`, at === 0 ? h("span", { class: "muted" }, " (current)") : null),
        h("p", { class: "muted small-text" }, "Known ", span(version.learned_at, version.learned_until), " · true ", span(version.valid_from, version.valid_until, "always"), " · ", agoTime(version.learned_at)),
        before ? changes(before, version) : longText(version.content, { class: "text" }));
    })));
}

function changes(before, after) {
  const differing = FIELDS.filter(([name]) => JSON.stringify(before[name]) !== JSON.stringify(after[name]));
  const shown = (value, words) => (value === undefined ? "none" : words(value));
  return [
    before.content === after.content ? null : diffView(before.content, after.content, "Changes to the content"),
    differing.length ? h("ul", { class: "plain-list" }, differing.map(([name, title, words]) => h("li", null, `${title}: `, h("del", null, shown(before[name], words)), " → ", h("ins", null, shown(after[name], words))))) : null,
    before.content === after.content && !differing.length ? h("p", { class: "muted" }, "No changes.") : null,
  ];
}

async function invalidate(memory, done) {
  const reason = h("input", { type: "text", maxlength: 4096, autocomplete: "off" });
  const until = timeInput(undefined, {});
  const by = h("input", { type: "text", maxlength: 512, autocomplete: "off", spellcheck: "false" });
  const agreed = await confirm({
    title: "Mark as no longer valid?",
    text: "The memory is kept, but hidden by default.",
    detail: h("div", { class: "form" }, field("Reason (optional)", reason), field("True until (optional)", until, "Defaults to the current time."), field("ID of the memory that supersedes it (optional)", by)),
    yes: "Mark as no longer valid",
  });
  if (!agreed) return;
  await ask("invalidate", { id: memory.id, reason: reason.value.trim(), valid_until: fromField(until), superseded_by: by.value.trim() });
  notice("Marked as no longer valid.", "good");
  done();
}

async function remove(memory) {
  const agreed = await confirm({
    title: "Delete this memory?",
    detail: h("blockquote", { class: "quote" }, brief(memory.content)),
    text: "This deletes the memory and its history, and cannot be undone. If it is only outdated, mark it as no longer valid instead.",
    yes: "Delete memory",
    danger: true,
  });
  if (!agreed) return;
  await ask("delete_memory", { id: memory.id });
  notice("Deleted.", "good");
  location.hash = "#memory";
}
