// What was observed of each tool, on what evidence, and what its unverified calls lack first.

import { ask } from "./api.js";
import { address, h, percent, said, update } from "./dom.js";

const ADDS = {
  session: "record mcp.protocol.version on the call or its session",
  catalog: "record mcp_evidence.list.definitions on tools/list",
  request: "record the answer: end the span, with its error where there is one",
  effect: "record mcp_evidence.effect.status, or an evidence rule over the span that writes",
  outcome: "record mcp_evidence.outcome.status and .method, or an evidence rule over the check",
};

export function open(place, params, { signal }) {
  const wanted = { server: params.server, tool: params.tool };
  return {
    title: "Coverage",
    async refresh() {
      const { tools, omitted } = await ask("/v1/coverage", { ...wanted, limit: 200 }, signal);
      update(place, [
        h("div", { class: "headline" }, h("h1", {}, "Coverage"),
          wanted.server || wanted.tool ? h("p", {}, [wanted.server, wanted.tool].filter(Boolean).join(" · "), " ", h("a", { href: "?view=coverage" }, "All of them")) : null),
        tools.length === 0
          ? h("p", { class: "empty" }, "No tool has been called yet.")
          : [h("p", { class: "quiet" }, "Of how many remembered calls each layer was observed. ", h("code", {}, "mcp-verdict coverage"), " on a recording says what would lift the most, ready to paste."),
            table(tools)],
        omitted ? h("p", { class: "quiet" }, `${omitted} more tools are not shown.`) : null,
      ]);
    },
  };
}

function table(tools) {
  return h("table", { class: "list" }, h("thead", {}, h("tr", {},
    [["tool"], ["calls", "count"], ["unverified", "count"], ...tools[0].layers.map((layer) => [layer.layer, "roomy"]), ["lacking first"]]
      .map(([name, kind]) => h("th", { scope: "col", class: kind }, name)))),
  h("tbody", {}, tools.map((row) => h("tr", { "data-key": JSON.stringify([row.server, row.tool]) },
    h("th", { scope: "row", class: "call" },
      h("a", { class: "line", href: address("chains", { server: row.server, tool: row.tool }) }, row.tool ?? "no name"),
      h("span", { class: "under" }, row.server)),
    h("td", { class: "count" }, row.calls),
    h("td", { class: "count" }, row.unverified),
    row.layers.map((layer) => h("td", { class: "roomy" }, cell(row, layer))),
    h("td", {}, lacking(row))))));
}

function cell(row, layer) {
  const applies = row.calls - layer.not_applicable;
  if (applies === 0) return h("span", { class: "quiet" }, "does not apply");
  const tone = layer.observed === applies ? "good" : layer.observed ? "warn" : "quiet";
  return [h("span", { class: `note ${tone}` }, layer.observed ? percent(layer.observed, applies) : "never"),
    Object.keys(layer.evidence).map((what) => h("span", { class: "under" }, said(what)))];
}

function lacking(row) {
  const most = row.layers.filter((layer) => layer.lacking).sort((a, b) => b.lacking - a.lacking)[0];
  if (!most) return h("span", { class: "quiet" }, "nothing");
  return [`${most.layer}, of ${most.lacking} call${most.lacking === 1 ? "" : "s"}`, h("span", { class: "under" }, ADDS[most.layer])];
}
