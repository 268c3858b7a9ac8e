//! Where fields are written.

use bytes::Bytes;

/// Data up to this length is inline among the records; longer data is a frame.
pub const INLINE: usize = 4096;

/// Takes the bytes of fields.
pub trait Sink {
    fn byte(&mut self, byte: u8);

    fn bytes(&mut self, bytes: &[u8]);

    /// Adds data that is too long to be inline.
    fn data(&mut self, data: &Bytes);

    /// Returns the tensor that was made last, the base of differences.
    fn last(&mut self) -> &mut u64;

    /// Writes a number as LEB128: seven bits per byte, the lowest first.
    #[inline]
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.byte(value as u8 | 0x80);
            value >>= 7;
        }
        self.byte(value as u8);
    }

    /// Writes a number as its zigzag-encoded difference from `base`.
    #[inline]
    fn near(&mut self, value: u64, base: u64) {
        let difference = value.wrapping_sub(base) as i64;
        self.varint((difference << 1 ^ difference >> 63) as u64);
    }
}

/// The frames of a message: the records, and large data.
#[derive(Default)]
pub struct Frames {
    pub head: Vec<u8>,
    pub data: Vec<Bytes>,
    last: u64,
}

impl Sink for Frames {
    #[inline]
    fn byte(&mut self, byte: u8) {
        self.head.push(byte);
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        self.head.extend_from_slice(bytes);
    }

    fn data(&mut self, data: &Bytes) {
        self.data.push(data.clone());
    }

    #[inline]
    fn last(&mut self) -> &mut u64 {
        &mut self.last
    }
}

/// Counts bytes instead of writing them.
#[derive(Default)]
pub struct Length {
    pub bytes: usize,
    last: u64,
}

impl Sink for Length {
    #[inline]
    fn byte(&mut self, _: u8) {
        self.bytes += 1;
    }

    #[inline]
    fn bytes(&mut self, bytes: &[u8]) {
        self.bytes += bytes.len();
    }

    fn data(&mut self, data: &Bytes) {
        self.bytes += data.len();
    }

    #[inline]
    fn last(&mut self) -> &mut u64 {
        &mut self.last
    }
}
