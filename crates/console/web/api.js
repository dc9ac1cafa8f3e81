// Sends requests to the gateway. Its errors (RFC 9457) become a Problem.

import { doubt, expire, prove, token } from "./session.js";
import { noteTime, problemText } from "./words.js";

const PATIENCE_MS = 30_000;

export class Problem extends Error {
  constructor(status, body) {
    super(problemText(body) ?? text(body.title) ?? `The gateway returned HTTP status ${status}.`);
    this.status = status;
    this.body = body;
  }
}

function text(value) {
  return typeof value === "string" && value ? value : null;
}

export function get(path) {
  return ask("GET", path);
}

// A body that is a string is sent verbatim, as JSON.
export function post(path, body = {}, options) {
  return ask("POST", path, body, options);
}

export function remove(path) {
  return ask("DELETE", path);
}

// JSON of an object, with one more member whose JSON text is inserted verbatim: parsing it would round long
// numbers.
export function withRaw(object, name, text) {
  const rest = JSON.stringify(object).slice(1, -1);
  return `{${rest ? `${rest},` : ""}${JSON.stringify(name)}:${text}}`;
}

// Returns the response before its body has arrived, for streams.
export async function stream(path, headers, signal) {
  await assure();
  const response = await fetch(path, { headers: { ...authorization(), ...headers }, signal, cache: "no-store" });
  noteTime(response.headers.get("date"));
  if (!response.ok) throw await refused(response);
  return response;
}

// path("servers", name, "restart"): each part is escaped.
export function path(...parts) {
  return `/api/v1/${parts.map(encodeURIComponent).join("/")}`;
}

// Adds query parameters; empty ones are left out.
export function query(where, wanted) {
  const pairs = Object.entries(wanted).filter(([, value]) => value !== undefined && value !== null && value !== "");
  return pairs.length ? `${where}?${new URLSearchParams(pairs)}` : where;
}

async function ask(method, where, body, { patience = PATIENCE_MS } = {}) {
  let response;
  await assure();
  try {
    response = await fetch(where, {
      method,
      headers: { ...authorization(), ...(body === undefined ? {} : { "Content-Type": "application/json" }) },
      body: body === undefined || typeof body === "string" ? body : JSON.stringify(body),
      cache: "no-store",
      signal: AbortSignal.timeout(patience),
    });
  } catch (error) {
    const late = error.name === "TimeoutError";
    doubt();
    throw new Problem(0, { detail: late ? "The gateway did not respond in time. Try again." : "The gateway cannot be reached. Check that it is running." });
  }
  noteTime(response.headers.get("date"));
  if (!response.ok) throw await refused(response);
  if (response.status === 204) return null;
  return response.json();
}

async function refused(response) {
  const body = await response.json().catch(() => ({}));
  if (response.status === 401) expire();
  return new Problem(response.status, body ?? {});
}

// Ensures that the session is sent only to the gateway that created it.
async function assure() {
  if (!(await prove())) throw new Problem(0, { detail: "The gateway cannot be reached. Check that it is running." });
}

function authorization() {
  return { Authorization: `Bearer ${token()}` };
}
