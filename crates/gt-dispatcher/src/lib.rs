//! The dispatcher: takes the streams of many clients and schedules them onto workers.
//!
//! - [`dispatcher`]: the state machine; messages and the time go in, messages come out. It routes
//!   them to its parts:
//! - [`sessions`]: the clients; [`queue`]: what of theirs waits; [`flow`]: what is under way;
//!   [`templates`]: the sequences that they repeat; [`waiting`]: sessions without a worker.
//! - [`workers`]: who computes. [`scheduler`]: whose turn it is.
//! - [`forward`]: a batch on its way, and [`delivery`]: what was planned; [`pipeline`]: the stream modifiers that it passes;
//!   [`planner`]: where tensors lie, and what is moved.
//! - [`answers`]: questions under way; [`joints`]: exchanges that engines make together.
//! - [`observability`]: the log, events, the status.
//!
//! A dispatcher knows neither sockets nor engines; it never waits and never computes.

mod answers;
mod delivery;
pub mod dispatcher;
mod flow;
mod forward;
mod joints;
mod observability;
pub mod pipeline;
pub mod planner;
mod queue;
mod scheduler;
mod sessions;
mod templates;
mod waiting;
mod workers;

pub use dispatcher::{Dispatcher, Limits, PeerId};
pub use observability::{Clock, log};
