//! The wire format: each record is described once, which defines its encoding, decoding and length.
//!
//! [`record!`](crate::record) lists a record's fields in order; a field's type decides its
//! encoding. Integers are varints, tensor ids are differences from the last tensor made, and large
//! data goes in separate frames. Reading checks everything: any bytes decode to a value or an
//! error. No record contains itself, so reading cannot recurse without bound.
//!
//! - [`sink`]: where fields are written, or counted; [`source`]: where they are read.
//! - [`fields`]: primitive types and containers; [`values`]: shapes, numbers and tensors' data.

mod fields;
mod sink;
mod source;
mod values;

pub use values::MadeTensor;

use bytes::Bytes;

use crate::message::{Kind, Stranger};
pub use sink::{Frames, Length, Sink};
pub use source::Source;

/// Why bytes do not decode.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum DecodeError {
    #[error("{wanted} bytes expected, {left} are left")]
    Short { wanted: usize, left: usize },
    #[error("{left} bytes too many")]
    Long { left: usize },
    #[error("not a GT message")]
    BadMagic,
    #[error("layout version {0}, expected another")]
    BadLayout(u8),
    #[error("{}", .0.refusal("receiver"))]
    OtherProtocol(Box<Stranger>),
    #[error("{wanted} expected, {got} given")]
    WrongKind { wanted: Kind, got: Kind },
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

/// The result of reading.
pub type Decoded<T> = Result<T, DecodeError>;

/// A type with an encoding. Every record takes at least one byte.
pub trait Record: Sized {
    /// Writes it.
    fn write<S: Sink>(&self, to: &mut S);

    /// Reads one.
    ///
    /// # Errors
    /// The bytes are not what [`Record::write`] writes.
    fn read(from: &mut Source) -> Decoded<Self>;

    /// Returns its length in bytes as the first record of a message, including data. Later records
    /// may be shorter, as tensor ids are differences.
    fn length(&self) -> usize {
        let mut length = Length::default();
        self.write(&mut length);
        length.bytes
    }
}

/// Encodes a record as frames of its own: the record, and large data.
pub fn encode<R: Record>(record: &R) -> Vec<Bytes> {
    let mut frames = Frames::default();
    record.write(&mut frames);
    let mut all = vec![Bytes::from(frames.head)];
    all.append(&mut frames.data);
    all
}

/// Reads a record.
///
/// # Errors
/// The frames are not what [`encode`] makes.
pub fn decode<R: Record>(frames: &[Bytes]) -> Decoded<R> {
    let (head, data) = frames.split_first().ok_or(DecodeError::BadMagic)?;
    let mut source = Source::new(head, data);
    let record = R::read(&mut source)?;
    source.finish()?;
    Ok(record)
}

/// Describes a record: the fields of a struct in order, or the variants of an enum with their
/// codes.
///
/// ```
/// use gt_ir::record;
/// use gt_ir::wire::{Frames, Record, Source};
///
/// #[derive(Debug, PartialEq)]
/// struct Point { x: i64, y: i64 }
/// record!(struct Point { x, y });
///
/// #[derive(Debug, PartialEq)]
/// enum Shape { Empty, Dot(Point), Circle { center: Point, radius: f64 } }
/// record!(enum Shape { 0 => Empty, 1 => Dot(point), 2 => Circle { center, radius } });
///
/// let circle = Shape::Circle { center: Point { x: 1, y: -2 }, radius: 0.5 };
/// let mut frames = Frames::default();
/// circle.write(&mut frames);
/// assert_eq!(circle.length(), frames.head.len());
/// assert_eq!(Shape::read(&mut Source::new(&frames.head, &[])).unwrap(), circle);
/// ```
#[macro_export]
macro_rules! record {
    (struct $name:ident ( $field:ident )) => {
        impl $crate::wire::Record for $name {
            #[inline]
            fn write<S: $crate::wire::Sink>(&self, to: &mut S) {
                let $name($field) = self;
                $crate::wire::Record::write($field, to);
            }
            #[inline]
            fn read(from: &mut $crate::wire::Source) -> $crate::wire::Decoded<Self> {
                Ok($name($crate::wire::Record::read(from)?))
            }
        }
    };
    (struct $name:ident { $($field:ident),+ $(,)? }) => {
        impl $crate::wire::Record for $name {
            #[inline]
            fn write<S: $crate::wire::Sink>(&self, to: &mut S) {
                let $name { $($field),+ } = self;
                $($crate::wire::Record::write($field, to);)+
            }
            #[inline]
            fn read(from: &mut $crate::wire::Source) -> $crate::wire::Decoded<Self> {
                // Fields are read in the order in which they are listed here.
                $(let $field = $crate::wire::Record::read(from)?;)+
                Ok($name { $($field),+ })
            }
        }
    };
    (enum $name:ident { $($code:literal => $variant:ident
        $(( $($item:ident),+ $(,)? ))? $({ $($field:ident),+ $(,)? })?),+ $(,)? }) => {
        impl $crate::wire::Record for $name {
            #[inline]
            fn write<S: $crate::wire::Sink>(&self, to: &mut S) {
                match self {
                    $($name::$variant $(( $($item),+ ))? $({ $($field),+ })? => {
                        to.byte($code);
                        $($($crate::wire::Record::write($item, to);)+)?
                        $($($crate::wire::Record::write($field, to);)+)?
                    })+
                }
            }
            #[inline]
            fn read(from: &mut $crate::wire::Source) -> $crate::wire::Decoded<Self> {
                match from.byte()? {
                    $($code => {
                        $($(let $item = $crate::wire::Record::read(from)?;)+)?
                        $($(let $field = $crate::wire::Record::read(from)?;)+)?
                        Ok($name::$variant $(( $($item),+ ))? $({ $($field),+ })?)
                    })+
                    code => Err($crate::wire::DecodeError::BadCode {
                        what: stringify!($name),
                        code: u64::from(code),
                    }),
                }
            }
        }
    };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<T: Record + PartialEq + std::fmt::Debug>(value: T) {
        let mut frames = Frames::default();
        value.write(&mut frames);
        assert_eq!(value.length(), frames.head.len());
        let mut source = Source::new(&frames.head, &frames.data);
        assert_eq!(T::read(&mut source).unwrap(), value);
        source.finish().unwrap();
    }

    #[test]
    fn fields_survive() {
        for value in [0u64, 1, 127, 128, u64::MAX] {
            round_trip(value);
            round_trip(value as i64);
            round_trip(Some(value as u32));
        }
        round_trip(vec!["läyer".to_string(), String::new()]);
        round_trip(std::time::Duration::from_nanos(u64::MAX));
        round_trip((true, u128::MAX));
        round_trip(Some(Box::new(7u8)));
    }

    #[test]
    fn numbers_that_do_not_fit_are_errors() {
        let mut frames = Frames::default();
        (1u64 << 40).write(&mut frames);
        let read = u32::read(&mut Source::new(&frames.head, &[]));
        assert_eq!(read, Err(DecodeError::BadNumber));
        let endless = [0xFF; 20];
        assert_eq!(u64::read(&mut Source::new(&endless, &[])), Err(DecodeError::BadNumber));
    }

    #[test]
    fn a_forged_count_takes_no_memory() {
        let mut frames = Frames::default();
        u64::MAX.write(&mut frames);
        let read = Vec::<u64>::read(&mut Source::new(&frames.head, &[]));
        assert!(matches!(read, Err(DecodeError::Short { .. })), "{read:?}");
    }
}
