//! Attribute registries: what instrumented clients may tell us (`mcp_evidence.*`, judgment.md §3)
//! and what we put on spans and events (`mcp_verdict.*`, §8). Every reader and writer uses these.

/// How an evidence attribute is meant to be typed. Readers accept bool, int and text forms where
/// they are unambiguous.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    Text,
    Texts,
    Bool,
    Int,
    Number,
    Time,
    /// A JSON text: read in memory, never printed.
    Json,
}

pub struct Evidence {
    /// Whole key, prefix included.
    pub key: &'static str,
    pub form: Form,
    pub says: &'static str,
}

pub const EVIDENCE_PREFIX: &str = "mcp_evidence.";

macro_rules! evidence {
    ($($constant:ident = $key:literal, $form:ident, $says:literal;)*) => {
        $(pub const $constant: &str = concat!("mcp_evidence.", $key);)*

        pub const EVIDENCE: &[Evidence] = &[
            $(Evidence { key: $constant, form: Form::$form, says: $says }),*
        ];
    };
}

evidence! {
    SESSION_REQUESTED_VERSION = "session.requested_version", Text, "version the client asked for";
    SESSION_CLIENT_CAPABILITIES = "session.client_capabilities", Texts, "negotiated by the client";
    SESSION_SERVER_CAPABILITIES = "session.server_capabilities", Texts, "negotiated by the server";
    SESSION_SUBSCRIBED = "session.subscribed", Texts, "what an acknowledged listen covers";
    SESSION_AUTH_CONTEXT = "session.auth_context", Text, "digest of the authorization context";
    SESSION_SERVER_NAME = "session.server_name", Text, "self-reported server name";
    LIST_CURSOR = "list.cursor", Text, "cursor sent";
    LIST_NEXT_CURSOR = "list.next_cursor", Text, "cursor received";
    LIST_LAST_PAGE = "list.last_page", Bool, "no next cursor was present";
    LIST_TTL_MS = "list.ttl_ms", Int, "cache hint, milliseconds";
    LIST_TOOLS = "list.tools", Texts, "name=digest of each tool on this page";
    LIST_DEFINITIONS = "list.definitions", Json, "the page's tools array";
    REGISTRY_DISCOVERED_DIGEST = "registry.discovered_digest", Text, "digest of what was listed";
    REGISTRY_INSTALLED_DIGEST = "registry.installed_digest", Text, "digest of what is installed";
    REGISTRY_TOOL_COUNT = "registry.tool_count", Int, "size of the installed registry";
    CALL_CONTRACT_DIGEST = "call.contract_digest", Text, "tool digest the caller holds";
    CALL_IS_ERROR = "call.is_error", Bool, "isError of the tool result";
    CALL_RESULT_TYPE = "call.result_type", Text, "complete, input_required or task";
    CALL_READ_ONLY = "call.read_only", Bool, "the caller knows that the tool only reads";
    CALL_IDEMPOTENT = "call.idempotent", Bool, "the caller knows that a retry is harmless";
    CALL_DEADLINE_MS = "call.deadline_ms", Int, "absolute maximum, milliseconds";
    CALL_INACTIVITY_MS = "call.inactivity_ms", Int, "window reset by progress, milliseconds";
    CALL_PROGRESS_TOKEN = "call.progress_token", Text, "token the request gave";
    PROGRESS_TOKEN = "progress.token", Text, "token a progress notification carries";
    PROGRESS_VALUE = "progress.value", Number, "progress so far";
    PROGRESS_TOTAL = "progress.total", Number, "progress at the end";
    CALL_CANCELLED_REQUEST_ID = "call.cancelled_request_id", Text, "request a cancel speaks of";
    CALL_REQUEST_STATE = "call.request_state", Text, "state sent with the request";
    CALL_NEXT_REQUEST_STATE = "call.next_request_state", Text, "state that came back";
    CALL_TASK_ID = "call.task_id", Text, "the task of the call";
    TASK_STATUS = "task.status", Text, "status of the task";
    OPERATION_KEY = "operation.key", Text, "stable operation (idempotency) key";
    OPERATION_ATTEMPT = "operation.attempt", Int, "attempt number";
    AUTH_ERROR = "auth.error", Text, "invalid_token or insufficient_scope";
    AUTH_SCOPE = "auth.scope", Text, "scope the server requires";
    AUTH_RESOURCE = "auth.resource", Text, "resource the server names";
    AUTH_CREDENTIAL = "auth.credential", Text, "digest of the credential";
    EFFECT_STATUS = "effect.status", Text, "confirmed, absent or unknown";
    EFFECT_KEY = "effect.key", Text, "receipt id";
    EFFECT_OBSERVED_AT = "effect.observed_at", Time, "when the destination was looked at";
    OUTCOME_STATUS = "outcome.status", Text, "verified, failed, missing or unknown";
    OUTCOME_METHOD = "outcome.method", Text, "how the outcome was checked";
    OUTCOME_EXPECTED = "outcome.expected", Text, "digest of what was wanted";
    OUTCOME_OBSERVED = "outcome.observed", Text, "digest of what was found";
    OUTCOME_OBSERVED_AT = "outcome.observed_at", Time, "when the outcome was looked at";
    AGENT_RUN = "agent.run", Text, "owning run";
}

/// Names of the log record and span event that say a request has begun.
pub const REQUEST_STARTED: &str = "mcp_evidence.request.started";

/// Prefix of everything we add.
pub const VERDICT_PREFIX: &str = "mcp_verdict.";

/// Instrumentation scope of what we originate.
pub const VERDICT_SCOPE: &str = "mcp-verdict";
