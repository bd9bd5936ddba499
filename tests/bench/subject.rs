//! The programs that are measured, each a process of its own, and what the system says of them.

use std::fs;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::time::ClockId;
use nix::unistd::Pid;

use crate::Failure;
use crate::ledger::{Promise, Which};
use crate::rows::Flow;

/// Ports that one target listens on; all are on loopback.
pub struct Ports {
    pub grpc: u16,
    pub http: u16,
    pub metrics: u16,
    pub health: u16,
    pub page: u16,
}

/// Free ports, all held until the last is known, so that no two are equal.
pub fn ports() -> io::Result<Ports> {
    let held = (0..5).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<io::Result<Vec<_>>>()?;
    let ports =
        held.iter().map(|l| l.local_addr().map(|a| a.port())).collect::<io::Result<Vec<_>>>()?;
    let [grpc, http, metrics, health, page] = ports[..] else { unreachable!("five were bound") };
    Ok(Ports { grpc, http, metrics, health, page })
}

/// What can be measured.
#[derive(Clone, Copy)]
pub enum Subject {
    /// This program, started again as a server that sends on what it gets.
    Floor,
    /// The Collector with `batch`, or with `groupbytrace` and then `batch`.
    Batch,
    GroupByTrace,
    Verdict(Setup),
}

/// mcp-verdict, configured.
#[derive(Clone, Copy)]
pub struct Setup {
    pub name: &'static str,
    pub set: &'static [&'static str],
    /// What it has to make of a call.
    pub promise: Promise,
}

/// Where the programs are.
pub struct Binaries {
    pub verdict: PathBuf,
    pub collector: Option<PathBuf>,
}

impl Subject {
    pub fn name(&self) -> &'static str {
        match self {
            Subject::Floor => "floor",
            Subject::Batch => "Collector, batch",
            Subject::GroupByTrace => "Collector, groupbytrace",
            Subject::Verdict(setup) => setup.name,
        }
    }

    pub fn promise(&self) -> Promise {
        match self {
            Subject::Verdict(setup) => setup.promise,
            _ => Promise {
                bytes: matches!(self, Subject::Floor),
                enriched: false,
                events: Which::None,
                verdict_spans: Which::None,
            },
        }
    }

    fn command(&self, binaries: &Binaries, place: &Place<'_>) -> Result<Command, Failure> {
        let Place { flow, ports, sink, folder } = place;
        let config = folder.join("config.yaml");
        let mut command = match self {
            Subject::Floor => {
                let mut command = Command::new(std::env::current_exe()?);
                command.args(["--forward", &ports.grpc.to_string(), &sink.to_string()]);
                command.args(flow.gzip.then_some("gzip"));
                return Ok(command);
            }
            Subject::Batch | Subject::GroupByTrace => {
                let grouped = matches!(self, Subject::GroupByTrace);
                fs::write(&config, collector_config(place, grouped))?;
                Command::new(binaries.collector.as_ref().ok_or("the Collector is not built")?)
            }
            Subject::Verdict(setup) => {
                fs::write(&config, verdict_config(place))?;
                let mut command = Command::new(&binaries.verdict);
                command.arg("run").args(setup.set.iter().flat_map(|set| ["--set", set]));
                command
            }
        };
        command.arg("--config").arg(config);
        Ok(command)
    }
}

/// Where a target runs, and between what.
struct Place<'a> {
    flow: &'a Flow,
    ports: &'a Ports,
    sink: u16,
    folder: &'a Path,
}

fn compression(flow: &Flow) -> &'static str {
    if flow.gzip { "gzip" } else { "none" }
}

