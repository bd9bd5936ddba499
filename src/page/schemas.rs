//! Schemas of the OpenAPI document: what each answer has, and nothing else.

use serde_json::{Map, Value, json};

use super::openapi::named;
use crate::model::findings::Code;
use crate::model::words::*;

pub fn text() -> Value {
    json!({"type": "string"})
}

pub fn id() -> Value {
    json!({"type": "string", "pattern": "^[0-9a-f]{32}$"})
}

fn time() -> Value {
    json!({"type": "string", "pattern": "^[0-9]+$", "description": "Unix nanoseconds"})
}

fn count() -> Value {
    json!({"type": "integer", "minimum": 0})
}

fn flag() -> Value {
    json!({"type": "boolean"})
}

fn or_null(schema: Value) -> Value {
    json!({"anyOf": [schema, {"type": "null"}]})
}

fn many(schema: Value) -> Value {
    json!({"type": "array", "items": schema})
}

/// One of a closed vocabulary.
fn word<W: Copy>(all: &[W], as_str: impl Fn(W) -> &'static str) -> Value {
    let words: Vec<&str> = all.iter().map(|word| as_str(*word)).collect();
    json!({"type": "string", "enum": words})
}

fn state() -> Value {
    word(State::ALL, State::as_str)
}

fn reason() -> Value {
    json!({"type": "string", "pattern": "^[a-z0-9_]+$"})
}

/// All of these members and no others.
fn object<const N: usize>(members: [(&str, Value); N]) -> Value {
    let required: Vec<&str> = members.iter().map(|(name, _)| *name).collect();
    let properties: Map<String, Value> =
        members.iter().map(|(name, schema)| ((*name).to_owned(), schema.clone())).collect();
    json!({"type": "object", "required": required, "properties": properties,
        "additionalProperties": false})
}

fn page(key: &str, item: &str) -> Value {
    object([(key, many(named(item))), ("next_page_token", or_null(text()))])
}

/// How many of each state; states without any are left out.
fn states() -> Value {
    json!({"type": "object", "propertyNames": state(), "additionalProperties": count()})
}

/// Every schema by its name.
pub fn schemas() -> Value {
    let mut all = Map::new();
    let mut put = |name: &str, schema: Value| drop(all.insert(name.to_owned(), schema));
    put("Error", object([("code", count()), ("reason", reason()), ("message", text())]));
    put("Overview", overview());
    put("Chains", page("chains", "Verdict"));
    put("Incidents", page("incidents", "Incident"));
    put("Sessions", page("sessions", "Session"));
    put("Drifts", page("drifts", "Drift"));
    put("Contracts", page("contracts", "Contract"));
    put("Verdict", verdict());
    put("Coverage", coverage());
    put("Finding", finding());
    put("Evidence", evidence());
    put("Incident", incident());
    put("Session", session());
    put("Drift", drift());
    put("Contract", contract());
    put("Health", health());
    put("Question", question());
    put("Answer", check_answer());
    let name = || many(text());
    put("Names", object([("servers", name()), ("tools", name()), ("agents", name())]));
    let chain = [
        ("verdict", named("Verdict")),
        ("earlier", many(named("Verdict"))),
        ("evidence", or_null(named("Evidence"))),
    ];
    put("Chain", object(chain));
    Value::Object(all)
}

fn overview() -> Value {
    let successes =
        || [("attempts", count()), ("protocol_success", count()), ("verified_success", count())];
    let [attempts, protocol, verified] = successes();
    let minute = object([("start", time()), attempts, protocol, verified, ("states", states())]);
    let owner = object([
        ("owner", word(Owner::ALL, Owner::as_str)),
        ("open", count()),
        ("recovering", count()),
    ]);
    object([
        ("chains", count()),
        ("revisions", count()),
        ("states", states()),
        ("calls", object(successes())),
        ("minutes", many(minute)),
        ("incidents", many(owner)),
    ])
}

