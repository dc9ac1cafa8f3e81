// A form for a JSON Schema: one control per property, depending on its type. Properties without a control of their own
// (objects, lists of objects) are written as JSON.

import { add, fill, h, newId, plain, select } from "./dom.js";
import { list, pretty } from "./payload.js";

const INPUT_TYPES = { __proto__: null, email: "email", uri: "url", "uri-reference": "text", date: "date", "date-time": "datetime-local" };
const LOOKS_SECRET = /pass(word|phrase|code)|secret|token|api.?key|credential|\bpin\b|otp|card.?number|cvv/i;

// The schema is untrusted: it may be `true`, and a bound may be a string.
const isObject = (value) => typeof value === "object" && value !== null && !Array.isArray(value);
const own = (object, name) => (isObject(object) && Object.hasOwn(object, name) ? object[name] : undefined);
const bound = (value) => (typeof value === "number" ? value : undefined);

// schemaForm(schema, {a: 1}) → {node, read() → {text: "{…}", problems}, show(problems)}
// The result is JSON text with every value as it was typed: long numbers are not rounded.
export function schemaForm(schema, start = {}) {
  const properties = isObject(own(schema, "properties")) ? Object.entries(schema.properties) : [];
  const required = new Set(list(own(schema, "required")));
  const controls = properties.map(([name, property]) => {
    try {
      return control(name, settle(property, schema), required.has(name), own(start, name));
    } catch {
      // Any value can be written as JSON.
      return control(name, {}, required.has(name), own(start, name));
    }
  });
  const node = h("div", { class: "form" }, controls.map((one) => one.node));
  if (!controls.length) add(node, h("p", { class: "muted" }, "There are no fields to fill in."));

  return {
    node,
    read() {
      const answers = [];
      const problems = [];
      for (const one of controls) {
        const said = one.read();
        if (said.problem) problems.push({ path: pointer(one.name), message: said.problem });
        else if (said.text !== undefined) answers.push(`${JSON.stringify(one.name)}:${said.text}`);
      }
      this.show(problems);
      return { text: `{${answers.join(",")}}`, problems };
    },
    // Shows each problem at its field; returns those that belong to no field.
    show(problems) {
      const left = new Set(problems);
      let first = null;
      for (const one of controls) {
        const own = problems.filter((problem) => problem.path === pointer(one.name) || problem.path?.startsWith(`${pointer(one.name)}/`));
        own.forEach((problem) => left.delete(problem));
        one.fail(own.map((problem) => problem.message).join("; "));
        if (own.length) first ??= one;
      }
      first?.focus();
      return [...left];
    },
  };
}

// The JSON Pointer of a field.
export function pointer(name) {
  return `/${name.replaceAll("~", "~0").replaceAll("/", "~1")}`;
}

const MOST_HOPS = 16;

// Follows references within the schema, up to MOST_HOPS, and treats "X or null" as X.
function settle(property, root, hops = 0) {
  let found = isObject(property) ? property : {};
  if (hops > MOST_HOPS) return {};
  const { $ref } = found;
  if (typeof $ref === "string" && $ref.startsWith("#/")) {
    const target = $ref.slice(2).split("/").reduce((at, key) => own(at, key.replaceAll("~1", "/").replaceAll("~0", "~")), root);
    const rest = { ...found };
    delete rest.$ref;
    return settle(isObject(target) ? { ...target, ...rest } : rest, root, hops + 1);
  }
  const choices = found.anyOf ?? found.oneOf;
  if (Array.isArray(choices) && !choices.every((choice) => isObject(choice) && Object.hasOwn(choice, "const"))) {
    const real = choices.filter((choice) => own(choice, "type") !== "null");
    if (real.length === 1 && isObject(real[0])) return settle({ ...found, anyOf: undefined, oneOf: undefined, ...real[0] }, root, hops + 1);
  }
  if (Array.isArray(found.type)) {
    const real = found.type.filter((type) => type !== "null");
    if (real.length === 1) found = { ...found, type: real[0] };
  }
  return found;
}

// The values to choose from, with their labels; a label includes the value if the title differs.
function options(schema) {
  if (!isObject(schema)) return null;
  const words = (value, title) => (typeof title !== "string" || title === plain(value) ? plain(value) || JSON.stringify(value) : `${title} (${plain(value)})`);
  if (Array.isArray(schema.enum)) return schema.enum.map((value, at) => [value, words(value, list(schema.enumNames)[at])]);
  const titled = schema.oneOf ?? schema.anyOf;
  if (Array.isArray(titled) && titled.length && titled.every((choice) => isObject(choice) && Object.hasOwn(choice, "const"))) {
    return titled.map((choice) => [choice.const, words(choice.const, choice.title)]);
  }
  return null;
}

