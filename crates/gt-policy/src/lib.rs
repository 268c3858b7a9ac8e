//! Who is next: how a device's time is divided between sessions.
//!
//! A policy has no clock and no queue. It is told which sessions there are, chooses one of those
//! that have work, and is told what that cost.

mod fair;

pub use fair::{Fair, QUANTUM, SLICE};
