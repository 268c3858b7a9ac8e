//! Tests of the hot path detector: it sends the equivalent of the commands that it processes.
//!
//! - [`issuer`]: issues commands as a session does, and checks how a receiver expands them.
//! - [`programs`]: random programs.
//! - [`sections`]: loops with data-dependent shapes.
//! - [`training`]: the share of a training loop that is sent by invocations.
//! - [`detection`]: which sequences become hot and when, and the receiver's number of templates.

mod detection;
mod issuer;
mod programs;
mod sections;
mod training;
