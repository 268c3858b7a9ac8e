//! Who is next: how a device's time is divided between sessions.
//!
//! A policy has no clock and no queue. It is told which sessions there are, chooses one of those
//! that have work, and is told what that cost.
//!
//! - [`fair`]: equal shares, by weights; [`fifo`]: in the order of arrival; [`priority`]: the
//!   highest first.

mod fair;
mod fifo;
mod priority;

use gt_ir::standing::{Division, Standing};

pub use fair::{Fair, QUANTUM, SLICE};
pub use fifo::Fifo;
pub use priority::Priority;

/// Chooses whose turn is next.
pub trait Policy: Send {
    /// A session has come, or its standing has changed.
    fn admit(&mut self, session: u32, standing: &Standing);

    /// A session is gone.
    fn retire(&mut self, session: u32);

    /// A session that had nothing to do has work now.
    fn wake(&mut self, session: u32);

    /// Others wait for what a session does here, as it computes on several devices: it is next, if
    /// that is fair to all.
    fn urge(&mut self, _session: u32) {}

    /// The session that is served next, as an index into `ready`, which has no session twice;
    /// `None` if it is empty.
    fn next(&mut self, ready: &[u32]) -> Option<usize>;

    /// Whether a session that waits for others would be served before all that are `ready`, if it
    /// were: the device is kept for it for a moment. Not if others wait for one of these that has the
    /// right of way, as its number is lower.
    fn keeps(&self, _session: u32, _ready: &[u32]) -> bool {
        false
    }

    /// A session has used the device for `cost` nanoseconds.
    fn charge(&mut self, session: u32, cost: u64);
}

/// The policy of a division.
pub fn policy(division: Division) -> Box<dyn Policy> {
    match division {
        Division::Fair => Box::new(Fair::default()),
        Division::Fifo => Box::new(Fifo::default()),
        Division::Priority => Box::new(Priority::default()),
    }
}
