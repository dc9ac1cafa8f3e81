// A request for trust: tools of a server that are new or have changed, and what they say.

import { arrange, panel, rejection } from "./decide.js";
import { writtenDiff } from "./diff.js";
import { add, h } from "./dom.js";
import { mark } from "./marks.js";
import { longText } from "./payload.js";
import { isWaiting } from "./store.js";

const WHY = { changed: "changed since it was approved", new: "new", hidden: "has text that a person cannot see", rejected: "was rejected" };

export function trustRequest(approval) {
  const tools = Array.isArray(approval.request?.tools) ? approval.request.tools : [];
  const node = h("div", { class: "stack" },
    h("p", null, "Until you decide, agents do not see these. Read what they say: a model will take it for instructions."),
    approval.request?.instructions ? h("section", { class: "card" }, h("h3", null, "Instructions of the server"), instructions(approval.request.instructions)) : null,
    tools.map((tool) => h("section", { class: "card" },
      h("h3", null, h("a", { href: `#tools/${encodeURIComponent(approval.server ?? "")}/${encodeURIComponent(tool.name)}` }, tool.name), " ", mark(tool.why, WHY[tool.why] ?? tool.why)),
      tool.diff ? writtenDiff(tool.diff) : h("p", { class: "muted" }, "Follow its name to read its whole definition."),
      h("p", { class: "fingerprint" }, "Fingerprint ", h("code", null, tool.fingerprint)))));
  if (!isWaiting(approval)) return { node };

  const own = panel(approval);
  const accept = () => own.decide("approve");
  const approve = own.button(tools.length > 1 ? `Approve all ${tools.length}` : "Approve", accept, { class: "primary" });
  const reject = rejection(own, (reason) => own.decide("reject", reason));
  add(node, arrange(own, h("div", { class: "decide-row" }, approve, reject.node)));
  return { node, own, keys: { a: accept, r: reject.focus } };
}

function instructions(said) {
  if (typeof said === "string") return longText(said, { class: "text" });
  return said.diff ? writtenDiff(said.diff) : longText(JSON.stringify(said, null, 2), { class: "json" });
}
