//! Replays: the stream of a recording, run again by a driver.
//!
//! - [`run`]: submits the recorded commands as a client does, within the window, and waits where the
//!   program waited; [`commands`]: which commands are submitted, and with what data; [`fill`]: values
//!   for an anonymous recording; [`expansion`]: iterations as plain instructions.
//! - [`compare`]: compares what is received with what is recorded.
//! - [`bisect`]: finds the first instruction whose result differs between two drivers.
//! - [`investigate`]: all of it, as a user asks for it.
//! - [`report`]: what a replay has found; [`describe`], [`summary`]: as text.

pub mod bisect;
mod commands;
pub mod compare;
pub mod describe;
mod expansion;
mod fill;
mod investigate;
mod report;
mod run;
pub mod summary;

pub use bisect::{FirstDifference, bisect};
pub(crate) use commands::submitted;
pub use compare::{Agreement, Received, Tolerances};
pub(crate) use expansion::StreamExpansion;
pub use investigate::{ReplayRequest, ReplayTarget, investigate};
pub use report::ReplayReport;
pub use run::{ReplayOptions, replay};
