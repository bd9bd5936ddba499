//! The process around the program: runtime, signals, exit code.

use std::path::PathBuf;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::field::display;

use super::App;
use crate::config::settings::{Exporter, ExporterKind, Level, Service};
use crate::config::{self, Settings, Sources};
use crate::telemetry::Logs;

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Everything accepted was delivered or is stored.
    Done,
    /// A port, file or directory that the configuration names cannot be used.
    Unusable,
    /// Something accepted was lost, or the system refused us threads or signals.
    Lost,
    /// A second signal.
    Interrupted,
}

/// Runs until a signal ends it. `sources` are read again on SIGHUP; `tell` says a sentence to
/// whoever started it.
pub fn run(settings: &Settings, sources: &Sources, tell: &dyn Fn(&str)) -> Ended {
    let logs = Logs::start(settings.service.level.as_str());
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tell(&format!("no threads to run on: {error}"));
            return Ended::Lost;
        }
    };
    let code = runtime.block_on(until_stopped(settings, sources, &logs, tell));
    // What still runs is idle or past its deadline.
    runtime.shutdown_background();
    code
}

async fn until_stopped(
    settings: &Settings,
    sources: &Sources,
    logs: &Logs,
    tell: &dyn Fn(&str),
) -> Ended {
    let mut signals = match Signals::new() {
        Ok(signals) => signals,
        Err(error) => {
            tell(&format!("cannot listen for signals: {error}"));
            return Ended::Lost;
        }
    };
    let app = match App::start(settings).await {
        Ok(app) => app,
        Err(error) => {
            tell(&error.to_string());
            return Ended::Unusable;
        }
    };
    let (grpc, http) = (app.grpc_address().map(display), app.http_address().map(display));
    let (metrics, health) = (app.metrics_address.map(display), app.health_address.map(display));
    let page = app.page_address().map(display);
    tracing::info!(grpc, http, metrics, health, page, "ready");
    let shown = |exporter: &Exporter| matches!(exporter.kind, ExporterKind::Console { .. });
    if settings.exporters.iter().any(shown) {
        tell(&ports(&app));
    }
    let mut empty = settings.empty_files.clone();
    while let Wish::Reload = signals.next().await {
        if let Some(now) = reload(&app, settings, &empty, sources, logs).await {
            empty = now;
        }
    }
    tracing::info!("stopping");
    tokio::select! {
        ended = app.stop() => how(&ended),
        () = signals.stop() => Ended::Interrupted,
    }
}

/// Says what was lost.
fn how(ended: &super::Ended) -> Ended {
    let super::Ended { lost, dropped } = *ended;
    if lost > 0 {
        tracing::error!(lost, "accepted exports were not delivered in time");
    }
    if dropped > 0 {
        tracing::error!(
            dropped,
            "accepted items were dropped while it ran: what said `dropped`, and \
             otelcol_exporter_send_failed_*, tell why"
        );
    }
    if lost > 0 || dropped > 0 { Ended::Lost } else { Ended::Done }
}

/// For who looks on: where to send, and where else to look.
fn ports(app: &App) -> String {
    let found = [
        ("OTLP in by gRPC ", app.grpc_address(), ""),
        ("by HTTP http://", app.http_address(), ""),
        ("metrics http://", app.metrics_address, "/metrics"),
        ("health http://", app.health_address, "/readyz"),
        ("API http://", app.page_address(), "/v1/chains"),
    ];
    let open = found.into_iter().filter_map(|(before, address, after)| {
        address.map(|address| format!("{before}{address}{after}"))
    });
    let open: Vec<String> = open.collect();
    format!("{}; verdicts appear here as they come", open.join(", "))
}

/// Takes up the configuration as it is now; the files that hold nothing, where it could be used.
async fn reload(
    app: &App,
    started: &Settings,
    empty: &[PathBuf],
    sources: &Sources,
    logs: &Logs,
) -> Option<Vec<PathBuf>> {
    let settings = match config::load(sources) {
        Ok(settings) => settings,
        Err(mistakes) => {
            for mistake in &mistakes {
                tracing::error!(%mistake, "the configuration stays as it was");
            }
            return None;
        }
    };
    // A write that was cut off looks like this; what it would turn off is what somebody wanted.
    if let Some(file) = settings.empty_files.iter().find(|file| !empty.contains(file)) {
        let mistake =
            format!("{}: holds nothing any more; {{}} means the defaults", file.display());
        tracing::error!(mistake, "the configuration stays as it was");
        return None;
    }
    for warning in &settings.warnings {
        tracing::warn!(%warning, "the configuration can be used");
    }
    logs.set_level(settings.service.level.as_str());
    for section in fixed(started, &settings) {
        tracing::warn!(section, "a change here takes effect at the next start");
    }
    match app.reload(&settings).await {
        Ok(()) => tracing::info!("reloaded"),
        Err(faults) => {
            for fault in faults {
                tracing::error!(fault, "stays as it was");
            }
        }
    }
    Some(settings.empty_files)
}

/// The sections that differ and cannot change while running.
fn fixed(started: &Settings, now: &Settings) -> Vec<&'static str> {
    let level = |settings: &Settings| Service { level: Level::Info, ..settings.service.clone() };
    let differs = [
        ("receivers", started.receivers != now.receivers),
        ("processors.mcp_verdict.limits", started.limits != now.limits),
        ("storage", started.storage != now.storage),
        ("exporters", started.exporters != now.exporters),
        ("service", level(started) != level(now)),
    ];
    differs.into_iter().filter(|(_, differs)| *differs).map(|(section, _)| section).collect()
}

/// What a signal asks for.
enum Wish {
    Reload,
    Stop,
}

struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hangup: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Signals {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Wish {
        tokio::select! {
            _ = self.interrupt.recv() => Wish::Stop,
            _ = self.terminate.recv() => Wish::Stop,
            _ = self.hangup.recv() => Wish::Reload,
        }
    }

    /// Waits for a signal to end; reloads come too late.
    async fn stop(&mut self) {
        while let Wish::Reload = self.next().await {}
    }
}
