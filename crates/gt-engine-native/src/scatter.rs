//! Scatter operations: writing and combining at the elements that an index selects along an axis.

use gt_ir::instruction::Operands;
use gt_ir::operation::{bool, int};
use gt_ir::{Attributes, DType, Meta, Operand, Shape};
use gt_worker::EngineError;

use crate::budget;
use crate::cast;
use crate::element::{Element, Number, compute_dtype, with_number};
use crate::index::{IndexedElements, PART, axis_of, index_below};
use crate::table::tensor;
use crate::tensor::{Tensor, contiguous_strides};
use crate::threads::Threads;

/// The tensor that is written, and the index of the elements to write.
struct Target {
    out: Tensor,
    index: Tensor,
    along: usize,
}

impl Target {
    fn new(
        threads: &mut Threads,
        operands: &mut Operands<Tensor>,
        attributes: &Attributes,
        output: Meta,
        dtype: DType,
    ) -> Result<Target, EngineError> {
        let along = axis_of(attributes, &output.shape)?;
        let length = if output.shape.rank() == 0 { 1 } else { output.shape[along] };
        let index = tensor(operands, 1)?;
        let index = index_below(threads, index, length)?;
        let x = tensor(operands, 0)?;
        // If one thread adds everything, it makes the copy as well, so that it is in its cache.
        let x = cast::to(threads, x, dtype)?;
        let out = if along == 0 { x.writable()? } else { x.writable_with(threads)? };
        Ok(Target { out, index, along })
    }

    /// Returns the operand with a value for each entry, in the dtype that is computed in.
    fn source(
        &self,
        threads: &mut Threads,
        operands: &mut Operands<Tensor>,
    ) -> Result<Tensor, EngineError> {
        let source = tensor(operands, 2)?;
        let source = cast::to(threads, source, self.out.dtype())?.contiguous_with(threads)?;
        assert!(source.shape() == self.index.shape(), "a value for each entry");
        Ok(source)
    }

    /// Calls `body` for each entry, with the element that it selects and its number.
    fn each<T: Number>(&mut self, threads: &mut Threads, body: impl Fn(&mut T, usize) + Sync) {
        let shape = *self.out.shape();
        each_of(threads, self.out.as_mut_slice::<T>(), &shape, &self.index, self.along, body);
    }
}

/// Calls `body` for each entry, with the slot that it selects and its number, and in the order of
/// the numbers for each slot. The slots are those of a contiguous tensor of this shape.
fn each_of<S: Send>(
    threads: &mut Threads,
    slots: &mut [S],
    shape: &Shape,
    index: &Tensor,
    along: usize,
    body: impl Fn(&mut S, usize) + Sync,
) {
    let count = index.numel();
    if count == 0 {
        return;
    }
    let strides = contiguous_strides(shape);
    let elements = IndexedElements::new(index, shape, &strides, along);
    // Entries in different rows of the first axis select different slots, unless the index is along
    // that axis.
    let (numbers, step) = if along == 0 {
        (count, slots.len())
    } else {
        let row = count / index.shape()[0];
        let rows = PART.div_ceil(row);
        (rows * row, rows * strides[0] as usize)
    };
    threads.for_each_part(slots, step, |part, slots| {
        let (own, first) = (part * numbers..count.min((part + 1) * numbers), part * step);
        elements.each(own, |number, offset| body(&mut slots[offset as usize - first], number));
    });
}

pub fn scatter(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let dtype = compute_dtype(output.dtype);
    let mut target = Target::new(threads, &mut operands, attributes, output, dtype)?;
    match &operands[2] {
        Operand::Scalar(scalar) => with_number!(dtype, T => {
            let value = T::from_scalar(*scalar);
            target.each::<T>(threads, |slot, _| *slot = value);
        }),
        Operand::Tensor(_) => {
            let source = target.source(threads, &mut operands)?;
            with_number!(dtype, T => {
                let values = source.as_slice::<T>();
                target.each::<T>(threads, |slot, number| *slot = values[number]);
            });
        }
    }
    cast::to(threads, target.out, output.dtype)
}

pub fn scatter_add(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let dtype = compute_dtype(output.dtype);
    let mut target = Target::new(threads, &mut operands, attributes, output, dtype)?;
    let source = target.source(threads, &mut operands)?;
    with_number!(dtype, T => {
        let values = source.as_slice::<T>();
        target.each::<T>(threads, |slot, number| *slot = slot.plus(values[number]));
    });
    cast::to(threads, target.out, output.dtype)
}

/// How values are combined, in the order of the attribute's values.
#[derive(Clone, Copy, PartialEq)]
enum ScatterReduction {
    Sum,
    Prod,
    Mean,
    Max,
    Min,
}

pub fn scatter_reduce(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let dtype = compute_dtype(output.dtype);
    let reduction = [
        ScatterReduction::Sum,
        ScatterReduction::Prod,
        ScatterReduction::Mean,
        ScatterReduction::Max,
        ScatterReduction::Min,
    ][int(attributes, 1) as usize];
    let mut target = Target::new(threads, &mut operands, attributes, output, dtype)?;
    let source = target.source(threads, &mut operands)?;
    let with_own = bool(attributes, 2);
    // A mean counts the values added to each element.
    let counts =
        if reduction == ScatterReduction::Mean { target.out.numel() * size_of::<i64>() } else { 0 };
    let _counts = budget::scratch(counts)?;
    with_number!(dtype, T => combine(threads, &mut target, source.as_slice::<T>(), reduction, with_own));
    cast::to(threads, target.out, output.dtype)
}

fn combine<T: Number>(
    threads: &mut Threads,
    target: &mut Target,
    source: &[T],
    reduction: ScatterReduction,
    with_own: bool,
) {
    if !with_own {
        let neutral = match reduction {
            ScatterReduction::Sum | ScatterReduction::Mean => T::ZERO,
            ScatterReduction::Prod => T::ONE,
            ScatterReduction::Max => T::LOWEST,
            ScatterReduction::Min => T::HIGHEST,
        };
        target.each::<T>(threads, |slot, _| *slot = neutral);
    }
    target.each::<T>(threads, |slot, number| {
        let (old, new) = (*slot, source[number]);
        *slot = match reduction {
            ScatterReduction::Sum | ScatterReduction::Mean => old.plus(new),
            ScatterReduction::Prod => old.times(new),
            ScatterReduction::Max => old.larger(new),
            ScatterReduction::Min => old.smaller(new),
        };
    });
    if reduction == ScatterReduction::Mean {
        let mut counts = vec![i64::from(with_own); target.out.numel()];
        let Target { out, index, along } = &*target;
        each_of(threads, &mut counts, out.shape(), index, *along, |count, _| *count += 1);
        for (slot, count) in target.out.as_mut_slice::<T>().iter_mut().zip(counts) {
            if count > 1 {
                *slot = over::<T>(*slot, count);
            }
        }
    }
}

/// Divides a sum by a count; integers are rounded down.
fn over<T: Number>(sum: T, count: i64) -> T {
    if T::DTYPE.is_float() {
        T::from_f64(sum.to_f64() / count as f64)
    } else {
        <T as Element>::from_i64(sum.to_i64().div_euclid(count))
    }
}
