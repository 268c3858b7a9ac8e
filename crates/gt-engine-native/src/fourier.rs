//! Discrete Fourier transforms along an axis, on several threads.

use std::sync::{Mutex, PoisonError};

use bytemuck::Pod;
use gt_ir::instruction::Operands;
use gt_ir::operation::{bool, float, int};
use gt_ir::{Attributes, DType, Meta};
use gt_linalg::fourier::{FourierFloat, Plans};
use gt_worker::EngineError;

use crate::axis_rows::AxisRows;
use crate::budget;
use crate::element::{Complex, Element};
use crate::table::tensor;
use crate::tensor::Tensor;
use crate::threads::Threads;
use crate::uninit::zeroed;

/// Elements that one thread transforms at a time.
const PIECE: usize = 1 << 14;

/// The most rows that a transform may need as scratch memory.
const SCRATCH: usize = 6;

/// A float whose complex type is an element type.
trait ComplexPart: Element + FourierFloat + Pod {
    type Number: Element;
}

impl ComplexPart for f32 {
    type Number = Complex<f32>;
}

impl ComplexPart for f64 {
    type Number = Complex<f64>;
}

/// Calls a function with the process-wide cache of plans.
fn with_plans<T>(use_them: impl FnOnce(&mut Plans) -> T) -> T {
    static PLANS: Mutex<Option<Plans>> = Mutex::new(None);
    let mut plans = PLANS.lock().unwrap_or_else(PoisonError::into_inner);
    use_them(plans.get_or_insert_with(Plans::new))
}

/// Transforms rows of type A into rows of `to` numbers of type B; `run` transforms several rows.
fn transform<A: Element, B: Element>(
    threads: &mut Threads,
    operands: &mut Operands<Tensor>,
    attributes: &Attributes,
    (output, to): (Meta, usize),
    run: impl Fn(&[A], &mut [B]) + Sync,
) -> Result<Tensor, EngineError> {
    // Lengths with large prime factors need several rows of scratch memory.
    let longest = to.max(line_of(operands, attributes));
    let pieces = threads.count().min(output.shape.numel().div_ceil(PIECE.max(longest)));
    let scratch = SCRATCH * longest * A::DTYPE.size().max(B::DTYPE.size()) * pieces.max(1);
    let _scratch = budget::scratch(scratch)?;
    let axis_rows = AxisRows::new(threads, tensor(operands, 0)?, attributes, A::DTYPE)?;
    let mut out = axis_rows.results(B::DTYPE, to)?;
    let from = axis_rows.rows::<A>();
    if !from.is_empty() {
        let step = (PIECE / to).max(1);
        threads.for_each_part(out.slots::<B>(), step * to, |piece, out| {
            let rows = out.len() / to;
            let from = &from[piece * step * axis_rows.length()..][..rows * axis_rows.length()];
            run(from, zeroed(out));
        });
    }
    // SAFETY: every part has been filled with zeros, and then by the transform.
    axis_rows.back(threads, unsafe { out.finish() }, output.dtype)
}

fn scale<T: FourierFloat>(out: &mut [T], factor: f64) {
    if factor != 1.0 {
        T::scale(out, factor);
    }
}

fn c2c_in<T: ComplexPart>(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError>
where
    num_complex::Complex<T>: Pod,
{
    let n = length(attributes, output);
    let plan = with_plans(|plans| plans.complex::<T>(n, bool(attributes, 1)));
    let factor = float(attributes, 2);
    transform::<T::Number, T::Number>(
        threads,
        &mut operands,
        attributes,
        (output, n),
        |from, out| {
            plan.run(bytemuck::cast_slice(from), bytemuck::cast_slice_mut(out));
            scale::<T>(bytemuck::cast_slice_mut(out), factor);
        },
    )
}

fn r2c_in<T: ComplexPart>(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError>
where
    num_complex::Complex<T>: Pod,
{
    let n = operands[0].tensor().map_or(1, |given| length(attributes, given.meta()));
    let plan = with_plans(|plans| plans.real_to_complex::<T>(n));
    let (half, factor) = (length(attributes, output), float(attributes, 1));
    transform::<T, T::Number>(threads, &mut operands, attributes, (output, half), |from, out| {
        plan.run(from, bytemuck::cast_slice_mut(out));
        scale::<T>(bytemuck::cast_slice_mut(out), factor);
    })
}

fn c2r_in<T: ComplexPart>(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError>
where
    num_complex::Complex<T>: Pod,
{
    let n = length(attributes, output);
    let plan = with_plans(|plans| plans.complex_to_real::<T>(n));
    let factor = float(attributes, 2);
    transform::<T::Number, T>(threads, &mut operands, attributes, (output, n), |from, out| {
        plan.run(bytemuck::cast_slice(from), out);
        scale::<T>(out, factor);
    })
}

/// Returns the length of the operand along the axis.
fn line_of(operands: &Operands<Tensor>, attributes: &Attributes) -> usize {
    operands[0].tensor().map_or(1, |given| length(attributes, given.meta()))
}

/// Returns the length of a tensor along the axis.
fn length(attributes: &Attributes, meta: Meta) -> usize {
    let rank = meta.shape.rank() as i64;
    let along = int(attributes, 0);
    meta.shape[(if along < 0 { along + rank } else { along }) as usize]
}

macro_rules! by_dtype {
    ($($(#[$doc:meta])* $name:ident by $function:ident;)*) => { $(
        $(#[$doc])*
        pub fn $name(
            threads: &mut Threads,
            operands: Operands<Tensor>,
            attributes: &Attributes,
            output: Meta,
        ) -> Result<Tensor, EngineError> {
            match output.dtype.to_real() {
                DType::F64 => $function::<f64>(threads, operands, attributes, output),
                _ => $function::<f32>(threads, operands, attributes, output),
            }
        }
    )* };
}

by_dtype! {
    /// Transforms complex numbers to as many complex numbers.
    c2c by c2c_in;
    /// Transforms real numbers to the first half of the complex transform.
    r2c by r2c_in;
    /// Transforms the first half of a complex transform back to real numbers.
    c2r by c2r_in;
}
