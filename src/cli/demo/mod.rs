//! `demo`: the real receivers, engine and exporters in one process. Recordings are played through
//! the gRPC and HTTP ports; a backend on a port of its own gets what the exporters send, and its
//! verdict events are shown as they come. Needs no network, no backend and no other program.

mod captures;
mod play;
mod sink;

use std::collections::BTreeMap;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use super::explain::{Recording, print_text};
use super::table::summary;
use super::{ConfigArgs, Exit, Failure, terminal};
use crate::app::App;
use crate::clock;
use crate::config::Settings;
use crate::emit::event;
use crate::model::record::Summary;
use crate::model::words::{FailureLayer, State};
use crate::show::verdicts::{Line, Stream};
use captures::Capture;
use play::{Player, Port};
use sink::{Event, Sink};

#[derive(Args, Debug)]
pub struct DemoArgs {
    /// Plays every .jsonl file of this directory instead of the packed recordings
    #[arg(long, value_name = "DIR")]
    captures: Option<PathBuf>,
    /// Stays until Ctrl-C, so that the live page can be looked at
    #[arg(long)]
    page: bool,
    #[command(flatten)]
    config: ConfigArgs,
}

/// What the demo needs over any configuration: ports that are free, a short wait for each verdict.
const SETTINGS: [&str; 8] = [
    "receivers.otlp.protocols.grpc.endpoint=127.0.0.1:0",
    "receivers.otlp.protocols.http.endpoint=127.0.0.1:0",
    "service.telemetry.metrics.endpoint=127.0.0.1:0",
    "service.telemetry.health.endpoint=127.0.0.1:0",
    "service.telemetry.page.endpoint=127.0.0.1:0",
    "service.telemetry.logs.level=error",
    "storage.ack=queued",
    "processors.mcp_verdict.settle=1s",
];

/// No verdict for so long after the last recording: all are there.
const QUIET: Duration = Duration::from_secs(4);

pub fn run(args: &DemoArgs) -> Result<Exit, Failure> {
    let captures = match &args.captures {
        Some(directory) => captures::of_directory(directory),
        None => captures::packed(),
    };
    let captures = captures.map_err(|error| {
        terminal::tell(&error);
        Exit::Input
    })?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let mut out = terminal::out();
    let stay = args.page.then(tokio::signal::ctrl_c);
    runtime.block_on(perform(&args.config, captures, stay, &mut out))
}

async fn perform(
    config: &ConfigArgs,
    captures: Vec<Capture>,
    stay: Option<impl Future>,
    out: &mut dyn Write,
) -> Result<Exit, Failure> {
    let internal = |error: String| {
        terminal::tell(&error);
        Failure::Exit(Exit::Internal)
    };
    let mut sink = Sink::start().await.map_err(internal)?;
    let settings = settings(config, &sink)?;
    let app = App::start(&settings).await.map_err(|error| {
        terminal::tell(&error);
        Exit::Config
    })?;
    let (Some(grpc), Some(http)) = (app.grpc_address(), app.http_address()) else {
        return Err(internal("the demo needs both receivers".into()));
    };
    writeln!(out, "OTLP in: gRPC {grpc}, HTTP {http}; OTLP out: gRPC {}", sink.address)?;
    let player = Player::connect(grpc, http).await.map_err(internal)?;
    let mut show = Show::new(out)?;
    let mut played = Vec::new();
    for (number, mut capture) in captures.into_iter().enumerate() {
        capture.end_at(clock::now().wall);
        let port = if number % 2 == 0 { Port::Grpc } else { Port::Http };
        for (signal, document) in &capture.exports {
            player
                .send(port, *signal, document)
                .await
                .map_err(|error| internal(format!("{}: {error}", capture.name)))?;
            played.push((*signal, play::protobuf(*signal, document).map_err(internal)?));
        }
        show.drain(&mut sink, Duration::from_millis(150)).await?;
    }
    show.drain(&mut sink, QUIET).await?;
    if let (Some(stay), Some(page)) = (stay, app.page_address()) {
        writeln!(show.out, "\nLive page: http://{page}/ until Ctrl-C")?;
        show.out.flush()?;
        stay.await;
    }
    let ended = app.stop().await;
    // What the exporters delivered while stopping.
    show.drain(&mut sink, Duration::from_millis(100)).await?;
    sink.stop().await;
    show.finish(Recording::new(played, settings.policy))?;
    Ok(if ended.lost == 0 { Exit::Done } else { Exit::Internal })
}

