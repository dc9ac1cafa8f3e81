// Shows what came from elsewhere: JSON, long texts, addresses, and the content of messages and results.

import { add, button, canShowPicture, fill, h } from "./dom.js";
import { confirm, notice } from "./notices.js";
import { bytes } from "./words.js";

const CUT_CHARACTERS = 4000;
const CUT_LINES = 60;

export function pretty(value) {
  return value === undefined ? "" : JSON.stringify(value, null, 2);
}

// JSON text with line breaks and indents, and every value as it is written: a long number is not rounded,
// and a name that stands there twice is seen twice.
export function indent(text) {
  const out = [];
  let depth = 0;
  let last = null;
  const newLine = () => `\n${"  ".repeat(Math.min(Math.max(depth, 0), 100))}`;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"?|[[\]{},:]|[^\s"[\]{},:]+/gs)) {
    const closes = token === "}" || token === "]";
    if (closes) depth -= 1;
    const afterOpening = last === "{" || last === "[";
    if (closes ? !afterOpening : afterOpening || last === ",") out.push(newLine());
    out.push(token === ":" ? ": " : token);
    if (token === "{" || token === "[") depth += 1;
    last = token;
  }
  return out.join("");
}

// A text that may be long: its beginning, and the rest on request.
export function longText(text, props) {
  const node = h("div", { class: "long" });
  const lines = text.split("\n", CUT_LINES + 1);
  const cut = lines.slice(0, CUT_LINES).join("\n").slice(0, CUT_CHARACTERS);
  const pre = h("pre", { tabindex: "0", ...props }, visible(cut));
  add(node, pre);
  if (cut.length < text.length) {
    const more = button(`Show all (${bytes(text.length)})`, () => {
      fill(pre, visible(text));
      more.remove();
      pre.focus();
    }, { class: "quiet small" });
    add(node, [h("p", { class: "cut" }, "⋯ cut here. ", more)]);
  }
  return node;
}

export function json(value, label) {
  return longText(pretty(value), { class: "json", "aria-label": label ?? "JSON" });
}

const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|[\u{e0000}-\u{e007f}]/gu;

// Characters that nobody sees, and those that turn the direction of a text, are written out.
export function visible(text) {
  const parts = [];
  let from = 0;
  for (const found of text.matchAll(UNSEEN)) {
    parts.push(text.slice(from, found.index), h("mark", { class: "unseen-character", title: "A character that is not shown" },
      `U+${found[0].codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`));
    from = found.index + found[0].length;
  }
  parts.push(text.slice(from));
  return parts;
}

// An address as text, the host marked. It opens only when somebody presses the button, and agrees.
export function address(text) {
  let url = null;
  try {
    url = new URL(text);
  } catch {
    // It is shown as it is.
  }
  const web = url && (url.protocol === "https:" || url.protocol === "http:");
  const at = web ? text.indexOf(url.host, url.protocol.length) : -1;
  const shown = at >= 0
    ? [visible(text.slice(0, at)), h("strong", { class: "host" }, url.host), visible(text.slice(at + url.host.length))]
    : visible(text);
  const copy = button("Copy address", () => copyText(text), { class: "small" });
  const open = web ? button("Open address…", () => openAddress(url), { class: "small" }) : null;
  return h("div", { class: "address" }, h("p", { class: "address-text" }, shown),
    web ? h("p", { class: "address-host" }, "Host: ", h("strong", null, url.host), url.protocol === "http:" ? " (not encrypted)" : null,
      url.username ? h("strong", { class: "bad-text" }, " The part before @ is a user name, not the host.") : null,
      at < 0 ? h("strong", { class: "bad-text" }, " The host is written differently in the address: look twice.") : null)
      : h("p", { class: "address-host" }, "This is not a web address, so it cannot be opened from here."),
    h("div", { class: "buttons" }, copy, open));
}

async function openAddress(url) {
  const agreed = await confirm({
    title: "Open this address?",
    text: "A server gave this address. It opens in a new tab, and the site will see that you came.",
    detail: h("p", { class: "big-host" }, url.host),
    yes: `Open ${url.host}`,
  });
  if (!agreed) return;
  // A window opened with noopener knows nothing of this page.
  window.open(url.href, "_blank", "noopener,noreferrer");
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    notice("Copied.");
  } catch {
    notice("This browser does not let the page copy. Select the text instead.", "bad");
  }
}

// What should be a list, and may be anything.
export function list(value) {
  return Array.isArray(value) ? value : [];
}

// The blocks of a message or a result: one, or many.
export function blocks(content) {
  return [content].flat().filter((block) => block !== undefined && block !== null);
}

// One block of content, as what it is.
export function block(one) {
  if (typeof one === "string") return longText(one, { class: "text" });
  if (one.type === "text") return longText(String(one.text ?? ""), { class: "text" });
  if (one.type === "image") return picture(one);
  if (one.type === "audio") return attachment("Audio", one.mimeType, one.data);
  if (one.type === "resource" && typeof one.resource?.text === "string") {
    return h("figure", null, h("figcaption", null, "Resource ", h("code", null, String(one.resource.uri ?? ""))), longText(one.resource.text, { class: "text" }));
  }
  if (one.type === "resource_link") {
    return h("p", null, "Link to a resource: ", h("code", null, visible(String(one.uri ?? ""))));
  }
  return h("figure", null, h("figcaption", null, `Content of the kind ${String(one.type ?? "(none)")}`), json(one));
}

function picture({ mimeType, data }) {
  if (!canShowPicture(mimeType, data)) return attachment("Picture", mimeType, data);
  return h("figure", { class: "picture" }, h("img", { src: `data:${mimeType};base64,${data}`, alt: "Picture in the message" }),
    h("figcaption", null, `Picture, ${mimeType}, ${size(data)}`));
}

function attachment(what, mimeType, data) {
  return h("p", { class: "attachment" }, h("strong", null, `${what} attachment`), ` ${String(mimeType ?? "of no known type")}, ${size(data)}`);
}

function size(data) {
  return bytes(Math.floor((String(data ?? "").length * 3) / 4));
}

// Saves a file that was made here.
export function save(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.setAttribute("href", url);
  link.setAttribute("download", name);
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
