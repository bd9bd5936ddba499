//! The page and the API over HTTP. JSON in, JSON out, errors as sentences.

use std::sync::Arc;

use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};

use super::board::Board;
use super::listing::{self, Page, Wanted};
use super::question::{self, Wrong};
use super::recent::Recent;
use super::{Vitals, assets, check, contracts, coverage, openapi, overview};
use crate::clock;

/// All paths, over what is published on a board.
pub fn router(board: Arc<Board>, vitals: Vitals) -> Router {
    let health = Router::new().route("/v1/health", get(health)).with_state(vitals);
    Router::new()
        .route("/", get(assets::document))
        .route("/static/{name}", get(assets::file))
        .route("/v1/contracts/check", post(check_contract))
        .route("/v1/contracts", get(contracts_known))
        .route("/v1/chains", get(chains))
        .route("/v1/chains/{id}", get(chain))
        .route("/v1/incidents", get(incidents))
        .route("/v1/sessions", get(sessions))
        .route("/v1/drifts", get(drifts))
        .route("/v1/overview", get(summed_up))
        .route("/v1/names", get(names))
        .route("/v1/coverage", get(covered))
        .route("/v1/openapi.json", get(described))
        .fallback(|| async { error(StatusCode::NOT_FOUND, PATHS) })
        .method_not_allowed_fallback(|| async { error(StatusCode::METHOD_NOT_ALLOWED, PATHS) })
        .with_state(board)
        .merge(health)
}

const PATHS: &str = "ask POST /v1/contracts/check, GET /v1/contracts, /v1/chains, \
    /v1/chains/{id}, /v1/incidents, /v1/sessions, /v1/drifts, /v1/overview, /v1/coverage, \
    /v1/names, \
    /v1/health or /v1/openapi.json; the page is at /";

/// Numbers of google.rpc.Code, as in the errors of OTLP/HTTP, and a word for programs.
fn kind(status: StatusCode) -> (u8, &'static str) {
    match status {
        StatusCode::NOT_FOUND => (5, "not_found"),
        StatusCode::METHOD_NOT_ALLOWED => (12, "method"),
        StatusCode::UNSUPPORTED_MEDIA_TYPE => (3, "media_type"),
        _ => (3, "invalid_argument"),
    }
}

fn error(status: StatusCode, says: &str) -> Response {
    let (code, reason) = kind(status);
    answer(status, &json!({"code": code, "reason": reason, "message": says}))
}

fn answer<T: serde::Serialize>(status: StatusCode, body: &T) -> Response {
    let body = serde_json::to_string(body).expect("texts and numbers can be printed");
    (status, [(CONTENT_TYPE, "application/json")], body).into_response()
}

impl IntoResponse for Wrong {
    fn into_response(self) -> Response {
        error(StatusCode::BAD_REQUEST, &self.0)
    }
}

