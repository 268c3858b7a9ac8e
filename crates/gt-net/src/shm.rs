//! Tensor data between processes of one user on one machine, by memory that both map.
//!
//! A block is an anonymous file (memfd) that its owner keeps open until the receiver has mapped
//! it; the receiver opens it through the owner's entry in /proc. It starts with a header that
//! holds a random token. Nothing is left behind when either process dies.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::{FileExt, MetadataExt};

use bytes::Bytes;
use gt_ir::data::SharedBlock;
use memmap2::MmapOptions;

use crate::error::NetError;

/// Keeps the values aligned for any dtype and vector.
const HEADER: usize = 64;
const NAME: &std::ffi::CStr = c"gt-block";
/// How such a file's link in /proc reads.
const LINK: &str = "/memfd:gt-block";
const SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// A block that this process made. Others can map it as long as this lives.
pub struct OwnedBlock {
    file: File,
    length: usize,
    token: u128,
}

fn error(text: impl std::fmt::Display) -> NetError {
    NetError::SharedMemory(text.to_string())
}

impl OwnedBlock {
    /// A block with a copy of these bytes.
    pub fn new(bytes: &[u8]) -> Result<OwnedBlock, NetError> {
        // SAFETY: the name is a C string; the result is checked and owned by `File` alone.
        let file = unsafe {
            let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
            let fd = libc::memfd_create(NAME.as_ptr(), flags);
            if fd < 0 {
                return Err(error(io::Error::last_os_error()));
            }
            File::from_raw_fd(fd)
        };
        let mut token = [0; 16];
        getrandom::fill(&mut token).expect("the system gives random bytes");
        let mut header = [0; HEADER];
        header[..16].copy_from_slice(&token);
        // Written, not mapped: a fault for each page would take longer than the copy.
        file.write_all_at(&header, 0).map_err(error)?;
        file.write_all_at(bytes, HEADER as u64).map_err(error)?;
        // SAFETY: the descriptor is open; the call changes no memory of this process.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEALS) } != 0 {
            return Err(error(io::Error::last_os_error()));
        }
        Ok(OwnedBlock { file, length: bytes.len(), token: u128::from_le_bytes(token) })
    }

    /// What the receiver needs to map it.
    pub fn describe(&self) -> SharedBlock {
        SharedBlock {
            pid: std::process::id(),
            fd: self.file.as_raw_fd(),
            length: self.length as u64,
            token: self.token,
        }
    }
}

/// Maps another process's block.
///
/// # Errors
/// It is gone, or is not such a block: a descriptor is a claim, and each part of it is checked.
pub fn map(block: &SharedBlock) -> Result<Bytes, NetError> {
    let path = format!("/proc/{}/fd/{}", block.pid, block.fd);
    // The link says what the file is before it is opened: opening a device or pipe may act.
    let target = std::fs::read_link(&path).map_err(error)?;
    if !target.to_string_lossy().starts_with(LINK) {
        return Err(error("the descriptor names another file"));
    }
    let file = File::open(&path).map_err(error)?;
    let meta = file.metadata().map_err(error)?;
    // SAFETY: these calls only read the process's user id and the file's seals.
    let (user, seals) =
        unsafe { (libc::geteuid(), libc::fcntl(file.as_raw_fd(), libc::F_GET_SEALS)) };
    let wanted = usize::try_from(block.length).ok().and_then(|length| length.checked_add(HEADER));
    if meta.uid() != user || Some(meta.len() as usize) != wanted {
        return Err(error("the block's owner or length is not as described"));
    }
    // Without the seal its owner could cut it off under this process's feet.
    if seals < 0 || seals & libc::F_SEAL_SHRINK == 0 {
        return Err(error("the block is not sealed"));
    }
    // SAFETY: sealed against shrinking, so no access can fault. Its owner, a process of the same
    // user, could still write to it; values may then be wrong, but are only ever read as plain
    // numbers, for which any bits are valid.
    let map = unsafe { MmapOptions::new().populate().map(&file) }.map_err(error)?;
    if map[..16] != block.token.to_le_bytes() {
        return Err(error("the block's token is not as described"));
    }
    Ok(Bytes::from_owner(map).slice(HEADER..))
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
mod tests {
    use super::*;

    #[test]
    fn a_block_is_read_back_and_outlives_its_owner() {
        let owned = OwnedBlock::new(&[7; 5000]).unwrap();
        let bytes = map(&owned.describe()).unwrap();
        drop(owned);
        assert_eq!(&bytes[..], &[7; 5000]);
        assert_eq!(bytes.as_ptr() as usize % 64, 0);
    }

    #[test]
    fn false_descriptions_are_refused() {
        let owned = OwnedBlock::new(&[1; 100]).unwrap();
        let good = owned.describe();
        let check = |block: SharedBlock| assert!(map(&block).is_err(), "{block:?}");
        check(SharedBlock { length: 99, ..good });
        check(SharedBlock { length: u64::MAX, ..good });
        check(SharedBlock { token: good.token ^ 1, ..good });
        check(SharedBlock { fd: 0, ..good });
        check(SharedBlock { fd: -1, ..good });
        check(SharedBlock { pid: 1, ..good });
        check(SharedBlock { pid: u32::MAX, ..good });
        let file = File::open("/proc/self/exe").unwrap();
        check(SharedBlock { fd: file.as_raw_fd(), ..good });
    }
}
