//! The encoding of primitive types and containers.

use std::sync::Arc;
use std::time::Duration;

use smallvec::{Array, SmallVec};

use super::{DecodeError, Decoded, Record, Sink, Source};

/// The most records for which memory is reserved before a list is read.
const ROOM: usize = 1024;

impl Record for bool {
    #[inline]
    fn write<S: Sink>(&self, to: &mut S) {
        to.byte(u8::from(*self));
    }

    #[inline]
    fn read(from: &mut Source) -> Decoded<bool> {
        match from.byte()? {
            0 => Ok(false),
            1 => Ok(true),
            code => Err(DecodeError::BadCode { what: "a bool", code: u64::from(code) }),
        }
    }
}

impl Record for u8 {
    #[inline]
    fn write<S: Sink>(&self, to: &mut S) {
        to.byte(*self);
    }

    #[inline]
    fn read(from: &mut Source) -> Decoded<u8> {
        from.byte()
    }
}

macro_rules! unsigned {
    ($($type:ty),+) => {$(
        impl Record for $type {
            #[inline]
            fn write<S: Sink>(&self, to: &mut S) {
                to.varint(*self as u64);
            }

            #[inline]
            fn read(from: &mut Source) -> Decoded<$type> {
                <$type>::try_from(from.varint()?).map_err(|_| DecodeError::BadNumber)
            }
        }
    )+};
}

unsigned!(u16, u32, u64, usize);

macro_rules! signed {
    ($($type:ty),+) => {$(
        impl Record for $type {
            #[inline]
            fn write<S: Sink>(&self, to: &mut S) {
                to.near(i64::from(*self) as u64, 0);
            }

            #[inline]
            fn read(from: &mut Source) -> Decoded<$type> {
                <$type>::try_from(from.near(0)? as i64).map_err(|_| DecodeError::BadNumber)
            }
        }
    )+};
}

signed!(i32, i64);

/// Fixed length, as its values are random.
impl Record for u128 {
    fn write<S: Sink>(&self, to: &mut S) {
        to.bytes(&self.to_le_bytes());
    }

    fn read(from: &mut Source) -> Decoded<u128> {
        Ok(u128::from_le_bytes(from.array()?))
    }
}

impl Record for f64 {
    #[inline]
    fn write<S: Sink>(&self, to: &mut S) {
        to.bytes(&self.to_bits().to_le_bytes());
    }

    #[inline]
    fn read(from: &mut Source) -> Decoded<f64> {
        Ok(f64::from_bits(u64::from_le_bytes(from.array()?)))
    }
}

/// In nanoseconds as a u64, which suffices for half a millennium.
impl Record for Duration {
    #[inline]
    fn write<S: Sink>(&self, to: &mut S) {
        to.varint(u64::try_from(self.as_nanos()).unwrap_or(u64::MAX));
    }

    #[inline]
    fn read(from: &mut Source) -> Decoded<Duration> {
        Ok(Duration::from_nanos(from.varint()?))
    }
}

impl Record for String {
    fn write<S: Sink>(&self, to: &mut S) {
        to.varint(self.len() as u64);
        to.bytes(self.as_bytes());
    }

    fn read(from: &mut Source) -> Decoded<String> {
        let length = from.count()?;
        String::from_utf8(from.take(length)?.to_vec()).map_err(|_| DecodeError::BadText)
    }
}

impl<T: Record> Record for Option<T> {
    fn write<S: Sink>(&self, to: &mut S) {
        self.is_some().write(to);
        if let Some(value) = self {
            value.write(to);
        }
    }

    fn read(from: &mut Source) -> Decoded<Option<T>> {
        if bool::read(from)? { T::read(from).map(Some) } else { Ok(None) }
    }
}

impl<T: Record, E: Record> Record for Result<T, E> {
    fn write<S: Sink>(&self, to: &mut S) {
        self.is_err().write(to);
        match self {
            Ok(value) => value.write(to),
            Err(error) => error.write(to),
        }
    }

    fn read(from: &mut Source) -> Decoded<Result<T, E>> {
        if bool::read(from)? { E::read(from).map(Err) } else { T::read(from).map(Ok) }
    }
}

impl<T: Record> Record for Box<T> {
    fn write<S: Sink>(&self, to: &mut S) {
        (**self).write(to);
    }

    fn read(from: &mut Source) -> Decoded<Box<T>> {
        T::read(from).map(Box::new)
    }
}

impl<T: Record> Record for Arc<T> {
    fn write<S: Sink>(&self, to: &mut S) {
        (**self).write(to);
    }

    fn read(from: &mut Source) -> Decoded<Arc<T>> {
        T::read(from).map(Arc::new)
    }
}

impl<A: Record, B: Record> Record for (A, B) {
    fn write<S: Sink>(&self, to: &mut S) {
        self.0.write(to);
        self.1.write(to);
    }

    fn read(from: &mut Source) -> Decoded<(A, B)> {
        Ok((A::read(from)?, B::read(from)?))
    }
}

impl<T: Record + Default + Copy, const N: usize> Record for [T; N] {
    fn write<S: Sink>(&self, to: &mut S) {
        self.iter().for_each(|item| item.write(to));
    }

    fn read(from: &mut Source) -> Decoded<[T; N]> {
        let mut items = [T::default(); N];
        items.iter_mut().try_for_each(|item| T::read(from).map(|read| *item = read))?;
        Ok(items)
    }
}

impl<T: Record> Record for Vec<T> {
    fn write<S: Sink>(&self, to: &mut S) {
        to.varint(self.len() as u64);
        self.iter().for_each(|item| item.write(to));
    }

    fn read(from: &mut Source) -> Decoded<Vec<T>> {
        let count = from.count()?;
        let mut items = Vec::with_capacity(count.min(ROOM));
        for _ in 0..count {
            items.push(T::read(from)?);
        }
        Ok(items)
    }
}

impl<A: Array> Record for SmallVec<A>
where
    A::Item: Record,
{
    #[inline]
    fn write<S: Sink>(&self, to: &mut S) {
        to.varint(self.len() as u64);
        self.iter().for_each(|item| item.write(to));
    }

    #[inline]
    fn read(from: &mut Source) -> Decoded<SmallVec<A>> {
        let count = from.count()?;
        let mut items = SmallVec::with_capacity(count.min(ROOM));
        for _ in 0..count {
            items.push(A::Item::read(from)?);
        }
        Ok(items)
    }
}

impl<T: Record> Record for Arc<[T]> {
    fn write<S: Sink>(&self, to: &mut S) {
        to.varint(self.len() as u64);
        self.iter().for_each(|item| item.write(to));
    }

    fn read(from: &mut Source) -> Decoded<Arc<[T]>> {
        Vec::read(from).map(Arc::from)
    }
}
