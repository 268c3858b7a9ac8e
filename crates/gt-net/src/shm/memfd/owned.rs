//! Blocks that this process has created.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{Ordering, fence};

use gt_ir::data::SharedBlock;

use super::words::{Words, whole};
use super::{ALL_SEALS, HEADER, Header, LENGTH_SEALS, NAME, error};
use crate::error::NetError;

/// A block that this process has created. Other processes can open it until it is dropped.
pub struct OwnedBlock {
    file: File,
    header: Header,
    /// Its capacity, if it is reusable.
    room: Option<usize>,
    /// This process's mapping, once the block has been rewritten.
    view: Option<Words>,
}

impl OwnedBlock {
    /// A sealed block with a copy of these bytes.
    pub fn sealed(bytes: &[u8]) -> Result<OwnedBlock, NetError> {
        let (file, header) = written(bytes)?;
        // This process has not mapped the file: the kernel refuses F_SEAL_WRITE on writable
        // mappings.
        seal(&file, ALL_SEALS)?;
        Ok(OwnedBlock { file, header, room: None, view: None })
    }

    /// A reusable block with a copy of these bytes.
    pub fn reusable(bytes: &[u8]) -> Result<OwnedBlock, NetError> {
        let (file, header) = written(bytes)?;
        seal(&file, LENGTH_SEALS)?;
        Ok(OwnedBlock { file, header, room: Some(whole(bytes.len())), view: None })
    }

    /// Its capacity, if it is reusable.
    pub fn room(&self) -> Option<usize> {
        self.room
    }

    /// Replaces the bytes, under a new token. A concurrent reader of the old ones detects it.
    ///
    /// # Errors
    /// They do not fit, or the block is sealed.
    pub fn rewrite(&mut self, bytes: &[u8]) -> Result<(), NetError> {
        if self.room.is_none_or(|room| bytes.len() > room) {
            return Err(error("the block is sealed, or too small"));
        }
        let view = match &mut self.view {
            Some(view) => view,
            none => none.insert(Words::writable(&self.file)?),
        };
        self.header = Header::new(bytes.len());
        // A reader that sees a new value also sees the new token.
        view.store(0, &self.header.to_bytes());
        fence(Ordering::Release);
        view.store(HEADER, bytes);
        Ok(())
    }

    /// The description by which a receiver opens it.
    pub fn describe(&self) -> SharedBlock {
        SharedBlock {
            pid: std::process::id(),
            fd: self.file.as_raw_fd(),
            length: self.header.length,
            token: self.header.token,
        }
    }
}

/// A new file with a header and these bytes, padded to a whole word.
fn written(bytes: &[u8]) -> Result<(File, Header), NetError> {
    // SAFETY: the name is a C string; the result is checked and owned by `File` alone.
    let file = unsafe {
        let flags = libc::MFD_CLOEXEC | libc::MFD_ALLOW_SEALING;
        let fd = libc::memfd_create(NAME.as_ptr(), flags);
        if fd < 0 {
            return Err(error(io::Error::last_os_error()));
        }
        File::from_raw_fd(fd)
    };
    let header = Header::new(bytes.len());
    // Written, not mapped: page faults would take longer than the copy.
    file.write_all_at(&header.to_bytes(), 0).map_err(error)?;
    file.write_all_at(bytes, HEADER as u64).map_err(error)?;
    file.set_len((HEADER + whole(bytes.len())) as u64).map_err(error)?;
    Ok((file, header))
}

fn seal(file: &File, seals: i32) -> Result<(), NetError> {
    // SAFETY: the descriptor is open; the call changes no memory of this process.
    match unsafe { libc::fcntl(file.as_raw_fd(), libc::F_ADD_SEALS, seals) } {
        0 => Ok(()),
        _ => Err(error(io::Error::last_os_error())),
    }
}
