//! Wiring: which part feeds which, in what order they start and stop.
//!
//! Promises: ports open last and close first; what was accepted is delivered, or stays in the log,
//! or is counted as lost.

mod asked;
mod checkpoints;
mod covering;
mod effects;
mod explaining;
mod judging;
pub mod lockfile;
mod outputs;
mod own_metrics;
mod pinning;
mod pipeline;
pub mod process;
mod records;
mod release;
pub mod settings;
mod stopping;
pub mod unsaid;
mod vitals;
mod watch;

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;

use crate::clock::timer;
use crate::config::Settings;
use crate::engine::Engine;
use crate::export::{self, ExporterError, Hold, Outbox};
use crate::log::settings::Ack;
use crate::log::{self, Disk, Log, Memory};
use crate::page::board::Recorder;
use crate::page::{self, Board};
use crate::receive::{self, ListenError, Page, Receivers};
use crate::telemetry::health::Health;
use crate::telemetry::{self, Meters, VerdictMeters};
use checkpoints::Checkpoints;
use checkpoints::Unfolded;
use effects::Effects;
use judging::Judging;
use outputs::{Output, Outputs};
use own_metrics::OwnMetrics;
use pinning::{Pinning, Places};
use pipeline::{Entrance, Pipeline};
use records::{Live, Shelved};
use vitals::Doors;

/// Why the program did not start.
#[derive(Debug)]
pub enum StartError {
    Listen(ListenError),
    Exporter(ExporterError),
    Telemetry(String),
    Thread(String),
    Log(String),
    Storage(log::OpenError),
    Lockfile(lockfile::Trouble),
}

impl fmt::Display for StartError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            StartError::Listen(error) => error.fmt(f),
            StartError::Exporter(error) => error.fmt(f),
            StartError::Telemetry(why) => write!(f, "service.telemetry: {why}"),
            StartError::Log(why) => write!(f, "storage.directory: the log cannot be read: {why}"),
            StartError::Storage(error) => error.fmt(f),
            StartError::Lockfile(trouble) => trouble.fmt(f),
            StartError::Thread(why) => write!(f, "the engine got no thread: {why}"),
        }
    }
}

impl std::error::Error for StartError {}

impl From<ListenError> for StartError {
    fn from(error: ListenError) -> Self {
        StartError::Listen(error)
    }
}

impl From<ExporterError> for StartError {
    fn from(error: ExporterError) -> Self {
        StartError::Exporter(error)
    }
}

/// The running program.
pub struct App {
    receivers: Receivers,
    page: Option<Page>,
    core: Core,
    pub metrics_address: Option<SocketAddr>,
    pub health_address: Option<SocketAddr>,
    shutdown_timeout: Duration,
}

/// Everything between the ports.
struct Core {
    log: Arc<dyn Log>,
    outbox: Arc<Outbox>,
    hold: Arc<Hold>,
    judging: Judging,
    outputs: Outputs,
    /// What an earlier process said, and the log had no room for.
    unsaid: Vec<Output>,
    meters: Arc<Meters>,
    pipeline: Arc<Pipeline>,
    board: Arc<Board>,
    pinning: Arc<Pinning>,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ended {
    /// Accepted exports that were neither delivered nor kept.
    pub lost: usize,
    /// Accepted items that were dropped while it ran, because a backend refused them for good.
    pub dropped: u64,
}

impl App {
    /// Starts every part, on the runtime of the caller.
    ///
    /// # Errors
    /// When a port, certificate, credential or exporter cannot be used; nothing is open then.
    pub async fn start(settings: &Settings) -> Result<Self, StartError> {
        App::start_on(settings, open_log(settings)?).await
    }

    /// As [`App::start`], on a log that may hold what an earlier run has not delivered. Ports open
    /// when it is taken up.
    ///
    /// # Errors
    /// As [`App::start`], and when the log cannot be read.
    pub async fn start_on(settings: &Settings, log: Arc<dyn Log>) -> Result<Self, StartError> {
        let mut core = Core::start(settings, log)?;
        let unsaid = std::mem::take(&mut core.unsaid);
        let resumed = core.pipeline.resume(unsaid, &core.outputs).await;
        let resumed = resumed.map_err(|error| StartError::Log(error.to_string()))?;
        if resumed > 0 {
            tracing::info!(resumed, "records of an earlier run are taken up");
        }
        let telemetry = settings::telemetry(settings);
        core.observe();
        let metrics_address = open_metrics(&telemetry, core.meters.clone()).await?;
        let received = receive::Counters::new(&core.meters.meter());
        let intake = Arc::new(Entrance(core.pipeline.clone()));
        let (health, doors) = (core.health(), Arc::<Doors>::default());
        let vitals = vitals::vitals(health.clone(), core.meters.clone(), doors.clone());
        let beside = page::services(core.board.clone(), vitals.clone());
        let page = asked::open_page(settings, received.clone(), &core.board, vitals).await?;
        let receiving = settings::receive(settings);
        let receivers = Receivers::start(&receiving, received, intake, beside).await?;
        doors.open(&receivers);
        // Last: who is told that it is ready finds every other port open.
        let health_address = open_health(&telemetry, health).await?;
        tokio::spawn(core.checkpoints().run());
        let shutdown_timeout = Duration::from_nanos(settings.service.shutdown_timeout);
        Ok(App { receivers, page, core, metrics_address, health_address, shutdown_timeout })
    }

