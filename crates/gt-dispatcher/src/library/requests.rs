//! What sessions ask of the library.

use gt_ir::{RequestId, SessionId};

use crate::peer::PeerId;

/// A request for a publication that cannot be read yet.
pub(crate) struct WaitingFind {
    pub client: PeerId,
    pub request: RequestId,
    pub publication: SessionId,
}

/// What a batch asks of the library besides its answers.
#[derive(Default)]
pub(crate) struct PlannedRequests {
    /// The publications that have begun.
    pub begun: Vec<SessionId>,
    /// The requests to withdraw publications, and their names.
    pub withdrawals: Vec<(RequestId, String)>,
    /// The publications that cannot be stored.
    pub refused: Vec<RefusedPublication>,
}

/// A publication that cannot be stored.
pub(crate) struct RefusedPublication {
    pub id: SessionId,
    pub reason: String,
    /// Whether the answer to the request reports it to its owner.
    pub is_reported: bool,
}

/// What a request to publish comes to.
pub(crate) enum Begun {
    /// A new publication, or one whose values are to be stored once more.
    Store(SessionId),
    /// The session is replayed, and has published it before, under this name.
    Done(String),
}
