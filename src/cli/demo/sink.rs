//! A backend in the same process: takes what the real exporters send and hands on the verdict
//! events in it. It is a receiver of its own, on a port of its own.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;

use tokio::sync::mpsc;

use crate::emit::event;
use crate::receive::{self, Counters, Intake, Received, Receivers, Refusal, Taking};
use crate::wire::Signal;
use crate::wire::regroup::items;
use crate::wire::scan::{RecordView, ValueRef};

/// An event of ours, as a backend sees it: its name and its attributes without our prefix.
pub struct Event {
    pub name: String,
    pub fields: BTreeMap<String, String>,
}

impl Event {
    pub fn get(&self, key: &str) -> &str {
        self.fields.get(key).map_or("", String::as_str)
    }

    pub fn is_verdict(&self) -> bool {
        [event::VERDICT, event::REVISED].contains(&self.name.as_str())
    }
}

pub struct Sink {
    pub address: SocketAddr,
    pub events: mpsc::Receiver<Event>,
    receivers: Receivers,
}

/// Events that wait to be shown; a slow terminal slows the exporter down, as a slow backend would.
const WAITING: usize = 1024;

impl Sink {
    /// # Errors
    /// When no loopback port can be had.
    pub async fn start() -> Result<Self, String> {
        let (send, events) = mpsc::channel(WAITING);
        let settings = receive::Settings {
            grpc: Some(receive::settings::Grpc {
                endpoint: "127.0.0.1:0".into(),
                ..receive::settings::Grpc::default()
            }),
            http: None,
            ..receive::Settings::default()
        };
        let counters = Counters::new(&opentelemetry::global::meter("demo"));
        let receivers = Receivers::start(&settings, counters, Arc::new(Take(send)), Vec::new())
            .await
            .map_err(|error| error.to_string())?;
        let address = receivers.grpc.ok_or("the demo's backend has no port")?;
        Ok(Self { address, events, receivers })
    }

    pub async fn stop(self) {
        self.receivers.stop(std::time::Duration::from_secs(1)).await;
    }
}

struct Take(mpsc::Sender<Event>);

impl Intake for Take {
    fn take(&self, export: Received) -> Taking<'_> {
        Box::pin(async move {
            if export.signal == Signal::Logs {
                for event in events(&export.plain) {
                    // Nobody watches any more: a backend takes it all the same.
                    let _ = self.0.send(event).await;
                }
            }
            Ok::<(), Refusal>(())
        })
    }
}

fn events(export: &[u8]) -> Vec<Event> {
    let read = |record: RecordView<'_>| {
        let name = record.event_name.as_str()?.to_string();
        name.starts_with("mcp_verdict.").then_some(())?;
        let field = |attr: crate::wire::scan::Attr<'_>| {
            let key = attr.key.as_str()?.strip_prefix("mcp_verdict.")?.to_string();
            Some((key, text(&attr.value)))
        };
        Some(Event { name, fields: record.attributes().filter_map(field).collect() })
    };
    items(export).filter_map(|item| read(RecordView::parse(item.bytes, 0))).collect()
}

fn text(value: &ValueRef<'_>) -> String {
    match value {
        ValueRef::Str(text) => text.to_string(),
        ValueRef::Int(number) => number.to_string(),
        ValueRef::Bool(flag) => flag.to_string(),
        ValueRef::Array(items) => {
            items.clone().map(|item| text(&item)).collect::<Vec<_>>().join(" ")
        }
        _ => String::new(),
    }
}
