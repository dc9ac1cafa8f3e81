// Compares two texts line by line, and changed lines word by word.

import { h, plain } from "./dom.js";

const MOST_PAIRS = 1_000_000;
const AROUND = 2;

// The longest common subsequence as pairs of positions, or null if it would take too long.
function common(before, after) {
  const width = after.length + 1;
  if ((before.length + 1) * width > MOST_PAIRS) return null;
  const length = new Uint32Array((before.length + 1) * width);
  for (let i = before.length - 1; i >= 0; i -= 1) {
    for (let j = after.length - 1; j >= 0; j -= 1) {
      const at = i * width + j;
      length[at] = before[i] === after[j] ? length[at + width + 1] + 1 : Math.max(length[at + width], length[at + 1]);
    }
  }
  const pairs = [];
  for (let i = 0, j = 0; i < before.length && j < after.length;) {
    const at = i * width + j;
    if (before[i] === after[j]) pairs.push([i++, j++]);
    else if (length[at + width] >= length[at + 1]) i += 1;
    else j += 1;
  }
  return pairs;
}

// The steps [{kind: "same"|"less"|"more", text}]. Lists may be long, so they are never spread into arguments.
export function compare(before, after) {
  // The common beginning and end need no search.
  let [start, end] = [0, 0];
  const shorter = Math.min(before.length, after.length);
  while (start < shorter && before[start] === after[start]) start += 1;
  while (end < shorter - start && before.at(-1 - end) === after.at(-1 - end)) end += 1;
  const same = (texts) => texts.map((text) => ({ kind: "same", text }));
  const middle = between(before.slice(start, before.length - end), after.slice(start, after.length - end));
  return [...same(before.slice(0, start)), ...middle, ...same(before.slice(before.length - end))];
}

function between(before, after) {
  const steps = [];
  let [i, j] = [0, 0];
  const upTo = (a, b) => {
    while (i < a) steps.push({ kind: "less", text: before[i++] });
    while (j < b) steps.push({ kind: "more", text: after[j++] });
  };
  for (const [a, b] of common(before, after) ?? []) {
    upTo(a, b);
    steps.push({ kind: "same", text: before[a] });
    [i, j] = [a + 1, b + 1];
  }
  upTo(before.length, after.length);
  return steps;
}

// Renders a diff. Lines far from any change are folded.
export function diffView(before, after, label, head = null) {
  const steps = compare(before.split("\n"), after.split("\n"));
  const near = steps.map((_, at) => steps.slice(Math.max(0, at - AROUND), at + AROUND + 1).some((step) => step.kind !== "same"));
  const rows = [];
  for (let at = 0; at < steps.length; at += 1) {
    const step = steps[at];
    if (!near[at]) {
      if (near[at - 1] ?? at === 0) rows.push(h("div", { class: "diff-gap" }, "⋯"));
      continue;
    }
    const less = run(steps, at, "less");
    const more = run(steps, at + less.length, "more");
    if (!less.length && !more.length) {
      rows.push(line("same", step.text));
      continue;
    }
    if (less.length === more.length) {
      const pairs = less.map((text, which) => changedLine(text, more[which]));
      rows.push(pairs.map(([old]) => old), pairs.map(([, now]) => now));
    } else {
      rows.push(less.map((text) => line("less", text)), more.map((text) => line("more", text)));
    }
    at += less.length + more.length - 1;
  }
  return h("div", { class: "diff", role: "group", "aria-label": label ?? "Changes", tabindex: "0" }, head, rows);
}

// The consecutive texts of one kind.
function run(steps, from, kind) {
  let to = from;
  while (steps[to]?.kind === kind) to += 1;
  return steps.slice(from, to).map((step) => step.text);
}

const SIGN = { same: " ", less: "−", more: "+" };
const SPOKEN = { same: null, less: "removed: ", more: "added: " };

function line(kind, text) {
  return h("div", { class: `diff-line ${kind}` },
    h("span", { class: "diff-sign", "aria-hidden": "true" }, SIGN[kind]),
    SPOKEN[kind] ? h("span", { class: "unseen" }, SPOKEN[kind]) : null,
    h("span", { class: "diff-text" }, text.length ? text : "\u00a0"));
}

// A changed line, before and after, with the changed words marked.
function changedLine(before, after) {
  const words = (text) => text.split(/(\s+|[^\p{L}\p{N}_]+)/u).filter(Boolean);
  const steps = compare(words(before), words(after));
  return [line("less", side(steps, "less")), line("more", side(steps, "more"))];
}

// One side of a changed line; adjacent words of one kind are joined.
function side(steps, kind) {
  const parts = [];
  let [last, texts] = [null, []];
  const put = () => texts.length && parts.push(last === "same" ? texts.join("") : h(kind === "less" ? "del" : "ins", null, texts.join("")));
  for (const step of steps) {
    if (step.kind !== "same" && step.kind !== kind) continue;
    if (step.kind !== last) {
      put();
      [last, texts] = [step.kind, []];
    }
    texts.push(step.text);
  }
  put();
  return parts;
}

const isNone = (value) => value === null || value === undefined;

// The changed fields with their values before and after, as compared by the gateway.
export function changesView(changes) {
  return h("div", { class: "stack" }, changes.map(({ field, before, after }) => {
    const label = "Changes";
    const head = h("div", { class: "diff-field" }, plain(field), isNone(before) ? " (new)" : isNone(after) ? " (removed)" : "");
    if (!isNone(before) && !isNone(after)) return diffView(plain(before), plain(after), label, head);
    return h("div", { class: "diff", role: "group", "aria-label": label, tabindex: "0" }, head, plain(before ?? after).split("\n").map((row) => line(isNone(before) ? "more" : "less", row)));
  }));
}

// Renders a text diff of the gateway, whose lines begin with - and +. Marks within a line stay as they are, since a
// server can forge them.
export function writtenDiff(text) {
  return h("div", { class: "diff", role: "group", "aria-label": "Changes", tabindex: "0" }, text.replace(/\n$/, "").split("\n").map((row) => {
    // A sign is always in this column: text that looks like one is indented further.
    if (row.startsWith("  - ")) return line("less", row.slice(4));
    if (row.startsWith("  + ")) return line("more", row.slice(4));
    return row.startsWith("  ") ? line("same", row.slice(4)) : h("div", { class: "diff-field" }, row);
  }));
}
