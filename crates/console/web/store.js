// The known state of the gateway, kept current by its events. Pages read `state`, and subscribe to its topics: status,
// approvals, calls, connection, trust, rules, config.

import { get, path, query } from "./api.js";
import { follow } from "./events.js";

export const state = {
  connection: "connecting",
  status: null,
  // Open requests by ID, and those that closed while the page was open.
  approvals: new Map(),
  // Progress of reading the open ones: "reading", "read", "part" (there are more) or "failed", with the error.
  queue: "reading",
  queueProblem: null,
  // The latest calls, newest first.
  calls: [],
  callsLoaded: false,
};

const MOST_CALLS = 3000;
export const CALLS_AT_ONCE = 1000;
const topics = new Map();
let stop = null;
let lastEvent = null;
// The time of the last update of each open request.
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

// Stops listening, and keeps the state, so that the page stays readable.
export function pause() {
  stop?.();
  stop = null;
  clearTimeout(again);
  tell("connection", "over");
}

// Clears the state: another user may sign in.
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

// Reads everything again: at the start, and when events may have been missed. A call during a reload causes one more
// reload afterwards.
export async function reload() {
  if (reloading) {
    reloadAfter = true;
    return;
  }
  clearTimeout(again);
  reloading = Promise.allSettled([refreshStatus(), readOpen(), state.callsLoaded ? newCalls() : null]);
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

// Reads all open requests, page by page: the newest come first, and those of one server must not hide others.
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

// The pending requests, oldest first, so that a new one does not displace others.
export function waiting() {
  return [...state.approvals.values()].filter(isWaiting).sort(oldestFirst);
}

// Creation times are cached: parsing thousands of them is slow.
const born = new WeakMap();

function bornAt(approval) {
  if (!born.has(approval)) born.set(approval, Date.parse(approval.createdAt));
  return born.get(approval);
}

export function oldestFirst(a, b) {
  return bornAt(a) - bornAt(b) || (a.id < b.id ? -1 : 1);
}

// Tests if a request is complete. Lists and events leave out long parts, and a decision needs all of them.
export function isWhole(approval) {
  return !approval.truncated && approval.request !== undefined && (approval.status !== "reviewing" || approval.draft !== undefined);
}

// Stores a request. → true if its version is new
function keep(approval) {
  const known = state.approvals.get(approval.id);
  const [had, has] = [known?.version ?? 0, approval.version ?? 0];
  if (known && had > has) return false;
  if (known && had === has) {
    // The same version, complete: parts of two versions are never mixed.
    if (!isWhole(known) && isWhole(approval)) state.approvals.set(approval.id, approval);
    return false;
  }
  // At the end, so that the request that closed first is dropped first.
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

// Stores a request, unless this or a newer version is known.
export function takeApproval(approval, event = "approval.changed") {
  const isNew = !state.approvals.has(approval.id);
  if (keep(approval)) {
    forgetClosed();
    tell("approvals", { approval, event, isNew });
  } else if (event === "conflict") {
    // The state is current, but the page shows an older version.
    tell("approvals", { approval: state.approvals.get(approval.id), event });
  }
}

function setOpen(found, began, queue, queueProblem) {
  const many = new Map();
  for (const [id, approval] of found) if (keep(approval)) many.set(id, approval);
  const gone = new Set();
  // Only a complete list shows which requests are gone.
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

let reading = null;
let readAfter = null;

// Reads the status again. Events report servers, approvals and calls, but not clients and parts of the gateway. Calls
// while it is being read cause one more read, so that the last status is never older than the last event.
export function refreshStatus() {
  if (reading) {
    readAfter ??= reading.catch(() => {}).then(() => {
      readAfter = null;
      return refreshStatus();
    });
    return readAfter;
  }
  reading = get(path("status")).then(setStatus).finally(() => {
    reading = null;
  });
  return reading;
}

export function takeServer(server) {
  const servers = state.status?.servers;
  const at = servers?.findIndex((other) => other.name === server.name) ?? -1;
  if (at < 0) return;
  servers[at] = server;
  tell("status");
}

// Reads the latest calls once; afterwards, events report new ones.
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
  // More calls than one request returns: those in between would be missing, so replace the list.
  if (said.activity.length >= CALLS_AT_ONCE) state.calls = said.activity;
  else state.calls = [...fresh, ...state.calls].slice(0, MOST_CALLS);
  tell("calls");
}

let readingCalls = null;
function callsHappened(data) {
  let wasBusy = false;
  for (const [name, numbers] of Object.entries(data.servers ?? {})) {
    const server = state.status?.servers.find((other) => other.name === name);
    if (server) {
      server.calls = numbers.calls ?? server.calls;
      server.errors = numbers.errors ?? server.errors;
      wasBusy ||= server.inFlight + server.queued > 0;
    }
  }
  tell("status");
  // The event does not say which calls are still in flight.
  if (wasBusy) refreshStatus().catch(() => {});
  if (!state.callsLoaded || readingCalls) return;
  readingCalls = newCalls().catch(() => {}).finally(() => {
    readingCalls = null;
  });
}

function take({ kind, id, data }) {
  if (kind === "lagged") {
    // Events were missed: read everything again, and ignore the gap in the numbers.
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
  } else if (kind === "server.state" || kind === "server.instance") {
    // Each is about one instance, and the state of a server is that of all of them.
    refreshStatus().catch(() => {});
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
