// Calls the tools of the built-in memory, and detects its presence.

import { path, post, Problem } from "./api.js";
import { h } from "./dom.js";
import { notice } from "./notices.js";
import { on, state } from "./store.js";

const SERVER = "memory";
// A rule may require approval first.
const PATIENCE_MS = 15 * 60_000;
export const PARTS = [["namespace", "Namespace"], ["user_id", "User"], ["agent_id", "Agent"], ["run_id", "Run"]];
export const KINDS = [["semantic", "Fact"], ["episodic", "Event"], ["procedural", "Procedure"]];

// The presence of the built-in memory: "here", "off", "disabled", "replaced", or null while it is unknown.
export function presence() {
  if (!state.status) return null;
  const server = state.status.servers.find((other) => other.name === SERVER);
  if (!server) return "off";
  if (server.kind !== "built-in") return "replaced";
  return server.enabled === false ? "disabled" : "here";
}

// ask("recall", {query: "…"}) → the result of the tool; undefined or empty arguments are not sent. Calls of read-only
// tools for the page are not in the activity.
export async function ask(tool, wanted = {}) {
  const sent = Object.fromEntries(Object.entries(wanted).filter(([, value]) => value !== undefined && value !== ""));
  const off = on("approvals", ({ approval, isNew }) => {
    if (isNew && approval?.kind === "tool_call" && approval.server === SERVER) notice("A rule requires approval for this call: decide under Approvals.");
  });
  try {
    const answer = await post(path("tools", "call"), { name: `${SERVER}:${tool}`, arguments: sent, page: true }, { patience: PATIENCE_MS });
    if (!answer?.isError) return answer?.structuredContent ?? {};
    const said = answer._meta?.["switchboard/error"];
    throw new Problem(200, { detail: said?.message ?? answer.content?.[0]?.text, hint: said?.hint, kind: said?.kind });
  } finally {
    off();
  }
}

// Runs an action of the user with the button disabled, and reports errors.
export async function doing(button, act) {
  button.disabled = true;
  try {
    return await act();
  } catch (error) {
    notice(error.message, "bad");
    return null;
  } finally {
    button.disabled = false;
  }
}

export function kindWords(kind) {
  return KINDS.find(([name]) => name === kind)?.[1] ?? kind;
}

export function memoryHref(id) {
  return `#memory/one/${encodeURIComponent(id)}`;
}

export function entityHref(nameOrId) {
  return `#memory/graph/${encodeURIComponent(nameOrId)}`;
}

// The beginning of a text, on one line.
export function brief(content, most = 240) {
  const text = String(content ?? "").slice(0, 4 * most).replace(/\s+/g, " ").trim();
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

// The scope of a memory, each part with its name.
export function scopeWords(memory) {
  const parts = PARTS.filter(([name]) => memory[name] !== undefined);
  return parts.map(([name, words]) => h("span", { class: "of" }, h("span", { class: "muted" }, `${words.toLowerCase()} `), memory[name]));
}

// Converts a time to a field in the user's time zone, and back.
export function toField(time) {
  const date = new Date(time ?? NaN);
  if (Number.isNaN(date.getTime())) return "";
  return new Date(date.getTime() - date.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}

export function fromField(input) {
  const date = new Date(input.value);
  return Number.isNaN(date.getTime()) ? undefined : date.toISOString();
}

export function timeInput(time, props) {
  return h("input", { type: "datetime-local", step: "1", value: toField(time), ...props });
}
