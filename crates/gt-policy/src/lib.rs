//! Scheduling policies: how a device's time is divided between sessions.
//!
//! A policy has no clock and no queue. Its caller reports the sessions that exist, asks which of those
//! with work is next, and reports the device time that its turn used.
//!
//! - [`fair`]: equal shares, by weights; [`fifo`]: in the order of arrival; [`priority`]: the
//!   highest first.

mod fair;
mod fifo;
mod priority;

use gt_ir::entitlement::{Entitlement, PolicyKind};

pub use fair::{Fair, QUANTUM, SLICE};
pub use fifo::Fifo;
pub use priority::Priority;

/// Chooses whose turn is next.
pub trait Policy: Send {
    /// Adds a session, or updates its weights.
    fn admit(&mut self, session: u32, entitlement: &Entitlement);

    /// Removes a session.
    fn retire(&mut self, session: u32);

    /// A session that was idle has work now.
    fn wake(&mut self, session: u32);

    /// Moves a session to the front, within its fair share: its lanes on other devices wait for its lane
    /// on this one.
    fn boost(&mut self, _session: u32) {}

    /// Returns the session that is served next, as an index into `ready`, which has no duplicates;
    /// `None` if it is empty.
    fn next(&mut self, ready: &[u32]) -> Option<usize>;

    /// Whether the device stays reserved for a session that waits for data from its lanes on other
    /// devices: it would be served before all that are `ready`. Not while a boosted session with a lower
    /// number is ready: of two sessions with reservations, the lower number has priority.
    fn reserves(&self, _session: u32, _ready: &[u32]) -> bool {
        false
    }

    /// Charges a session for `cost` nanoseconds of device time.
    fn charge(&mut self, session: u32, cost: u64);
}

/// Returns a new policy of this kind.
pub fn policy(policy_kind: PolicyKind) -> Box<dyn Policy> {
    match policy_kind {
        PolicyKind::Fair => Box::new(Fair::default()),
        PolicyKind::Fifo => Box::new(Fifo::default()),
        PolicyKind::Priority => Box::new(Priority::default()),
    }
}
