//! Small builders: a case is a plain call, changed by what the test is about.

use crate::model::case::*;
use crate::model::fact::*;
use crate::model::ids::*;
use crate::model::rare::Rare;
use crate::model::record::Verdict;
use crate::model::words::*;

/// Milliseconds after a fixed, believable start.
pub fn ms(at: u64) -> Nanos {
    1_700_000_000 * SECOND + at * MILLI
}

pub fn span(number: u8) -> SpanRef {
    SpanRef { trace: TraceId([1; 16]), span: SpanId([number; 8]) }
}

pub fn half(number: u8, start: u64, end: u64) -> Half {
    Half {
        at: span(number),
        parent: None,
        twins: Vec::new(),
        start: ms(start),
        end: ms(end),
        ended: true,
        status: 0,
        answer: Answer::default(),
        call: Rare::default(),
    }
}

/// A `tools/call` of 2025-11-25 in a negotiated, converged scope: the caller's half alone, ended,
/// and silent on how.
pub fn call() -> Case {
    Case {
        now: ms(2_000),
        scope_name: Name::new("scope"),
        exchange: Exchange {
            asking: Some(half(1, 1_000, 1_400)),
            answering: None,
            method: Name::new("tools/call"),
            tool: Name::some("create_ticket"),
            request_id: Name::some("7"),
            direction: Direction::ClientToServer,
            era: Era::Legacy,
            version: Name::some("2025-11-25"),
            transport: Some(Transport::Http),
            session_id: Name::some("s1"),
            server: Name::new("srv"),
            agent: Name::some("agent"),
            agent_run: None,
            http: None,
            cancel: None,
            progress: Vec::new(),
            effects: Vec::new(),
            outcomes: Vec::new(),
            read_only: None,
            idempotent: None,
            deadline: 300 * SECOND,
            inactivity: 60 * SECOND,
            negotiation: Negotiation::default(),
            operation_key: None,
            findings: Vec::new(),
        },
        scope: ScopeSeen { negotiated: true, answered_before: true, ..ScopeSeen::default() },
        catalog: CatalogSeen {
            convergence: Some(Convergence::Converged),
            ..CatalogSeen::default()
        },
        operation: OperationSeen::default(),
        requires: Layer::ALL.to_vec(),
        clock_skew: SECOND / 4,
    }
}

/// One change to a case; tests chain them.
pub trait Build: Sized {
    fn with(self, change: impl FnOnce(&mut Case)) -> Self;

    /// What the caller's half says of the answer.
    fn asks(self, change: impl FnOnce(&mut Answer)) -> Self {
        self.with(|case| {
            let half = case.exchange.asking.get_or_insert_with(|| half(1, 1_000, 1_400));
            change(&mut half.answer)
        })
    }

    /// What the server's half says of the answer; adds the half.
    fn answers(self, change: impl FnOnce(&mut Answer)) -> Self {
        self.with(|case| {
            let half = case.exchange.answering.get_or_insert_with(|| half(2, 1_002, 1_398));
            change(&mut half.answer)
        })
    }

    fn served(self) -> Self {
        self.answers(|_| {})
    }

    /// Both halves say so.
    fn flagged(self, is_error: bool) -> Self {
        self.asks(|a| a.is_error = Some(is_error)).answers(|a| a.is_error = Some(is_error))
    }

    /// Both halves carry the code.
    fn code(self, code: i64) -> Self {
        self.asks(|a| a.code = Some(code)).answers(|a| a.code = Some(code))
    }

    fn fails(self, failure: Failure) -> Self {
        self.asks(|a| a.failure = Some(failure))
    }

    /// The caller's last POST.
    fn http(self, status: u16) -> Self {
        self.with(|case| {
            let seen = HttpSeen { status, fault: None, end: ms(1_390), by: End::Asking };
            case.exchange.http = Some(seen)
        })
    }

    fn fault(self, fault: Fault) -> Self {
        self.with(|case| {
            let seen = HttpSeen { status: 0, fault: Some(fault), end: ms(1_390), by: End::Asking };
            case.exchange.http = Some(seen)
        })
    }

