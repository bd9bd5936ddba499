//! The registry of findings (judgment.md §7): code, who is to blame, how strong the broken rule is,
//! where the finding stands, and one sentence. Documentation, telemetry and tests read it from
//! here.

use serde::{Deserialize, Serialize};

use super::ids::{Digest16, Name, SpanId};
use super::words::{Blame, Confidence, Strength, vocabulary};

vocabulary!(
    /// Every finding there is.
    Code {
        ProgressAfterCompletion = "progress_after_completion",
        ProgressNotIncreasing = "progress_not_increasing",
        ProgressUnknownToken = "progress_unknown_token",
        ProgressTokenReused = "progress_token_reused",
        LateResultDiscarded = "late_result_discarded",
        ResponseLost = "response_lost",
        DuplicateExecution = "duplicate_execution",
        RetryBudgetExceeded = "retry_budget_exceeded",
        RequestIdReusedInFlight = "request_id_reused_in_flight",
        RequestIdReused = "request_id_reused",
        ResponseMisrouted = "response_misrouted",
        ScopePingPong = "scope_ping_pong",
        SessionExpired = "session_expired",
        SessionIdChanged = "session_id_changed",
        UndeclaredNotification = "undeclared_notification",
        CapabilityNotNegotiated = "capability_not_negotiated",
        ListChangedUnanswered = "list_changed_unanswered",
        ListChangedStorm = "list_changed_storm",
        PaginationAbandoned = "pagination_abandoned",
        CursorLoop = "cursor_loop",
        TornCatalog = "torn_catalog",
        CatalogTtlExpired = "catalog_ttl_expired",
        UnstableOrder = "unstable_order",
        DuplicateToolName = "duplicate_tool_name",
        ToolNameCollision = "tool_name_collision",
        ContractDrift = "contract_drift",
        ArgumentNotInContract = "argument_not_in_contract",
        UnknownTool = "unknown_tool",
        OutputSchemaMismatch = "output_schema_mismatch",
        ErrorChannelMismatch = "error_channel_mismatch",
        ResultTextContradictsFlag = "result_text_contradicts_flag",
        ViewsDisagree = "views_disagree",
        InputRequiredNeverResumed = "input_required_never_resumed",
        TaskNeverFinished = "task_never_finished",
        ContextNotPropagated = "context_not_propagated",
        ServerSpansMissing = "server_spans_missing",
        DuplicateSpanId = "duplicate_span_id",
        DoubleInstrumentation = "double_instrumentation",
        TransportLabelContradictsParent = "transport_label_contradicts_parent",
        StreamOutlivesRequest = "stream_outlives_request",
        BadTimestamp = "bad_timestamp",
        AmbiguousAttribute = "ambiguous_attribute",
        AmbiguousEvidence = "ambiguous_evidence",
        DigestSchemeMismatch = "digest_scheme_mismatch",
        UnsafeNumber = "unsafe_number",
        SecretInAttribute = "secret_in_attribute",
        SampledOut = "sampled_out",
        Evicted = "evicted",
        RefusedLocally = "refused_locally",
    }
);

/// Which record a finding is printed on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stands {
    Verdict,
    Session,
    /// On the session record for listings, on the verdict for a call's own attribute.
    Either,
}

/// One row of the registry.
pub struct Row {
    pub code: Code,
    /// Default blame; two rules depend on the era or the asking side and say so where they apply.
    pub blame: Blame,
    pub strength: Strength,
    pub confidence: Confidence,
    pub stands: Stands,
    pub when: &'static str,
}

const fn row(
    code: Code,
    blame: Blame,
    strength: Strength,
    stands: Stands,
    when: &'static str,
) -> Row {
    Row { code, blame, strength, confidence: Confidence::Strong, stands, when }
}

