// Settings: preferences of this browser, the rules, and the configuration in use.

import { get, path, post } from "./api.js";
import { add, button, fill, h, heading, problem, prose, say } from "./dom.js";
import { notice } from "./notices.js";
import { json } from "./payload.js";
import { openRules } from "./rules.js";
import { prefer, preference } from "./session.js";
import { on, state } from "./store.js";
import { agoTime } from "./words.js";

export function open() {
  const rules = openRules();
  const config = openConfig();
  const gateway = h("dl", { class: "facts" });
  const drawGateway = () => {
    const { status } = state;
    if (!status) return;
    const rows = [["Version", status.version], ["Process ID", String(status.pid)], ["Started", agoTime(status.startedAt)], ["Listens on", status.listen ?? "the socket only"]];
    fill(gateway, rows.map(([title, value]) => h("div", null, h("dt", null, title), h("dd", null, value))));
  };
  drawGateway();
  const off = on("status", drawGateway);
  const node = h("div", { class: "page" }, heading("Settings"),
    h("div", { class: "columns" },
      h("section", { class: "card" }, h("h2", null, "This browser"), theme(), desktop(), letters()),
      h("section", { class: "card" }, h("h2", null, "Gateway"), gateway)),
    rules.node, config.node);
  return {
    title: () => "Settings",
    node,
    close() {
      off();
      rules.close();
      config.close();
    },
  };
}

function theme() {
  const chosen = preference("theme") ?? "auto";
  const group = h("div", { class: "segments", role: "radiogroup", "aria-label": "Theme" }, [["auto", "System"], ["light", "Light"], ["dark", "Dark"]].map(([value, words]) => {
    const input = h("input", { type: "radio", name: "theme", value, checked: value === chosen });
    input.addEventListener("change", () => {
      prefer("theme", value === "auto" ? null : value);
      document.documentElement.dataset.theme = value;
    });
    return h("label", null, input, h("span", null, words));
  }));
  return h("div", { class: "setting" }, h("div", null, h("strong", null, "Theme")), group);
}

function desktop() {
  const can = "Notification" in window;
  const box = h("input", { type: "checkbox", checked: can && preference("notify") === "yes" && Notification.permission === "granted", disabled: !can });
  const note = h("p", { class: "muted" }, "The browser shows a desktop notification when a request escalates.");
  box.addEventListener("change", async () => {
    if (!box.checked) {
      prefer("notify", null);
      return;
    }
    const allowed = await Notification.requestPermission();
    box.checked = allowed === "granted";
    prefer("notify", box.checked ? "yes" : null);
    if (!box.checked) say(note, "The browser blocks notifications from this page. Allow them in its settings.");
  });
  return h("div", { class: "setting" }, h("div", null, h("label", { class: "check" }, box, h("strong", null, "Desktop notifications")), note));
}

function letters() {
  const box = h("input", { type: "checkbox", checked: preference("keys") !== "off" });
  box.addEventListener("change", () => prefer("keys", box.checked ? null : "off"));
  return h("div", { class: "setting" }, h("div", null, h("label", { class: "check" }, box, h("strong", null, "Keyboard shortcuts")),
    h("p", { class: "muted" }, "Single keys such as j, k and / navigate the console. If this is off, Esc and Ctrl+Enter still work.")));
}

function openConfig() {
  const body = h("div", { class: "stack" });
  const file = h("p", { class: "muted" });
  async function read() {
    try {
      draw(await get(path("config")));
    } catch (error) {
      fill(body, problem(error));
    }
  }
  function draw(said) {
    fill(file, "From ", h("code", null, said.file), ". Values that may be secrets are hidden, and defaults are filled in.");
    fill(body, said.problem ? h("div", { class: "callout", "data-tone": "warn" }, h("strong", null, "The gateway keeps the previous configuration, because the new one is invalid: "), prose(said.problem)) : null, json(said.config, "Configuration"));
  }
  const again = button("Reload", async () => {
    try {
      draw(await post(path("config", "reload")));
      notice("The configuration is applied.", "good");
    } catch (error) {
      const problems = error.body?.problems ?? [];
      const where = problems.map((one) => `${one.file}:${one.line}:${one.column}: ${one.message}${one.hint ? ` (${one.hint})` : ""}`);
      notice(where.length ? where.join("; ") : error.message, "bad");
    }
  }, { class: "small" });
  read();
  const node = h("section", { class: "card", "aria-labelledby": "config-title" }, h("div", { class: "card-head" }, h("h2", { id: "config-title" }, "Configuration"), again));
  add(node, [file, body]);
  return { node, close: on("config", read) };
}
