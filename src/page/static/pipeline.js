// How the pipeline itself does: its parts, and its own counts.

import { ask } from "./api.js";
import { h, said, update } from "./dom.js";

const GROUPS = [
  ["Received", (name) => name.startsWith("otelcol_receiver_")],
  ["Judged", (name) => /^mcp_verdict_(open_requests|evicted|late_facts|engine)/.test(name)],
  ["Stored and held", (name) => /^mcp_verdict_(storage|held|outputs)/.test(name)],
  ["Sent on", (name) => name.startsWith("otelcol_exporter_")],
];

export function open(place, _params, { signal }) {
  return {
    title: "Pipeline",
    async refresh() {
      const health = await ask("/v1/health", {}, signal);
      update(place, [
        h("div", { class: "headline" }, h("h1", {}, "Pipeline"), h("p", { class: "quiet" }, `mcp-verdict ${health.version}`)),
        h("section", { class: "card" }, h("h2", {}, "Parts"), h("ul", { class: "parts" }, health.parts.map((part) => h("li", { "data-key": part.part },
          h("span", { class: `note ${part.status === "ok" ? "good" : "bad"}` }, said(part.status)), " ", h("strong", {}, part.part), part.why ? `: ${part.why}` : "")))),
        h("section", { class: "card" }, h("h2", {}, "Receives"), h("p", {}, ["grpc", "http"].filter((kind) => health.receives[kind])
          .map((kind) => h("span", { class: "door" }, `OTLP over ${kind === "grpc" ? "gRPC" : "HTTP"} at `, h("code", {}, health.receives[kind]))))),
        GROUPS.map(([name, fits]) => group(name, health.metrics.filter((metric) => fits(metric.name)))),
      ]);
    },
  };
}

function group(name, metrics) {
  if (metrics.length === 0) return null;
  return h("section", { class: "card" }, h("h2", {}, name), h("table", {},
    h("thead", {}, h("tr", {}, [["metric"], ["of"], ["value", "count"]].map(([title, kind]) => h("th", { scope: "col", class: kind }, title)))),
    h("tbody", {}, metrics.map((metric) => {
      const labels = Object.entries(metric.labels).map(([key, value]) => `${key}=${value}`).join(" ");
      return h("tr", { "data-key": `${metric.name} ${labels}` },
        h("th", { scope: "row" }, h("span", { class: "mono" }, metric.name), h("span", { class: "under" }, metric.says)),
        h("td", { class: "mono labels" }, labels), h("td", { class: "count" }, metric.value.toLocaleString("en")));
    }))));
}
