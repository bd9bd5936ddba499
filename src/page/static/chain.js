// One chain: what it came to and what to do, both ladders, its halves in time, every fact with its
// source, the rules that fired, what would change the verdict, and its earlier revisions.

import { ask } from "./api.js";
import { address, clock, h, lasting, plain, said, svg, update } from "./dom.js";
import { ladders } from "./ladder.js";
import { NEXT, RETRY, STATES, badge, callName } from "./words.js";

export function open(place, params, { signal }) {
  return {
    title: "Chain",
    async refresh() {
      let found;
      try {
        found = await ask(`/v1/chains/${encodeURIComponent(params.id ?? "")}`, {}, signal);
      } catch (error) {
        if (error.status !== 404) throw error;
        update(place, [h("h1", {}, "This chain is not remembered"), h("p", {}, "No chain has this id, or it is too long ago. ", h("a", { href: "?view=chains" }, "The chains that are"))]);
        return;
      }
      const { verdict, earlier, evidence } = found;
      document.title = plain(`${callName(verdict)}, ${said(verdict.state)} · mcp-verdict`);
      update(place, [
        headline(verdict), todo(verdict),
        h("section", { class: "card" }, h("h2", {}, "Ladders"), ladders(verdict)),
        halves(verdict, evidence), facts(evidence), judgement(evidence), changes(verdict, evidence),
        findings(verdict), revisions(verdict, earlier), ids(verdict),
      ]);
    },
  };
}

function headline(verdict) {
  return h("div", { class: "headline" },
    h("h1", {}, callName(verdict), " ", badge(verdict.state)),
    h("p", {}, "at ", h("a", { href: address("chains", { server: verdict.server }) }, verdict.server),
      verdict.agent ? [", by ", h("a", { href: address("chains", { agent: verdict.agent }) }, verdict.agent)] : null, ", ", clock(verdict.start_time)));
}

function todo(verdict) {
  const owner = verdict.owner === "none" ? null : h("strong", {}, said(verdict.owner));
  return h("section", { class: `card todo t-${verdict.state}` },
    h("p", {}, STATES[verdict.state] ? `${STATES[verdict.state][1]}` : "", verdict.reason ? [" (", said(verdict.reason), ")"] : null, "."),
    h("p", {}, owner ? [owner, ": "] : null, NEXT[verdict.next_step] ?? said(verdict.next_step)),
    h("p", { class: "quiet" }, RETRY[verdict.retry] ?? said(verdict.retry), verdict.confidence === "weak" ? "; this rests on weak evidence" : "",
      verdict.lifecycle === "complete" ? "" : `; lifecycle: ${said(verdict.lifecycle)}`, verdict.attempt > 1 ? `; attempt ${verdict.attempt}` : ""));
}

const ROLES = { asking: "client's clock", answering: "server's clock" };

