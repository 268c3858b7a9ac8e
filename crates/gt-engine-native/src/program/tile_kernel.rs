//! Elementwise operations on tiles.

use gt_ir::operation::{Family, int};
use gt_ir::ops::{binary as b, nn, ternary as t, unary as u};
use gt_ir::trace::{Trace, TraceStep};
use gt_ir::{DType, Meta, Operand};

use crate::element::compute_dtype;
use crate::kernel::{ByDType, Kernel};
use crate::table::{Lowering, lowering};
use crate::{binary, cast, ternary, unary};

/// A kernel and its cost.
#[derive(Clone, Copy)]
pub struct TileKernel {
    pub kernel: Kernel,
    /// The approximate time for an element, in additions.
    pub cost: usize,
}

impl TileKernel {
    fn new(kernel: Kernel, cost: usize) -> TileKernel {
        TileKernel { kernel, cost }
    }

    /// Returns the cast from one dtype to another.
    pub fn cast(from: DType, to: DType) -> TileKernel {
        TileKernel::new(*cast::kernel(from, to), 1)
    }
}

/// Returns the kernel of an elementwise step; `None` for other steps.
pub fn tile_kernel(trace: &Trace, step: &TraceStep) -> Option<TileKernel> {
    let output = step.output.dtype;
    // Steps with complex numbers are not fused.
    let complex = |source: &Operand<u32>| {
        source
            .tensor()
            .and_then(|value| trace.meta(*value).tensor().copied())
            .is_some_and(|meta| meta.dtype.is_complex())
    };
    if output.is_complex() || step.operands.iter().any(complex) {
        return None;
    }
    let dtype = compute_dtype(output);
    let same = |kernels: &ByDType, cost| {
        kernels[dtype as usize].map(|kernel| TileKernel::new(kernel, cost))
    };
    let id = step.operation.id;
    match lowering(step.operation)? {
        Lowering::Same(kernels) => same(kernels, 1),
        Lowering::Function(kernels) => same(kernels, 8),
        Lowering::Promoted(kernels) => {
            let dtype = promoted(trace, step);
            Some(TileKernel::new(kernels[dtype as usize]?, 1))
        }
        Lowering::Own(_) if id == u::CAST.id => {
            let from = trace.meta(*step.operands[0].tensor()?).tensor()?.dtype;
            // A cast to the same dtype returns the tensor itself, whatever its strides.
            (from != output).then(|| TileKernel::cast(from, output))
        }
        Lowering::Own(_) if id == t::WHERE.id => {
            Some(TileKernel::new(ternary::choosing(output), 1))
        }
        Lowering::Own(_) if id == nn::GELU.id => {
            same(unary::gelu_kernels(int(&step.attributes, 0) == 1), 16)
        }
        // Integer operations may fail, which is reported before anything is computed.
        Lowering::Own(_) if !output.is_float() => None,
        Lowering::Own(_) if id == b::FLOOR_DIVIDE.id => same(&binary::FLOOR_DIVIDE, 4),
        Lowering::Own(_) if id == b::REMAINDER.id => same(&binary::REMAINDER, 4),
        Lowering::Own(_) if id == b::POW.id => same(binary::power_kernels(None), 16),
        Lowering::Own(_) | Lowering::MultiOutput(_) => None,
    }
}

/// Returns the kernel of a power whose exponent is a number, which may differ between executions.
pub fn power(exponent: f64, dtype: DType) -> Kernel {
    binary::power_kernels(Some(exponent))[dtype as usize]
        .expect("power has a kernel for every float dtype")
}

/// Returns the dtype that comparisons are computed in: the promoted dtype of the operands.
fn promoted(trace: &Trace, step: &TraceStep) -> DType {
    let metas: smallvec::SmallVec<[Operand<Meta>; 3]> = step
        .operands
        .iter()
        .map(|source| match source {
            Operand::Tensor(value) => trace.meta(*value),
            Operand::Scalar(scalar) => Operand::Scalar(*scalar),
        })
        .collect();
    compute_dtype(gt_ir::ops::infer::promote(&metas))
}

/// Returns whether a step may fail depending on its operands' values.
pub fn can_fail(step: &TraceStep) -> bool {
    let divides = [b::FLOOR_DIVIDE.id, b::REMAINDER.id, b::POW.id].contains(&step.operation.id);
    step.operation.family == Family::Index || divides && !step.output.dtype.is_float()
}