    fn cancel(self, at: u64) -> Self {
        self.with(|case| case.exchange.cancel = Some(CancelSeen { at: ms(at), by: End::Asking }))
    }

    fn method(self, method: &str) -> Self {
        self.with(|case| {
            case.exchange.method = Name::new(method);
            case.exchange.tool = None;
        })
    }

    fn modern(self) -> Self {
        self.with(|case| {
            case.exchange.era = Era::Modern;
            case.exchange.version = Name::some("2026-07-28");
            case.exchange.session_id = None;
            case.scope.negotiated = false;
        })
    }

    fn read_only(self) -> Self {
        self.with(|case| case.exchange.read_only = Some(true))
    }

    fn effect(self, status: Effect, at: u64) -> Self {
        let fact = EffectFact { status, time: ms(at), from: Origin::Attribute };
        self.with(|case| case.exchange.effects.push(fact))
    }

    fn outcome(self, status: OutcomeStatus, method: OutcomeMethod, at: u64) -> Self {
        let from = Origin::Attribute;
        let fact = OutcomeFact { status, method: Some(method), time: ms(at), from };
        self.with(|case| case.exchange.outcomes.push(fact))
    }

    /// Only a start record is known.
    fn open(self) -> Self {
        self.with(|case| {
            let half = half(1, 1_000, 1_000);
            case.exchange.asking = Some(Half { ended: false, ..half });
        })
    }

    fn progress(self, at: u64, value: f64) -> Self {
        let seen = ProgressSeen { at: ms(at), value: Some(value), span: SpanId([9; 8]) };
        self.with(|case| case.exchange.progress.push(seen))
    }

    fn now(self, at: u64) -> Self {
        self.with(|case| case.now = ms(at))
    }

    fn task(self, status: TaskStatus, is_error: Option<bool>, code: Option<i64>) -> Self {
        let result_seen = is_error.is_some();
        let task = TaskSeen { status, at: ms(4_000), is_error, code, result_seen };
        self.asks(|a| a.result_type = Some(ResultType::Task))
            .with(|case| case.operation.task = Some(task))
    }
}

impl Build for Case {
    fn with(mut self, change: impl FnOnce(&mut Case)) -> Self {
        change(&mut self);
        self
    }
}

pub fn judged(case: &Case) -> Verdict {
    let ending = crate::judge::ending(&case.exchange, &case.scope);
    crate::judge::verdict(case, ending, &mut ())
}

/// A word, or `-` where there is none.
pub fn word(text: Option<impl std::fmt::Display>) -> String {
    text.map_or("-".into(), |text| text.to_string())
}

/// What a verdict says, in one line: state, reason, first failed layer, lifecycle.
pub fn line(verdict: &Verdict) -> String {
    format!(
        "{} {} {} {}",
        verdict.state,
        word(verdict.reason),
        word(verdict.first_failed_layer),
        verdict.lifecycle
    )
}

/// The health ladder as letters: passed, failed, pending (`w`), unobserved (`.`), not applicable
/// (`n`).
pub fn health(verdict: &Verdict) -> String {
    Layer::ALL.iter().map(|layer| letter(verdict.layers.get(*layer))).collect()
}

pub fn ladder(verdict: &Verdict) -> String {
    FailureLayer::ALL.iter().map(|layer| letter(verdict.failure_layers.get(*layer))).collect()
}

fn letter(rung: Rung) -> char {
    match rung {
        Rung::Passed => 'p',
        Rung::Failed => 'F',
        Rung::Pending => 'w',
        Rung::Unobserved => '.',
        Rung::NotApplicable => 'n',
    }
}

/// Every row is judged and compared; all rows that differ are shown at once.
pub fn check(rows: Vec<(&str, Case, &str)>, say: impl Fn(&Verdict) -> String) {
    let wrong: Vec<String> = rows
        .iter()
        .map(|(name, case, want)| (name, say(&judged(case)), want))
        .filter(|(_, got, want)| got != *want)
        .map(|(name, got, want)| format!("{name}:\n   got {got}\n  want {want}"))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
