//! Drivers join the cores, which know no sockets and threads, to each other.

pub mod embedded;
mod log;
pub mod network;
mod sharding;
