//! Scenarios of whole configurations: what is written, what comes out, what is refused.

use std::path::Path;

use super::settings::*;
use super::*;
use crate::model::ids::SECOND;
use crate::model::policy::{ContractMode, Glob, Policy, ValueMatcher};
use crate::model::words::{Effect, Layer, OutcomeMethod, OutcomeStatus};

fn nothing(_: &str) -> Option<String> {
    None
}

/// Writes `text` as c.yaml in a directory of its own and loads it.
fn load_text(text: &str, set: &[&str]) -> Result<Settings, Vec<String>> {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("c.yaml"), text).unwrap();
    let sources = Sources {
        files: vec![directory.path().join("c.yaml")],
        set: set.iter().map(|s| s.to_string()).collect(),
    };
    load_with(&sources, &nothing).map_err(|mistakes| {
        let prefix = format!("{}/", directory.path().display());
        mistakes.iter().map(|m| m.to_string().replace(&prefix, "")).collect()
    })
}

fn policy(text: &str) -> Policy {
    let text = format!("processors:\n  mcp_verdict:\n    {}\n", text.replace('\n', "\n    "));
    load_text(&text, &[]).unwrap().policy
}

#[test]
fn without_a_file_everything_has_the_registry_default() {
    let settings = load_with(&Sources::default(), &nothing).unwrap();
    assert_eq!(settings.policy, Policy::default());
    assert_eq!(settings.exporters[0].kind, ExporterKind::Console { show: Show::Verdicts });
    assert_eq!(settings.service.traces, [0]);
    assert_eq!(settings.receivers.grpc.unwrap().endpoint, "127.0.0.1:4317");
    assert_eq!(settings.storage.directory, Path::new("./mcp-verdict-data"));
    assert_eq!(settings.limits.held_spans, 128 << 20);
}

#[test]
fn every_default_of_the_registry_reads_as_its_form() {
    use keys::Form;
    for row in keys::rows().filter(|row| !row.default.is_empty()) {
        let fits = match row.form {
            Form::Duration => forms::duration(row.default).is_ok(),
            Form::Size => forms::size(row.default).is_ok(),
            Form::Bool => forms::flag(row.default).is_ok(),
            Form::Count => forms::count(row.default).is_ok(),
            Form::Endpoint => forms::endpoint(row.default).is_ok(),
            Form::Url => forms::url(row.default).is_ok(),
            Form::OneOf(words) => words().contains(&row.default),
            Form::ListOf(words) => {
                row.default.trim_matches(['[', ']']).split(", ").all(|word| words().contains(&word))
            }
            Form::Text | Form::Path | Form::Texts | Form::TextMap => true,
        };
        assert!(fits, "{} has the default {}", row.path, row.default);
    }
}

#[test]
fn keys_are_registered_once() {
    let mut paths: Vec<_> = keys::rows().map(|row| row.path).collect();
    let all = paths.len();
    paths.sort_unstable();
    paths.dedup();
    assert_eq!(paths.len(), all);
}

/// A variable that is not set empties its value: that is said, with the mistake it leads to; what
/// may be empty is usable all the same.
#[test]
fn an_unset_variable_is_told() {
    let unset = |name: &str, line: usize, key: &str| {
        format!(
            "c.yaml:{line}: warning: {key}: the environment variable {name} is not set, which \
             reads as empty; set it, or write `${{env:{name}:-default}}`"
        )
    };
    let text = "exporters:\n  otlp:\n    endpoint: ${env:BACKEND}\n";
    let missing = "has no `endpoint`; write where to send, such as `http://127.0.0.1:14317`";
    assert_eq!(
        load_text(text, &[]).unwrap_err(),
        [
            unset("BACKEND", 3, "exporters.otlp.endpoint"),
            format!("c.yaml:3: exporters.otlp: {missing}"),
        ]
    );
    let text = "exporters:\n  otlp:\n    endpoint: http://a:1\n    headers: { k: \"${env:KEY}\" }\n\
                processors: { mcp_verdict: { healthy_requires: [\"${env:LAYER:-outcome}\"] } }\n";
    let settings = load_text(text, &[]).unwrap();
    assert_eq!(settings.warnings.len(), 1);
    let told = settings.warnings[0].to_string();
    assert!(told.ends_with(&unset("KEY", 4, "exporters.otlp.headers.k")), "{told}");
}

/// An empty authority file asks nobody for a certificate.
#[test]
fn an_empty_authority_file_opens_no_port() {
    let text = "receivers: { otlp: { protocols: { grpc: { endpoint: '0.0.0.0:1', \
                tls: { client_ca_file: } } } } }";
    let mistakes = load_text(text, &[]).unwrap_err();
    assert!(mistakes[0].contains("can be reached from other machines"), "{mistakes:?}");
}

