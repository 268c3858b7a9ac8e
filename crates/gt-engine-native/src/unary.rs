//! Kernels with one operand.

use std::mem::MaybeUninit;

use gt_ir::instruction::Operands;
use gt_ir::{Attributes, DType, Meta};
use gt_worker::EngineError;

use crate::cast::runs;
use crate::element::{Bool, Complex, Element, Number, Whole, compute_dtype};
use crate::elementwise::{self, PARALLEL_FUNCTIONS};
use crate::kernel::{ByDType, Kernel};
use crate::math::{FAR, Float};
use crate::simd::vectorized;
use crate::tensor::Tensor;
use crate::threads::Threads;

/// A function of one element.
pub trait Unary<T, R = T> {
    fn at(x: T) -> R;
}

/// Defines a function of one element for each type that has the trait.
macro_rules! unary {
    ($($name:ident: $bound:ident => $result:ty, |$x:ident| $body:expr;)*) => { $(
        pub struct $name;

        impl<T: $bound> Unary<T, $result> for $name {
            #[inline(always)]
            fn at($x: T) -> $result {
                $body
            }
        }
    )* };
}

unary! {
    Neg: Number => T, |x| x.negative();
    Abs: Number => T, |x| x.absolute();
    // The sign of NaN is 0, as in PyTorch.
    Sign: Number => T, |x| {
        if x > T::ZERO { T::ONE } else if x < T::ZERO { T::ONE.negative() } else { T::ZERO }
    };
    // NaN fails the comparison and propagates.
    Relu: Number => T, |x| if x <= T::ZERO { T::ZERO } else { x };
    Identity: Number => T, |x| x;
    BitwiseNot: Whole => T, |x| x.not();
    LogicalNot: Number => Bool, |x| Bool::from(!x.truth());
    IsNan: Number => Bool, |x| Bool::from(x.is_nan());
    Exp: Float => T, |x| x.exp();
    Log: Float => T, |x| x.log();
    Log1p: Float => T, |x| x.log1p();
    Expm1: Float => T, |x| x.expm1();
    Sqrt: Float => T, |x| Float::sqrt(x);
    Rsqrt: Float => T, |x| T::ONE.divide(Float::sqrt(x));
    Erf: Float => T, |x| x.erf();
    Sigmoid: Float => T, |x| x.sigmoid();
    Tanh: Float => T, |x| x.tanh();
    Gelu: Float => T, |x| x.gelu();
    GeluTanh: Float => T, |x| x.gelu_tanh();
    Silu: Float => T, |x| x.times(x.sigmoid());
    Softplus: Float => T, |x| x.softplus();
}

/// Defines floor, ceil and round, which exist for floats only: integers are whole already.
macro_rules! rounding {
    ($($name:ident => $function:ident),*) => { $(
        pub struct $name;

        impl Unary<f32> for $name {
            #[inline(always)]
            fn at(x: f32) -> f32 { x.$function() }
        }

        impl Unary<f64> for $name {
            #[inline(always)]
            fn at(x: f64) -> f64 { x.$function() }
        }
    )* };
}

rounding!(Floor => floor, Ceil => ceil, Round => round_ties_even);

/// # Safety
/// As for [`Kernel::run`] of a kernel that may run in place.
unsafe fn each<T: Copy, O: Unary<T>>(inputs: &[*const u8; 3], out: *mut u8, n: usize) {
    let input = inputs[0];
    vectorized(
        #[inline(always)]
        || {
            if input == out.cast_const() {
                // SAFETY: the contract of kernels: the output is the input's memory, of the same
                // type, and initialized.
                let values = unsafe { std::slice::from_raw_parts_mut(out.cast::<T>(), n) };
                for value in values {
                    *value = O::at(*value);
                }
            } else {
                // SAFETY: the contract of kernels: otherwise they do not overlap.
                let (from, to) = unsafe { runs::<T, T>(input, out, n) };
                map::<T, T, O>(from, to);
            }
        },
    );
}

/// # Safety
/// As for [`Kernel::run`].
unsafe fn into_bool<T: Copy, O: Unary<T, Bool>>(inputs: &[*const u8; 3], out: *mut u8, n: usize) {
    // SAFETY: the contract of kernels.
    let (from, to) = unsafe { runs::<T, Bool>(inputs[0], out, n) };
    vectorized(
        #[inline(always)]
        || map::<T, Bool, O>(from, to),
    );
}

#[inline(always)]
fn map<T: Copy, R, O: Unary<T, R>>(from: &[T], to: &mut [MaybeUninit<R>]) {
    for (to, from) in to.iter_mut().zip(from) {
        to.write(O::at(*from));
    }
}

