// The entry point: signs in, and shows the page that the address names.

import { add, fill, h, prose, say, svg } from "./dom.js";
import { showKeys, watchKeys } from "./keys.js";
import { dismissNotices, notice, setTitle, watchApprovals } from "./notices.js";
import { exchange, onSession, preference, sessionIsOver, signedIn } from "./session.js";
import { end, on, pause, start, state, waitingCount } from "./store.js";
import { clock } from "./words.js";
import * as overview from "./overview.js";
import * as servers from "./servers.js";
import * as tools from "./tools.js";
import * as approvals from "./approvals.js";
import * as activity from "./activity.js";
import * as memory from "./memory.js";
import * as access from "./access.js";
import * as settings from "./settings.js";

const PAGES = { overview, servers, tools, approvals, activity, memory, access, settings };
const MENU = [
  ["overview", "Overview", "M4 13h6V4H4zM14 9h6V4h-6zM14 20h6v-8h-6zM4 20h6v-4H4z"],
  ["servers", "Servers", "M4 5h16v5H4zM4 14h16v5H4zM7.500 7.500h.01M7.500 16.500h.01"],
  ["tools", "Tools", "M14.500 6.500a4 4 0 0 0-5.300 4.800L4 16.500V20h3.500l5.200-5.200a4 4 0 0 0 4.800-5.300L15 12l-2.500-.5L12 9z"],
  ["approvals", "Approvals", "M12 3l7 3v5c0 4.500-3 8-7 10-4-2-7-5.500-7-10V6zM9 12l2.200 2.200L15.500 10"],
  ["activity", "Activity", "M3 12h4l3-7 4 14 3-7h4"],
  ["memory", "Memory", "M12 5.500C10.500 3.500 7 3.500 6 6c-2.500.5-3 4-1.500 5.500C3 13 4 16.500 6.500 16.500 7.500 19.500 11 19.500 12 17.500zM12 5.500c1.500-2 5-2 6 .5 2.500.5 3 4 1.500 5.500 1.500 1.500.5 5-2 5-1 3-4.500 3-5.500 1z"],
  ["access", "Access", "M11 12l8-8M15.500 7.500l3 3M8 11a4 4 0 1 0 .01 0"],
  ["settings", "Settings", "M4 7h9M17 7h3M4 17h3M11 17h9M15 4.500v5M9 14.500v5"],
];
const CONNECTION = { __proto__: null, live: "Live", connecting: "Connecting…", lost: "Disconnected, reconnecting…", stopping: "The gateway is stopping", over: "Signed out" };

let page = null;
let pageName = null;
let lastHash = null;

function main() {
  document.documentElement.dataset.theme = preference("theme") ?? "auto";
  drawMenu();
  watchKeys(() => (signedIn() ? page : null));
  watchApprovals();
  document.getElementById("show-keys").addEventListener("click", showKeys);
  document.getElementById("skip").addEventListener("click", (event) => {
    event.preventDefault();
    document.getElementById("main").focus();
  });
  on("connection", showConnection);
  on("approvals", showBadge);
  onSession(() => show());
  addEventListener("hashchange", () => show());
  show();
}

async function show() {
  const hash = location.hash;
  if (hash.startsWith("#sign-in=")) {
    await signIn(hash.slice("#sign-in=".length));
    return;
  }
  const shell = document.getElementById("shell");
  const out = document.getElementById("signed-out");
  const over = sessionIsOver();
  if (over && page) {
    // Keep the page, and what the user has typed there.
    pause();
    out.hidden = false;
    const command = h("code", null, "switchboard console");
    fill(out, h("div", { class: "session-over callout", "data-tone": "warn", role: "alert" }, h("strong", null, "You are signed out: "),
      over === "gateway"
        ? ["the gateway restarted, and its console has a new address. You can still read this page, but it no longer updates. Run ", command, " in a terminal and open the link that it prints."]
        : ["the session expired after 24 hours, or was ended. This page keeps its content. To continue, run ", command, " in a terminal and open the link that it prints in this browser."]));
    return;
  }
  shell.hidden = !signedIn();
  out.hidden = signedIn();
  if (!signedIn()) {
    closePage();
    end();
    signedOut(out);
    return;
  }
  fill(out);
  start();
  go(hash);
}

async function signIn(key) {
  // Remove the key from the address and the history first.
  history.replaceState(null, "", "#overview");
  try {
    await exchange(decodeURIComponent(key));
  } catch (error) {
    if (signedIn()) notice("This sign-in link is no longer valid, but you are already signed in.");
    else signedOut(document.getElementById("signed-out"), error.message);
  }
  if (signedIn()) show();
  else document.getElementById("signed-out").hidden = false;
}

// A message of the gateway as a full sentence.
function sentenceOf(text) {
  return `${text.charAt(0).toUpperCase()}${text.slice(1)}${/[.!?]$/.test(text) ? "" : "."}`;
}

