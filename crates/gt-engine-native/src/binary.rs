//! Kernels with two operands: arithmetic and comparisons.

use std::mem::MaybeUninit;

use gt_ir::instruction::Operands;
use gt_ir::{Attributes, DType, Meta, Operand, Scalar};
use gt_worker::EngineError;

use crate::cast::{self, runs};
use crate::element::{Bool, Complex, Element, Number, Whole, compute_dtype, with_number};
use crate::elementwise::{self, PARALLEL};
use crate::kernel::{ByDType, Kernel};
use crate::math::Float;
use crate::repeats;
use crate::simd::vectorized;
use crate::tensor::Tensor;
use crate::threads::Threads;

/// A function of two elements.
pub trait Binary<T, R = T> {
    fn at(a: T, b: T) -> R;
}

/// Defines a function of two elements for each type that has the trait.
macro_rules! binary {
    ($($name:ident: $bound:ident => $result:ty, |$a:ident, $b:ident| $body:expr;)*) => { $(
        pub struct $name;

        impl<T: $bound> Binary<T, $result> for $name {
            #[inline(always)]
            fn at($a: T, $b: T) -> $result {
                $body
            }
        }
    )* };
}

binary! {
    Add: Number => T, |a, b| a.plus(b);
    Sub: Number => T, |a, b| a.minus(b);
    Mul: Number => T, |a, b| a.times(b);
    Div: Float => T, |a, b| a.divide(b);
    FloorDivide: Number => T, |a, b| a.floor_divide(b);
    Remainder: Number => T, |a, b| a.remainder(b);
    Power: Number => T, |a, b| a.power(b);
    First: Number => T, |a, _b| a;
    Square: Number => T, |a, _b| a.times(a);
    Cube: Number => T, |a, _b| a.times(a).times(a);
    Maximum: Number => T, |a, b| a.larger(b);
    Minimum: Number => T, |a, b| a.smaller(b);
    And: Whole => T, |a, b| a.and(b);
    Or: Whole => T, |a, b| a.or(b);
    Xor: Whole => T, |a, b| a.xor(b);
    Eq: Number => Bool, |a, b| Bool::from(a == b);
    Ne: Number => Bool, |a, b| Bool::from(a != b);
    Lt: Number => Bool, |a, b| Bool::from(a < b);
    Le: Number => Bool, |a, b| Bool::from(a <= b);
    Gt: Number => Bool, |a, b| Bool::from(a > b);
    Ge: Number => Bool, |a, b| Bool::from(a >= b);
    LogicalAnd: Number => Bool, |a, b| Bool::from(a.truth() & b.truth());
    LogicalOr: Number => Bool, |a, b| Bool::from(a.truth() | b.truth());
    LogicalXor: Number => Bool, |a, b| Bool::from(a.truth() ^ b.truth());
}

/// # Safety
/// As for [`Kernel::run`] of a kernel that may run in place.
unsafe fn each<T: Copy, O: Binary<T>>(inputs: &[*const u8; 3], out: *mut u8, n: usize) {
    let [left, right, _] = *inputs;
    // SAFETY: the contract of kernels.
    let right = unsafe { std::slice::from_raw_parts(right.cast::<T>(), n) };
    vectorized(
        #[inline(always)]
        || {
            if left == out.cast_const() {
                // SAFETY: the contract of kernels: the output is the first input's memory, of
                // the same type, and initialized.
                let values = unsafe { std::slice::from_raw_parts_mut(out.cast::<T>(), n) };
                for (value, right) in values.iter_mut().zip(right) {
                    *value = O::at(*value, *right);
                }
            } else {
                // SAFETY: the contract of kernels: otherwise they do not overlap.
                let (left, to) = unsafe { runs::<T, T>(left, out, n) };
                map::<T, T, O>(left, right, to);
            }
        },
    );
}

/// # Safety
/// As for [`Kernel::run`].
unsafe fn into_bool<T: Copy, O: Binary<T, Bool>>(inputs: &[*const u8; 3], out: *mut u8, n: usize) {
    // SAFETY: the contract of kernels.
    let (right, (left, to)) = unsafe {
        (std::slice::from_raw_parts(inputs[1].cast(), n), runs::<T, Bool>(inputs[0], out, n))
    };
    vectorized(
        #[inline(always)]
        || map::<T, Bool, O>(left, right, to),
    );
}

#[inline(always)]
fn map<T: Copy, R, O: Binary<T, R>>(left: &[T], right: &[T], to: &mut [MaybeUninit<R>]) {
    for ((to, left), right) in to.iter_mut().zip(left).zip(right) {
        to.write(O::at(*left, *right));
    }
}

const fn same<T: Element, O: Binary<T>>() -> Option<Kernel> {
    // SAFETY: `each` reads two runs of T and writes one run of T.
    Some(unsafe { Kernel::in_place::<T>(each::<T, O>, 2) })
}

const fn predicate<T: Element, O: Binary<T, Bool>>() -> Option<Kernel> {
    // SAFETY: `into_bool` reads two runs of T and writes one run of bools.
    Some(unsafe { Kernel::new::<T, Bool>(into_bool::<T, O>, 2) })
}

/// Returns the kernels for bool, integers and floats.
pub const fn numbers<O>() -> ByDType
where
    O: Binary<Bool>
        + Binary<u8>
        + Binary<i8>
        + Binary<i16>
        + Binary<i32>
        + Binary<i64>
        + Binary<f32>
        + Binary<f64>,
{
    let mut kernels = whole::<O>();
    let floats = floats::<O>();
    (kernels[8], kernels[9]) = (floats[8], floats[9]);
    kernels
}

