//! The instruction set and the protocol of GT, shared by all other crates.
//!
//! - [`dtype`], [`shape`], [`scalar`], [`data`]: tensors' types and values.
//! - [`operation`] and [`ops`]: the operations; each is defined in one place in `ops/`.
//! - [`sharding`]: along which axes an operation may be divided; [`batching`]: how it takes one more.
//! - [`instruction`]: one use of an operation; [`command`]: the elements of streams;
//!   [`liveness`]: which commands are no longer needed.
//! - [`template`]: repeated sequences, defined once and then invoked.
//! - [`layout`]: how a tensor is distributed; [`redistribute`]: the blocks that a change moves.
//! - [`exchange`]: data movement between workers; [`fabric`]: between their engines.
//! - [`philox`]: random words; [`draws`]: the random numbers made of them.
//! - [`explain`]: the planner's decisions, for users.
//! - [`stored`]: values in files that workers read and write; [`snapshot`]: those kept for recovery;
//!   [`names`]: sets of tensors.
//! - [`event`]: what happened, and when; [`status`]: snapshots of the system.
//! - [`message`]: the messages between clients, the dispatcher, workers and watchers; [`handshake`]:
//!   the first ones; [`message::Failure`]: why an operation has none of its results.
//! - [`wire`]: the encoding of all of these; [`codec`]: messages as frames.
//! - [`modifier`]: the trait of stream rewrites.
//!
//! This crate holds data and rules only: no sockets, threads, clocks or engines. It depends on no
//! other crate of GT.

pub mod batching;
pub mod call;
pub mod codec;
pub mod command;
pub mod data;
pub mod draws;
pub mod dtype;
pub mod entitlement;
pub mod error;
pub mod event;
pub mod exchange;
pub mod explain;
pub mod fabric;
pub mod failure;
pub mod handshake;
pub mod instruction;
pub mod layout;
pub mod liveness;
pub mod message;
pub mod modifier;
pub mod names;
pub mod number;
pub mod operation;
pub mod ops;
pub mod philox;
pub mod redistribute;
pub mod scalar;
pub mod shape;
pub mod sharding;
pub mod signal;
pub mod snapshot;
pub mod statistics;
pub mod status;
pub mod stored;
pub mod template;
pub mod wire;

pub use command::{ClientCommand, Create, Rescale, WorkerCommand};
pub use data::{Content, SharedBlock, TensorData};
pub use dtype::DType;
pub use error::{Error, Result};
pub use exchange::{Exchange, LaneId, Piece, SlotId, TransferId, WorkerId};
pub use fabric::{EngineCollective, Fabric};
pub use instruction::{Attribute, Attributes, Instruction, Operand, RequestId, SourceId, TensorId};
pub use operation::{Graph, Meta, Operation, Var};
pub use scalar::Scalar;
pub use shape::Shape;
pub use template::{Bindings, Definition, Instance, Invocation, Template, TemplateError};