/// The configuration of the documentation, every key of it, is understood.
#[test]
fn the_documented_configuration_is_understood() {
    let text = std::fs::read_to_string("tests/data/config/documented.yaml").unwrap();
    let settings = load_text(&text, &[]).unwrap();
    let names: Vec<_> = settings.exporters.iter().map(|e| e.name.as_str()).collect();
    assert_eq!(names, ["otlp", "otlp_http", "otlp/eu", "file", "console"]);
    assert_eq!(settings.service.traces, [0]);
    assert_eq!(settings.policy.evidence.len(), 2);
    let mail = &settings.policy.servers["mail.example.com"];
    assert_eq!(mail.own.deadline, Some(60 * SECOND));
    assert_eq!(mail.tools["send_mail"].read_only, Some(false));
    assert_eq!(settings.policy.retry_budget, Policy::default().retry_budget);
}

#[test]
fn all_mistakes_come_at_once_with_line_and_nearest_key() {
    let text = "\
receivers:
  otlp:
    protocols:
      grpc: { endpoint: 0.0.0.0:4317, max_recv_msg_size: lots }
      htpp: {}
processors:
  mcp_verdict:
    setle: 2s
    deadline: soon
    healthy_requires: [session, efect]
    evidence:
      - { span: { kind: clientt }, says: { efect: confirmed } }
      - { says: { effect: confirmed } }
    contracts: enforce
exporters:
  otlp/eu: { compression: gzip }
  kafka: {}
  file:
service:
  traces: [oltp/eu]
retention: 2h
";
    insta::assert_snapshot!(load_text(text, &["nonsense"]).unwrap_err().join("\n"));
}

#[test]
fn files_merge_in_order_and_set_wins() {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        std::fs::write(directory.path().join(name), text).unwrap();
    };
    write("10-base.yaml", "processors: { mcp_verdict: { settle: 1s, deadline: 1m } }");
    write("20-more.json", r#"{"processors": {"mcp_verdict": {"deadline": "2m"}}}"#);
    write("notes.txt", "not: [read");
    let sources = Sources {
        files: vec![directory.path().to_path_buf()],
        set: vec!["processors.mcp_verdict.settle=3s".into()],
    };
    let policy = load_with(&sources, &nothing).unwrap().policy;
    assert_eq!((policy.settle, policy.deadline), (3 * SECOND, 120 * SECOND));
}

#[test]
fn paths_are_relative_to_their_file() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("c.yaml");
    std::fs::write(&file, "processors: { mcp_verdict: { contracts: { lockfile: a/b.lock } } }")
        .unwrap();
    let sources = Sources { files: vec![file], set: vec!["storage.directory=data".into()] };
    let settings = load_with(&sources, &nothing).unwrap();
    assert_eq!(settings.lockfile, directory.path().join("a/b.lock"));
    assert_eq!(settings.storage.directory, Path::new("data"));
}

#[test]
fn a_protocol_is_on_when_its_key_is_there() {
    let grpc_only = load_text("receivers: { otlp: { protocols: { grpc: } } }", &[]).unwrap();
    assert!(grpc_only.receivers.grpc.is_some() && grpc_only.receivers.http.is_none());
    let set = load_text("", &["receivers.otlp.protocols.grpc.endpoint=127.0.0.1:1"]).unwrap();
    assert!(set.receivers.http.is_some());
    assert_eq!(set.receivers.grpc.unwrap().endpoint, "127.0.0.1:1");
}

#[test]
fn beyond_loopback_only_with_authentication_or_consent() {
    let with = |more: &str| {
        let text = format!("receivers: {{ otlp: {{ protocols: {{ http: {{ endpoint: ':1'{more}");
        load_text(&text, &[]).map(|s| s.receivers.http.unwrap().endpoint)
    };
    assert_eq!(with(", allow_insecure: true } } } }"), Ok("0.0.0.0:1".into()));
    assert_eq!(with(" } }, auth: { bearer_token_file: t } } }"), Ok("0.0.0.0:1".into()));
    assert!(with(" } } } }").unwrap_err()[0].contains("without authentication"));
}

#[test]
fn evidence_rules() {
    let policy = policy(
        "evidence:
  - when: { server: 'tickets.*', tool: create_* }
    span: { name: INSERT *, kind: client, status: unset, scope: pg-*, service: api }
    says: { effect: confirmed }
  - span: { attributes: { a: 2xx, b: '>=1', c: present, d: 0, e: pass*, f: true, g: < 5 } }
    says: { outcome: verified }
  - span: { name: judge }
    says: { outcome: failed, method: llm_judge }",
    );
    let [first, second, third] = &policy.evidence[..] else { panic!("three rules") };
    assert_eq!(first.when_server, Some(Glob("tickets.*".into())));
    assert_eq!((first.span.kind, first.span.status), (Some(3), Some(0)));
    assert_eq!((first.effect, first.outcome), (Some(Effect::Confirmed), None));
    let values: Vec<_> = second.span.attributes.iter().map(|(_, value)| value.clone()).collect();
    let text = |t: &str| ValueMatcher::Text(Glob(t.into()));
    let want = [
        ValueMatcher::Class(2),
        ValueMatcher::AtLeast(1.0),
        ValueMatcher::Present,
        text("0"),
        text("pass*"),
        text("true"),
        ValueMatcher::Below(5.0),
    ];
    assert_eq!(values, want);
    assert_eq!(
        (second.outcome, second.method),
        (Some(OutcomeStatus::Verified), OutcomeMethod::Query)
    );
    assert_eq!(third.method, OutcomeMethod::LlmJudge);
}

