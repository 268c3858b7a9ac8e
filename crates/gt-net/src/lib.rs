//! The transport: messages between processes.
//!
//! - [`server`], [`dealer`]: the two ends of a link, over ZeroMQ; [`peers`]: links between workers.
//! - [`parts`]: splitting messages for a link; [`descriptors`]: file descriptors and their limit.
//! - [`keys`]: which peers may connect, in which role; [`gatekeeper`]: authentication; [`keyring`]:
//!   the storage of keys; [`private`]: paths that only this user may access.
//! - [`local`]: messages over a Unix socket; [`registry`]: the dispatchers on this machine.
//! - [`address`]: server addresses; [`lock`]: one server per address; [`probe`]: which protocol a
//!   listener speaks.
//! - [`wake`]: wakes a thread that waits on a socket.
//! - [`resume`]: links that outlive their connections; [`process`]: which processes still run;
//!   [`boot`]: which boot of which machine this is.
//! - [`shm`]: tensor data in shared memory, between processes of one user on one machine.
//!
//! What differs between systems has a folder with a file for Linux and one for others: [`shm`],
//! [`process`], [`wake`]; [`local`] has both in `connect`. The feature `portable` selects the other
//! implementations of [`shm`] and [`wake`] on Linux, too.
//!
//! This crate moves messages, and does not interpret them.

pub mod address;
mod boot;
pub mod dealer;
pub mod descriptors;
pub mod error;
mod gatekeeper;
pub mod keyring;
pub mod keys;
pub mod local;
mod lock;
mod monitor;
mod parts;
pub mod peers;
pub mod private;
mod probe;
pub mod process;
pub mod published;
pub mod registry;
pub mod resume;
pub mod server;
pub mod shm;
pub mod wake;

pub use error::NetError;
pub use gt_ir::codec;

/// The interval of heartbeats in milliseconds. ZeroMQ's own threads send them, whatever the process
/// is doing.
const HEARTBEAT: i32 = 1_500;
/// The time in milliseconds after which a silent peer is considered lost.
const SILENCE: i32 = 6_000;
