//! The endpoints that operators' tools ask: `/metrics`, and `/`, `/readyz`, `/livez`.

use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use tokio::net::TcpListener;

use super::health::{Answer, Health, Status};
use super::{Meters, openmetrics};

/// Serves `/metrics` until the process ends.
pub async fn metrics(listener: TcpListener, meters: Arc<Meters>) {
    let router = Router::new().route("/metrics", get(scrape)).with_state(meters);
    serve(listener, router).await;
}

async fn scrape(State(meters): State<Arc<Meters>>, headers: HeaderMap) -> Response {
    let accepts = headers.get(header::ACCEPT).and_then(|accept| accept.to_str().ok());
    if accepts.is_some_and(|kinds| kinds.contains("application/openmetrics-text")) {
        let gathered = tokio::task::spawn_blocking(move || meters.openmetrics()).await;
        return match gathered {
            Ok(text) => ([(header::CONTENT_TYPE, openmetrics::CONTENT_TYPE)], text).into_response(),
            Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
        };
    }
    const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";
    let gathered = tokio::task::spawn_blocking(move || meters.prometheus()).await;
    match gathered {
        Ok(Ok(text)) => ([(header::CONTENT_TYPE, TEXT)], text).into_response(),
        Ok(Err(why)) => (StatusCode::INTERNAL_SERVER_ERROR, why).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// Serves health until the process ends.
pub async fn health(listener: TcpListener, health: Health) {
    let ready = |answer: &Answer| answer.status == Status::Ok;
    let alive = |answer: &Answer| answer.status != Status::Dead;
    let router = Router::new()
        .route("/", get(move |State(health): State<Health>| async move { answer(&health, ready) }))
        .route(
            "/readyz",
            get(move |State(health): State<Health>| async move { answer(&health, ready) }),
        )
        .route(
            "/livez",
            get(move |State(health): State<Health>| async move { answer(&health, alive) }),
        )
        .with_state(health);
    serve(listener, router).await;
}

fn answer(health: &Health, good: fn(&Answer) -> bool) -> Response {
    let answer = health.ask();
    let status = match good(&answer) {
        true => StatusCode::OK,
        false => StatusCode::SERVICE_UNAVAILABLE,
    };
    let body = serde_json::to_vec(&answer).unwrap_or_default();
    (status, [(header::CONTENT_TYPE, "application/json")], body).into_response()
}

async fn serve(listener: TcpListener, router: Router) {
    // It ends with the process; a listener that fails is told by who asks it.
    let _ = axum::serve(listener, router).await;
}
