//! The fields that frames are made of: little-endian, lengths first, every read checked.

use thiserror::Error;

/// Why bytes are not a message.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum DecodeError {
    #[error("{wanted} bytes expected, {left} are left")]
    Short { wanted: usize, left: usize },
    #[error("{left} bytes too many")]
    Long { left: usize },
    #[error("not a GT message")]
    BadMagic,
    #[error("layout version {0}, expected another")]
    BadLayout(u8),
    #[error("{what} has no code {code}")]
    BadCode { what: &'static str, code: u64 },
    #[error("a shape is not valid")]
    BadShape,
    #[error("a number is too long")]
    BadNumber,
    #[error("a text is not UTF-8")]
    BadText,
    #[error("data does not fit its shape")]
    BadData,
}

/// Appends fields to a frame.
#[derive(Default)]
pub struct Writer {
    pub bytes: Vec<u8>,
}

impl Writer {
    pub fn u8(&mut self, value: u8) {
        self.bytes.push(value);
    }

    pub fn u16(&mut self, value: u16) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub fn u32(&mut self, value: u32) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub fn u64(&mut self, value: u64) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    pub fn u128(&mut self, value: u128) {
        self.bytes.extend_from_slice(&value.to_le_bytes());
    }

    /// Seven bits a byte, the lowest first: small numbers are short.
    pub fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.bytes.push(value as u8);
    }

    /// A number near `base`, as the difference, which is short in either direction.
    pub fn near(&mut self, value: u64, base: u64) {
        let difference = value.wrapping_sub(base) as i64;
        self.varint((difference << 1 ^ difference >> 63) as u64);
    }

    pub fn text(&mut self, value: &str) {
        self.u32(value.len() as u32);
        self.bytes.extend_from_slice(value.as_bytes());
    }
}

/// Takes fields from a frame. What is not there is an error, never a panic.
pub struct Reader<'a> {
    rest: &'a [u8],
}

impl<'a> Reader<'a> {
    pub fn new(bytes: &'a [u8]) -> Reader<'a> {
        Reader { rest: bytes }
    }

    pub fn take(&mut self, length: usize) -> Result<&'a [u8], DecodeError> {
        if length > self.rest.len() {
            return Err(DecodeError::Short { wanted: length, left: self.rest.len() });
        }
        let (taken, rest) = self.rest.split_at(length);
        self.rest = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        Ok(self.take(N)?.try_into().expect("as long as was taken"))
    }

    pub fn u8(&mut self) -> Result<u8, DecodeError> {
        Ok(self.array::<1>()?[0])
    }

    pub fn u16(&mut self) -> Result<u16, DecodeError> {
        Ok(u16::from_le_bytes(self.array()?))
    }

    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    pub fn u128(&mut self) -> Result<u128, DecodeError> {
        Ok(u128::from_le_bytes(self.array()?))
    }

    pub fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0u64;
        for shift in (0..64).step_by(7) {
            let byte = self.u8()?;
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

    pub fn near(&mut self, base: u64) -> Result<u64, DecodeError> {
        let coded = self.varint()?;
        let difference = (coded >> 1) as i64 ^ -((coded & 1) as i64);
        Ok(base.wrapping_add(difference as u64))
    }

    pub fn text(&mut self) -> Result<String, DecodeError> {
        let length = self.u32()? as usize;
        let bytes = self.take(length)?;
        String::from_utf8(bytes.to_vec()).map_err(|_| DecodeError::BadText)
    }

    /// A count of records of at least `size` bytes each: no more than the rest has room for, so
    /// that a forged count cannot make the reader allocate.
    pub fn count(&mut self, count: usize, size: usize) -> Result<usize, DecodeError> {
        if count.saturating_mul(size) > self.rest.len() {
            return Err(DecodeError::Short {
                wanted: count.saturating_mul(size),
                left: self.rest.len(),
            });
        }
        Ok(count)
    }

    pub fn finish(&self) -> Result<(), DecodeError> {
        if self.rest.is_empty() { Ok(()) } else { Err(DecodeError::Long { left: self.rest.len() }) }
    }
}
