//! Blocks in files of the user's runtime folder, for systems without sealed memory.
//!
//! A receiver reads the file into memory of its own. It does not map the file: nothing keeps
//! another process from writing a mapped file, or from shortening it, after which accesses fault.
//!
//! A file is removed with its block. Files of processes that were killed are removed when the next
//! process makes its first block.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Once;

use bytes::Bytes;
use gt_ir::data::SharedBlock;
use memmap2::MmapMut;

use super::{HEADER, Header, error};
use crate::boot::boot_id;
use crate::error::NetError;
use crate::keyring::runtime_folder;
use crate::process;

static LEFTOVERS: Once = Once::new();

/// A block that this process has created. Other processes can open it until it is dropped.
pub struct OwnedBlock {
    path: PathBuf,
    header: Header,
    /// The process that created it; a fork's copy removes no file.
    owner: u32,
}

impl OwnedBlock {
    /// Returns a block with a copy of these bytes.
    pub fn sealed(bytes: &[u8]) -> Result<OwnedBlock, NetError> {
        let folder = runtime_folder()?;
        LEFTOVERS.call_once(|| remove_leftovers(&folder));
        let header = Header::new(bytes.len());
        let owner = std::process::id();
        let path = folder.join(name(owner, header.token));
        let mut options = File::options();
        let mut file =
            options.write(true).create_new(true).mode(0o600).open(&path).map_err(error)?;
        // From here on the file is removed, also if writing fails.
        let block = OwnedBlock { path, header, owner };
        file.write_all(&header.to_bytes()).and_then(|()| file.write_all(bytes)).map_err(error)?;
        Ok(block)
    }

    /// Like [`Self::sealed`]: a file's memory is freed at once, so reuse gains nothing.
    pub fn reusable(bytes: &[u8]) -> Result<OwnedBlock, NetError> {
        OwnedBlock::sealed(bytes)
    }

    /// `None`: no block is reusable.
    pub fn room(&self) -> Option<usize> {
        None
    }

    /// # Errors
    /// Always: no block is reusable.
    pub fn rewrite(&mut self, _bytes: &[u8]) -> Result<(), NetError> {
        Err(error("the block is not reusable"))
    }

    /// The description by which a receiver opens it.
    pub fn describe(&self) -> SharedBlock {
        let Header { token, length } = self.header;
        SharedBlock { pid: self.owner, fd: -1, length, token }
    }
}