fn settings(config: &ConfigArgs, sink: &Sink) -> Result<Settings, Exit> {
    let mut config = config.clone();
    let ours = SETTINGS.iter().map(|set| set.to_string());
    let exporter = [
        format!("exporters.otlp/demo.endpoint=http://{}", sink.address),
        "exporters.otlp/demo.compression=none".to_string(),
    ];
    // What the user sets comes last and wins.
    config.set = ours.chain(exporter).chain(config.set).collect();
    config.load()
}

/// What was shown so far: the last word on each chain and incident.
struct Show<'a> {
    out: &'a mut dyn Write,
    stream: Stream,
    verdicts: BTreeMap<String, Event>,
    incidents: BTreeMap<[String; 4], Event>,
}

impl<'a> Show<'a> {
    fn new(out: &'a mut dyn Write) -> std::io::Result<Self> {
        let stream = Stream::new(terminal::width());
        writeln!(out)?;
        stream.header(out)?;
        Ok(Self { out, stream, verdicts: BTreeMap::new(), incidents: BTreeMap::new() })
    }

    /// Shows what comes until nothing has come for so long.
    async fn drain(&mut self, sink: &mut Sink, quiet: Duration) -> std::io::Result<()> {
        while let Ok(Some(event)) = tokio::time::timeout(quiet, sink.events.recv()).await {
            if event.is_verdict() {
                let line = Line::of_event(|key| event.get(key).to_string());
                self.stream.line(self.out, &line)?;
                self.out.flush()?;
                self.verdicts.insert(event.get("chain.id").to_string(), event);
            } else if event.name == event::INCIDENT {
                let keys = ["layer", "reason", "server", "discriminator"];
                self.incidents.insert(keys.map(|key| event.get(key).to_string()), event);
            }
        }
        Ok(())
    }

    fn finish(self, recording: Recording) -> Result<(), Failure> {
        summary(self.out, &total(&self.verdicts, self.incidents.len() as u64))?;
        let most_telling =
            ["effect_unknown", "false_success", "stale_catalog", "tool_failed", "unverified"];
        let chosen = most_telling
            .iter()
            .find_map(|state| self.verdicts.iter().find(|(_, event)| event.get("state") == *state));
        let Some((id, _)) = chosen else { return Ok(()) };
        writeln!(
            self.out,
            "\nOne chain explained, as `mcp-verdict explain --chain {}`:\n",
            &id[..8]
        )?;
        let found = recording.explain(&|verdict| verdict.id.to_string() == *id);
        print_text(self.out, &recording, &found)?;
        Ok(())
    }
}

/// The summary of what the backend was told, by the rules of the record.
fn total(verdicts: &BTreeMap<String, Event>, incidents: u64) -> Summary {
    let mut total = Summary { incidents, ..Summary::default() };
    let counted = |event: &&Event| {
        event.get("method") == "tools/call" && event.get("lifecycle") != "superseded"
    };
    for event in verdicts.values().filter(counted) {
        let came = ["complete", "open", "awaiting_input"].contains(&event.get("lifecycle"));
        total.attempts += 1;
        total.protocol_success += u64::from(came && event.get("failure.protocol") == "passed");
        total.verified_success += u64::from(event.get("outcome.status") == "verified");
        if let Some(state) = State::parse(event.get("state")) {
            *total.states.entry(state).or_default() += 1;
        }
        if let Some(layer) = FailureLayer::parse(event.get("first_failed_layer")) {
            *total.first_failed_layers.entry(layer).or_default() += 1;
        }
    }
    let rate = |part: u64| (total.attempts > 0).then(|| part as f64 / total.attempts as f64);
    total.protocol_success_rate = rate(total.protocol_success);
    total.verified_success_rate = rate(total.verified_success);
    total
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The packed recordings, through real ports and exporters, show every state there is.
    #[test]
    fn every_state_is_shown() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let mut out = Vec::new();
        // Somebody looked at the page, and ended it.
        let stay = Some(std::future::ready(()));
        let captures = captures::packed().unwrap();
        let exit = runtime.block_on(perform(&ConfigArgs::default(), captures, stay, &mut out));
        let exit = exit.unwrap();
        let text = String::from_utf8(anstream::adapter::strip_bytes(&out).into_vec()).unwrap();
        assert_eq!(exit, Exit::Done, "{text}");
        for state in State::ALL {
            let summed = text.lines().any(|line| {
                line.starts_with("  ") && line.split_whitespace().next() == Some(state.as_str())
            });
            assert!(summed, "{state} is missing:\n{text}");
        }
        assert!(text.contains("What would change it"), "{text}");
        assert!(text.contains("Live page: http://127.0.0.1:"), "{text}");
        assert!(!text.contains("alice@example.com"), "content leaks");
    }
}
