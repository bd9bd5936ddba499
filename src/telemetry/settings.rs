//! `service.telemetry`, resolved to plain values.

#[derive(Clone, Debug)]
pub struct Settings {
    /// `error`, `warn`, `info`, `debug` or `trace`.
    pub level: String,
    /// `host:port` of `/metrics`.
    pub metrics: Option<String>,
    /// `host:port` of `/`, `/readyz` and `/livez`.
    pub health: Option<String>,
    /// Attributes of our own resource, `service.name` first.
    pub resource: Vec<(String, String)>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            level: "info".into(),
            metrics: Some("127.0.0.1:8888".into()),
            health: Some("127.0.0.1:13133".into()),
            resource: vec![("service.name".into(), "mcp-verdict".into())],
        }
    }
}
