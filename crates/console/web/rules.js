// Rules: lists them, forgets remembered decisions, and tests a rule.

import { get, path, post, remove } from "./api.js";
import { button, empty, fill, h, keyed, problem } from "./dom.js";
import { mark } from "./marks.js";
import { confirm, notice } from "./notices.js";
import { json } from "./payload.js";
import { on } from "./store.js";
import { agoTime, atTime, leftTime, number, plural } from "./words.js";

const SOURCES = { config: "configuration", server: "server configuration", remembered: "remembered" };

export function openRules() {
  const list = h("ul", { class: "rules", "aria-label": "Rules" });
  const none = h("div");

  async function read() {
    try {
      const { rules } = await get(path("approvals", "rules"));
      keyed(list, rules, (rule) => rule.id, row);
      fill(none, rules.length ? null : empty("No rules.", "Without rules, only questions and sampling requests from servers need your answer. Add rules to approvals.rules in the configuration, or remember a decision."));
    } catch (error) {
      fill(none, problem(error));
    }
  }

  function row(rule) {
    const forget = async () => {
      if (!(await confirm({ title: "Forget this remembered decision?", detail: h("p", null, h("code", null, rule.text)), text: "It no longer applies to later calls.", yes: "Forget", danger: true }))) return;
      try {
        await remove(path("approvals", "rules", rule.id));
        notice("The decision is forgotten.", "good");
        read();
      } catch (error) {
        notice(error.message, "bad");
      }
    };
    return h("li", null, h("code", { class: "rule-text" }, rule.text),
      h("span", { class: "muted" }, SOURCES[rule.source] ?? rule.source, rule.by ? ` by ${rule.by}` : null, rule.createdAt ? [" ", agoTime(rule.createdAt)] : null, rule.expiresAt ? [" · ", leftTime(rule.expiresAt)] : null),
      rule.source === "remembered" ? button("Forget", forget, { class: "small", "aria-label": `Forget ${rule.text}` }) : null);
  }

  read();
  const offs = [on("rules", read), on("config", read), on("approvals", ({ approval }) => approval?.decision?.remember && read())];
  return {
    node: h("section", { class: "card", "aria-labelledby": "rules-title" }, h("h2", { id: "rules-title" }, "Rules"),
      h("p", { class: "muted" }, "A matching deny rule always wins. Between ask and allow, the more specific rule wins; if both are equally specific, a remembered rule wins, then ask."), list, none, tester()),
    close: () => offs.forEach((off) => off()),
  };
}

function tester() {
  const input = h("input", { type: "text", id: "rule-test", class: "code", autocomplete: "off", spellcheck: "false", placeholder: "ask files:delete_*" });
  const result = h("div", { "aria-live": "polite" });
  const test = async () => {
    const text = input.value.trim();
    if (!text) return;
    let rule = text;
    if (text.startsWith("{")) {
      try {
        rule = JSON.parse(text);
      } catch (error) {
        fill(result, problem(new Error(`The rule is not valid JSON: ${error.message}`)));
        return;
      }
    }
    try {
      fill(result, found(await post(path("approvals", "rules", "test"), { rule })));
    } catch (error) {
      fill(result, problem(error));
    }
  };
  input.addEventListener("keydown", (event) => {
    if (event.key === "Enter") test();
  });
  return h("div", { class: "tester" }, h("h3", null, "Test a rule"),
    h("label", { for: "rule-test" }, "A rule, such as ", h("code", null, "ask files:delete_*"), ". The test changes nothing."),
    h("div", { class: "filters" }, input, button("Test", test)), result);
}

function found(said) {
  const tools = said.tools ?? [];
  const calls = said.calls ?? {};
  return h("div", { class: "stack" },
    h("p", null, "Parsed as ", h("code", null, said.text ?? ""), "."),
    h("p", null, `Of the last ${plural(calls.looked ?? 0, "call")}, the rule matches ${number(calls.matched ?? 0)}${calls.unsure ? `; ${number(calls.unsure)} more may match, but their arguments were not stored` : ""}.`),
    tools.length ? h("details", { open: tools.length <= 12 }, h("summary", null, `${plural(tools.length, "item")} that the rule matches`), h("ul", { class: "plain-list" }, tools.slice(0, 200).map((tool) => h("li", null, h("code", null, tool.name), tool.kind === "tool_call" ? " " : h("span", { class: "muted" }, ` ${tool.kind} `), tool.now === tool.then ? [mark(tool.then), h("span", { class: "muted" }, " unchanged")] : [mark(tool.now), " → ", mark(tool.then)])))) : h("p", { class: "muted" }, "The rule matches no known tool, prompt or resource."),
    calls.examples?.length ? h("details", null, h("summary", null, "Matching calls"), h("ul", { class: "plain-list" }, calls.examples.map((call) => h("li", null, atTime(call.at), " ", h("code", null, `${call.server}:${call.tool}`), ` by ${call.client ?? "an unknown client"}`, call.arguments === undefined ? null : json(call.arguments))))) : null);
}