async fn check_contract(
    State(board): State<Arc<Board>>,
    headers: HeaderMap,
    body: Bytes,
) -> Response {
    // A browser sends any other type to another site without asking first.
    let json = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let json = json.and_then(|value| value.split(';').next()).map(str::trim);
    if !json.is_some_and(|value| value.eq_ignore_ascii_case("application/json")) {
        return error(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send content-type: application/json");
    }
    match question::read(&body) {
        Ok(question) => {
            let answered = check::answer(&board.rules(), &board.catalogs(), &question);
            answer(StatusCode::OK, &question::answered(&question, &answered))
        }
        Err(wrong) => wrong.into_response(),
    }
}

async fn contracts_known(
    State(board): State<Arc<Board>>,
    asked: Result<Query<contracts::Wanted>, QueryRejection>,
) -> Response {
    let Ok(Query(wanted)) = asked else {
        let says = "the query cannot be read; contracts have server, tool, limit and page_token";
        return Wrong(says.into()).into_response();
    };
    match contracts::page(&board.rules(), &board.catalogs(), &wanted) {
        Ok(page) => answer(StatusCode::OK, &page),
        Err(wrong) => wrong.into_response(),
    }
}

type Asked = Result<Query<Wanted>, QueryRejection>;

/// The parameters of a list; another list's are a mistake.
fn wanted(asked: Asked, known: &str) -> Result<Wanted, Wrong> {
    asked.map(|Query(wanted)| wanted).map_err(|_| {
        Wrong(format!("the query cannot be read; this list has {known}, limit and page_token"))
    })
}

async fn chains(State(board): State<Arc<Board>>, asked: Asked) -> Response {
    let wanted = wanted(asked, "state, first_failed_layer, server, tool, agent, text");
    list(board, "chains", wanted, listing::chains).await
}

async fn incidents(State(board): State<Arc<Board>>, asked: Asked) -> Response {
    let wanted = wanted(asked, "status, server, owner");
    list(board, "incidents", wanted, listing::incidents).await
}

async fn sessions(State(board): State<Arc<Board>>, asked: Asked) -> Response {
    let wanted = wanted(asked, "convergence, text");
    list(board, "sessions", wanted, listing::sessions).await
}

async fn drifts(State(board): State<Arc<Board>>, asked: Asked) -> Response {
    let wanted = wanted(asked, "server, tool, grade");
    list(board, "drifts", wanted, listing::drifts).await
}

/// One page of a list. Who looks for what is rare looks at all there is: not on a thread that
/// receives.
async fn list<T: serde::Serialize + Send + Sync + 'static>(
    board: Arc<Board>,
    name: &'static str,
    wanted: Result<Wanted, Wrong>,
    find: fn(&Recent, &Wanted) -> Result<Page<T>, Wrong>,
) -> Response {
    let found = tokio::task::spawn_blocking(move || {
        let page = wanted.and_then(|wanted| find(&board.recent(), &wanted))?;
        let items: Vec<Value> = page.items.iter().map(|item| record(&**item)).collect();
        let next = Some(page.next).filter(|next| !next.is_empty());
        Ok(json!({name: items, "next_page_token": next}))
    });
    // A search does not panic, and the process ends without waiting for one.
    let found = found.await.unwrap_or_else(|_| Err(Wrong("it was broken off".into())));
    found.map_or_else(Wrong::into_response, |body| answer(StatusCode::OK, &body))
}

async fn summed_up(
    State(board): State<Arc<Board>>,
    asked: Result<Query<overview::Wanted>, QueryRejection>,
) -> Response {
    let Ok(Query(wanted)) = asked else {
        return Wrong("the query cannot be read; the overview has minutes".into()).into_response();
    };
    let found = overview::overview(&board.recent(), &wanted, clock::now().wall);
    found.map_or_else(Wrong::into_response, |body| answer(StatusCode::OK, &body))
}

async fn covered(
    State(board): State<Arc<Board>>,
    asked: Result<Query<coverage::Wanted>, QueryRejection>,
) -> Response {
    let Ok(Query(wanted)) = asked else {
        let says = "the query cannot be read; the coverage has server, tool and limit";
        return Wrong(says.into()).into_response();
    };
    let recent = board.recent();
    let found = tokio::task::spawn_blocking(move || coverage::coverage(&recent, &wanted)).await;
    let found = found.unwrap_or_else(|_| Err(Wrong("it was broken off".into())));
    found.map_or_else(Wrong::into_response, |body| answer(StatusCode::OK, &body))
}

async fn names(State(board): State<Arc<Board>>) -> Response {
    answer(StatusCode::OK, &overview::names(&board.recent()))
}

async fn described() -> Response {
    answer(StatusCode::OK, &openapi::document())
}

async fn health(State(vitals): State<Vitals>) -> Response {
    let found = tokio::task::spawn_blocking(move || vitals.whole()).await;
    found.map_or_else(
        |_| error(StatusCode::INTERNAL_SERVER_ERROR, "it was broken off"),
        |body| answer(StatusCode::OK, &body),
    )
}

/// As `replay --format json` prints it.
fn record<T: serde::Serialize>(item: &T) -> Value {
    serde_json::to_value(item).unwrap_or(Value::Null)
}

async fn chain(State(board): State<Arc<Board>>, Path(id): Path<String>) -> Response {
    let recent = board.recent();
    match recent.chain(&id.to_ascii_lowercase()).split_first() {
        Some((latest, earlier)) => {
            let earlier: Vec<Value> = earlier.iter().map(|verdict| record(&***verdict)).collect();
            let evidence = board.questions.ask(latest.id).await;
            let body =
                json!({"verdict": record(&***latest), "earlier": earlier, "evidence": evidence});
            answer(StatusCode::OK, &body)
        }
        None => error(
            StatusCode::NOT_FOUND,
            "no chain has this id, or it is too long ago; GET /v1/chains lists those remembered",
        ),
    }
}
