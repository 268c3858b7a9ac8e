//! The network: how messages travel between processes.
//!
//! - [`codec`]: messages as frames, and back.
//! - [`server`], [`dealer`]: the two ends of a link, over ZeroMQ.
//! - [`keys`]: who may connect, and as what; [`gatekeeper`]: checks it.
//! - [`local`]: messages over a socket file; [`registry`]: which dispatchers run on the machine.
//! - [`lock`]: one server for an address; [`probe`]: what else listens there.
//! - [`keyring`]: where keys are kept and found.
//! - [`wake`]: wakes a thread that waits on a socket.
//! - [`shm`]: tensor data between processes of one user on one machine.
//! - [`address`]: `host:port`, tcp and ipc.
//!
//! This crate moves messages and understands none of them.

pub mod address;
pub mod codec;
pub mod dealer;
pub mod error;
mod gatekeeper;
pub mod keyring;
pub mod keys;
pub mod local;
mod lock;
mod monitor;
pub mod peers;
mod probe;
pub mod registry;
pub mod server;
pub mod shm;
pub mod wake;

pub use error::NetError;

/// How often, in milliseconds, the ends of a link show that they live; their threads for this work
/// whatever else the process does.
const HEARTBEAT: i32 = 3_000;
/// After how long a silent one is given up: it hangs, or is cut off.
const SILENCE: i32 = 15_000;