function signedOut(place, failure) {
  setTitle("Signed out");
  fill(place, h("main", { class: "door" },
    h("img", { src: "/console/icon.svg", alt: "", width: "44", height: "44" }),
    h("h1", null, "Switchboard"),
    failure ? h("div", { class: "callout", "data-tone": "bad", role: "alert" }, h("strong", null, "Cannot sign in. "), prose(sentenceOf(failure))) : null,
    h("p", null, "You are signed out. To sign in, run this command in a terminal on the gateway's machine, and open the link that it prints:"),
    h("pre", { class: "command" }, h("code", null, "switchboard console")),
    h("p", { class: "muted" }, "The link works once and expires after 24 hours. The session lasts for 24 hours, or until you sign out or the gateway stops. The console has a new address in each run of the gateway."),
  ));
}

// Parses a hash: the name of the page, and its parameters.
function parts(hash) {
  try {
    const [name, ...rest] = hash.replace(/^#/, "").split("/").map(decodeURIComponent);
    return PAGES[name] && Object.hasOwn(PAGES, name) ? [name, rest] : ["overview", []];
  } catch {
    return ["overview", []];
  }
}

function go(hash) {
  if (hash === lastHash && page) return;
  const first = lastHash === null;
  const from = lastHash;
  const back = from?.startsWith(`${hash}/`) ? from : null;
  dismissNotices();
  closeDialogs();
  const [name, rest] = parts(hash);
  for (const link of document.querySelectorAll("#pages a")) {
    if (link.dataset.key === name) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const place = document.getElementById("main");
  const stays = name === pageName && page?.go?.(rest);
  if (!stays) {
    closePage();
    pageName = name;
    page = PAGES[name].open(rest, from);
    fill(place, page.node);
    scrollTo(0, 0);
  }
  lastHash = hash;
  setTitle(page.title());
  // On return to a list, the row that was open gets the focus; otherwise the heading does.
  const row = back && [...place.querySelectorAll("a.row")].find((link) => link.getAttribute("href") === back);
  // A control on the same page, such as a filter, keeps the focus.
  if (stays && !page.focus && place.contains(document.activeElement)) return;
  if (!first) (row ?? page.focus?.() ?? place.querySelector("h1") ?? place).focus({ preventScroll: !row });
}

// Cancels open dialogs: a dialog closes with its page.
function closeDialogs() {
  for (const dialog of document.querySelectorAll("dialog[open]")) if (dialog.dispatchEvent(new Event("cancel", { cancelable: true }))) dialog.close();
}

function closePage() {
  page?.close?.();
  page = null;
  pageName = null;
  lastHash = null;
  fill(document.getElementById("main"));
}

function drawMenu() {
  const list = h("ul");
  for (const [name, words, icon] of MENU) {
    const badge = name === "approvals" ? h("span", { class: "badge", id: "waiting-count", hidden: true }) : null;
    add(list, h("li", null, h("a", { href: `#${name}`, "data-key": name },
      svg("svg", { viewBox: "0 0 24 24", class: "icon", "aria-hidden": "true", focusable: "false" }, svg("path", { d: icon })),
      h("span", null, words), badge)));
  }
  fill(document.getElementById("pages"), list);
}

function showBadge() {
  const count = waitingCount();
  const badge = document.getElementById("waiting-count");
  badge.hidden = count === 0;
  if (badge.dataset.count === String(count)) return;
  badge.dataset.count = String(count);
  fill(badge, String(count), h("span", { class: "unseen" }, " pending"));
}

const AT_ONCE = new Set(["live", "stopping", "over"]);
const SHORT_BREAK_MS = 1500;
let due = null;
let latest = null;
// Shows a disconnection only if it lasts longer than SHORT_BREAK_MS, regardless of attempts to reconnect.
function showConnection(connection) {
  if (latest === "live" && connection !== "live") lastLive = Date.now();
  latest = connection;
  if (AT_ONCE.has(connection) || !state.status) {
    clearTimeout(due);
    due = null;
    drawConnection();
  } else {
    due ??= setTimeout(() => {
      due = null;
      drawConnection();
    }, SHORT_BREAK_MS);
  }
}

function drawConnection() {
  const connection = latest === "connecting" && lastLive !== null ? "lost" : latest;
  const node = document.getElementById("connection");
  node.dataset.state = connection;
  say(node, CONNECTION[connection] ?? "");
  showGone(connection);
}

// While the gateway is unreachable, the page is stale: it is greyed out, with a banner above it.
let lastLive = null;
function showGone(connection) {
  const gone = document.getElementById("gone");
  const shell = document.getElementById("shell");
  const away = connection !== "live" && connection !== "connecting";
  shell.classList.toggle("stale", away);
  gone.hidden = !away || connection === "over";
  const key = gone.hidden ? "" : `${connection} ${lastLive}`;
  if (gone.dataset.shown === key) return;
  gone.dataset.shown = key;
  fill(gone, h("strong", null, connection === "stopping" ? "The gateway is stopping." : "The gateway cannot be reached."), " ",
    lastLive ? `This page shows the state at ${clock(lastLive)}, and reconnects automatically.` : "This page connects automatically.");
}

main();
