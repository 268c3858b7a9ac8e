//! Tensor data in shared memory, between processes of one user on one machine.
//!
//! The sender makes a block and describes it in a message; the receiver opens it by the
//! description, of which nothing is trusted unchecked. A block begins with a [`Header`]: a random
//! token and the length.
//!
//! - [`memfd`]: on Linux, anonymous files that are sealed and mapped.
//! - [`files`]: on other Unix systems, files in the user's runtime folder that are read.

#[cfg(any(test, not(target_os = "linux"), feature = "portable"))]
mod files;
#[cfg(all(target_os = "linux", not(feature = "portable")))]
mod memfd;

#[cfg(any(not(target_os = "linux"), feature = "portable"))]
pub use files::{OwnedBlock, machine_token, map, tidy};
#[cfg(all(target_os = "linux", not(feature = "portable")))]
pub use memfd::{OwnedBlock, machine_token, map, tidy};

use crate::error::NetError;

/// Whether blocks are reused, for data whose length recurs.
pub const ARE_REUSABLE: bool = cfg!(all(target_os = "linux", not(feature = "portable")));

/// Keeps the values aligned for any dtype and vector.
const HEADER: usize = 64;

fn error(text: impl std::fmt::Display) -> NetError {
    NetError::SharedMemory(text.to_string())
}

/// The beginning of a block.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Header {
    token: u128,
    length: u64,
}

impl Header {
    /// A header with a new token.
    fn new(length: usize) -> Header {
        let mut token = [0; 16];
        getrandom::fill(&mut token).expect("the system gives random bytes");
        Header { token: u128::from_ne_bytes(token), length: length as u64 }
    }

    fn to_bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[..16].copy_from_slice(&self.token.to_ne_bytes());
        bytes[16..24].copy_from_slice(&self.length.to_ne_bytes());
        bytes
    }
}
