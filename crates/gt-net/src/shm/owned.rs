//! Blocks that this process made.

use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd, FromRawFd};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{Ordering, fence};

use gt_ir::data::SharedBlock;

use super::words::{Words, whole};
use super::{ALL_SEALS, HEADER, Header, LENGTH_SEALS, NAME, error};
use crate::error::NetError;

/// A block that this process made. Others can read it as long as this lives.
pub struct OwnedBlock {
    file: File,
    header: Header,
    /// How many bytes it has room for, if it can be written again.
    room: Option<usize>,
    /// This process's own view, once the block has been used again.
    view: Option<Words>,
}

impl OwnedBlock {
    /// A block with a copy of these bytes, for good.
    pub fn sealed(bytes: &[u8]) -> Result<OwnedBlock, NetError> {
        let (file, header) = written(bytes)?;
        // This process has no map of the file, in which case the system would refuse.
        seal(&file, ALL_SEALS)?;
        Ok(OwnedBlock { file, header, room: None, view: None })
    }

    /// A block with a copy of these bytes, in whose place others can come.
    pub fn reusable(bytes: &[u8]) -> Result<OwnedBlock, NetError> {
        let (file, header) = written(bytes)?;
        seal(&file, LENGTH_SEALS)?;
        Ok(OwnedBlock { file, header, room: Some(whole(bytes.len())), view: None })
    }

    /// How many bytes it has room for, if it can be written again.
    pub fn room(&self) -> Option<usize> {
        self.room
    }

    /// Writes other bytes, under another token. Whoever still reads the ones before notices.
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
        // Who sees any of the new values sees the old token no more.
        view.store(0, &self.header.to_bytes());
        fence(Ordering::Release);
        view.store(HEADER, bytes);
        Ok(())
    }

    /// What the receiver needs to read it.
    pub fn describe(&self) -> SharedBlock {
        SharedBlock {
            pid: std::process::id(),
            fd: self.file.as_raw_fd(),
            length: self.header.length,
            token: self.header.token,
        }
    }
}

/// A new file with a header and these bytes, and room up to the next whole word.
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
    // Written, not mapped: a fault for each page would take longer than the copy.
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