/// Returns the kernels for bool and integers.
pub const fn whole<O>() -> ByDType
where
    O: Binary<Bool> + Binary<u8> + Binary<i8> + Binary<i16> + Binary<i32> + Binary<i64>,
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
        None,
        None,
        None,
        None,
    ]
}

/// Returns the kernels for floats.
pub const fn floats<O: Binary<f32> + Binary<f64>>() -> ByDType {
    let mut kernels = [None; DType::ALL.len()];
    kernels[8] = same::<f32, O>();
    kernels[9] = same::<f64, O>();
    kernels
}

/// Adds the kernels for complex numbers, with complex results.
pub const fn with_complex<O: Binary<Complex<f32>> + Binary<Complex<f64>>>(
    mut kernels: ByDType,
) -> ByDType {
    kernels[DType::C64 as usize] = same::<Complex<f32>, O>();
    kernels[DType::C128 as usize] = same::<Complex<f64>, O>();
    kernels
}

/// Adds the kernels for complex numbers whose results are bools.
pub const fn with_complex_predicates<O>(mut kernels: ByDType) -> ByDType
where
    O: Binary<Complex<f32>, Bool> + Binary<Complex<f64>, Bool>,
{
    kernels[DType::C64 as usize] = predicate::<Complex<f32>, O>();
    kernels[DType::C128 as usize] = predicate::<Complex<f64>, O>();
    kernels
}

/// Returns the comparison kernels for bool, integers and floats.
pub const fn comparisons<O>() -> ByDType
where
    O: Binary<Bool, Bool>
        + Binary<u8, Bool>
        + Binary<i8, Bool>
        + Binary<i16, Bool>
        + Binary<i32, Bool>
        + Binary<i64, Bool>
        + Binary<f32, Bool>
        + Binary<f64, Bool>,
{
    [
        predicate::<Bool, O>(),
        predicate::<u8, O>(),
        predicate::<i8, O>(),
        predicate::<i16, O>(),
        predicate::<i32, O>(),
        predicate::<i64, O>(),
        None,
        None,
        predicate::<f32, O>(),
        predicate::<f64, O>(),
        None,
        None,
    ]
}

pub static FLOOR_DIVIDE: ByDType = numbers::<FloorDivide>();
pub static REMAINDER: ByDType = numbers::<Remainder>();
static POWER: ByDType = with_complex::<Power>(numbers::<Power>());
static FIRST: ByDType = with_complex::<First>(numbers::<First>());
static SQUARE: ByDType = with_complex::<Square>(numbers::<Square>());
static CUBE: ByDType = with_complex::<Cube>(numbers::<Cube>());

pub fn compute(
    threads: &mut Threads,
    kernels: &ByDType,
    mut operands: Operands<Tensor>,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let dtype = compute_dtype(output.dtype);
    let kernel =
        kernels[dtype as usize].as_ref().expect("inference yields a dtype that has a kernel");
    elementwise::run(threads, &mut operands, kernel, PARALLEL, output)
}

/// Checks that no divisor of an integer division is zero.
///
/// # Errors
/// An integer divisor is zero.
pub fn check_divisor(
    threads: &mut Threads,
    operands: &mut Operands<Tensor>,
    output: Meta,
) -> Result<(), EngineError> {
    if !output.dtype.is_exact() || output.shape.numel() == 0 {
        return Ok(());
    }
    let zero = match &mut operands[1] {
        Operand::Scalar(scalar) => scalar.as_i64() == 0,
        Operand::Tensor(tensor) => {
            // Repeated elements need to be checked only once.
            let distinct = repeats::distinct_of(tensor.clone());
            let cast = cast::to(threads, distinct, output.dtype)?.contiguous()?;
            with_number!(output.dtype, T => cast.as_slice::<T>().iter().any(|x| !x.truth()))
        }
    };
    if zero { Err(EngineError::Other("integer division by zero".into())) } else { Ok(()) }
}

pub fn floor_divide(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    _: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    check_divisor(threads, &mut operands, output)?;
    compute(threads, &FLOOR_DIVIDE, operands, output)
}

pub fn remainder(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    _: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    check_divisor(threads, &mut operands, output)?;
    compute(threads, &REMAINDER, operands, output)
}

/// Raises to a power. Exponents of 1, 2 and 3 are computed by multiplication.
pub fn power(
    threads: &mut Threads,
    operands: Operands<Tensor>,
    _: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let exponent = operands[1].scalar();
    if let Some(Scalar::Int(exponent)) = exponent
        && output.dtype.is_exact()
        && exponent < 0
    {
        let text = "integers to negative integer powers are not allowed".to_string();
        return Err(EngineError::Other(text));
    }
    compute(threads, power_kernels(exponent.map(Scalar::as_f64)), operands, output)
}

/// Returns the kernels for powers: special ones for some exponents that are the same for all
/// elements, else the general ones.
pub fn power_kernels(exponent: Option<f64>) -> &'static ByDType {
    match exponent {
        Some(1.0) => &FIRST,
        Some(2.0) => &SQUARE,
        Some(3.0) => &CUBE,
        _ => &POWER,
    }
}

/// Returns the dtype that comparisons are computed in: the promoted dtype of the operands.
pub fn promoted(operands: &Operands<Tensor>) -> DType {
    let metas: smallvec::SmallVec<[Operand<Meta>; 3]> =
        operands.iter().map(|operand| operand.map(Tensor::meta)).collect();
    compute_dtype(gt_ir::ops::infer::promote(&metas))
}