    /// Where gRPC is received.
    pub fn grpc_address(&self) -> Option<SocketAddr> {
        self.receivers.grpc
    }

    /// Where HTTP is received.
    pub fn http_address(&self) -> Option<SocketAddr> {
        self.receivers.http
    }

    /// Where the page and the check API are.
    pub fn page_address(&self) -> Option<SocketAddr> {
        self.page.as_ref().and_then(|page| page.address)
    }

    /// Takes what can change while running: the policy with its contracts, what is said of
    /// verdicts, credentials and certificates.
    ///
    /// # Errors
    /// A sentence for each thing that stays as it was.
    pub async fn reload(&self, settings: &Settings) -> Result<(), Vec<String>> {
        let mut faults = Vec::new();
        faults.extend(self.core.reload(settings).await.err().map(|trouble| trouble.to_string()));
        let ports = [Some(self.receivers.reload()), self.page.as_ref().map(Page::reload)];
        faults.extend(ports.into_iter().flatten().filter_map(Result::err).flatten());
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }

    /// Ends inside `shutdown_timeout`: intake first, then what is owed.
    pub async fn stop(self) -> Ended {
        let deadline = timer() + self.shutdown_timeout;
        let left = || deadline.saturating_duration_since(timer());
        stopping::say_troubled(&self.core.outbox, self.shutdown_timeout);
        // Requests that had begun get a part of the time; the rest is for deliveries.
        self.receivers.stop(left() / 4).await;
        if let Some(page) = self.page {
            page.stop(left() / 8).await;
        }
        let checkpoints = self.core.checkpoints();
        let Core { judging, outputs, meters, outbox, log, pinning, .. } = self.core;
        let said = outputs.clone();
        // Held spans leave with what is known, after what was said of them is logged.
        let known = tokio::time::timeout(left() / 2, judging.drain()).await;
        let _ = tokio::time::timeout(left() / 4, pinning.round()).await;
        let _ = tokio::time::timeout(left() / 2, outputs.flush()).await;
        // The last push waits for its own thread: not on ours.
        let last_push = tokio::task::spawn_blocking(move || meters.shutdown());
        let _ = tokio::time::timeout(left() / 2, last_push).await;
        let owed = stopping::drain(&outbox, left().mul_f32(0.9)).await;
        if let Ok(Some(known)) = known {
            let _ = tokio::time::timeout(left(), checkpoints.write_last(known)).await;
        }
        let lost = said.lost();
        if lost > 0 {
            tracing::error!(lost, "events and verdict spans found no room in the log");
        }
        let last = log.clone();
        // Marks of the last deliveries: a device that hangs is not waited for.
        let flushed = tokio::task::spawn_blocking(move || last.flush());
        let _ = tokio::time::timeout(left().max(LAST_WRITE), flushed).await;
        stopping::say_left(&*log);
        Ended { lost: if log.survives() { 0 } else { owed }, dropped: outbox.lost() }
    }
}

impl Core {
    fn start(settings: &Settings, log: Arc<dyn Log>) -> Result<Self, StartError> {
        let own_metrics = OwnMetrics::default();
        let exporter = own_metrics.exporter().map_err(StartError::Telemetry)?;
        let meters = Meters::new(&settings::telemetry(settings).resource, Some(exporter));
        let meters = Arc::new(meters.map_err(StartError::Telemetry)?);
        let meter = meters.meter();
        let counters = export::Counters::new(&meter);
        let exporters = settings::exporters(settings);
        let outbox = Arc::new(Outbox::new(&exporters, log.clone(), &counters)?);
        own_metrics.connect(outbox.clone());
        let unfolded = Arc::<Unfolded>::default();
        let outputs = Outputs::start(outputs::Writer {
            log: log.clone(),
            outbox: outbox.clone(),
            unfolded: unfolded.clone(),
        });
        let names = settings::remembered_names(settings);
        let hold = Arc::new(Hold::new(settings::size(settings.limits.held_spans), names));
        let judged = VerdictMeters::new(&meters, settings::size(settings.limits.label_values));
        let (policy, rules) = asked::contracts(settings).map_err(StartError::Lockfile)?;
        let policy = Arc::new(policy);
        let board = Arc::new(Board::default());
        board.set_rules(rules);
        covering::observe(&meter, board.clone(), settings::size(settings.limits.label_values));
        let changes = settings::changes(settings);
        let mut effects = Effects::new(effects::Parts {
            hold: hold.clone(),
            outputs: outputs.clone(),
            meters: judged.clone(),
            said: asked::said(settings, policy.clone()),
            recorder: Recorder::new(board.clone(), asked::remembered(settings)),
            remembered: names / 2,
        });
        let engine = Engine::new(policy.clone(), settings::engine(settings));
        let (left, unsaid) = checkpoints::left(&*log, &mut effects);
        let settle = Duration::from_nanos(policy.settle);
        let room = settings::size(settings.limits.memory / 16);
        let judging = Judging::start(engine, effects, board.clone(), settle, room, left);
        let judging = judging.map_err(|error| StartError::Thread(error.to_string()))?;
        let live = Arc::new(ArcSwap::from_pointee(Live { policy, changes }));
        let memory = settings::storage(settings).memory;
        if log.survives() {
            let (log, live, unfolded) = (log.clone(), live.clone(), unfolded.clone());
            let shelf: Arc<dyn export::Shelf> = Arc::new(Shelved { log, live, unfolded });
            outbox.shelve(&shelf, settings::size(memory));
        }
        outbox.start();
        let pipeline = Arc::new(Pipeline {
            log: log.clone(),
            outbox: outbox.clone(),
            hold: hold.clone(),
            judging: judging.clone(),
            live,
            meters: judged,
            unfolded,
            backlog: (!log.survives()).then_some(memory),
        });
        let pinning = Pinning::new(board.clone(), Places::of(settings));
        tokio::spawn(pinning.clone().run());
        Ok(Core { log, outbox, hold, judging, outputs, unsaid, meters, pipeline, board, pinning })
    }

