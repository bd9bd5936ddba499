//! Records as protobuf messages: the same fields, names and words as the printed JSON.

use crate::model::findings::Finding;
use crate::model::record::*;
use crate::proto;

/// Absent stays absent.
fn text(value: &Option<impl ToString>) -> Option<String> {
    value.as_ref().map(ToString::to_string)
}

fn texts(values: &[impl ToString]) -> Vec<String> {
    values.iter().map(ToString::to_string).collect()
}

impl From<&Record> for proto::Record {
    fn from(record: &Record) -> Self {
        use proto::record::Record as Kind;
        let record = match record {
            Record::Verdict(verdict) => Kind::Verdict(verdict.as_ref().into()),
            Record::Session(session) => Kind::Session(session.into()),
            Record::ContractDrift(drift) => Kind::ContractDrift(drift.into()),
            Record::Incident(incident) => Kind::Incident(incident.into()),
            Record::Summary(summary) => Kind::Summary(summary.into()),
        };
        Self { record: Some(record) }
    }
}

impl From<&Verdict> for proto::Verdict {
    fn from(verdict: &Verdict) -> Self {
        Self {
            id: verdict.id.to_string(),
            revision: verdict.revision,
            supersedes: verdict.supersedes,
            scope: verdict.scope.to_string(),
            session_id: text(&verdict.session_id),
            era: verdict.era.to_string(),
            protocol_version: text(&verdict.protocol_version),
            transport: text(&verdict.transport),
            agent: text(&verdict.agent),
            server: verdict.server.to_string(),
            method: verdict.method.to_string(),
            tool: text(&verdict.tool),
            request_id: text(&verdict.request_id),
            operation_id: text(&verdict.operation_id),
            attempt: verdict.attempt,
            state: verdict.state.to_string(),
            reason: text(&verdict.reason),
            lifecycle: verdict.lifecycle.to_string(),
            layers: Some((&verdict.layers).into()),
            failure_layers: Some((&verdict.failure_layers).into()),
            first_failed_layer: text(&verdict.first_failed_layer),
            convergence: text(&verdict.convergence),
            contract: Some(proto::Contract {
                status: text(&verdict.contract.status),
                digest: text(&verdict.contract.digest),
            }),
            effect: text(&verdict.effect),
            outcome: Some(proto::Outcome {
                status: text(&verdict.outcome.status),
                method: text(&verdict.outcome.method),
            }),
            confidence: verdict.confidence.to_string(),
            findings: verdict.findings.iter().map(Into::into).collect(),
            next_step: verdict.next_step.to_string(),
            owner: verdict.owner.to_string(),
            retry: verdict.retry.to_string(),
            trace_id: text(&verdict.trace_id),
            client_span_id: text(&verdict.client_span_id),
            server_span_id: text(&verdict.server_span_id),
            start_time: verdict.start_time,
            end_time: verdict.end_time,
            evidence_time: verdict.evidence_time,
        }
    }
}

impl From<&Layers> for proto::Layers {
    fn from(layers: &Layers) -> Self {
        Self {
            session: layers.session.to_string(),
            catalog: layers.catalog.to_string(),
            request: layers.request.to_string(),
            effect: layers.effect.to_string(),
            outcome: layers.outcome.to_string(),
        }
    }
}

impl From<&FailureLayers> for proto::FailureLayers {
    fn from(layers: &FailureLayers) -> Self {
        Self {
            transport: layers.transport.to_string(),
            protocol: layers.protocol.to_string(),
            authority: layers.authority.to_string(),
            execution: layers.execution.to_string(),
            outcome: layers.outcome.to_string(),
        }
    }
}

impl From<&Finding> for proto::Finding {
    fn from(finding: &Finding) -> Self {
        Self {
            code: finding.code.to_string(),
            blame: finding.blame.to_string(),
            strength: finding.strength.to_string(),
            confidence: finding.confidence.to_string(),
            detail: text(&finding.detail),
            spans: texts(&finding.spans),
        }
    }
}

impl From<&Session> for proto::Session {
    fn from(session: &Session) -> Self {
        Self {
            scope: session.scope.to_string(),
            session_id: text(&session.session_id),
            era: session.era.to_string(),
            protocol_version: text(&session.protocol_version),
            state: session.state.to_string(),
            convergence: session.convergence.to_string(),
            discovered_digest: text(&session.discovered_digest),
            installed_digest: text(&session.installed_digest),
            tool_count: session.tool_count,
            pages: session.pages,
            requests: session.requests,
            findings: session.findings.iter().map(Into::into).collect(),
        }
    }
}

impl From<&Drift> for proto::ContractDrift {
    fn from(drift: &Drift) -> Self {
        let change = |change: &Change| proto::Change {
            pointer: change.pointer.to_string(),
            kind: change.kind.to_string(),
            grade: change.grade.to_string(),
        };
        Self {
            server: drift.server.to_string(),
            tool: drift.tool.to_string(),
            grade: drift.grade.to_string(),
            scheme: drift.scheme.to_string(),
            old_digest: drift.old_digest.to_string(),
            new_digest: text(&drift.new_digest),
            changes: drift.changes.iter().map(change).collect(),
            confidence: drift.confidence.to_string(),
            first_seen: drift.first_seen,
        }
    }
}

impl From<&Incident> for proto::Incident {
    fn from(incident: &Incident) -> Self {
        Self {
            layer: incident.layer.to_string(),
            reason: incident.reason.to_string(),
            server: incident.server.to_string(),
            discriminator: text(&incident.discriminator),
            status: incident.status.to_string(),
            count: incident.count,
            agents: texts(&incident.agents),
            tools: texts(&incident.tools),
            first_seen: incident.first_seen,
            last_seen: incident.last_seen,
            resolved_at: incident.resolved_at,
            owner: incident.owner.to_string(),
            next_step: incident.next_step.to_string(),
        }
    }
}

impl From<&Summary> for proto::Summary {
    fn from(summary: &Summary) -> Self {
        let states = summary.states.iter().map(|(state, n)| (state.to_string(), *n));
        let layers = summary.first_failed_layers.iter().map(|(layer, n)| (layer.to_string(), *n));
        Self {
            attempts: summary.attempts,
            protocol_success: summary.protocol_success,
            verified_success: summary.verified_success,
            protocol_success_rate: summary.protocol_success_rate,
            verified_success_rate: summary.verified_success_rate,
            states: states.collect(),
            first_failed_layers: layers.collect(),
            incidents: summary.incidents,
        }
    }
}
