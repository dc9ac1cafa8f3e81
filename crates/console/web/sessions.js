// Sessions of the console: lists the browsers that are signed in, and signs them out.

import { accessList } from "./access-list.js";
import { path, post } from "./api.js";
import { button, h } from "./dom.js";
import { confirm, notice } from "./notices.js";
import { forget, sessionId, signOut } from "./session.js";
import { agoTime, atTime } from "./words.js";

export function openSessions() {
  const title = h("h2", { id: "sessions-title", tabindex: "-1" }, "Console sessions");
  const list = accessList("Console sessions", ["Session", "Signed in", "Last used", "Expires", "Actions"], {
    where: path("console", "sessions"),
    rows: ({ sessions }) => sessions,
    keyOf: (session) => session.id,
    cells: (session) => [
      [h("code", null, session.id), session.id === sessionId() ? h("span", { class: "chip" }, "this browser") : null],
      agoTime(session.signedInAt), agoTime(session.usedAt), atTime(session.expiresAt), action(session),
    ],
  });

  function action({ id }) {
    if (id === sessionId()) return button("Sign out", signOut, { class: "small", "data-key": "end" });
    return button("End", () => end(id), { class: "small", "data-key": "end", "aria-label": `End ${id}` });
  }

  async function end(id) {
    const agreed = await confirm({ title: "End this session?", detail: h("p", null, h("code", null, id)), text: "Its browser is signed out.", yes: "End session", danger: true });
    if (!agreed) return;
    try {
      await post(path("console", "sign-out"), { session: id });
      notice("The session is ended.", "good");
    } catch (error) {
      notice(error.message, "bad");
    }
    await list.read();
    // The button with the focus is gone.
    if (document.activeElement === document.body) title.focus();
  }

  async function endAll() {
    const agreed = await confirm({
      title: "End all sessions?",
      text: "Every browser is signed out, this one too, and sign-in links that were not used become invalid.",
      yes: "End all sessions",
      danger: true,
    });
    if (!agreed) return;
    try {
      await post(path("console", "sign-out"), { all: true });
      forget();
    } catch (error) {
      notice(error.message, "bad");
    }
  }

  list.read();
  return {
    node: h("section", { class: "stack", "aria-labelledby": title.id },
      h("div", { class: "card-head" }, title, button("End all", endAll, { class: "small", "aria-label": "End all sessions" })),
      h("p", { class: "muted" }, "The browsers that are signed in. A session lasts for 24 hours, or until the gateway stops."), list.node),
    refresh: list.refresh,
    close: list.close,
  };
}
