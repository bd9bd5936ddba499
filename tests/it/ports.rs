//! Settings by which every listener of a started program takes a free port of loopback.

pub const FREE: [&str; 5] = [
    "receivers.otlp.protocols.grpc.endpoint=127.0.0.1:0",
    "receivers.otlp.protocols.http.endpoint=127.0.0.1:0",
    "service.telemetry.metrics.endpoint=127.0.0.1:0",
    "service.telemetry.health.endpoint=127.0.0.1:0",
    "service.telemetry.page.endpoint=127.0.0.1:0",
];
