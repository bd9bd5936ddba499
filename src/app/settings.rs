//! From the checked configuration to what each part wants to know.

use std::time::Duration;

use super::release::Changes;
use crate::config::settings as config;
use crate::model::ids::Nanos;
use crate::wire::Signal;
use crate::{engine, export::settings as export, log, receive::settings as receive, telemetry};

fn duration(nanos: Nanos) -> Duration {
    Duration::from_nanos(nanos)
}

/// Sizes of a 32-bit machine end at its address space.
pub fn size(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX)
}

/// `receivers.otlp` and its limits.
pub fn receive(settings: &config::Settings) -> receive::Settings {
    let from = &settings.receivers;
    let limits = &settings.limits;
    receive::Settings {
        grpc: from.grpc.as_ref().map(|grpc| receive::Grpc {
            endpoint: grpc.endpoint.clone(),
            max_recv_msg_size: size(grpc.max_recv_msg_size),
            max_concurrent_streams: grpc.max_concurrent_streams,
            tls: grpc.tls.as_ref().map(server_tls),
        }),
        http: from.http.as_ref().map(|http| receive::Http {
            endpoint: http.endpoint.clone(),
            max_request_body_size: size(http.max_request_body_size),
            allowed_origins: http.allowed_origins.clone(),
            tls: http.tls.as_ref().map(server_tls),
        }),
        auth: auth(&from.auth),
        // The configuration was refused already if it exposes a port without saying so.
        allow_insecure: true,
        limits: receive::Limits {
            in_flight: size(limits.in_flight),
            connections: size(limits.connections),
            header_size: size(limits.header_size),
            inflate_ratio: size(limits.inflate_ratio),
            ..receive::Limits::default()
        },
    }
}

/// `service.telemetry.page`; `None` where it is switched off.
pub fn page(settings: &config::Settings) -> Option<receive::Listener> {
    let page = &settings.service.page;
    (!page.endpoint.is_empty()).then(|| receive::Listener {
        endpoint: page.endpoint.clone(),
        auth: auth(&page.auth),
        tls: page.tls.as_ref().map(server_tls),
        // The configuration was refused already if it exposes a port without saying so.
        allow_insecure: true,
    })
}

/// The page is for people and for checks: small requests.
pub fn page_limits(settings: &config::Settings) -> receive::Limits {
    let limits = self::receive(settings).limits;
    receive::Limits { in_flight: limits.in_flight.min(16 << 20), ..limits }
}

/// `auth` of any port that clients come to.
pub fn auth(from: &config::Auth) -> receive::Auth {
    match (&from.bearer_token_file, &from.htpasswd_file) {
        (Some(token), _) => receive::Auth::Bearer { token_file: token.clone() },
        (None, Some(file)) => receive::Auth::Basic { htpasswd_file: file.clone() },
        (None, None) => receive::Auth::None,
    }
}

/// `tls` of any port that clients come to.
pub fn server_tls(from: &config::ServerTls) -> receive::Tls {
    receive::Tls {
        cert_file: from.cert_file.clone(),
        key_file: from.key_file.clone(),
        client_ca_file: from.client_ca_file.clone(),
        reload_interval: duration(from.reload_interval),
    }
}

/// `storage`; what may lie in memory is a share of `limits.memory`.
pub fn storage(settings: &config::Settings) -> log::Settings {
    let from = &settings.storage;
    log::Settings {
        directory: from.directory.clone(),
        ack: match from.ack {
            config::Ack::Durable => log::settings::Ack::Durable,
            config::Ack::Queued => log::settings::Ack::Queued,
        },
        sync: match from.sync {
            config::SyncMode::Always => log::settings::Sync::Always,
            config::SyncMode::Interval => log::settings::Sync::Interval,
            config::SyncMode::Never => log::settings::Sync::Never,
        },
        sync_interval: duration(from.sync_interval),
        max_size: from.max_size,
        checkpoints: Some(crate::engine::FORMAT),
        memory: settings.limits.memory / 4,
    }
}

/// `exporters`, each with the signals that `service` gives it.
pub fn exporters(settings: &config::Settings) -> Vec<export::Exporter> {
    let service = &settings.service;
    let given = |index: usize| {
        let by_signal = [
            (Signal::Traces, &service.traces),
            (Signal::Logs, &service.logs),
            (Signal::Metrics, &service.metrics),
            (Signal::Profiles, &service.profiles),
        ];
        let mine = by_signal.into_iter().filter(|(_, indices)| indices.contains(&index));
        mine.map(|(signal, _)| signal).collect()
    };
    let all = settings.exporters.iter().enumerate();
    all.map(|(index, exporter)| export::Exporter {
        name: exporter.name.clone(),
        signals: given(index),
        kind: kind(&exporter.kind),
    })
    .collect()
}

