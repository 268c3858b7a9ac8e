//! Scheduling policies: how a device's time, or the dispatcher's, is divided between sessions.
//!
//! A policy has no clock and no queue. Its caller reports the sessions that exist, asks which of those
//! with work is next, and reports the device time that its turn used.
//!
//! - [`fair`]: equal shares, by weights; [`fifo`]: in the order of arrival; [`priority`]: the
//!   highest first.
//! - [`think`]: how long sessions take from an answer to their next question.

mod fair;
mod fifo;
mod priority;
mod think;

use std::fmt::Debug;
use std::hash::Hash;

use gt_ir::entitlement::{Entitlement, PolicyKind};

pub use fair::{Fair, QUANTUM, SLICE};
pub use fifo::Fifo;
pub use priority::Priority;
pub use think::ThinkTimes;

/// What a caller names its sessions by. Among equals the lower one is first.
pub trait SessionKey: Copy + Ord + Hash + Debug + Send + 'static {}

impl<K: Copy + Ord + Hash + Debug + Send + 'static> SessionKey for K {}

/// Chooses whose turn is next.
pub trait Policy<K: SessionKey>: Send {
    /// Adds a session, or updates its weights.
    fn admit(&mut self, session: K, entitlement: &Entitlement);

    /// Removes a session.
    fn retire(&mut self, session: K);

    /// A session that was idle has work now.
    fn wake(&mut self, session: K);

    /// Moves a session to the front, within its fair share: its lanes on other devices wait for its lane
    /// on this one.
    fn boost(&mut self, _session: K) {}

    /// Returns the session that is next, as an index into `ready`, which has no duplicates; `None` if it
    /// is empty.
    fn peek(&self, ready: &[K]) -> Option<usize>;

    /// Like [`Policy::peek`], for a session that is served now.
    fn next(&mut self, ready: &[K]) -> Option<usize> {
        self.peek(ready)
    }

    /// Whether the device stays reserved for a session that waits for data from its lanes on other
    /// devices: it would be served before all that are `ready`. Not while a lower boosted session is
    /// ready: of two sessions with reservations, the lower one has priority.
    fn reserves(&self, _session: K, _ready: &[K]) -> bool {
        false
    }

    /// Whether a session that is idle would be served before all that are `ready` by what it has used.
    fn is_behind(&self, _session: K, _ready: &[K]) -> bool {
        false
    }

    /// Charges a session for `cost` nanoseconds of the device's, or the dispatcher's, time.
    fn charge(&mut self, session: K, cost: u64);
}

/// Returns a new policy of this kind, by which a session may get ahead of its equals by `slice`
/// nanoseconds before another is served.
pub fn policy<K: SessionKey>(policy_kind: PolicyKind, slice: u64) -> Box<dyn Policy<K>> {
    match policy_kind {
        PolicyKind::Fair => Box::new(Fair::new(slice)),
        PolicyKind::Fifo => Box::new(Fifo::default()),
        PolicyKind::Priority => Box::new(Priority::new(Fair::new(slice))),
    }
}