/// In the order of [`Code::ALL`].
pub const FINDINGS: [Row; 49] = {
    use Blame as B;
    use Stands as T;
    use Strength as S;
    [
        row(
            Code::ProgressAfterCompletion,
            B::Server,
            S::Must,
            T::Verdict,
            "progress after the request's answer, by the sender's clock",
        ),
        row(
            Code::ProgressNotIncreasing,
            B::Server,
            S::Must,
            T::Verdict,
            "a value not above the one before (event time)",
        ),
        row(
            Code::ProgressUnknownToken,
            B::Server,
            S::Must,
            T::Session,
            "a token no request gave, where the scope's requests record tokens",
        ),
        row(
            Code::ProgressTokenReused,
            B::Client,
            S::Must,
            T::Verdict,
            "one token on two requests in flight",
        ),
        row(
            Code::LateResultDiscarded,
            B::Client,
            S::Policy,
            T::Verdict,
            "the server answered after the caller had cancelled or given up",
        ),
        row(
            Code::ResponseLost,
            B::Transport,
            S::Policy,
            T::Verdict,
            "a receipt or verified outcome exists for an answer that never came",
        ),
        row(
            Code::DuplicateExecution,
            B::Client,
            S::Policy,
            T::Verdict,
            "two attempts of one operation both ran, not read-only, not idempotent",
        ),
        row(
            Code::RetryBudgetExceeded,
            B::Client,
            S::Policy,
            T::Verdict,
            "on each attempt after more failures of a layer than its budget, counted before \
             superseding",
        ),
        row(
            Code::RequestIdReusedInFlight,
            B::Client,
            S::Must,
            T::Verdict,
            "same scope, direction and id, overlapping",
        ),
        row(Code::RequestIdReused, B::Client, S::Must, T::Verdict, "the same, later, legacy only"),
        row(
            Code::ResponseMisrouted,
            B::Server,
            S::Must,
            T::Verdict,
            "the caller got the result of another request with the same id",
        ),
        row(Code::ScopePingPong, B::None, S::Policy, T::Session, "insufficient scope A, B, A"),
        row(
            Code::SessionExpired,
            B::Client,
            S::Must,
            T::Verdict,
            "a request met an expired session",
        ),
        row(
            Code::SessionIdChanged,
            B::Server,
            S::Policy,
            T::Verdict,
            "two session ids on one request's halves",
        ),
        row(
            Code::UndeclaredNotification,
            B::Server,
            S::Must,
            T::Session,
            "list_changed that was not declared or not subscribed",
        ),
        row(
            Code::CapabilityNotNegotiated,
            B::Client,
            S::Should,
            T::Verdict,
            "a method outside the known capabilities was used",
        ),
        row(
            Code::ListChangedUnanswered,
            B::Client,
            S::Policy,
            T::Session,
            "a counted change, later activity in the scope, no listing since",
        ),
        row(Code::ListChangedStorm, B::Server, S::Policy, T::Session, "10 signals in 60 s"),
        row(
            Code::PaginationAbandoned,
            B::Client,
            S::Policy,
            T::Session,
            "a cursor left and later activity",
        ),
        row(
            Code::CursorLoop,
            B::Server,
            S::Must,
            T::Session,
            "a cursor seen before in the traversal",
        ),
        row(Code::TornCatalog, B::None, S::Policy, T::Session, "a change inside a traversal"),
        row(
            Code::CatalogTtlExpired,
            B::Client,
            S::Should,
            T::Session,
            "a call after ttlMs ran out without a refetch",
        ),
        row(
            Code::UnstableOrder,
            B::Server,
            S::Should,
            T::Session,
            "two complete traversals, same digest, other order",
        ),
        row(
            Code::DuplicateToolName,
            B::Server,
            S::Should,
            T::Session,
            "one listing, one name twice",
        ),
        row(
            Code::ToolNameCollision,
            B::None,
            S::Policy,
            T::Session,
            "one client instance, two servers, one tool name",
        ),
        row(Code::ContractDrift, B::Server, S::Policy, T::Verdict, "§6"),
        row(
            Code::ArgumentNotInContract,
            B::Client,
            S::Policy,
            T::Verdict,
            "visible argument names outside the current schema",
        ),
        row(
            Code::UnknownTool,
            B::Client,
            S::Must,
            T::Verdict,
            "a name that the scope's complete listing lacks",
        ),
        row(
            Code::OutputSchemaMismatch,
            B::Server,
            S::Must,
            T::Verdict,
            "visible structured content that its visible output schema refuses",
        ),
        row(
            Code::ErrorChannelMismatch,
            B::Server,
            S::Should,
            T::Verdict,
            "an unknown tool as isError, or refused arguments of a known tool as -32602 from \
             2025-11-25 on",
        ),
        Row {
            confidence: Confidence::Weak,
            ..row(
                Code::ResultTextContradictsFlag,
                B::Server,
                S::Policy,
                T::Verdict,
                "isError:false with a text that begins like an error",
            )
        },
        row(
            Code::ViewsDisagree,
            B::Telemetry,
            S::Policy,
            T::Verdict,
            "the halves report different results",
        ),
        row(
            Code::InputRequiredNeverResumed,
            B::Client,
            S::Policy,
            T::Verdict,
            "the run ended or the deadline passed",
        ),
        row(
            Code::TaskNeverFinished,
            B::Server,
            S::Policy,
            T::Verdict,
            "no status for longer than the deadline",
        ),
        row(
            Code::ContextNotPropagated,
            B::Telemetry,
            S::Policy,
            T::Verdict,
            "halves joined without a trace",
        ),
        row(
            Code::ServerSpansMissing,
            B::Telemetry,
            S::Policy,
            T::Session,
            "answered requests without server halves, once a scope, not where sampled out",
        ),
        row(
            Code::DuplicateSpanId,
            B::Telemetry,
            S::Policy,
            T::Verdict,
            "two different records of one span id",
        ),
        row(Code::DoubleInstrumentation, B::Telemetry, S::Policy, T::Verdict, "twins"),
        row(
            Code::TransportLabelContradictsParent,
            B::Telemetry,
            S::Policy,
            T::Verdict,
            "says stdio over HTTP",
        ),
        row(
            Code::StreamOutlivesRequest,
            B::Transport,
            S::Policy,
            T::Verdict,
            "a caller's POST that ends more than clock_skew after its request",
        ),
        row(
            Code::BadTimestamp,
            B::Telemetry,
            S::Policy,
            T::Verdict,
            "end before start, zero, from the year 2100 on",
        ),
        row(
            Code::AmbiguousAttribute,
            B::Telemetry,
            S::Policy,
            T::Verdict,
            "a correlation key twice with different values",
        ),
        row(
            Code::AmbiguousEvidence,
            B::Telemetry,
            S::Policy,
            T::Verdict,
            "a fact that fits two chains",
        ),
        row(
            Code::DigestSchemeMismatch,
            B::Telemetry,
            S::Policy,
            T::Either,
            "another scheme prefix",
        ),
        row(
            Code::UnsafeNumber,
            B::Server,
            S::Policy,
            T::Session,
            "an integer beyond 2^53 in a definition",
        ),
        row(
            Code::SecretInAttribute,
            B::Telemetry,
            S::Policy,
            T::Verdict,
            "a value that looks like a credential (bearer or basic header, private key block, JWT, \
             vendor-prefixed key); detail is the attribute's key",
        ),
        row(
            Code::SampledOut,
            B::Telemetry,
            S::Policy,
            T::Verdict,
            "a half alone whose OTLP flags have bit 8 set and bit 0 clear, where another span of \
             the same resource and instrumentation scope has bit 0 set (an SDK that never sets it \
             says nothing); or tracestate ot= with rv below th",
        ),
        row(
            Code::Evicted,
            B::None,
            S::Policy,
            T::Verdict,
            "state of the chain was dropped at a limit",
        ),
        row(
            Code::RefusedLocally,
            B::Client,
            S::Policy,
            T::Verdict,
            "the client never sent it: no server half, no HTTP child, a validation error",
        ),
    ]
};

