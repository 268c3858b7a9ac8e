//! Values in files that are mapped into memory.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use bytes::Bytes;
use memmap2::Mmap;

/// Maps a file of this process, which it does not write again.
///
/// # Errors
/// The system cannot map it.
pub fn map(file: &File) -> io::Result<Bytes> {
    // SAFETY: the callers' files are in folders of this process's own or have no name, and are not
    // written again while they are mapped.
    let map = unsafe { Mmap::map(file)? };
    Ok(Bytes::from_owner(map))
}

/// Writes values into a file without a name and returns them, mapped; the file is deleted when they
/// are dropped.
///
/// # Errors
/// The folder cannot be written, or the disk is full.
pub fn keep<'a>(folder: &Path, values: impl Iterator<Item = &'a Bytes>) -> io::Result<Bytes> {
    let mut file = tempfile::tempfile_in(folder)?;
    for value in values {
        file.write_all(value)?;
    }
    map(&file)
}
