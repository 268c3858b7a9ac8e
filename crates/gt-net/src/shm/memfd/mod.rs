//! Blocks in anonymous files (memfd), which their owners keep open until the receivers have them.
//!
//! A receiver opens a block through the owner's entry in /proc. Nothing is left behind when either
//! process dies.
//!
//! A `&[u8]` must not refer to memory that another process may write. So there are two kinds:
//!
//! - Most blocks are written once and *sealed*: the kernel then prevents writing and shortening.
//!   The receiver checks the seals and maps the block without a copy.
//! - Allocation is expensive (page faults), so data whose length recurs goes in a *reusable* block:
//!   sealed against shortening only, mapped by both ends, and accessed as atomic [`words`]. The
//!   receiver copies the values into its own memory.
//!
//! [`owned`]: the owner's side; [`received`]: the receiver's; [`kept`]: the receiver's caches.

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

use super::{HEADER, Header, error};
use crate::boot::boot_id;
use crate::error::NetError;

const NAME: &std::ffi::CStr = c"gt-block";
/// The beginning of such a file's link in /proc.
const LINK: &str = "/memfd:gt-block";

/// The seals of all blocks: the length is fixed.
const LENGTH_SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;
/// The seals of sealed blocks: the contents are fixed, too.
const ALL_SEALS: i32 = LENGTH_SEALS | libc::F_SEAL_WRITE;

/// A file's seals.
fn seals(file: &File) -> Result<i32, NetError> {
    // SAFETY: the descriptor is open; the call only reads the file's seals.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS) } {
        seals @ 0.. => Ok(seals),
        _ => Err(error(io::Error::last_os_error())),
    }
}

/// Whether a file cannot be shortened, which would make accesses to its mapping fault.
fn keeps_length(seals: i32) -> bool {
    seals & libc::F_SEAL_SHRINK != 0
}

/// Whether a file can be neither shortened nor written.
fn is_final(seals: i32) -> bool {
    keeps_length(seals) && seals & libc::F_SEAL_WRITE != 0
}

/// Equal for two processes exactly if each can map the other's blocks: same boot, PID namespace
/// and user.
pub fn machine_token() -> String {
    let boot = boot_id().unwrap_or_default();
    let space = std::fs::read_link("/proc/self/ns/pid").unwrap_or_default();
    // SAFETY: this call only reads the process's user id.
    let user = unsafe { libc::geteuid() };
    if boot.is_empty() || space.as_os_str().is_empty() {
        return String::new();
    }
    format!("{boot}/{}/{user}", space.display())
}

#[cfg(test)]
mod tests;
