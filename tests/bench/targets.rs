//! What is hoped for, and whether it was met.

use crate::figures::{Figure, Measured, Spread};

pub struct Target {
    pub subject: &'static str,
    pub figure: Figure,
    pub bound: Bound,
}

/// At most so much, so many times what a peer has, or so much more than it.
#[derive(Clone, Copy)]
pub enum Bound {
    AtMost(f64),
    Times(f64, &'static str),
    Within(f64, &'static str),
}

/// What came of a target.
pub struct Outcome {
    pub says: String,
    /// None where a run that it needs counts for nothing.
    pub measured: Option<Spread>,
    pub met: bool,
}

impl Target {
    pub const fn cpu(subject: &'static str, times: f64, peer: &'static str) -> Self {
        Self { subject, figure: Figure::Cpu, bound: Bound::Times(times, peer) }
    }

    pub const fn at_most(subject: &'static str, figure: Figure, most: f64) -> Self {
        Self { subject, figure, bound: Bound::AtMost(most) }
    }

    /// None where the row was measured without the subject or its peer.
    pub fn outcome(&self, all: &[Measured]) -> Option<Outcome> {
        let find = |name: &str| all.iter().find(|measured| measured.subject == name);
        let (figure, own) = (self.figure, find(self.subject)?);
        let what = figure.says();
        let (measured, most, bound) = match self.bound {
            Bound::AtMost(most) => (own.spread(figure), most, String::new()),
            Bound::Times(most, peer) => {
                let ratio = own.beside(find(peer)?, figure, |own, peer| own / peer);
                (ratio, most, format!(" × {peer}"))
            }
            Bound::Within(most, peer) => {
                let difference = own.beside(find(peer)?, figure, |own, peer| own - peer);
                (difference, most, format!(" above {peer}"))
            }
        };
        Some(Outcome {
            says: format!("{}: {what} ≤ {most}{bound}", self.subject),
            met: measured.is_some_and(|spread| spread.median <= most),
            measured,
        })
    }
}
