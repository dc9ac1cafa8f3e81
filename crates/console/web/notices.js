// Notices, announcements for screen readers, the count in the title and the icon of the tab, and desktop
// notifications.

import { add, button, h, prose, say, spelled } from "./dom.js";
import { details, sentence } from "./marks.js";
import { preference } from "./session.js";
import { isWaiting, on, waitingCount } from "./store.js";

const STAYS_MS = 5000;
const MOST_NOTICES = 3;
const FRESH_MS = 500;
const born = new WeakMap();
const pinned = new WeakSet();

// A notice at the edge of the page; the tone is "good", "bad" or undefined. One that is bad or pinned is closed by the
// user, or by the function that is returned; one that is pinned stays on other pages, and makes no room for others.
export function notice(text, tone, isPinned = false) {
  const node = h("div", { class: "notice", "data-tone": tone, role: tone === "bad" ? "alert" : "status" }, h("span", null, prose(text)));
  born.set(node, performance.now());
  const close = () => node.remove();
  add(node, button("×", close, { class: "quiet square", "aria-label": "Close this notice" }));
  const place = document.getElementById("notices");
  place.append(node);
  if (isPinned) pinned.add(node);
  else if (tone !== "bad") setTimeout(close, STAYS_MS);
  const passing = [...place.children].filter((other) => !pinned.has(other));
  passing.slice(0, -MOST_NOTICES).forEach((other) => other.remove());
  return close;
}

// Removes the notices of the previous page. One that has just appeared was caused by the navigation.
export function dismissNotices() {
  for (const node of [...document.getElementById("notices").children]) if (!pinned.has(node) && performance.now() - born.get(node) > FRESH_MS) node.remove();
}

export function announce(text, urgent) {
  const region = document.getElementById(urgent ? "assertive" : "polite");
  region.textContent = "";
  // Screen readers ignore a region that changes twice in one frame.
  requestAnimationFrame(() => say(region, text));
}

let pageTitle = "Switchboard";
export function setTitle(title) {
  pageTitle = title;
  showCount();
}

let shownCount = null;
function showCount() {
  const count = waitingCount();
  document.title = spelled(`${count ? `(${count}) ` : ""}${pageTitle} · Switchboard`);
  if (count === shownCount) return;
  shownCount = count;
  document.getElementById("icon").href = count ? badged(count) : "/console/icon.svg";
}

// The icon with a number. Only a number of our own is inserted, never untrusted text.
function badged(count) {
  const text = count > 9 ? "9+" : String(Math.trunc(count));
  return `data:image/svg+xml,${encodeURIComponent(
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32"><rect width="32" height="32" rx="8" fill="#1f5fbf"/><circle cx="20" cy="20" r="12" fill="#c62828"/><text x="20" y="26" font-family="sans-serif" font-weight="700" font-size="16" fill="#fff" text-anchor="middle">${text}</text></svg>`,
  )}`;
}

const announced = new Set();
export function watchApprovals() {
  on("approvals", ({ approval, event, gone }) => {
    showCount();
    gone?.forEach((id) => announced.delete(id));
    if (!approval) return;
    if (!isWaiting(approval)) {
      announced.delete(approval.id);
      return;
    }
    if (event === "approval.created" && !announced.has(approval.id)) {
      announced.add(approval.id);
      announce(`New request: ${[sentence(approval), details(approval)].filter(Boolean).join(": ")}`);
    } else if (event === "approval.escalated") {
      announce(`Escalated: ${sentence(approval)}`, true);
      notifyDesktop(approval);
    }
  });
}

function notifyDesktop(approval) {
  if (preference("notify") !== "yes" || !("Notification" in window) || Notification.permission !== "granted") return;
  const shown = new Notification(spelled(`${approval.server} is waiting for you`), { body: spelled([sentence(approval), details(approval)].filter(Boolean).join(": ")), tag: approval.id, icon: "/console/icon.svg" });
  shown.addEventListener("click", () => {
    window.focus();
    location.hash = `#approvals/${encodeURIComponent(approval.id)}`;
    shown.close();
  });
}

// Asks for confirmation, with buttons that name their actions. → true or false
export function confirm({ title, text, detail, yes, danger }) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { "aria-labelledby": "confirm-title" });
    const close = (answer) => () => {
      dialog.close();
      dialog.remove();
      resolve(answer);
    };
    const cancel = button("Cancel", close(false));
    add(dialog, [
      h("h2", { id: "confirm-title" }, title),
      text ? h("p", null, text) : null,
      detail ?? null,
      h("div", { class: "buttons end" }, cancel, button(yes, close(true), { class: danger ? "danger" : "primary" })),
    ]);
    dialog.addEventListener("cancel", (event) => {
      event.preventDefault();
      close(false)();
    });
    document.body.append(dialog);
    dialog.showModal();
    // Otherwise the browser would focus a part that scrolls.
    cancel.focus();
  });
}
