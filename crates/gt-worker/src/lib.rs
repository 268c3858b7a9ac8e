//! The worker: runs the command streams of many lanes on one engine.
//!
//! From the bottom up, each module uses only those above it:
//!
//! - [`plan`]: a trace for an engine; [`mismatch`]: what compiled code computes differently.
//!   [`engine`]: the trait that every engine implements.
//! - [`simplify`]: traces made smaller; [`composite`]: operations that an engine has no lowering of.
//!   [`check`]: how far compiled code may differ; [`verify`]: whether it does. [`programs`]: the
//!   cache of prepared plans.
//! - [`snapshot_store`]: snapshots of lanes, from which sessions are restored. [`work`]: the
//!   interface for drivers. [`store`]: a lane's tensors; [`memory`]: what commands need and lanes may
//!   hold; [`events`]: how time is spent; [`collective`]: collectives in progress; [`lost_workers`].
//! - [`lane`]: the state of one session slot: its queue, templates, exchanges and limits.
//!   [`library`]: published tensors, which lanes share.
//! - [`device`]: the state that lanes share, and the execution of commands on it.
//! - [`turn`]: one lane's turn on the device.
//! - [`worker`]: the state machine behind [`work`], without sockets, threads or clocks: routes
//!   messages, schedules turns, and finds memory.
//!
//! A worker knows neither clients nor sharding, only lanes, tensors and operations.

pub mod check;
mod collective;
pub mod composite;
mod device;
pub mod engine;
mod events;
mod lane;
mod library;
mod lost_workers;
mod memory;
pub mod mismatch;
pub mod plan;
mod programs;
pub mod simplify;
mod snapshot_store;
mod store;
mod turn;
pub mod verify;
pub mod work;
mod worker;

pub use engine::{CollectivePart, Engine, EngineError, SharedBuffer};
pub use snapshot_store::SnapshotRecord;
pub use work::{FileJob, FileResult, Options, Out, ToSave, Work, WorkerInput};
pub use worker::Worker;
