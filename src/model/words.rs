//! Closed vocabularies of verdicts (judgment.md §2, 5, 6, 8). Each word has one spelling, here.

/// Defines a closed enum whose variants have a fixed spelling, in order of declaration.
macro_rules! vocabulary {
    ($(#[$meta:meta])* $name:ident {
        $($(#[$vmeta:meta])* $variant:ident = $text:literal),* $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum $name { $($(#[$vmeta])* $variant),* }

        impl $name {
            pub const ALL: &'static [$name] = &[$($name::$variant),*];

            pub fn as_str(self) -> &'static str {
                match self { $($name::$variant => $text),* }
            }

            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|word| word.as_str() == text)
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl serde::Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.serialize_str(self.as_str())
            }
        }
    };
}
pub(crate) use vocabulary;

vocabulary!(
    /// §2. Decided per request.
    Era { Legacy = "legacy", Modern = "modern", Unknown = "unknown" }
);
vocabulary!(
    /// §5, state of one rung of a ladder.
    Rung {
        Passed = "passed", Failed = "failed", Pending = "pending", Unobserved = "unobserved",
        NotApplicable = "not_applicable",
    }
);
vocabulary!(
    /// §5, the health contract's ladder.
    Layer {
        Session = "session", Catalog = "catalog", Request = "request", Effect = "effect",
        Outcome = "outcome",
    }
);
vocabulary!(
    /// §5, the failure ladder.
    FailureLayer {
        Transport = "transport", Protocol = "protocol", Authority = "authority",
        Execution = "execution", Outcome = "outcome",
    }
);
vocabulary!(
    /// §5, in order of precedence: the first row that fits wins.
    State {
        NeedsAuth = "needs_auth", IncompatibleSession = "incompatible_session",
        Unreachable = "unreachable", StaleCatalog = "stale_catalog", Working = "working",
        ProtocolError = "protocol_error", ToolFailed = "tool_failed", Cancelled = "cancelled",
        EffectUnknown = "effect_unknown", FalseSuccess = "false_success",
        Unverified = "unverified", Healthy = "healthy",
    }
);
vocabulary!(
    /// Who owns the next safe step.
    Owner {
        None = "none", CredentialOwner = "credential_owner",
        AuthorizationOwner = "authorization_owner", IntegrationOwner = "integration_owner",
        AvailabilityOwner = "availability_owner", ClientImplementer = "client_implementer",
        ToolOwner = "tool_owner", Operator = "operator", OutcomeOwner = "outcome_owner",
    }
);
vocabulary!(
    /// The next safe step.
    NextStep {
        Continue = "continue", None = "none", Wait = "wait",
        CheckAvailability = "check_availability", RefreshDiscovery = "refresh_discovery",
        FixRequestContract = "fix_request_contract", FixClientContract = "fix_client_contract",
        StartNewSession = "start_new_session", AlignVersions = "align_versions",
        RefreshCredentialOnce = "refresh_credential_once", RequestScope = "request_scope",
        InspectAuthorization = "inspect_authorization",
        InspectToolOrInput = "inspect_tool_or_input",
        OpenOutcomeIncident = "open_outcome_incident", RediscoverOnce = "rediscover_once",
        ResumeFromCursor = "resume_from_cursor", ReviewContract = "review_contract",
        ReconcileByOperationKey = "reconcile_by_operation_key", RecordResult = "record_result",
        VerifyOutcome = "verify_outcome", PlanBoundedRefresh = "plan_bounded_refresh",
        RecordNegotiation = "record_negotiation",
    }
);
vocabulary!(
    Retry {
        Never = "never", Once = "once", BoundedBackoff = "bounded_backoff",
        AfterRediscovery = "after_rediscovery", IfReversible = "if_reversible",
        Blocked = "blocked",
    }
);
vocabulary!(
    Lifecycle {
        Complete = "complete", Open = "open", AwaitingInput = "awaiting_input",
        Cancelled = "cancelled", Lost = "lost", Expired = "expired", Superseded = "superseded",
        Partial = "partial",
    }
);
vocabulary!(
    /// §6.
    Convergence {
        Unverifiable = "unverifiable", Incomplete = "incomplete", Stale = "stale",
        Converged = "converged",
    }
);
vocabulary!(
    /// §6, a call against the reference before its own re-read.
    ContractStatus {
        Pinned = "pinned", Drifted = "drifted", Unpinned = "unpinned", Unknown = "unknown",
    }
);
vocabulary!(
    /// §6, how bad a drift is.
    Grade {
        Breaking = "breaking", Semantic = "semantic", Compatible = "compatible",
        Unlocated = "unlocated",
    }
);
vocabulary!(Blame {
    Client = "client", Server = "server", Auth = "auth", Transport = "transport",
    Telemetry = "telemetry", None = "none",
});
vocabulary!(Strength { Must = "must", Should = "should", Policy = "policy" });
vocabulary!(Confidence { Strong = "strong", Weak = "weak" });
vocabulary!(Effect { Confirmed = "confirmed", Absent = "absent", Unknown = "unknown" });
vocabulary!(OutcomeStatus {
    Verified = "verified", Failed = "failed", Missing = "missing", Unknown = "unknown",
});
vocabulary!(OutcomeMethod {
    FileDigest = "file_digest", RecordVersion = "record_version", HttpStatus = "http_status",
    TestResult = "test_result", Query = "query", Human = "human", Rubric = "rubric",
    LlmJudge = "llm_judge",
});
vocabulary!(IncidentStatus {
    Open = "open", Recovering = "recovering", Resolved = "resolved", Expired = "expired",
});
vocabulary!(Transport { Http = "http", Stdio = "stdio" });
vocabulary!(TaskStatus {
    Working = "working", InputRequired = "input_required", Completed = "completed",
    Failed = "failed", Cancelled = "cancelled",
});
vocabulary!(ResultType {
    Complete = "complete", InputRequired = "input_required", Task = "task",
});
vocabulary!(
    /// What the operator's row of an event says of the damage (§8.2).
    Impact {
        None = "none", PossibleEffect = "possible_effect", WrongOutcome = "wrong_outcome",
        Blocked = "blocked",
    }
);

