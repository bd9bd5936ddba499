//! Text to value: durations, sizes, endpoints, numbers. Each error says what to write instead.

use crate::model::ids::{MILLI, Nanos, SECOND};

const UNITS: &[(&str, Nanos)] = &[
    ("ns", 1),
    ("us", 1_000),
    ("µs", 1_000),
    ("ms", MILLI),
    ("s", SECOND),
    ("m", 60 * SECOND),
    ("h", 3600 * SECOND),
    ("d", 86_400 * SECOND),
];

/// `2s`, `15m`, `1h30m`, `250ms`, `0`. Nanoseconds.
pub fn duration(text: &str) -> Result<Nanos, String> {
    let wrong = || format!("`{text}` is not a duration; write one such as `2s`, `15m` or `250ms`");
    if text == "0" {
        return Ok(0);
    }
    let (mut total, mut rest) = (0u64, text);
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit() && c != '.').ok_or_else(wrong)?;
        let unit_end =
            rest[digits..].find(|c: char| c.is_ascii_digit()).map_or(rest.len(), |n| digits + n);
        let number: f64 = rest[..digits].parse().map_err(|_| wrong())?;
        let unit = UNITS.iter().find(|(name, _)| *name == &rest[digits..unit_end]);
        let nanos = number * unit.ok_or_else(wrong)?.1 as f64;
        // 2^63 ns are 292 years: nobody means more, and sums with times stay far from the end.
        if !(0.0..9.2e18).contains(&nanos) {
            return Err(wrong());
        }
        total = total.checked_add(nanos as u64).ok_or_else(wrong)?;
        rest = &rest[unit_end..];
    }
    (!text.is_empty()).then_some(total).ok_or_else(wrong)
}

/// `16MiB`, `4 GiB`, `64KiB`, `65536` (bytes). KB, MB, GB are decimal, as their names say.
pub fn size(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}` is not a size; write one such as `16MiB`, or bytes");
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let unit: u64 = match text[digits..].trim() {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        "KB" | "kB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        _ => return Err(wrong()),
    };
    if let Ok(whole) = text[..digits].parse::<u64>() {
        return whole.checked_mul(unit).ok_or_else(wrong);
    }
    let number: f64 = text[..digits].parse().map_err(|_| wrong())?;
    let bytes = number * unit as f64;
    if unit == 1 || !(0.0..9.2e18).contains(&bytes) {
        return Err(wrong());
    }
    Ok(bytes as u64)
}

pub fn flag(text: &str) -> Result<bool, String> {
    match text {
        "true" | "True" | "TRUE" => Ok(true),
        "false" | "False" | "FALSE" => Ok(false),
        _ => Err(format!("`{text}` is not `true` or `false`")),
    }
}

pub fn count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("`{text}` is not a whole number from 0 on"))
}

pub fn text(text: &str) -> Result<String, String> {
    Ok(text.to_string())
}

/// `host:port`, `[::1]:port`, `:port` (every interface, as in the Collector).
pub fn endpoint(text: &str) -> Result<String, String> {
    let wrong = || format!("`{text}` is not host:port; write one such as `127.0.0.1:4317`");
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    port.parse::<u16>().map_err(|_| wrong())?;
    let bracketed = host.starts_with('[') && host.ends_with(']');
    if host.contains("://") || host.contains('/') || host.contains(':') && !bracketed {
        return Err(wrong());
    }
    Ok(if host.is_empty() { format!("0.0.0.0:{port}") } else { text.to_string() })
}

/// Whether an endpoint that `endpoint` accepted can be reached from this machine alone.
pub fn is_loopback(endpoint: &str) -> bool {
    let host = endpoint.rsplit_once(':').map_or(endpoint, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let ip = host.parse::<std::net::IpAddr>();
    host == "localhost" || ip.is_ok_and(|ip| ip.to_canonical().is_loopback())
}

/// An absolute `http://` or `https://` URL, or `host:port` whose scheme the TLS settings decide.
pub fn url(text: &str) -> Result<String, String> {
    let rest = text.strip_prefix("http://").or_else(|| text.strip_prefix("https://"));
    let authority = rest.unwrap_or(text).split(['/', '?']).next().unwrap_or_default();
    let port = authority.rsplit_once(':').map(|(_, port)| port);
    let whole = match rest {
        Some(_) => port.is_none_or(|p| p.ends_with(']') || p.parse::<u16>().is_ok()),
        None => !text.contains('/') && port.is_some_and(|p| p.parse::<u16>().is_ok()),
    };
    if authority.is_empty() || authority.starts_with(':') || !whole || text.contains(' ') {
        return Err(format!("`{text}` is not a URL; write one such as `http://127.0.0.1:14317`"));
    }
    Ok(text.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        for (text, want) in [
            ("2s", Some(2 * SECOND)),
            ("15m", Some(900 * SECOND)),
            ("1h30m", Some(5400 * SECOND)),
            ("250ms", Some(250 * MILLI)),
            ("1.5s", Some(1_500 * MILLI)),
            ("0", Some(0)),
            ("5", None),
            ("", None),
            ("s", None),
            ("-1s", None),
            ("2 weeks", None),
            ("99999999999999999999h", None),
        ] {
            assert_eq!(duration(text).ok(), want, "{text}");
        }
    }

    #[test]
    fn sizes() {
        for (text, want) in [
            ("16MiB", Some(16 << 20)),
            ("4 GiB", Some(4 << 30)),
            ("1.5KiB", Some(1536)),
            ("65536", Some(65536)),
            ("10MB", Some(10_000_000)),
            ("1.5", None),
            ("16 mib", None),
            ("", None),
            ("99999999999999GiB", None),
        ] {
            assert_eq!(size(text).ok(), want, "{text}");
        }
    }

    #[test]
    fn endpoints() {
        for (text, loopback) in [
            ("127.0.0.1:4317", Some(true)),
            ("localhost:0", Some(true)),
            ("[::1]:4317", Some(true)),
            ("0.0.0.0:4317", Some(false)),
            (":4317", Some(false)),
            ("example.com:1", Some(false)),
            ("[::]:4317", Some(false)),
            ("4317", None),
            ("http://127.0.0.1:4317", None),
            ("127.0.0.1:99999", None),
            ("::1:4317", None),
        ] {
            assert_eq!(endpoint(text).ok().map(|e| is_loopback(&e)), loopback, "{text}");
        }
    }

    #[test]
    fn urls() {
        for (text, fits) in [
            ("http://127.0.0.1:14317", true),
            ("https://otlp.example.com", true),
            ("https://otlp.example.com/otlp/v1/traces", true),
            ("collector:4317", true),
            ("http://[::1]:4317", true),
            ("collector", false),
            ("ftp://x", false),
            ("http://", false),
            ("http://x:port", false),
            ("", false),
        ] {
            assert_eq!(url(text).is_ok(), fits, "{text}");
        }
    }
}
