// A trust request: new or changed tools of a server, with their text; or a server that is not started until the user
// approves it, with its command.

import { get, path, query } from "./api.js";
import { arrange, keysTo, panel, readFirst, rejection } from "./decide.js";
import { writtenDiff } from "./diff.js";
import { add, button, fill, h, plain, problem, say } from "./dom.js";
import { findings, heldText, secondLook, suspicions } from "./held.js";
import { mark } from "./marks.js";
import { json, list, longText, WHOLE } from "./payload.js";
import { isWaiting } from "./store.js";

const WHY = { __proto__: null, changed: "changed since approval", new: "new", hidden: "hidden characters", dangerous: "dangerous text", rejected: "rejected" };

export function trustRequest(approval) {
  const start = approval.request?.start;
  const tools = list(approval.request?.tools).filter((tool) => typeof tool?.name === "string");
  const places = new Map(tools.map((tool) => [tool, h("div", { class: "stack" }, asAsked(tool))]));
  const trouble = h("div");
  const shown = h("div", { class: "stack" },
    h("p", null, start ? "The server is not started until you approve it. Read the command: it runs under your account." : "Agents do not see these tools until you approve them. Read the text: a model may follow it as instructions."),
    start ? toStart(start) : null,
    approval.request?.instructions ? h("section", { class: "card" }, h("h3", null, "Instructions of the server"), instructions(approval.request.instructions)) : null,
    trouble,
    tools.map((tool) => h("section", { class: "card" },
      h("h3", null, h("a", { href: `#tools/${encodeURIComponent(approval.server ?? "")}/${encodeURIComponent(tool.name)}` }, tool.name), " ", mark(plain(tool.why), WHY[plain(tool.why)] ?? plain(tool.why))),
      places.get(tool),
      h("p", { class: "fingerprint" }, "Fingerprint ", h("code", null, plain(tool.fingerprint))))));
  const node = h("div", { class: "stack" }, shown);
  if (!isWaiting(approval)) return { node };

  const own = panel(approval);
  // The findings of each tool as it is held now. Until they are read, the warnings of the request count.
  const suspicious = new Map();
  const warned = list(approval.warnings).map((text) => ({ severity: "warn", says: plain(text) }));
  const doubts = () => (suspicious.size ? [...suspicious] : [[approval.server, warned]]);
  const words = tools.length > 1 ? `Approve all ${tools.length}` : "Approve";
  const accept = async () => {
    if (await secondLook(tools.length === 1 ? `Approve ${approval.server}:${tools[0].name}?` : `${words}?`, doubts())) await own.decide("approve");
  };
  const approve = own.button(words, accept);
  // A suspicious tool is not approved with a primary button, nor with a single click.
  const mood = () => {
    const doubtful = doubts().some(([, found]) => found.length);
    approve.classList.toggle("primary", !doubtful);
    say(approve, doubtful ? `${words}…` : words);
  };
  mood();
  const first = readFirst(approve, shown);
  const reject = rejection(own, (reason) => own.decide("reject", reason));
  add(node, arrange(own, first.node, h("div", { class: "decide-row" }, approve, reject.node)));

  async function readNow() {
    fill(trouble);
    try {
      const said = await get(query(path("trust"), { server: approval.server }));
      const held = list(said.servers?.[0]?.held);
      for (const [tool, place] of places) {
        const now = await whole(approval.server, held.find((other) => other.tool === tool.name));
        suspicious.set(tool.name, suspicions(now?.findings));
        drawNow(place, tool, now);
      }
    } catch (error) {
      fill(trouble, problem(new Error(`Cannot read the held definitions: ${error.message}`)), button("Try again", readNow, { class: "small" }));
    }
    mood();
    first.look();
  }
  readNow();
  return { node, own, keys: { ...keysTo(approve, accept, shown), r: reject.focus } };
}

// The command to start. The gateway does not reveal variables that hold a token: they are null, as is a missing file.
function toStart(start) {
  const settings = Object.entries(start.settings ?? {});
  return h("section", { class: "card" },
    h("h3", null, "Command to start"),
    longText(plain(start.program), { class: "text" }, WHOLE),
    settings.map(([key, value]) => [h("h4", null, key), value === null ? h("p", { class: "bad-text" }, "not found") : json(value, key, WHOLE), hidden(value)]),
    list(start.references).length ? [h("h4", null, "Secrets and variables that it uses"), json(start.references, "Secrets and variables that it uses", WHOLE)] : null,
    h("p", { class: "fingerprint" }, "Fingerprint ", h("code", null, plain(start.fingerprint))));
}

// The variables whose values are tokens, which stay hidden.
function hidden(value) {
  const names = value !== null && typeof value === "object" ? Object.keys(value).filter((name) => value[name] === null) : [];
  return names.length ? h("p", { class: "muted" }, `Tokens are not shown: ${names.join(", ")}`) : null;
}

// The complete tool; a long list leaves out its text.
async function whole(server, tool) {
  return tool?.omitted ? (await get(query(path("trust", server), { tool: tool.tool }))).held : tool;
}

// A tool as the request describes it: a short diff, or the beginning of a long one.
function asAsked(tool) {
  if (typeof tool.diff !== "string") return h("p", { class: "muted unread" }, "Loading the definition…");
  return [writtenDiff(tool.diff), tool.truncated === true ? h("p", { class: "bad-text unread" }, "⋯ truncated; loading the rest…") : null];
}

// A tool as it is held now: its findings, and all of its changes or its definition.
function drawNow(place, tool, now) {
  if (!now) {
    add(place, h("div", { class: "callout unread", "data-tone": "warn" }, "The tool is no longer held, or the server no longer offers it: there is nothing to approve."));
    return;
  }
  if (now.fingerprint !== tool.fingerprint) {
    add(place, h("div", { class: "callout unread", "data-tone": "bad" }, "The tool has changed since this request, so you cannot approve it here. A new request follows."));
    return;
  }
  fill(place, findings(now.findings), heldText(now) ?? h("p", { class: "bad-text unread" }, "The definition is too large to be stored; only its fingerprint is known."));
}

function instructions(said) {
  if (typeof said === "string") return longText(said, { class: "text" }, WHOLE);
  return typeof said.diff === "string" ? writtenDiff(said.diff) : json(said, "Instructions", WHOLE);
}
