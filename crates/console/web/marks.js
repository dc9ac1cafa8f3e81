// States and outcomes as a shape, a word and a colour, so that colour is never the only sign.

import { h, svg } from "./dom.js";

const SHAPES = {
  full: () => svg("circle", { cx: 6, cy: 6, r: 4.5, fill: "currentColor" }),
  ring: () => svg("circle", { cx: 6, cy: 6, r: 3.8, fill: "none", stroke: "currentColor", "stroke-width": 1.6 }),
  half: () => [svg("circle", { cx: 6, cy: 6, r: 3.8, fill: "none", stroke: "currentColor", "stroke-width": 1.6 }), svg("path", { d: "M6 2.200a3.800 3.800 0 0 1 0 7.600z", fill: "currentColor" })],
  triangle: () => svg("path", { d: "M6 1.200 11.200 10.500H.8z", fill: "currentColor" }),
  square: () => svg("rect", { x: 1.6, y: 1.6, width: 8.8, height: 8.8, rx: 1, fill: "currentColor" }),
  dash: () => svg("path", { d: "M2 6h8", stroke: "currentColor", "stroke-width": 2 }),
  tick: () => svg("path", { d: "M1.800 6.400 4.800 9.400 10.400 2.800", fill: "none", stroke: "currentColor", "stroke-width": 1.9 }),
  cross: () => svg("path", { d: "M2.500 2.500 9.500 9.500M9.500 2.500 2.500 9.500", stroke: "currentColor", "stroke-width": 1.9 }),
  clock: () => svg("path", { d: "M6 1.500a4.500 4.500 0 1 0 .01 0M6 3.600V6l1.800 1.200", fill: "none", stroke: "currentColor", "stroke-width": 1.4 }),
};

const MARKS = {
  __proto__: null,
  ready: ["full", "good"], idle: ["ring", "calm"], starting: ["half", "busy"], retrying: ["triangle", "warn"], parked: ["square", "bad"], "needs sign-in": ["triangle", "warn"], disabled: ["dash", "calm"], stopping: ["half", "calm"],
  initializing: ["half", "busy"], loading: ["half", "busy"], filling: ["half", "busy"], off: ["dash", "calm"], error: ["square", "bad"],
  ok: ["tick", "good"], tool_error: ["cross", "bad"], cancelled: ["dash", "calm"], timeout: ["clock", "warn"],
  pending: ["half", "busy"], orphaned: ["triangle", "warn"], generating: ["half", "busy"], reviewing: ["half", "busy"],
  approved: ["tick", "good"], accepted: ["tick", "good"], rejected: ["cross", "bad"], declined: ["cross", "bad"],
  timed_out: ["clock", "warn"], withdrawn: ["dash", "calm"], failed: ["square", "bad"], escalated: ["triangle", "warn"],
  changed: ["triangle", "warn"], new: ["ring", "busy"], hidden: ["square", "bad"], danger: ["square", "bad"], dangerous: ["square", "bad"], warn: ["triangle", "warn"], note: ["ring", "calm"], held: ["triangle", "warn"],
  allow: ["tick", "good"], ask: ["half", "busy"], deny: ["cross", "bad"],
};

const WORDS = {
  __proto__: null,
  tool_error: "tool error", timed_out: "timed out", initializing: "starting", hidden: "hidden characters",
};

export const KIND_WORDS = { __proto__: null, sampling: "Sampling", elicitation: "Question", tool_call: "Tool call", resource: "Resource", prompt: "Prompt", trust: "Trust" };

// A request in one sentence: its summary, with the client or the server as the subject. Arguments are left to
// `details`, since JSON in a heading is hard to read.
export function sentence(approval) {
  const who = ["tool_call", "resource", "prompt"].includes(approval.kind) ? approval.client || "A client" : approval.server;
  const summary = HAS_ARGUMENTS.has(approval.kind) ? approval.summary?.replace(/ with [{[].*$/s, "") : approval.summary;
  if (!summary) return `${who}: ${KIND_WORDS[approval.kind] ?? approval.kind}`;
  return /^\p{Ll}/u.test(summary) ? `${who} ${summary}` : summary;
}

// Tests if a warning only says that no model is configured. It decides which buttons are shown, and is not suspicious.
// A warning of another kind may begin with a name that a server chose.
const isOfModel = (approval, text) => approval.kind === "sampling" && text.startsWith("no model is configured: ");

export function lacksModel(approval) {
  return (approval.warnings ?? []).some((text) => isOfModel(approval, text));
}

// The warnings about suspicious content.
export function suspicious(approval) {
  return (approval.warnings ?? []).filter((text) => !isOfModel(approval, text));
}

const HAS_ARGUMENTS = new Set(["tool_call", "prompt"]);
const MOST_DETAILS = 240;

// The arguments in one line: "path: notes.txt, lines: 3". Null if there are none; as JSON if they are truncated.
export function details(approval) {
  if (!HAS_ARGUMENTS.has(approval.kind)) return null;
  const said = approval.request?.arguments;
  if (said === undefined) return / with ([{[].*)$/s.exec(approval.summary ?? "")?.[1] ?? null;
  if (said === null || typeof said !== "object") return JSON.stringify(said);
  const line = Object.entries(said).map(([name, value]) => `${name}: ${typeof value === "string" ? value : JSON.stringify(value)}`).join(", ").replace(/\s+/g, " ");
  return (line.length > MOST_DETAILS ? `${line.slice(0, MOST_DETAILS - 1)}…` : line) || null;
}

export function word(state) {
  return WORDS[state] ?? state;
}

// mark("ready") or mark("escalated", "other words")
export function mark(state, words) {
  const [shape, tone] = MARKS[state] ?? ["ring", "calm"];
  return h("span", { class: "mark", "data-tone": tone },
    svg("svg", { viewBox: "0 0 12 12", "aria-hidden": "true", focusable: "false" }, SHAPES[shape]()), words ?? word(state));
}

export function chip(text, tone) {
  return h("span", { class: "chip", "data-tone": tone }, text);
}
