// The scope filter: namespace, user, agent and run, from the existing scopes.

import { fill, h, newId } from "./dom.js";
import { PARTS } from "./memory-tools.js";
import { number } from "./words.js";

// The selection is kept between pages.
const chosen = { namespace: "", user_id: "", agent_id: "", run_id: "" };
// The most scopes that the memory lists. With more, the filter is a text field.
const MOST_TOLD = 500;

export function chosenScope() {
  return { ...chosen };
}

export function isScoped() {
  return Object.values(chosen).some(Boolean);
}

// scopeFilter(scopes, changed) → the controls, or null if no memory has a scope
export function scopeFilter(scopes, changed) {
  const used = PARTS.filter(([name]) => chosen[name] || scopes.some((scope) => scope[name] !== undefined));
  if (!used.length) return null;
  const isCut = scopes.length >= MOST_TOLD;
  const controls = new Map(used.map(([name, words]) => [name, isCut ? typed(name, words, scopes, change) : h("select", { "aria-label": words, on: { change: (event) => change(name, event.target.value) } })]));

  function change(name, value) {
    chosen[name] = value.trim();
    draw();
    changed();
  }

  function draw() {
    if (isCut) return;
    for (const [name, words] of used) {
      const counts = values(scopes, name);
      // The selected value stays in the list, even if no memory has it.
      if (chosen[name] && !counts.has(chosen[name])) counts.set(chosen[name], 0);
      const options = [...counts].sort(([a], [b]) => a.localeCompare(b));
      const control = controls.get(name);
      fill(control, h("option", { value: "" }, `${words}: any`), options.map(([value, count]) => h("option", { value }, `${value} (${number(count)})`)));
      control.value = chosen[name];
    }
  }

  draw();
  return h("div", { class: "filters scope", role: "group", "aria-label": "Scope" }, [...controls.values()]);
}

// The values of one part in the scopes that match the other selected parts, each with its number of memories.
function values(scopes, name) {
  const counts = new Map();
  for (const scope of scopes) {
    const fits = PARTS.every(([other]) => other === name || !chosen[other] || scope[other] === chosen[other]);
    if (fits && scope[name] !== undefined) counts.set(scope[name], (counts.get(scope[name]) ?? 0) + scope.memories);
  }
  return counts;
}

function typed(name, words, scopes, change) {
  const [input, options] = nameInput(name, scopes, { type: "search", "aria-label": words, placeholder: `${words}: any`, value: chosen[name] });
  input.addEventListener("change", () => change(name, input.value));
  return h("span", { class: "typed" }, input, options);
}

// A field for a name, which suggests the existing ones.
export function nameInput(name, scopes, props) {
  const id = newId("names");
  const names = [...new Set(scopes.map((scope) => scope[name]).filter((value) => value !== undefined))];
  return [h("input", { type: "text", autocomplete: "off", spellcheck: "false", maxlength: 512, list: id, ...props }), h("datalist", { id }, names.map((value) => h("option", { value })))];
}
