//! The worker: runs the command streams of many lanes on one engine.
//!
//! - [`engine`]: the trait that every engine implements.
//! - [`work`]: the interface for drivers; [`worker`]: the state machine behind it, without sockets,
//!   threads or clocks; [`turn`]: one lane's turn on the device.
//! - [`lane`]: the state of one session slot, with [`store`], its tensors; [`queue`], its commands;
//!   [`iteration`], its templates; [`exchange`], tensors assembled from other slots' pieces.
//! - [`device`]: the state that lanes share. [`iterate`] runs parts of iterations on it as plans;
//!   [`programs`] caches prepared plans by their [`key`], [`simplify`]ed and [`checked`] within
//!   the bounds of [`check`];
//!   [`events`] records how the time is spent.
//! - [`ahead`]: turns that the device has not done yet; [`gang`]: sessions on several workers.
//! - [`ending`]: what is dropped when sessions end; [`lost`]: the workers that are gone.
//! - [`vault`]: snapshots of lanes, from which they are made again.
//! - [`joint`]: exchanges carried out by the engines' collectives.
//! - [`plan`]: a sequence of operations for an engine; [`listing`]: plans as text; [`composite`]:
//!   the expansion of operations that the engine does not lower.
//!
//! A worker knows neither clients nor sharding, only lanes, tensors and operations.

mod ahead;
pub mod check;
pub mod checked;
mod commit;
pub mod composite;
mod device;
mod ending;
pub mod engine;
mod events;
mod exchange;
mod gang;
mod iterate;
mod iteration;
mod joint;
mod key;
mod lane;
mod listing;
mod lost;
mod memory;
pub mod plan;
mod programs;
mod queue;
mod ready;
pub mod simplify;
mod store;
mod turn;
mod vault;
pub mod work;
mod worker;

pub use engine::{Engine, EngineError, Joining, SharedBuffer};
pub use vault::SnapshotRecord;
pub use work::{FileJob, Options, Out, ToSave, Work};
pub use worker::Worker;
