//! Logs of our own: structured lines on the standard error, none more often than it helps.

use std::collections::HashMap;
use std::sync::{Mutex, Once, PoisonError};

use tracing::callsite::Identifier;
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::LevelFilter;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::reload;
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, Registry};

use crate::clock::monotonic_millis;

/// Lines of one call site in a window; what goes beyond is only counted.
const BURST: u32 = 20;
const WINDOW_MILLIS: u64 = 10_000;

/// The level, changeable while running.
pub struct Logs {
    level: Option<reload::Handle<LevelFilter, Registry>>,
}

static INIT: Once = Once::new();

impl Logs {
    /// Starts logging, once a process; later calls (tests start many) change nothing.
    pub fn start(level: &str) -> Self {
        let mut handle = None;
        INIT.call_once(|| {
            let (filter, level) = reload::Layer::new(filter(level));
            let lines = tracing_subscriber::fmt::layer()
                .json()
                .flatten_event(true)
                .with_target(false)
                .with_writer(std::io::stderr);
            let limited = lines.with_filter(Own).with_filter(RateLimit::default());
            // Only a subscriber that somebody else has set is in the way.
            let set = tracing_subscriber::registry().with(filter).with(limited).try_init();
            handle = set.is_ok().then_some(level);
        });
        Logs { level: handle }
    }

    /// Sets another level.
    pub fn set_level(&self, level: &str) {
        if let Some(handle) = &self.level {
            // The subscriber lives as long as the process.
            let _ = handle.reload(filter(level));
        }
    }
}

fn filter(level: &str) -> LevelFilter {
    level.parse::<Level>().map_or(LevelFilter::INFO, LevelFilter::from_level)
}

/// Libraries are heard from `warn` up: their finer lines may hold headers or bodies.
struct Own;

impl<S: Subscriber> tracing_subscriber::layer::Filter<S> for Own {
    fn enabled(&self, meta: &tracing::Metadata<'_>, _: &Context<'_, S>) -> bool {
        meta.target().starts_with("mcp_verdict") || *meta.level() <= Level::WARN
    }
}

/// A bound on lines by call site.
#[derive(Default)]
struct RateLimit {
    sites: Mutex<HashMap<Identifier, Window>>,
}

#[derive(Default)]
struct Window {
    start: u64,
    lines: u32,
}

impl<S: Subscriber> tracing_subscriber::layer::Filter<S> for RateLimit {
    fn enabled(&self, _: &tracing::Metadata<'_>, _: &Context<'_, S>) -> bool {
        true
    }

    fn event_enabled(&self, event: &Event<'_>, _: &Context<'_, S>) -> bool {
        self.admits(event.metadata().callsite(), monotonic_millis())
    }
}

impl RateLimit {
    fn admits(&self, site: Identifier, now: u64) -> bool {
        let mut sites = self.sites.lock().unwrap_or_else(PoisonError::into_inner);
        let window = sites.entry(site).or_default();
        if now.saturating_sub(window.start) >= WINDOW_MILLIS {
            *window = Window { start: now, lines: 0 };
        }
        window.lines = window.lines.saturating_add(1);
        window.lines <= BURST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_site_is_heard_again_in_the_next_window() {
        let limit = RateLimit::default();
        let site =
            || tracing::callsite!(name: "x", kind: tracing::metadata::Kind::EVENT, fields: a);
        use tracing::callsite::Callsite;
        let site = site().metadata().callsite();
        let admitted = |now| (0..100).filter(|_| limit.admits(site.clone(), now)).count();
        assert_eq!(admitted(50_000), BURST as usize);
        assert_eq!(admitted(59_999), 0);
        assert_eq!(admitted(60_000), BURST as usize);
    }
}
