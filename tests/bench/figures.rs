//! What is measured, and how rounds become one figure.

use std::collections::BTreeMap;

/// Something measured once a round.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Figure {
    Cpu,
    Rate,
    DeliveredP50,
    DeliveredP99,
    AnsweredP99,
    Peak,
    Swing,
    BytesOut,
    Refused,
    Revisions,
    BytesEach,
    BytesByte,
    Idle,
    Binary,
    Ready,
}

impl Figure {
    /// Name in the reports, unit and all.
    pub fn says(self) -> &'static str {
        match self {
            Figure::Cpu => "CPU ns/span",
            Figure::Rate => "spans/s",
            Figure::DeliveredP50 => "delivered p50 ms",
            Figure::DeliveredP99 => "delivered p99 ms",
            Figure::AnsweredP99 => "answered p99 ms",
            Figure::Peak => "peak RSS MiB",
            Figure::Swing => "RSS most/least",
            Figure::BytesOut => "bytes out/in",
            Figure::Refused => "refusals",
            Figure::Revisions => "revisions",
            Figure::BytesEach => "RSS bytes each",
            Figure::BytesByte => "RSS bytes a byte",
            Figure::Idle => "RSS MiB",
            Figure::Binary => "binary MB",
            Figure::Ready => "start to ready ms",
        }
    }

    /// As people read it: three digits that count.
    pub fn show(value: f64) -> String {
        match value.abs() {
            a if a >= 100.0 => grouped(value),
            a if a >= 10.0 => format!("{value:.1}"),
            0.0 => "0".to_owned(),
            _ => format!("{value:.2}"),
        }
    }
}

/// Thousands apart.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut shown = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) && shown != "-" {
            shown.push(',');
        }
        shown.push(digit);
    }
    shown
}

/// One run of one program: what was measured, or why it counts for nothing.
pub type Run = Result<BTreeMap<Figure, f64>, String>;

/// All rounds of one program in one row.
pub struct Measured {
    pub subject: &'static str,
    pub runs: Vec<Run>,
}

/// The least, the middle and the most of all rounds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub least: f64,
    pub median: f64,
    pub most: f64,
}

impl Spread {
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        let (least, most) = (*values.first()?, *values.last()?);
        let (low, high) = (values[(values.len() - 1) / 2], values[values.len() / 2]);
        Some(Self { least, median: f64::midpoint(low, high), most })
    }
}

impl Measured {
    /// Measured once.
    pub fn once(subject: &'static str, run: Run) -> Self {
        Self { subject, runs: vec![run] }
    }

    pub fn spread(&self, figure: Figure) -> Option<Spread> {
        Spread::of(self.runs.iter().flatten().filter_map(|run| run.get(&figure).copied()))
    }

    /// What each round says of the two together; rounds are interleaved, so that whatever else the
    /// machine did hit both.
    pub fn beside(
        &self,
        peer: &Measured,
        figure: Figure,
        both: impl Fn(f64, f64) -> f64,
    ) -> Option<Spread> {
        let rounds = self.runs.iter().zip(&peer.runs);
        Spread::of(rounds.filter_map(|(own, peers)| {
            let (own, peers) = (own.as_ref().ok()?, peers.as_ref().ok()?);
            Some(both(*own.get(&figure)?, *peers.get(&figure)?))
        }))
    }

    pub fn errors(&self) -> impl Iterator<Item = (usize, &str)> {
        let numbered = self.runs.iter().enumerate();
        numbered.filter_map(|(round, run)| Some((round + 1, run.as_ref().err()?.as_str())))
    }
}
