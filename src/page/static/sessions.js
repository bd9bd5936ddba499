// Scopes of requests and their catalogs: what was discovered, what is installed, how far a listing
// got, and whether the two have converged.

import { ask } from "./api.js";
import { address, digest, h, said, short, update } from "./dom.js";

const TONES = { converged: "good", stale: "bad", incomplete: "warn", unverifiable: "quiet" };

export function open(place, params, { signal }) {
  const wanted = { convergence: params.convergence, text: params.text };
  return {
    title: "Catalogs",
    async refresh() {
      const page = await ask("/v1/sessions", { ...wanted, limit: 200, page_token: params.from }, signal);
      update(place, [
        h("div", { class: "headline" }, h("h1", {}, "Catalogs"),
          h("p", { class: "spans" }, ["", ...Object.keys(TONES)].map((name) => h("a", {
            href: address("sessions", { convergence: name }), "aria-current": (params.convergence ?? "") === name ? "true" : null,
          }, name || "all")))),
        page.sessions.length === 0
          ? h("p", { class: "empty" }, params.convergence ? "No scope is like that." : "No scope has been judged yet.")
          : table(page.sessions),
        page.next_page_token ? h("p", {}, h("a", { href: address("sessions", { ...wanted, from: page.next_page_token }) }, "Older")) : null,
      ]);
    },
  };
}

function table(sessions) {
  return h("table", { class: "list" }, h("thead", {}, h("tr", {},
    [["scope"], ["session", "roomy"], ["catalog"], ["discovered", "roomy"], ["installed", "roomy"], ["listing", "roomy"], ["requests", "when"]]
      .map(([name, kind]) => h("th", { scope: "col", class: kind }, name)))),
  h("tbody", {}, sessions.map((session) => h("tr", { "data-key": session.scope },
    h("th", { scope: "row", class: "call" }, h("a", { class: "line", href: address("chains", { text: session.session_id ?? session.scope }) }, short(session.session_id ?? session.scope, 14)),
      h("span", { class: "under" }, session.era, session.protocol_version ? ` ${session.protocol_version}` : "")),
    h("td", { class: "roomy" }, h("span", { class: `note ${session.state === "passed" ? "good" : session.state === "failed" ? "bad" : "quiet"}` }, said(session.state))),
    h("td", {}, h("span", { class: `note ${TONES[session.convergence]}` }, session.convergence),
      session.findings.length ? h("span", { class: "under" }, session.findings.map((finding) => said(finding.code)).join(", ")) : null),
    h("td", { class: "roomy" }, digest(session.discovered_digest)),
    h("td", { class: "roomy" }, digest(session.installed_digest)),
    h("td", { class: "roomy" }, `${session.pages} page${session.pages === 1 ? "" : "s"}`, session.tool_count === null ? "" : `, ${session.tool_count} tools`),
    h("td", { class: "when" }, session.requests)))));
}
