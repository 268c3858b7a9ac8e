//! The operation: from tensors to planes in memory.

use gt_ir::instruction::Operands;
use gt_ir::operation::int;
use gt_ir::ops::convolution::windows;
use gt_ir::{Attributes, DType, Meta};
use gt_worker::EngineError;

use super::{Convolution, Planes, Real, direct};
use crate::cast;
use crate::element::{Element, compute_dtype, with_number};
use crate::table::tensor;
use crate::tensor::Tensor;
use crate::threads::Threads;
use crate::uninit::Uninit;

/// Convolves tensors. The 16-bit floats are multiplied and summed in float32.
pub fn conv_general(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let dtype = compute_dtype(output.dtype);
    let mut planes = |threads: &mut Threads, index: usize| {
        let x = cast::to(threads, tensor(&mut operands, index)?, dtype)?;
        in_planes(threads, x)
    };
    let input = planes(threads, 0)?;
    let weight = planes(threads, 1)?;
    let groups = usize::try_from(int(attributes, 5)).ok();
    let convolution = windows(attributes)
        .zip(groups)
        .and_then(|(all, groups)| Convolution::new(input.shape(), weight.shape(), &all, groups))
        .ok_or_else(|| EngineError::Other("conv_general: lengths that do not fit".to_string()))?;
    let mut out = Uninit::new(Meta::new(dtype, output.shape))?;
    match dtype {
        DType::F32 => floats::<f32>(threads, &convolution, &input, &weight, &mut out)?,
        DType::F64 => floats::<f64>(threads, &convolution, &input, &weight, &mut out)?,
        _ => with_number!(dtype, T => {
            let (input, weight) = (planes_of::<T>(&input), planes_of::<T>(&weight));
            direct::conv_general(threads, &convolution, input, weight, out.slots());
        }),
    }
    // SAFETY: both ways write every element.
    cast::to(threads, unsafe { out.finish() }, output.dtype)
}

fn floats<T: Real + Element>(
    threads: &mut Threads,
    convolution: &Convolution,
    input: &Tensor,
    weight: &Tensor,
    out: &mut Uninit,
) -> Result<(), EngineError> {
    let (input, weight) = (planes_of::<T>(input), planes_of::<T>(weight));
    super::conv_general(threads, convolution, input, weight, out.slots())
}

/// The tensor as planes: itself where each of them is contiguous, else copied.
fn in_planes(threads: &mut Threads, x: Tensor) -> Result<Tensor, EngineError> {
    let (shape, strides) = (x.shape(), x.strides());
    let mut step = 1;
    let are_planes = (2..shape.rank()).rev().all(|axis| {
        let fits = shape[axis] == 1 || strides[axis] == step;
        step *= shape[axis] as isize;
        fits
    });
    if are_planes && strides[..2].iter().all(|stride| *stride >= 0) {
        return Ok(x);
    }
    x.contiguous_with(threads)
}

/// The planes of a tensor that [`in_planes`] has given.
fn planes_of<T: Element>(x: &Tensor) -> Planes<'_, T> {
    let strides = x.strides();
    Planes { data: x.span(), steps: [strides[0] as usize, strides[1] as usize] }
}
