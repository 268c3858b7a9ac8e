//! Kernels with three operands: where, clamp and mul_add.

use gt_ir::instruction::Operands;
use gt_ir::{Attributes, DType, Meta};
use gt_worker::EngineError;

use crate::cast::runs;
use crate::element::{Bool, Complex, Element, Number, with_bits, with_element};
use crate::elementwise::{self, PARALLEL};
use crate::kernel::{ByDType, Kernel};
use crate::simd::vectorized;
use crate::tensor::Tensor;
use crate::threads::Threads;

/// A function of three elements.
pub trait Ternary<T> {
    fn at(a: T, b: T, c: T) -> T;
}

pub struct Clamp;
pub struct MulAdd;

impl<T: Number> Ternary<T> for Clamp {
    #[inline(always)]
    fn at(x: T, low: T, high: T) -> T {
        x.larger(low).smaller(high)
    }
}

impl<T: Number> Ternary<T> for MulAdd {
    /// Rounds twice, so that every machine has the same results.
    #[inline(always)]
    fn at(a: T, b: T, c: T) -> T {
        a.plus(b.times(c))
    }
}

/// # Safety
/// As for [`Kernel::run`] of a kernel that may run in place.
unsafe fn each<T: Copy, O: Ternary<T>>(inputs: &[*const u8; 3], out: *mut u8, n: usize) {
    // SAFETY: the contract of kernels.
    let (b, c) = unsafe {
        (
            std::slice::from_raw_parts(inputs[1].cast::<T>(), n),
            std::slice::from_raw_parts(inputs[2].cast::<T>(), n),
        )
    };
    vectorized(
        #[inline(always)]
        || {
            if inputs[0] == out.cast_const() {
                // SAFETY: the contract of kernels: the output is the first input's memory, of
                // the same type, and initialized.
                let values = unsafe { std::slice::from_raw_parts_mut(out.cast::<T>(), n) };
                for ((value, b), c) in values.iter_mut().zip(b).zip(c) {
                    *value = O::at(*value, *b, *c);
                }
            } else {
                // SAFETY: the contract of kernels: otherwise they do not overlap.
                let (a, to) = unsafe { runs::<T, T>(inputs[0], out, n) };
                for (((to, a), b), c) in to.iter_mut().zip(a).zip(b).zip(c) {
                    to.write(O::at(*a, *b, *c));
                }
            }
        },
    );
}

/// # Safety
/// As for [`Kernel::run`].
unsafe fn choose<T: Copy>(inputs: &[*const u8; 3], out: *mut u8, n: usize) {
    // SAFETY: the contract of kernels.
    let (condition, a, b, to) = unsafe {
        let (condition, to) = runs::<Bool, T>(inputs[0], out, n);
        let a = std::slice::from_raw_parts(inputs[1].cast::<T>(), n);
        (condition, a, std::slice::from_raw_parts(inputs[2].cast::<T>(), n), to)
    };
    vectorized(
        #[inline(always)]
        || {
            for (((to, condition), a), b) in to.iter_mut().zip(condition).zip(a).zip(b) {
                to.write(if condition.truth() { *a } else { *b });
            }
        },
    );
}

const fn same<T: Element, O: Ternary<T>>() -> Option<Kernel> {
    // SAFETY: `each` reads three runs of T and writes one run of T.
    Some(unsafe { Kernel::in_place::<T>(each::<T, O>, 3) })
}

/// Returns the kernels for bool, integers and floats.
pub const fn numbers<O>() -> ByDType
where
    O: Ternary<Bool>
        + Ternary<u8>
        + Ternary<i8>
        + Ternary<i16>
        + Ternary<i32>
        + Ternary<i64>
        + Ternary<f32>
        + Ternary<f64>,
{
    [
        same::<Bool, O>(),
        same::<u8, O>(),
        same::<i8, O>(),
        same::<i16, O>(),
        same::<i32, O>(),
        same::<i64, O>(),
        None,
        None,
        same::<f32, O>(),
        same::<f64, O>(),
        None,
        None,
    ]
}

/// Adds the kernels for complex numbers.
pub const fn with_complex<O: Ternary<Complex<f32>> + Ternary<Complex<f64>>>(
    mut kernels: ByDType,
) -> ByDType {
    kernels[DType::C64 as usize] = same::<Complex<f32>, O>();
    kernels[DType::C128 as usize] = same::<Complex<f64>, O>();
    kernels
}

/// Computes `where`. It only moves elements, so 16-bit floats are not cast and only the size
/// matters.
pub fn choice(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    _: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    elementwise::run(threads, &mut operands, &choosing(output.dtype), PARALLEL, output)
}

/// Returns the kernel that selects elements of a dtype.
pub fn choosing(dtype: DType) -> Kernel {
    with_element!(dtype, T => {
        // SAFETY: `choose` reads a run of bools and two runs of T, and writes a run of T. Elements
        // of one size are moved in the same way, whatever their type.
        with_bits!(dtype.size(), B => unsafe { Kernel::with_first::<Bool, T>(choose::<B>, 3) })
    })
}
