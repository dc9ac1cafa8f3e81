// Tokens of clients and scripts: lists them, creates, rotates and revokes them. A token itself is shown once.

import { accessList } from "./access-list.js";
import { path, post, remove } from "./api.js";
import { button, empty, fill, h } from "./dom.js";
import { openNewToken } from "./new-token.js";
import { confirm, notice } from "./notices.js";
import { copyText } from "./payload.js";
import { agoTime, atTime } from "./words.js";

export function openTokens() {
  const title = h("h2", { id: "tokens-title", tabindex: "-1" }, "Tokens");
  const none = h("div");
  const issued = openIssued(title);
  const list = accessList("Tokens", ["Name", "Rights", "Held to", "Expires", "Last used", "Client", "Actions"], {
    where: path("tokens"),
    rows({ tokens }) {
      fill(none, tokens.length ? null : empty("No tokens.", "Create one for each client over HTTP and for each script, with no more rights than it needs."));
      return tokens;
    },
    keyOf: (token) => token.name,
    cells: (token) => [token.name, token.rights.join(", "), scope(token), expiry(token), token.usedAt ? agoTime(token.usedAt) : "never", token.client ?? "–", actions(token)],
  });

  function actions(token) {
    const named = (verb) => ({ "data-key": verb, class: "small", "aria-label": `${verb} ${token.name}` });
    return [button("Rotate", () => rotate(token), named("Rotate")), button("Revoke", () => revoke(token), named("Revoke"))];
  }

  async function rotate({ name, expiresAt }) {
    const agreed = await confirm({
      title: `Rotate ${name}?`,
      text: `The current token stops working, and its clients are disconnected. You get a new token with the same name, rights and limits${expiresAt ? ", which is valid for as long as the current one was" : ""}.`,
      yes: "Rotate",
      danger: true,
    });
    if (!agreed) return;
    try {
      issued.show(await post(path("tokens", name, "rotate")), "rotated");
    } catch (error) {
      notice(error.message, "bad");
    }
    list.read();
  }

  async function revoke({ name }) {
    const agreed = await confirm({ title: `Revoke ${name}?`, text: "The token stops working, and its clients are disconnected. This cannot be undone.", yes: "Revoke", danger: true });
    if (!agreed) return;
    try {
      await remove(path("tokens", name));
      notice(`The token ${name} is revoked.`, "good");
      issued.forget(name);
    } catch (error) {
      notice(error.message, "bad");
    }
    await list.read();
    // The button with the focus is gone.
    if (document.activeElement === document.body) title.focus();
  }

  const form = openNewToken((said) => {
    issued.show(said, "created");
    list.read();
  });
  list.read();
  return {
    node: h("section", { class: "stack", "aria-labelledby": title.id }, title, issued.node, list.node, none, form.node),
    refresh: list.refresh,
    close() {
      list.close();
      form.close();
      issued.close();
    },
  };
}

function scope({ profile, servers }) {
  const parts = [profile ? `profile ${profile}` : null, servers?.length ? `${servers.length === 1 ? "server" : "servers"} ${servers.join(", ")}` : null];
  return parts.filter(Boolean).join(", ") || "–";
}

function expiry({ expiresAt, isExpired }) {
  if (!expiresAt) return "never";
  return isExpired ? h("span", { class: "bad-text" }, "expired ", agoTime(expiresAt)) : atTime(expiresAt);
}

// The place of a new token. Nothing else holds it: it is gone when the user hides it or leaves the page.
function openIssued(after) {
  const node = h("div");
  let shown = null;
  let closed = false;

  function clear() {
    shown = null;
    fill(node);
  }

  // The browser may keep the page of an address that the user leaves.
  addEventListener("pagehide", clear);
  return {
    node,
    show({ token, about: { name } }, verb) {
      if (closed) {
        notice(`The token ${name} is ${verb}, but you left the page before it was shown. Rotate it to get another one.`, "bad");
        return;
      }
      shown = name;
      const title = h("h3", { id: "issued-title", tabindex: "-1" }, `The token ${name} is ${verb}.`);
      const hide = () => {
        clear();
        after.focus();
      };
      fill(node, h("section", { class: "callout issued", "aria-labelledby": title.id }, title,
        h("p", null, "It is shown only now: copy it before you leave this page. Clients send it as ", h("code", null, "Authorization: Bearer TOKEN"), "."),
        h("div", { class: "copy-row" }, h("pre", { class: "command", tabindex: "0", "aria-label": "Token" }, h("code", null, token)), button("Copy", () => copyText(token), { class: "small", "aria-label": "Copy the token" })),
        button("Hide", hide, { class: "small", "aria-label": "Hide the token" })));
      title.focus();
    },
    // A revoked token is of no use.
    forget(name) {
      if (name === shown) clear();
    },
    close() {
      closed = true;
      removeEventListener("pagehide", clear);
      clear();
    },
  };
}
