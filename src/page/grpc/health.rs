//! The standard health service, `grpc.health.v1.Health`, from what the health port answers from.
//!
//! Promises: a check is of now; a watch tells within [`EVERY`].

use std::time::Duration;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};
use tonic_health::pb::health_check_response::ServingStatus;
use tonic_health::pb::health_server::Health;
use tonic_health::pb::{HealthCheckRequest, HealthCheckResponse};

use super::super::{Standing, Vitals};

/// How often a watched process is asked.
pub const EVERY: Duration = Duration::from_secs(1);

/// What is ready with the process as a whole.
const SERVICES: [&str; 7] = [
    "",
    "readyz",
    "mcp_verdict.v1.McpVerdict",
    "opentelemetry.proto.collector.trace.v1.TraceService",
    "opentelemetry.proto.collector.logs.v1.LogsService",
    "opentelemetry.proto.collector.metrics.v1.MetricsService",
    "opentelemetry.proto.collector.profiles.v1development.ProfilesService",
];

/// Answers from a process.
pub struct Checks(pub Vitals);

impl Checks {
    fn status(&self, service: &str) -> ServingStatus {
        status(service, self.0.standing())
    }
}

fn status(service: &str, Standing { ready, alive }: Standing) -> ServingStatus {
    let good = match service {
        "livez" => alive,
        known if SERVICES.contains(&known) => ready,
        _ => return ServingStatus::ServiceUnknown,
    };
    if good { ServingStatus::Serving } else { ServingStatus::NotServing }
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}

#[tonic::async_trait]
impl Health for Checks {
    async fn check(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        match self.status(&request.get_ref().service) {
            ServingStatus::ServiceUnknown => Err(Status::not_found(
                "there is no such service here; send \"\" or readyz, livez, or a service's name",
            )),
            known => Ok(Response::new(response(known))),
        }
    }

    type WatchStream = ReceiverStream<Result<HealthCheckResponse, Status>>;

    async fn watch(
        &self,
        request: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let (checks, service) = (Checks(self.0.clone()), request.into_inner().service);
        let (send, receive) = mpsc::channel(1);
        tokio::spawn(async move {
            let mut said = None;
            loop {
                let now = checks.status(&service);
                if said != Some(now) && send.send(Ok(response(now))).await.is_err() {
                    return;
                }
                said = Some(now);
                tokio::select! {
                    () = send.closed() => return,
                    () = tokio::time::sleep(EVERY) => {}
                }
            }
        });
        Ok(Response::new(ReceiverStream::new(receive)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn life_and_readiness_are_asked_apart() {
        let waits = Standing { ready: false, alive: true };
        assert_eq!(status("livez", waits), ServingStatus::Serving);
        for service in SERVICES {
            assert_eq!(status(service, waits), ServingStatus::NotServing, "{service}");
        }
        assert_eq!(status("", Standing { ready: true, alive: true }), ServingStatus::Serving);
        let dead = Standing { ready: false, alive: false };
        assert_eq!(status("livez", dead), ServingStatus::NotServing);
        assert_eq!(status("other", waits), ServingStatus::ServiceUnknown);
    }
}
