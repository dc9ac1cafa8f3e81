// Builds the nodes of the page. The data is untrusted, so it becomes only text, or one of a few attributes. Nothing
// here parses markup.

const ATTRIBUTES = new Set([
  "id", "class", "type", "role", "name", "for", "title", "lang", "dir", "tabindex", "hidden", "open",
  "disabled", "readonly", "required", "multiple", "placeholder", "rows", "cols", "min", "max", "step",
  "minlength", "maxlength", "pattern", "inputmode", "autocomplete", "spellcheck", "datetime", "scope",
  "colspan", "label", "alt", "width", "height", "download", "rel", "list", "value", "checked", "selected",
  "data-ago", "data-left", "data-until", "data-key", "data-state", "data-tone", "data-label", "data-kind",
  // SVG
  "viewBox", "d", "x", "y", "x1", "y1", "x2", "y2", "cx", "cy", "r", "rx", "points", "fill", "stroke",
  "preserveAspectRatio", "text-anchor", "focusable", "transform", "stroke-width",
]);
const AS_PROPERTY = new Set(["value", "checked", "selected", "open"]);
const PICTURE = /^data:image\/(png|jpeg|gif|webp|avif);base64,[A-Za-z0-9+/=\s]*$/;
const SVG = "http://www.w3.org/2000/svg";

// h("p", {class: "note"}, "text", otherNode): one element.
export function h(tag, props, ...children) {
  return build(document.createElement(tag), props, children);
}

// The same for SVG.
export function svg(tag, props, ...children) {
  return build(document.createElementNS(SVG, tag), props, children);
}

function build(node, props, children) {
  for (const [name, value] of Object.entries(props ?? {})) setProp(node, name, value);
  add(node, children);
  return node;
}

function setProp(node, name, value) {
  if (value === undefined || value === null || value === false) return;
  if (name === "on") {
    for (const [event, act] of Object.entries(value)) node.addEventListener(event, act);
  } else if (name === "href") {
    // Links stay within the console.
    if (!String(value).startsWith("#")) throw new Error("a link must stay within the console");
    node.setAttribute("href", value);
  } else if (name === "src") {
    if (!PICTURE.test(value) && value !== "/console/icon.svg") throw new Error("this source of an image is not allowed");
    node.setAttribute("src", value);
  } else if (AS_PROPERTY.has(name)) {
    node[name] = value;
  } else if (name.startsWith("aria-") || ATTRIBUTES.has(name)) {
    node.setAttribute(name, value === true ? "" : spelled(String(value)));
  } else {
    throw new Error(`the attribute ${name} is not allowed`);
  }
}

export function canShowPicture(mimeType, data) {
  return PICTURE.test(`data:${mimeType};base64,${data}`);
}

// Adds children. Invisible characters of text are spelled out here, so that no caller can forget it.
export function add(node, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    if (child instanceof Node) node.append(child);
    else for (const part of node.localName === "option" || node.namespaceURI === SVG ? [spelled(String(child))] : visible(String(child))) node.append(part);
  }
}

// A run of one invisible character, from the same set that the gateway spells out, or a run of blanks or line breaks
// that is long enough to push text off the page.
const UNSEEN = /((?:[ \t](?=[ \t]{80})|\n(?=\n{8})|[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u2028-\u202e\u2060-\u206f\u2800\u3164\ud800-\udfff\ue000-\uf8ff\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\u{13430}-\u{1343f}\u{1bca0}-\u{1bca3}\u{1d173}-\u{1d17a}\u{e0000}-\u{10ffff}\p{NChar}]))\1*/gu;
// The most marks that are elements; later ones are spelled out as plain text.
const MOST_MARKS = 2000;

function codeOf([run, one]) {
  const count = run.length / one.length;
  return `U+${one.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}${count > 1 ? ` × ${count}` : ""}`;
}

