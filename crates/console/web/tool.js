// One tool: its definition, in outline and in full, its trust, and a form to try it.

import { get, path, post, query, withRaw } from "./api.js";
import { add, button, empty, fill, h, heading, plain, problem, say } from "./dom.js";
import { pointer, schemaForm } from "./form.js";
import { findings, heldTool } from "./held.js";
import { chip } from "./marks.js";
import { block, blocks, indent, json, list, longText } from "./payload.js";
import { on } from "./store.js";
import { lasting } from "./words.js";

// The call may wait for an approver.
const CALL_PATIENCE_MS = 15 * 60_000;

export function openTool(server, name, listHref) {
  const trust = h("div");
  const body = h("div", { class: "stack" });
  const node = h("div", { class: "page" }, h("p", { class: "crumb" }, h("a", { href: listHref() }, "Tools"), " / ", h("a", { href: `#servers/${encodeURIComponent(server)}` }, server)), heading(name), trust, body);
  let shown = null;

  async function read() {
    const [tools, trusted] = await Promise.allSettled([get(query(path("tools"), { server })), get(query(path("trust", server), { tool: name }))]);
    drawTrust(trusted.value);
    const tool = tools.value?.tools.find((other) => other.tool === name);
    const definition = tool?.definition ?? trusted.value?.held?.definition ?? trusted.value?.approved?.definition;
    const key = JSON.stringify([definition ?? null, Boolean(tool), tool?.override ?? null]);
    if (key === shown) return;
    shown = key;
    if (!definition) {
      fill(body, tools.status === "rejected" ? problem(tools.reason) : empty(`${server} has no tool ${name}.`, "The server may have removed it, or has not started yet."));
      return;
    }
    fill(body);
    try {
      add(body, [overridden(tool), h("section", { class: "card" }, h("h2", null, "Definition"), described(definition, "h3")), tool ? tryIt(tool.name, definition) : h("p", { class: "muted" }, "You cannot try the tool while it is held.")]);
    } catch {
      fill(body, h("div", { class: "callout", "data-tone": "warn" }, "The console does not support this definition, so it is shown as JSON."), json(definition));
    }
  }

  function drawTrust(said) {
    const key = JSON.stringify(said ?? null);
    if (trust.dataset.shown === key) return;
    trust.dataset.shown = key;
    fill(trust, said?.held ? h("section", { class: "card held" }, h("h2", null, "Held"), heldTool(server, said.held, "h3")) : findings(said?.approved?.findings));
  }

  read();
  const off = on("trust", read);
  return { title: () => `${server}:${name}`, node, back: listHref, close: off };
}

// The override of a tool, next to the definition that the server sent.
function overridden(tool) {
  if (!tool?.override) return null;
  const { definition, fixed, hidden } = tool.override;
  const rows = [["Name for clients", plain(tool.exposed)], ["Name at the server", plain(tool.tool)], ...Object.entries(fixed).map(([name, value]) => [`Fixed argument ${plain(name)}`, plain(JSON.stringify(value))]), ...hidden.map((name) => ["Hidden argument", plain(name)])];
  return h("section", { class: "card override" }, h("h2", null, "Override"),
    h("p", { class: "muted" }, "Clients see the tool as shown below. The server's own definition is what you approve."),
    h("dl", { class: "facts" }, rows.map(([title, value]) => h("div", null, h("dt", null, title), h("dd", null, value)))),
    h("details", null, h("summary", null, "Definition of the server"), json(definition)));
}

const HINTS = [["readOnlyHint", "read-only", "not read-only"], ["destructiveHint", "destructive", "not destructive"], ["idempotentHint", "idempotent", "not idempotent"], ["openWorldHint", "accesses external systems", "does not access external systems"]];

// The annotations of a tool, marked as claims of the server unless other words are given.
export function hints(annotations, claim = "The server claims (unverified): ") {
  const said = HINTS.filter(([key]) => typeof annotations?.[key] === "boolean").map(([key, yes, no]) => (annotations[key] ? yes : no));
  if (!said.length) return null;
  return h("p", { class: "hints" }, h("span", { class: "muted" }, claim), said.map((words) => chip(words)));
}

// The definition of a tool, or of another item, with headings of this level.
export function described(definition, level, claim) {
  const title = definition.title ?? definition.annotations?.title;
  const takes = definition.inputSchema ?? (Array.isArray(definition.arguments) ? schemaOf(definition.arguments) : null);
  return [
    title ? h("p", null, h("strong", null, plain(title))) : null,
    definition.description ? longText(plain(definition.description), { class: "text" }) : h("p", { class: "muted" }, "It has no description."),
    hints(definition.annotations, claim),
    takes ? [h(level, null, "Arguments"), outline(takes)] : null,
    definition.outputSchema ? [h(level, null, "Result"), outline(definition.outputSchema)] : null,
    h("details", null, h("summary", null, "As JSON"), json(definition)),
  ];
}

// The arguments of a prompt, which are all strings.
function schemaOf(prompt) {
  return {
    properties: Object.fromEntries(prompt.map((one) => [plain(one?.name), { type: "string", description: one?.description }])),
    required: prompt.filter((one) => one?.required === true).map((one) => plain(one.name)),
  };
}

