//! The API over gRPC, as `proto/mcp_verdict/v1/service.proto` has it.

mod health;
mod services;
pub mod watch;

use std::sync::Arc;

use tonic::{Request, Response, Status};

use super::board::Board;
use super::check::{self, Question};
use super::listing::{self, Page, Wanted};
use super::question::{Raw, Wrong, word};
use super::recent::Recent;
use super::{Vitals, contracts, coverage, overview};
use crate::catalog::grade::Change;
use crate::clock;
use crate::model::digest::Digest;
use crate::model::ids::Name;
use crate::proto::check_contract_request::Held;
use crate::proto::mcp_verdict_server::McpVerdict;
use crate::proto::*;
use watch::Verdicts;

pub use services::services;

/// Answers from a board, and how the process does.
pub struct Api {
    pub board: Arc<Board>,
    pub vitals: Vitals,
}

impl Api {
    /// One page of a list. Who looks for what is rare looks at all there is: not on a thread that
    /// receives.
    async fn page<T: Send + Sync + 'static>(
        &self,
        wanted: Wanted,
        find: fn(&Recent, &Wanted) -> Result<Page<T>, Wrong>,
    ) -> Result<Page<T>, Status> {
        let recent = self.board.recent();
        Ok(aside(move || find(&recent, &wanted)).await??)
    }
}

/// What takes a while, on a thread of its own.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Status> {
    let done = tokio::task::spawn_blocking(work).await;
    // It does not panic, and the process ends without waiting for it.
    done.map_err(|_| Status::unavailable("it was broken off: ask again"))
}

impl From<Wrong> for Status {
    fn from(wrong: Wrong) -> Self {
        Status::invalid_argument(wrong.0)
    }
}

type Answer<T> = Result<Response<T>, Status>;

#[tonic::async_trait]
impl McpVerdict for Api {
    async fn check_contract(
        &self,
        request: Request<CheckContractRequest>,
    ) -> Answer<CheckContractResponse> {
        let asked = request.into_inner();
        let (digest, definition) = match asked.held {
            Some(Held::Digest(digest)) => (Some(digest), None),
            Some(Held::Definition(text)) => (None, Some(text.into())),
            None => (None, None),
        };
        let raw = Raw {
            server: asked.server,
            tool: asked.tool,
            auth_context: asked.auth_context,
            client: asked.client,
            digest,
            definition,
        };
        let question = Question::of(raw)?;
        let answer = check::answer(&self.board.rules(), &self.board.catalogs(), &question);
        let drift = answer.drift.as_ref();
        Ok(Response::new(CheckContractResponse {
            answer: word(&answer).to_owned(),
            reason: answer.reason.as_str().to_owned(),
            expected_digest: answer.expected.as_ref().map(Digest::to_string),
            changes: drift.map_or(&[][..], |drift| &drift.changes).iter().map(change).collect(),
            held_digest: question.held.digest().map(Digest::to_string),
            grade: drift.map(|drift| drift.grade.to_string()),
            omitted: drift.map_or(0, |drift| u32::try_from(drift.omitted).unwrap_or(u32::MAX)),
        }))
    }

    async fn list_chains(&self, request: Request<ListChainsRequest>) -> Answer<ListChainsResponse> {
        let asked = request.into_inner();
        let wanted = Wanted {
            state: asked.state,
            first_failed_layer: asked.first_failed_layer,
            server: asked.server,
            tool: asked.tool,
            agent: asked.agent,
            text: asked.text,
            limit: some(asked.limit),
            page_token: asked.page_token,
            ..Wanted::default()
        };
        let page = self.page(wanted, listing::chains).await?;
        let chains = page.items.iter().map(|verdict| (&***verdict).into()).collect();
        Ok(Response::new(ListChainsResponse { chains, next_page_token: page.next }))
    }

    async fn get_chain(&self, request: Request<GetChainRequest>) -> Answer<GetChainResponse> {
        let id = request.into_inner().id.to_ascii_lowercase();
        let recent = self.board.recent();
        let all = recent.chain(&id);
        let Some((latest, earlier)) = all.split_first() else {
            return Err(Status::not_found("no chain has this id, or it is too long ago"));
        };
        Ok(Response::new(GetChainResponse {
            verdict: Some(Verdict::from(&****latest)),
            earlier: earlier.iter().map(|verdict| Verdict::from(&****verdict)).collect(),
            evidence: self.board.questions.ask(latest.id).await.map(EvidenceChain::from),
        }))
    }

