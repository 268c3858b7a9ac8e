//! The dispatcher: takes the streams of many clients and schedules them onto workers.
//!
//! - [`dispatcher`]: the state machine; messages and the time go in, messages come out.
//! - [`session`]: one client's name space, its queue and its requests.
//! - [`handle`]: where a client's tensor is.
//! - [`pool`]: the workers, and which session computes on which.
//! - [`pipeline`]: the stream modifiers, in order.
//! - [`log`]: the instruction log.
//!
//! A dispatcher knows neither sockets nor engines; it never waits and never computes.

pub mod dispatcher;
pub mod handle;
pub mod log;
pub mod pipeline;
mod pool;
mod session;

pub use dispatcher::{Dispatcher, Limits, PeerId};
