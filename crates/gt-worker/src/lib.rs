//! The worker: runs the command streams of many lanes on one engine.
//!
//! - [`engine`]: the trait that every engine implements.
//! - [`work`]: the interface for drivers; [`worker`]: the state machine behind it, without sockets,
//!   threads or clocks; [`turn`]: one lane's turn on the device.
//! - [`lane`]: the state of one session slot, with [`store`], its tensors; [`queue`], its commands;
//!   [`iteration`], its templates; [`exchange`], tensors assembled from other slots' pieces.
//! - [`device`]: the state that lanes share. [`iterate`] runs parts of iterations on it as plans;
//!   [`programs`] caches prepared plans by their [`key`], [`simplify`]ed and [`verify`]-ed within the
//!   bounds of [`check`]; [`events`] records how time is spent.
//! - [`run_queue`]: the ready lanes; [`in_flight`]: turns that the device has not completed yet;
//!   [`coscheduling`]: sessions that run on several workers at the same time.
//! - [`memory`]: limits, waits and spilling; [`commit`]: the end of an optimizer step.
//! - [`ending`]: the end of sessions; [`lost_workers`]: lost workers.
//! - [`snapshot_store`]: snapshots of lanes, from which sessions are restored.
//! - [`collective`]: exchanges that the engines carry out by collective calls.
//! - [`plan`]: a sequence of operations for an engine; [`listing`]: plans as text; [`composite`]:
//!   the expansion of operations that the engine does not lower.
//!
//! A worker knows neither clients nor sharding, only lanes, tensors and operations.

pub mod check;
mod collective;
mod commit;
pub mod composite;
mod coscheduling;
mod device;
mod ending;
pub mod engine;
mod events;
mod exchange;
mod in_flight;
mod inputs;
mod iterate;
mod iteration;
mod key;
mod lane;
mod listing;
mod lost_workers;
mod memory;
pub mod plan;
mod programs;
mod queue;
mod run_queue;
pub mod simplify;
mod snapshot_store;
mod store;
mod turn;
pub mod verify;
pub mod work;
mod worker;

pub use engine::{Engine, EngineError, Joining, SharedBuffer};
pub use snapshot_store::SnapshotRecord;
pub use work::{FileJob, FileResult, Options, Out, ToSave, Work, WorkerInput};
pub use worker::Worker;
