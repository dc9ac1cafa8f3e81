// Formats times, sizes, counts and problems, and refreshes the relative times on the page once a second.

import { h, say } from "./dom.js";

const NUMBER = new Intl.NumberFormat("en-GB");
const CLOCK = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const DAY = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });
const YEAR = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short", year: "numeric", hour: "2-digit", minute: "2-digit" });
// For log lines: with the day, since they may be of any day, and with milliseconds.
const LOGGED = new Intl.DateTimeFormat("en-GB", { day: "2-digit", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit", fractionalSecondDigits: 3 });
const WHOLE = new Intl.DateTimeFormat("en-GB", { dateStyle: "full", timeStyle: "long" });

// Milliseconds by which this browser's clock is behind the gateway's.
let behind = 0;
const SLACK_MS = 2000;

// Reads the gateway's time from the Date header of a response.
export function noteTime(date) {
  const off = Date.parse(date) - Date.now();
  // The header has whole seconds, and the response takes time to arrive.
  if (Number.isFinite(off)) behind = Math.abs(off) > SLACK_MS ? off : 0;
}

// The current time of the gateway.
export function gatewayTime() {
  return Date.now() + behind;
}

// A time on another day, with the year unless it is the current one.
function day(date) {
  return (date.getFullYear() === new Date(gatewayTime()).getFullYear() ? DAY : YEAR).format(date);
}

// A problem of the gateway as one text: the error and its hint. Null if both are missing.
export function problemText({ detail, hint }) {
  const parts = [detail, hint].filter((part) => typeof part === "string" && part);
  return parts.join("; ") || null;
}

// The lists that a server failed to return, each with the reason.
export function failedLists(server) {
  return (server.failedLists ?? []).map(({ list, reason }) => `${list} failed: ${reason}`);
}

// "browser/2", as on the command line.
export function instanceName(server, instance) {
  return `${server.name}/${instance.number}`;
}

// The callers of an instance: "claude-code in /src/shop". The client chooses its name.
export function callers({ client, project }) {
  return [client ? h("span", null, client) : null, client && project ? " " : null, project ? `in ${project}` : null];
}

// "2 + 1 queued": the calls of a server, or of an instance.
export function load({ inFlight, queued }) {
  return queued ? `${number(inFlight)} + ${number(queued)} queued` : number(inFlight);
}

export function number(value) {
  return Number.isFinite(value) ? NUMBER.format(value) : "–";
}

export function plural(count, one, many) {
  return `${number(count)} ${count === 1 ? one : many ?? `${one}s`}`;
}

export function bytes(count) {
  if (!Number.isFinite(count)) return "–";
  if (count < 1000) return `${count} B`;
  if (count < 1e6) return `${(count / 1e3).toFixed(count < 1e4 ? 1 : 0)} kB`;
  return `${(count / 1e6).toFixed(count < 1e7 ? 1 : 0)} MB`;
}

export function lasting(ms) {
  if (!Number.isFinite(ms)) return "–";
  if (ms === 0) return "0 ms";
  if (ms < 1) return "< 1 ms";
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${(ms / 1000).toFixed(ms < 10_000 ? 1 : 0)} s`;
  const seconds = Math.round(ms / 1000);
  const two = (big, bigName, small, smallName) => `${big} ${bigName}${small ? ` ${small} ${smallName}` : ""}`;
  if (seconds < 3600) return two(Math.floor(seconds / 60), "min", seconds % 60, "s");
  if (seconds < 172_800) return two(Math.floor(seconds / 3600), "h", Math.floor((seconds % 3600) / 60), "min");
  return `${Math.round(seconds / 86_400)} days`;
}

const STATES = ["ready", "idle", "starting", "stopping", "retrying", "needs sign-in", "parked", "disabled"];

// "15 servers: 7 ready, 6 idle, 2 parked", as on the command line.
export function serverCount(servers) {
  return `${plural(servers.length, "server")}${servers.length ? `: ${stateCount(servers)}` : ""}`;
}

// "7 ready, 6 idle, 2 parked"
export function stateCount(servers) {
  const known = new Set([...STATES, ...servers.map((server) => server.state)]);
  const counts = [...known].map((state) => [servers.filter((server) => server.state === state).length, state]);
  return counts.filter(([count]) => count).map(([count, state]) => `${number(count)} ${state}`).join(", ");
}

// The duration of a call, without the time spent waiting for an approver.
export function latency(call) {
  return Math.max(0, call.durationMs - (call.waitedMs ?? 0));
}

export function ago(at, now = gatewayTime()) {
  const seconds = Math.round((now - Date.parse(at)) / 1000);
  if (!Number.isFinite(seconds)) return "–";
  if (seconds < 3) return "just now";
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86_400) return `${Math.floor(seconds / 3600)} h ago`;
  return day(new Date(at));
}

// 4:07
export function left(until, now = gatewayTime()) {
  const seconds = Math.max(0, Math.ceil((Date.parse(until) - now) / 1000));
  const minutes = Math.floor(seconds / 60);
  if (minutes >= 60) return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
  return `${minutes}:${String(seconds % 60).padStart(2, "0")}`;
}

export function clock(at) {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? "–" : CLOCK.format(date);
}

export function whole(at) {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? "" : WHOLE.format(date);
}

export function moment(at) {
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return "–";
  return Math.abs(gatewayTime() - date) < 20 * 3_600_000 ? CLOCK.format(date) : day(date);
}

// "3 min ago", refreshed once a second.
export function agoTime(at) {
  if (!at) return h("span", null, "–");
  return h("time", { datetime: at, "data-ago": at, title: whole(at) }, ago(at));
}

// A fixed time.
export function atTime(at) {
  return h("time", { datetime: at, title: whole(at) }, moment(at));
}

// The time of a log line: "17 Nov, 16:49:06.467".
export function logged(at) {
  const date = new Date(at);
  return Number.isNaN(date.getTime()) ? "" : LOGGED.format(date);
}

// "4:07 left", which counts down.
export function leftTime(until) {
  return h("time", { datetime: until, "data-left": until, title: `until ${whole(until)}`, role: "timer", "aria-live": "off" }, `${left(until)} left`);
}

// "in 4:07", which counts down, and then "now".
export function inTime(at) {
  return h("time", { datetime: at, "data-until": at, title: whole(at), role: "timer", "aria-live": "off" }, inWords(at));
}

function inWords(at, now = gatewayTime()) {
  return Date.parse(at) <= now ? "now" : `in ${left(at, now)}`;
}

// The parts of a line, none of which wraps: a number and its unit stay on one line.
export function together(text) {
  const parts = text ? text.split(", ") : [];
  return parts.map((part, at) => h("span", { class: "together" }, at < parts.length - 1 ? `${part}, ` : part));
}

const ticks = new Set();
// Calls a function once a second, until the returned function is called.
export function everySecond(act) {
  ticks.add(act);
  return () => ticks.delete(act);
}

function tick() {
  const now = gatewayTime();
  for (const node of document.querySelectorAll("[data-ago]")) say(node, ago(node.dataset.ago, now));
  for (const node of document.querySelectorAll("[data-left]")) {
    const over = Date.parse(node.dataset.left) <= now;
    say(node, over ? "expired" : `${left(node.dataset.left, now)} left`);
    node.classList.toggle("soon", !over && Date.parse(node.dataset.left) - now < 60_000);
  }
  for (const node of document.querySelectorAll("[data-until]")) say(node, inWords(node.dataset.until, now));
  for (const act of ticks) act(now);
}

setInterval(tick, 1000);
