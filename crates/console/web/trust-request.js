// A request for trust: tools of a server that are new or have changed, and what they say; or a server that is not
// started before somebody has agreed, and what it would start.

import { get, path, query } from "./api.js";
import { arrange, keysTo, panel, readFirst, rejection } from "./decide.js";
import { writtenDiff } from "./diff.js";
import { add, button, fill, h, plain, problem, say } from "./dom.js";
import { findings, heldText, secondLook, suspicions } from "./held.js";
import { mark } from "./marks.js";
import { json, list, longText, WHOLE } from "./payload.js";
import { isWaiting } from "./store.js";

const WHY = { __proto__: null, changed: "changed since it was approved", new: "new", hidden: "has text that a person cannot see", dangerous: "has dangerous text", rejected: "was rejected" };

export function trustRequest(approval) {
  const start = approval.request?.start;
  const tools = list(approval.request?.tools).filter((tool) => typeof tool?.name === "string");
  const places = new Map(tools.map((tool) => [tool, h("div", { class: "stack" }, asAsked(tool))]));
  const trouble = h("div");
  const shown = h("div", { class: "stack" },
    h("p", null, start ? "Until you decide, this is not started. Read it: it runs under your account." : "Until you decide, agents do not see these. Read what they say: a model will take it for instructions."),
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
  // What is suspicious in each tool as it is held now. Before that is read, the warnings of the request tell.
  const suspicious = new Map();
  const warned = list(approval.warnings).map((text) => ({ severity: "warn", says: plain(text) }));
  const doubts = () => (suspicious.size ? [...suspicious] : [[approval.server, warned]]);
  const words = tools.length > 1 ? `Approve all ${tools.length}` : "Approve";
  const accept = async () => {
    if (await secondLook(tools.length === 1 ? `Approve ${approval.server}:${tools[0].name}?` : `${words}?`, doubts())) await own.decide("approve");
  };
  const approve = own.button(words, accept);
  // What is suspicious is not approved with the button that stands out, nor at the first click.
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
      fill(trouble, problem(new Error(`What these tools say could not be read: ${error.message}`)), button("Try again", readNow, { class: "small" }));
    }
    mood();
    first.look();
  }
  readNow();
  return { node, own, keys: { ...keysTo(approve, accept, shown), r: reject.focus } };
}

// What would be started. The gateway does not tell variables that hold a token: they are null, as is a file that is not
// there.
function toStart(start) {
  const settings = Object.entries(start.settings ?? {});
  return h("section", { class: "card" },
    h("h3", null, "What would be started"),
    longText(plain(start.program), { class: "text" }, WHOLE),
    settings.map(([key, value]) => [h("h4", null, key), value === null ? h("p", { class: "bad-text" }, "not found") : json(value, key, WHOLE), hidden(value)]),
    list(start.references).length ? [h("h4", null, "Secrets and variables that it gets"), json(start.references, "Secrets and variables that it gets", WHOLE)] : null,
    h("p", { class: "fingerprint" }, "Fingerprint ", h("code", null, plain(start.fingerprint))));
}

// The variables whose values are tokens, which are not shown.
function hidden(value) {
  const names = value !== null && typeof value === "object" ? Object.keys(value).filter((name) => value[name] === null) : [];
  return names.length ? h("p", { class: "muted" }, `Tokens are not shown: ${names.join(", ")}`) : null;
}

// A tool with its texts, which a long list leaves out.
async function whole(server, tool) {
  return tool?.omitted ? (await get(query(path("trust", server), { tool: tool.tool }))).held : tool;
}

// What the request itself tells of a tool: the whole of a short diff, or less.
function asAsked(tool) {
  if (typeof tool.diff !== "string") return h("p", { class: "muted unread" }, "What it says is being read.");
  return [writtenDiff(tool.diff), tool.truncated === true ? h("p", { class: "bad-text unread" }, "⋯ this is cut here; the rest is being read.") : null];
}

// What the tool says as it is held now: findings, and the whole of what changed or of its definition.
function drawNow(place, tool, now) {
  if (!now) {
    add(place, h("div", { class: "callout unread", "data-tone": "warn" }, "It is not held back any more, or the server does not offer it now: there is nothing to approve."));
    return;
  }
  if (now.fingerprint !== tool.fingerprint) {
    add(place, h("div", { class: "callout unread", "data-tone": "bad" }, "It has changed again since this request was made, so it cannot be approved here. A new request follows."));
    return;
  }
  fill(place, findings(now.findings), heldText(now) ?? h("p", { class: "bad-text unread" }, "What it says is not known."));
}

function instructions(said) {
  if (typeof said === "string") return longText(said, { class: "text" }, WHOLE);
  return typeof said.diff === "string" ? writtenDiff(said.diff) : json(said, "Instructions", WHOLE);
}