    /// Another policy for what is received from now on; nothing changes where its lockfile cannot
    /// be read.
    async fn reload(&self, settings: &Settings) -> Result<(), lockfile::Trouble> {
        let (mut policy, rules) = asked::contracts(settings)?;
        policy.follow(&self.pipeline.live.load().policy);
        let policy = Arc::new(policy);
        let said = asked::said(settings, policy.clone());
        // The engine first: it must know the rules by whose numbers it is told.
        self.judging.reload(judging::Reload { policy: policy.clone(), said }).await;
        let changes = settings::changes(settings);
        self.pipeline.live.store(Arc::new(Live { policy, changes }));
        self.pinning.reload(rules, Places::of(settings)).await;
        Ok(())
    }

    fn checkpoints(&self) -> Checkpoints {
        Checkpoints {
            log: self.log.clone(),
            judging: self.judging.clone(),
            outputs: self.outputs.clone(),
            unfolded: self.pipeline.unfolded.clone(),
        }
    }
}

/// The log's last write has a moment even when the time is up.
const LAST_WRITE: Duration = Duration::from_millis(200);

/// The log that `storage` asks for.
fn open_log(settings: &Settings) -> Result<Arc<dyn Log>, StartError> {
    let storage = settings::storage(settings);
    Ok(match storage.ack {
        Ack::Durable => Arc::new(Disk::open(&storage).map_err(StartError::Storage)?),
        Ack::Queued => Arc::new(Memory::new(storage.max_size.min(storage.memory))),
    })
}

async fn open_metrics(
    telemetry: &telemetry::Settings,
    meters: Arc<Meters>,
) -> Result<Option<SocketAddr>, StartError> {
    let Some(endpoint) = &telemetry.metrics else { return Ok(None) };
    let listener = receive::bind("service.telemetry.metrics.endpoint", endpoint, true).await?;
    let address = listener.local_addr().ok();
    tokio::spawn(telemetry::serve::metrics(listener, meters));
    Ok(address)
}

async fn open_health(
    telemetry: &telemetry::Settings,
    health: Health,
) -> Result<Option<SocketAddr>, StartError> {
    let Some(endpoint) = &telemetry.health else { return Ok(None) };
    let listener = receive::bind("service.telemetry.health.endpoint", endpoint, true).await?;
    let address = listener.local_addr().ok();
    tokio::spawn(telemetry::serve::health(listener, health));
    Ok(address)
}
