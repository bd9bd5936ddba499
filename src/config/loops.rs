//! An exporter that sends to one of our own receivers: every span would go round for ever.

use super::forms;
use super::settings::*;

/// The receiver that an exporter would send to, where it is one of ours.
pub fn own_receiver<'a>(kind: &ExporterKind, receivers: &'a Receivers) -> Option<&'a str> {
    let (client, signals) = match kind {
        ExporterKind::Otlp(client) => (client, None),
        ExporterKind::OtlpHttp { client, endpoints, .. } => (client, Some(endpoints)),
        ExporterKind::File { .. } | ExporterKind::Console { .. } => return None,
    };
    let signals = signals.into_iter().flat_map(|s| [&s.traces, &s.logs, &s.metrics]).flatten();
    let targets: Vec<&String> = signals.chain([&client.endpoint]).collect();
    let grpc = receivers.grpc.iter().map(|grpc| grpc.endpoint.as_str());
    let http = receivers.http.iter().map(|http| http.endpoint.as_str());
    grpc.chain(http).find(|own| targets.iter().any(|target| leads_to(target, own)))
}

fn leads_to(target: &str, own: &str) -> bool {
    let rest = target.split_once("://").map_or(target, |(_, rest)| rest);
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let (Some((host, port)), Some((own_host, own_port))) =
        (authority.rsplit_once(':'), own.rsplit_once(':'))
    else {
        return false;
    };
    port == own_port && port != "0" && (forms::is_loopback(authority) || host == own_host)
}

#[cfg(test)]
mod tests {
    use super::leads_to;

    #[test]
    fn what_goes_round_is_told_from_what_leaves() {
        for (target, own, round) in [
            ("http://127.0.0.1:4317", "127.0.0.1:4317", true),
            ("http://localhost:4318/v1/traces", "127.0.0.1:4318", true),
            ("[::1]:4317", "0.0.0.0:4317", true),
            ("https://otel.example.com:4317", "otel.example.com:4317", true),
            ("http://127.0.0.1:14317", "127.0.0.1:4317", false),
            ("http://collector:4317", "0.0.0.0:4317", false),
            ("http://127.0.0.1:0", "127.0.0.1:0", false),
            ("http://backend", "127.0.0.1:4317", false),
        ] {
            assert_eq!(leads_to(target, own), round, "{target} {own}");
        }
    }
}
