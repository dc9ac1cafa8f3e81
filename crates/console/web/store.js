// What is known of the gateway, kept up to date by its events. Pages read `state` and are told by topic
// when a part of it changed: status, approvals, calls, connection, trust, config.

import { get, path, query } from "./api.js";
import { follow } from "./events.js";

export const state = {
  connection: "connecting",
  status: null,
  // Approvals that are open, by id, and the closed ones that were seen closing.
  approvals: new Map(),
  // Whether the open ones have been read: "reading", "read", "part" (there are more) or "failed", and why.
  queue: "reading",
  queueProblem: null,
  // The newest calls, newest first.
  calls: [],
  callsLoaded: false,
};

const MOST_CALLS = 3000;
export const CALLS_AT_ONCE = 1000;
const topics = new Map();
let stop = null;
let lastEvent = null;
// When an open approval was last heard of.
const touched = new Map();
const PAGE = 500;
const MOST_OPEN = 10_000;
const MOST_CLOSED = 200;
const AGAIN_MS = 5000;

// on("approvals", act) → off()
export function on(topic, act) {
  if (!topics.has(topic)) topics.set(topic, new Set());
  topics.get(topic).add(act);
  return () => topics.get(topic).delete(act);
}

function tell(topic, data) {
  for (const act of [...(topics.get(topic) ?? [])]) act(data);
}

export function start() {
  stop ??= follow(path("events"), {
    opened: reload,
    event: take,
    state(connection) {
      state.connection = connection;
      tell("connection", connection);
    },
  });
}

// Stops listening, and keeps what is known: whoever reads the page goes on reading.
export function pause() {
  stop?.();
  stop = null;
  clearTimeout(again);
  tell("connection", "over");
}

// Forgets all: somebody else may sign in.
export function end() {
  stop?.();
  stop = null;
  lastEvent = null;
  clearTimeout(again);
  touched.clear();
  Object.assign(state, { connection: "connecting", status: null, approvals: new Map(), queue: "reading", queueProblem: null, calls: [], callsLoaded: false });
}

let reloading = null;
let reloadAfter = false;
let again = null;

// Reads everything again: at the start, and whenever something may have been missed. One at a time: who
// asks meanwhile has it done once more afterwards.
export async function reload() {
  if (reloading) {
    reloadAfter = true;
    return;
  }
  clearTimeout(again);
  reloading = Promise.allSettled([get(path("status")).then(setStatus), readOpen(), state.callsLoaded ? newCalls() : null]);
  await reloading;
  reloading = null;
  if (!stop) return;
  tell("trust");
  tell("rules");
  if (reloadAfter) {
    reloadAfter = false;
    reload();
  } else if (state.queue === "failed") {
    again = setTimeout(reload, AGAIN_MS);
  }
}

// Every open approval, page after page: the newest come first, and those of one server must not hide others.
async function readOpen() {
  const mine = stop;
  const began = performance.now();
  const found = new Map();
  const ended = (queue, problem = null) => {
    if (stop === mine) setOpen(found, began, queue, problem);
  };
  try {
    for (let before = ""; found.size < MOST_OPEN;) {
      const { approvals } = await get(query(path("approvals"), { status: "open", limit: PAGE, before }));
      const known = found.size;
      for (const approval of approvals) found.set(approval.id, approval);
      if (found.size === known) return ended("read");
      before = approvals.at(-1).id;
    }
    return ended("part");
  } catch (error) {
    return ended("failed", error);
  }
}

const WAITING = new Set(["pending", "orphaned", "reviewing"]);
const OPEN = new Set([...WAITING, "generating"]);

export function isWaiting(approval) {
  return WAITING.has(approval.status);
}

export function isOpen(approval) {
  return OPEN.has(approval.status);
}

export function waitingCount() {
  let count = 0;
  for (const approval of state.approvals.values()) if (isWaiting(approval)) count += 1;
  return count;
}

// Those that wait for a person, the oldest first: a new one never pushes another away.
export function waiting() {
  return [...state.approvals.values()].filter(isWaiting).sort(oldestFirst);
}

// To read a time takes a while, and there may be thousands.
const born = new WeakMap();

function bornAt(approval) {
  if (!born.has(approval)) born.set(approval, Date.parse(approval.createdAt));
  return born.get(approval);
}

export function oldestFirst(a, b) {
  return bornAt(a) - bornAt(b) || (a.id < b.id ? -1 : 1);
}

// Whether all of an approval is here. Lists and events leave out what is long, and nobody decides about
// the rest of it alone.
export function isWhole(approval) {
  return !approval.truncated && approval.request !== undefined && (approval.status !== "reviewing" || approval.draft !== undefined);
}

