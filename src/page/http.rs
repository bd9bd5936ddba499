//! The API over HTTP: `POST /v1/contracts/check`, `GET /v1/contracts`, `/v1/chains`,
//! `/v1/chains/{id}`, `/v1/incidents`. JSON in, JSON out, errors as sentences.

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
use super::{check, contracts};

/// All paths, over what is published on a board.
pub fn router(board: Arc<Board>) -> Router {
    Router::new()
        .route("/v1/contracts/check", post(check_contract))
        .route("/v1/contracts", get(contracts_known))
        .route("/v1/chains", get(chains))
        .route("/v1/chains/{id}", get(chain))
        .route("/v1/incidents", get(incidents))
        .fallback(|| async { error(StatusCode::NOT_FOUND, PATHS) })
        .method_not_allowed_fallback(|| async { error(StatusCode::METHOD_NOT_ALLOWED, PATHS) })
        .with_state(board)
}

const PATHS: &str = "ask POST /v1/contracts/check, GET /v1/contracts, GET /v1/chains, \
    GET /v1/chains/{id} or GET /v1/incidents";

/// Numbers of google.rpc.Code, as in the errors of OTLP/HTTP.
fn code(status: StatusCode) -> u8 {
    match status {
        StatusCode::NOT_FOUND => 5,
        StatusCode::METHOD_NOT_ALLOWED => 12,
        _ => 3,
    }
}

fn error(status: StatusCode, says: &str) -> Response {
    answer(status, &json!({"code": code(status), "message": says}))
}

fn answer(status: StatusCode, body: &Value) -> Response {
    (status, [(CONTENT_TYPE, "application/json")], body.to_string()).into_response()
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

fn wanted(asked: Asked) -> Result<Wanted, Wrong> {
    asked.map(|Query(wanted)| wanted).map_err(|_| {
        Wrong(
            "the query cannot be read; chains have state, server, tool, limit and page_token, \
             incidents status, server, limit and page_token"
                .into(),
        )
    })
}

async fn chains(State(board): State<Arc<Board>>, asked: Asked) -> Response {
    let found = wanted(asked).and_then(|wanted| listing::chains(&board.recent(), &wanted));
    listed("chains", found)
}

async fn incidents(State(board): State<Arc<Board>>, asked: Asked) -> Response {
    let found = wanted(asked).and_then(|wanted| listing::incidents(&board.recent(), &wanted));
    listed("incidents", found)
}

fn listed<T: serde::Serialize>(name: &str, found: Result<Page<T>, Wrong>) -> Response {
    match found {
        Ok(page) => {
            let items: Vec<Value> = page.items.iter().map(|item| record(&**item)).collect();
            let next = Some(page.next).filter(|next| !next.is_empty());
            answer(StatusCode::OK, &json!({name: items, "next_page_token": next}))
        }
        Err(wrong) => wrong.into_response(),
    }
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
            let body = json!({"verdict": record(&***latest), "earlier": earlier});
            answer(StatusCode::OK, &body)
        }
        None => error(
            StatusCode::NOT_FOUND,
            "no chain has this id, or it is too long ago; GET /v1/chains lists those remembered",
        ),
    }
}
