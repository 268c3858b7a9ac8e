//! Blocks of other processes.

use std::fs::File;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::sync::Arc;
use std::sync::atomic::{Ordering, fence};

use bytes::Bytes;
use gt_ir::data::SharedBlock;
use memmap2::{Mmap, MmapOptions};

use super::kept::{self, CachedMemory};
use super::words::Words;
use super::{HEADER, Header, LINK, error, is_final, keeps_length, seals};
use crate::error::NetError;

/// The values of another process's block, which do not change whatever the owner does.
///
/// # Errors
/// The block is gone, or not as described: nothing in a description is trusted unchecked.
pub fn map(block: &SharedBlock) -> Result<Bytes, NetError> {
    // A reusable block that was read before may still be mapped.
    if let Some(words) = kept::words(block)
        && let Ok(bytes) = copy(&words, block)
    {
        return Ok(bytes);
    }
    let file = open(block)?;
    let seals = seals(&file)?;
    if is_final(seals) {
        return share(&file, block);
    }
    if !keeps_length(seals) {
        return Err(error("the block is not sealed"));
    }
    let words = Arc::new(Words::read_only(&file)?);
    let bytes = copy(&words, block)?;
    kept::keep_words(block, words);
    Ok(bytes)
}

/// Opens a block's file, and checks that it has room for the values.
fn open(block: &SharedBlock) -> Result<File, NetError> {
    let path = format!("/proc/{}/fd/{}", block.pid, block.fd);
    // Checked before opening, as opening a device or a pipe may have side effects.
    let target = std::fs::read_link(&path).map_err(error)?;
    if !target.to_string_lossy().starts_with(LINK) {
        return Err(error("the descriptor names another file"));
    }
    // If the descriptor was replaced meanwhile, opening it must not block.
    let flags = libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = File::options().read(true).custom_flags(flags).open(&path).map_err(error)?;
    let meta = file.metadata().map_err(error)?;
    // SAFETY: this call only reads the process's user id.
    let user = unsafe { libc::geteuid() };
    let wanted = block.length.checked_add(HEADER as u64);
    if meta.uid() != user || wanted.is_none_or(|wanted| wanted > meta.len()) {
        return Err(error("the block's owner or length is not as described"));
    }
    Ok(file)
}

fn expected(block: &SharedBlock) -> Header {
    Header { token: block.token, length: block.length }
}

/// A sealed block's values, in place.
fn share(file: &File, block: &SharedBlock) -> Result<Bytes, NetError> {
    let map = Sealed::new(file)?;
    let bytes = Bytes::from_owner(map);
    if bytes.get(..HEADER) != Some(&expected(block).to_bytes()) {
        return Err(error("the block's token or length is not as described"));
    }
    let end = usize::try_from(block.length).ok().and_then(|length| length.checked_add(HEADER));
    match end {
        Some(end) if end <= bytes.len() => Ok(bytes.slice(HEADER..end)),
        _ => Err(error("the block is shorter than described")),
    }
}

/// A mapping of a file that can be neither written nor shortened.
struct Sealed(Mmap);

impl Sealed {
    fn new(file: &File) -> Result<Sealed, NetError> {
        if !is_final(seals(file)?) {
            return Err(error("the block is not sealed"));
        }
        // SAFETY: the file's seals, which cannot be removed, prevent any process, including this
        // one, from writing or shortening it: the mapped memory never changes, and no access to it
        // can fault.
        let map = unsafe { MmapOptions::new().populate().map(file) };
        map.map(Sealed).map_err(error)
    }
}

impl AsRef<[u8]> for Sealed {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// A copy of a reusable block's values.
fn copy(words: &Words, block: &SharedBlock) -> Result<Bytes, NetError> {
    let length = usize::try_from(block.length).map_err(error)?;
    if length.checked_add(HEADER).is_none_or(|end| end > words.len()) {
        return Err(error("the block is shorter than described"));
    }
    let check = || {
        let mut header = [0; HEADER];
        words.load(0, &mut header);
        let is_right = header == expected(block).to_bytes();
        is_right
            .then_some(())
            .ok_or_else(|| error("the block's token or length is not as described"))
    };
    check()?;
    let mut memory = CachedMemory::new(length)?;
    words.load(HEADER, memory.bytes_mut());
    // The owner does not rewrite the block before it is released. If it does all the same, it
    // changes the token before any value.
    fence(Ordering::Acquire);
    check()?;
    Ok(Bytes::from_owner(memory))
}
