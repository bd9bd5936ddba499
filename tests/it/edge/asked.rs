//! Senders over HTTP that are asked to wait: 429 with `Retry-After`, for each thing that can be full.

use std::collections::BTreeSet;
use std::io::Write;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use prost::Message;

use super::killed::Process;
use super::overload::Narrow;
use super::support::*;

/// Seconds to wait, of a refusal that must be one to come back after.
fn asked(answer: &reqwest::Response) -> u64 {
    assert_eq!(answer.status(), 429);
    let after = answer.headers().get("retry-after").expect("Retry-After");
    let seconds = after.to_str().unwrap().parse().expect("whole seconds");
    assert!((1..=10).contains(&seconds), "{seconds} s");
    seconds
}

fn large() -> (Vec<u8>, Vec<u8>) {
    let mut large = span(&trace(), "large");
    large.attributes.push(text("filler", &"x".repeat(200_000)));
    (large.span_id.clone(), export("loaded", vec![large]).encode_to_vec())
}

/// Scenario: a backend that takes 1 MiB a second and a log of 32 MiB on disk; six senders over HTTP
/// that do as they are asked. Guarantees: once the log is full every refusal is a 429 that says how
/// long to wait, and every span arrives, whether it was refused before or not.
#[tokio::test(flavor = "multi_thread")]
async fn a_full_log_on_disk_asks_http_senders_to_wait() {
    let directory = tempfile::tempdir().unwrap();
    let (narrow, address) = Narrow::start().await;
    let more = ["exporters.otlp_http.compression=none", "storage.max_size=32MiB"];
    let process = Process::start_at(&format!("http://{address}"), directory.path(), &more);
    let until = Instant::now() + Duration::from_secs(60);
    let refusals = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let sender = |_| {
        let (url, refusals) = (process.url.clone(), refusals.clone());
        tokio::spawn(async move {
            let (client, mut sent) = (client(), Vec::new());
            while refusals.load(Ordering::Relaxed) < 30 {
                assert!(Instant::now() < until, "the log is never full");
                let (id, body) = large();
                loop {
                    let request = client.post(&url).body(body.clone());
                    let request = request.header("content-type", "application/x-protobuf");
                    let answer = request.send().await.unwrap();
                    if answer.status() == 200 {
                        break;
                    }
                    refusals.fetch_add(1, Ordering::Relaxed);
                    tokio::time::sleep(Duration::from_secs(asked(&answer))).await;
                }
                sent.push(id);
            }
            sent
        })
    };
    let senders: Vec<_> = (0..6).map(sender).collect();
    let mut sent = BTreeSet::new();
    for sender in senders {
        sent.extend(sender.await.unwrap());
    }
    narrow.width.store(100 << 20, Ordering::Relaxed);
    narrow.until(&sent).await;
    process.stop();
}

/// Scenario: three senders have sent most of a body and stop; together they hold what all bodies may
/// hold at one time. Guarantees: who comes next is asked to wait, and is taken once they are gone.
#[tokio::test(flavor = "multi_thread")]
async fn bodies_that_fill_the_receiver_ask_the_next_sender_to_wait() {
    let backend = Backend::start(&[]).await;
    let limit = "processors.mcp_verdict.limits.in_flight=1MiB";
    let program = Program::start(&backend, &[limit]).await;
    let address = program.app.http_address().unwrap();
    let half = |_| {
        let mut stream = std::net::TcpStream::connect(address).unwrap();
        let head = "POST /v1/traces HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-protobuf\r\n\
                    content-length: 400000\r\n\r\n";
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(&[0; 330_000]).unwrap();
        stream
    };
    let halves: Vec<_> = (0..3).map(half).collect();
    let (_, body) = large();
    let end = Instant::now() + PATIENCE;
    loop {
        let answer = program.post("/v1/traces", body.clone(), "").await;
        if answer.status() != 200 {
            asked(&answer);
            let told = answer.bytes().await.unwrap();
            assert!(String::from_utf8_lossy(&told).contains("the receiver is full"), "{told:?}");
            break;
        }
        assert!(Instant::now() < end, "the receiver is never full");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    drop(halves);
    while program.post("/v1/traces", body.clone(), "").await.status() != 200 {
        assert!(Instant::now() < end, "what is gone still holds its bytes");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