// Puts an approval in. → whether that is news: another version than the one that is known
function keep(approval) {
  const known = state.approvals.get(approval.id);
  const [had, has] = [known?.version ?? 0, approval.version ?? 0];
  if (known && had > has) return false;
  if (known && had === has) {
    // The same, whole: never parts of two versions together.
    if (!isWhole(known) && isWhole(approval)) state.approvals.set(approval.id, approval);
    return false;
  }
  // At the end, so that the one that closed first is forgotten first.
  state.approvals.delete(approval.id);
  state.approvals.set(approval.id, approval);
  if (isOpen(approval)) touched.set(approval.id, performance.now());
  else touched.delete(approval.id);
  return true;
}

function forgetClosed() {
  if (state.approvals.size - touched.size <= MOST_CLOSED) return;
  for (const [id, approval] of state.approvals) {
    if (state.approvals.size - touched.size <= MOST_CLOSED) return;
    if (!isOpen(approval)) state.approvals.delete(id);
  }
}

// Takes an approval in, unless this or a newer version of it is known.
export function takeApproval(approval, event = "approval.changed") {
  const isNew = !state.approvals.has(approval.id);
  if (keep(approval)) {
    forgetClosed();
    tell("approvals", { approval, event, isNew });
  } else if (event === "conflict") {
    // Nothing is new here, but what somebody has on the page is not so.
    tell("approvals", { approval: state.approvals.get(approval.id), event });
  }
}

function setOpen(found, began, queue, queueProblem) {
  const many = new Map();
  for (const [id, approval] of found) if (keep(approval)) many.set(id, approval);
  const gone = new Set();
  // Only who has read all of them knows which are not there any more.
  if (queue === "read") {
    for (const [id, at] of [...touched]) {
      if (found.has(id) || at > began) continue;
      state.approvals.delete(id);
      touched.delete(id);
      gone.add(id);
    }
  }
  Object.assign(state, { queue, queueProblem });
  tell("approvals", { many, gone });
}

function setStatus(status) {
  state.status = status;
  tell("status");
}

// Reads the status again. Events tell of servers, approvals and calls, and not of clients and parts of the gateway.
export async function refreshStatus() {
  setStatus(await get(path("status")));
}

export function takeServer(server) {
  const servers = state.status?.servers;
  const at = servers?.findIndex((other) => other.name === server.name) ?? -1;
  if (at < 0) return;
  servers[at] = server;
  tell("status");
}

// Reads the newest calls once; afterwards events tell when there are more.
export async function loadCalls() {
  if (state.callsLoaded) return;
  const said = await get(query(path("activity"), { limit: CALLS_AT_ONCE }));
  state.calls = said.activity;
  state.callsLoaded = true;
  tell("calls");
}

async function newCalls() {
  const since = state.calls[0]?.id ?? 0;
  const said = await get(query(path("activity"), { since, limit: CALLS_AT_ONCE }));
  const known = state.calls[0]?.id ?? 0;
  const fresh = said.activity.filter((call) => call.id > known);
  // More than could be read at once: what is in between would be missing, so begin anew.
  if (said.activity.length >= CALLS_AT_ONCE) state.calls = said.activity;
  else state.calls = [...fresh, ...state.calls].slice(0, MOST_CALLS);
  tell("calls");
}

let readingCalls = null;
function callsHappened(data) {
  for (const [name, numbers] of Object.entries(data.servers ?? {})) {
    const server = state.status?.servers.find((other) => other.name === name);
    if (server) {
      server.calls = numbers.calls ?? server.calls;
      server.errors = numbers.errors ?? server.errors;
    }
  }
  tell("status");
  if (!state.callsLoaded || readingCalls) return;
  readingCalls = newCalls().catch(() => {}).finally(() => {
    readingCalls = null;
  });
}

function take({ kind, id, data }) {
  if (kind === "lagged") {
    // What was missed is read again, so that there is no gap to be found later.
    lastEvent = null;
    reload();
    return;
  }
  let event;
  try {
    event = JSON.parse(data);
  } catch {
    return;
  }
  const place = Number(id);
  if (id !== null) {
    const gap = lastEvent !== null && place !== lastEvent + 1;
    lastEvent = place;
    if (gap) reload();
  }
  happened(kind, event.data ?? {});
}

function happened(kind, data) {
  if (kind.startsWith("approval.")) {
    if (data.approval) takeApproval(data.approval, kind);
    if (data.approval?.kind === "trust") tell("trust");
  } else if (kind === "server.state") {
    const server = state.status?.servers.find((other) => other.name === data.name);
    if (server) {
      for (const name of ["reason", "action", "nextTry"]) delete server[name];
      Object.assign(server, data.health);
      tell("status");
      // How many tools it has is known once it is ready.
      if (data.health?.state === "ready") refreshStatus().catch(() => {});
    } else {
      refreshStatus().catch(() => {});
    }
  } else if (kind.startsWith("config.")) {
    refreshStatus().catch(() => {});
    tell("config", kind);
  } else if (kind === "calls") {
    callsHappened(data);
  } else if (kind.startsWith("trust.")) {
    refreshStatus().catch(() => {});
    tell("trust", data.server);
  } else if (kind === "gateway.stopping") {
    tell("connection", "stopping");
  }
}
