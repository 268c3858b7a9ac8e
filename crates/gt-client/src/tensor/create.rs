//! Creating tensors from data, numbers and random numbers.

use bytes::Bytes;
use gt_ir::instruction::Attribute;
use gt_ir::number;
use gt_ir::ops::{create, random};
use gt_ir::{Content, DType, Operand, Operation, Scalar, Shape, TensorData};
use smallvec::smallvec;

use super::Tensor;
use crate::error::{ClientError, Result};
use crate::session::Session;
use crate::source;

/// A Rust number type that tensors can be created from.
pub trait HostNumber: bytemuck::Pod {
    const DTYPE: DType;
}

macro_rules! elements {
    ($($type:ty => $dtype:ident),*) => {
        $(impl HostNumber for $type {
            const DTYPE: DType = DType::$dtype;
        })*
    };
}

elements!(u8 => U8, i8 => I8, i16 => I16, i32 => I32, i64 => I64, f32 => F32, f64 => F64);

impl Tensor {
    /// Creates a tensor from data, which has as many bytes as its shape and dtype require
    /// ([`TensorData::new`] checks that).
    #[track_caller]
    pub fn from_data(session: &Session, data: TensorData) -> Tensor {
        Tensor::from_content(session, Content::Data(data))
    }

    #[track_caller]
    pub(crate) fn from_content(session: &Session, content: Content) -> Tensor {
        session.make_room_for_data();
        Tensor::from_parts(session.create(content, source::current()), None)
    }

    /// Creates a tensor of shape `dims` from numbers in row-major order.
    ///
    /// # Errors
    /// The number of values differs from the number of elements.
    #[track_caller]
    pub fn from_slice<E: HostNumber>(
        session: &Session,
        values: &[E],
        dims: &[usize],
    ) -> Result<Tensor> {
        let shape = Shape::new(dims)?;
        let bytes = Bytes::copy_from_slice(bytemuck::cast_slice(values));
        let data = TensorData::new(E::DTYPE, shape, bytes).ok_or_else(|| {
            ClientError::usage(format!(
                "from_slice: {} values given for shape {shape}, which has {}",
                values.len(),
                shape.numel()
            ))
        })?;
        Ok(Tensor::from_data(session, data))
    }

    /// Creates a tensor with one value everywhere.
    #[track_caller]
    pub fn full(
        session: &Session,
        shape: Shape,
        value: impl Into<Scalar>,
        dtype: DType,
    ) -> Result<Tensor> {
        let attributes = smallvec![Attribute::dims(&shape), Attribute::DType(dtype)];
        Tensor::apply(session, &create::FULL, &[Operand::Scalar(value.into())], attributes)
    }

    /// Creates a float32 tensor of zeros.
    #[track_caller]
    pub fn zeros(session: &Session, dims: &[usize]) -> Result<Tensor> {
        Tensor::full(session, Shape::new(dims)?, 0.0, DType::F32)
    }

    /// Creates a float32 tensor of ones.
    #[track_caller]
    pub fn ones(session: &Session, dims: &[usize]) -> Result<Tensor> {
        Tensor::full(session, Shape::new(dims)?, 1.0, DType::F32)
    }

    /// Creates the numbers from `start` to `end`, without `end`, in steps of `step`.
    ///
    /// # Errors
    /// The step is 0, or leads away from `end`.
    #[track_caller]
    pub fn arange(
        session: &Session,
        start: Scalar,
        end: Scalar,
        step: Scalar,
        dtype: DType,
    ) -> Result<Tensor> {
        let length = steps_between(start, end, step).ok_or_else(|| {
            ClientError::usage(format!("arange: no steps of {step} lead from {start} to {end}"))
        })?;
        let attributes = smallvec![Attribute::Int(length), Attribute::DType(dtype)];
        let operands = [Operand::Scalar(start), Operand::Scalar(step)];
        Tensor::apply(session, &create::ARANGE, &operands, attributes)
    }

