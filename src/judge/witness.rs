//! How `explain` looks over the judge's shoulder: judgement tells a witness what it decided and by
//! which rule. Live, the witness is `()` and costs nothing; no decision depends on it.

use crate::model::case::Ending;
use crate::model::fact::{EffectFact, OutcomeFact};
use crate::model::findings::Code;
use crate::model::words::{FailureLayer, Layer, Rung, State};

/// One step of a judgement, in the order in which they are made.
#[derive(Clone, PartialEq, Debug)]
pub enum Note {
    /// How the request ended, and the rule of [`super::ending::RULES`] that said so.
    Ending { ending: Ending, rule: &'static str, says: &'static str },
    /// The effect fact that counts among those there are.
    Effect(EffectFact),
    /// The outcome fact that counts among those there are.
    Outcome(OutcomeFact),
    /// A rung of the health contract, what is behind the first failed one already taken back.
    Health { layer: Layer, rung: Rung },
    /// A rung of the failure ladder, likewise.
    Failure { layer: FailureLayer, rung: Rung },
    /// The row of [`super::states::STATES`] that fits first; rows count from 1.
    Row { number: usize, state: State, says: &'static str },
    /// A finding, and when it is raised.
    Finding { code: Code, when: &'static str },
}

/// Sees what judgement decides, and changes nothing.
pub trait Witness {
    fn note(&mut self, note: Note);
}

impl Witness for () {
    fn note(&mut self, _: Note) {}
}

impl Witness for Vec<Note> {
    fn note(&mut self, note: Note) {
        self.push(note);
    }
}
