// Builds what is on the page. Everything that is shown is data, often from people we do not know:
// so it only ever becomes text, and attributes from a short list. Nothing here reads markup.

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

// The same for pictures of our own.
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
    // Links lead within the console only.
    if (!String(value).startsWith("#")) throw new Error("a link has to lead within the console");
    node.setAttribute("href", value);
  } else if (name === "src") {
    if (!PICTURE.test(value) && value !== "/console/icon.svg") throw new Error("not a picture that is shown");
    node.setAttribute("src", value);
  } else if (AS_PROPERTY.has(name)) {
    node[name] = value;
  } else if (name.startsWith("aria-") || ATTRIBUTES.has(name)) {
    node.setAttribute(name, value === true ? "" : String(value));
  } else {
    throw new Error(`the attribute ${name} is not on the list`);
  }
}

export function canShowPicture(mimeType, data) {
  return PICTURE.test(`data:${mimeType};base64,${data}`);
}

export function add(node, children) {
  for (const child of [children].flat(Infinity)) {
    if (child === null || child === undefined || child === false || child === "") continue;
    node.append(child instanceof Node ? child : String(child));
  }
}

// Replaces what is in a node.
export function fill(node, ...children) {
  node.replaceChildren();
  add(node, children);
  return node;
}

// Sets a text only where it changed, so that screen readers and selections are left in peace.
export function say(node, text) {
  if (node.textContent !== text) node.textContent = text;
}

// Keeps the children of a node in step with a list. Nodes are kept by key, so that the one that has
// the focus or the pointer stays the same one.
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
// An id for a label or a description to point to.
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
  return h("div", { class: "callout", "data-tone": "bad", role: "alert" }, error?.message ?? String(error));
}
