//! The instruction set and the protocol of GT, shared by all other crates.
//!
//! Types and operations:
//! - [`dtype`], [`shape`], [`scalar`], [`data`]: dtypes, shapes, numbers and values of tensors.
//! - [`operation`]: the definition of an operation; [`ops`]: all operations, each defined in one
//!   place; [`call`]: a call as rules see it; [`number`]: conversion of numbers to dtypes;
//!   [`error`]: errors of use.
//! - [`sharding`]: the axes along which an operation can be sharded; [`batching`]: how it computes
//!   a batch of operands, for `vmap`.
//! - [`philox`]: random words; [`draws`]: random numbers computed from them.
//!
//! Programs:
//! - [`instruction`]: one use of an operation; [`command`]: the elements of streams;
//!   [`liveness`]: which queued commands are no longer needed; [`modifier`]: stream rewrites.
//! - [`cache`]: the bounded cache of what is recorded, planned or compiled.
//! - [`trace`]: recorded sequences of operations on numbered values.
//! - [`template`]: repeated sequences, defined once and then invoked.
//! - [`layout`]: how a tensor is distributed; [`redistribute`]: the blocks that a change of layout
//!   sends; [`exchange`]: data movement between workers; [`chain`]: from neighbour to neighbour;
//!   [`fabric`]: between their engines;
//!   [`signal`]: placements from configurations.
//!
//! Protocol:
//! - [`ids`]: numbers of sessions, workers, slots and lanes; [`origin`]: who opens a session.
//! - [`message`]: the messages between clients, the server, workers and watchers, by direction;
//!   [`failure`]: why an operation failed.
//! - [`entitlement`]: shares of time and memory quotas; [`snapshot`]: values stored for recovery;
//!   [`names`]: sets of tensor ids; [`stored`]: values in files that workers read and write.
//! - [`event`]: timestamped events; [`status`], [`statistics`]: the state of the system and of a
//!   worker; [`gpu`]: that of its GPU; [`explain`]: the planner's decisions, for users.
//! - [`wire`]: the encoding of all of these; [`codec`]: messages as frames.
//! - [`nearest`]: the known word nearest to a misspelled one.
//!
//! This crate holds data and rules only: no sockets, threads, clocks or engines. It depends on no
//! other crate of GT.

pub mod batching;
pub mod cache;
pub mod call;
pub mod chain;
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
pub mod gpu;
pub mod ids;
pub mod instruction;
pub mod layout;
pub mod liveness;
pub mod message;
pub mod modifier;
pub mod names;
pub mod nearest;
pub mod number;
pub mod operation;
pub mod ops;
pub mod origin;
pub mod philox;
pub mod publication;
pub mod redistribute;
pub mod runs;
pub mod scalar;
pub mod shape;
pub mod sharding;
pub mod signal;
pub mod snapshot;
pub mod statistics;
pub mod status;
pub mod stored;
pub mod template;
pub mod trace;
pub mod wire;

pub use command::{
    ClientCommand, Create, Detach, Kept, KeptTensor, Publish, Rescale, StreamNumbers, WorkerCommand,
};
pub use data::{Content, SharedBlock, TensorData};
pub use dtype::DType;
pub use error::{Error, Result};
pub use exchange::{Exchange, Piece};
pub use fabric::{EngineCollective, Fabric};
pub use ids::{Incarnation, LaneId, SessionId, SlotId, TransferId, WorkerId};
pub use instruction::{Attribute, Attributes, Instruction, Operand, RequestId, SourceId, TensorId};
pub use message::Attach;
pub use operation::{Graph, Meta, Operation, Var};
pub use origin::SessionOrigin;
pub use scalar::Scalar;
pub use shape::Shape;
pub use template::{Bindings, Definition, Instance, Invocation, Template, TemplateError};
pub use trace::{Trace, TraceStep};