function outline(schema) {
  const entries = schema?.properties && typeof schema.properties === "object" ? Object.entries(schema.properties) : [];
  if (!entries.length) return h("p", { class: "muted" }, "None.");
  const required = new Set(list(schema.required));
  return h("dl", { class: "outline" }, entries.map(([name, property]) => h("div", null,
    h("dt", null, h("code", null, name), " ", h("span", { class: "type" }, typeWords(property)), required.has(name) ? [" ", chip("required")] : null),
    h("dd", null, plain(property?.description),
      Array.isArray(property?.enum) ? h("span", { class: "muted" }, ` One of ${property.enum.slice(0, 12).map((value) => JSON.stringify(value)).join(", ")}${property.enum.length > 12 ? ", …" : ""}.`) : null,
      property?.default !== undefined ? h("span", { class: "muted" }, ` Default ${JSON.stringify(property.default)}.`) : null))));
}

const MOST_DEPTH = 8;

function typeWords(property, depth = 0) {
  if (!property || typeof property !== "object" || depth > MOST_DEPTH) return "any";
  if (property.type === "array") return `list of ${typeWords(property.items, depth + 1)}`;
  if (Array.isArray(property.type)) return property.type.map(plain).join(" or ");
  if (property.type) return property.format ? `${plain(property.type)}, ${plain(property.format)}` : plain(property.type);
  const choices = property.anyOf ?? property.oneOf;
  if (Array.isArray(choices)) return choices.slice(0, 4).map((choice) => typeWords(choice, depth + 1)).join(" or ");
  if (property.enum) return "one of several values";
  return plain(property.$ref).split("/").at(-1) || "any";
}

// The arguments that a form would lose or change, in words; null if there are none.
function lost(text, value, form) {
  const tokens = [...text.matchAll(/"(?:[^"\\]|\\.)*"|[^\s"]+/gs)].map(([token]) => (token.startsWith("\"") ? JSON.stringify(JSON.parse(token)) : token));
  if (tokens.join("") !== JSON.stringify(value)) return "numbers or names in a notation that the form does not keep";
  const { text: said, problems } = form.read();
  const kept = JSON.parse(said);
  const gone = Object.keys(value).filter((name) => !problems.some((one) => one.path === pointer(name)) && (!Object.hasOwn(kept, name) || JSON.stringify(kept[name]) !== JSON.stringify(value[name])));
  return gone.length ? `values that the form has no field for: ${gone.join(", ")}` : null;
}

function tryIt(fullName, definition) {
  let form = schemaForm(definition.inputSchema);
  const raw = h("textarea", { class: "code", rows: 8, spellcheck: "false", "aria-label": "Arguments as JSON", value: "{}" });
  const place = h("div", null, form.node);
  const problems = h("div");
  const result = h("div", { "aria-live": "polite" });
  let asJson = false;

  const mode = button("Use JSON", () => {
    fill(problems);
    if (asJson) {
      const value = readRaw();
      if (!value) return;
      const next = schemaForm(definition.inputSchema, value);
      const missing = lost(raw.value || "{}", value, next);
      if (missing) {
        fill(problems, problem(new Error(`The arguments do not fit into the form: they have ${missing}.`)));
        return;
      }
      form = next;
    } else {
      const said = form.read();
      if (said.problems.length) return;
      raw.value = indent(said.text);
    }
    asJson = !asJson;
    say(mode, asJson ? "Use the form" : "Use JSON");
    fill(place, asJson ? raw : form.node);
  }, { class: "small" });

  function readRaw() {
    try {
      const value = JSON.parse(raw.value || "{}");
      if (value && typeof value === "object" && !Array.isArray(value)) return value;
      fill(problems, problem(new Error("The arguments must be a JSON object, such as {\"path\": \"a\"}.")));
    } catch (error) {
      fill(problems, problem(new Error(`The arguments are not valid JSON: ${error.message}`)));
    }
    return null;
  }

  const call = button("Call the tool", async () => {
    fill(problems);
    const said = asJson ? { text: readRaw() && (raw.value || "{}"), problems: [] } : form.read();
    if (!said.text || said.problems.length) return;
    call.disabled = true;
    fill(result, h("p", { class: "muted" }, "Calling… If a rule requires approval, the call waits for it."));
    const began = performance.now();
    try {
      const answer = await post(path("tools", "call"), withRaw({ name: fullName }, "arguments", said.text), { patience: CALL_PATIENCE_MS });
      fill(result, showResult(answer, performance.now() - began));
    } catch (error) {
      fill(result, h("h3", null, "Result"), problem(error), error.body?.data === undefined ? null : json(error.body.data));
    }
    call.disabled = false;
  }, { class: "primary" });

  return h("section", { class: "card", "aria-labelledby": "try-title" },
    h("div", { class: "card-head" }, h("h2", { id: "try-title" }, "Try it"), mode),
    place, problems, h("div", { class: "buttons" }, call), result);
}

function showResult(answer, ms) {
  const node = h("div", { class: "result" }, h("h3", null, "Result ", answer?.isError ? chip("tool error", "bad") : chip("ok", "good"), h("span", { class: "muted" }, ` ${lasting(ms)}`)));
  add(node, blocks(answer?.content).map((one) => block(one)));
  if (answer?.structuredContent !== undefined) add(node, [h("h4", null, "Structured content"), json(answer.structuredContent)]);
  add(node, h("details", null, h("summary", null, "As JSON"), json(answer)));
  return node;
}
