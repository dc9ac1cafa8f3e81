// A question of a server to the person: a form to fill in, or an address to go to.

import { arrange, panel } from "./decide.js";
import { add, h } from "./dom.js";
import { schemaForm } from "./form.js";
import { address, json, longText } from "./payload.js";
import { isWaiting } from "./store.js";

export function question(approval) {
  const request = approval.request ?? {};
  const byAddress = request.mode === "url" || typeof request.url === "string";
  const node = h("div", { class: "stack" }, h("section", { class: "card" },
    h("h3", null, h("strong", null, approval.server), " asks"), longText(String(request.message ?? ""), { class: "text" }),
    byAddress ? address(String(request.url ?? "")) : null));
  if (!isWaiting(approval)) {
    if (!byAddress) add(node, h("details", null, h("summary", null, "The form"), json(request.requestedSchema)));
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
    const { value, problems } = form.read();
    if (problems.length) return;
    const refused = await own.decide("respond", { action: "accept", content: value });
    if (refused.length) form.show(refused);
  }
  add(node, arrange(own, form.node, h("p", { class: "muted small-text" }, `What you send goes to ${approval.server}. Decline tells it no; Cancel says that you do not want to decide.`), buttons(own, own.button("Send answer", send, { class: "primary" }))));
  return { node, dirty: () => typed, own, keys: { a: send, r: () => own.decide("respond", { action: "decline" }), e: () => form.node.querySelector("input, select, textarea")?.focus() } };
}

function toAddress(approval, node) {
  const own = panel(approval);
  const accept = () => own.decide("respond", { action: "accept" });
  add(node, arrange(own, h("p", null, "The server wants you to do something at this address. Look at the host first: nothing opens by itself. Accept tells the server that you agree to go there."),
    buttons(own, own.button("Accept", accept, { class: "primary" }))));
  return { node, own, keys: { a: accept, r: () => own.decide("respond", { action: "decline" }) } };
}

function buttons(own, first) {
  return h("div", { class: "decide-row" }, first,
    own.button("Decline", () => own.decide("respond", { action: "decline" })),
    own.button("Cancel", () => own.decide("respond", { action: "cancel" }), { class: "quiet" }));
}