/** Bars over one axis of time; each end of the request went by its own clock. */
function halves(verdict, evidence) {
  const spans = records(evidence).filter((fact) => fact.source === "span" && fact.start_time !== "0");
  if (spans.length === 0) {
    const lasted = verdict.end_time ? lasting(BigInt(verdict.end_time) - BigInt(verdict.start_time)) : "not ended";
    return h("section", { class: "card" }, h("h2", {}, "In time"), h("p", {}, clock(verdict.start_time), ", ", lasted));
  }
  const starts = spans.map((span) => BigInt(span.start_time)), ends = spans.map((span) => BigInt(span.end_time));
  const first = starts.reduce((a, b) => (a < b ? a : b)), last = ends.reduce((a, b) => (a > b ? a : b), first + 1n);
  const whole = Number(last - first) || 1;
  const rows = spans.map((span) => {
    const at = (1000 * Number(BigInt(span.start_time) - first)) / whole;
    const wide = Math.max((1000 * Number(BigInt(span.end_time) - BigInt(span.start_time))) / whole, 4);
    return h("tr", { "data-key": `${span.role}${span.span_id}` },
      h("th", { scope: "row" }, span.role, h("span", { class: "under" }, span.service ?? "", ROLES[span.role] ? `, ${ROLES[span.role]}` : "")),
      h("td", { class: "bar" }, svg("svg", { viewBox: "0 0 1000 16", preserveAspectRatio: "none", "aria-hidden": "true" },
        svg("rect", { class: `w-${span.role}`, x: Math.min(at, 996).toFixed(1), y: 1, width: wide.toFixed(1), height: 14, rx: 2 }))),
      h("td", { class: "when" }, `+${lasting(BigInt(span.start_time) - first)}`, h("span", { class: "under" }, lasting(BigInt(span.end_time) - BigInt(span.start_time)))));
  });
  const clocks = evidence.clocks;
  return h("section", { class: "card" }, h("h2", {}, "In time"),
    h("table", { class: "waterfall" }, h("thead", { class: "hidden" }, h("tr", {}, ["half", "bar", "began, lasted"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, rows)),
    h("p", { class: "quiet" }, "From ", clock(String(first)), ", in all ", lasting(last - first), ". ",
      clocks ? `Deadline ${lasting(clocks.deadline)}, inactivity ${lasting(clocks.inactivity)}. ` : "",
      "Bars of two processes stand as their own clocks had them."));
}

/** Each record once, also where it is a half and evidence. */
function records(evidence) {
  const found = new Map();
  for (const fact of evidence?.facts ?? []) {
    const key = [fact.source, fact.trace_id, fact.span_id, fact.says.join()].join(" ");
    const known = found.get(key);
    if (known) known.roles.add(fact.role);
    else found.set(key, { ...fact, roles: new Set([fact.role]) });
  }
  return [...found.values()];
}

function facts(evidence) {
  if (!evidence) {
    return h("section", { class: "card" }, h("h2", {}, "Facts"), h("p", { class: "quiet" },
      "The facts behind this chain are no longer in memory: they are kept for processors.mcp_verdict.retention after its last span. The verdict stands. From recorded telemetry, mcp-verdict explain FILE --chain shows them."));
  }
  return h("section", { class: "card" }, h("h2", {}, "Facts"),
    h("table", { class: "list" }, h("thead", {}, h("tr", {}, [["from"], ["says"], ["source", "roomy"]].map(([name, kind]) => h("th", { scope: "col", class: kind }, name)))),
      h("tbody", {}, records(evidence).map((fact, at) => h("tr", { "data-key": `${at}${fact.role}${fact.span_id}` },
        h("th", { scope: "row" }, [...fact.roles].join(", "), h("span", { class: "under" }, fact.service ?? "")),
        h("td", {}, fact.says.join(" · ") || h("span", { class: "quiet" }, "nothing more")),
        h("td", { class: "roomy" }, fact.source, " ", h("span", { class: "mono" }, fact.span_id), h("span", { class: "under" }, fact.instrumentation_scope)))))),
    evidence.beside.length ? h("ul", {}, evidence.beside.map((line) => h("li", {}, line))) : null);
}

function judgement(evidence) {
  if (!evidence) return null;
  return h("section", { class: "card" }, h("h2", {}, "Rules that fired"),
    h("ol", { class: "steps" }, evidence.judgement.map((step) => h("li", {}, step))),
    evidence.alone ? h("p", {}, "By itself it would be ", badge(evidence.alone), "; its operation's other attempts decide.") : null);
}

function changes(verdict, evidence) {
  const found = evidence?.changes ?? [];
  const body = found.length === 0
    ? h("p", { class: "quiet" }, evidence ? "No single piece of evidence on its spans. " : "", "From recorded telemetry, mcp-verdict explain FILE --chain tries every attribute.")
    : h("table", {}, h("thead", {}, h("tr", {}, ["it would be", "with, on the request's span"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, found.map((change) => h("tr", {},
        h("td", {}, badge(change.state), change.reason ? h("span", { class: "under" }, said(change.reason)) : null),
        h("td", {}, Object.entries(change.attributes).map(([key, value]) => h("code", { class: "attribute" }, `${key} = ${value}`)))))));
  return h("section", { class: "card" }, h("h2", {}, "What would change it"), body);
}

function findings(verdict) {
  if (verdict.findings.length === 0) return null;
  return h("section", { class: "card" }, h("h2", {}, "Findings"),
    h("table", {}, h("thead", {}, h("tr", {}, ["finding", "blame", "strength"].map((name) => h("th", { scope: "col" }, name)))),
      h("tbody", {}, verdict.findings.map((finding) => h("tr", {},
        h("td", {}, said(finding.code), finding.detail ? h("span", { class: "under mono" }, finding.detail) : null),
        h("td", {}, finding.blame), h("td", {}, finding.strength, finding.confidence === "weak" ? ", weak" : ""))))));
}

const WATCHED = ["state", "reason", "lifecycle", "first_failed_layer", "effect", "convergence", "owner", "next_step", "confidence", "server_span_id"];

/** What each revision changed of the one before. */
function revisions(verdict, earlier) {
  if (earlier.length === 0) return null;
  const all = [verdict, ...earlier];
  return h("section", { class: "card" }, h("h2", {}, "Revisions"),
    h("ol", { class: "revisions" }, all.map((revision, at) => {
      const before = all[at + 1];
      const moved = before ? WATCHED.filter((key) => revision[key] !== before[key]) : [];
      return h("li", { "data-key": `r${revision.revision}` }, h("strong", {}, `${revision.revision}`), " ", badge(revision.state), " ",
        moved.length ? moved.map((key) => `${said(key)}: ${said(before[key]) || "none"} → ${said(revision[key]) || "none"}`).join("; ") : before ? "details" : "first word");
    })));
}

function ids(verdict) {
  const row = (name, value) => value && h("div", {}, h("dt", {}, name), h("dd", { class: "mono" }, value));
  return h("section", { class: "card" }, h("h2", {}, "Ids"), h("dl", { class: "facts" },
    row("chain", verdict.id), row("trace", verdict.trace_id), row("client span", verdict.client_span_id), row("server span", verdict.server_span_id),
    row("request", verdict.request_id), row("session", verdict.session_id), row("operation", verdict.operation_id), row("scope", verdict.scope),
    row("method", verdict.method), row("era", verdict.era), row("protocol", verdict.protocol_version), row("transport", verdict.transport),
    row("contract", verdict.contract.status), row("definition", verdict.contract.digest), row("catalog", verdict.convergence)));
}
