//! Creation of tensors: constants, ranges and identity matrices.

use std::mem::MaybeUninit;

use gt_ir::instruction::Operands;
use gt_ir::{Attributes, Meta, Operand, Scalar, Shape};
use gt_worker::EngineError;

use crate::cast;
use crate::element::{Element, with_element};
use crate::tensor::Tensor;
use crate::threads::Threads;
use crate::uninit::Uninit;

/// Elements that one thread writes at a time.
pub const PIECE: usize = 1 << 15;

/// Creates a tensor whose element at each row-major index is `value(index)`.
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

/// Returns operand `index` as a number; a tensor of one element counts as its value.
pub fn number(operands: &Operands<Tensor>, index: usize) -> Result<Scalar, EngineError> {
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

/// Computes each half from its own end, so that both ends are exact.
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
