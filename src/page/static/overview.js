// What is going on: states over time, what answered beside what was verified, who has to act.

import { ask, now } from "./api.js";
import { address, h, percent, said, update } from "./dom.js";
import { STATES, badge } from "./words.js";
import { states, success } from "./chart.js";

const SPANS = [[60, "1 hour"], [360, "6 hours"], [1440, "24 hours"]];

export function open(place, params, { signal }) {
  const span = SPANS.some(([minutes]) => String(minutes) === params.minutes) ? Number(params.minutes) : 60;
  return {
    title: "Overview",
    async refresh() {
      const found = await ask("/v1/overview", { minutes: span }, signal);
      const health = found.chains === 0 ? await ask("/v1/health", {}, signal) : null;
      update(place, found.chains === 0 ? empty(health) : full(found, span));
    },
  };
}

function full(found, span) {
  const { attempts, protocol_success: protocol, verified_success: verified } = found.calls;
  const spans = h("p", { class: "spans" }, SPANS.map(([minutes, name]) => h("a", {
    href: address("overview", { minutes: minutes === 60 ? "" : minutes }),
    "aria-current": minutes === span ? "true" : null,
  }, name)));
  return [
    h("div", { class: "headline" }, h("h1", {}, "Overview"), spans),
    h("div", { class: "numbers" },
      number(attempts.toLocaleString("en"), "calls", "tools/call, superseded attempts left out"),
      number(percent(protocol, attempts), "answered", `${protocol} of ${attempts} calls got a result: protocol success`),
      number(percent(verified, attempts), "verified", `${verified} of ${attempts} calls had their outcome checked: verified success`),
      number(open_(found.incidents), "open incidents", "not resolved and not expired")),
    attempts === 0 ? h("p", { class: "empty" }, "No call has begun in this time. ",
      span < 1440 ? h("a", { href: address("overview", { minutes: 1440 }) }, "The last 24 hours") : h("a", { href: address("chains") }, "The chains that are remembered")) : [
      h("section", { class: "card" }, h("h2", {}, "Calls by state"), states(found.minutes, span, now())),
      h("section", { class: "card" }, h("h2", {}, "Answered, and verified"), success(found.minutes, span, now()))],
    h("div", { class: "columns" }, stateList(found), owners(found.incidents)),
  ];
}

const number = (value, name, title) => h("div", { class: "number", title }, h("strong", {}, value), h("span", {}, name));

const open_ = (rows) => String(rows.reduce((sum, row) => sum + row.open + row.recovering, 0));

function stateList(found) {
  const most = Math.max(...Object.values(found.states), 1);
  const rows = Object.keys(STATES).filter((state) => found.states[state]).map((state) => h("tr", { "data-key": state },
    h("td", {}, h("a", { class: "line", href: address("chains", { state }) }, badge(state))),
    h("td", { class: "count" }, found.states[state].toLocaleString("en")),
    h("td", { class: "meter" }, bar(state, found.states[state] / most))));
  return h("section", { class: "card" }, h("h2", {}, `The last ${found.chains.toLocaleString("en")} chains, every method`),
    h("table", {}, h("thead", { class: "hidden" }, h("tr", {}, ["state", "chains", "share"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, rows)));
}

function bar(state, part) {
  // A width is an attribute of a picture: the page has no styles of its own in its elements.
  const picture = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  picture.setAttribute("viewBox", "0 0 100 6");
  picture.setAttribute("preserveAspectRatio", "none");
  picture.setAttribute("aria-hidden", "true");
  const rect = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  for (const [key, value] of Object.entries({ class: `f-${state}`, width: Math.max(part * 100, 1), height: 6, rx: 1 })) rect.setAttribute(key, value);
  picture.append(rect);
  return picture;
}

function owners(rows) {
  const body = rows.length === 0
    ? h("p", { class: "quiet" }, "No incident is open.")
    : h("table", {}, h("thead", {}, h("tr", {}, [["who acts next"], ["open", "count"], ["recovering", "count"]].map(([name, kind]) => h("th", { scope: "col", class: kind }, name)))),
      h("tbody", {}, rows.map((row) => h("tr", { "data-key": row.owner },
        h("td", {}, h("a", { class: "line", href: address("incidents", { owner: row.owner }) }, said(row.owner))),
        h("td", { class: "count" }, row.open), h("td", { class: "count" }, row.recovering)))));
  return h("section", { class: "card" }, h("h2", {}, "Incidents by owner"), body);
}

/** Readable when there is nothing yet: how the first span gets here. */
function empty(health) {
  const at = (address, port) => `http://${address ?? `127.0.0.1:${port}`}`;
  const grpc = at(health.receives.grpc, 4317);
  return [
    h("h1", {}, "Nothing has been judged yet"),
    h("p", {}, "mcp-verdict is running and waits for OpenTelemetry spans of MCP clients and servers. A call appears here some seconds after its last span has come."),
    h("section", { class: "card" }, h("h2", {}, "Send the first span"),
      h("p", {}, "Point a program that is instrumented already at this address, and change nothing else in it:"),
      h("pre", { tabindex: "0" }, h("code", {}, `export OTEL_EXPORTER_OTLP_ENDPOINT=${grpc}`)),
      h("p", {}, health.receives.http ? ["Over HTTP, protobuf or JSON: ", h("code", {}, at(health.receives.http, 4318))] : null)),
    h("section", { class: "card" }, h("h2", {}, "Or look at recorded calls"),
      h("pre", { tabindex: "0" }, h("code", {}, "mcp-verdict demo --page"))),
    h("p", {}, h("a", { href: address("pipeline") }, "How the pipeline itself does")),
  ];
}