// Spells out invisible characters, and those that change the direction of text.
export function visible(text) {
  if (text.search(UNSEEN) < 0) return [text];
  const parts = [];
  let from = 0;
  let marks = 0;
  for (const found of text.matchAll(UNSEEN)) {
    if (marks === MOST_MARKS) break;
    marks += 1;
    const node = document.createElement("mark");
    node.className = "unseen-character";
    node.title = "Invisible character";
    node.textContent = codeOf(found);
    parts.push(text.slice(from, found.index), node);
    from = found.index + found[0].length;
  }
  parts.push(spelled(text.slice(from)));
  return parts.filter((part) => part !== "");
}

// The same for places that take only text: attributes and options.
export function spelled(text) {
  return text.replace(UNSEEN, (...found) => `⟨${codeOf(found)}⟩`);
}

// A value that should be a string, but may be any JSON. Not String(), which calls methods of the value.
export function plain(value) {
  return typeof value === "string" ? value : value === undefined || value === null ? "" : JSON.stringify(value);
}

// A message of the gateway, with `code` between backticks.
export function prose(text) {
  return plain(text).split(/`([^`\n]+)`/).map((part, at) => (at % 2 ? h("code", null, part) : part));
}

// Replaces the children of a node.
export function fill(node, ...children) {
  node.replaceChildren();
  add(node, children);
  return node;
}

// Sets the text of a node only if it changed, so that screen readers and selections are not disturbed.
export function say(node, text) {
  const parts = visible(String(text ?? ""));
  const shown = parts.map((part) => (part instanceof Node ? part.textContent : part)).join("");
  if (node.textContent !== shown) node.replaceChildren(...parts);
}

// Synchronises the children of a node with a list. Nodes are reused by key, so that the focus and the pointer stay on
// the same node.
export function keyed(parent, items, keyOf, create, update) {
  const old = new Map();
  for (const child of parent.children) old.set(child.dataset.key, child);
  let place = parent.firstElementChild;
  for (const item of items) {
    const key = String(keyOf(item));
    let node = old.get(key);
    if (node) {
      old.delete(key);
      update?.(node, item);
    } else {
      node = create(item);
      node.dataset.key = key;
    }
    while (place && old.has(place.dataset.key) && place !== node) {
      const gone = place;
      place = place.nextElementSibling;
      old.delete(gone.dataset.key);
      gone.remove();
    }
    if (node === place) place = place.nextElementSibling;
    else parent.insertBefore(node, place);
  }
  for (const node of old.values()) node.remove();
}

let serial = 0;
// An ID for a label or a description to refer to.
export function newId(stem) {
  serial += 1;
  return `${stem}-${serial}`;
}

export function button(label, act, props) {
  return h("button", { type: "button", ...props, on: { click: act } }, label);
}

// A label above a control, with a hint below.
export function field(label, control, hint) {
  if (!control.id) control.id = newId("field");
  const parts = [h("label", { for: control.id }, label), control];
  if (hint) {
    const note = h("p", { class: "hint", id: newId("hint") }, hint);
    control.setAttribute("aria-describedby", note.id);
    parts.push(note);
  }
  return h("div", { class: "field" }, parts);
}

// select([["value", "words"], …], chosen)
export function select(options, chosen, props) {
  const node = h("select", props, options.map(([value, words]) => h("option", { value }, words)));
  node.value = chosen ?? options[0]?.[0] ?? "";
  return node;
}

export function heading(title, ...beside) {
  return h("div", { class: "page-head" }, h("h1", { tabindex: "-1" }, title), beside.length ? h("div", { class: "page-head-end" }, beside) : null);
}

export function empty(title, text, ...more) {
  return h("div", { class: "empty" }, h("p", { class: "empty-title" }, title), text ? h("p", null, text) : null, more);
}

export function problem(error) {
  return h("div", { class: "callout", "data-tone": "bad", role: "alert" }, prose(error?.message ?? "An unknown error occurred."));
}
