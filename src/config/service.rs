//! Everything around judging: receivers, storage, exporters, pipelines, our own telemetry.

use std::collections::BTreeMap;

use super::forms;
use super::mistake::suggest;
use super::section::Section;
use super::settings::*;

/// As in the Collector, a protocol is on when its key is there; with neither, both are on.
/// `listed` is the section of the files alone: `--set` changes a listener and switches none off.
pub fn receivers(at: &Section<'_>, listed: &Section<'_>) -> Receivers {
    let (protocols, listed) = (at.child("protocols"), listed.child("protocols"));
    let auth = auth(&at.child("auth"));
    let (grpc, http) = (listed.child("grpc").mentioned(), listed.child("http").mentioned());
    let neither = !grpc && !http;
    Receivers {
        grpc: (grpc || neither).then(|| grpc_receiver(&protocols.child("grpc"), &auth)),
        http: (http || neither).then(|| http_receiver(&protocols.child("http"), &auth)),
        auth,
    }
}

fn grpc_receiver(at: &Section<'_>, auth: &Auth) -> Grpc {
    Grpc {
        endpoint: guarded(at, auth),
        max_recv_msg_size: at.positive_size("max_recv_msg_size"),
        max_concurrent_streams: at.count32("max_concurrent_streams").max(1),
        tls: server_tls(&at.child("tls")),
    }
}

fn http_receiver(at: &Section<'_>, auth: &Auth) -> Http {
    let origins = at.child("cors").optional_texts("allowed_origins").unwrap_or_default();
    Http {
        endpoint: guarded(at, auth),
        max_request_body_size: at.positive_size("max_request_body_size"),
        allowed_origins: origins.into_iter().map(|(_, origin)| origin.to_string()).collect(),
        tls: server_tls(&at.child("tls")),
    }
}

/// An endpoint that strangers can reach needs authentication, or somebody who says that it may do
/// without.
fn guarded(at: &Section<'_>, auth: &Auth) -> String {
    let endpoint = at.endpoint("endpoint");
    let reachable = !forms::is_loopback(&endpoint);
    let mutual = at.child("tls").child("client_ca_file").written();
    if reachable && !auth.required() && !mutual && !at.flag("allow_insecure") {
        at.child("endpoint").wrong(format!(
            "`{endpoint}` can be reached from other machines without authentication; \
             configure `auth`, or write `allow_insecure: true` beside it"
        ));
    }
    endpoint
}

fn auth(at: &Section<'_>) -> Auth {
    let auth = Auth {
        bearer_token_file: at.optional_path("bearer_token_file"),
        htpasswd_file: at.child("basic").optional_path("htpasswd_file"),
    };
    if auth.bearer_token_file.is_some() && auth.htpasswd_file.is_some() {
        at.wrong("names a bearer token and basic users; keep one of them");
    }
    auth
}

fn server_tls(at: &Section<'_>) -> Option<ServerTls> {
    let reload_interval = at.positive_duration("reload_interval");
    let client_ca_file = at.optional_path("client_ca_file");
    match (at.optional_path("cert_file"), at.optional_path("key_file")) {
        (Some(cert_file), Some(key_file)) => {
            Some(ServerTls { cert_file, key_file, client_ca_file, reload_interval })
        }
        (None, None) if client_ca_file.is_none() => None,
        _ => {
            at.wrong("needs both `cert_file` and `key_file`");
            None
        }
    }
}

pub fn storage(at: &Section<'_>) -> Storage {
    let storage = Storage {
        directory: at.path("directory"),
        ack: at.word("ack", Ack::parse),
        sync: at.word("sync", SyncMode::parse),
        sync_interval: at.positive_duration("sync_interval"),
        max_size: at.positive_size("max_size"),
    };
    if storage.max_size < 32 << 20 {
        at.child("max_size").wrong("must be at least 32MiB");
    }
    storage
}

pub fn exporters(at: &Section<'_>) -> Vec<Exporter> {
    let read = |kind: &str, at: &Section<'_>| match kind {
        "otlp" => client(at).map(ExporterKind::Otlp),
        "otlp_http" => client(at).map(|client| ExporterKind::OtlpHttp {
            client,
            encoding: at.word("encoding", Encoding::parse),
            endpoints: SignalEndpoints::default(),
        }),
        "file" => file(at),
        "console" => Some(ExporterKind::Console { show: at.word("show", Show::parse) }),
        // Unknown kinds are noted where unknown keys are.
        _ => None,
    };
    at.kinds()
        .into_iter()
        .filter_map(|(key, at)| {
            let kind = read(key.name.split('/').next().unwrap_or_default(), &at)?;
            Some(Exporter { name: key.name.clone(), kind })
        })
        .collect()
}

