//! Memory that several processes have mapped, and may write at any time.

use std::fs::File;
use std::sync::atomic::{AtomicU64, Ordering};

use memmap2::{MmapOptions, MmapRaw};

use super::{error, keeps_length, seals};
use crate::error::NetError;

/// Bytes in a word.
const WORD: usize = size_of::<u64>();

/// A file's memory as words, which are read and written one by one, each as a whole. What is read
/// while another process writes is some words of before and some of after, and nothing worse.
pub struct Words {
    map: MmapRaw,
    is_writable: bool,
}

/// So many bytes are whole words.
pub fn whole(bytes: usize) -> usize {
    bytes.next_multiple_of(WORD)
}

impl Words {
    /// A file's memory, to be read.
    pub fn read_only(file: &File) -> Result<Words, NetError> {
        Words::checked(file, |options| options.map_raw_read_only(file), false)
    }

    /// A file's memory, to be read and written.
    pub fn writable(file: &File) -> Result<Words, NetError> {
        Words::checked(file, |options| options.map_raw(file), true)
    }

    fn checked(
        file: &File,
        map: impl Fn(&mut MmapOptions) -> std::io::Result<MmapRaw>,
        is_writable: bool,
    ) -> Result<Words, NetError> {
        // Else its owner could cut it off under this process's feet.
        if !keeps_length(seals(file)?) {
            return Err(error("the block is not sealed"));
        }
        let map = map(MmapOptions::new().populate()).map_err(error)?;
        Ok(Words { map, is_writable })
    }

    /// The words; they are stored to only where the memory is writable.
    fn words(&self) -> &[AtomicU64] {
        // SAFETY: the map is page-aligned and has so many words for as long as `self` lives: the
        // file keeps its length. Others may change them at any time, as atomics may be; processes
        // share them as threads do. Where the map is read-only they are only loaded, which takes
        // no write on processors of 64 bits.
        unsafe { std::slice::from_raw_parts(self.map.as_ptr().cast(), self.map.len() / WORD) }
    }

    /// How many bytes there are in whole words.
    pub fn len(&self) -> usize {
        self.map.len() / WORD * WORD
    }

    /// The words from byte `at` on, in which `length` bytes are; `at` is at a word's beginning.
    fn part(&self, at: usize, length: usize) -> &[AtomicU64] {
        assert!(at.is_multiple_of(WORD));
        &self.words()[at / WORD..][..length.div_ceil(WORD)]
    }

    /// Copies bytes out, from `at` on.
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

    /// Copies bytes in, from `at` on; what follows them in the last word becomes 0.
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
