//! Where fields are read.

use bytes::Bytes;

use super::{DecodeError, Decoded};
use crate::operation::Operation;
use crate::ops;

/// The unread rest of a message. Reading past the end is an error, never a panic.
pub struct Source<'a> {
    rest: &'a [u8],
    /// The unread data frames.
    data: &'a [Bytes],
    /// As in [`super::Sink::last`].
    pub(super) last: u64,
    /// The operations by their numbers.
    pub(super) operations: &'a [Option<&'static Operation>],
}

impl<'a> Source<'a> {
    /// The records of a message, and its data frames.
    pub fn new(head: &'a [u8], data: &'a [Bytes]) -> Source<'a> {
        Source { rest: head, data, last: 0, operations: &ops::BY_ID }
    }

    /// Reads numbers of operations by this table instead of the instruction set's.
    #[must_use]
    pub fn with_operations(self, operations: &'a [Option<&'static Operation>]) -> Source<'a> {
        Source { operations, ..self }
    }

    /// Returns the next `length` bytes.
    #[inline]
    pub fn take(&mut self, length: usize) -> Decoded<&'a [u8]> {
        match self.rest.split_at_checked(length) {
            Some((taken, rest)) => {
                self.rest = rest;
                Ok(taken)
            }
            None => Err(DecodeError::Short { wanted: length, left: self.rest.len() }),
        }
    }

    /// Returns the next `N` bytes.
    #[inline]
    pub fn array<const N: usize>(&mut self) -> Decoded<[u8; N]> {
        Ok(self.take(N)?.try_into().expect("as long as was taken"))
    }

    #[inline]
    pub fn byte(&mut self) -> Decoded<u8> {
        match self.rest.split_first() {
            Some((byte, rest)) => {
                self.rest = rest;
                Ok(*byte)
            }
            None => Err(DecodeError::Short { wanted: 1, left: 0 }),
        }
    }

    /// Reads [`super::Sink::varint`].
    #[inline]
    pub fn varint(&mut self) -> Decoded<u64> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7F);
            if shift == 63 && bits > 1 {
                break;
            }
            value |= bits << shift;
            if byte < 0x80 {
                return Ok(value);
            }
        }
        Err(DecodeError::BadNumber)
    }

    /// Reads [`super::Sink::near`].
    #[inline]
    pub fn near(&mut self, base: u64) -> Decoded<u64> {
        let coded = self.varint()?;
        let difference = (coded >> 1) as i64 ^ -((coded & 1) as i64);
        Ok(base.wrapping_add(difference as u64))
    }

    /// Reads a count of records. It must not exceed the bytes left, as each record takes at least
    /// one: a forged count cannot make the reader allocate.
    pub fn count(&mut self) -> Decoded<usize> {
        let count = self.varint()?;
        if count > self.rest.len() as u64 {
            let wanted = usize::try_from(count).unwrap_or(usize::MAX);
            return Err(DecodeError::Short { wanted, left: self.rest.len() });
        }
        Ok(count as usize)
    }

    /// Reads the next data frame, which has `length` bytes.
    pub fn data(&mut self, length: usize) -> Decoded<Bytes> {
        let (first, rest) = self.data.split_first().ok_or(DecodeError::BadData)?;
        self.data = rest;
        if first.len() == length { Ok(first.clone()) } else { Err(DecodeError::BadData) }
    }

    /// Checks that everything was read.
    ///
    /// # Errors
    /// Bytes are left.
    pub fn finish(&self) -> Decoded<()> {
        let left = self.rest.len() + self.data.iter().map(Bytes::len).sum::<usize>();
        if self.rest.is_empty() && self.data.is_empty() {
            Ok(())
        } else {
            Err(DecodeError::Long { left })
        }
    }
}
