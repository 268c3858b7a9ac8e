//! The link to each worker, and its state.

use std::time::Instant;

use gt_ir::WorkerId;

use crate::server::LinkId;

/// The link to a worker.
pub(super) struct Route {
    pub(super) link: LinkId,
    pub(super) kind: RouteKind,
}

impl Route {
    /// Whether messages arrive on it.
    pub(super) fn is_open(&self) -> bool {
        matches!(
            self.kind,
            RouteKind::Accepted | RouteKind::Dialed { state: DialState::Open(_), .. }
        )
    }
}

pub(super) enum RouteKind {
    /// The other worker has opened it.
    Accepted,
    /// This one has opened it, to this endpoint.
    Dialed { endpoint: String, since: Instant, state: DialState },
    /// It has failed, or could not be opened; `is_new` until [`PeerLinks::failed`] has returned it.
    Failed { is_new: bool, was_open: bool },
}

/// A link that has failed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FailedLink {
    pub worker: WorkerId,
    /// Whether messages may have arrived on it; if not, none has.
    pub was_open: bool,
}

/// The state of a link that this worker has opened, with the descriptor of its connection.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum DialState {
    Connecting,
    /// The other machine has answered; the worker has not.
    Connected(u32),
    Open(u32),
}

/// The id of the link with a number that this worker opens. ZeroMQ's own ids, of links that others
/// open, have five bytes.
pub(super) fn dialed_link(number: u64) -> LinkId {
    [&b"d"[..], &number.to_le_bytes()].concat()
}

pub(super) fn is_dialed(link: &LinkId) -> bool {
    link.first() == Some(&b'd')
}
