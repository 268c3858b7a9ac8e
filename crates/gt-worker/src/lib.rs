//! A worker: takes the dispatcher's streams and runs them on an engine.
//!
//! - [`engine`]: the trait that every engine implements.
//! - [`work`]: a worker as drivers see it; [`worker`]: the worker itself, a state machine without
//!   sockets, threads or clocks; [`turn`]: what a lane does when it is its turn. It is made of
//! - [`lane`]s, one for each session's slot: [`store`], its tensors; [`queue`], its commands;
//!   [`iteration`], the sequences that it repeats; [`exchange`], what it makes of others' pieces;
//! - a [`device`], which all of them share: [`iterate`] runs sequences on it as plans;
//!   [`programs`], plans made ready, found by their [`key`], [`simplify`]ed and [`check`]ed;
//!   [`events`], what it does with its time;
//! - [`joint`]: exchanges that engines carry out together.
//! - [`plan`]: several operations as one, for engines; [`listing`]: plans as text; [`composite`]:
//!   runs operations that the engine has no lowering for as what they consist of.
//!
//! A worker knows neither clients nor sharding: lanes, tensors and operations are all it sees.

mod check;
mod composite;
mod device;
pub mod engine;
mod events;
mod exchange;
mod iterate;
mod iteration;
mod joint;
mod key;
mod lane;
mod listing;
pub mod plan;
mod programs;
mod queue;
pub mod simplify;
mod store;
mod turn;
pub mod work;
mod worker;

pub use engine::{Engine, EngineError, Joining};
pub use work::{Options, Out, Work};
pub use worker::Worker;
