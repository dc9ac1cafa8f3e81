// The keyboard: going to pages, moving in lists, deciding. Keys do nothing while somebody types.

import { add, button, h } from "./dom.js";

const PAGES = { o: "overview", s: "servers", t: "tools", a: "approvals", y: "activity", ",": "settings" };
const AFTER_G_MS = 1500;
const LIST = [
  ["Go to", [["g o", "Overview"], ["g s", "Servers"], ["g t", "Tools"], ["g a", "Approvals"], ["g y", "Activity"], ["g ,", "Settings"]]],
  ["In a list", [["j", "Next"], ["k", "Previous"], ["Enter", "Open"], ["/", "Search or filter"], ["Esc", "Back"]]],
  ["In an approval", [["a", "Approve"], ["e", "Edit"], ["r", "Reject: write the reason, then Enter"]]],
  ["Anywhere", [["?", "These keys"]]],
];

// watchKeys(() => the page that is shown)
export function watchKeys(currentPage) {
  let gAt = -Infinity;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.isComposing || document.querySelector("dialog[open]")) return;
    const page = currentPage();
    if (!page) return;
    if (isTyping(event.target)) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const afterG = event.timeStamp - gAt < AFTER_G_MS;
    gAt = -Infinity;
    if (afterG && PAGES[event.key]) {
      location.hash = `#${PAGES[event.key]}`;
    } else if (event.key === "g") {
      gAt = event.timeStamp;
    } else if (event.key === "?") {
      showKeys();
    } else if (event.key === "j" || event.key === "k") {
      move(event.key === "j" ? 1 : -1);
    } else if (event.key === "/") {
      document.querySelector("main input[type=search]")?.focus();
    } else if (page.keys?.[event.key]) {
      // A key that is held down decides once.
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
  if (target.matches("textarea, select")) return true;
  return target.matches("input") && !["checkbox", "radio", "button"].includes(target.type);
}

// Moves the focus through the rows of the list on this page.
function move(step) {
  const rows = [...document.querySelectorAll("main a.row")].filter((row) => row.offsetParent !== null);
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
