//! Tensors from nothing: numbers in order, and random ones.

use std::mem::MaybeUninit;

use gt_ir::instruction::Operands;
use gt_ir::operation::ints;
use gt_ir::ops::create::random_part;
use gt_ir::philox::Stream;
use gt_ir::{Attributes, DType, Meta, Operand, Scalar, Shape};
use gt_worker::EngineError;

use crate::cast;
use crate::element::{Element, with_element};
use crate::tensor::Tensor;
use crate::threads::Threads;
use crate::uninit::Uninit;

/// Elements that one thread makes at a time.
const PIECE: usize = 1 << 15;

/// A tensor whose element at each row-major index is `value(index)`.
fn filled<T: Element>(
    threads: &mut Threads,
    output: Meta,
    value: impl Fn(usize) -> T + Sync,
) -> Result<Tensor, EngineError> {
    let mut out = Uninit::new(output)?;
    let slots = out.slots::<T>();
    let part = |piece: usize, slots: &mut [MaybeUninit<T>]| {
        for (index, slot) in slots.iter_mut().enumerate() {
            slot.write(value(piece * PIECE + index));
        }
    };
    if slots.len() < 2 * PIECE {
        slots.chunks_mut(PIECE).enumerate().for_each(|(piece, slots)| part(piece, slots));
    } else {
        threads.for_each_part(slots, PIECE, part);
    }
    // SAFETY: every element has been written.
    Ok(unsafe { out.finish() })
}

/// The number that operand `index` is; a tensor of one element counts as its value.
fn number(operands: &Operands<Tensor>, index: usize) -> Result<Scalar, EngineError> {
    match &operands[index] {
        Operand::Scalar(scalar) => Ok(*scalar),
        Operand::Tensor(tensor) if tensor.numel() == 1 => {
            Ok(tensor.clone().contiguous()?.to_data().element(0))
        }
        Operand::Tensor(_) => Err(EngineError::Other("a number is expected".into())),
    }
}

pub fn full(
    threads: &mut Threads,
    operands: Operands<Tensor>,
    _: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    if let Operand::Tensor(value) = &operands[0]
        && value.numel() == 1
    {
        let value = value.clone().contiguous()?.with_shape(Shape::SCALAR);
        return Ok(cast::to(threads, value, output.dtype)?.expand(&output.shape));
    }
    let value = number(&operands, 0)?;
    with_element!(output.dtype, T => {
        let value = T::from_scalar(value);
        filled::<T>(threads, output, |_| value)
    })
}

pub fn arange(
    threads: &mut Threads,
    operands: Operands<Tensor>,
    _: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let (start, step) = (number(&operands, 0)?, number(&operands, 1)?);
    let whole = !matches!((start, step), (Scalar::Float(_), _) | (_, Scalar::Float(_)));
    with_element!(output.dtype, T => if whole {
        let (start, step) = (start.as_i64(), step.as_i64());
        filled::<T>(threads, output, |i| {
            start.wrapping_add((i as i64).wrapping_mul(step)).cast()
        })
    } else {
        let (start, step) = (start.as_f64(), step.as_f64());
        filled::<T>(threads, output, |i| (start + i as f64 * step).cast())
    })
}

/// From both ends, so that both are exact.
pub fn linspace(
    threads: &mut Threads,
    operands: Operands<Tensor>,
    _: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let (start, end) = (number(&operands, 0)?.as_f64(), number(&operands, 1)?.as_f64());
    let n = output.shape.numel();
    let step = if n > 1 { (end - start) / (n - 1) as f64 } else { 0.0 };
    with_element!(output.dtype, T => filled::<T>(threads, output, |i| {
        let from_end = (n - 1).saturating_sub(i) as f64;
        (if 2 * i < n { start + i as f64 * step } else { end - from_end * step }).cast()
    }))
}

pub fn eye(
    threads: &mut Threads,
    _: Operands<Tensor>,
    _: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let columns = output.shape[1];
    with_element!(output.dtype, T => filled::<T>(threads, output, |i| {
        i64::from(i / columns == i % columns).cast()
    }))
}

/// Seed and instruction number, the first two operands of every random operation.
fn stream(operands: &Operands<Tensor>) -> Result<Stream, EngineError> {
    let (seed, instruction) = (number(operands, 0)?.as_i64(), number(operands, 1)?.as_i64());
    Ok(Stream::new(seed as u64, instruction as u64))
}

/// Elements of which each depends on its place in the whole tensor, of which this may be a part.
fn drawn<T: Element>(
    threads: &mut Threads,
    attributes: &Attributes,
    output: Meta,
    value: impl Fn(u64) -> T + Sync,
) -> Result<Tensor, EngineError> {
    let Some((starts, whole)) = random_part(ints(attributes, 2)) else {
        return filled(threads, output, |index| value(index as u64));
    };
    let shape = output.shape;
    filled(threads, output, |index| {
        let (mut rest, mut place, mut stride) = (index, 0, 1);
        for axis in (0..shape.rank()).rev() {
            place += (starts[axis] as u64 + (rest % shape[axis]) as u64) * stride;
            stride *= whole[axis] as u64;
            rest /= shape[axis];
        }
        value(place)
    })
}

pub fn rand(
    threads: &mut Threads,
    operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let stream = stream(&operands)?;
    // 16-bit floats get no more digits than they hold: rounding up would give 1.
    let short = |scale: f32, i: u64| (stream.uniform_f32(i) * scale).floor() / scale;
    match output.dtype {
        DType::F64 => drawn(threads, attributes, output, |i| stream.uniform_f64(i)),
        DType::F16 => drawn(threads, attributes, output, |i| half::f16::from_f32(short(2048.0, i))),
        DType::BF16 => {
            drawn(threads, attributes, output, |i| half::bf16::from_f32(short(256.0, i)))
        }
        _ => drawn(threads, attributes, output, |i| stream.uniform_f32(i)),
    }
}

pub fn randn(
    threads: &mut Threads,
    operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let stream = stream(&operands)?;
    with_element!(output.dtype, T => {
        drawn::<T>(threads, attributes, output, |i| stream.normal(i).cast())
    })
}

pub fn randint(
    threads: &mut Threads,
    operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let stream = stream(&operands)?;
    let (low, high) = (number(&operands, 2)?.as_i64(), number(&operands, 3)?.as_i64());
    if high <= low && output.shape.numel() > 0 {
        let text = format!("randint: high {high} must be above low {low}");
        return Err(EngineError::Other(text));
    }
    with_element!(output.dtype, T => {
        drawn::<T>(threads, attributes, output, |i| stream.integer(i, low, high).cast())
    })
}
