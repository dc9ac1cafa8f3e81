// A form made from a JSON Schema: one control for each property, of the kind that fits. What has no
// control of its own (objects, lists of objects) is written as JSON.

import { add, fill, h, newId, select } from "./dom.js";
import { pretty } from "./payload.js";

const INPUT_TYPES = { email: "email", uri: "url", "uri-reference": "text", date: "date", "date-time": "datetime-local" };
const LOOKS_SECRET = /pass(word|phrase|code)|secret|token|api.?key|credential|\bpin\b|otp|card.?number|cvv/i;

// schemaForm(schema, {a: 1}) → {node, read() → {value, problems}, show(problems)}
export function schemaForm(schema, start = {}) {
  const properties = Object.entries(schema?.properties ?? {});
  const required = new Set(Array.isArray(schema?.required) ? schema.required : []);
  const controls = properties.map(([name, property]) =>
    control(name, settle(property, schema), required.has(name), start?.[name]));
  const node = h("div", { class: "form" }, controls.map((one) => one.node));
  if (!controls.length) add(node, h("p", { class: "muted" }, "It takes no values."));

  return {
    node,
    read() {
      const answers = [];
      const problems = [];
      for (const one of controls) {
        const said = one.read();
        if (said.problem) problems.push({ path: `/${one.name}`, message: said.problem });
        else if (said.value !== undefined) answers.push([one.name, said.value]);
      }
      this.show(problems);
      // Entries, since a server may call a field `__proto__`.
      return { value: Object.fromEntries(answers), problems };
    },
    // Puts each problem at its field; answers with those that belong to none.
    show(problems) {
      const left = new Set(problems);
      let first = null;
      for (const one of controls) {
        const own = problems.filter((problem) => problem.path === `/${one.name}` || problem.path?.startsWith(`/${one.name}/`));
        own.forEach((problem) => left.delete(problem));
        one.fail(own.map((problem) => problem.message).join("; "));
        if (own.length) first ??= one;
      }
      first?.focus();
      return [...left];
    },
  };
}

// Follows a reference within the schema, and takes "this or null" as this.
function settle(property, root) {
  let found = property && typeof property === "object" ? property : {};
  for (let hops = 0; typeof found.$ref === "string" && found.$ref.startsWith("#/") && hops < 8; hops += 1) {
    const target = found.$ref.slice(2).split("/").reduce((at, key) => at?.[key.replaceAll("~1", "/").replaceAll("~0", "~")], root);
    found = { ...target, ...found, $ref: target?.$ref };
  }
  const choices = found.anyOf ?? found.oneOf;
  if (Array.isArray(choices) && !choices.every((choice) => "const" in (choice ?? {}))) {
    const real = choices.filter((choice) => choice?.type !== "null");
    if (real.length === 1) return settle({ ...found, anyOf: undefined, oneOf: undefined, ...real[0] }, root);
  }
  if (Array.isArray(found.type)) {
    const real = found.type.filter((type) => type !== "null");
    if (real.length === 1) found = { ...found, type: real[0] };
  }
  return found;
}

// The values to choose from, with their titles.
function options(schema) {
  if (Array.isArray(schema?.enum)) return schema.enum.map((value, at) => [value, schema.enumNames?.[at] ?? String(value)]);
  const titled = schema?.oneOf ?? schema?.anyOf;
  if (Array.isArray(titled) && titled.length && titled.every((choice) => choice && "const" in choice)) {
    return titled.map((choice) => [choice.const, choice.title ?? String(choice.const)]);
  }
  return null;
}

function control(name, schema, required, start) {
  const made = choose(schema, start ?? schema.default, required);
  const id = newId("answer");
  const hintId = `${id}-hint`;
  const errorId = `${id}-error`;
  const error = h("p", { class: "field-error", id: errorId, hidden: true });
  const title = schema.title ?? name;
  const secret = LOOKS_SECRET.test(`${name} ${title}`);
  const said = schema.description ? String(schema.description).trim() : "";
  const hint = [said && made.hint && !/[.!?:…]$/.test(said) ? `${said}.` : said, made.hint].filter(Boolean).join(" ");
  // Beside the label and not in it: the name of a field is what the server calls it.
  const beside = [title === name ? null : h("code", { class: "field-name" }, name), h("span", { class: required ? "required" : "optional" }, required ? "required" : "optional")];
  const group = made.group;
  made.focusable.id = id;
  if (required && !group) made.focusable.setAttribute("aria-required", "true");
  (group ?? made.focusable).setAttribute("aria-describedby", hint ? `${hintId} ${errorId}` : errorId);

  const parts = [
    hint ? h("p", { class: "hint", id: hintId }, hint) : null,
    secret ? h("p", { class: "field-warning" }, "This looks like a secret. Servers must not ask for secrets in a form: give it only if you are sure.") : null,
    error,
  ];
  let node;
  if (group) {
    group.prepend(h("legend", null, title));
    node = h("div", { class: "field" }, h("p", { class: "label-row end" }, beside), group, parts);
  } else if (made.inline) {
    node = h("div", { class: "field" }, h("div", { class: "label-row" }, h("label", { class: "check", for: id }, made.node, h("span", null, title)), beside), parts);
  } else {
    node = h("div", { class: "field" }, h("div", { class: "label-row" }, h("label", { for: id }, title), beside), made.node, parts);
  }

  return {
    name,
    node,
    read() {
      const said = made.read();
      if (said.problem || said.value !== undefined || !required) return said;
      return { problem: "This is needed." };
    },
    fail(message) {
      fill(error, message);
      error.hidden = !message;
      made.focusable.setAttribute("aria-invalid", message ? "true" : "false");
    },
    focus: () => made.focusable.focus(),
  };
}

