//! The program at rest: how soon it is ready, what it takes, how large it is.

use std::collections::BTreeMap;
use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::Failure;
use crate::figures::{Figure, Measured, Run};
use crate::payload::Load;
use crate::rows::{Flow, Pace};
use crate::setups::QUEUED;
use crate::subject::{Binaries, Subject, Target};

const FLOW: Flow =
    Flow { load: Load::Plain, spans: 1, pace: Pace::At(1), gzip: false, http: false };
/// Nobody listens there, and nothing is sent.
const NOBODY: u16 = 9;
const PATIENCE: Duration = Duration::from_secs(20);

pub fn measure(binaries: &Binaries, rounds: usize) -> Result<Vec<Measured>, Failure> {
    let mut measured = Measured { subject: "mcp-verdict", runs: Vec::new() };
    for _ in 0..rounds {
        measured.runs.push(once(binaries)?);
    }
    Ok(vec![measured])
}

fn once(binaries: &Binaries) -> Result<Run, Failure> {
    let began = Instant::now();
    let target = Target::spawn(&Subject::Verdict(QUEUED), binaries, &FLOW, NOBODY, &[])?;
    while !ready(target.ports.health) {
        if began.elapsed() > PATIENCE {
            return Ok(Err("never ready".to_owned()));
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    let ready = began.elapsed();
    std::thread::sleep(Duration::from_secs(2));
    Ok(Ok(BTreeMap::from([
        (Figure::Ready, ready.as_secs_f64() * 1e3),
        (Figure::Idle, target.memory("VmRSS")?),
        (Figure::Binary, fs::metadata(&binaries.verdict)?.len() as f64 / 1e6),
    ])))
}

fn ready(port: u16) -> bool {
    let ask = || -> std::io::Result<String> {
        let mut stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.write_all(b"GET /readyz HTTP/1.1\r\nhost: rest\r\nconnection: close\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok(answer)
    };
    ask().is_ok_and(|answer| answer.starts_with("HTTP/1.1 200"))
}