    async fn list_incidents(
        &self,
        request: Request<ListIncidentsRequest>,
    ) -> Answer<ListIncidentsResponse> {
        let ListIncidentsRequest { status, limit, server, page_token, owner } =
            request.into_inner();
        let limit = some(limit);
        let wanted = Wanted { status, owner, server, limit, page_token, ..Wanted::default() };
        let page = self.page(wanted, listing::incidents).await?;
        let incidents = page.items.iter().map(|incident| (&**incident).into()).collect();
        Ok(Response::new(ListIncidentsResponse { incidents, next_page_token: page.next }))
    }

    async fn list_sessions(
        &self,
        request: Request<ListSessionsRequest>,
    ) -> Answer<ListSessionsResponse> {
        let ListSessionsRequest { convergence, text, limit, page_token } = request.into_inner();
        let limit = some(limit);
        let wanted = Wanted { convergence, text, limit, page_token, ..Wanted::default() };
        let page = self.page(wanted, listing::sessions).await?;
        let sessions = page.items.iter().map(|session| (&**session).into()).collect();
        Ok(Response::new(ListSessionsResponse { sessions, next_page_token: page.next }))
    }

    async fn list_drifts(&self, request: Request<ListDriftsRequest>) -> Answer<ListDriftsResponse> {
        let ListDriftsRequest { server, tool, grade, limit, page_token } = request.into_inner();
        let limit = some(limit);
        let wanted = Wanted { server, tool, grade, limit, page_token, ..Wanted::default() };
        let page = self.page(wanted, listing::drifts).await?;
        let drifts = page.items.iter().map(|drift| (&**drift).into()).collect();
        Ok(Response::new(ListDriftsResponse { drifts, next_page_token: page.next }))
    }

    async fn list_contracts(
        &self,
        request: Request<ListContractsRequest>,
    ) -> Answer<ListContractsResponse> {
        let ListContractsRequest { server, tool, limit, page_token } = request.into_inner();
        let wanted = contracts::Wanted { server, tool, limit: some(limit), page_token };
        let (rules, catalogs) = (self.board.rules(), self.board.catalogs());
        let page = aside(move || contracts::page(&rules, &catalogs, &wanted)).await??;
        Ok(Response::new(page))
    }

    async fn get_overview(
        &self,
        request: Request<GetOverviewRequest>,
    ) -> Answer<GetOverviewResponse> {
        let wanted = overview::Wanted { minutes: request.into_inner().minutes };
        let found = overview::overview(&self.board.recent(), &wanted, clock::now().wall)?;
        Ok(Response::new(found))
    }

    async fn get_coverage(
        &self,
        request: Request<GetCoverageRequest>,
    ) -> Answer<GetCoverageResponse> {
        let GetCoverageRequest { server, tool, limit } = request.into_inner();
        let wanted = coverage::Wanted { server, tool, limit: some(limit) };
        let recent = self.board.recent();
        Ok(Response::new(aside(move || coverage::coverage(&recent, &wanted)).await??))
    }

    async fn get_names(&self, _: Request<GetNamesRequest>) -> Answer<GetNamesResponse> {
        Ok(Response::new(overview::names(&self.board.recent())))
    }

    async fn get_health(&self, _: Request<GetHealthRequest>) -> Answer<GetHealthResponse> {
        let vitals = self.vitals.clone();
        Ok(Response::new(aside(move || vitals.whole()).await?))
    }

    type WatchVerdictsStream = Verdicts;

    async fn watch_verdicts(&self, request: Request<WatchVerdictsRequest>) -> Answer<Verdicts> {
        let asked = request.into_inner();
        let wanted = Wanted {
            state: asked.state,
            first_failed_layer: asked.first_failed_layer,
            server: asked.server,
            tool: asked.tool,
            agent: asked.agent,
            text: asked.text,
            ..Wanted::default()
        };
        Ok(Response::new(watch::watch(self.board.clone(), &wanted, asked.remembered)?))
    }
}

/// Zero is protobuf's word for nothing said.
fn some(limit: u32) -> Option<u32> {
    Some(limit).filter(|limit| *limit > 0)
}

fn change(change: &Change) -> LocatedChange {
    LocatedChange {
        pointer: Name::new(&change.pointer).to_string(),
        kind: change.kind.to_string(),
        grade: change.grade.to_string(),
        old_digest: change.old.as_ref().map(Digest::to_string),
        new_digest: change.new.as_ref().map(Digest::to_string),
    }
}
