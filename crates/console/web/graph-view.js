// A graph in SVG: entities as circles, sized by their mentions, and relations as labelled lines. It can be panned,
// zoomed, and navigated with the arrow keys.

import { add, button, fill, h, spelled, svg } from "./dom.js";
import { layout } from "./force.js";
import { plural } from "./words.js";

const LETTER = 7.5;
const LINE = 15;
const TEXT_PX = 12;
const LONGEST = 26;
const MARGIN = 46;
const STEPS_PER_FRAME = 3;
const CLOSEST = 0.25;
// The longest animation; after it, the rest is computed at once.
const LONGEST_MS = 2500;
// The possible positions of a label on its line.
const PLACES = [0.5, 0.4, 0.6, 0.3, 0.7];

// graphView({open, label}) → {node, show(entities, relations, chosen), close}
export function graphView({ open, label }) {
  const lines = svg("g", { class: "edges" });
  const circles = svg("g", { class: "nodes" });
  const words = svg("g", { class: "edge-words", "aria-hidden": "true" });
  const names = svg("g", { class: "node-names", "aria-hidden": "true" });
  const picture = svg("svg", { class: "graph", role: "group", "aria-label": label, preserveAspectRatio: "xMidYMid meet" }, lines, words, circles, names);
  const known = new Map();
  let [nodes, edges] = [[], []];
  let moving = null;
  let simulation = null;
  let view = { x: -300, y: -200, w: 600, h: 400 };
  // Until the user moves the picture, all of it is shown.
  let isFitted = true;

  const zoom = (factor) => () => {
    isFitted = false;
    const w = Math.max(view.w * factor, 60);
    setView({ x: view.x + (view.w - w) / 2, y: view.y + (view.h * (1 - w / view.w)) / 2, w, h: (view.h * w) / view.w });
    placeNames();
  };
  const refit = () => {
    isFitted = true;
    fit();
    placeNames();
  };
  const node = h("div", { class: "graph-frame" }, picture,
    h("div", { class: "graph-buttons" }, button("+", zoom(0.75), { class: "square", "aria-label": "Zoom in" }), button("−", zoom(1 / 0.75), { class: "square", "aria-label": "Zoom out" }), button("Show all", refit, { class: "small" })));

  function show(entities, relations, chosen) {
    const had = picture.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    const most = Math.max(1, ...entities.map((entity) => entity.mentions ?? 0));
    nodes = entities.map((entity) => {
      const one = known.get(entity.id) ?? { id: entity.id };
      known.set(entity.id, one);
      return Object.assign(one, { entity, r: 7 + 15 * Math.sqrt((entity.mentions ?? 0) / most) });
    });
    const ends = new Map(nodes.map((one) => [one.id, one]));
    edges = relations.filter((one) => ends.has(one.from) && ends.has(one.to)).map((relation) => ({ relation, from: ends.get(relation.from), to: ends.get(relation.to) }));
    // A new node starts beside a related one.
    for (const { from, to } of edges) if (from.x === undefined && to.x !== undefined) near(from, to); else if (to.x === undefined && from.x !== undefined) near(to, from);
    build(chosen);
    simulation = layout(nodes, edges, ratio());
    if (had) nodes.find((one) => one.id === had)?.circle.focus();
    run();
  }

  function build(chosen) {
    const beside = new Set(edges.filter(({ from, to }) => from.id === chosen || to.id === chosen).flatMap(({ from, to }) => [from.id, to.id]));
    const how = (one) => (!chosen ? null : one.id === chosen ? "chosen" : beside.has(one.id) ? "near" : "far");
    for (const edge of edges) {
      edge.state = !chosen ? null : edge.from.id === chosen || edge.to.id === chosen ? "near" : "far";
      edge.line = svg("path", { "data-state": edge.state, "stroke-width": 1 + (edge.relation.weight ?? 1) });
      edge.text = svg("text", { "text-anchor": "middle", "data-state": edge.state }, cut(edge.relation.relation_type));
    }
    nodes.forEach((one, at) => {
      one.state = how(one);
      one.circle = svg("circle", { r: one.r, role: "button", tabindex: one.id === chosen || (at === 0 && !chosen) ? "0" : "-1", "data-key": one.id, "data-state": one.state, "aria-label": spoken(one.entity), "aria-current": one.id === chosen ? "true" : null });
      add(one.circle, svg("title", null, spoken(one.entity)));
      one.circle.addEventListener("click", () => {
        if (!one.wasDragged) open(one.id);
        one.wasDragged = false;
      });
      one.circle.addEventListener("focus", () => name(one, true));
      one.circle.addEventListener("pointerenter", () => name(one, true));
      one.text = svg("text", { "text-anchor": "middle", "data-state": one.state }, cut(one.entity.name));
    });
    fill(lines, edges.map((edge) => edge.line));
    fill(words, edges.map((edge) => edge.text));
    fill(circles, nodes.map((one) => one.circle));
    fill(names, nodes.map((one) => one.text));
  }

  // Animates the layout until it is stable; without animation if the user prefers reduced motion.
  function run() {
    cancelAnimationFrame(moving);
    const isStill = matchMedia("(prefers-reduced-motion: reduce)").matches || document.hidden;
    const began = performance.now();
    const frame = () => {
      let going = true;
      const still = isStill || performance.now() - began > LONGEST_MS;
      for (let count = 0; going && (still || count < STEPS_PER_FRAME); count += 1) going = simulation.step();
      place();
      if (going) moving = requestAnimationFrame(frame);
      else placeNames();
    };
    frame();
  }

  function place() {
    for (const { line, text, from, to } of edges) {
      const [mx, my] = [(from.x + to.x) / 2, (from.y + to.y) / 2];
      if (from === to) line.setAttribute("d", `M${from.x} ${from.y - from.r}c-40 -50 40 -50 0 0`);
      else line.setAttribute("d", arrow(from, to));
      put(text, mx, from === to ? from.y - from.r - 34 : my);
    }
    for (const one of nodes) {
      one.circle.setAttribute("cx", one.x.toFixed(1));
      one.circle.setAttribute("cy", one.y.toFixed(1));
    }
    if (isFitted) fit();
    for (const one of nodes) put(one.text, one.x, one.y + one.r + TEXT_PX * scale());
  }

  const scale = () => Math.max(view.w / (picture.clientWidth || 600), view.h / (picture.clientHeight || 400));
  const ratio = () => Math.min(2, Math.max(0.6, (picture.clientWidth || 600) / (picture.clientHeight || 400)));

  function fit() {
    if (!nodes.length) return;
    const [xs, ys] = [nodes.map((one) => one.x), nodes.map((one) => one.y)];
    const [left, right, top, bottom] = [Math.min(...xs) - MARGIN, Math.max(...xs) + MARGIN, Math.min(...ys) - MARGIN - 20, Math.max(...ys) + MARGIN];
    // A small graph is not enlarged.
    const w = Math.max(right - left, picture.clientWidth || 600);
    const high = Math.max(bottom - top, picture.clientHeight || 400);
    setView({ x: (left + right - w) / 2, y: (top + bottom - high) / 2, w, h: high });
  }

  function setView(next) {
    view = next;
    picture.setAttribute("viewBox", [view.x, view.y, view.w, view.h].map((part) => part.toFixed(1)).join(" "));
    picture.dataset.state = isFitted ? "fitted" : "moved";
    for (const group of [names, words]) group.setAttribute("font-size", (TEXT_PX * scale()).toFixed(2));
  }

  // Places names where there is room, the most mentioned first, and then the labels of relations.
  function placeNames() {
    const taken = [];
    const by = scale();
    const room = (text, x, y, node) => {
      const half = (text.textContent.length * LETTER * by) / 2;
      const box = [x - half, y - LINE * by, x + half, y + 3 * by];
      if (taken.some((other) => box[0] < other[2] && box[2] > other[0] && box[1] < other[3] && box[3] > other[1])) return false;
      // Labels may cover nodes in the background.
      if (nodes.some((other) => other !== node && (other.state !== "far" || node?.state === "far") && other.x + other.r > box[0] && other.x - other.r < box[2] && other.y + other.r > box[1] && other.y - other.r < box[3])) return false;
      taken.push(box);
      return true;
    };
    const named = (some) => some.sort((a, b) => b.r - a.r).forEach((one) => {
      const [below, above] = [one.y + one.r + TEXT_PX * by, one.y - one.r - 4 * by];
      const free = [below, above].find((y) => room(one.text, one.x, y, one));
      put(one.text, one.x, free ?? below);
      name(one, free !== undefined);
    });
    named(nodes.filter((one) => one.state !== "far"));
    for (const { text, from, to, state } of edges) {
      const free = state === "far" ? undefined : from === to ? 0.5 : PLACES.find((share) => room(text, ...along(from, to, share), null));
      text.classList.toggle("without-room", free === undefined);
      if (free !== undefined && from !== to) put(text, ...along(from, to, free));
    }
    named(nodes.filter((one) => one.state === "far"));
  }

  const name = (one, shown) => one.text.classList.toggle("without-room", !shown);

  // The arrow keys go to the nearest node in their direction.
  const ARROWS = { __proto__: null, ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  picture.addEventListener("keydown", (event) => {
    const here = nodes.find((one) => one.circle === event.target);
    if (!here || event.ctrlKey || event.metaKey || event.altKey) return;
    const way = ARROWS[event.key];
    if (way) {
      const far = (one) => {
        const along = (one.x - here.x) * way[0] + (one.y - here.y) * way[1];
        const aside = Math.abs((one.x - here.x) * way[1] - (one.y - here.y) * way[0]);
        return along > 0 ? along + 2 * aside : Infinity;
      };
      const next = nodes.filter((one) => one !== here).map((one) => [far(one), one]).filter(([distance]) => distance < Infinity).sort(([a], [b]) => a - b)[0]?.[1];
      if (next) {
        here.circle.setAttribute("tabindex", "-1");
        next.circle.setAttribute("tabindex", "0");
        next.circle.focus();
      }
    } else if (event.key === "Enter" || event.key === " ") open(here.id);
    else if (event.key === "+") zoom(0.75)();
    else if (event.key === "-") zoom(1 / 0.75)();
    else return;
    event.preventDefault();
    event.stopPropagation();
  });

  // The pointer moves a circle, or the whole picture.
  let drag = null;
  picture.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    const held = nodes.find((one) => one.circle === event.target) ?? null;
    drag = { held, x: event.clientX, y: event.clientY, far: 0 };
    if (held) held.wasDragged = false;
  });
  const drags = (event) => {
    if (!drag) return;
    const by = scale();
    const [dx, dy] = [(event.clientX - drag.x) * by, (event.clientY - drag.y) * by];
    drag.far += Math.hypot(dx, dy) / by;
    // Small movements are ignored.
    if (drag.far < 4) return;
    [drag.x, drag.y] = [event.clientX, event.clientY];
    isFitted = false;
    if (drag.held) {
      drag.held.x += dx;
      drag.held.y += dy;
      Object.assign(drag.held, { held: true, wasDragged: true });
      place();
    } else {
      setView({ ...view, x: view.x - dx, y: view.y - dy });
    }
  };
  const drops = () => {
    if (drag?.held) drag.held.held = false;
    if (drag?.far >= 4) placeNames();
    drag = null;
  };
  picture.addEventListener("wheel", (event) => {
    // Without Ctrl, the wheel scrolls the page.
    if (!event.ctrlKey) return;
    event.preventDefault();
    if (event.deltaY < 0 && view.w < 600 * CLOSEST) return;
    zoom(event.deltaY < 0 ? 0.9 : 1 / 0.9)();
  }, { passive: false });
  addEventListener("pointermove", drags);
  addEventListener("pointerup", drops);
  addEventListener("pointercancel", drops);
  const watch = new ResizeObserver(() => {
    if (isFitted) fit();
    if (nodes.length && nodes[0].x !== undefined) placeNames();
  });
  watch.observe(picture);

  return {
    node,
    show,
    close() {
      cancelAnimationFrame(moving);
      watch.disconnect();
      removeEventListener("pointermove", drags);
      removeEventListener("pointerup", drops);
      removeEventListener("pointercancel", drops);
    },
  };
}

