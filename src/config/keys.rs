//! The registry of configuration keys: path, form, default and one sentence each. The readers take
//! their defaults from it, unknown keys are found by it, and the documentation is printed from it.
//!
//! In a path, `*` is a name the user chooses and `[]` an item of a list. `exporters.otlp` stands
//! for `otlp` and for any `otlp/NAME`.

use crate::model::policy::ContractMode;
use crate::model::words::{Effect, Grade, Layer, OutcomeMethod, OutcomeStatus};

use super::settings::*;

/// How a value is written.
#[derive(Clone, Copy)]
pub enum Form {
    Duration,
    Size,
    Bool,
    Count,
    Text,
    Path,
    /// `host:port` to listen on.
    Endpoint,
    Url,
    OneOf(fn() -> Vec<&'static str>),
    ListOf(fn() -> Vec<&'static str>),
    Texts,
    /// Free keys, text values.
    TextMap,
}

pub struct Row {
    pub path: &'static str,
    pub form: Form,
    /// As one would write it; empty for none.
    pub default: &'static str,
    pub says: &'static str,
}

const fn row(path: &'static str, form: Form, default: &'static str, says: &'static str) -> Row {
    Row { path, form, default, says }
}

macro_rules! words {
    ($kind:ty) => {
        (|| <$kind>::ALL.iter().map(|word| word.as_str()).collect()) as fn() -> Vec<&'static str>
    };
}

/// Rows below one section: key, form, default, sentence.
macro_rules! keys {
    ($at:literal: $(
        $key:literal, $form:ident $(($words:expr))?, $default:literal, $says:literal;
    )*) => {
        &[$(row(concat!($at, ".", $key), Form::$form $(($words))?, $default, $says)),*]
    };
}

const SPAN_KINDS: fn() -> Vec<&'static str> =
    || vec!["unspecified", "internal", "server", "client", "producer", "consumer"];
const STATUSES: fn() -> Vec<&'static str> = || vec!["unset", "ok", "error"];

/// TLS of a listener and who may speak to it.
macro_rules! listener {
    ($at:literal) => {
        [
            row(concat!($at, ".tls.cert_file"), Form::Path, "", "certificate chain, PEM"),
            row(concat!($at, ".tls.key_file"), Form::Path, "", "private key, PEM"),
            row(
                concat!($at, ".tls.client_ca_file"),
                Form::Path,
                "",
                "clients must show a certificate signed by these authorities",
            ),
            row(
                concat!($at, ".tls.reload_interval"),
                Form::Duration,
                "1m",
                "how often changed certificate files are looked for",
            ),
            row(
                concat!($at, ".allow_insecure"),
                Form::Bool,
                "false",
                "may listen beyond loopback without authentication",
            ),
        ]
    };
}

/// What `otlp` and `otlp_http` share.
macro_rules! client {
    ($at:literal) => {
        [
            row(concat!($at, ".endpoint"), Form::Url, "", "where to send; http:// is plaintext"),
            row(
                concat!($at, ".compression"),
                Form::OneOf(words!(Compression)),
                "none",
                "coding of request bodies",
            ),
            row(concat!($at, ".headers"), Form::TextMap, "", "sent with every request"),
            row(concat!($at, ".timeout"), Form::Duration, "10s", "of one attempt"),
            row(
                concat!($at, ".max_batch_size"),
                Form::Size,
                "4MiB",
                "largest request before compression",
            ),
            row(concat!($at, ".tls.ca_file"), Form::Path, "", "authorities to trust, PEM"),
            row(concat!($at, ".tls.cert_file"), Form::Path, "", "our certificate chain, PEM"),
            row(concat!($at, ".tls.key_file"), Form::Path, "", "our private key, PEM"),
            row(
                concat!($at, ".tls.insecure"),
                Form::Bool,
                "false",
                "plaintext where the endpoint has no scheme",
            ),
            row(
                concat!($at, ".tls.insecure_skip_verify"),
                Form::Bool,
                "false",
                "accept any certificate",
            ),
            row(
                concat!($at, ".retry_on_failure.enabled"),
                Form::Bool,
                "true",
                "try retryable failures again",
            ),
            row(
                concat!($at, ".retry_on_failure.initial_interval"),
                Form::Duration,
                "1s",
                "wait before the first retry",
            ),
            row(
                concat!($at, ".retry_on_failure.max_interval"),
                Form::Duration,
                "30s",
                "longest wait between retries",
            ),
            row(
                concat!($at, ".retry_on_failure.max_elapsed_time"),
                Form::Duration,
                "0",
                "give up after this long; 0 is never",
            ),
            row(
                concat!($at, ".auth.bearer_token_file"),
                Form::Path,
                "",
                "file with a bearer token, read again when it changes",
            ),
        ]
    };
}

/// Who must prove what before a listener answers.
macro_rules! auth {
    ($at:literal) => {
        [
            row(
                concat!($at, ".bearer_token_file"),
                Form::Path,
                "",
                "accepted bearer tokens, one a line",
            ),
            row(
                concat!($at, ".basic.htpasswd_file"),
                Form::Path,
                "",
                "accepted users (bcrypt, apr1, SHA)",
            ),
        ]
    };
}

/// What a server and a tool may override.
macro_rules! overrides {
    ($at:literal) => {
        [
            row(concat!($at, ".read_only"), Form::Bool, "", "has no effect to verify"),
            row(concat!($at, ".deadline"), Form::Duration, "", "where the call states none"),
            row(
                concat!($at, ".healthy_requires"),
                Form::ListOf(words!(Layer)),
                "",
                "layers that must have passed",
            ),
            row(concat!($at, ".owners"), Form::TextMap, "", "free text by owner, put on events"),
        ]
    };
}

const RECEIVERS: &[&[Row]] = &[
    keys!("receivers.otlp.protocols.grpc":
        "endpoint", Endpoint, "127.0.0.1:4317", "OTLP gRPC";
        "max_recv_msg_size", Size, "16MiB", "largest message, before and after inflating";
        "max_concurrent_streams", Count, "1024", "requests in flight on one connection";
    ),
    keys!("receivers.otlp.protocols.http":
        "endpoint", Endpoint, "127.0.0.1:4318", "OTLP HTTP";
        "max_request_body_size", Size, "16MiB", "largest body, before and after inflating";
        "cors.allowed_origins", Texts, "[]", "browser origins that may send; `*` matches any text";
    ),
];

const POLICY: &[&[Row]] = &[
    keys!("processors.mcp_verdict":
        "settle", Duration, "6s", "wait after a request's last span before its first verdict";
        "retention", Duration, "15m", "how long late facts revise a verdict";
        "deadline", Duration, "5m", "absolute maximum of a request that states none";
        "inactivity", Duration, "60s",
            "longest silence of a request that states none; progress resets it";
        "catalog_max_age", Duration, "1h",
            "how long a listing is believed without change notifications";
        "clock_skew", Duration, "250ms", "differences between clocks below this prove nothing";
        "incident_quiet", Duration, "24h",
            "an incident without failure or attempt for this long expires";
        "healthy_requires", ListOf(words!(Layer)), "[session, catalog, request, effect, outcome]",
            "layers that must have passed";
        "verdict_events", OneOf(words!(Which)), "all", "which verdicts become log records";
        "verdict_spans", OneOf(words!(Which)), "problems", "which verdicts become spans";
        "enrich", OneOf(words!(Enrich)), "compact", "how much is added to request spans";
    ),
    keys!("processors.mcp_verdict.redaction":
        "content", OneOf(words!(Redact)), "keep",
            "arguments, results, messages and tool definitions on forwarded telemetry";
        "definitions", OneOf(words!(Redact)), "drop",
            "mcp_evidence.list.definitions on forwarded telemetry";
    ),
    keys!("processors.mcp_verdict.contracts":
        "mode", OneOf(words!(ContractMode)), "observe", "what a tool's definition is held against";
        "lockfile", Path, "mcp-tools.lock", "pinned definitions";
        "fail_on", ListOf(words!(Grade)), "[breaking, semantic, unlocated]",
            "grades of drift that are red";
    ),
    keys!("processors.mcp_verdict.evidence.[].when":
        "server", Text, "", "glob: servers the rule speaks of";
        "tool", Text, "", "glob: tools the rule speaks of";
    ),
    keys!("processors.mcp_verdict.evidence.[].span":
        "name", Text, "", "glob: span name";
        "kind", OneOf(SPAN_KINDS), "", "span kind";
        "status", OneOf(STATUSES), "", "span status";
        "scope", Text, "", "glob: instrumentation scope";
        "service", Text, "", "glob: service.name";
        "attributes", TextMap, "", "by key: a value, a glob, `2xx`, `>=1`, or `present`";
    ),
    keys!("processors.mcp_verdict.evidence.[].says":
        "effect", OneOf(words!(Effect)), "", "what the span says of the effect";
        "outcome", OneOf(words!(OutcomeStatus)), "", "what the span says of the outcome";
        "method", OneOf(words!(OutcomeMethod)), "query", "how the outcome was checked";
    ),
    keys!("processors.mcp_verdict.retry_budget":
        "transport", Count, "3", "failures of one operation before one more attempt is a finding";
        "protocol", Count, "0", "as above";
        "authority", Count, "1", "as above";
        "execution", Count, "1", "as above";
        "outcome", Count, "0", "as above";
    ),
    keys!("processors.mcp_verdict":
        "servers.*.trust_annotations", Bool, "false",
            "the server's own read-only and idempotent hints count";
        "owners", TextMap, "", "free text by owner, put on events";
    ),
    keys!("processors.mcp_verdict.limits":
        "memory", Size, "512MiB", "the one knob: the other limits are shares of it unless set";
        "label_values", Count, "2000",
            "distinct values of one label of one metric; the rest count as overflow";
        "in_flight", Size, "", "exports received and not yet handed on; an eighth of memory";
        "held_spans", Size, "", "spans that wait for their verdict; a quarter of memory";
        "chains", Count, "", "chains alive; one for each 4 KiB of memory";
        "scopes", Count, "", "scopes alive; one for each 32 KiB of memory";
        "remembered", Count, "",
            "verdicts that the page and the API remember; one for each 16 KiB of memory";
        "findings_per_chain", Count, "64", "the rest are dropped";
        "evidence_per_chain", Count, "64", "the newest are kept";
        "connections", Count, "1024", "open connections of all receivers";
        "header_size", Size, "16KiB", "headers of one request";
        "inflate_ratio", Count, "1000", "an inflated body may be so many times its compressed size";
    ),
];

const REST: &[&[Row]] = &[
    keys!("storage":
        "directory", Path, "./mcp-verdict-data", "held by one process at a time";
        "ack", OneOf(words!(Ack)), "durable",
            "when an export is answered: stored, or in bounded memory";
        "sync", OneOf(words!(SyncMode)), "always", "when the log reaches the disk";
        "sync_interval", Duration, "100ms", "with `sync: interval`";
        "max_size", Size, "10GiB",
            "bytes of all files; at the limit exports are refused as retryable";
    ),
    keys!("exporters":
        "otlp_http.encoding", OneOf(words!(Encoding)), "proto", "of request bodies";
        "file.path", Path, "", "OTLP JSON lines";
        "file.rotation.max_megabytes", Count, "100", "size at which a new file begins";
        "file.rotation.max_backups", Count, "3", "older files kept";
        "console.show", OneOf(words!(Show)), "verdicts", "what is printed";
    ),
    keys!("service":
        "traces", Texts, "", "exporters that get spans; default: every configured one";
        "logs", Texts, "", "exporters that get log records";
        "metrics", Texts, "", "exporters that get metrics";
        "profiles", Texts, "", "exporters that get profiles";
        "shutdown_timeout", Duration, "30s", "exit within this time after SIGTERM";
    ),
    keys!("service.telemetry":
        "logs.level", OneOf(words!(Level)), "info", "of our own log";
        "metrics.endpoint", Endpoint, "127.0.0.1:8888", "Prometheus";
        "health.endpoint", Endpoint, "127.0.0.1:13133", "health";
        "page.endpoint", Endpoint, "127.0.0.1:55679", "live page and API";
    ),
];

/// Every key, in the order of the documentation.
pub fn rows() -> impl Iterator<Item = &'static Row> {
    const GRPC: [Row; 5] = listener!("receivers.otlp.protocols.grpc");
    const HTTP: [Row; 5] = listener!("receivers.otlp.protocols.http");
    const PAGE: [Row; 5] = listener!("service.telemetry.page");
    const RECEIVER_AUTH: [Row; 2] = auth!("receivers.otlp.auth");
    const PAGE_AUTH: [Row; 2] = auth!("service.telemetry.page.auth");
    const SERVER: [Row; 4] = overrides!("processors.mcp_verdict.servers.*");
    const TOOL: [Row; 4] = overrides!("processors.mcp_verdict.servers.*.tools.*");
    const OTLP: [Row; 15] = client!("exporters.otlp");
    const OTLP_HTTP: [Row; 15] = client!("exporters.otlp_http");
    const LISTENERS: &[&[Row]] = &[&GRPC, &HTTP, &RECEIVER_AUTH];
    const OVERRIDES: &[&[Row]] = &[&SERVER, &TOOL];
    const CLIENTS: &[&[Row]] = &[&OTLP, &OTLP_HTTP];
    const PAGES: &[&[Row]] = &[&PAGE, &PAGE_AUTH];
    let all = [RECEIVERS, LISTENERS, POLICY, OVERRIDES, REST, CLIENTS, PAGES];
    all.into_iter().flatten().flat_map(|part| part.iter())
}

/// The row of a whole path in the registry's own spelling.
pub fn find(path: &str) -> Option<&'static Row> {
    rows().find(|row| row.path == path)
}

/// Names that may follow `prefix` (empty for the top), each once, in order; `*` for any name.
pub fn children(prefix: &str) -> Vec<&'static str> {
    let mut names = Vec::new();
    for row in rows() {
        let rest = match prefix.is_empty() {
            true => Some(row.path),
            false => row.path.strip_prefix(prefix).and_then(|rest| rest.strip_prefix('.')),
        };
        let name = rest.map(|rest| rest.split('.').next().unwrap_or(rest));
        names.extend(name.filter(|name| !names.contains(name)));
    }
    names
}

impl Form {
    /// How to write it, for documentation and errors.
    pub fn describe(self) -> String {
        match self {
            Form::Duration => "duration".into(),
            Form::Size => "size".into(),
            Form::Bool => "true or false".into(),
            Form::Count => "whole number".into(),
            Form::Text => "text".into(),
            Form::Path => "path".into(),
            Form::Endpoint => "host:port".into(),
            Form::Url => "URL".into(),
            Form::OneOf(words) => words().join(" | "),
            Form::ListOf(words) => format!("list of {}", words().join(" | ")),
            Form::Texts => "list of texts".into(),
            Form::TextMap => "map of texts".into(),
        }
    }
}
