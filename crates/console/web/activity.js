// Activity: the recorded calls, with filters, details and export.

import { get, path, query } from "./api.js";
import { openCall } from "./call.js";
import { button, empty, fill, h, heading, keyed, problem, say, select } from "./dom.js";
import { mark, word } from "./marks.js";
import { announce, notice } from "./notices.js";
import { save } from "./payload.js";
import { serverFilter } from "./server-filter.js";
import { loadCalls, on, state } from "./store.js";
import { atTime, bytes, lasting, latency, plural } from "./words.js";

const PAGE = 100;
const EXPORT_MOST = 10_000;
const TYPING_MS = 250;
// The shortest wait for an approver that is shown.
const SHOWN_WAIT_MS = 1;
const OUTCOMES = ["ok", "tool_error", "error", "cancelled", "timeout"];
const COLUMNS = ["id", "at", "server", "method", "name", "client", "durationMs", "waitedMs", "outcome", "code", "error", "requestBytes", "responseBytes"];
// The filter survives a visit to one call, and is cleared when the user leaves the page.
const kept = { server: "", outcome: "", text: "" };

export function open([id], from) {
  if (id) return openCall(id);
  if (!from?.startsWith("#activity/")) Object.assign(kept, { server: "", outcome: "", text: "" });
  return openList();
}

function openList() {
  const choice = serverFilter("All servers", kept.server);
  const server = choice.node;
  const outcome = select([["", "All outcomes"], ...OUTCOMES.map((one) => [one, word(one)])], kept.outcome, { "aria-label": "Outcome" });
  const text = h("input", { type: "search", placeholder: "Tool, client, error…", "aria-label": "Search calls", value: kept.text, autocomplete: "off" });
  const body = h("tbody");
  const table = h("table", { class: "list cards calls" }, h("caption", { class: "unseen" }, "Calls, newest first"),
    h("thead", null, h("tr", null, ["Call", "When", "Client", "Outcome", "Took", "Size"].map((title) => h("th", { scope: "col" }, title)))), body);
  const none = h("div");
  const more = button("Show more", () => read(true), { class: "show-more", hidden: true });
  const fresh = button("", () => { shown = []; read(false); }, { class: "fresh-calls", hidden: true });
  let shown = [];
  let asked = 0;
  let typing = null;

  const filter = () => ({ server: kept.server, outcome: kept.outcome, text: kept.text });

  async function read(onward) {
    asked += 1;
    const mine = asked;
    try {
      const said = await get(query(path("activity"), { ...filter(), limit: PAGE, before: onward ? shown.at(-1)?.id : "" }));
      if (mine !== asked) return;
      shown = onward ? [...shown, ...said.activity] : said.activity;
      more.hidden = said.activity.length < PAGE;
      fresh.hidden = true;
      draw();
    } catch (error) {
      if (mine === asked) fill(none, problem(error));
    }
  }

  function draw() {
    table.hidden = shown.length === 0;
    keyed(body, shown, (call) => call.id, row);
    const filtered = kept.server || kept.outcome || kept.text;
    fill(none, shown.length ? null : filtered ? empty("No matching calls.", "Change or clear the filter.") : empty("No calls yet.", "Calls through the gateway appear here."));
  }

  // Rows do not move while the user reads them: a button offers new calls.
  function offer() {
    const newest = shown[0]?.id ?? 0;
    const waiting = state.calls.filter((call) => call.id > newest && fits(call)).length;
    // Announced once, without the number, which changes every second.
    if (waiting && fresh.hidden) announce("There are new calls.");
    fresh.hidden = waiting === 0;
    if (waiting) say(fresh, `Show ${plural(waiting, "new call")}`);
    if (waiting && !shown.length) read(false);
  }

  const changed = () => {
    Object.assign(kept, { server: server.value, outcome: outcome.value, text: text.value.trim() });
    read(false);
  };
  server.addEventListener("change", changed);
  outcome.addEventListener("change", changed);
  text.addEventListener("input", () => {
    clearTimeout(typing);
    typing = setTimeout(changed, TYPING_MS);
  });
  loadCalls().catch(() => {});
  read(false);
  const off = on("calls", offer);
  const exports = [button("Export JSON", () => exportAll(filter(), "json"), { class: "small" }), button("Export CSV", () => exportAll(filter(), "csv"), { class: "small" })];
  return {
    title: () => "Activity",
    node: h("div", { class: "page" }, heading("Activity", exports), h("div", { class: "filters" }, text, server, outcome), fresh, table, none, more),
    close() {
      clearTimeout(typing);
      choice.close();
      off();
    },
  };
}

function fits(call) {
  const wanted = kept.text.toLowerCase();
  return (!kept.server || call.server === kept.server) && (!kept.outcome || call.outcome === kept.outcome)
    && (!wanted || [call.server, call.method, call.name, call.client, call.error].some((part) => part?.toLowerCase().includes(wanted)));
}

function row(call) {
  return h("tr", null,
    h("th", { scope: "row" }, h("a", { class: "row", href: `#activity/${call.id}` }, h("span", { class: "tool-server" }, `${call.server}:`), call.name || call.method),
      call.method === "tools/call" ? null : h("div", { class: "target" }, call.method)),
    h("td", { "data-label": "When" }, atTime(call.at)),
    h("td", { "data-label": "Client" }, call.client),
    h("td", { "data-label": "Outcome" }, mark(call.outcome), call.error ? h("p", { class: "reason one-line", title: call.error }, short(call.error)) : null),
    h("td", { class: "number", "data-label": "Took" }, lasting(latency(call)), call.waitedMs >= SHOWN_WAIT_MS ? h("div", { class: "muted small-text" }, `+ ${lasting(call.waitedMs)} wait`) : null),
    h("td", { class: "number", "data-label": "Size" }, `${bytes(call.requestBytes)} → ${bytes(call.responseBytes)}`));
}

// The beginning, without line breaks; the row truncates it to its width.
function short(text) {
  const line = text.replace(/\s+/g, " ").replaceAll("`", "").trim();
  return line.length > 200 ? `${line.slice(0, 199)}…` : line;
}

async function exportAll(filter, kind) {
  const all = [];
  try {
    for (let before = ""; all.length < EXPORT_MOST;) {
      const said = await get(query(path("activity"), { ...filter, limit: 1000, before }));
      all.push(...said.activity);
      if (said.activity.length < 1000) break;
      before = said.activity.at(-1).id;
    }
  } catch (error) {
    notice(error.message, "bad");
    return;
  }
  const name = `switchboard-activity-${new Date().toISOString().slice(0, 19).replaceAll(":", "-")}.${kind}`;
  save(name, kind === "csv" ? "text/csv" : "application/json", kind === "csv" ? csv(all) : JSON.stringify({ activity: all }, null, 2));
  notice(`${plural(all.length, "call")} exported to ${name}.${all.length >= EXPORT_MOST ? " An export has at most 10,000 calls: narrow the filter to export others." : ""}`, "good");
}

function csv(calls) {
  const cell = (value) => {
    let text = String(value ?? "");
    // A spreadsheet would treat this as a formula.
    if (typeof value === "string" && /^[=+\-@\t\r]/.test(text)) text = `'${text}`;
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [COLUMNS, ...calls.map((call) => COLUMNS.map((name) => call[name]))].map((line) => line.map(cell).join(",")).join("\r\n");
}
