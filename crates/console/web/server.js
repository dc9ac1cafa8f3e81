// One server: its state, its instances, its description of itself, and its log or that of an instance.

import { get, path, query } from "./api.js";
import { add, button, empty, fill, h, heading, plain, problem, prose, say } from "./dom.js";
import { follow } from "./events.js";
import { mark } from "./marks.js";
import { json, longText } from "./payload.js";
import { actions, heldCount, instanceHref, restartOf, stateCell } from "./servers.js";
import { on, state } from "./store.js";
import { agoTime, callers, failedLists, instanceName, inTime, load, logged, number, plural, together, whole } from "./words.js";

const MOST_LINES = 2000;

// The number of an instance in an address; null for the whole server.
function numberOf(text) {
  return /^\d{1,15}$/.test(text ?? "") ? Number(text) : null;
}

export function openServer(name, instance) {
  const top = h("div", { class: "stack" });
  const about = h("div");
  const place = h("div");
  const node = h("div", { class: "page" }, h("p", { class: "crumb" }, h("a", { href: "#servers" }, "Servers")), heading(name), top, place, about);
  let held = 0;
  let open = numberOf(instance);
  let log = openLog(name, open);
  fill(place, log.node);

  function draw() {
    const server = state.status?.servers.find((other) => other.name === name);
    if (!state.status) return;
    log.node.hidden = !server;
    log.running(server?.instances?.some(({ number }) => number === open));
    const shown = JSON.stringify([server ?? null, held, open]);
    if (top.dataset.shown === shown) return;
    top.dataset.shown = shown;
    const focused = top.contains(document.activeElement) ? document.activeElement.dataset.key : null;
    fill(top, server ? facts(server, held, open) : empty(`There is no server called ${name}.`, "It may have been removed.", h("p", null, h("a", { href: "#servers" }, "Show all servers"))));
    if (focused) top.querySelector(`[data-key="${focused}"]`)?.focus();
  }

  async function read() {
    try {
      fill(about, details(await get(path("servers", name))));
    } catch (error) {
      fill(about, error.status === 404 ? null : problem(error));
    }
  }

  // Held tools do not count as offered, and are shown separately.
  async function readHeld() {
    held = (await heldCount(name)) ?? held;
    draw();
  }

  draw();
  read();
  readHeld();
  const offTrust = on("trust", (server) => (server ?? name) === name && readHeld());
  let lastState = null;
  const off = on("status", () => {
    draw();
    const now = state.status?.servers.find((server) => server.name === name)?.state;
    // A server describes itself once it is ready.
    if (now === "ready" && lastState !== "ready") read();
    lastState = now;
  });
  return {
    title: () => (open === null ? name : `${name}/${open}`),
    node,
    back: () => (open === null ? "#servers" : `#servers/${encodeURIComponent(name)}`),
    // Another log on the same page.
    go([other, number]) {
      if (other !== name) return false;
      log.close();
      open = numberOf(number);
      log = openLog(name, open);
      fill(place, log.node);
      draw();
      return true;
    },
    focus() {
      if (open === null) return null;
      log.title.scrollIntoView({ block: "nearest" });
      return log.title;
    },
    close() {
      off();
      offTrust();
      log.close();
    },
  };
}

// The callers that have an instance of a server.
const SHARING = { __proto__: null, all: "one for all clients", project: "one for each project", client: "one for each client" };

function facts(server, held, open) {
  const toolsOf = `#tools/${encodeURIComponent(server.name)}`;
  const rows = [
    ["State", [mark(server.state), " ", h("span", { class: "muted" }, agoTime(server.since))]],
    ["Kind", server.kind],
    [{ __proto__: null, command: "Program", remote: "Address", container: "Image" }[server.kind] ?? "Target", h("code", null, server.target)],
    ["Starts", { __proto__: null, lazy: "with the first call", eager: "with the gateway", auto: "automatically" }[server.start] ?? server.start],
    ["Instances", [SHARING[server.sharing] ?? server.sharing, server.sharingReason ? h("span", { class: "muted" }, ": ", prose(server.sharingReason)) : null]],
    ["Protocol", server.revision ?? "not known yet"],
    ["Offers", [h("a", { class: "together", href: toolsOf }, plural(server.tools, "tool")), ", ", together(`${plural(server.prompts, "prompt")}, ${plural(server.resources, "resource")}`)]],
    ["Held", held ? h("a", { href: toolsOf }, plural(held, "tool")) : null],
    ["Calls", together(`${number(server.calls)} so far, ${number(server.errors)} failed, ${number(server.inFlight)} in flight, ${number(server.queued)} queued`)],
  ];
  return [
    server.reason || server.action ? h("div", { class: "callout", "data-tone": server.state === "parked" ? "bad" : server.state === "retrying" || server.state === "needs sign-in" ? "warn" : null },
      server.reason ? h("p", null, h("strong", null, "Reason: "), prose(server.reason)) : null,
      server.action ? h("p", null, h("strong", null, "What you can do: "), prose(server.action)) : null,
      server.nextTry ? h("p", null, h("strong", null, "Next try: "), inTime(server.nextTry)) : null) : null,
    server.failedLists?.length ? h("div", { class: "callout", "data-tone": "bad" }, failedLists(server).map((text) => h("p", null, prose(text)))) : null,
    h("div", { class: "buttons" }, actions(server)),
    h("dl", { class: "facts card" }, rows.filter(([, value]) => value !== null).map(([title, value]) => h("div", null, h("dt", null, title), h("dd", null, value)))),
    server.instances?.length ? instances(server, open) : null,
    server.problems?.length ? h("section", { class: "card" }, h("h2", null, "Omitted definitions"), h("ul", null, server.problems.map((text) => h("li", null, text)))) : null,
  ];
}