function choose(schema, start, required) {
  const choices = options(schema);
  if (choices) return choice(choices, start, required);
  if (schema.type === "boolean") return check(start, required);
  if (schema.type === "number" || schema.type === "integer") return numeric(schema, start);
  const several = schema.type === "array" ? options(schema.items) : null;
  if (several) return severalOf(several, schema, start);
  if (schema.type === "string") return text(schema, start);
  return raw(start);
}

function choice(choices, start, required) {
  const at = choices.findIndex(([value]) => value === start);
  const node = select([...(required && at >= 0 ? [] : [["", required ? "Choose…" : "(nothing)"]]), ...choices.map(([, words], index) => [String(index), words])], at >= 0 ? String(at) : "");
  return { node, focusable: node, read: () => ({ value: node.value === "" ? undefined : choices[Number(node.value)][0] }) };
}

function check(start, required) {
  const node = h("input", { type: "checkbox", checked: start === true });
  let said = required || typeof start === "boolean";
  node.addEventListener("change", () => {
    said = true;
  });
  return { node, inline: true, focusable: node, read: () => ({ value: said ? node.checked : undefined }) };
}

function numeric(schema, start) {
  const whole = schema.type === "integer";
  const node = h("input", { type: "text", inputmode: whole ? "numeric" : "decimal", autocomplete: "off", value: start ?? "" });
  const bounds = [schema.minimum === undefined ? null : `at least ${schema.minimum}`, schema.maximum === undefined ? null : `at most ${schema.maximum}`].filter(Boolean).join(", ");
  const read = () => {
    const said = node.value.trim();
    if (said === "") return { value: undefined };
    const value = Number(said);
    if (!Number.isFinite(value)) return { problem: "This has to be a number." };
    if (whole && !Number.isInteger(value)) return { problem: "This has to be a whole number." };
    if (value < schema.minimum || value > schema.maximum) return { problem: `This has to be ${bounds}.` };
    return { value };
  };
  return { node, focusable: node, read, hint: `${whole ? "A whole number" : "A number"}${bounds ? `, ${bounds}` : ""}.` };
}

function text(schema, start) {
  const long = !schema.format && (schema.maxLength > 200 || String(start ?? "").includes("\n"));
  const node = long
    ? h("textarea", { rows: 4, value: start ?? "" })
    : h("input", { type: INPUT_TYPES[schema.format] ?? "text", autocomplete: "off", spellcheck: "false", step: schema.format === "date-time" ? "1" : null, value: localTime(schema, start) });
  const read = () => {
    const said = node.value;
    if (node.validity.badInput) return { problem: "This cannot be read; fill it in whole." };
    if (said === "") return { value: undefined };
    const length = [...said].length;
    if (length < schema.minLength) return { problem: `This has to have at least ${schema.minLength} characters.` };
    if (length > schema.maxLength) return { problem: `This may have at most ${schema.maxLength} characters.` };
    if (schema.format === "email" && node.validity.typeMismatch) return { problem: "This has to be an e-mail address, such as name@example.com." };
    if (schema.format === "uri" && !URL.canParse(said)) return { problem: "This has to be an address, such as https://example.com/." };
    if (schema.format === "date-time") {
      const date = new Date(said);
      return Number.isNaN(date.getTime()) ? { problem: "This has to be a date and a time." } : { value: date.toISOString() };
    }
    return { value: said };
  };
  const hint = { email: "An e-mail address.", uri: "An address (URI).", date: "A date.", "date-time": "A date and a time, in your own time zone." }[schema.format];
  return { node, focusable: node, read, hint };
}

function localTime(schema, start) {
  if (schema.format !== "date-time" || typeof start !== "string") return start ?? "";
  const date = new Date(start);
  if (Number.isNaN(date.getTime())) return "";
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

function severalOf(choices, schema, start) {
  const chosen = new Set(Array.isArray(start) ? start : []);
  const boxes = choices.map(([value]) => h("input", { type: "checkbox", checked: chosen.has(value) }));
  const group = h("fieldset", { class: "choices" }, choices.map(([, words], at) => h("label", { class: "check" }, boxes[at], h("span", null, words))));
  let touched = chosen.size > 0;
  group.addEventListener("change", () => {
    touched = true;
  });
  const read = () => {
    const value = choices.filter((_, at) => boxes[at].checked).map(([one]) => one);
    if (!touched && !value.length) return { value: undefined };
    if (value.length < schema.minItems) return { problem: `Choose at least ${schema.minItems}.` };
    if (value.length > schema.maxItems) return { problem: `Choose at most ${schema.maxItems}.` };
    return { value };
  };
  return { group, focusable: boxes[0] ?? group, read };
}

function raw(start) {
  const node = h("textarea", { class: "code", rows: 4, spellcheck: "false", value: start === undefined ? "" : pretty(start) });
  const read = () => {
    if (node.value.trim() === "") return { value: undefined };
    try {
      return { value: JSON.parse(node.value) };
    } catch (error) {
      return { problem: `This has to be JSON: ${error.message}` };
    }
  };
  return { node, focusable: node, read, hint: "Written as JSON." };
}
