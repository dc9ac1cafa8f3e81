// A question of a server: a form to fill in, or an address to open.

import { arrange, keysTo, panel, readFirst } from "./decide.js";
import { add, h, plain } from "./dom.js";
import { schemaForm } from "./form.js";
import { address, json, longText, WHOLE } from "./payload.js";
import { isWaiting } from "./store.js";

export function question(approval) {
  const request = approval.request ?? {};
  const byAddress = request.mode === "url" || typeof request.url === "string";
  const node = h("div", { class: "stack" }, h("section", { class: "card" },
    h("h3", null, h("strong", null, approval.server), " asks"), longText(plain(request.message), { class: "text" }, WHOLE),
    byAddress ? address(plain(request.url)) : null));
  if (!isWaiting(approval)) {
    if (!byAddress) add(node, h("details", null, h("summary", null, "Form"), json(request.requestedSchema)));
    return { node };
  }
  return byAddress ? toAddress(approval, node) : toForm(approval, node, request.requestedSchema);
}

function toForm(approval, node, schema) {
  const own = panel(approval);
  const form = schemaForm(schema);
  let typed = false;
  form.node.addEventListener("input", () => {
    typed = true;
  });
  async function send() {
    const { text, problems } = form.read();
    if (problems.length) return;
    const refused = await own.decide("respond", { action: "accept" }, ["content", text]);
    if (refused.length) form.show(refused);
  }
  const accept = own.button("Send answer", send, { class: "primary" });
  const [row, decline] = buttons(own, accept);
  const first = readFirst(accept, node);
  add(node, arrange(own, form.node, h("p", { class: "muted small-text" }, `Your answer goes to ${approval.server}. Decline refuses to answer; Cancel dismisses the question.`), first.node, row));
  return { node, dirty: () => typed, own, keys: { ...keysTo(accept, send, node), r: () => decline.focus(), e: () => form.node.querySelector("input, select, textarea")?.focus() } };
}

function toAddress(approval, node) {
  const own = panel(approval);
  const agree = () => own.decide("respond", { action: "accept" });
  const accept = own.button("Accept", agree, { class: "primary" });
  const [row, decline] = buttons(own, accept);
  const first = readFirst(accept, node);
  add(node, arrange(own, h("p", null, "The server asks you to open this address. Check the host first: the console opens it only if you confirm. Accept tells the server that you agree to open it."),
    first.node, row));
  return { node, own, keys: { ...keysTo(accept, agree, node), r: () => decline.focus() } };
}

function buttons(own, first) {
  const decline = own.button("Decline", () => own.decide("respond", { action: "decline" }));
  const cancel = own.button("Cancel", () => own.decide("respond", { action: "cancel" }), { class: "quiet" });
  return [h("div", { class: "decide-row" }, first, decline, cancel), decline];
}