impl Code {
    pub fn row(self) -> &'static Row {
        &FINDINGS[self as usize]
    }
}

/// What a finding points at: never content (judgment.md §7).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Detail {
    /// An attribute's key, or an already printable name.
    Key(Name),
    /// A JSON pointer, or several joined by a blank.
    Pointer(Name),
    /// Digest of a token, key or cursor.
    Digest(Digest16),
    Count(u64),
}

impl std::fmt::Display for Detail {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Key(name) | Self::Pointer(name) => f.write_str(name),
            Self::Digest(digest) => write!(f, "{digest}"),
            Self::Count(count) => write!(f, "{count}"),
        }
    }
}

impl Serialize for Detail {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        if s.is_human_readable() { s.collect_str(self) } else { Kept::from(self).serialize(s) }
    }
}

impl<'de> Deserialize<'de> for Detail {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        Ok(match Kept::deserialize(d)? {
            Kept::Key(name) => Self::Key(name),
            Kept::Pointer(name) => Self::Pointer(name),
            Kept::Digest(digest) => Self::Digest(digest),
            Kept::Count(count) => Self::Count(count),
        })
    }
}

/// A detail as a checkpoint holds it: with its kind.
#[derive(Serialize, Deserialize)]
enum Kept {
    Key(Name),
    Pointer(Name),
    Digest(Digest16),
    Count(u64),
}

impl From<&Detail> for Kept {
    fn from(detail: &Detail) -> Self {
        match detail {
            Detail::Key(name) => Self::Key(name.clone()),
            Detail::Pointer(name) => Self::Pointer(name.clone()),
            Detail::Digest(digest) => Self::Digest(*digest),
            Detail::Count(count) => Self::Count(*count),
        }
    }
}

/// A named defect with blame. Printed in the order of its fields; sorted by code, then detail.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
pub struct Finding {
    pub code: Code,
    pub blame: Blame,
    pub strength: Strength,
    pub confidence: Confidence,
    pub detail: Option<Detail>,
    /// The span ids behind it, sorted.
    pub spans: Vec<SpanId>,
}

impl Finding {
    /// The finding with the registry's blame, strength and confidence.
    pub fn new(code: Code, mut spans: Vec<SpanId>) -> Self {
        spans.sort_unstable();
        spans.dedup();
        let row = code.row();
        Self {
            code,
            blame: row.blame,
            strength: row.strength,
            confidence: row.confidence,
            detail: None,
            spans,
        }
    }

    pub fn blame(self, blame: Blame) -> Self {
        Self { blame, ..self }
    }

    pub fn strength(self, strength: Strength) -> Self {
        Self { strength, ..self }
    }

    pub fn weak(self) -> Self {
        Self { confidence: Confidence::Weak, ..self }
    }

    pub fn detail(self, detail: Detail) -> Self {
        Self { detail: Some(detail), ..self }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_the_codes() {
        for (row, code) in FINDINGS.iter().zip(Code::ALL) {
            assert_eq!(row.code, *code);
        }
    }
}