fn collector_config(place: &Place<'_>, grouped: bool) -> String {
    let Place { ports: Ports { grpc, http, .. }, sink, flow, .. } = place;
    let processors = if grouped { "[groupbytrace, batch]" } else { "[batch]" };
    format!(
        "receivers:
  otlp:
    protocols:
      grpc: {{ endpoint: \"127.0.0.1:{grpc}\" }}
      http: {{ endpoint: \"127.0.0.1:{http}\" }}
processors: {{ batch: {{}}, groupbytrace: {{ wait_duration: 2s }} }}
exporters:
  otlp_grpc: {{ endpoint: \"127.0.0.1:{sink}\", compression: {}, tls: {{ insecure: true }} }}
service:
  telemetry: {{ metrics: {{ level: none }} }}
  pipelines: {{ traces: {{ receivers: [otlp], processors: {processors}, exporters: [otlp_grpc] }} }}
",
        compression(flow)
    )
}

fn verdict_config(place: &Place<'_>) -> String {
    let Place { ports, sink, flow, folder } = place;
    let Ports { grpc, http, metrics, health, page } = ports;
    format!(
        "receivers:
  otlp:
    protocols:
      grpc: {{ endpoint: \"127.0.0.1:{grpc}\" }}
      http: {{ endpoint: \"127.0.0.1:{http}\" }}
processors: {{ mcp_verdict: {{ settle: 2s }} }}
storage: {{ directory: \"{}\" }}
exporters:
  otlp: {{ endpoint: \"http://127.0.0.1:{sink}\", compression: {} }}
service:
  telemetry:
    metrics: {{ endpoint: \"127.0.0.1:{metrics}\" }}
    health: {{ endpoint: \"127.0.0.1:{health}\" }}
    page: {{ endpoint: \"127.0.0.1:{page}\" }}
",
        folder.join("data").display(),
        compression(flow)
    )
}

/// A running target; it is killed when this is dropped.
pub struct Target {
    process: Child,
    pub ports: Ports,
    folder: PathBuf,
    name: &'static str,
}

impl Target {
    /// Starts it and waits until it listens.
    pub fn start(
        subject: &Subject,
        binaries: &Binaries,
        flow: &Flow,
        sink: u16,
        files: &[(&str, &str)],
    ) -> Result<Self, Failure> {
        let mut target = Self::spawn(subject, binaries, flow, sink, files)?;
        target.wait_until_it_listens(flow)?;
        Ok(target)
    }

    /// Starts it; `files` are put into the folder in which it runs.
    pub fn spawn(
        subject: &Subject,
        binaries: &Binaries,
        flow: &Flow,
        sink: u16,
        files: &[(&str, &str)],
    ) -> Result<Self, Failure> {
        let ports = ports()?;
        let folder = std::env::temp_dir().join(format!("mcp-verdict-bench-{}", ports.grpc));
        fs::create_dir_all(&folder)?;
        for (name, text) in files {
            fs::write(folder.join(name), text)?;
        }
        let log = fs::File::create(folder.join("log"))?;
        let place = Place { flow, ports: &ports, sink, folder: &folder };
        let process = subject
            .command(binaries, &place)?
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        Ok(Self { process, ports, folder, name: subject.name() })
    }

    fn wait_until_it_listens(&mut self, flow: &Flow) -> Result<(), Failure> {
        let port = if flow.http { self.ports.http } else { self.ports.grpc };
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            let ended = self.process.try_wait()?.is_some();
            if ended || began.elapsed() > Duration::from_secs(60) {
                let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
                return Err(format!("{} did not start: {log}", self.name).into());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    pub fn cpu(&self) -> Result<Duration, Failure> {
        cpu_of(self.process.id())
    }

    /// A line of /proc/PID/status, in MiB: `VmRSS`, `VmHWM`.
    pub fn memory(&self, line: &str) -> Result<f64, Failure> {
        memory_of(self.process.id(), line)
    }
}

/// CPU time of all threads of a process so far, those that ended included, user and system, to the
/// nanosecond: the clock that the scheduler keeps.
pub fn cpu_of(process: u32) -> Result<Duration, Failure> {
    let clock = ClockId::pid_cpu_clock_id(Pid::from_raw(i32::try_from(process)?))?;
    Ok(clock.now()?.into())
}

/// MiB
pub fn memory_of(process: u32, line: &str) -> Result<f64, Failure> {
    let status = fs::read_to_string(format!("/proc/{process}/status"))?;
    let found = status.lines().find_map(|l| l.strip_prefix(line)?.strip_prefix(':'));
    let number = found.and_then(|text| text.split_whitespace().next()).ok_or("no such line")?;
    Ok(number.parse::<f64>()? / 1024.0)
}

impl Drop for Target {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to end.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
