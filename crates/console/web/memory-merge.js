// Duplicates: similar memories, previewed and then merged.

import { diffView } from "./diff.js";
import { button, empty, fill, h, problem, select } from "./dom.js";
import { chosenScope, scopeFilter } from "./memory-scope.js";
import { ask, brief, doing, memoryHref } from "./memory-tools.js";
import { confirm, notice } from "./notices.js";
import { list } from "./payload.js";
import { plural } from "./words.js";

const ALIKE = [["0.97", "at least 97 % similar"], ["0.9", "at least 90 % similar"], ["0.8", "at least 80 % similar"], ["0.7", "at least 70 % similar"]];
const GROUPS = 50;
const kept = { alike: "0.9" };

export function openMerge(_, { scopes }) {
  const alike = select(ALIKE, kept.alike, { "aria-label": "Similarity" });
  const body = h("div", { class: "stack", "aria-live": "polite" });
  let asked = 0;

  const wanted = () => ({ ...chosenScope(), similarity: Number(kept.alike), limit: GROUPS });

  async function read() {
    asked += 1;
    const mine = asked;
    fill(body, h("p", { class: "muted" }, "Loading…"));
    try {
      const said = await ask("consolidate_memory", wanted());
      if (mine === asked) draw(said);
    } catch (error) {
      if (mine === asked) fill(body, problem(error), h("div", { class: "buttons" }, button("Try again", read)));
    }
  }

  function draw({ plan, groups, count }) {
    if (!list(groups).length) {
      fill(body, empty("No duplicates.", "No two memories of the same scope are similar enough."));
      return;
    }
    const merge = button(`Merge ${plural(count, "memory", "memories")}…`, () => doing(merge, () => apply(plan, count)), { class: "primary" });
    fill(body,
      h("div", { class: "list-head" }, h("p", null, `${plural(groups.length, "group")}. In each, one memory is kept and supersedes the others, which are marked as no longer valid.${groups.length >= GROUPS ? " There may be more: check again after the merge." : ""}`), merge),
      groups.map((group) => h("section", { class: "card group" },
        h("h2", null, h("span", { class: "muted" }, "Kept: "), h("a", { class: "row", href: memoryHref(group.keep.id) }, brief(group.keep.content))),
        h("ul", { class: "plain-list" }, list(group.merge).map((one) => h("li", null,
          h("span", { class: "muted" }, `${Math.round(one.similarity * 100)} % similar: `), h("a", { class: "row", href: memoryHref(one.id) }, brief(one.content)),
          isCut(group.keep) || isCut(one) ? whole(group.keep.id, one.id) : differing(group.keep.content, one.content)))))));
  }

  async function apply(plan, count) {
    const agreed = await confirm({ title: "Merge these memories?", text: `${plural(count, "memory is", "memories are")} marked as no longer valid and superseded by the one that is kept, which takes over their mentions. Nothing is deleted.`, yes: "Merge" });
    if (!agreed) return;
    try {
      await ask("consolidate_memory", { ...wanted(), apply: plan });
      notice("Merged.", "good");
    } finally {
      // The gateway rejects an outdated plan: read the new one.
      read();
    }
  }

  alike.addEventListener("change", () => {
    kept.alike = alike.value;
    read();
  });
  read();
  return { node: h("div", { class: "stack" }, h("div", { class: "filters" }, alike, scopeFilter(scopes, read)), body), close: () => { asked += 1; } };
}

function differing(keep, other, open = false) {
  if (keep === other) return h("p", { class: "muted small-text" }, "The texts are identical.");
  return h("details", { open }, h("summary", null, "Differences"), diffView(keep, other, "Changes from the kept memory to this one"));
}

// The preview truncates long content.
function isCut({ content }) {
  return content.length > 250 && content.endsWith("…");
}

function whole(...ids) {
  const place = h("div");
  const look = button("Compare the full texts", () => doing(look, async () => {
    const [keep, other] = await Promise.all(ids.map((id) => ask("get_memory", { id })));
    fill(place, differing(keep.content, other.content, true));
  }), { class: "quiet small" });
  return fill(place, look);
}
