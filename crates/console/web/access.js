// Access: the tokens of clients and scripts, the profiles, the connected clients, and the sessions of the console.

import { openClients } from "./clients.js";
import { h, heading } from "./dom.js";
import { openProfile, openProfiles } from "./profiles.js";
import { openSessions } from "./sessions.js";
import { openTokens } from "./tokens.js";
import { everySecond } from "./words.js";

const AGAIN_MS = 10_000;

export function open([profile]) {
  return profile ? openProfile(profile) : openAll();
}

function openAll() {
  const parts = [openTokens(), openProfiles(), openClients(), openSessions()];
  let readAt = null;
  // No event reports a sign-in, a client or the use of a token.
  const off = everySecond((now) => {
    readAt ??= now;
    if (now - readAt <= AGAIN_MS || document.hidden || document.querySelector("dialog[open]")) return;
    readAt = now;
    for (const part of parts) part.refresh();
  });
  return {
    title: () => "Access",
    node: h("div", { class: "page" }, heading("Access"), parts.map((part) => part.node)),
    close() {
      off();
      for (const part of parts) part.close();
    },
  };
}