fn kind(from: &config::ExporterKind) -> export::Kind {
    match from {
        config::ExporterKind::Otlp(client) => export::Kind::Grpc(otlp(client)),
        config::ExporterKind::OtlpHttp { client, encoding, endpoints } => {
            let own = [
                (Signal::Traces, &endpoints.traces),
                (Signal::Logs, &endpoints.logs),
                (Signal::Metrics, &endpoints.metrics),
            ];
            let signal_endpoints =
                own.into_iter().filter_map(|(s, url)| Some((s, url.clone()?))).collect();
            let encoding = match encoding {
                config::Encoding::Proto => export::Encoding::Proto,
                config::Encoding::Json => export::Encoding::Json,
            };
            export::Kind::Http(export::Otlp { signal_endpoints, ..otlp(client) }, encoding)
        }
        config::ExporterKind::File { path, max_megabytes, max_backups } => {
            export::Kind::File(export::File {
                path: path.clone(),
                max_bytes: max_megabytes.saturating_mul(1 << 20),
                max_backups: size(*max_backups),
            })
        }
        config::ExporterKind::Console { show } => export::Kind::Console(match show {
            config::Show::Verdicts => export::Show::Verdicts,
            config::Show::Spans => export::Show::Spans,
        }),
    }
}

fn otlp(from: &config::Client) -> export::Otlp {
    let headers = from.headers.iter();
    export::Otlp {
        endpoint: from.endpoint.clone(),
        signal_endpoints: Vec::new(),
        compression: match from.compression {
            config::Compression::None => export::Compression::None,
            config::Compression::Gzip => export::Compression::Gzip,
            config::Compression::Zstd => export::Compression::Zstd,
        },
        headers: headers.map(|(k, v)| (k.clone(), export::Secret(v.0.clone()))).collect(),
        timeout: duration(from.timeout),
        max_batch_size: size(from.max_batch_size),
        tls: export::Tls {
            ca_file: from.tls.ca_file.clone(),
            cert_file: from.tls.cert_file.clone(),
            key_file: from.tls.key_file.clone(),
            insecure_skip_verify: from.tls.insecure_skip_verify,
        },
        auth: match &from.bearer_token_file {
            Some(file) => export::Auth::Bearer { token_file: file.clone() },
            None => export::Auth::None,
        },
        retry: export::Retry {
            enabled: from.retry.enabled,
            initial_interval: duration(from.retry.initial_interval),
            max_interval: duration(from.retry.max_interval),
            max_elapsed_time: duration(from.retry.max_elapsed_time),
        },
    }
}

/// `service.telemetry`.
pub fn telemetry(settings: &config::Settings) -> telemetry::Settings {
    let service = &settings.service;
    let named = |endpoint: &String| (!endpoint.is_empty()).then(|| endpoint.clone());
    let mut resource = vec![("service.name".to_owned(), service.service_name.clone())];
    let others = service.resource_attributes.iter().filter(|(key, _)| *key != "service.name");
    resource.extend(others.map(|(key, value)| (key.clone(), value.clone())));
    telemetry::Settings {
        level: service.level.as_str().to_owned(),
        metrics: named(&service.metrics_endpoint),
        health: named(&service.health_endpoint),
        resource,
    }
}

/// Limits of the engine's state: shares of `limits.memory` unless set.
pub fn engine(settings: &config::Settings) -> engine::Limits {
    let limits = &settings.limits;
    engine::Limits {
        lookback: size(limits.memory / 8),
        facts: size(limits.memory / 16 * 5),
        chains: size(limits.chains),
        scopes: size(limits.scopes),
        incidents: size(limits.memory / (10 << 10)),
        names: remembered_names(settings),
        findings: size(limits.findings_per_chain),
        facts_per_trace: engine::Limits::default().facts_per_trace,
    }
}

/// How many traces, processes and spans are remembered by name alone.
pub fn remembered_names(settings: &config::Settings) -> usize {
    size(settings.limits.memory / (5 << 10))
}

/// How spans and records are changed on their way out.
pub fn changes(settings: &config::Settings) -> Changes {
    let emit = &settings.emit;
    Changes { enrich: emit.enrich, plan: emit.redaction }
}
