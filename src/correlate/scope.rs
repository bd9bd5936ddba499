//! The scope of a request (judgment.md §4.2) and the server it speaks to (§4.7).

use super::chain::Chain;
use crate::model::ids::{Digest16, Name, TraceId};
use crate::model::words::{Era, Transport};

/// What used to be called a session, strongest first.
#[derive(
    Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize,
)]
pub enum ScopeKey {
    /// A session id seen on either half.
    Session(Name),
    /// A stdio process pair: client, server.
    Stdio(Digest16, Digest16),
    /// Client instance, server origin, authorization context.
    Modern(Digest16, Name, Option<Digest16>),
    /// The client's, else the server's resource instance.
    Instance(Digest16),
    Trace(TraceId),
}

impl ScopeKey {
    /// Opaque, stable text.
    pub fn name(&self) -> Name {
        let digest = match self {
            Self::Session(id) => Digest16::of(&[b"session", id.as_bytes()]),
            Self::Stdio(a, b) => Digest16::of(&[b"stdio", &a.0, &b.0]),
            Self::Modern(client, origin, auth) => {
                let auth = auth.map_or(Vec::new(), |digest| digest.0.to_vec());
                Digest16::of(&[b"modern", &client.0, origin.as_bytes(), &auth])
            }
            Self::Instance(process) => Digest16::of(&[b"instance", &process.0]),
            Self::Trace(trace) => Digest16::of(&[b"trace", &trace.0]),
        };
        Name::new(&digest.to_string())
    }

    /// Only scopes keyed by a session id raise findings about request ids (§4.6).
    pub fn keyed_by_session(&self) -> bool {
        matches!(self, Self::Session(_))
    }
}

/// Whom a process was seen to talk to; one partner alone may be assumed where a half is missing.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Partners {
    /// Over stdio, the other process.
    pub stdio: Option<Digest16>,
    /// As a modern client, the server's origin.
    pub origin: Option<Name>,
}

/// How a server was identified, strongest first.
#[derive(
    Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, serde::Serialize, serde::Deserialize,
)]
pub enum ServerName {
    Address(Name),
    Service(Name),
    SelfReported(Name),
}

impl ServerName {
    pub fn name(&self) -> &Name {
        match self {
            Self::Address(name) | Self::Service(name) | Self::SelfReported(name) => name,
        }
    }

    /// What one chain says of its server.
    pub fn of(chain: &Chain) -> Option<Self> {
        let address = chain.client().and_then(|side| side.half.server_address.clone());
        let service = chain.server().and_then(|side| side.process().service.clone());
        let own = chain.sides().find_map(|side| side.half.server_name.clone());
        address.map(Self::Address).or(service.map(Self::Service)).or(own.map(Self::SelfReported))
    }
}

/// `partners_of` tells what is known of a process beyond this chain.
pub fn key_of(chain: &Chain, partners_of: impl Fn(&Digest16) -> Partners) -> ScopeKey {
    if let Some(id) = chain.session_id() {
        return ScopeKey::Session(id.clone());
    }
    let client = chain.client().map(|side| side.process().key);
    let server = chain.server().map(|side| side.process().key);
    if chain.transport() == Some(Transport::Stdio) {
        let partner = |process: Option<Digest16>| process.and_then(|key| partners_of(&key).stdio);
        let client = client.or_else(|| partner(server));
        let server = server.or_else(|| partner(client));
        if let (Some(client), Some(server)) = (client, server) {
            return ScopeKey::Stdio(client, server);
        }
    }
    if let (Era::Modern, Some(client)) = (chain.era(), client) {
        let origin = ServerName::of(chain).map(|server| server.name().clone());
        if let Some(origin) = origin.or_else(|| partners_of(&client).origin) {
            return ScopeKey::Modern(client, origin, chain.auth_context());
        }
    }
    match client.or(server) {
        Some(process) => ScopeKey::Instance(process),
        None => ScopeKey::Trace(chain.key().trace),
    }
}
