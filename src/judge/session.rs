//! The session rung (judgment.md §5, "Session").

use crate::model::case::{Case, Ending};
use crate::model::words::{Era, Reason, Rung};

/// A rung, and whether it rests on the weak proof alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct SessionSeen {
    pub rung: Rung,
    pub weak: bool,
}

/// Whether the peers had agreed on how to talk when this request was sent, as far as anybody saw.
/// No `initialize` in modern is no failure: there, every request negotiates for itself.
pub fn session(case: &Case, ending: Ending) -> SessionSeen {
    let strong = |rung| SessionSeen { rung, weak: false };
    let (x, scope) = (&case.exchange, &case.scope);
    let version = x.version.is_some() || scope.version.is_some();
    if refusal(case, ending).is_some() {
        return strong(Rung::Failed);
    }
    if x.era == Era::Modern {
        return strong(if answered(ending) { Rung::Passed } else { Rung::NotApplicable });
    }
    if scope.negotiated {
        return strong(Rung::Passed);
    }
    match version && (scope.answered_ever || served(ending)) {
        true => SessionSeen { rung: Rung::Passed, weak: true },
        false => strong(Rung::Unobserved),
    }
}

/// Why the session is broken for this request: it was refused for it, or it failed in a scope whose
/// negotiation had failed and where nothing was ever answered.
pub fn refusal(case: &Case, ending: Ending) -> Option<Reason> {
    match ending {
        Ending::Incompatible { reason } => Some(reason),
        Ending::SessionExpired => Some(Reason::SessionExpired),
        _ => {
            let scope = &case.scope;
            let broken = scope.negotiation_failed && !scope.negotiated && !scope.answered_ever;
            let refused = matches!(ending, Ending::Error { .. } | Ending::Unnamed);
            (broken && refused && case.exchange.era != Era::Modern)
                .then_some(Reason::UnsupportedVersion)
        }
    }
}

/// A JSON-RPC answer of any kind came: the server accepted this request's version.
fn answered(ending: Ending) -> bool {
    served(ending) || matches!(ending, Ending::Error { .. })
}

fn served(ending: Ending) -> bool {
    matches!(ending, Ending::Result { .. } | Ending::InputRequired | Ending::Task)
}
