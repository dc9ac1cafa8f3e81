// Servers: the list with their instances, and the actions on a server or an instance.

import { get, path, post, query } from "./api.js";
import { button, fill, h, heading, keyed, prose, say } from "./dom.js";
import { firstSteps } from "./first-steps.js";
import { mark } from "./marks.js";
import { confirm, notice } from "./notices.js";
import { openServer } from "./server.js";
import { on, state, takeServer } from "./store.js";
import { agoTime, callers, failedLists, instanceName, load, number, plural, serverCount } from "./words.js";

export function open([name, instance]) {
  return name ? openServer(name, instance) : openList();
}

function openList() {
  const body = h("tbody");
  const table = h("table", { class: "list cards servers" },
    h("caption", { class: "unseen" }, "Servers"),
    h("thead", null, h("tr", null, ["Server", "State", "Tools", "Calls", "Errors", "In flight", "Actions"].map((title) => h("th", { scope: "col" }, title)))), body);
  const start = firstSteps();
  const count = h("p", { class: "muted" });

  function draw() {
    const servers = state.status?.servers;
    if (!servers) return;
    say(count, serverCount(servers));
    table.hidden = servers.length === 0;
    start.draw(servers);
    const rows = servers.flatMap((server) => [[server], ...(server.instances ?? []).map((instance) => [server, instance])]);
    // A name of a server has no slash.
    keyed(body, rows, ([server, instance]) => (instance ? instanceName(server, instance) : server.name), (row) => drawRow(h("tr"), row), drawRow);
  }

  draw();
  const off = on("status", draw);
  return { title: () => "Servers", node: h("div", { class: "page" }, heading("Servers", count), start.node, table), close: off };
}

function drawRow(row, [server, instance]) {
  const shown = JSON.stringify(instance ?? server);
  if (row.dataset.shown === shown) return row;
  row.dataset.shown = shown;
  const focused = row.contains(document.activeElement) ? document.activeElement.dataset.key ?? "name" : null;
  row.className = instance ? "instance" : "";
  fill(row, instance ? instanceCells(server, instance) : cells(server));
  if (focused) row.querySelector(`[data-key="${focused}"]`)?.focus();
  return row;
}

function cells(server) {
  return [
    h("th", { scope: "row" }, h("a", { class: "row", "data-key": "name", href: `#servers/${encodeURIComponent(server.name)}` }, server.name),
      h("div", { class: "target" }, server.target)),
    stateCell(server, failedLists(server).map((text) => h("p", { class: "reason" }, prose(text)))),
    cell("Tools", number(server.tools)), cell("Calls", number(server.calls)),
    h("td", { class: "number", "data-label": "Errors", "data-tone": server.errors ? "bad" : null }, number(server.errors)),
    cell("In flight", load(server)),
    h("td", { class: "actions", "data-label": "Actions" }, actions(server)),
  ];
}

// The row below its server. Tools and counters belong to the server.
function instanceCells(server, instance) {
  return [
    h("th", { scope: "row" }, h("a", { class: "row", "data-key": "name", href: instanceHref(server, instance) }, instanceName(server, instance)),
      h("div", { class: "callers" }, callers(instance))),
    stateCell(instance), h("td", { colspan: 3 }), cell("In flight", load(instance)),
    h("td", { class: "actions", "data-label": "Actions" }, restartOf(server, instance)),
  ];
}

export function stateCell({ state: name, since, reason }, ...more) {
  return h("td", { "data-label": "State" }, mark(name), h("span", { class: "muted since" }, " ", agoTime(since)), reason ? h("p", { class: "reason" }, prose(reason)) : null, more);
}

// The page of the server with the log of the instance.
export function instanceHref(server, instance) {
  return `#servers/${encodeURIComponent(server.name)}/${instance.number}`;
}

export function restartOf(server, instance) {
  const name = instanceName(server, instance);
  return button("Restart", () => act(server, "restart", instance), { "data-key": `Restart ${instance.number}`, class: "small", "aria-label": `Restart ${name}` });
}

function cell(label, text) {
  return h("td", { class: "number", "data-label": label }, text);
}

