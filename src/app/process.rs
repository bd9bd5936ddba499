//! The process around the program: runtime, signals, exit code.

use tokio::signal::unix::{Signal, SignalKind, signal};

use super::App;
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
    let (grpc, http) = (app.grpc_address(), app.http_address());
    tracing::info!(?grpc, ?http, "ready");
    while let Wish::Reload = signals.next().await {
        reload(&app, sources, logs);
    }
    tracing::info!("stopping");
    tokio::select! {
        ended = app.stop() => match ended.lost {
            0 => Ended::Done,
            lost => {
                tracing::error!(lost, "accepted exports were not delivered in time");
                Ended::Lost
            }
        },
        () = signals.stop() => Ended::Interrupted,
    }
}

fn reload(app: &App, sources: &Sources, logs: &Logs) {
    match config::load(sources) {
        Ok(settings) => logs.set_level(settings.service.level.as_str()),
        Err(mistakes) => {
            for mistake in &mistakes {
                tracing::error!(%mistake, "the configuration stays as it was");
            }
            return;
        }
    }
    match app.reload() {
        Ok(()) => tracing::info!("reloaded"),
        Err(faults) => {
            for fault in faults {
                tracing::error!(fault, "stays as it was");
            }
        }
    }
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
