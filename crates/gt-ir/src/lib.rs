//! The instruction set of GT: what every other part agrees on.
//!
//! - [`dtype`], [`shape`], [`scalar`], [`data`]: what a tensor is.
//! - [`operation`] and [`ops`]: what can be computed; each operation has one home in `ops/`.
//! - [`sharding`]: along which axes operations may be cut into parts.
//! - [`instruction`]: one use of an operation; [`command`]: the streams that instructions stand in;
//!   [`liveness`]: which commands nobody needs any more.
//! - [`template`]: sequences of instructions that repeat, told once and then invoked.
//! - [`layout`]: how a tensor lies over workers; [`redistribute`]: from one layout to another.
//! - [`exchange`]: data that workers send each other; [`fabric`]: that their engines do.
//! - [`explain`]: what a planner has decided, for people.
//! - [`event`]: what happens, and when; [`status`]: how everybody is.
//! - [`message`]: what clients, the dispatcher and workers say to each other.
//! - [`wire`]: all of these as bytes.
//! - [`modifier`]: the trait of whatever transforms a stream.
//!
//! This crate holds data and rules only. It knows no sockets, threads, clocks or engines, and
//! depends on no other crate of GT.

pub mod call;
pub mod command;
pub mod data;
pub mod dtype;
pub mod error;
pub mod event;
pub mod exchange;
pub mod explain;
pub mod fabric;
pub mod instruction;
pub mod layout;
pub mod liveness;
pub mod message;
pub mod modifier;
pub mod operation;
pub mod ops;
pub mod philox;
pub mod redistribute;
pub mod scalar;
pub mod shape;
pub mod sharding;
pub mod signal;
pub mod status;
pub mod template;
pub mod wire;

pub use command::{ClientCommand, Create, WorkerCommand};
pub use data::{Content, SharedBlock, TensorData};
pub use dtype::DType;
pub use error::{Error, Result};
pub use exchange::{Exchange, LaneId, Piece, SlotId, TransferId, WorkerId};
pub use fabric::{Fabric, Joint};
pub use instruction::{Attribute, Attributes, Instruction, Operand, RequestId, SourceId, TensorId};
pub use operation::{Graph, Meta, Operation, Var};
pub use scalar::Scalar;
pub use shape::Shape;
pub use template::{Bindings, Definition, Instance, Invocation, Template, TemplateError};