// The number of held tools of a server; null if it is unknown.
export async function heldCount(name) {
  const said = await get(query(path("trust"), { server: name })).catch(() => null);
  return said?.servers?.[0]?.held?.length ?? null;
}

// The buttons for one server.
export function actions(server) {
  const named = (verb) => ({ "data-key": verb, class: "small", "aria-label": `${verb} ${server.name}` });
  if (!server.enabled) return button("Enable", () => act(server, "enable"), named("Enable"));
  return [
    server.state === "needs sign-in" ? button("Sign in", () => signIn(server.name), named("Sign in")) : null,
    button("Restart", () => act(server, "restart"), named("Restart")),
    button("Disable", () => act(server, "disable"), named("Disable")),
  ];
}

// The pause before the gateway is asked again if it cannot be reached.
const AGAIN_MS = 2000;

// The notices with the codes of sign-ins, by server: closes them.
const codes = new Map();

// Opens the page of the server's provider in a new tab, and waits until the user has finished there.
async function signIn(name) {
  // Opened before anything is awaited: later, the browser would block it.
  const tab = window.open("", "_blank");
  if (tab) tab.opener = null;
  let opened = false;
  let close;
  try {
    const { url: page, code, completeUrl, provider, otherHost, expiresAt } = await post(path("servers", name, "login"));
    const url = completeUrl ?? page;
    // Another sign-in to the server has ended.
    codes.get(name)?.();
    if (!url) tab?.close();
    else if (!/^https?:/.test(url)) throw new Error(`The page of ${name} has an address that is not of the web.`);
    else if (!tab && !code) throw new Error(`Your browser blocked the page. Allow pop-ups here, or run \`switchboard login ${name}\`.`);
    else {
      opened = true;
      tab?.location.replace(url);
      const where = tab ? `Sign in to ${name} in the new tab` : `Open \`${page}\` in a browser on any device, and sign in to ${name}`;
      const names = `Agree only if the page names \`${provider}\`${otherHost ? `, though it is at \`${otherHost}\`` : ""}, and the application that you expect.`;
      // The code is needed until the end.
      close = code ? notice(`${where}, with the code \`${code}\`. ${names}`, undefined, true) : notice(`${where}.`);
      if (code) codes.set(name, close);
    }
    const progress = await finished(name, Date.parse(expiresAt));
    if (progress.login.state === "signed in") notice(`You are signed in to ${name}.`, "good");
    else notice(`The sign-in to ${name} was cancelled.`, "bad");
  } catch (error) {
    // The page of the provider may say more.
    if (!opened) tab?.close();
    notice(error.message, "bad");
  } finally {
    close?.();
  }
}

// Waits for the end of a sign-in, also while the gateway cannot be reached.
async function finished(name, until) {
  for (;;) {
    try {
      const progress = await get(path("servers", name, "login"));
      if (progress.isDone) return progress;
    } catch (error) {
      if (error.status !== 0 || !(Date.now() < until)) throw error;
      await new Promise((resolve) => setTimeout(resolve, AGAIN_MS));
    }
  }
}

const DONE = { __proto__: null, restart: "is restarting", enable: "is enabled", disable: "is disabled" };

async function act(server, verb, instance) {
  const name = instance ? instanceName(server, instance) : server.name;
  const { inFlight } = instance ?? server;
  if (verb === "disable" || (verb === "restart" && inFlight > 0)) {
    const agreed = await confirm({
      title: verb === "disable" ? `Disable ${name}?` : `Restart ${name}?`,
      text: verb === "disable" ? "Agents can no longer call its tools. This changes the configuration; you can enable the server again here." : `${plural(inFlight, "call")} in flight will be lost.`,
      yes: verb === "disable" ? "Disable" : "Restart",
      danger: true,
    });
    if (!agreed) return;
  }
  try {
    takeServer(await post(query(path("servers", server.name, verb), { instance: instance?.number })));
    notice(`${name} ${DONE[verb]}.`, "good");
  } catch (error) {
    notice(error.message, "bad");
  }
}
