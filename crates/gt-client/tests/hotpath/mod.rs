//! The commands that leave the hot path detector stand for those that entered it.
//!
//! - [`issuer`]: issues commands as a session does, and checks what a receiver makes of them.
//! - [`programs`]: random programs.
//! - [`sections`]: loops in which shapes depend on data.
//! - [`training`]: how much of a training loop is sent by invocations.
//! - [`detection`]: what becomes hot and when, and how many templates a receiver holds.

mod detection;
mod issuer;
mod programs;
mod sections;
mod training;
