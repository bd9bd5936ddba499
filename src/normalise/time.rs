//! Times that people write into attributes.

use crate::model::ids::{Nanos, SECOND, sane};
use crate::wire::scan::ValueRef;

/// A time as ISO 8601 text (`2026-11-30T12:00:00.5Z`, an offset or none) or Unix nanoseconds.
/// `None` for anything else, and for times that are nobody's clock.
pub fn read(value: &ValueRef<'_>) -> Option<Nanos> {
    let nanos = match value {
        ValueRef::Int(number) => u64::try_from(*number).ok(),
        ValueRef::Str(text) => {
            let text = text.trim();
            text.parse().ok().or_else(|| iso_8601(text))
        }
        _ => None,
    };
    nanos.filter(|time| sane(*time))
}

fn iso_8601(text: &str) -> Option<Nanos> {
    let bytes = text.as_bytes();
    let digits = |from: usize, to: usize| -> Option<i64> {
        let part = bytes.get(from..to)?;
        part.iter().all(u8::is_ascii_digit).then(|| text[from..to].parse().ok())?
    };
    let is = |at: usize, any: &[u8]| bytes.get(at).is_some_and(|c| any.contains(c));
    if !(is(4, b"-") && is(7, b"-") && is(10, b"Tt ") && is(13, b":") && is(16, b":")) {
        return None;
    }
    let (year, month, day) = (digits(0, 4)?, digits(5, 7)?, digits(8, 10)?);
    let (hour, minute, second) = (digits(11, 13)?, digits(14, 16)?, digits(17, 19)?);
    let in_range = (1..=12).contains(&month)
        && (1..=31).contains(&day)
        && hour < 24
        && minute < 60
        && second <= 60;
    if !in_range {
        return None;
    }
    let mut rest = text.get(19..)?;
    let mut fraction = 0;
    if let Some(tail) = rest.strip_prefix(['.', ',']) {
        let end = tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        let shown = &tail[..end.min(9)];
        fraction = format!("{shown:0<9}").parse::<i64>().ok()?;
        rest = &tail[end..];
    }
    let seconds = days(year, month, day) * 86_400 + hour * 3600 + minute * 60 + second;
    let seconds = seconds - offset(rest)?;
    u64::try_from(seconds.checked_mul(SECOND as i64)?.checked_add(fraction)?).ok()
}

/// Seconds east of UTC.
fn offset(text: &str) -> Option<i64> {
    if matches!(text, "" | "Z" | "z") {
        return Some(0);
    }
    let sign = if text.starts_with('-') { -1 } else { 1 };
    let digits: String = text.strip_prefix(['+', '-'])?.replace(':', "");
    let minutes = match digits.len() {
        2 => digits.parse::<i64>().ok()? * 60,
        4 => digits.get(..2)?.parse::<i64>().ok()? * 60 + digits.get(2..)?.parse::<i64>().ok()?,
        _ => return None,
    };
    (minutes < 24 * 60).then_some(sign * minutes * 60)
}

/// Days since 1970-01-01 in the proleptic Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn iso_and_nanoseconds() {
        let noon = 1_796_040_000 * SECOND;
        for (text, want) in [
            ("2026-11-30T12:00:00Z", Some(noon)),
            ("2026-11-30T12:00:00", Some(noon)),
            ("2026-11-30T13:30:00.25+01:30", Some(noon + SECOND / 4)),
            ("2026-11-30 11:00:00-0100", Some(noon)),
            ("1796040000000000000", Some(noon)),
            ("2026-13-30T12:00:00Z", None),
            ("2026-11-30", None),
            ("yesterday", None),
            ("2026-11-30T12:00:00é", None),
            ("0", None),
        ] {
            assert_eq!(read(&ValueRef::Str(text)), want, "{text}");
        }
        assert_eq!(read(&ValueRef::Int(-1)), None);
        assert_eq!(read(&ValueRef::Bool(true)), None);
    }
}
