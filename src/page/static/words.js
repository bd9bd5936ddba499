// The closed vocabularies of verdicts, for reading.

import { h, said } from "./dom.js";

/** In the order in which they are tried: mark, and what it means. */
export const STATES = {
  needs_auth: ["⚠", "a credential or a scope was refused"],
  incompatible_session: ["≠", "version, capability or an expired session"],
  unreachable: ["⊘", "it never got there, or broke where no effect is possible"],
  stale_catalog: ["↻", "called by a tool definition that has changed"],
  working: ["…", "not answered yet, inside its deadline"],
  protocol_error: ["!", "answered with a JSON-RPC error"],
  tool_failed: ["✕", "the tool said that it failed"],
  cancelled: ["–", "called off, and nothing can have happened"],
  effect_unknown: ["?", "no answer, and something may have happened: do not retry"],
  false_success: ["⚑", "said it worked, and it did not"],
  unverified: ["○", "answered, and nobody checked what came of it"],
  healthy: ["✓", "every required layer was seen to pass"],
};

export const PROBLEMS = Object.keys(STATES)
  .filter((state) => !["working", "cancelled", "unverified", "healthy"].includes(state)).join(",");

export const FAILURE_LADDER = ["transport", "protocol", "authority", "execution", "outcome"];
export const HEALTH_CONTRACT = ["session", "catalog", "request", "effect", "outcome"];

export const RUNGS = {
  passed: ["✓", "passed"],
  failed: ["✕", "failed"],
  pending: ["…", "pending"],
  unobserved: ["?", "nobody saw"],
  not_applicable: ["·", "does not apply"],
};

/** A state with its mark and colour. */
export const badge = (state) => h("span", { class: `badge s-${state}`, title: STATES[state]?.[1] },
  h("span", { "aria-hidden": "true", class: "mark" }, STATES[state]?.[0] ?? "•"), said(state));

export const NEXT = {
  continue: "Go on.",
  none: "Nothing.",
  wait: "Wait.",
  check_availability: "Check that the server can be reached.",
  refresh_discovery: "List the tools again: this name is not known there.",
  fix_request_contract: "Correct the arguments of the request.",
  fix_client_contract: "Correct what the client sends.",
  start_new_session: "Begin a new session.",
  align_versions: "Bring the versions or capabilities of both ends together.",
  refresh_credential_once: "Refresh the credential, once.",
  request_scope: "Ask for the missing scope.",
  inspect_authorization: "Look into who may do this.",
  inspect_tool_or_input: "Look at the tool, or at what it was given.",
  open_outcome_incident: "Find out what really happened, and put it right.",
  rediscover_once: "List the tools again, once.",
  resume_from_cursor: "Go on with the listing where it stopped.",
  review_contract: "Review the change of the tool's definition.",
  reconcile_by_operation_key: "Look up by its operation key whether it took effect. Do not repeat it before.",
  record_result: "Record the result on the span.",
  verify_outcome: "Record who checked what came of it: outcome attributes, or an evidence rule.",
  plan_bounded_refresh: "Record which tools the client holds.",
  record_negotiation: "Record the negotiation of the session.",
};

export const RETRY = {
  never: "no retry",
  once: "retry once, after that",
  bounded_backoff: "retry with a bounded back-off",
  after_rediscovery: "retry after listing again",
  if_reversible: "retry only what can be undone",
  blocked: "do not retry",
};

export const callName = (verdict) => verdict.tool ?? verdict.method;
