//! The standard OpenTelemetry variables: an exporter where none is configured, and what describes
//! our own telemetry. <https://opentelemetry.io/docs/specs/otel/protocol/exporter/>

use std::collections::BTreeMap;

use super::forms;
use super::keys;
use super::mistake::{Mistake, Place};
use super::service::absolute;
use super::settings::*;
use super::tree::Env;
use crate::model::ids::MILLI;

/// The exporter that the environment asks for, else the console.
pub fn exporter(env: Env<'_>, mistakes: &mut Vec<Mistake>) -> Exporter {
    let mut read = Variables { env, mistakes };
    let base = read.url("ENDPOINT");
    let signals = SignalEndpoints {
        traces: read.url("TRACES_ENDPOINT"),
        logs: read.url("LOGS_ENDPOINT"),
        metrics: read.url("METRICS_ENDPOINT"),
    };
    let only = signals.traces.clone().or(signals.logs.clone()).or(signals.metrics.clone());
    let Some(endpoint) = base.or(only) else {
        let kind = ExporterKind::Console { show: Show::Verdicts };
        return Exporter { name: "console".into(), kind };
    };
    let protocol = read.get("PROTOCOL").unwrap_or_else(|| "grpc".to_string());
    let client = read.client(&endpoint);
    let (name, kind) = match protocol.as_str() {
        "grpc" => ("otlp", ExporterKind::Otlp(client)),
        "http/protobuf" => ("otlp_http", http(client, Encoding::Proto, signals)),
        "http/json" => ("otlp_http", http(client, Encoding::Json, signals)),
        other => {
            let known = "known are grpc, http/protobuf, http/json";
            read.wrong("PROTOCOL", format!("`{other}` is not known; {known}"));
            ("otlp", ExporterKind::Otlp(client))
        }
    };
    Exporter { name: name.into(), kind }
}

fn http(client: Client, encoding: Encoding, endpoints: SignalEndpoints) -> ExporterKind {
    ExporterKind::OtlpHttp { client, encoding, endpoints }
}

/// `OTEL_SERVICE_NAME` and `OTEL_RESOURCE_ATTRIBUTES`.
pub fn describe(service: &mut Service, env: Env<'_>, mistakes: &mut Vec<Mistake>) {
    let mut read = Variables { env, mistakes };
    if let Some(text) = env("OTEL_RESOURCE_ATTRIBUTES") {
        service.resource_attributes =
            read.pairs("OTEL_RESOURCE_ATTRIBUTES", &text).into_iter().collect();
    }
    let named = service.resource_attributes.remove("service.name");
    let name = env("OTEL_SERVICE_NAME").filter(|name| !name.is_empty()).or(named);
    service.service_name = name.unwrap_or_else(|| "mcp-verdict".to_string());
}

struct Variables<'a> {
    env: Env<'a>,
    mistakes: &'a mut Vec<Mistake>,
}

impl Variables<'_> {
    /// An empty variable counts as not set.
    fn get(&self, name: &str) -> Option<String> {
        (self.env)(&format!("OTEL_EXPORTER_OTLP_{name}")).filter(|value| !value.is_empty())
    }

    fn wrong(&mut self, name: &str, says: String) {
        let place = Place::new("environment", 0);
        let key = format!("OTEL_EXPORTER_OTLP_{name}");
        self.mistakes.push(Mistake::new(Some(&place), &key, says));
    }

    fn url(&mut self, name: &str) -> Option<String> {
        let text = self.get(name)?;
        let plaintext = self.get("INSECURE").is_some_and(|text| text == "true");
        match forms::url(&text) {
            Ok(url) => Some(absolute(&url, plaintext)),
            Err(says) => {
                self.wrong(name, says);
                None
            }
        }
    }

    fn client(&mut self, endpoint: &str) -> Client {
        let headers = self.get("HEADERS").unwrap_or_default();
        let path = |read: &Self, name: &str| read.get(name).map(Into::into);
        Client {
            endpoint: endpoint.to_string(),
            compression: self.compression(),
            headers: self
                .pairs("OTEL_EXPORTER_OTLP_HEADERS", &headers)
                .into_iter()
                .map(|(key, value)| (key.to_ascii_lowercase(), Secret(value)))
                .collect(),
            timeout: self.timeout(),
            max_batch_size: default("max_batch_size", forms::size),
            tls: ClientTls {
                ca_file: path(self, "CERTIFICATE"),
                cert_file: path(self, "CLIENT_CERTIFICATE"),
                key_file: path(self, "CLIENT_KEY"),
                insecure_skip_verify: false,
            },
            retry: Retry {
                enabled: true,
                initial_interval: default("retry_on_failure.initial_interval", forms::duration),
                max_interval: default("retry_on_failure.max_interval", forms::duration),
                max_elapsed_time: default("retry_on_failure.max_elapsed_time", forms::duration),
            },
            bearer_token_file: None,
        }
    }

    /// The standard's default is none.
    fn compression(&mut self) -> Compression {
        let Some(text) = self.get("COMPRESSION") else { return Compression::None };
        Compression::parse(&text).unwrap_or_else(|| {
            self.wrong("COMPRESSION", format!("`{text}` is not known; known are none, gzip, zstd"));
            Compression::None
        })
    }

    /// Milliseconds, as the standard has it.
    fn timeout(&mut self) -> u64 {
        let default = default("timeout", forms::duration);
        let Some(text) = self.get("TIMEOUT") else { return default };
        match text.parse::<u32>() {
            Ok(millis) if millis > 0 => u64::from(millis) * MILLI,
            _ => {
                self.wrong("TIMEOUT", format!("`{text}` is not a number of milliseconds"));
                default
            }
        }
    }

    /// `key=value,key=value`, values percent-encoded.
    fn pairs(&mut self, name: &str, text: &str) -> BTreeMap<String, String> {
        let mut pairs = BTreeMap::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let pair = part.split_once('=').and_then(|(key, value)| {
                let value =
                    percent_encoding::percent_decode_str(value.trim()).decode_utf8().ok()?;
                (!key.trim().is_empty()).then(|| (key.trim().to_string(), value.into_owned()))
            });
            let place = Place::new("environment", 0);
            match pair {
                Some((key, value)) => drop(pairs.insert(key, value)),
                // The part may be a secret: only its number is shown.
                None => self.mistakes.push(Mistake::new(
                    Some(&place),
                    name,
                    format!("entry {} is not of the form key=value", pairs.len() + 1),
                )),
            }
        }
        pairs
    }
}

fn default<T>(key: &str, parse: fn(&str) -> Result<T, String>) -> T {
    let row = keys::find(&format!("exporters.otlp.{key}")).expect("a key of the registry");
    parse(row.default).unwrap_or_else(|_| panic!("default of {key}"))
}
