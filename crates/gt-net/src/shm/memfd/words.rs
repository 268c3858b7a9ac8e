//! Memory shared between processes that may write it at any time, accessed as atomic words.

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

use super::{error, keeps_length, seals};
use crate::error::NetError;

/// Bytes in a word.
const WORD: usize = size_of::<u64>();

/// A mapping whose words are read and written atomically, one by one. A read concurrent with
/// another process's write returns a mixture of old and new words, but is no data race.
pub struct Words {
    map: MmapRaw,
    is_writable: bool,
}

/// Rounds a length up to whole words.
pub fn whole(bytes: usize) -> usize {
    bytes.next_multiple_of(WORD)
}

impl Words {
    /// Maps a file for reading.
    pub fn read_only(file: &File) -> Result<Words, NetError> {
        Words::checked(file, |options| options.map_raw_read_only(file), false)
    }

    /// Maps a file for reading and writing.
    pub fn writable(file: &File) -> Result<Words, NetError> {
        Words::checked(file, |options| options.map_raw(file), true)
    }

    fn checked(
        file: &File,
        map: impl Fn(&mut MmapOptions) -> std::io::Result<MmapRaw>,
        is_writable: bool,
    ) -> Result<Words, NetError> {
        // Otherwise its owner could truncate it, and accesses would fault.
        if !keeps_length(seals(file)?) {
            return Err(error("the block is not sealed"));
        }
        let map = map(MmapOptions::new().populate()).map_err(error)?;
        Ok(Words { map, is_writable })
    }

    /// The words; stores are allowed only if the mapping is writable.
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the mapping is page-aligned and has this many words while `self` lives, as the
        // file cannot be shortened. Other processes may change them at any time, which atomics
        // allow. In a read-only mapping they are only loaded, which does not write on 64-bit
        // processors.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), self.map.len() / WORD) }
    }

    /// The length in bytes, in whole words.
    pub fn len(&self) -> usize {
        self.map.len() / WORD * WORD
    }

    /// The words that contain `length` bytes from `at`, which must be word-aligned.
    fn part(&self, at: usize, length: usize) -> &[AtomicU64] {
        assert!(at.is_multiple_of(WORD));
        &self.words()[at / WORD..][..length.div_ceil(WORD)]
    }

    /// Copies bytes out, from offset `at`.
    pub fn load(&self, at: usize, to: &mut [u8]) {
        let words = self.part(at, to.len());
        let (whole, rest) = to.as_chunks_mut::<WORD>();
        for (to, word) in whole.iter_mut().zip(words) {
            *to = word.load(Ordering::Relaxed).to_ne_bytes();
        }
        if let (false, Some(last)) = (rest.is_empty(), words.last()) {
            rest.copy_from_slice(&last.load(Ordering::Relaxed).to_ne_bytes()[..rest.len()]);
        }
    }

    /// Copies bytes in, at offset `at`; the rest of the last word becomes 0.
    ///
    /// # Panics
    /// The memory is not writable.
    pub fn store(&self, at: usize, from: &[u8]) {
        assert!(self.is_writable);
        let words = self.part(at, from.len());
        let (whole, rest) = from.as_chunks::<WORD>();
        for (from, word) in whole.iter().zip(words) {
            word.store(u64::from_ne_bytes(*from), Ordering::Relaxed);
        }
        if let (false, Some(last)) = (rest.is_empty(), words.last()) {
            let mut bytes = [0; WORD];
            bytes[..rest.len()].copy_from_slice(rest);
            last.store(u64::from_ne_bytes(bytes), Ordering::Relaxed);
        }
    }
}
