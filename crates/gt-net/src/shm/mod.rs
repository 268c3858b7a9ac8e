//! Tensor data between processes of one user on one machine, by memory.
//!
//! A block is an anonymous file (memfd) that its owner keeps open until the receiver has it; the
//! receiver opens it through the owner's entry in /proc. It starts with a header that holds a random
//! token and the length. Nothing is left behind when either process dies.
//!
//! What another process may write is nothing that a `&[u8]` may point to. So there are two kinds:
//!
//! - Most blocks are written once and *sealed*: the system lets nobody write or shorten them from
//!   then on. The receiver looks at the seals and maps the block, which copies nothing.
//! - Making memory is dear. Where data of one length comes again and again, its owner makes a block
//!   that it can *reuse*: that is sealed against shortening alone, mapped by both ends, and read and
//!   written as atomic [`words`]. The receiver copies the values into memory of its own.
//!
//! [`owned`] is the owner's side, [`received`] the receiver's; [`kept`] what that keeps for the next
//! time.

mod kept;
mod owned;
mod received;
mod words;

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;

pub use kept::tidy;
pub use owned::OwnedBlock;
pub use received::map;

use crate::error::NetError;

/// Keeps the values aligned for any dtype and vector.
const HEADER: usize = 64;
const NAME: &std::ffi::CStr = c"gt-block";
/// How such a file's link in /proc reads.
const LINK: &str = "/memfd:gt-block";

/// No block gets another length.
const LENGTH_SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
/// Nor is one written any more that has these.
const ALL_SEALS: i32 = LENGTH_SEALS | libc::F_SEAL_WRITE;

fn error(text: impl std::fmt::Display) -> NetError {
    NetError::SharedMemory(text.to_string())
}

/// What stands at a block's beginning.
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

/// A file's seals.
fn seals(file: &File) -> Result<i32, NetError> {
    // SAFETY: the descriptor is open; the call only reads the file's seals.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) } {
        seals @ 0.. => Ok(seals),
        _ => Err(error(io::Error::last_os_error())),
    }
}

/// Whether a file keeps its length, so that its memory does not vanish while it is mapped.
fn keeps_length(seals: i32) -> bool {
    seals & libc::F_SEAL_SHRINK != 0
}

/// Whether nobody writes a file any more.
fn is_final(seals: i32) -> bool {
    keeps_length(seals) && seals & libc::F_SEAL_WRITE != 0
}

/// Equal for two processes exactly if each can map the other's blocks: same boot, same process
/// numbers, same user.
pub fn machine_token() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let space = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    // SAFETY: this call only reads the process's user id.
    let user = unsafe { libc::geteuid() };
    if boot.is_empty() || space.as_os_str().is_empty() {
        return String::new();
    }
    format!("{}/{}/{user}", boot.trim(), space.display())
}

#[cfg(test)]
mod tests;
