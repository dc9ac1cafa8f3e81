// Small SVG charts, each with a title, a description and a table of its numbers.

import { add, fill, h, newId, svg } from "./dom.js";

const WIDTH = 600;
const HEIGHT = 150;
const BOTTOM = 22;
const TOP = 8;

// The maximum of the axis. For counts it is even, since its half is also on the axis.
function nice(most, counted) {
  if (!(most > 0)) return counted ? 2 : 1;
  const power = 10 ** Math.floor(Math.log10(most));
  const steps = counted ? [1, 2, 4, 6, 10] : [1, 2, 5, 10];
  return steps.map((step) => step * power).find((step) => step >= most && !(counted && step % 2));
}

// chart(figure, {title, summary, labels, short?, series: [{name, tone, values}], kind: "bars"|"lines", show, empty})
// With `short`, every position has a label; otherwise only the first, the middle and the last.
export function chart(figure, { title, summary, labels, short, series, kind, show, empty }) {
  const most = nice(Math.max(...(kind === "bars" ? labels.map((_, at) => sum(series, at)) : series.flatMap((one) => one.values.map((value) => value ?? 0))), 0), kind === "bars");
  const any = series.some((one) => one.values.some((value) => value > 0));
  const [titleId, descId] = [figure.dataset.title ??= newId("chart"), figure.dataset.desc ??= newId("chart")];
  const x = (at) => (WIDTH * (at + 0.5)) / labels.length;
  const y = (value) => TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / most);
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-labelledby": `${titleId} ${descId}`, preserveAspectRatio: "none" },
    svg("title", { id: titleId }, title), svg("desc", { id: descId }, any ? summary : empty));
  for (const part of [0, 0.5, 1]) {
    const at = y(most * part);
    add(picture, svg("line", { class: "grid", x1: 0, x2: WIDTH, y1: at, y2: at }));
  }
  add(picture, kind === "bars" ? bars(series, labels, x, y) : lines(series, x, y));

  const axis = h("div", { class: "chart-axis", "aria-hidden": "true" }, [1, 0.5, 0].map((part) => h("span", null, any || part === 0 ? show(most * part) : "")));
  const marks = [0, Math.floor((labels.length - 1) / 2), labels.length - 1];
  const below = h("div", { class: short ? "chart-labels each" : "chart-labels", "aria-hidden": "true" }, (short ?? marks.map((at) => labels[at])).map((label) => h("span", null, label)));
  const wasOpen = figure.querySelector("details")?.open ?? false;
  const hadFocus = figure.querySelector("summary") === document.activeElement && document.activeElement !== null;
  fill(figure,
    h("figcaption", null, h("h3", null, title), h("ul", { class: "legend" }, series.map((one) => h("li", { "data-tone": one.tone }, one.name)))),
    h("div", { class: "chart-plot" }, axis, picture, any ? null : h("p", { class: "chart-empty" }, empty)),
    below,
    any ? h("p", { class: "chart-summary" }, summary) : null,
    any ? table(labels, series, show, title, wasOpen) : null);
  if (hadFocus) figure.querySelector("summary")?.focus();
}

function sum(series, at) {
  return series.reduce((total, one) => total + (one.values[at] ?? 0), 0);
}

function bars(series, labels, x, y) {
  const width = Math.max(1, (WIDTH / labels.length) * (labels.length <= 8 ? 0.55 : 0.72));
  return labels.flatMap((_, at) => {
    let base = 0;
    return series.map((one) => {
      const value = one.values[at] ?? 0;
      const node = value > 0 && svg("rect", { class: "bar", "data-tone": one.tone, x: x(at) - width / 2, width, y: y(base + value), height: Math.max(1.5, y(base) - y(base + value)) });
      base += value;
      return node;
    });
  });
}

// A line has a gap where values are missing; a single value is a dot.
function lines(series, x, y) {
  return series.flatMap((one) => {
    const runs = [];
    one.values.forEach((value, at) => {
      if (value === null || value === undefined) return;
      if (at > 0 && (one.values[at - 1] ?? null) !== null) runs.at(-1).push([x(at), y(value)]);
      else runs.push([[x(at), y(value)]]);
    });
    return runs.flatMap((run) => [
      run.length > 1 && svg("path", { class: "line", "data-tone": one.tone, d: `M${run.map((point) => point.map((place) => place.toFixed(1)).join(" ")).join("L")}` }),
      run.length === 1 && svg("path", { class: "line dot", "data-tone": one.tone, d: `M${run[0].map((place) => place.toFixed(1)).join(" ")}h.01` }),
    ]);
  });
}

function table(labels, series, show, title, open) {
  const rows = labels.map((label, at) => [label, series.map((one) => one.values[at])]).filter(([, values]) => values.some((value) => value > 0));
  return h("details", { class: "numbers", open }, h("summary", null, "As a table"),
    h("div", { class: "scroll" }, h("table", { class: "plain-table" }, h("caption", { class: "unseen" }, title),
      h("thead", null, h("tr", null, h("th", { scope: "col" }, "Time"), series.map((one) => h("th", { scope: "col" }, one.name)))),
      h("tbody", null, rows.map(([label, values]) => h("tr", null, h("th", { scope: "row" }, label), values.map((value) => h("td", null, value === null || value === undefined ? "–" : show(value)))))))));
}
