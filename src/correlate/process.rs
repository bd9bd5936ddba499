//! Which roles a process plays, from the records that say it for sure (judgment.md §4.7): needed
//! where a record does not say which end it saw, and for `ping`, which both directions know.

use crate::model::fact::*;

#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize, serde::Deserialize)]
pub struct Roles {
    pub client: bool,
    pub server: bool,
}

/// What one record says about its process.
pub fn role_of(fact: &Fact) -> Option<Roles> {
    let half = fact.half()?;
    let client = Roles { client: true, server: false };
    let server = Roles { client: false, server: true };
    match (half.direction, half.end) {
        (Direction::ClientToServer, End::Asking) => Some(client),
        (Direction::ClientToServer, End::Answering) => Some(server),
        (Direction::ServerToClient, End::Asking) => Some(server),
        (Direction::ServerToClient, End::Answering) => Some(client),
        _ => None,
    }
}

impl Roles {
    /// The end that a record of unknown end speaks for.
    pub fn end(self, direction: Direction) -> End {
        match (self, direction) {
            (Roles { client: true, server: false }, Direction::ServerToClient) => End::Answering,
            (Roles { client: true, server: false }, _) => End::Asking,
            (Roles { client: false, server: true }, Direction::ServerToClient) => End::Asking,
            (Roles { client: false, server: true }, _) => End::Answering,
            _ => End::Unknown,
        }
    }
}
