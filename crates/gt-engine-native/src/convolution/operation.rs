//! The operation: converts tensors to planes in memory.

use gt_ir::instruction::Operands;
use gt_ir::operation::int;
use gt_ir::ops::convolution::windows;
use gt_ir::{Attributes, DType, Meta};
use gt_worker::EngineError;

use super::{Convolution, ConvolutionFloat, Planes, direct};
use crate::cast;
use crate::element::{Element, compute_dtype, with_number};
use crate::table::tensor;
use crate::tensor::Tensor;
use crate::threads::Threads;
use crate::uninit::Uninit;

/// Convolves tensors. f16 and bf16 are multiplied and summed in float32.
pub fn conv_general(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let dtype = compute_dtype(output.dtype);
    let input = cast::to(threads, tensor(&mut operands, 0)?, dtype)?;
    let input = in_planes(threads, input)?;
    let weight = cast::to(threads, tensor(&mut operands, 1)?, dtype)?;
    // The gradient of an input has a reversed kernel.
    let is_reversed = !dtype.is_exact() && !are_planes(&weight, 1) && are_planes(&weight, -1);
    let weight = if is_reversed { reversed(weight) } else { in_planes(threads, weight)? };
    let groups = usize::try_from(int(attributes, 5)).ok();
    let convolution = windows(attributes)
        .zip(groups)
        .and_then(|(all, groups)| Convolution::new(input.shape(), weight.shape(), &all, groups))
        .ok_or_else(|| EngineError::Other("conv_general: lengths that do not fit".to_string()))?;
    // If images and channels are exchanged in both operands, as in the gradient of a weight, the
    // result is also laid out with them exchanged: the caller exchanges them back, and the result
    // is then contiguous.
    let transposed = |x: &Tensor| x.strides()[0] < x.strides()[1];
    let is_transposed =
        !dtype.is_exact() && groups == Some(1) && transposed(&input) && transposed(&weight);
    let (images, outputs) = (output.shape[0], output.shape[1]);
    let transposed = output.shape.with(0, outputs).with(1, images);
    let shape = if is_transposed { transposed } else { output.shape };
    let mut out = Uninit::new(Meta::new(dtype, shape))?;
    match dtype {
        DType::F32 => {
            let weight = planes_of(&weight, is_reversed);
            floats::<f32>(threads, &convolution, &input, weight, is_transposed, &mut out)?;
        }
        DType::F64 => {
            let weight = planes_of(&weight, is_reversed);
            floats::<f64>(threads, &convolution, &input, weight, is_transposed, &mut out)?;
        }
        _ => with_number!(dtype, T => {
            let (input, weight) = (planes_of::<T>(&input, false), planes_of::<T>(&weight, false));
            direct::conv_general(threads, &convolution, input, weight, out.slots());
        }),
    }
    // SAFETY: both functions write every element.
    let out = unsafe { out.finish() };
    let order = [1, 0, 2, 3, 4];
    let out = if is_transposed { out.permute(&order[..shape.rank()]) } else { out };
    cast::to(threads, out, output.dtype)
}

fn floats<T: ConvolutionFloat + Element>(
    threads: &mut Threads,
    convolution: &Convolution,
    input: &Tensor,
    weight: Planes<T>,
    is_transposed: bool,
    out: &mut Uninit,
) -> Result<(), EngineError> {
    let input = planes_of::<T>(input, false);
    super::conv_general(threads, convolution, input, weight, is_transposed, out.slots())
}

/// Returns the tensor itself if each of its planes is contiguous, else a copy.
fn in_planes(threads: &mut Threads, x: Tensor) -> Result<Tensor, EngineError> {
    if are_planes(&x, 1) { Ok(x) } else { x.contiguous_with(threads) }
}

/// Returns whether the planes' elements are `step` apart, in row-major order.
fn are_planes(x: &Tensor, mut step: isize) -> bool {
    let (shape, strides) = (x.shape(), x.strides());
    strides[..2].iter().all(|stride| *stride >= 0)
        && (2..shape.rank()).rev().all(|axis| {
            let fits = match shape[axis] {
                1 => strides[axis] * step >= 0,
                _ => strides[axis] == step,
            };
            step *= shape[axis] as isize;
            fits
        })
}

/// Returns a view of the tensor with its spatial axes reversed.
fn reversed(x: Tensor) -> Tensor {
    let (shape, mut strides, mut offset) = (*x.shape(), x.strides(), 0);
    for axis in 2..shape.rank() {
        offset += strides[axis] * (shape[axis] as isize - 1).max(0);
        strides[axis] = -strides[axis];
    }
    x.into_view(offset, shape, strides)
}

/// Returns the planes of a tensor that [`in_planes`] or [`reversed`] returned.
fn planes_of<T: Element>(x: &Tensor, is_reversed: bool) -> Planes<'_, T> {
    let strides = x.strides();
    let steps = [strides[0] as usize, strides[1] as usize];
    Planes { data: x.span(), steps, is_reversed }
}
