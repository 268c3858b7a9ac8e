//! Shapes, numbers, operations and tensors' data as fields.

use bytes::Bytes;

use super::sink::INLINE;
use super::{DecodeError, Decoded, Record, Sink, Source};
use crate::data::{Content, SharedBlock, TensorData};
use crate::dtype::DType;
use crate::instruction::{Attribute, Operand, TensorId};
use crate::operation::{Meta, Operation};
use crate::record;
use crate::scalar::Scalar;
use crate::shape::{MAX_RANK, Shape};
use crate::sharding::Block;
use crate::stored::PublishedValues;
use crate::stored::StoredValues;

/// Short ones are inline, long ones in separate frames.
impl Record for Bytes {
    fn write<S: Sink>(&self, to: &mut S) {
        to.varint(self.len() as u64);
        if self.len() <= INLINE {
            to.bytes(self);
        } else {
            to.data(self);
        }
    }

    fn read(from: &mut Source) -> Decoded<Bytes> {
        match usize::read(from)? {
            length if length <= INLINE => Ok(Bytes::copy_from_slice(from.take(length)?)),
            length => from.data(length),
        }
    }
}

/// Encoded as the difference from the tensor that was made last.
impl Record for TensorId {
    #[inline]
    fn write<S: Sink>(&self, to: &mut S) {
        let last = *to.last();
        to.near(self.0, last);
    }

    #[inline]
    fn read(from: &mut Source) -> Decoded<TensorId> {
        let last = from.last;
        from.near(last).map(TensorId)
    }
}

/// A tensor that is made: the base of the differences that follow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MadeTensor(pub TensorId);

impl Record for MadeTensor {
    #[inline]
    fn write<S: Sink>(&self, to: &mut S) {
        self.0.write(to);
        *to.last() = self.0.0;
    }

    #[inline]
    fn read(from: &mut Source) -> Decoded<MadeTensor> {
        let made = TensorId::read(from)?;
        from.last = made.0;
        Ok(MadeTensor(made))
    }
}

impl Record for &'static Operation {
    #[inline]
    fn write<S: Sink>(&self, to: &mut S) {
        to.varint(u64::from(self.id));
    }

    #[inline]
    fn read(from: &mut Source) -> Decoded<&'static Operation> {
        let code = from.varint()?;
        let place = usize::try_from(code).ok().and_then(|code| from.operations.get(code));
        place.copied().flatten().ok_or(DecodeError::BadCode { what: "an operation", code })
    }
}

impl Record for DType {
    #[inline]
    fn write<S: Sink>(&self, to: &mut S) {
        to.byte(*self as u8);
    }

    #[inline]
    fn read(from: &mut Source) -> Decoded<DType> {
        dtype(from.byte()?)
    }
}

fn dtype(code: u8) -> Decoded<DType> {
    DType::from_code(code).ok_or(DecodeError::BadCode { what: "a dtype", code: u64::from(code) })
}

/// Dtype and rank share a byte.
impl Record for Meta {
    #[inline]
    fn write<S: Sink>(&self, to: &mut S) {
        to.byte((self.dtype as u8) << 4 | self.shape.rank() as u8);
        self.shape.iter().for_each(|&length| to.varint(length as u64));
    }

    #[inline]
    fn read(from: &mut Source) -> Decoded<Meta> {
        let code = from.byte()?;
        let dtype = dtype(code >> 4)?;
        Ok(Meta::new(dtype, shape(from, usize::from(code & 15))?))
    }
}

#[inline]
fn shape(from: &mut Source, rank: usize) -> Decoded<Shape> {
    let mut lengths = [0; MAX_RANK];
    let lengths = lengths.get_mut(..rank).ok_or(DecodeError::BadShape)?;
    for length in lengths.iter_mut() {
        *length = usize::read(from)?;
    }
    Shape::new(lengths).map_err(|_| DecodeError::BadShape)
}

impl Record for Shape {
    fn write<S: Sink>(&self, to: &mut S) {
        to.byte(self.rank() as u8);
        self.iter().for_each(|&length| to.varint(length as u64));
    }

    fn read(from: &mut Source) -> Decoded<Shape> {
        let rank = from.byte()?;
        shape(from, usize::from(rank))
    }
}

impl Record for Block {
    fn write<S: Sink>(&self, to: &mut S) {
        self.shape.write(to);
        self.starts[..self.shape.rank()].iter().for_each(|&start| to.varint(start as u64));
    }