/// Computes sine and cosine of float32; the few numbers that are too large for the polynomials are
/// recomputed.
///
/// # Safety
/// As for [`Kernel::run`] of a kernel that may run in place.
unsafe fn wave<const COSINE: bool>(inputs: &[*const u8; 3], out: *mut u8, n: usize) {
    // In place, the inputs are overwritten: the large ones, which are rare, are saved first.
    // SAFETY: the contract of kernels.
    let far: Vec<(usize, f32)> = unsafe { std::slice::from_raw_parts(inputs[0].cast::<f32>(), n) }
        .iter()
        .enumerate()
        .filter(|(_, x)| x.abs() > FAR)
        .map(|(index, x)| (index, *x))
        .collect();
    // SAFETY: the contract of kernels; `far` has indices below n.
    unsafe {
        if COSINE {
            each::<f32, CosNear>(inputs, out, n);
        } else {
            each::<f32, SinNear>(inputs, out, n);
        }
        for (index, x) in far {
            *out.cast::<f32>().add(index) = if COSINE { x.cos() } else { x.sin() };
        }
    }
}

unary! {
    SinNear: Float => T, |x| Float::sin(x);
    CosNear: Float => T, |x| Float::cos(x);
}

const fn same<T: Element, O: Unary<T>>() -> Option<Kernel> {
    // SAFETY: `each` reads a run of T and writes a run of T.
    Some(unsafe { Kernel::in_place::<T>(each::<T, O>, 1) })
}

const fn predicate<T: Element, O: Unary<T, Bool>>() -> Option<Kernel> {
    // SAFETY: `into_bool` reads a run of T and writes a run of bools.
    Some(unsafe { Kernel::new::<T, Bool>(into_bool::<T, O>, 1) })
}

/// Returns the kernels for bool, integers and floats.
pub const fn numbers<O>() -> ByDType
where
    O: Unary<Bool>
        + Unary<u8>
        + Unary<i8>
        + Unary<i16>
        + Unary<i32>
        + Unary<i64>
        + Unary<f32>
        + Unary<f64>,
{
    let mut kernels = whole::<O>();
    let floats = floats::<O>();
    (kernels[8], kernels[9]) = (floats[8], floats[9]);
    kernels
}

/// Returns the kernels for bool and integers.
pub const fn whole<O>() -> ByDType
where
    O: Unary<Bool> + Unary<u8> + Unary<i8> + Unary<i16> + Unary<i32> + Unary<i64>,
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
pub const fn floats<O: Unary<f32> + Unary<f64>>() -> ByDType {
    let mut kernels = [None; DType::ALL.len()];
    kernels[8] = same::<f32, O>();
    kernels[9] = same::<f64, O>();
    kernels
}

/// Adds the kernels for complex numbers, with complex results.
pub const fn with_complex<O: Unary<Complex<f32>> + Unary<Complex<f64>>>(
    mut kernels: ByDType,
) -> ByDType {
    kernels[DType::C64 as usize] = same::<Complex<f32>, O>();
    kernels[DType::C128 as usize] = same::<Complex<f64>, O>();
    kernels
}

/// Adds the kernels for complex numbers whose results are bools.
pub const fn with_complex_predicates<O>(mut kernels: ByDType) -> ByDType
where
    O: Unary<Complex<f32>, Bool> + Unary<Complex<f64>, Bool>,
{
    kernels[DType::C64 as usize] = predicate::<Complex<f32>, O>();
    kernels[DType::C128 as usize] = predicate::<Complex<f64>, O>();
    kernels
}

/// Returns the kernels that round floats and leave integers unchanged.
pub const fn roundings<O: Unary<f32> + Unary<f64>>() -> ByDType {
    let mut kernels = whole::<Identity>();
    let floats = floats::<O>();
    (kernels[8], kernels[9]) = (floats[8], floats[9]);
    kernels
}

/// Returns the kernels of sine or cosine.
pub const fn waves<const COSINE: bool>() -> ByDType {
    let mut kernels = if COSINE { floats::<CosNear>() } else { floats::<SinNear>() };
    // SAFETY: `wave` reads a run of float32 and writes a run of float32.
    kernels[8] = Some(unsafe { Kernel::in_place::<f32>(wave::<COSINE>, 1) });
    kernels
}

/// Returns the kernels for bool, integers and floats whose results are bools.
pub const fn predicates<O>() -> ByDType
where
    O: Unary<Bool, Bool>
        + Unary<u8, Bool>
        + Unary<i8, Bool>
        + Unary<i16, Bool>
        + Unary<i32, Bool>
        + Unary<i64, Bool>
        + Unary<f32, Bool>
        + Unary<f64, Bool>,
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

static GELU: ByDType = floats::<Gelu>();
static GELU_TANH: ByDType = floats::<GeluTanh>();

/// Computes gelu, in the form that its attribute selects.
pub fn gelu(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let kernels = gelu_kernels(gt_ir::operation::int(attributes, 0) == 1);
    let dtype = compute_dtype(output.dtype);
    let kernel = kernels[dtype as usize].as_ref().expect("inference yields a float dtype");
    elementwise::run(threads, &mut operands, kernel, PARALLEL_FUNCTIONS, output)
}

/// Returns the kernels of gelu: the tanh approximation or the exact form.
pub fn gelu_kernels(tanh: bool) -> &'static ByDType {
    if tanh { &GELU_TANH } else { &GELU }
}
