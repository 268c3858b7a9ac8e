//! Kernels of one operand.

use std::mem::MaybeUninit;

use gt_ir::instruction::Operands;
use gt_ir::{Attributes, Meta};
use gt_worker::EngineError;

use crate::cast::runs;
use crate::element::{Bool, Number, Whole, compute_dtype};
use crate::elementwise::{self, ByDType, Kernel, PARALLEL_FUNCTIONS, Plan};
use crate::math::{FAR, Float};
use crate::simd::vectorized;
use crate::tensor::Tensor;
use crate::threads::Threads;

/// A function of one element.
pub trait Unary<T, R = T> {
    fn at(x: T) -> R;
}

/// Names a function of one element for each type that has the trait.
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
    // NaN has no sign, as in PyTorch.
    Sign: Number => T, |x| {
        if x > T::ZERO { T::ONE } else if x < T::ZERO { T::ONE.negative() } else { T::ZERO }
    };
    // NaN is not at most 0, and stays.
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

/// floor, ceil and round exist for floats only; integers are whole already.
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
/// As for every [`Kernel`].
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
                // SAFETY: the contract of kernels: else they do not overlap.
                let (from, to) = unsafe { runs::<T, T>(input, out, n) };
                map::<T, T, O>(from, to);
            }
        },
    );
}

/// # Safety
/// As for every [`Kernel`], and never in place.
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

/// Sine and cosine of float32: the few numbers too large for the fast form are done again.
///
/// # Safety
/// As for every [`Kernel`].
unsafe fn wave<const COSINE: bool>(inputs: &[*const u8; 3], out: *mut u8, n: usize) {
    // In place the input would be gone: what is large is kept, which there rarely is.
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

/// Kernels for bool and all numbers.
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

/// Kernels for bool and integers.
pub const fn whole<O>() -> ByDType
where
    O: Unary<Bool> + Unary<u8> + Unary<i8> + Unary<i16> + Unary<i32> + Unary<i64>,
{
    [
        Some(each::<Bool, O>),
        Some(each::<u8, O>),
        Some(each::<i8, O>),
        Some(each::<i16, O>),
        Some(each::<i32, O>),
        Some(each::<i64, O>),
        None,
        None,
        None,
        None,
    ]
}

/// Kernels for floats.
pub const fn floats<O: Unary<f32> + Unary<f64>>() -> ByDType {
    let mut kernels = [None; 10];
    kernels[8] = Some(each::<f32, O> as Kernel);
    kernels[9] = Some(each::<f64, O> as Kernel);
    kernels
}

/// Kernels that round floats and leave integers.
pub const fn roundings<O: Unary<f32> + Unary<f64>>() -> ByDType {
    let mut kernels = whole::<Identity>();
    let floats = floats::<O>();
    (kernels[8], kernels[9]) = (floats[8], floats[9]);
    kernels
}

/// Kernels for sine, or for cosine.
pub const fn waves<const COSINE: bool>() -> ByDType {
    let mut kernels = if COSINE { floats::<CosNear>() } else { floats::<SinNear>() };
    kernels[8] = Some(wave::<COSINE> as Kernel);
    kernels
}

/// Kernels that ask something of any number.
pub const fn questions<O>() -> ByDType
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
        Some(into_bool::<Bool, O>),
        Some(into_bool::<u8, O>),
        Some(into_bool::<i8, O>),
        Some(into_bool::<i16, O>),
        Some(into_bool::<i32, O>),
        Some(into_bool::<i64, O>),
        None,
        None,
        Some(into_bool::<f32, O>),
        Some(into_bool::<f64, O>),
    ]
}

static GELU: ByDType = floats::<Gelu>();
static GELU_TANH: ByDType = floats::<GeluTanh>();

/// gelu in the form that its attribute asks for.
pub fn gelu(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let kernels = gelu_kernels(gt_ir::operation::bool(attributes, 0));
    let dtype = compute_dtype(output.dtype);
    let kernel = kernels[dtype as usize].expect("inference gives a float dtype");
    let plan =
        Plan { in_place: true, parallel: PARALLEL_FUNCTIONS, ..Plan::new(kernel, dtype, dtype) };
    elementwise::run(threads, &mut operands, &plan, output)
}

/// The kernels of gelu, in its tanh form or exact.
pub fn gelu_kernels(tanh: bool) -> &'static ByDType {
    if tanh { &GELU_TANH } else { &GELU }
}
