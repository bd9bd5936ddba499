//! The API over gRPC, as `proto/mcp_verdict/v1/service.proto` has it.

use std::sync::Arc;

use tonic::{Request, Response, Status};

use super::board::Board;
use super::check::{self, Question};
use super::listing::{self, Wanted};
use super::question::{Raw, Wrong, word};
use crate::catalog::grade::Change;
use crate::model::digest::Digest;
use crate::model::ids::Name;
use crate::proto::check_contract_request::Held;
use crate::proto::mcp_verdict_server::McpVerdict;
use crate::proto::*;

/// Answers from a board.
pub struct Api(pub Arc<Board>);

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
        let answer = check::answer(&self.0.rules(), &self.0.catalogs(), &question);
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
        let page = listing::chains(&self.0.recent(), &wanted)?;
        let chains = page.items.iter().map(|verdict| (&***verdict).into()).collect();
        Ok(Response::new(ListChainsResponse { chains, next_page_token: page.next }))
    }

    async fn get_chain(&self, request: Request<GetChainRequest>) -> Answer<GetChainResponse> {
        let id = request.into_inner().id.to_ascii_lowercase();
        let recent = self.0.recent();
        let all = recent.chain(&id);
        let Some((latest, earlier)) = all.split_first() else {
            return Err(Status::not_found("no chain has this id, or it is too long ago"));
        };
        Ok(Response::new(GetChainResponse {
            verdict: Some(Verdict::from(&****latest)),
            earlier: earlier.iter().map(|verdict| Verdict::from(&****verdict)).collect(),
            evidence: self.0.questions.ask(latest.id).await.map(EvidenceChain::from),
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
        let page = listing::incidents(&self.0.recent(), &wanted)?;
        let incidents = page.items.iter().map(|incident| (&**incident).into()).collect();
        Ok(Response::new(ListIncidentsResponse { incidents, next_page_token: page.next }))
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