// A position on the line between two circles, measured from its start; labels are slightly below it.
function along(from, to, share) {
  return [from.x + (to.x - from.x) * share, from.y + (to.y - from.y) * share + 4];
}

function near(one, other) {
  const angle = [...one.id].reduce((sum, letter) => sum + letter.codePointAt(0), 0);
  one.x = other.x + 60 * Math.cos(angle);
  one.y = other.y + 60 * Math.sin(angle);
}

// An arrow between the edges of two circles.
function arrow(from, to) {
  const [dx, dy] = [to.x - from.x, to.y - from.y];
  const distance = Math.hypot(dx, dy) || 1;
  const [ux, uy] = [dx / distance, dy / distance];
  const [ax, ay] = [from.x + ux * from.r, from.y + uy * from.r];
  const [bx, by] = [to.x - ux * (to.r + 2), to.y - uy * (to.r + 2)];
  const head = (side) => `${(bx - ux * 8 - uy * 4 * side).toFixed(1)} ${(by - uy * 8 + ux * 4 * side).toFixed(1)}`;
  return `M${ax.toFixed(1)} ${ay.toFixed(1)}L${bx.toFixed(1)} ${by.toFixed(1)}M${head(1)}L${bx.toFixed(1)} ${by.toFixed(1)}L${head(-1)}`;
}

function put(text, x, y) {
  text.setAttribute("x", x.toFixed(1));
  text.setAttribute("y", y.toFixed(1));
}

function cut(text) {
  const shown = spelled(String(text ?? ""));
  return shown.length > LONGEST ? `${[...shown].slice(0, LONGEST - 1).join("")}…` : shown;
}

export function spoken({ name, entity_type: kind, mentions }) {
  const short = String(name).length > 120 ? `${String(name).slice(0, 119)}…` : name;
  return `${short}${kind ? `, ${kind}` : ""}, mentioned in ${plural(mentions ?? 0, "memory", "memories")}`;
}