    /// Creates `steps` evenly spaced numbers from `start` to `end`, both included.
    #[track_caller]
    pub fn linspace(
        session: &Session,
        start: Scalar,
        end: Scalar,
        steps: i64,
        dtype: DType,
    ) -> Result<Tensor> {
        if dtype.range().is_some() {
            number::check("linspace", start, dtype)?;
            number::check("linspace", end, dtype)?;
        }
        let attributes = smallvec![Attribute::Int(steps), Attribute::DType(dtype)];
        let operands = [Operand::Scalar(start), Operand::Scalar(end)];
        Tensor::apply(session, &create::LINSPACE, &operands, attributes)
    }

    /// Creates a matrix with ones on the diagonal, and zeros elsewhere.
    #[track_caller]
    pub fn eye(session: &Session, rows: i64, columns: i64, dtype: DType) -> Result<Tensor> {
        let attributes =
            smallvec![Attribute::Int(rows), Attribute::Int(columns), Attribute::DType(dtype)];
        Tensor::apply(session, &create::EYE, &[], attributes)
    }

    /// Draws uniform random numbers in `[0, 1)`.
    #[track_caller]
    pub fn rand(session: &Session, shape: Shape, dtype: DType) -> Result<Tensor> {
        Tensor::random(session, &random::RAND, shape, dtype, &[])
    }

    /// Draws standard normal random numbers.
    #[track_caller]
    pub fn randn(session: &Session, shape: Shape, dtype: DType) -> Result<Tensor> {
        Tensor::random(session, &random::RANDN, shape, dtype, &[])
    }

    /// Draws uniform random integers in `low..high`.
    ///
    /// # Errors
    /// `high` is not above `low`, or the dtype does not have the numbers.
    #[track_caller]
    pub fn randint(
        session: &Session,
        low: i64,
        high: i64,
        shape: Shape,
        dtype: DType,
    ) -> Result<Tensor> {
        if high <= low {
            return Err(ClientError::usage(format!(
                "randint: high is {high}, which must be above low, {low}"
            )));
        }
        number::check("randint", Scalar::Int(low), dtype)?;
        number::check("randint", Scalar::Int(high - 1), dtype)?;
        if dtype == DType::U8 && low < 0 || dtype == DType::Bool && (low < 0 || high > 2) {
            return Err(ClientError::usage(format!(
                "randint: {dtype} does not have the numbers from {low} up to {high}"
            )));
        }
        Tensor::random(session, &random::RANDINT, shape, dtype, &[low, high])
    }

    #[track_caller]
    fn random(
        session: &Session,
        operation: &'static Operation,
        shape: Shape,
        dtype: DType,
        range: &[i64],
    ) -> Result<Tensor> {
        let (seed, number) = session.next_random();
        let operands: Vec<_> = [seed as i64, number as i64]
            .iter()
            .chain(range)
            .map(|&number| Operand::Scalar(Scalar::Int(number)))
            .collect();
        let whole = Attribute::ints::<i64>(&[]);
        let attributes = smallvec![Attribute::dims(&shape), Attribute::DType(dtype), whole];
        Tensor::apply(session, operation, &operands, attributes)
    }
}

/// Returns the number of steps from `start` to `end`, without `end`; `None` if no number of steps
/// leads there. Integers are counted exactly, also beyond 2^53.
fn steps_between(start: Scalar, end: Scalar, step: Scalar) -> Option<i64> {
    if let (Scalar::Int(start), Scalar::Int(end), Scalar::Int(step)) = (start, end, step) {
        let (distance, step) = (i128::from(end) - i128::from(start), i128::from(step));
        if step == 0 || distance.signum() * step.signum() < 0 {
            return None;
        }
        return i64::try_from(distance.unsigned_abs().div_ceil(step.unsigned_abs())).ok();
    }
    let (from, to, by) = (start.as_f64(), end.as_f64(), step.as_f64());
    let length = ((to - from) / by).ceil();
    (by != 0.0 && length.is_finite() && length >= 0.0).then_some(length as i64)
}
