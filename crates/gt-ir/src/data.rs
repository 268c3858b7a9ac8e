//! A tensor's values as they enter or leave the system.

use bytes::Bytes;

use crate::dtype::DType;
use crate::operation::Meta;
use crate::shape::Shape;
use crate::stored::PublishedValues;
use crate::stored::StoredValues;

/// Contiguous values in row-major order, little-endian. Cloning shares the bytes.
#[derive(Clone, Debug, PartialEq)]
pub struct TensorData {
    pub dtype: DType,
    pub shape: Shape,
    pub bytes: Bytes,
}

impl TensorData {
    /// Returns `None` unless the number of bytes is that of dtype and shape.
    pub fn new(dtype: DType, shape: Shape, bytes: Bytes) -> Option<TensorData> {
        (bytes.len() == shape.numel() * dtype.size()).then_some(TensorData { dtype, shape, bytes })
    }

    /// Returns the element at `index` of the flattened tensor as a number; for complex dtypes, its
    /// real part.
    pub fn element(&self, index: usize) -> crate::Scalar {
        use crate::Scalar::{Bool, Float, Int};
        use half::{bf16, f16};

        let size = self.dtype.size();
        let raw = &self.bytes[index * size..(index + 1) * size];
        macro_rules! read {
            ($type:ty) => {
                <$type>::from_le_bytes(raw.try_into().expect("one element"))
            };
        }
        match self.dtype {
            DType::Bool => Bool(raw[0] != 0),
            DType::U8 => Int(i64::from(raw[0])),
            DType::I8 => Int(i64::from(read!(i8))),
            DType::I16 => Int(i64::from(read!(i16))),
            DType::I32 => Int(i64::from(read!(i32))),
            DType::I64 => Int(read!(i64)),
            DType::F16 => Float(read!(f16).to_f64()),
            DType::BF16 => Float(read!(bf16).to_f64()),
            DType::F32 => Float(f64::from(read!(f32))),
            DType::F64 => Float(read!(f64)),
            DType::C64 | DType::C128 => Float(self.complex(index).0),
        }
    }

    /// Returns the real and the imaginary part of the element at `index` of the flattened tensor.
    pub fn complex(&self, index: usize) -> (f64, f64) {
        let size = self.dtype.size();
        let (real, imaginary) = self.bytes[index * size..(index + 1) * size].split_at(size / 2);
        let single = |raw: &[u8]| f32::from_le_bytes(raw.try_into().expect("half an element"));
        let double = |raw: &[u8]| f64::from_le_bytes(raw.try_into().expect("half an element"));
        match self.dtype {
            DType::C64 => (f64::from(single(real)), f64::from(single(imaginary))),
            DType::C128 => (double(real), double(imaginary)),
            _ => (self.element(index).as_f64(), 0.0),
        }
    }

    /// Appends a number's bytes as an element of this dtype.
    pub fn encode(dtype: DType, value: crate::Scalar, out: &mut Vec<u8>) {
        use half::{bf16, f16};
        match dtype {
            DType::Bool => out.push(u8::from(value.as_bool())),
            DType::U8 => out.push(value.as_i64() as u8),
            DType::I8 => out.extend((value.as_i64() as i8).to_le_bytes()),
            DType::I16 => out.extend((value.as_i64() as i16).to_le_bytes()),
            DType::I32 => out.extend((value.as_i64() as i32).to_le_bytes()),
            DType::I64 => out.extend(value.as_i64().to_le_bytes()),
            DType::F16 => out.extend(f16::from_f64(value.as_f64()).to_le_bytes()),
            DType::BF16 => out.extend(bf16::from_f64(value.as_f64()).to_le_bytes()),
            DType::F32 => out.extend((value.as_f64() as f32).to_le_bytes()),
            DType::F64 => out.extend(value.as_f64().to_le_bytes()),
            DType::C64 | DType::C128 => TensorData::encode_complex(dtype, value.as_f64(), 0.0, out),
        }
    }

    /// Appends a complex number's bytes as an element of a complex dtype.
    pub fn encode_complex(dtype: DType, real: f64, imaginary: f64, out: &mut Vec<u8>) {
        for part in [real, imaginary] {
            TensorData::encode(dtype.to_real(), crate::Scalar::Float(part), out);
        }
    }
}

/// Memory of another process on the same machine, as that process names it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SharedBlock {
    pub pid: u32,
    pub fd: i32,
    pub length: u64,
    /// Random; also stored in the block, to detect a stale or reused descriptor.
    pub token: u128,
}

/// A tensor's values on a link: in the message, in shared memory that the receiver maps, in files, or
/// published.
#[derive(Clone, PartialEq, Debug)]
pub enum Content {
    Data(TensorData),
    Shared {
        meta: Meta,
        block: SharedBlock,
    },
    /// In files that the receiver reads.
    Stored(Box<StoredValues>),
    /// Of a publication, which the receiver has or requests.
    Published(Box<PublishedValues>),
}

impl Content {
    pub fn meta(&self) -> Meta {
        match self {
            Content::Data(data) => Meta::new(data.dtype, data.shape),
            Content::Shared { meta, .. } => *meta,
            Content::Stored(stored) => stored.meta,
            Content::Published(published) => published.meta,
        }
    }
}
