//! The files a configuration names: each must be there and readable before any port opens.

use std::fs::File;
use std::path::Path;

use super::mistake::Mistake;
use super::settings::*;

/// One mistake for each file that cannot be opened.
pub fn check_files(settings: &Settings) -> Vec<Mistake> {
    let mut mistakes = Vec::new();
    let mut need = |key: &str, path: Option<&Path>| {
        let Some(path) = path else { return };
        if let Err(error) = File::open(path) {
            let says = format!("{} cannot be read: {error}", path.display());
            mistakes.push(Mistake::new(None, key, says));
        }
    };
    let receivers = &settings.receivers;
    let page = &settings.service.page;
    let tls = [
        ("receivers.otlp.protocols.grpc.tls", receivers.grpc.as_ref().and_then(|l| l.tls.as_ref())),
        ("receivers.otlp.protocols.http.tls", receivers.http.as_ref().and_then(|l| l.tls.as_ref())),
        ("service.telemetry.page.tls", page.tls.as_ref()),
    ];
    for (key, tls) in tls {
        let Some(tls) = tls else { continue };
        need(&format!("{key}.cert_file"), Some(&tls.cert_file));
        need(&format!("{key}.key_file"), Some(&tls.key_file));
        need(&format!("{key}.client_ca_file"), tls.client_ca_file.as_deref());
    }
    for (key, auth) in
        [("receivers.otlp.auth", &receivers.auth), ("service.telemetry.page.auth", &page.auth)]
    {
        need(&format!("{key}.bearer_token_file"), auth.bearer_token_file.as_deref());
        need(&format!("{key}.basic.htpasswd_file"), auth.htpasswd_file.as_deref());
    }
    for exporter in &settings.exporters {
        let (ExporterKind::Otlp(client) | ExporterKind::OtlpHttp { client, .. }) = &exporter.kind
        else {
            continue;
        };
        let key = format!("exporters.{}", exporter.name);
        need(&format!("{key}.tls.ca_file"), client.tls.ca_file.as_deref());
        need(&format!("{key}.tls.cert_file"), client.tls.cert_file.as_deref());
        need(&format!("{key}.tls.key_file"), client.tls.key_file.as_deref());
        need(&format!("{key}.auth.bearer_token_file"), client.bearer_token_file.as_deref());
    }
    mistakes
}
