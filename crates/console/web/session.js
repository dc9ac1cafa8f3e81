// Who is signed in: a token in this browser's storage, got for the one-time key of a sign-in link.

const TOKEN = "switchboard.token";
const watchers = new Set();

export function token() {
  return read(TOKEN);
}

export function signedIn() {
  return token() !== null;
}

let isOver = false;

function keep(value) {
  isOver = false;
  write(TOKEN, value);
  tell();
}

export function forget() {
  isOver = false;
  write(TOKEN, null);
  tell();
}

// The gateway does not know the token any more: nobody has signed out here.
export function expire() {
  if (!signedIn()) return;
  isOver = true;
  write(TOKEN, null);
  tell();
}

export function sessionIsOver() {
  return isOver && !signedIn();
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
    throw new Error(said.detail ?? `The gateway answered with ${response.status}.`);
  }
  keep(said.token);
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
