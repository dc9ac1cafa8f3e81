// A request for trust: tools of a server that are new or have changed, and what they say.

import { get, path, query } from "./api.js";
import { arrange, panel, rejection } from "./decide.js";
import { writtenDiff } from "./diff.js";
import { add, fill, h } from "./dom.js";
import { mark } from "./marks.js";
import { json, list, longText } from "./payload.js";
import { isWaiting } from "./store.js";
import { findings } from "./tools.js";

const WHY = { changed: "changed since it was approved", new: "new", hidden: "has text that a person cannot see", rejected: "was rejected" };

export function trustRequest(approval) {
  const tools = list(approval.request?.tools).filter((tool) => typeof tool?.name === "string");
  const places = new Map(tools.map((tool) => [tool.name, h("div", { class: "stack" }, h("p", { class: "muted" }, "Follow its name to read its whole definition."))]));
  const node = h("div", { class: "stack" },
    h("p", null, "Until you decide, agents do not see these. Read what they say: a model will take it for instructions."),
    approval.request?.instructions ? h("section", { class: "card" }, h("h3", null, "Instructions of the server"), instructions(approval.request.instructions)) : null,
    tools.map((tool) => h("section", { class: "card" },
      h("h3", null, h("a", { href: `#tools/${encodeURIComponent(approval.server ?? "")}/${encodeURIComponent(tool.name)}` }, tool.name), " ", mark(tool.why, WHY[tool.why] ?? tool.why)),
      places.get(tool.name),
      h("p", { class: "fingerprint" }, "Fingerprint ", h("code", null, tool.fingerprint)))));
  for (const tool of tools) if (tool.diff) fill(places.get(tool.name), writtenDiff(String(tool.diff)));
  if (!isWaiting(approval)) return { node };
  readHeld(approval, tools, places);

  const own = panel(approval);
  const accept = () => own.decide("approve");
  const approve = own.button(tools.length > 1 ? `Approve all ${tools.length}` : "Approve", accept, { class: "primary" });
  const reject = rejection(own, (reason) => own.decide("reject", reason));
  add(node, arrange(own, h("div", { class: "decide-row" }, approve, reject.node)));
  return { node, own, keys: { a: accept, r: reject.focus } };
}

// What these tools say as they are held now: findings, the whole of a diff, the definition of a new one.
async function readHeld(approval, tools, places) {
  const said = await get(query(path("trust"), { server: approval.server })).catch(() => null);
  const held = said?.servers[0]?.held ?? [];
  for (const tool of tools) {
    const now = held.find((other) => other.tool === tool.name);
    if (!now) continue;
    const other = now.fingerprint !== tool.fingerprint;
    fill(places.get(tool.name),
      other ? h("div", { class: "callout", "data-tone": "bad" }, "It has changed again since this was asked. Your decision does not count for what it says now.") : null,
      findings(now.findings),
      now.diff ? writtenDiff(now.diff) : now.definition ? [now.definition.description ? longText(String(now.definition.description), { class: "text" }) : null, h("details", null, h("summary", null, "Its definition"), json(now.definition))] : null);
  }
}

function instructions(said) {
  if (typeof said === "string") return longText(said, { class: "text" });
  return said.diff ? writtenDiff(String(said.diff)) : longText(JSON.stringify(said, null, 2), { class: "json" });
}
