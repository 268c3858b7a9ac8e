//! argmax and argmin.

use std::ops::Range;

use gt_ir::instruction::Operands;
use gt_ir::operation::ints;
use gt_ir::{Attributes, Meta, Shape};
use gt_worker::EngineError;

use crate::cast;
use crate::element::{Number, compute_dtype, with_real};
use crate::fold::pieces::Elements;
use crate::fold::{self, Fold, Largest, Smallest};
use crate::reduce::{Order, checked_axes};
use crate::table::tensor;
use crate::tensor::Tensor;
use crate::threads::Threads;
use crate::uninit::Uninit;

/// Non-contiguous tensors with longer rows are made contiguous first.
const LONG: usize = 1 << 20;

macro_rules! arg_reduction {
    ($($name:ident, $fold:ident;)*) => { $(
        pub fn $name(
            threads: &mut Threads,
            mut operands: Operands<Tensor>,
            attributes: &Attributes,
            output: Meta,
        ) -> Result<Tensor, EngineError> {
            let x = tensor(&mut operands, 0)?;
            with_real!(compute_dtype(x.dtype()), T => {
                arg::<T, $fold>(threads, x, attributes, output)
            })
        }
    )* };
}

arg_reduction! {
    argmax, Largest;
    argmin, Smallest;
}

/// Computes the index of the element that a fold selects.
fn arg<T: Number, F: Fold<T, Total = T>>(
    threads: &mut Threads,
    x: Tensor,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let reduced_axes = checked_axes(ints(attributes, 0), x.shape())?;
    let rank = x.shape().rank();
    let kept = (0..rank).filter(|axis| !reduced_axes.contains(axis));
    let order: Order = kept.chain(reduced_axes.iter().copied()).collect();
    let x = x.permute(&order);
    let over = rank - reduced_axes.len()..rank;
    // The first of repeated elements is the result; repeated results are computed once.
    let (whole, strides) = (*x.shape(), x.strides());
    let repeats = (0..rank).filter(|axis| strides[*axis] == 0 && whole[*axis] > 0);
    let shape = repeats.fold(whole, |shape, axis| shape.with(axis, 1));
    let mut x = x.into_view(0, shape, strides);
    let length = shape.dims()[over.clone()].iter().product::<usize>().max(1);
    if length > LONG {
        x = cast::to(threads, x, T::DTYPE)?.contiguous_with(threads)?;
    }
    let kept = |shape: &Shape| over.clone().fold(*shape, |shape, axis| shape.with(axis, 1));
    let mut out = Uninit::new(Meta::new(output.dtype, kept(&shape)))?;
    let slots = out.slots::<i64>();
    assert!(slots.len() * length == x.numel(), "an index for each row");
    let is_there = x.is_contiguous() && x.dtype() == T::DTYPE;
    let rows = if is_there { x.as_slice::<T>() } else { &[] };
    let elements = &Elements::new(&x);
    let step = (fold::PIECE / length).max(1);
    threads.for_each_part(slots, step, |part, slots| {
        let range = part * step * length..(part * step + slots.len()) * length;
        let mut values = Vec::new();
        let rows = match is_there {
            true => &rows[range],
            false => {
                elements.read(range, &mut values);
                values.as_slice()
            }
        };
        for (slot, row) in slots.iter_mut().zip(rows.chunks_exact(length)) {
            slot.write(place_in(best_of::<T, F>(row), &shape, &whole, over.clone()));
        }
    });
    // SAFETY: every element has been written, as there are as many rows.
    let out = unsafe { out.finish() }.expand(&kept(&whole));
    Ok(out.contiguous_with(threads)?.with_shape(output.shape))
}

/// Returns the index of the element that a fold selects. It is searched afterwards, which is faster
/// than tracking indices during the fold.
fn best_of<T: Number, F: Fold<T, Total = T>>(row: &[T]) -> usize {
    let best = fold::row::<T, F>(row);
    let found = row.iter().position(|&x| x == best || (x.is_nan() && best.is_nan()));
    found.expect("the extreme is one of the elements")
}

/// Returns the index within the axes `over` of shape `whole` of an element given by its index
/// within the same axes of `shape`.
fn place_in(mut index: usize, shape: &Shape, whole: &Shape, over: Range<usize>) -> i64 {
    let (mut place, mut step) = (0, 1);
    for axis in over.rev() {
        place += index % shape[axis] * step;
        index /= shape[axis];
        step *= whole[axis];
    }
    place as i64
}
