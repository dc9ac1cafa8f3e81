// The keyboard: navigation, movement in lists, decisions. Letters do nothing while the user types, and no letter
// decides: it may have been meant for another window that has just brought this one to the front.

import { add, button, h } from "./dom.js";
import { preference } from "./session.js";

const PAGES = { __proto__: null, o: "overview", s: "servers", t: "tools", a: "approvals", y: "activity", m: "memory", c: "access", ",": "settings" };
const AFTER_G_MS = 1500;
const LIST = [
  ["Go to", [["g o", "Overview"], ["g s", "Servers"], ["g t", "Tools"], ["g a", "Approvals"], ["g y", "Activity"], ["g m", "Memory"], ["g c", "Access"], ["g ,", "Settings"]]],
  ["In a list", [["j", "Next"], ["k", "Previous"], ["Enter", "Open"], ["/", "Search or filter"], ["Esc", "Back"]]],
  ["In a request", [["a", "Go to the button that approves or sends"], ["Ctrl Enter", "Approve or send"], ["e", "Edit"], ["r", "Go to the reason for a rejection, or to Decline"]]],
  ["Anywhere", [["?", "Show the keyboard shortcuts"]]],
];

// watchKeys(() => the current page)
export function watchKeys(currentPage) {
  let gAt = -Infinity;
  document.addEventListener("keydown", (event) => {
    if (event.isComposing || document.querySelector("dialog[open]")) return;
    const page = currentPage();
    if (!page) return;
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && !event.altKey && !event.shiftKey) {
      if (!event.repeat && page.send?.(event.target)) event.preventDefault();
      return;
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (isTyping(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (event.key !== "Escape" && preference("keys") === "off") return;
    const afterG = event.timeStamp - gAt < AFTER_G_MS;
    gAt = -Infinity;
    if (afterG) {
      // The next key belongs to g.
      if (PAGES[event.key]) location.hash = `#${PAGES[event.key]}`;
    } else if (event.key === "g") {
      gAt = event.timeStamp;
    } else if (event.key === "?") {
      showKeys();
    } else if (event.key === "j" || event.key === "k") {
      move(event.key === "j" ? 1 : -1);
    } else if (event.key === "/") {
      document.querySelector("main input[type=search]")?.focus();
    } else if (page.keys?.[event.key]) {
      if (!event.repeat) page.keys[event.key]();
    } else if (event.key === "Escape" && page.back) {
      location.hash = page.back();
    } else {
      return;
    }
    event.preventDefault();
  });
}

function isTyping(target) {
  if (!(target instanceof HTMLElement)) return false;
  return target.matches("textarea, select, input");
}

// Moves the focus through the rows of the list on this page.
function move(step) {
  const rows = [...document.querySelectorAll("main a.row, main summary.row")].filter((row) => row.offsetParent !== null);
  if (!rows.length) return;
  const chosen = rows.indexOf(document.activeElement);
  const from = chosen >= 0 ? chosen : rows.findIndex((row) => row.getAttribute("aria-current") === "true");
  const next = from < 0 ? (step > 0 ? 0 : rows.length - 1) : Math.min(Math.max(from + step, 0), rows.length - 1);
  rows[next].focus();
  rows[next].scrollIntoView({ block: "nearest" });
}

export function showKeys() {
  const dialog = h("dialog", { class: "keys", "aria-labelledby": "keys-title" });
  add(dialog, [
    h("h2", { id: "keys-title" }, "Keyboard shortcuts"),
    h("div", { class: "keys-groups" }, LIST.map(([title, keys]) =>
      h("section", null, h("h3", null, title), h("dl", null, keys.map(([key, what]) =>
        h("div", null, h("dt", null, key.split(" ").map((one) => h("kbd", null, one))), h("dd", null, what))))))),
    h("div", { class: "buttons end" }, button("Close", () => dialog.close(), { class: "primary" })),
  ]);
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}