fn coverage() -> Value {
    let layer = object([
        ("layer", word(Layer::ALL, Layer::as_str)),
        ("observed", count()),
        ("not_applicable", count()),
        ("lacking", count()),
        ("evidence", json!({"type": "object", "additionalProperties": count()})),
    ]);
    let tool = object([
        ("server", text()),
        ("tool", or_null(text())),
        ("calls", count()),
        ("unverified", count()),
        ("states", states()),
        ("layers", many(layer)),
    ]);
    object([("tools", many(tool)), ("omitted", count())])
}

fn verdict() -> Value {
    let rung = || word(Rung::ALL, Rung::as_str);
    let name = || or_null(text());
    let rungs = |names: [&'static str; 5]| object(names.map(|name| (name, rung())));
    let layer = || word(FailureLayer::ALL, FailureLayer::as_str);
    let contract = [("status", or_null(word(ContractStatus::ALL, ContractStatus::as_str)))];
    let outcome = [
        ("status", or_null(word(OutcomeStatus::ALL, OutcomeStatus::as_str))),
        ("method", or_null(word(OutcomeMethod::ALL, OutcomeMethod::as_str))),
    ];
    let [status] = contract;
    object([
        ("id", id()),
        ("revision", count()),
        ("supersedes", or_null(count())),
        ("scope", text()),
        ("session_id", name()),
        ("era", word(Era::ALL, Era::as_str)),
        ("protocol_version", name()),
        ("transport", or_null(word(Transport::ALL, Transport::as_str))),
        ("agent", name()),
        ("server", text()),
        ("method", text()),
        ("tool", name()),
        ("request_id", name()),
        ("operation_id", name()),
        ("attempt", count()),
        ("state", state()),
        ("reason", or_null(reason())),
        ("lifecycle", word(Lifecycle::ALL, Lifecycle::as_str)),
        ("layers", rungs(["session", "catalog", "request", "effect", "outcome"])),
        ("failure_layers", rungs(["transport", "protocol", "authority", "execution", "outcome"])),
        ("first_failed_layer", or_null(layer())),
        ("convergence", or_null(word(Convergence::ALL, Convergence::as_str))),
        ("contract", object([status, ("digest", name())])),
        ("effect", or_null(word(Effect::ALL, Effect::as_str))),
        ("outcome", object(outcome)),
        ("confidence", word(Confidence::ALL, Confidence::as_str)),
        ("findings", many(named("Finding"))),
        ("next_step", word(NextStep::ALL, NextStep::as_str)),
        ("owner", word(Owner::ALL, Owner::as_str)),
        ("retry", word(Retry::ALL, Retry::as_str)),
        ("trace_id", name()),
        ("client_span_id", name()),
        ("server_span_id", name()),
        ("start_time", time()),
        ("end_time", or_null(time())),
        ("evidence_time", time()),
    ])
}

fn finding() -> Value {
    object([
        ("code", word(Code::ALL, Code::as_str)),
        ("blame", word(Blame::ALL, Blame::as_str)),
        ("strength", word(Strength::ALL, Strength::as_str)),
        ("confidence", word(Confidence::ALL, Confidence::as_str)),
        ("detail", or_null(text())),
        ("spans", many(text())),
    ])
}

fn evidence() -> Value {
    let fact = object([
        (
            "role",
            json!({"type": "string", "enum": ["asking", "answering", "evidence", "meanwhile"]}),
        ),
        ("source", json!({"type": "string", "enum": ["span", "log record at span"]})),
        ("trace_id", id()),
        ("span_id", text()),
        ("service", or_null(text())),
        ("instrumentation_scope", text()),
        ("start_time", time()),
        ("end_time", time()),
        ("says", many(text())),
    ]);
    let change = object([
        ("attributes", json!({"type": "object", "additionalProperties": text()})),
        ("state", state()),
        ("reason", or_null(reason())),
        ("first_failed_layer", or_null(word(FailureLayer::ALL, FailureLayer::as_str))),
    ]);
    object([
        ("facts", many(fact)),
        ("beside", many(text())),
        ("judgement", many(text())),
        ("alone", or_null(state())),
        ("changes", many(change)),
        ("clocks", object([("deadline", count()), ("inactivity", count())])),
    ])
}

fn incident() -> Value {
    object([
        ("layer", text()),
        ("reason", reason()),
        ("server", text()),
        ("discriminator", or_null(text())),
        ("status", word(IncidentStatus::ALL, IncidentStatus::as_str)),
        ("count", count()),
        ("agents", many(text())),
        ("tools", many(text())),
        ("first_seen", time()),
        ("last_seen", time()),
        ("resolved_at", or_null(time())),
        ("owner", word(Owner::ALL, Owner::as_str)),
        ("next_step", word(NextStep::ALL, NextStep::as_str)),
    ])
}

fn session() -> Value {
    object([
        ("scope", text()),
        ("session_id", or_null(text())),
        ("era", word(Era::ALL, Era::as_str)),
        ("protocol_version", or_null(text())),
        ("state", word(Rung::ALL, Rung::as_str)),
        ("convergence", word(Convergence::ALL, Convergence::as_str)),
        ("discovered_digest", or_null(text())),
        ("installed_digest", or_null(text())),
        ("tool_count", or_null(count())),
        ("pages", count()),
        ("requests", count()),
        ("findings", many(named("Finding"))),
    ])
}

fn drift() -> Value {
    let grade = || word(Grade::ALL, Grade::as_str);
    let change = object([("pointer", text()), ("kind", text()), ("grade", grade())]);
    object([
        ("server", text()),
        ("tool", text()),
        ("grade", grade()),
        ("scheme", text()),
        ("old_digest", text()),
        ("new_digest", or_null(text())),
        ("changes", many(change)),
        ("confidence", word(Confidence::ALL, Confidence::as_str)),
        ("first_seen", time()),
    ])
}

fn contract() -> Value {
    let digest = || or_null(text());
    object([
        ("server", text()),
        ("tool", text()),
        ("auth", or_null(text())),
        ("client", or_null(text())),
        ("digest", digest()),
        ("members", json!({"type": "object", "additionalProperties": text()})),
        ("seen", or_null(time())),
        ("first_digest", digest()),
        ("first_seen", or_null(time())),
        ("pinned_digest", digest()),
        ("approved", or_null(flag())),
    ])
}

fn health() -> Value {
    let status = || json!({"type": "string", "enum": ["ok", "not_ready", "dead"]});
    let mut part = object([("part", text()), ("status", status()), ("why", text())]);
    part["required"] = json!(["part", "status"]);
    let metric = object([
        ("name", text()),
        ("labels", json!({"type": "object", "additionalProperties": text()})),
        ("value", json!({"type": "number"})),
        ("says", or_null(text())),
    ]);
    object([
        ("status", status()),
        ("version", text()),
        ("parts", many(part)),
        ("receives", object([("grpc", or_null(text())), ("http", or_null(text()))])),
        ("metrics", many(metric)),
    ])
}

fn question() -> Value {
    let mut question = object([
        ("server", text()),
        ("tool", text()),
        ("digest", text()),
        ("definition", json!({"type": ["object", "string"], "description": "an MCP tool"})),
        ("auth_context", text()),
        ("client", text()),
    ]);
    question["required"] = json!(["server", "tool"]);
    question
}

fn check_answer() -> Value {
    let digest = || or_null(text());
    let grade = || word(Grade::ALL, Grade::as_str);
    let change = object([
        ("pointer", text()),
        ("kind", text()),
        ("grade", grade()),
        ("old_digest", digest()),
        ("new_digest", digest()),
    ]);
    object([
        ("answer", json!({"type": "string", "enum": ["proceed", "halt"]})),
        ("reason", text()),
        ("expected_digest", digest()),
        ("held_digest", digest()),
        ("grade", or_null(grade())),
        ("changes", many(change)),
        ("omitted", count()),
    ])
}
