//! The dispatcher: takes the streams of many clients and schedules them onto workers.
//!
//! - [`dispatcher`]: the state machine; messages and the time go in, messages come out.
//! - [`session`]: one client: its tensors, its queue and its requests.
//! - [`schedule`]: clients' batches, planned and handed to workers in turn.
//! - [`templates`]: sequences that clients repeat.
//! - [`answers`]: what workers answer, on its way to the clients.
//! - [`planner`]: where tensors lie, and what is moved.
//! - [`pool`]: the workers, and which session begins on which.
//! - [`pipeline`]: the stream modifiers, in order.
//! - [`log`]: the instruction log; [`watch`]: who else watches, and what they are told;
//!   [`status`]: how everybody is.
//!
//! A dispatcher knows neither sockets nor engines; it never waits and never computes.

mod answers;
mod clocks;
pub mod dispatcher;
pub mod log;
pub mod pipeline;
pub mod planner;
mod pool;
mod schedule;
mod session;
mod status;
mod templates;
mod watch;

pub use dispatcher::{Dispatcher, Limits, PeerId};
pub use watch::Clock;
