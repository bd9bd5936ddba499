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
                match s.is_human_readable() {
                    true => s.serialize_str(self.as_str()),
                    false => s.serialize_u8(*self as u8),
                }
            }
        }

        /// As a checkpoint holds it: by its place in the list.
        impl<'de> serde::Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let place = usize::from(u8::deserialize(d)?);
                let word = Self::ALL.get(place).copied();
                word.ok_or_else(|| serde::de::Error::custom(concat!("no such ", stringify!($name))))
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

/// Reasons without a value of their own, each with its one spelling.
macro_rules! reasons {
    ($($plain:ident = $text:literal),* $(,)?) => {
        /// §8, closed list of reasons. `Http(status)` prints as `http_<status>`.
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub enum Reason { $($plain,)* Http(u16), Unobserved(Layer) }

        impl Reason {
            const PLAIN: &'static [Reason] = &[$(Reason::$plain),*];

            /// Its spelling, where it has no value of its own.
            fn as_str(self) -> Option<&'static str> {
                match self {
                    $(Reason::$plain => Some($text),)*
                    Reason::Http(_) | Reason::Unobserved(_) => None,
                }
            }
        }
    };
}

reasons!(
    InvalidToken = "invalid_token",
    InsufficientScope = "insufficient_scope",
    Forbidden = "forbidden",
    UnsupportedVersion = "unsupported_version",
    MissingCapability = "missing_capability",
    CapabilityNotNegotiated = "capability_not_negotiated",
    SessionExpired = "session_expired",
    ConnectionFailed = "connection_failed",
    TlsFailed = "tls_failed",
    WrongUrl = "wrong_url",
    ConnectionLost = "connection_lost",
    Stale = "stale",
    Incomplete = "incomplete",
    ContractDrift = "contract_drift",
    ContractUnpinned = "contract_unpinned",
    InProgress = "in_progress",
    AwaitingInput = "awaiting_input",
    TaskRunning = "task_running",
    MethodNotFound = "method_not_found",
    InvalidParams = "invalid_params",
    HeaderMismatch = "header_mismatch",
    InternalError = "internal_error",
    JsonrpcError = "jsonrpc_error",
    RefusedLocally = "refused_locally",
    ToolError = "tool_error",
    TaskFailed = "task_failed",
    OutputSchemaMismatch = "output_schema_mismatch",
    Timeout = "timeout",
    DeadlineExceeded = "deadline_exceeded",
    Inactive = "inactive",
    ClientException = "client_exception",
    Cancelled = "cancelled",
    InputRequiredNeverResumed = "input_required_never_resumed",
    EffectUnknown = "effect_unknown",
    EffectAbsent = "effect_absent",
    OutcomeFailed = "outcome_failed",
    OutcomeMissing = "outcome_missing",
    Superseded = "superseded",
);

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Http(status) => write!(f, "http_{status}"),
            Self::Unobserved(layer) => write!(f, "unobserved_{layer}"),
            plain => f.write_str(plain.as_str().unwrap_or_default()),
        }
    }
}

impl Reason {
    /// Reads the text that a reason prints as.
    pub fn parse(text: &str) -> Option<Self> {
        if let Some(status) = text.strip_prefix("http_") {
            return status.parse().ok().map(Self::Http);
        }
        if let Some(layer) = text.strip_prefix("unobserved_") {
            return Layer::parse(layer).map(Self::Unobserved);
        }
        Self::PLAIN.iter().copied().find(|reason| reason.as_str() == Some(text))
    }
}

impl serde::Serialize for Reason {
    fn serialize<S: serde::Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
        s.collect_str(self)
    }
}

impl<'de> serde::Deserialize<'de> for Reason {
    fn deserialize<D: serde::Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
        let text = <std::borrow::Cow<'_, str>>::deserialize(d)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("no such reason"))
    }
}
