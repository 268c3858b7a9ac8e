//! Tests that the commands that leave the hot path detector are equivalent to those that entered it.
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
