// Profiles: the list, and one profile with the definitions that its clients see.

import { accessList } from "./access-list.js";
import { get, path } from "./api.js";
import { add, button, fill, h, heading, plain, problem, prose, say } from "./dom.js";
import { described } from "./tool.js";
import { number, plural } from "./words.js";

const SHOWS = { direct: "every tool", search: "a menu" };
const LISTS = [["menu", "Menu", "name"], ["toolDefinitions", "Tools", "name"], ["prompts", "Prompts", "name"], ["resources", "Resources", "uri"], ["resourceTemplates", "Resource templates", "uriTemplate"]];
const AT_ONCE = 50;

export function openProfiles() {
  const title = h("h2", { id: "profiles-title", tabindex: "-1" }, "Profiles");
  const none = h("p", { class: "muted" });
  const list = accessList("Profiles", ["Profile", "Servers", "Tools", "Clients see"], {
    where: path("profiles"),
    rows({ profiles }) {
      fill(none, profiles.length ? null : "The configuration has no profiles.");
      return profiles;
    },
    keyOf: (profile) => profile.name,
    cells: (profile) => [h("a", { href: `#access/${encodeURIComponent(profile.name)}` }, plain(profile.name)), profile.servers.map(plain).join(", ") || "–", number(profile.tools), SHOWS[profile.shows] ?? profile.shows],
  });
  list.read();
  return { node: h("section", { class: "stack", "aria-labelledby": title.id }, title, list.node, none), refresh: list.refresh, close: list.close };
}

export function openProfile(name) {
  const back = () => "#access";
  const body = h("div", { class: "stack" });
  const node = h("div", { class: "page" }, h("p", { class: "crumb" }, h("a", { href: back() }, "Access")), heading(`Profile ${plain(name)}`), body);
  let open = true;

  async function read() {
    try {
      const profile = await get(path("profiles", name));
      if (open) draw(profile);
    } catch (error) {
      if (open) fill(body, problem(error));
    }
  }

  function draw(profile) {
    fill(body,
      h("p", null, `Its clients see ${SHOWS[profile.shows] ?? profile.shows}: `, prose(profile.why), `. They may use ${plural(profile.servers.length, "server")}: ${profile.servers.map(plain).join(", ") || "none"}.`),
      LISTS.map(([list, title, key]) => items(title, profile[list] ?? [], key, list === "toolDefinitions" && profile.menu ? "Its clients find these tools by search, with the menu." : null)));
  }

  read();
  return { title: () => `Profile ${name}`, node, back, close: () => { open = false; } };
}

// The definitions of one kind, some at a time.
function items(title, list, key, note) {
  if (!list.length) return null;
  const shown = h("div", { class: "stack" });
  const more = button("", () => {
    const from = shown.childElementCount;
    add(shown, list.slice(from, from + AT_ONCE).map((item) => h("article", { class: "card" }, h("h3", null, h("code", null, plain(item[key])), key === "name" ? null : [" ", h("span", null, plain(item.name))]), described(item, "h4", "Annotations: "))));
    const left = list.length - shown.childElementCount;
    more.hidden = left === 0;
    say(more, `Show more (${number(left)} left)`);
  }, { class: "show-more" });
  more.click();
  return h("section", { class: "stack" }, h("h2", null, `${title} (${number(list.length)})`), note ? h("p", { class: "muted" }, note) : null, shown, more);
}
