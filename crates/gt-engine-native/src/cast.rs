//! Casts between all dtypes.

use std::mem::MaybeUninit;

use gt_ir::instruction::Operands;
use gt_ir::operation::Meta;
use gt_ir::{Attributes, DType, Operand};
use gt_worker::EngineError;
use half::f16;

use crate::element::{Bool, Complex, Element};
use crate::elementwise::{self, PARALLEL};
use crate::half_floats;
use crate::kernel::Kernel;
use crate::simd::vectorized;
use crate::tensor::Tensor;
use crate::threads::Threads;

/// Returns the kernel that casts from one dtype to another.
pub fn kernel(from: DType, to: DType) -> &'static Kernel {
    match (from, to) {
        (DType::F16, DType::F32) => &WIDEN,
        (DType::F32, DType::F16) => &NARROW,
        _ => &KERNELS[from as usize][to as usize],
    }
}

/// Rows by source dtype, columns by target dtype.
static KERNELS: [[Kernel; DType::ALL.len()]; DType::ALL.len()] = [
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
    row::<Complex<f32>>(),
    row::<Complex<f64>>(),
];

const fn one<A: Element, B: Element>() -> Kernel {
    // SAFETY: `each` reads a run of A and writes a run of B.
    unsafe { Kernel::new::<A, B>(each::<A, B>, 1) }
}

const fn row<A: Element>() -> [Kernel; DType::ALL.len()] {
    [
        one::<A, Bool>(),
        one::<A, u8>(),
        one::<A, i8>(),
        one::<A, i16>(),
        one::<A, i32>(),
        one::<A, i64>(),
        one::<A, f16>(),
        one::<A, half::bf16>(),
        one::<A, f32>(),
        one::<A, f64>(),
        one::<A, Complex<f32>>(),
        one::<A, Complex<f64>>(),
    ]
}

/// # Safety
/// As for [`Kernel::run`].
unsafe fn each<A: Element, B: Element>(inputs: &[*const u8; 3], out: *mut u8, n: usize) {
    // SAFETY: the contract of kernels; a cast never runs in place.
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

// SAFETY: `widen` reads a run of float16 and writes a run of float32.
static WIDEN: Kernel = unsafe { Kernel::new::<f16, f32>(widen, 1) };
// SAFETY: `narrow` reads a run of float32 and writes a run of float16.
static NARROW: Kernel = unsafe { Kernel::new::<f32, f16>(narrow, 1) };

/// # Safety
/// As for [`Kernel::run`].
unsafe fn widen(inputs: &[*const u8; 3], out: *mut u8, n: usize) {
    // SAFETY: the contract of kernels.
    let (from, to) = unsafe { runs(inputs[0], out, n) };
    half_floats::widen(from, to);
}

/// # Safety
/// As for [`Kernel::run`].
unsafe fn narrow(inputs: &[*const u8; 3], out: *mut u8, n: usize) {
    // SAFETY: the contract of kernels.
    let (from, to) = unsafe { runs(inputs[0], out, n) };
    half_floats::narrow(from, to);
}

/// Returns a kernel's input and output as slices.
///
/// # Safety
/// `n` elements can be read at `input` and written at `out`, aligned; the two do not overlap. For
/// as long as the slices live, no other thread writes the one or accesses the other.
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

/// Returns a tensor in another dtype; the tensor itself if it has that dtype.
pub fn to(threads: &mut Threads, tensor: Tensor, dtype: DType) -> Result<Tensor, EngineError> {
    let from = tensor.dtype();
    if from == dtype {
        return Ok(tensor);
    }
    let output = Meta::new(dtype, *tensor.shape());
    let mut operands = Operands::new();
    operands.push(Operand::Tensor(tensor));
    elementwise::run(threads, &mut operands, kernel(from, dtype), PARALLEL, output)
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
