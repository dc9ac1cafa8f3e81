// Reads server-sent events with a token, which the browser's EventSource cannot send. A stream that ends is opened
// again, with increasing delays; a silent stream counts as ended.

import { Problem, stream } from "./api.js";
import { doubt } from "./session.js";

const FIRST_WAIT_MS = 500;
const LAST_WAIT_MS = 15_000;
// The gateway sends something every 15 s.
const QUIET_MS = 40_000;
const LONGEST_EVENT = 8 * 1024 * 1024;

// follow("/api/v1/events", {opened, event, state}) → stop()
export function follow(where, { opened, event, state }) {
  let stopped = false;
  let lastId = null;
  let wait = FIRST_WAIT_MS;
  let wake = () => {};
  let reading = null;
  let away = false;

  const run = async () => {
    while (!stopped) {
      state?.("connecting");
      reading = new AbortController();
      try {
        const response = await stream(where, lastId === null ? {} : { "Last-Event-ID": lastId }, reading.signal);
        state?.("live");
        opened?.();
        for await (const message of messages(response, reading)) {
          // Only a stream that delivers a message resets the delay.
          wait = FIRST_WAIT_MS;
          if (message.id !== null) lastId = message.id;
          event(message);
        }
      } catch (error) {
        if (error instanceof Problem && (error.status === 401 || error.status === 404)) break;
      } finally {
        reading.abort();
      }
      if (stopped) break;
      doubt();
      state?.("lost");
      await new Promise((resolve) => {
        wake = resolve;
        setTimeout(resolve, wait * (0.75 + Math.random() / 2));
      });
      while (away && !stopped) await new Promise((resolve) => { wake = resolve; });
      wait = Math.min(wait * 2, LAST_WAIT_MS);
    }
  };
  const hurry = () => wake();
  // A page in the back/forward cache must not keep its connection: browsers allow only six.
  const leave = () => {
    away = true;
    reading?.abort();
  };
  const come = () => {
    away = false;
    wake();
  };
  addEventListener("online", hurry);
  document.addEventListener("visibilitychange", hurry);
  addEventListener("pagehide", leave);
  addEventListener("pageshow", come);
  run();

  return () => {
    stopped = true;
    removeEventListener("online", hurry);
    document.removeEventListener("visibilitychange", hurry);
    removeEventListener("pagehide", leave);
    removeEventListener("pageshow", come);
    reading?.abort();
    wake();
  };
}

// The events of one response: {kind, id, data}.
async function* messages(response, reading) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let buffer = "";
  let message = blank();
  let quiet = setTimeout(() => reading.abort(), QUIET_MS);
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      clearTimeout(quiet);
      quiet = setTimeout(() => reading.abort(), QUIET_MS);
      buffer += value;
      if (buffer.length > LONGEST_EVENT) return;
      const lines = buffer.split(/\r\n|\n|\r(?!$)/);
      buffer = lines.pop();
      for (const line of lines) {
        if (line !== "") {
          take(message, line);
        } else if (message.data.length) {
          yield { kind: message.kind, id: message.id, data: message.data.join("\n") };
          message = blank();
        }
      }
    }
  } finally {
    clearTimeout(quiet);
  }
}

function blank() {
  return { kind: "message", id: null, data: [] };
}

function take(message, line) {
  const colon = line.indexOf(":");
  if (colon === 0) return;
  const name = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
  if (name === "event") message.kind = value;
  else if (name === "id") message.id = value;
  else if (name === "data") message.data.push(value);
}
