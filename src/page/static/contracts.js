// What each tool was read to be, by whom, whether that is what is pinned, and what has changed.

import { ask } from "./api.js";
import { address, clock, digest, h, said, short, update } from "./dom.js";

export function open(place, params, { signal }) {
  return {
    title: "Contracts",
    async refresh() {
      const wanted = { server: params.server, tool: params.tool };
      const [contracts, drifts] = await Promise.all([
        ask("/v1/contracts", { ...wanted, limit: 200, page_token: params.from }, signal), ask("/v1/drifts", { ...wanted, limit: 200 }, signal)]);
      update(place, [
        h("div", { class: "headline" }, h("h1", {}, "Contracts"),
          wanted.server || wanted.tool ? h("p", {}, [wanted.server, wanted.tool].filter(Boolean).join(" · "), " ", h("a", { href: "?view=contracts" }, "All of them")) : null),
        tools(contracts.contracts, contracts.next_page_token, wanted),
        changes(drifts.drifts),
      ]);
    },
  };
}

/** One line a tool; below it who holds what, where they differ. */
function tools(lines, next, wanted) {
  if (lines.length === 0) {
    return h("p", { class: "empty" }, "No listing of tools has been seen. A client shows one by mcp_evidence.list.definitions or list.tools on its tools/list span.");
  }
  const groups = new Map();
  for (const line of lines) {
    const key = JSON.stringify([line.server, line.tool]);
    groups.set(key, [...(groups.get(key) ?? []), line]);
  }
  const last = lines.length > 0 && next;
  return h("section", { class: "card" }, h("h2", {}, "Tools, and who holds what"),
    h("table", { class: "list" }, h("thead", {}, h("tr", {}, [["tool"], ["holder", "roomy"], ["digest"], ["status"], ["seen", "when"]]
      .map(([name, kind]) => h("th", { scope: "col", class: kind }, name)))),
    h("tbody", {}, [...groups].flatMap(([key, group]) => group.map((line, at) => row(key, line, at, group))))),
    last ? h("p", {}, h("a", { href: address("contracts", { ...wanted, from: next }) }, "More tools")) : null);
}

function row(key, line, at, group) {
  const digests = new Set(group.map((other) => other.digest));
  return h("tr", { "data-key": `${key}${line.auth ?? ""}${line.client ?? ""}` },
    h("th", { scope: "row", class: "call" }, at === 0
      ? [h("a", { class: "line", href: address("contracts", { server: line.server, tool: line.tool }) }, line.tool), h("span", { class: "under" }, line.server),
        digests.size > 1 ? h("span", { class: "note warn" }, `${digests.size} digests among ${group.length} holders`) : null] : h("span", { class: "hidden" }, line.tool)),
    h("td", { class: "roomy" }, line.auth ? ["authorization ", short(line.auth, 8)] : line.client ? ["client ", short(line.client, 8)] : "anyone"),
    h("td", {}, line.digest ? digest(line.digest) : h("span", { class: "note warn" }, "removed")),
    h("td", {}, status(line)),
    h("td", { class: "when" }, clock(line.seen)));
}

function status(line) {
  const notes = [];
  if (line.pinned_digest) {
    const same = line.pinned_digest === line.digest;
    notes.push(h("span", { class: `note ${same ? "good" : "bad"}` }, same ? (line.approved ? "as approved" : "as pinned") : "not as pinned"));
  } else {
    notes.push(h("span", { class: "note quiet" }, "not pinned"));
  }
  if (line.first_digest && line.first_digest !== line.digest) notes.push(h("span", { class: "note warn" }, "changed since first seen"));
  return notes;
}

function changes(drifts) {
  return h("section", { class: "card" }, h("h2", {}, "Changes"), drifts.length === 0
    ? h("p", { class: "quiet" }, "No tool has changed since it was first seen.")
    : drifts.map((drift) => h("details", { class: "drift", "data-key": `${drift.server}${drift.tool}${drift.old_digest}${drift.new_digest}` },
      h("summary", {}, h("span", { class: `note ${drift.grade === "compatible" ? "good" : drift.grade === "breaking" ? "bad" : "warn"}` }, drift.grade),
        " ", h("strong", {}, drift.tool), " at ", drift.server, ", ", clock(drift.first_seen)),
      h("p", {}, digest(drift.old_digest), " → ", drift.new_digest ? digest(drift.new_digest) : "removed", drift.confidence === "weak" ? ", weak" : ""),
      h("table", {}, h("thead", {}, h("tr", {}, ["where", "kind", "grade"].map((name) => h("th", { scope: "col" }, name)))),
        h("tbody", {}, drift.changes.map((change) => h("tr", {},
          h("td", { class: "mono" }, change.pointer || "/"), h("td", {}, said(change.kind)), h("td", {}, change.grade))))))));
}
