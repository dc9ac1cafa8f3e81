// What is known of the gateway, kept up to date by its events. Pages read `state` and are told by topic
// when a part of it changed: status, approvals, calls, connection, trust, config.

import { get, path, query } from "./api.js";
import { follow } from "./events.js";

export const state = {
  connection: "connecting",
  status: null,
  // Approvals that are open, by id, and the closed ones that were seen closing.
  approvals: new Map(),
  // The newest calls, newest first.
  calls: [],
  callsLoaded: false,
};

const MOST_CALLS = 3000;
const CALLS_AT_ONCE = 1000;
const topics = new Map();
let stop = null;
let lastEvent = null;
let touched = new Map();

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
    state: (connection) => {
      state.connection = connection;
      tell("connection", connection);
    },
  });
}

// Forgets all: somebody else may sign in.
export function end() {
  stop?.();
  stop = null;
  lastEvent = null;
  Object.assign(state, { connection: "connecting", status: null, approvals: new Map(), calls: [], callsLoaded: false });
}

// Reads everything again: at the start, and whenever something may have been missed.
export async function reload() {
  const began = performance.now();
  const read = (promise, act) => promise.then(act, () => {});
  await Promise.all([
    read(get(path("status")), setStatus),
    read(get(query(path("approvals"), { status: "open", limit: 500 })), (said) => setOpen(said.approvals, began)),
    state.callsLoaded ? newCalls() : null,
  ]);
  tell("trust");
  tell("rules");
}

const WAITING = new Set(["pending", "orphaned", "reviewing"]);
const OPEN = new Set([...WAITING, "generating"]);

export function isWaiting(approval) {
  return WAITING.has(approval.status);
}

export function isOpen(approval) {
  return OPEN.has(approval.status);
}

// Those that wait for a person, the oldest first: a new one never pushes another away.
export function waiting() {
  return [...state.approvals.values()].filter(isWaiting).sort(oldestFirst);
}

export function oldestFirst(a, b) {
  return Date.parse(a.createdAt) - Date.parse(b.createdAt) || (a.id < b.id ? -1 : 1);
}

// Takes an approval in, unless a newer version of it is known.
export function takeApproval(approval, event = "approval.changed") {
  const known = state.approvals.get(approval.id);
  if (known && (known.version ?? 0) > (approval.version ?? 0)) return;
  // Lists leave long requests out; what was read whole stays whole.
  const whole = approval.truncated && known?.request ? { ...approval, request: known.request, truncated: false } : approval;
  state.approvals.set(approval.id, whole);
  touched.set(approval.id, performance.now());
  tell("approvals", { approval: whole, event, isNew: !known });
}

function setOpen(approvals, began) {
  const seen = new Set(approvals.map((approval) => approval.id));
  for (const approval of approvals) takeApproval(approval, "read");
  for (const [id, approval] of state.approvals) {
    const later = (touched.get(id) ?? 0) > began;
    if (!seen.has(id) && isOpen(approval) && !later) {
      state.approvals.delete(id);
      touched.delete(id);
      tell("approvals", { gone: id });
    }
  }
  tell("approvals", {});
}

function setStatus(status) {
  state.status = status;
  tell("status");
}

async function refreshStatus() {
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