#[test]
fn overrides_fall_through_from_tool_to_server_to_all() {
    let policy = policy(
        "owners: { tool_owner: everyone }
contracts: { mode: pin, fail_on: [breaking] }
servers:
  srv.example.com:8080:
    owners: { tool_owner: srv }
    tools: { t: { healthy_requires: [session, request], owners: { tool_owner: t } } }",
    );
    let contact = |server: &str, tool: &str| {
        policy.owner_contact(server, Some(tool), crate::model::words::Owner::ToolOwner)
    };
    assert_eq!(contact("srv.example.com:8080", "t").as_deref(), Some("t"));
    assert_eq!(contact("srv.example.com:8080", "u").as_deref(), Some("srv"));
    assert_eq!(contact("other", "t").as_deref(), Some("everyone"));
    assert_eq!(
        policy.requires("srv.example.com:8080", Some("t")),
        [Layer::Session, Layer::Request]
    );
    assert_eq!(policy.contracts.mode, ContractMode::Pin);
}

#[test]
fn the_environment_speaks_where_no_exporter_is_configured() {
    let env = |name: &str| {
        let value = match name {
            "OTEL_EXPORTER_OTLP_ENDPOINT" => "http://collector:4318/",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT" => "http://traces:4318/in",
            "OTEL_EXPORTER_OTLP_PROTOCOL" => "http/protobuf",
            "OTEL_EXPORTER_OTLP_HEADERS" => "Api-Key=a%20b,x=1",
            "OTEL_EXPORTER_OTLP_COMPRESSION" => "gzip",
            "OTEL_EXPORTER_OTLP_TIMEOUT" => "2500",
            "OTEL_RESOURCE_ATTRIBUTES" => "service.name=other,team=edge",
            "OTEL_SERVICE_NAME" => "judge",
            _ => return None,
        };
        Some(value.to_string())
    };
    let settings = load_with(&Sources::default(), &env).unwrap();
    let ExporterKind::OtlpHttp { client, encoding, endpoints } = &settings.exporters[0].kind else {
        panic!("{:?}", settings.exporters)
    };
    assert_eq!(client.endpoint, "http://collector:4318");
    assert_eq!(endpoints.traces.as_deref(), Some("http://traces:4318/in"));
    assert_eq!((*encoding, client.compression), (Encoding::Proto, Compression::Gzip));
    assert_eq!(client.headers["api-key"], Secret("a b".into()));
    assert_eq!(client.timeout, 2_500_000_000);
    assert_eq!(settings.service.service_name, "judge");
    assert_eq!(settings.service.resource_attributes["team"], "edge");
    assert!(!format!("{settings:?}").contains("a b"));

    let bad = |name: &str| (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(|| "nowhere".to_string());
    let mistakes = load_with(&Sources::default(), &bad).unwrap_err();
    assert_eq!(mistakes[0].key, "OTEL_EXPORTER_OTLP_ENDPOINT");
}

#[test]
fn nothing_is_sent_to_ourselves() {
    let text = "exporters: { file: { path: x }, otlp/mine: { endpoint: 'http://localhost:4317' } }";
    let mistakes = load_text(text, &[]).unwrap_err();
    assert_eq!(mistakes.len(), 1);
    assert!(mistakes[0].contains("exporters.otlp/mine.endpoint"), "{}", mistakes[0]);
    assert!(mistakes[0].contains("127.0.0.1:4317"), "{}", mistakes[0]);
    let moved = ["receivers.otlp.protocols.grpc.endpoint=127.0.0.1:1"];
    assert!(load_text(text, &moved).is_ok());
    let own = |name: &str| {
        (name == "OTEL_EXPORTER_OTLP_ENDPOINT").then(|| "http://127.0.0.1:4317".to_string())
    };
    let mistakes = load_with(&Sources::default(), &own).unwrap_err();
    assert_eq!(mistakes[0].key, "OTEL_EXPORTER_OTLP_ENDPOINT");
}

#[test]
fn files_that_are_named_must_be_there() {
    let text = "
receivers: { otlp: { protocols: { grpc: { tls: { cert_file: c.pem, key_file: k.pem } } } } }
exporters: { otlp: { endpoint: 'https://x', auth: { bearer_token_file: token } } }";
    let settings = load_text(text, &[]).unwrap();
    let keys: Vec<_> = check_files(&settings).into_iter().map(|m| m.key).collect();
    assert_eq!(
        keys,
        [
            "receivers.otlp.protocols.grpc.tls.cert_file",
            "receivers.otlp.protocols.grpc.tls.key_file",
            "exporters.otlp.auth.bearer_token_file",
        ]
    );
}