impl Drop for OwnedBlock {
    fn drop(&mut self) {
        if self.owner == std::process::id() {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The name of a block's file.
fn name(owner: u32, token: u128) -> String {
    format!("block-{owner}-{token:032x}")
}

/// The process whose block has this name.
fn owner_of(name: &str) -> Option<u32> {
    name.strip_prefix("block-")?.split_once('-')?.0.parse().ok()
}

/// Removes the files of processes that are gone.
fn remove_leftovers(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let owner = entry.file_name().to_str().and_then(owner_of);
        if owner.is_some_and(|owner| !process::exists(owner)) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// Returns the values of another process's block.
///
/// # Errors
/// The block is gone, or not as described: nothing in a description is trusted unchecked.
pub fn map(block: &SharedBlock) -> Result<Bytes, NetError> {
    let path = runtime_folder()?.join(name(block.pid, block.token));
    // Only this user can put a file there; even so, a pipe or a link is not followed.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_NOFOLLOW;
    let file = File::options().read(true).custom_flags(flags).open(&path).map_err(error)?;
    let meta = file.metadata().map_err(error)?;
    let wanted = block.length.checked_add(HEADER as u64);
    if !meta.is_file() || wanted != Some(meta.len()) {
        return Err(error("the block's kind or length is not as described"));
    }
    let mut header = [0; HEADER];
    file.read_exact_at(&mut header, 0).map_err(error)?;
    if header != (Header { token: block.token, length: block.length }).to_bytes() {
        return Err(error("the block's token or length is not as described"));
    }
    let length = usize::try_from(block.length).map_err(error)?;
    // Aligned for any dtype and vector, as pages are. An empty mapping is not possible.
    let mut memory = MmapMut::map_anon(length.max(1)).map_err(error)?;
    file.read_exact_at(&mut memory[..length], HEADER as u64).map_err(error)?;
    Ok(Bytes::from_owner(memory).slice(..length))
}

/// Does nothing: a receiver keeps neither mappings nor memory.
pub fn tidy() {}

/// Returns a token that is equal for two processes exactly if each can read the other's blocks:
/// same boot, runtime folder and user. It is empty, which matches no other, where the system does
/// not identify its boot.
pub fn machine_token() -> String {
    let folder = runtime_folder().ok().and_then(|folder| fs::metadata(folder).ok());
    let (Some(boot), Some(folder)) = (boot_id(), folder) else { return String::new() };
    // The folder belongs to this process's user.
    format!("{boot}/{}:{}/{}", folder.dev(), folder.ino(), folder.uid())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file_of(owned: &OwnedBlock) -> PathBuf {
        let SharedBlock { pid, token, .. } = owned.describe();
        runtime_folder().unwrap().join(name(pid, token))
    }

    #[test]
    fn a_block_is_read_back_and_its_file_removed() {
        for make in [OwnedBlock::sealed, OwnedBlock::reusable] {
            for length in [0, 1, 5000, 3 << 20] {
                let values: Vec<u8> = (0..length).map(|index| index as u8).collect();
                let owned = make(&values).unwrap();
                let (file, block) = (file_of(&owned), owned.describe());
                let bytes = map(&block).unwrap();
                assert!(file.exists());
                drop(owned);
                assert!(!file.exists());
                assert_eq!(&bytes[..], &values, "values outlive their block");
                assert_eq!(bytes.as_ptr() as usize % 64, 0);
                assert!(map(&block).is_err(), "the block is gone");
            }
        }
    }

    #[test]
    fn what_was_read_stays_whatever_the_owner_does() {
        let owned = OwnedBlock::sealed(&[7; 5000]).unwrap();
        let bytes = map(&owned.describe()).unwrap();
        let file = File::options().write(true).open(file_of(&owned)).unwrap();
        file.write_all_at(&[9; 5000], HEADER as u64).unwrap();
        file.set_len(10).unwrap();
        assert_eq!(&bytes[..], &[7; 5000]);
        assert!(map(&owned.describe()).is_err());
    }

    #[test]
    fn no_block_is_used_again() {
        tidy();
        let mut owned = OwnedBlock::reusable(&[1; 100]).unwrap();
        assert_eq!(owned.room(), None);
        assert!(owned.rewrite(&[2; 100]).is_err());
        assert_eq!(&map(&owned.describe()).unwrap()[..], &[1; 100]);
    }

    #[test]
    fn false_descriptions_are_refused() {
        let owned = OwnedBlock::sealed(&[1; 100]).unwrap();
        let good = owned.describe();
        for length in [0, 99, 101, u64::MAX, u64::MAX - HEADER as u64] {
            assert!(map(&SharedBlock { length, ..good }).is_err(), "{length}");
        }
        assert!(map(&SharedBlock { token: good.token ^ 1, ..good }).is_err());
        assert!(map(&SharedBlock { pid: 1, ..good }).is_err());
        let path = runtime_folder().unwrap().join(name(1, good.token));
        std::os::unix::fs::symlink(file_of(&owned), &path).unwrap();
        let through_link = map(&SharedBlock { pid: 1, ..good });
        fs::remove_file(&path).unwrap();
        assert!(through_link.is_err());
        // A file that another block's header is in.
        let token = good.token ^ 1;
        let path = runtime_folder().unwrap().join(name(good.pid, token));
        fs::copy(file_of(&owned), &path).unwrap();
        let renamed = map(&SharedBlock { token, ..good });
        fs::remove_file(&path).unwrap();
        assert!(renamed.is_err());
        assert!(map(&good).is_ok());
    }

    #[test]
    fn files_of_killed_processes_are_removed() {
        let folder = std::env::temp_dir().join(format!("gt-leftovers-{}", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        let stale = folder.join(name(child.id(), 1));
        let (own, other) = (folder.join(name(std::process::id(), 2)), folder.join("block-x"));
        for path in [&stale, &own, &other] {
            fs::write(path, "").unwrap();
        }
        remove_leftovers(&folder);
        assert_eq!([&stale, &own, &other].map(|path| path.exists()), [false, true, true]);
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn processes_of_one_boot_user_and_folder_have_one_token() {
        assert!(!machine_token().is_empty());
        assert_eq!(machine_token(), machine_token());
    }
}
