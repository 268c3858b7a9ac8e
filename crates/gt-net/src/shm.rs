//! Tensor data between processes of one user on one machine, by memory that both map.
//!
//! A block is an anonymous file (memfd) that its owner keeps open until the receiver has mapped
//! it; the receiver opens it through the owner's entry in /proc. It starts with a header that
//! holds a random token, and a flag that the receiver takes back when it needs the values no
//! more: then the owner may write others of the same length, which saves the system the making of
//! new memory. Nothing is left behind when either process dies.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::{FileExt, MetadataExt};

use bytes::Bytes;
use gt_ir::data::SharedBlock;
use memmap2::{Mmap, MmapMut, MmapOptions};

use crate::error::NetError;

/// Keeps the values aligned for any dtype and vector.
const HEADER: usize = 64;
const NAME: &std::ffi::CStr = c"gt-block";
/// How such a file's link in /proc reads.
const LINK: &str = "/memfd:gt-block";
const SEALS: i32 = libc::F_SEAL_SHRINK | libc::F_SEAL_GROW | libc::F_SEAL_SEAL;

/// Where in the header the flag stands: not 0 while a receiver needs the values.
const FLAG: usize = 16;

/// A block that this process made. Others can map it as long as this lives.
pub struct OwnedBlock {
    file: File,
    length: usize,
    token: u128,
    /// This process's own view, once the block has been used again.
    view: Option<MmapMut>,
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
        let (token, header) = new_header();
        // Written, not mapped: a fault for each page would take longer than the copy.
        file.write_all_at(&header, 0).map_err(error)?;
        file.write_all_at(bytes, HEADER as u64).map_err(error)?;
        // SAFETY: the descriptor is open; the call changes no memory of this process.
        if unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, SEALS) } != 0 {
            return Err(error(io::Error::last_os_error()));
        }
        Ok(OwnedBlock { file, length: bytes.len(), token, view: None })
    }

    pub fn length(&self) -> usize {
        self.length
    }

    /// Whether its receiver needs it no more.
    pub fn is_idle(&self) -> bool {
        let mut flag = [1; 4];
        self.file.read_exact_at(&mut flag, FLAG as u64).is_ok() && flag == [0; 4]
    }

    /// Writes other bytes, as many as before, into an idle block, under another token.
    pub fn rewrite(&mut self, bytes: &[u8]) -> Result<(), NetError> {
        debug_assert!(bytes.len() == self.length);
        let view = match &mut self.view {
            Some(view) => view,
            none => {
                // SAFETY: the file is this process's own and sealed against shrinking. Receivers
                // only write the flag, and have given it back.
                let map = unsafe { MmapOptions::new().populate().map_mut(&self.file) };
                none.insert(map.map_err(error)?)
            }
        };
        let (token, header) = new_header();
        view[HEADER..].copy_from_slice(bytes);
        view[..HEADER].copy_from_slice(&header);
        self.token = token;
        Ok(())
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

/// A token, and the header of a block that has it and is needed.
fn new_header() -> (u128, [u8; HEADER]) {
    let mut token = [0; 16];
    getrandom::fill(&mut token).expect("the system gives random bytes");
    let mut header = [0; HEADER];
    header[..16].copy_from_slice(&token);
    header[FLAG] = 1;
    (u128::from_le_bytes(token), header)
}

/// A block of another process, as long as its values are needed here.
struct Mapped {
    map: Mmap,
    /// The header, to give the flag back.
    header: MmapMut,
}

impl AsRef<[u8]> for Mapped {
    fn as_ref(&self) -> &[u8] {
        &self.map[HEADER..]
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // All reads of the values come before the owner sees the flag, and writes others.
        std::sync::atomic::fence(std::sync::atomic::Ordering::Release);
        self.header[FLAG..FLAG + 4].fill(0);
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
    let file = File::options().read(true).write(true).open(&path).map_err(error)?;
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
    // numbers, for which any bits are valid. Of the header only the flag is written.
    let (map, header) = unsafe {
        let map = MmapOptions::new().populate().map(&file).map_err(error)?;
        (map, MmapOptions::new().len(HEADER).map_mut(&file).map_err(error)?)
    };
    if map[..16] != block.token.to_le_bytes() {
        return Err(error("the block's token is not as described"));
    }
    Ok(Bytes::from_owner(Mapped { map, header }))
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
    fn a_block_is_used_again_when_nobody_needs_it() {
        let mut owned = OwnedBlock::new(&[7; 5000]).unwrap();
        let bytes = map(&owned.describe()).unwrap();
        let part = bytes.slice(10..20);
        drop(bytes);
        assert!(!owned.is_idle(), "a part is still in use");
        drop(part);
        assert!(owned.is_idle());
        let before = owned.describe();
        owned.rewrite(&[9; 5000]).unwrap();
        assert!(!owned.is_idle() && map(&before).is_err());
        assert_eq!(&map(&owned.describe()).unwrap()[..], &[9; 5000]);
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
