//! A worker: takes the dispatcher's stream and runs it on an engine.
//!
//! - [`engine`]: the trait that every engine implements.
//! - [`executor`]: the worker itself, a state machine without sockets, threads or clocks.
//! - [`plan`]: several operations as one, for engines; [`templates`]: sequences that repeat;
//!   [`scripts`]: this worker's part of such a one.
//! - [`programs`]: plans made ready, found by their [`key`], [`simplify`]ed and [`check`]ed.
//! - [`listing`]: plans as text; [`notes`]: what the worker does with its time.
//! - [`exchange`]: tensors made of pieces from other workers; [`joint`]: of what their engines send.
//! - [`composite`]: runs operations that the engine has no lowering for as what they consist of.
//!
//! A worker knows neither clients nor sharding: ids, tensors and operations are all it sees.

mod check;
mod composite;
pub mod engine;
mod exchange;
pub mod executor;
mod joint;
mod key;
mod listing;
mod notes;
pub mod plan;
mod programs;
mod scripts;
pub mod simplify;
mod templates;

pub use engine::{Engine, EngineError, Joining};
pub use executor::{Options, Out, Work, Worker};
