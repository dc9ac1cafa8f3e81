// Profiles: the list, and one profile as its clients see it.

import { accessList } from "./access-list.js";
import { get, path } from "./api.js";
import { fill, h, heading, plain, problem } from "./dom.js";
import { longText } from "./payload.js";
import { number, plural } from "./words.js";

const SHOWS = { direct: "every tool", search: "a menu" };
const LISTS = [["toolDefinitions", "Tools", "name"], ["prompts", "Prompts", "name"], ["resources", "Resources", "uri"], ["resourceTemplates", "Resource templates", "uriTemplate"]];

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
      h("p", null, `Its clients see ${SHOWS[profile.shows] ?? profile.shows}: ${plain(profile.why)}. They may use ${plural(profile.servers.length, "server")}: ${profile.servers.map(plain).join(", ") || "none"}.`),
      LISTS.map(([list, title, key]) => items(title, profile[list], key)));
  }

  read();
  return { title: () => `Profile ${name}`, node, back, close: () => { open = false; } };
}

function items(title, list, key) {
  if (!list.length) return null;
  return h("section", { class: "stack" }, h("h2", null, `${title} (${number(list.length)})`),
    h("dl", { class: "facts" }, list.map((item) => h("div", null, h("dt", null, h("code", null, plain(String(item[key])))), h("dd", null, item.description ? longText(plain(String(item.description))) : null)))));
}
