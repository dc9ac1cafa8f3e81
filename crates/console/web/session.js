// The session: a token in this browser's storage, exchanged for the one-time key of a sign-in link.

import { problemText } from "./words.js";

const TOKEN = "switchboard.token";
const PROOF_MS = 10_000;
const watchers = new Set();

export function token() {
  return read(TOKEN);
}

// The ID of the session: its token up to the dot.
export function sessionId() {
  return (token() ?? "").split(".")[0];
}

export function signedIn() {
  return token() !== null;
}

// The reason for the end of the session: "session", or "gateway" if the gateway restarted at another address.
let over = null;

function keep(value) {
  over = null;
  // The gateway has just created this session.
  proven = Promise.resolve(true);
  write(TOKEN, value);
  tell();
}

export function forget() {
  over = null;
  write(TOKEN, null);
  tell();
}

// Ends a session that the gateway no longer knows; the user has not signed out.
export function expire(how = "session") {
  if (!signedIn()) return;
  over = how;
  write(TOKEN, null);
  tell();
}

export function sessionIsOver() {
  return signedIn() ? null : over;
}

// The session is about to end, and the gateway would refuse a request with it.
let leaving = false;

// Ends the session, in this browser and at the gateway.
export async function signOut() {
  const shown = token();
  if (shown !== null && (await prove())) {
    leaving = true;
    await fetch("/api/v1/console/sign-out", { method: "POST", headers: { Authorization: `Bearer ${shown}` }, cache: "no-store" }).catch(() => {});
    leaving = false;
  }
  forget();
}

// Registers a function that is called with true or false on each sign-in and sign-out, here or in another tab.
export function onSession(act) {
  watchers.add(act);
}

// Exchanges the key of a link for a token.
export async function exchange(key) {
  const response = await fetch("/api/v1/console/sign-in", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ key }),
    cache: "no-store",
  });
  const said = await response.json().catch(() => ({}));
  if (!response.ok || typeof said.token !== "string") {
    throw new Error(problemText(said) ?? `The gateway returned HTTP status ${response.status}.`);
  }
  keep(said.token);
}

// Resolves to true if the program at this address has proved that it is the gateway of this session. After a lost
// connection it must prove it again: another program may have taken the port.
let proven = null;

export function doubt() {
  proven = null;
}

// Requests the proof, once, before the session is sent. Resolves to false if there is none, and ends the session if
// the gateway no longer knows it. While the user signs out, it does not resolve: the page is about to close.
export function prove() {
  if (leaving) return new Promise(() => {});
  proven ??= challenge().catch(() => false).then((is) => {
    if (!is) proven = null;
    return is;
  });
  return proven;
}

async function challenge() {
  const [id, secret] = (token() ?? "").split(".");
  if (!secret) return true;
  const nonce = hex(crypto.getRandomValues(new Uint8Array(32)));
  const response = await fetch("/api/v1/console/prove", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ session: id, nonce }),
    cache: "no-store",
    signal: AbortSignal.timeout(PROOF_MS),
  });
  if (response.status === 404 || response.status === 403) {
    expire(response.status === 404 ? "session" : "gateway");
    return false;
  }
  const { proof } = await response.json();
  const bytes = new TextEncoder();
  const key = await crypto.subtle.importKey("raw", bytes.encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  const wanted = await crypto.subtle.sign("HMAC", key, bytes.encode(`switchboard console\n${nonce}`));
  return proof === hex(new Uint8Array(wanted));
}

function hex(bytes) {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

// A preference of the user that this browser stores, such as the theme.
export function preference(name) {
  return read(`switchboard.${name}`);
}

export function prefer(name, value) {
  write(`switchboard.${name}`, value);
}

function read(name) {
  try {
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

function write(name, value) {
  try {
    if (value === null) localStorage.removeItem(name);
    else localStorage.setItem(name, value);
  } catch {
    // Without storage, preferences are not kept.
  }
}

function tell() {
  for (const act of watchers) act(signedIn());
}

addEventListener("storage", (event) => {
  if (event.key === TOKEN || event.key === null) tell();
});