const COLUMNS = ["Instance", "State", "Callers", "In flight", "Actions"];

function instances(server, open) {
  return h("table", { class: "list cards" }, h("caption", { class: "unseen" }, "Instances"),
    h("thead", null, h("tr", null, COLUMNS.map((title) => h("th", { scope: "col" }, title)))),
    h("tbody", null, server.instances.map((instance) => {
      const name = instanceName(server, instance);
      return h("tr", null, h("th", { scope: "row" }, name), stateCell(instance), h("td", { "data-label": "Callers" }, callers(instance)),
        h("td", { class: "number", "data-label": "In flight" }, load(instance)),
        h("td", { class: "actions", "data-label": "Actions" }, restartOf(server, instance), " ",
          h("a", { class: "row", "data-key": `Log ${instance.number}`, href: instanceHref(server, instance), "aria-label": `Log of ${name}`, "aria-current": instance.number === open ? "true" : null }, "Log")));
    })));
}

function details({ offers }) {
  if (!offers) return null;
  return h("section", { class: "card" }, h("h2", null, "About this server"),
    offers.serverInfo ? h("p", null, h("strong", null, plain(offers.serverInfo.title ?? offers.serverInfo.name)), ` ${plain(offers.serverInfo.version)}`) : null,
    offers.instructions ? [h("h3", null, "Instructions for models"), longText(plain(offers.instructions), { class: "text" })] : null,
    h("details", null, h("summary", null, "As JSON"), json(offers)));
}

// A log line begins with its time in UTC; the page shows it in the user's time zone.
function line(text) {
  const [, at, rest] = /^(\d{4}-\d\d-\d\dT[\d:.]+Z) (.*)$/s.exec(text) ?? [];
  return at ? h("div", null, h("time", { datetime: at, title: whole(at) }, logged(at)), " ", rest) : h("div", null, text);
}

// openLog(name, number of the instance or null) → {node, title, running(is), close()}
function openLog(server, instance) {
  const name = instance === null ? server : `${server}/${instance}`;
  const title = h("h2", { id: "log-title", tabindex: "-1" }, instance === null ? "Log" : `Log of ${name}`);
  const lines = h("div", { class: "log", role: "log", "aria-live": "off", "aria-label": `Log of ${name}`, tabindex: "0" });
  const note = h("p", { class: "muted small-text" });
  const over = h("p", { class: "muted small-text" });
  let stick = true;
  let due = [];
  let drawing = false;

  const pause = button("Pause", () => {
    stick = !stick;
    say(pause, stick ? "Pause" : "Follow");
    if (stick) lines.scrollTop = lines.scrollHeight;
  }, { class: "small" });

  function draw() {
    drawing = false;
    add(lines, due.slice(-MOST_LINES).map(line));
    due = [];
    while (lines.childElementCount > MOST_LINES) lines.firstElementChild.remove();
    say(note, lines.childElementCount ? "" : "The log is empty. Output of the server on standard error appears here.");
    if (stick) lines.scrollTop = lines.scrollHeight;
  }

  function plan() {
    if (drawing) return;
    drawing = true;
    requestAnimationFrame(draw);
  }

  const stop = follow(query(path("servers", server, "logs"), { follow: true, lines: 200, instance }), {
    opened() {
      // The stream repeats the last lines on each connection.
      fill(lines);
      plan();
    },
    event({ kind, data }) {
      if (kind !== "line") return;
      due.push(data);
      // A hidden page draws nothing while the server keeps writing.
      if (due.length > 2 * MOST_LINES) due = due.slice(-MOST_LINES);
      plan();
    },
    state(connection) {
      if (connection === "lost") say(note, "The log is disconnected, reconnecting…");
    },
  });
  return {
    node: h("section", { class: "card", "aria-labelledby": title.id },
      h("div", { class: "card-head" }, title, h("div", { class: "buttons" }, instance === null ? null : h("a", { href: `#servers/${encodeURIComponent(server)}` }, "All lines"), pause)), over, lines, note),
    title,
    running: (is) => say(over, instance === null || is ? "" : `${name} is not running.`),
    close: stop,
  };
}
