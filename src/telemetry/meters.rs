//! Instruments by name, out to Prometheus and, as any other metric, to the configured exporters.

use std::sync::Mutex;
use std::sync::PoisonError;
use std::time::Duration;

use opentelemetry::KeyValue;
use opentelemetry::metrics::{Meter, MeterProvider};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::exporter::PushMetricExporter;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider, Stream};
use prometheus::proto::{LabelPair, Metric, MetricFamily, MetricType};
use prometheus::{Encoder, Registry, TextEncoder};

use super::exemplars::Exemplars;
use super::openmetrics;

/// The instruments of one process.
pub struct Meters {
    provider: SdkMeterProvider,
    registry: Registry,
    /// What verdicts counted came from.
    pub(super) exemplars: Exemplars,
    /// Gathering is one at a time: a scrape never makes another wait for ever.
    gathering: Mutex<()>,
}

/// One number of `/metrics`.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    pub name: String,
    pub labels: Vec<(String, String)>,
    pub value: f64,
}

fn sample(family: &MetricFamily, metric: &Metric) -> Sample {
    let label = |pair: &LabelPair| (pair.name().to_owned(), pair.value().to_owned());
    let value = match family.get_field_type() {
        MetricType::COUNTER => metric.get_counter().value(),
        _ => metric.get_gauge().value(),
    };
    Sample {
        name: family.name().to_owned(),
        labels: metric.get_label().iter().map(label).collect(),
        value,
    }
}

/// Attribute sets of one instrument; the next ones count under `otel.metric.overflow="true"`.
const SERIES: usize = 10_000;
const PERIOD: Duration = Duration::from_secs(15);

impl Meters {
    /// Builds the provider. `push`: where metrics also go, every 15 s.
    ///
    /// # Errors
    /// When an instrument reader cannot be registered.
    pub fn new(
        resource: &[(String, String)],
        push: Option<impl PushMetricExporter>,
    ) -> Result<Self, String> {
        let registry = Registry::new();
        let prometheus = opentelemetry_prometheus::exporter()
            .with_registry(registry.clone())
            .scope_info_enabled(false)
            .without_target_info()
            .build()
            .map_err(|error| error.to_string())?;
        let attributes = resource.iter().map(|(k, v)| KeyValue::new(k.clone(), v.clone()));
        let resource = Resource::builder_empty().with_attributes(attributes).build();
        let mut builder = SdkMeterProvider::builder()
            .with_resource(resource)
            .with_reader(prometheus)
            .with_view(|_: &opentelemetry_sdk::metrics::Instrument| {
                Stream::builder().with_cardinality_limit(SERIES).build().ok()
            });
        if let Some(push) = push {
            let reader = PeriodicReader::builder(push).with_interval(PERIOD).build();
            builder = builder.with_reader(reader);
        }
        Ok(Meters {
            provider: builder.build(),
            registry,
            exemplars: Exemplars::default(),
            gathering: Mutex::new(()),
        })
    }

    /// Where instruments come from.
    pub fn meter(&self) -> Meter {
        self.provider.meter("mcp-verdict")
    }

    /// The text of `/metrics`.
    ///
    /// # Errors
    /// When two instruments of one name disagree.
    pub fn prometheus(&self) -> Result<Vec<u8>, String> {
        let _one = self.gathering.lock().unwrap_or_else(PoisonError::into_inner);
        let mut text = Vec::new();
        let families = self.registry.gather();
        TextEncoder::new().encode(&families, &mut text).map_err(|error| error.to_string())?;
        Ok(text)
    }

    /// The same for who reads OpenMetrics: counts of verdicts with what the newest one came from.
    pub fn openmetrics(&self) -> String {
        let _one = self.gathering.lock().unwrap_or_else(PoisonError::into_inner);
        openmetrics::encode(&self.registry.gather(), &self.exemplars.by_series())
    }

    /// Counters and gauges of wanted names as they stand, in the order of `/metrics`.
    pub fn samples(&self, wanted: &dyn Fn(&str) -> bool) -> Vec<Sample> {
        let families = {
            let _one = self.gathering.lock().unwrap_or_else(PoisonError::into_inner);
            self.registry.gather()
        };
        let wanted = families.iter().filter(|family| wanted(family.name()));
        let single = wanted.filter(|family| family.get_field_type() != MetricType::HISTOGRAM);
        let metrics =
            single.flat_map(|family| family.get_metric().iter().map(move |m| (family, m)));
        metrics.map(|(family, metric)| sample(family, metric)).collect()
    }

    /// Pushes what was counted since the last push, and ends.
    pub fn shutdown(&self) {
        // Metrics that cannot be pushed at the end are not worth a failure.
        let _ = self.provider.shutdown_with_timeout(Duration::from_secs(2));
    }
}