    fn read(from: &mut Source) -> Decoded<Block> {
        let mut block = Block::whole(Shape::read(from)?);
        for axis in 0..block.shape.rank() {
            block.starts[axis] = usize::read(from)?;
        }
        Ok(block)
    }
}

record!(enum Scalar { 1 => Bool(value), 2 => Int(value), 3 => Float(value) });

record!(enum Attribute {
    0 => None,
    1 => Int(value),
    2 => Float(value),
    3 => Bool(value),
    4 => DType(dtype),
    5 => Ints(values),
});

/// Shares its codes with `Scalar`, with one more for tensors.
impl Record for Operand {
    #[inline]
    fn write<S: Sink>(&self, to: &mut S) {
        match self {
            Operand::Tensor(id) => {
                to.byte(0);
                id.write(to);
            }
            Operand::Scalar(scalar) => scalar.write(to),
        }
    }

    #[inline]
    fn read(from: &mut Source) -> Decoded<Operand> {
        Ok(match from.byte()? {
            0 => Operand::Tensor(TensorId::read(from)?),
            1 => Operand::Scalar(Scalar::Bool(bool::read(from)?)),
            2 => Operand::Scalar(Scalar::Int(i64::read(from)?)),
            3 => Operand::Scalar(Scalar::Float(f64::read(from)?)),
            code => {
                let code = u64::from(code);
                return Err(DecodeError::BadCode { what: "an operand", code });
            }
        })
    }
}

record!(struct SharedBlock { pid, fd, length, token });

/// Checks what those that read a block from parts rely on.
///
/// # Errors
/// The shapes do not match, or the end of a block is out of range.
fn check_blocks<'a>(
    meta: Meta,
    need: &'a Block,
    parts: impl Iterator<Item = &'a Block>,
) -> Decoded<()> {
    let is_sound = |block: &Block| {
        let ends = block.starts.iter().zip(block.shape.iter());
        block.shape.rank() == need.shape.rank()
            && ends.into_iter().all(|(start, length)| start.checked_add(*length).is_some())
    };
    let is_valid = meta.shape == need.shape && parts.chain([need]).all(is_sound);
    if is_valid { Ok(()) } else { Err(DecodeError::BadData) }
}

/// Short data is inline, long data in separate frames.
impl Record for Content {
    fn write<S: Sink>(&self, to: &mut S) {
        match self {
            Content::Data(data) if data.bytes.len() <= INLINE => {
                to.byte(0);
                Meta::new(data.dtype, data.shape).write(to);
                to.bytes(&data.bytes);
            }
            Content::Data(data) => {
                to.byte(1);
                Meta::new(data.dtype, data.shape).write(to);
                to.data(&data.bytes);
            }
            Content::Shared { meta, block } => {
                to.byte(2);
                meta.write(to);
                block.write(to);
            }
            Content::Stored(stored) => {
                to.byte(3);
                stored.write(to);
            }
            Content::Published(published) => {
                to.byte(4);
                published.write(to);
            }
        }
    }

    fn read(from: &mut Source) -> Decoded<Content> {
        let kind = from.byte()?;
        if kind == 3 {
            let stored = StoredValues::read(from)?;
            let parts = stored.parts.iter().map(|part| &part.block);
            check_blocks(stored.meta, &stored.need, parts)?;
            return Ok(Content::Stored(Box::new(stored)));
        }
        if kind == 4 {
            let published = PublishedValues::read(from)?;
            let parts = published.parts.iter().map(|part| &part.block);
            check_blocks(published.meta, &published.need, parts)?;
            return Ok(Content::Published(Box::new(published)));
        }
        let meta = Meta::read(from)?;
        let bytes = match kind {
            0 => Bytes::copy_from_slice(from.take(meta.bytes())?),
            1 => from.data(meta.bytes())?,
            2 => {
                let block = SharedBlock::read(from)?;
                if block.length != meta.bytes() as u64 {
                    return Err(DecodeError::BadData);
                }
                return Ok(Content::Shared { meta, block });
            }
            code => {
                let code = u64::from(code);
                return Err(DecodeError::BadCode { what: "content", code });
            }
        };
        Ok(Content::Data(TensorData { dtype: meta.dtype, shape: meta.shape, bytes }))
    }
}