impl OutcomeMethod {
    /// Rubrics and model judges are opinions: they verify weakly and prove no effect (§3).
    pub fn weak(self) -> bool {
        matches!(self, Self::Rubric | Self::LlmJudge)
    }
}

impl TaskStatus {
    pub fn terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}

/// §8, closed list of reasons. `Http(status)` prints as `http_<status>`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Reason {
    InvalidToken,
    InsufficientScope,
    Forbidden,
    UnsupportedVersion,
    MissingCapability,
    CapabilityNotNegotiated,
    SessionExpired,
    ConnectionFailed,
    TlsFailed,
    WrongUrl,
    Http(u16),
    ConnectionLost,
    Stale,
    Incomplete,
    ContractDrift,
    ContractUnpinned,
    InProgress,
    AwaitingInput,
    TaskRunning,
    MethodNotFound,
    InvalidParams,
    HeaderMismatch,
    InternalError,
    JsonrpcError,
    RefusedLocally,
    ToolError,
    TaskFailed,
    OutputSchemaMismatch,
    Timeout,
    DeadlineExceeded,
    Inactive,
    ClientException,
    Cancelled,
    InputRequiredNeverResumed,
    EffectUnknown,
    EffectAbsent,
    OutcomeFailed,
    OutcomeMissing,
    Unobserved(Layer),
    Superseded,
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Http(status) => return write!(f, "http_{status}"),
            Self::Unobserved(layer) => return write!(f, "unobserved_{layer}"),
            Self::InvalidToken => "invalid_token",
            Self::InsufficientScope => "insufficient_scope",
            Self::Forbidden => "forbidden",
            Self::UnsupportedVersion => "unsupported_version",
            Self::MissingCapability => "missing_capability",
            Self::CapabilityNotNegotiated => "capability_not_negotiated",
            Self::SessionExpired => "session_expired",
            Self::ConnectionFailed => "connection_failed",
            Self::TlsFailed => "tls_failed",
            Self::WrongUrl => "wrong_url",
            Self::ConnectionLost => "connection_lost",
            Self::Stale => "stale",
            Self::Incomplete => "incomplete",
            Self::ContractDrift => "contract_drift",
            Self::ContractUnpinned => "contract_unpinned",
            Self::InProgress => "in_progress",
            Self::AwaitingInput => "awaiting_input",
            Self::TaskRunning => "task_running",
            Self::MethodNotFound => "method_not_found",
            Self::InvalidParams => "invalid_params",
            Self::HeaderMismatch => "header_mismatch",
            Self::InternalError => "internal_error",
            Self::JsonrpcError => "jsonrpc_error",
            Self::RefusedLocally => "refused_locally",
            Self::ToolError => "tool_error",
            Self::TaskFailed => "task_failed",
            Self::OutputSchemaMismatch => "output_schema_mismatch",
            Self::Timeout => "timeout",
            Self::DeadlineExceeded => "deadline_exceeded",
            Self::Inactive => "inactive",
            Self::ClientException => "client_exception",
            Self::Cancelled => "cancelled",
            Self::InputRequiredNeverResumed => "input_required_never_resumed",
            Self::EffectUnknown => "effect_unknown",
            Self::EffectAbsent => "effect_absent",
            Self::OutcomeFailed => "outcome_failed",
            Self::OutcomeMissing => "outcome_missing",
            Self::Superseded => "superseded",
        })
    }
}

impl serde::Serialize for Reason {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}
