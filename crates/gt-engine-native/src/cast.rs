//! Casts between all dtypes.

use std::mem::MaybeUninit;

use gt_ir::instruction::Operands;
use gt_ir::operation::Meta;
use gt_ir::{Attributes, DType, Operand};
use gt_worker::EngineError;
use half::f16;
use half::slice::HalfFloatSliceExt;

use crate::element::{Bool, Element};
use crate::elementwise::{self, Kernel, Plan};
use crate::simd::vectorized;
use crate::tensor::Tensor;
use crate::threads::Threads;

/// The kernel that reads one dtype and writes another.
pub fn kernel(from: DType, to: DType) -> Kernel {
    match (from, to) {
        (DType::F16, DType::F32) => widen,
        (DType::F32, DType::F16) => narrow,
        _ => KERNELS[from as usize][to as usize],
    }
}

/// Rows by the dtype that is read, columns by the one that is written.
static KERNELS: [[Kernel; 10]; 10] = [
    row::<Bool>(),
    row::<u8>(),
    row::<i8>(),
    row::<i16>(),
    row::<i32>(),
    row::<i64>(),
    row::<f16>(),
    row::<half::bf16>(),
    row::<f32>(),
    row::<f64>(),
];

const fn row<A: Element>() -> [Kernel; 10] {
    [
        each::<A, Bool>,
        each::<A, u8>,
        each::<A, i8>,
        each::<A, i16>,
        each::<A, i32>,
        each::<A, i64>,
        each::<A, f16>,
        each::<A, half::bf16>,
        each::<A, f32>,
        each::<A, f64>,
    ]
}

/// # Safety
/// As for every [`Kernel`].
unsafe fn each<A: Element, B: Element>(inputs: &[*const u8; 3], out: *mut u8, n: usize) {
    // SAFETY: the contract of kernels; a cast is never in place.
    let (from, to) = unsafe { runs::<A, B>(inputs[0], out, n) };
    vectorized(
        #[inline(always)]
        || {
            for (to, from) in to.iter_mut().zip(from) {
                to.write(from.cast());
            }
        },
    );
}

/// float16 has instructions of its own, which `half` uses for slices only.
unsafe fn widen(inputs: &[*const u8; 3], out: *mut u8, n: usize) {
    // SAFETY: the contract of kernels; every bit pattern is a float, so that a slice of them may
    // be made before they are written.
    unsafe {
        let to = std::slice::from_raw_parts_mut(out.cast::<f32>(), n);
        std::slice::from_raw_parts(inputs[0].cast::<f16>(), n).convert_to_f32_slice(to);
    }
}

unsafe fn narrow(inputs: &[*const u8; 3], out: *mut u8, n: usize) {
    // SAFETY: as in `widen`.
    unsafe {
        let from = std::slice::from_raw_parts(inputs[0].cast::<f32>(), n);
        std::slice::from_raw_parts_mut(out.cast::<f16>(), n).convert_from_f32_slice(from);
    }
}

/// A kernel's input and output as slices.
///
/// # Safety
/// Both are good for `n` elements and do not overlap, for as long as the slices live.
#[inline(always)]
pub unsafe fn runs<'a, A, B>(
    input: *const u8,
    out: *mut u8,
    n: usize,
) -> (&'a [A], &'a mut [MaybeUninit<B>]) {
    // SAFETY: the caller's promise.
    unsafe {
        (std::slice::from_raw_parts(input.cast(), n), std::slice::from_raw_parts_mut(out.cast(), n))
    }
}

/// A tensor in another dtype; itself where it has it.
pub fn to(threads: &mut Threads, tensor: Tensor, dtype: DType) -> Result<Tensor, EngineError> {
    let from = tensor.dtype();
    if from == dtype {
        return Ok(tensor);
    }
    let plan = Plan::new(kernel(from, dtype), from, dtype);
    let output = Meta::new(dtype, *tensor.shape());
    let mut operands = Operands::new();
    operands.push(Operand::Tensor(tensor));
    elementwise::run(threads, &mut operands, &plan, output)
}

/// The cast operation.
pub fn cast(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    _: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    to(threads, crate::table::tensor(&mut operands, 0)?, output.dtype)
}