function control(name, schema, required, start) {
  const made = choose(schema, start ?? schema.default, required);
  const id = newId("answer");
  const hintId = `${id}-hint`;
  const errorId = `${id}-error`;
  const error = h("p", { class: "field-error", id: errorId, hidden: true });
  const title = typeof schema.title === "string" && schema.title.trim() ? schema.title : name;
  const secret = LOOKS_SECRET.test(`${name} ${title}`);
  const said = plain(schema.description).trim();
  const hint = [said && made.hint && !/[.!?:…]$/.test(said) ? `${said}.` : said, made.hint].filter(Boolean).join(" ");
  // Beside the label, not in it: the label is exactly the server's title.
  const beside = [title === name ? null : h("code", { class: "field-name" }, name), h("span", { class: required ? "required" : "optional" }, required ? "required" : "optional")];
  const group = made.group;
  made.focusable.id = id;
  if (required && !group) made.focusable.setAttribute("aria-required", "true");
  (group ?? made.focusable).setAttribute("aria-describedby", hint ? `${hintId} ${errorId}` : errorId);

  const parts = [
    hint ? h("p", { class: "hint", id: hintId }, hint) : null,
    secret ? h("p", { class: "field-warning" }, "This looks like a password or key. Servers must not ask for secrets in a form: enter it only if you are sure.") : null,
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
      if (said.problem || said.text !== undefined || !required) return said;
      return { problem: "This field is required." };
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
  const node = select([...(required && at >= 0 ? [] : [["", required ? "Choose…" : "(none)"]]), ...choices.map(([, words], index) => [String(index), words])], at >= 0 ? String(at) : "");
  return { node, focusable: node, read: () => ({ text: node.value === "" ? undefined : JSON.stringify(choices[Number(node.value)][0]) }) };
}

function check(start, required) {
  const node = h("input", { type: "checkbox", checked: start === true });
  let said = required || typeof start === "boolean";
  node.addEventListener("change", () => {
    said = true;
  });
  return { node, inline: true, focusable: node, read: () => ({ text: said ? String(node.checked) : undefined }) };
}

const WHOLE_NUMBER = /^-?(0|[1-9]\d*)$/;
const NUMBER = /^-?(0|[1-9]\d*)(\.\d+)?(e[+-]?\d+)?$/i;

function numeric(schema, start) {
  const whole = schema.type === "integer";
  const node = h("input", { type: "text", inputmode: whole ? "numeric" : "decimal", autocomplete: "off", value: plain(start) });
  const [least, most] = [bound(schema.minimum), bound(schema.maximum)];
  const bounds = [least === undefined ? null : `at least ${least}`, most === undefined ? null : `at most ${most}`].filter(Boolean).join(", ");
  const read = () => {
    const said = node.value.trim();
    if (said === "") return { text: undefined };
    if (whole && !WHOLE_NUMBER.test(said)) return { problem: "This must be a whole number, written with digits only." };
    if (!NUMBER.test(said)) return { problem: "This must be a number, such as 12 or 0.5." };
    // Long integers are compared exactly.
    const value = whole ? BigInt(said) : Number(said);
    if (!whole && !Number.isFinite(value)) return { problem: "This number is too large." };
    if (value < least || value > most) return { problem: `This must be ${bounds}.` };
    return { text: said };
  };
  return { node, focusable: node, read, hint: `${whole ? "A whole number" : "A number"}${bounds ? `, ${bounds}` : ""}.` };
}

function text(schema, start) {
  const format = plain(schema.format);
  const [least, most] = [bound(schema.minLength), bound(schema.maxLength)];
  const long = !format && (most > 200 || plain(start).includes("\n"));
  const node = long
    ? h("textarea", { rows: 4, value: plain(start) })
    : h("input", { type: INPUT_TYPES[format] ?? "text", autocomplete: "off", spellcheck: "false", step: format === "date-time" ? "1" : null, value: localTime(format, start) });
  const shown = node.value;
  const read = () => {
    const said = node.value;
    if (node.validity.badInput) return { problem: "This is incomplete: fill in all parts." };
    // An unchanged value is sent verbatim: a field changes line ends and drops fractions of seconds.
    if (typeof start === "string" && said === shown && said !== "") return { text: JSON.stringify(start) };
    if (said === "") return { text: undefined };
    const length = [...said].length;
    if (length < least) return { problem: `This must have at least ${least} characters.` };
    if (length > most) return { problem: `This must have at most ${most} characters.` };
    if (format === "email" && node.validity.typeMismatch) return { problem: "This must be an email address, such as name@example.com." };
    if (format === "uri" && !URL.canParse(said)) return { problem: "This must be a URI, such as https://example.com/." };
    if (format === "date-time") {
      const date = new Date(said);
      return Number.isNaN(date.getTime()) ? { problem: "This must be a date and time." } : { text: JSON.stringify(date.toISOString()) };
    }
    return { text: JSON.stringify(said) };
  };
  const hint = HINTS[format];
  return { node, focusable: node, read, hint };
}

const HINTS = { __proto__: null, email: "An email address.", uri: "A URI.", date: "A date.", "date-time": "A date and time, in your time zone." };

function localTime(format, start) {
  if (format !== "date-time" || typeof start !== "string") return plain(start);
  const date = new Date(start);
  if (Number.isNaN(date.getTime())) return "";
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

function severalOf(choices, schema, start) {
  const chosen = new Set(list(start));
  const [least, most] = [bound(schema.minItems), bound(schema.maxItems)];
  const boxes = choices.map(([value]) => h("input", { type: "checkbox", checked: chosen.has(value) }));
  const group = h("fieldset", { class: "choices" }, choices.map(([, words], at) => h("label", { class: "check" }, boxes[at], h("span", null, words))));
  let touched = chosen.size > 0;
  group.addEventListener("change", () => {
    touched = true;
  });
  const read = () => {
    const value = choices.filter((_, at) => boxes[at].checked).map(([one]) => one);
    if (!touched && !value.length) return { text: undefined };
    if (value.length < least) return { problem: `Choose at least ${least}.` };
    if (value.length > most) return { problem: `Choose at most ${most}.` };
    return { text: JSON.stringify(value) };
  };
  return { group, focusable: boxes[0] ?? group, read };
}

function raw(start) {
  const node = h("textarea", { class: "code", rows: 4, spellcheck: "false", value: start === undefined ? "" : pretty(start) });
  const read = () => {
    if (node.value.trim() === "") return { text: undefined };
    try {
      JSON.parse(node.value);
      return { text: node.value };
    } catch (error) {
      return { problem: `This is not valid JSON: ${error.message}` };
    }
  };
  return { node, focusable: node, read, hint: "Enter JSON." };
}
