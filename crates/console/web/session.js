// Who is signed in: a token in this browser's storage, got for the one-time key of a sign-in link.

import { problemText } from "./words.js";

const TOKEN = "switchboard.token";
const PROOF_MS = 10_000;
const watchers = new Set();

export function token() {
  return read(TOKEN);
}

export function signedIn() {
  return token() !== null;
}

// How the session ended: "session", or "gateway" if the gateway was started again, at another name.
let over = null;

function keep(value) {
  over = null;
  // The gateway has just made this session.
  proven = Promise.resolve(true);
  write(TOKEN, value);
  tell();
}

export function forget() {
  over = null;
  write(TOKEN, null);
  tell();
}

// The gateway does not know the token any more: nobody has signed out here.
export function expire(how = "session") {
  if (!signedIn()) return;
  over = how;
  write(TOKEN, null);
  tell();
}

export function sessionIsOver() {
  return signedIn() ? null : over;
}

// Ends the session, at the gateway too.
export async function signOut() {
  const shown = token();
  if (shown !== null && (await prove())) {
    await fetch("/api/v1/console/sign-out", { method: "POST", headers: { Authorization: `Bearer ${shown}` }, cache: "no-store" }).catch(() => {});
  }
  forget();
}

// Called with true or false whenever somebody signs in or out, here or in another tab.
export function onSession(act) {
  watchers.add(act);
}

// Swaps the key of a link for a token.
export async function exchange(key) {
  const response = await fetch("/api/v1/console/sign-in", {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify({ key }),
    cache: "no-store",
  });
  const said = await response.json().catch(() => ({}));
  if (!response.ok || typeof said.token !== "string") {
    throw new Error(problemText(said) ?? `The gateway answered with ${response.status}.`);
  }
  keep(said.token);
}

// Whether the program at this address has shown that it is the gateway of this session. After a lost connection it
// has to show it again: another program may have taken the port.
let proven = null;

export function doubt() {
  proven = null;
}

// Asks for a proof, once, before the session is sent. Gives false if there is none, and ends the session if the
// gateway does not know it any more.
export function prove() {
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

// A choice of the person that this browser keeps: the theme, notifications.
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
    // Without storage the choice lasts as long as nothing: there is nothing to do about it.
  }
}

function tell() {
  for (const act of watchers) act(signedIn());
}

addEventListener("storage", (event) => {
  if (event.key === TOKEN || event.key === null) tell();
});
