//! The programs that are measured, each a process of its own, and what the system says of them.

use std::fs;
use std::io;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Ports that one target listens on; all are on loopback.
pub struct Ports {
    pub grpc: u16,
    pub others: [u16; 4],
}

/// Free ports, all held until the last is known, so that no two are equal.
pub fn ports() -> io::Result<Ports> {
    let held = (0..5).map(|_| TcpListener::bind("127.0.0.1:0")).collect::<io::Result<Vec<_>>>()?;
    let ports =
        held.iter().map(|l| l.local_addr().map(|a| a.port())).collect::<io::Result<Vec<_>>>()?;
    Ok(Ports { grpc: ports[0], others: [ports[1], ports[2], ports[3], ports[4]] })
}

/// What can be measured.
#[derive(Clone)]
pub enum Kind {
    /// This program, started again as a server that sends on what it gets.
    Floor,
    Collector(PathBuf),
    Verdict {
        binary: PathBuf,
        ack: &'static str,
    },
    /// mcp-verdict with a lockfile, for checks.
    Checked {
        binary: PathBuf,
    },
}

impl Kind {
    pub fn name(&self) -> String {
        match self {
            Kind::Floor => "bare forwarder".to_owned(),
            Kind::Collector(_) => "Collector".to_owned(),
            Kind::Verdict { ack, .. } => format!("mcp-verdict, {ack}"),
            Kind::Checked { .. } => "mcp-verdict, pins".to_owned(),
        }
    }

    fn command(&self, sink: u16, ports: &Ports, folder: &Path) -> io::Result<Command> {
        let config = folder.join("config.yaml");
        Ok(match self {
            Kind::Floor => {
                let mut command = Command::new(std::env::current_exe()?);
                command.arg("--forward").arg(ports.grpc.to_string()).arg(sink.to_string());
                command
            }
            Kind::Collector(binary) => {
                fs::write(&config, collector_config(ports.grpc, sink))?;
                let mut command = Command::new(binary);
                command.arg("--config").arg(config);
                command
            }
            Kind::Verdict { binary, ack } => {
                fs::write(&config, verdict_config(ports, sink, folder, ack))?;
                let mut command = Command::new(binary);
                command.arg("run").arg("--config").arg(config);
                command
            }
            Kind::Checked { binary } => {
                fs::write(&config, verdict_config(ports, sink, folder, "queued"))?;
                fs::write(folder.join("mcp-tools.lock"), crate::checks::lockfile())?;
                let mut command = Command::new(binary);
                command.arg("run").arg("--config").arg(config);
                command.arg("--set").arg("processors.mcp_verdict.contracts.mode=pin");
                command
            }
        })
    }
}

fn collector_config(port: u16, sink: u16) -> String {
    format!(
        "receivers: {{ otlp: {{ protocols: {{ grpc: {{ endpoint: \"127.0.0.1:{port}\" }} }} }} }}
processors: {{ batch: {{}} }}
exporters:
  otlp_grpc: {{ endpoint: \"127.0.0.1:{sink}\", compression: none, tls: {{ insecure: true }} }}
service:
  telemetry: {{ metrics: {{ level: none }} }}
  pipelines: {{ traces: {{ receivers: [otlp], processors: [batch], exporters: [otlp_grpc] }} }}
"
    )
}

fn verdict_config(ports: &Ports, sink: u16, folder: &Path, ack: &str) -> String {
    let Ports { grpc, others: [http, metrics, health, page] } = ports;
    let data = folder.join("data");
    format!(
        "receivers:
  otlp:
    protocols:
      grpc: {{ endpoint: \"127.0.0.1:{grpc}\" }}
      http: {{ endpoint: \"127.0.0.1:{http}\" }}
processors: {{ mcp_verdict: {{ settle: 2s }} }}
storage: {{ directory: \"{}\", ack: {ack} }}
exporters:
  otlp: {{ endpoint: \"http://127.0.0.1:{sink}\", compression: none }}
service:
  telemetry:
    metrics: {{ endpoint: \"127.0.0.1:{metrics}\" }}
    health: {{ endpoint: \"127.0.0.1:{health}\" }}
    page: {{ endpoint: \"127.0.0.1:{page}\" }}
",
        data.display()
    )
}

/// A running target; it is killed when this is dropped.
pub struct Target {
    process: Child,
    pub port: u16,
    /// of the check API
    pub page: u16,
    folder: PathBuf,
}

impl Target {
    /// Starts it and waits until it listens.
    pub fn start(kind: &Kind, sink: u16) -> io::Result<Self> {
        let ports = ports()?;
        let folder = std::env::temp_dir().join(format!("mcp-verdict-bench-{}", ports.grpc));
        fs::create_dir_all(&folder)?;
        let log = fs::File::create(folder.join("log"))?;
        let process = kind
            .command(sink, &ports, &folder)?
            .current_dir(&folder)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        let mut target = Self { process, port: ports.grpc, page: ports.others[3], folder };
        target.wait_until_it_listens(&kind.name())?;
        Ok(target)
    }

    fn wait_until_it_listens(&mut self, name: &str) -> io::Result<()> {
        let began = Instant::now();
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            let ended = self.process.try_wait()?.is_some();
            if ended || began.elapsed() > Duration::from_secs(20) {
                let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
                return Err(io::Error::other(format!("{name} did not start: {log}")));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(())
    }

    /// CPU time of all its threads so far, user and system.
    pub fn cpu(&self) -> io::Result<Duration> {
        cpu_of(self.process.id())
    }

    /// The most memory that it held at once, in MiB.
    pub fn peak_memory(&self) -> io::Result<u64> {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id()))?;
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or("0 kB");
        Ok(line.split_whitespace().next().and_then(|n| n.parse::<u64>().ok()).unwrap_or(0) / 1024)
    }
}

/// CPU time of all threads of a process so far, user and system.
pub fn cpu_of(process: u32) -> io::Result<Duration> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name in parentheses may hold spaces; utime and stime are the 12th and 13th after it.
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    let ticks: u64 =
        after.split_whitespace().skip(11).take(2).filter_map(|n| n.parse::<u64>().ok()).sum();
    Ok(Duration::from_millis(ticks * 1000 / TICKS_PER_SECOND))
}

/// `USER_HZ`, which Linux fixes at 100 for what it shows in /proc.
const TICKS_PER_SECOND: u64 = 100;

impl Drop for Target {
    fn drop(&mut self) {
        // It may have ended already; then there is nothing to end.
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}
