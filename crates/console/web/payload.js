// Renders untrusted content: JSON, long texts, addresses, messages and results.

import { add, button, canShowPicture, fill, h, plain } from "./dom.js";
import { confirm, notice } from "./notices.js";
import { bytes, plural } from "./words.js";

export function pretty(value) {
  return value === undefined ? "" : JSON.stringify(value, null, 2);
}

// Indents JSON text without parsing it: long numbers are not rounded, and duplicate names stay visible.
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

// The limits of a preview, and of text that a decision depends on.
const BRIEF = { characters: 4000, lines: 60 };
export const WHOLE = { characters: 40_000, lines: 600 };
// One quarter of the shown text is its end, which may be the important part.
const END_SHARE = 4;

// A text that may be long: its beginning and end, and all of it on request. A truncated text has the class `cut`, so
// that it cannot be approved unread; the event `uncut` reports that all of it is shown.
export function longText(text, props, most = BRIEF) {
  const node = h("div", { class: "long" });
  const pre = h("pre", { tabindex: "0", ...props });
  const [head, tail] = ends(text, most);
  add(node, pre);
  if (tail === null) {
    add(pre, text);
    return node;
  }
  const left = text.length - head.length - tail.length;
  const open = () => {
    fill(pre, text);
    note.remove();
    pre.focus();
    node.dispatchEvent(new Event("uncut", { bubbles: true }));
  };
  fill(pre, head, h("span", { class: "cut-gap" }, `\n⋯ ${plural(left, "character")} omitted ⋯\n`), tail);
  const note = h("p", { class: "cut" }, "Truncated in the middle. ", button(`Show all (${bytes(text.length)})`, open, { class: "quiet small" }));
  add(node, note);
  return node;
}

// The beginning and the end of a long text; the end is null if the text is short enough.
function ends(text, { characters, lines }) {
  let breaks = 0;
  for (let at = text.indexOf("\n"); at >= 0 && breaks <= lines; at = text.indexOf("\n", at + 1)) breaks += 1;
  if (text.length <= characters && breaks <= lines) return [text, null];
  const most = Math.floor(characters / END_SHARE);
  const headEnd = place(text, lines - Math.floor(lines / END_SHARE), characters - most);
  const tail = text.slice(Math.max(headEnd, text.length - most)).split("\n").slice(-Math.floor(lines / END_SHARE)).join("\n");
  return [text.slice(0, headEnd), tail];
}

// The position after the given number of lines, but at most the given number of characters.
function place(text, lines, characters) {
  let at = -1;
  for (let line = 0; line < lines; line += 1) {
    at = text.indexOf("\n", at + 1);
    if (at < 0 || at > characters) return characters;
  }
  return at;
}

export function json(value, label, most) {
  return longText(pretty(value), { class: "json", "aria-label": label ?? "JSON" }, most);
}

// An address as text, with its host highlighted. It opens only if the user presses the button and confirms.
export function address(text) {
  let url = null;
  try {
    url = new URL(text);
  } catch {
    // It is shown verbatim.
  }
  const web = url && (url.protocol === "https:" || url.protocol === "http:");
  const at = web ? hostPlace(text, url.host) : -1;
  const shown = at >= 0 ? [text.slice(0, at), h("strong", { class: "host" }, url.host), text.slice(at + url.host.length)] : text;
  const copy = button("Copy address", () => copyText(text), { class: "small" });
  const open = web ? button("Open address…", () => openAddress(url), { class: "small" }) : null;
  return h("div", { class: "address" }, h("p", { class: "address-text" }, shown),
    web ? h("p", { class: "address-host" }, "Host: ", h("strong", null, url.host), url.protocol === "http:" ? " (not encrypted)" : null,
      url.username || url.password ? h("strong", { class: "bad-text" }, " The text before @ is a user name or password, not the host.") : null,
      at < 0 ? h("strong", { class: "bad-text" }, " The address spells the host differently: check it carefully.") : null)
      : h("p", { class: "address-host" }, "This is not a web address, so the console cannot open it."),
    h("div", { class: "buttons" }, copy, open));
}

// The position of the host in an address: after the slashes and after any user name, and nowhere else, since the path
// may contain the same letters.
function hostPlace(text, host) {
  const found = /^[a-z]+:\/\/(?:[^/?#\\]*@)?/i.exec(text);
  if (!found) return -1;
  const rest = text.slice(found[0].length);
  const fits = rest.toLowerCase().startsWith(host) && /^([:/?#\\]|$)/.test(rest.slice(host.length));
  return fits ? found[0].length : -1;
}

async function openAddress(url) {
  const agreed = await confirm({
    title: "Open this address?",
    text: "A server sent this address. It opens in a new tab, and the site can see your visit.",
    detail: h("p", { class: "big-host" }, url.host),
    yes: `Open ${url.host}`,
  });
  if (!agreed) return;
  // A window opened with noopener has no access to this page.
  window.open(url.href, "_blank", "noopener,noreferrer");
}

export async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
    notice("Copied.");
  } catch {
    notice("The browser does not allow this page to copy. Select the text instead.", "bad");
  }
}

// A value that should be a list, but may be anything.
export function list(value) {
  return Array.isArray(value) ? value : [];
}

// The blocks of a message or a result: one, or many.
export function blocks(content) {
  return [content].flat().filter((block) => block !== undefined && block !== null);
}

// One block of content, rendered by its type.
export function block(one, most) {
  const long = (text) => longText(text, { class: "text" }, most);
  if (typeof one === "string") return long(one);
  if (one.type === "text") return long(plain(one.text));
  if (one.type === "image") return picture(one);
  if (one.type === "audio") return attachment("Audio", one.mimeType, one.data);
  if (one.type === "resource" && typeof one.resource?.text === "string") {
    return h("figure", null, h("figcaption", null, "Resource ", h("code", null, plain(one.resource.uri))), long(one.resource.text));
  }
  if (one.type === "resource_link" && one.description === undefined) {
    return h("p", null, "Link to a resource: ", h("code", null, plain(one.uri)));
  }
  return h("figure", null, h("figcaption", null, `Content of type ${plain(one.type) || "(none)"}`), json(one, undefined, most));
}

function picture({ mimeType, data }) {
  if (typeof mimeType !== "string" || typeof data !== "string" || !canShowPicture(mimeType, data)) return attachment("Image", mimeType, data);
  return h("figure", { class: "picture" }, h("img", { src: `data:${mimeType};base64,${data}`, alt: "Image in the message" }),
    h("figcaption", null, `Image, ${mimeType}, ${size(data)}`));
}

function attachment(what, mimeType, data) {
  return h("p", { class: "attachment" }, h("strong", null, `${what} attachment`), ` ${plain(mimeType) || "of unknown type"}, ${size(data)}`);
}

function size(data) {
  return bytes(Math.floor((plain(data).length * 3) / 4));
}

// Saves a text as a file.
export function save(name, type, text) {
  const url = URL.createObjectURL(new Blob([text], { type }));
  const link = document.createElement("a");
  link.setAttribute("href", url);
  link.setAttribute("download", name);
  link.click();
  setTimeout(() => URL.revokeObjectURL(url), 10_000);
}
