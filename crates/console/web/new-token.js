// The form to create a token.

import { get, path, post } from "./api.js";
import { field, fill, h, keyed, problem, prose, select } from "./dom.js";
import { on } from "./store.js";

const RIGHTS = [
  ["call", "use tools, prompts and resources over MCP"],
  ["approve", "see and decide approval requests, and review servers"],
  ["admin", "see and change everything else: servers, rules, tokens, the configuration"],
];
const LIFETIMES = [["", "never"], ["86400", "after 1 day"], ["2592000", "after 30 days"], ["7776000", "after 90 days"], ["31536000", "after a year"]];

// openNewToken(done) → {node, close()}. Calls `done` with the response of the gateway.
export function openNewToken(done) {
  const place = h("div");
  let known = { profiles: [], servers: [] };
  let form = null;

  function draw() {
    form = tokenForm((said) => {
      draw();
      done(said);
    });
    form.offer(known);
    fill(place, form.node);
  }

  async function read() {
    try {
      const { config } = await get(path("config"));
      known = { profiles: Object.keys(config.profiles ?? {}), servers: Object.keys(config.mcpServers ?? {}) };
      form.offer(known);
    } catch (error) {
      form.fail(error);
    }
  }

  draw();
  read();
  return {
    node: h("section", { class: "card", "aria-labelledby": "new-token-title" }, h("h3", { id: "new-token-title" }, "Create a token"), place),
    close: on("config", read),
  };
}

function tokenForm(done) {
  const name = h("input", { type: "text", maxlength: 64, autocomplete: "off", spellcheck: "false" });
  const lifetime = select(LIFETIMES);
  const profile = select([["", "none"]]);
  const profiles = field("Profile", profile, "Optional: what it may see and call.");
  const rights = RIGHTS.map(([right]) => h("input", { type: "checkbox", value: right, checked: right === "call" }));
  const servers = h("div", { class: "choices scroll" });
  const held = choices("Servers", servers, "Optional: without a choice, the token reaches every server.");
  const problems = h("div");
  const send = h("button", { type: "submit", class: "primary" }, "Create");

  function fail(error) {
    fill(problems, problem(error));
  }

  async function submit(event) {
    event.preventDefault();
    fill(problems);
    send.disabled = true;
    const chosen = [...servers.querySelectorAll("input:checked")].map((box) => box.value);
    try {
      done(await post(path("tokens"), {
        name: name.value.trim(),
        rights: rights.filter((box) => box.checked).map((box) => box.value),
        profile: profile.value || undefined,
        servers: chosen.length ? chosen : undefined,
        expiresInSeconds: lifetime.value ? Number(lifetime.value) : undefined,
      }));
    } catch (error) {
      fail(error);
    }
    send.disabled = false;
  }

  return {
    node: h("form", { class: "form stack", on: { submit } },
      h("div", { class: "field-row" }, field("Name", name, prose("Letters, digits, `-`, `_` and `.`")), field("Expires", lifetime), profiles),
      choices("Rights", h("div", { class: "choices" }, RIGHTS.map(([right, words], at) => h("label", { class: "check" }, rights[at], h("span", null, h("code", null, right), ` ${words}`))))),
      held, problems, h("div", { class: "buttons" }, send)),
    fail,
    // Offers the profiles and servers that exist, and keeps what is chosen.
    offer(known) {
      const was = profile.value;
      fill(profile, h("option", { value: "" }, "none"), known.profiles.map((one) => h("option", { value: one }, one)));
      profile.value = known.profiles.includes(was) ? was : "";
      profiles.hidden = !known.profiles.length;
      keyed(servers, known.servers, (one) => one, (one) => h("label", { class: "check" }, h("input", { type: "checkbox", value: one }), h("span", null, one)));
      held.hidden = !known.servers.length;
    },
  };
}

function choices(title, boxes, hint) {
  return h("fieldset", { class: "field" }, h("legend", null, title), boxes, hint ? h("p", { class: "hint" }, hint) : null);
}