fn file(at: &Section<'_>) -> Option<ExporterKind> {
    let rotation = at.child("rotation");
    let path = at.optional_path("path");
    if path.is_none() {
        at.wrong("has no `path`; write where its lines go, such as `path: verdicts.jsonl`");
    }
    Some(ExporterKind::File {
        path: path?,
        max_megabytes: rotation.positive_count("max_megabytes"),
        max_backups: u64::from(rotation.count32("max_backups")),
    })
}

/// `None` where the endpoint is missing or wrong: both are noted.
fn client(at: &Section<'_>) -> Option<Client> {
    let tls = at.child("tls");
    let plaintext = tls.flag("insecure");
    let endpoint = at.child("endpoint").optional(forms::url);
    if endpoint.is_none() && !at.child("endpoint").written() {
        at.wrong("has no `endpoint`; write where to send, such as `http://127.0.0.1:14317`");
    }
    let retry = at.child("retry_on_failure");
    let client = Client {
        endpoint: absolute(&endpoint.clone().unwrap_or_default(), plaintext),
        compression: at.word("compression", Compression::parse),
        headers: headers(at),
        timeout: at.positive_duration("timeout"),
        max_batch_size: at.positive_size("max_batch_size"),
        tls: client_tls(&tls),
        retry: Retry {
            enabled: retry.flag("enabled"),
            initial_interval: retry.positive_duration("initial_interval"),
            max_interval: retry.positive_duration("max_interval"),
            max_elapsed_time: retry.duration("max_elapsed_time"),
        },
        bearer_token_file: at.child("auth").optional_path("bearer_token_file"),
    };
    endpoint.map(|_| client)
}

/// A bare `host:port` is TLS unless it is said not to be.
pub fn absolute(endpoint: &str, plaintext: bool) -> String {
    match (endpoint.contains("://"), plaintext) {
        (true, _) => endpoint.trim_end_matches('/').to_string(),
        (false, true) => format!("http://{endpoint}"),
        (false, false) => format!("https://{endpoint}"),
    }
}

fn headers(at: &Section<'_>) -> BTreeMap<String, Secret> {
    let mut headers = BTreeMap::new();
    for (name, text, at) in at.text_map("headers") {
        let token = |c: char| c.is_ascii_alphanumeric() || "!#$%&'*+-.^_`|~".contains(c);
        if name.is_empty() || !name.chars().all(token) {
            at.wrong("is no name of an HTTP header");
        } else if !text.bytes().all(|b| matches!(b, b' '..=b'~' | b'\t')) {
            at.wrong("holds a character that a header cannot carry");
        }
        headers.insert(name.to_ascii_lowercase(), Secret(text.to_string()));
    }
    headers
}

fn client_tls(at: &Section<'_>) -> ClientTls {
    let tls = ClientTls {
        ca_file: at.optional_path("ca_file"),
        cert_file: at.optional_path("cert_file"),
        key_file: at.optional_path("key_file"),
        insecure_skip_verify: at.flag("insecure_skip_verify"),
    };
    if tls.cert_file.is_some() != tls.key_file.is_some() {
        at.wrong("needs both `cert_file` and `key_file`, or neither");
    }
    tls
}

pub fn service(at: &Section<'_>, exporters: &[Exporter], configured: &Section<'_>) -> Service {
    let telemetry = at.child("telemetry");
    let page = telemetry.child("page");
    let page_auth = auth(&page.child("auth"));
    let signal = |key: &str| pipeline(at, key, exporters, configured);
    Service {
        traces: signal("traces"),
        logs: signal("logs"),
        metrics: signal("metrics"),
        profiles: signal("profiles"),
        shutdown_timeout: at.positive_duration("shutdown_timeout"),
        level: telemetry.child("logs").word("level", Level::parse),
        metrics_endpoint: telemetry.child("metrics").endpoint("endpoint"),
        health_endpoint: telemetry.child("health").endpoint("endpoint"),
        page: Page {
            endpoint: guarded(&page, &page_auth),
            auth: page_auth,
            tls: server_tls(&page.child("tls")),
        },
        service_name: "mcp-verdict".to_string(),
        resource_attributes: BTreeMap::new(),
    }
}

/// Indices of the named exporters; all of them where nothing is written. An exporter that is
/// configured with a mistake is known by its name: that mistake is told elsewhere.
fn pipeline(
    at: &Section<'_>,
    key: &str,
    exporters: &[Exporter],
    configured: &Section<'_>,
) -> Vec<usize> {
    let Some(names) = at.optional_texts(key) else { return (0..exporters.len()).collect() };
    let mut known: Vec<&str> = exporters.iter().map(|e| e.name.as_str()).collect();
    for (key, _) in configured.kinds() {
        if !known.contains(&key.name.as_str()) {
            known.push(&key.name);
        }
    }
    let mut indices = Vec::new();
    for (item, name) in names {
        match known.iter().position(|exporter| *exporter == name) {
            Some(index) if indices.contains(&index) => {}
            Some(index) => indices.push(index),
            None => {
                item.wrong(format!("no exporter is called `{name}`; {}", suggest(name, &known)));
            }
        }
    }
    indices
}
