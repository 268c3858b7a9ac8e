//! The terms that bounds are made of, in float64 on the engine itself.

use gt_ir::instruction::Attribute;
use gt_ir::operation::{Graph, Var};
use gt_ir::ops::{create, unary};
use gt_ir::{DType, Operand, Scalar, Shape};
use smallvec::smallvec;

/// A tensor or a number.
pub type Value = Operand<Var>;

/// A value, and how far another correct evaluation may differ from it; `None` for an exact value.
/// Bounds are float64 tensors of the value's shape; infinity means "any value".
#[derive(Clone, Copy, Debug)]
pub struct Pair {
    pub value: Var,
    pub bound: Option<Var>,
}

/// The unit roundoff: the largest relative error of rounding to a dtype; 0 for what is exact.
pub fn unit(dtype: DType) -> f64 {
    match dtype.to_real() {
        DType::F16 => 2f64.powi(-11),
        DType::BF16 => 2f64.powi(-8),
        DType::F32 => 2f64.powi(-24),
        DType::F64 => 2f64.powi(-53),
        _ => 0.0,
    }
}

/// The largest finite number of a dtype.
pub fn largest(dtype: DType) -> f64 {
    match dtype.to_real() {
        DType::F16 => 65504.0,
        DType::BF16 => 3.389e38,
        DType::F32 => f64::from(f32::MAX),
        _ => f64::MAX,
    }
}

/// What may be lost where numbers are too small for full precision, or are flushed to zero.
pub fn tiny(dtype: DType) -> f64 {
    match dtype.to_real() {
        DType::F16 => 2f64.powi(-24),
        DType::BF16 | DType::F32 => f64::from(f32::MIN_POSITIVE),
        DType::F64 => f64::MIN_POSITIVE,
        _ => 0.0,
    }
}

/// The dtype that an operation computes in: 16-bit floats are widened.
pub fn computing(dtype: DType) -> DType {
    match dtype {
        DType::F16 | DType::BF16 => DType::F32,
        other => other,
    }
}

/// `value` in float64, or complex128.
pub fn wide(g: &mut dyn Graph, value: Value) -> Value {
    match value {
        Operand::Scalar(scalar) => Operand::Scalar(Scalar::Float(scalar.as_f64())),
        Operand::Tensor(var) => {
            let to = if g.meta(var).dtype.is_complex() { DType::C128 } else { DType::F64 };
            Operand::Tensor(g.cast(var, to))
        }
    }
}

/// |value|, and 0 where it is infinite or NaN: what these make is looked at by itself.
pub fn magnitude(g: &mut dyn Graph, value: Value) -> Value {
    match wide(g, value) {
        Operand::Scalar(scalar) => {
            let length = scalar.as_f64().abs();
            Operand::Scalar(Scalar::Float(if length.is_finite() { length } else { 0.0 }))
        }
        Operand::Tensor(var) => {
            let length = g.abs(var);
            let finite = g.lt(length, f64::INFINITY);
            Operand::Tensor(g.select(finite, length, 0.0))
        }
    }
}

/// The sum of two bounds.
pub fn plus(g: &mut dyn Graph, a: Value, b: Value) -> Value {
    match (a, b) {
        (Operand::Scalar(a), Operand::Scalar(b)) => {
            Operand::Scalar(Scalar::Float(a.as_f64() + b.as_f64()))
        }
        _ => Operand::Tensor(g.add(a, b)),
    }
}

/// A bound times a number.
pub fn times(g: &mut dyn Graph, a: Value, factor: f64) -> Value {
    match a {
        Operand::Scalar(a) => Operand::Scalar(Scalar::Float(a.as_f64() * factor)),
        Operand::Tensor(a) => Operand::Tensor(g.mul(a, factor)),
    }
}

/// The sum of the bounds that there are.
pub fn total(g: &mut dyn Graph, bounds: &[Option<Var>]) -> Option<Var> {
    bounds.iter().flatten().copied().reduce(|a, b| g.add(a, b))
}

/// A bound of this shape that is the same everywhere.
pub fn constant(g: &mut dyn Graph, shape: Shape, bound: f64) -> Var {
    let attributes = smallvec![Attribute::dims(&shape), Attribute::DType(DType::F64)];
    g.emit(&create::FULL, &[Operand::Scalar(Scalar::Float(bound))], attributes)
}

/// `relative * |result| + tiny`: what rounding a result loses.
pub fn rounding(g: &mut dyn Graph, result: Var, relative: f64, tiny: f64) -> Var {
    let Operand::Tensor(length) = magnitude(g, result.into()) else { unreachable!("a tensor") };
    let length = g.mul(length, relative);
    g.add(length, tiny)
}

/// How far a computed number is from the result: 0 where both are the same infinity or NaN.
pub fn distance(g: &mut dyn Graph, computed: Var, result: Var) -> Var {
    let apart = g.sub(computed, result);
    let apart = g.abs(apart);
    let equal = g.eq(computed, result);
    let (a, b) = (g.ne(computed, computed), g.ne(result, result));
    let none = g.logical_and(a, b);
    let same = g.logical_or(equal, none);
    g.select(same, 0.0, apart)
}

/// The number as a dtype holds it, in float64: beyond its largest it is infinite.
pub fn held(g: &mut dyn Graph, computed: Var, dtype: DType) -> Var {
    let narrow = match dtype {
        // Compiled code may keep float16 as float32 in between, where 65504 is not the largest.
        DType::BF16 | DType::F32 => DType::F32,
        DType::C64 => DType::C64,
        _ => return computed,
    };
    let from = g.meta(computed).dtype;
    let narrow = g.emit(&unary::CAST, &[computed.into()], smallvec![Attribute::DType(narrow)]);
    g.emit(&unary::CAST, &[narrow.into()], smallvec![Attribute::DType(from)])
}

/// Makes what is NaN, or so large that a sum may have overflowed on the way, unknown.
pub fn sealed(g: &mut dyn Graph, bound: Var, result: Var, dtype: DType) -> Var {
    let limit = if dtype.is_exact() { f64::MAX } else { unit(dtype) * largest(dtype) };
    let known = g.le(bound, limit);
    let bound = g.select(known, bound, f64::INFINITY);
    if dtype != DType::F16 {
        return bound;
    }
    // Kept as float32 in between, it need not overflow.
    let length = g.cast(result, DType::F64);
    let length = g.abs(length);
    let infinite = g.eq(length, f64::INFINITY);
    g.select(infinite, f64::INFINITY, bound)
}

/// A bound broadcast to a result's shape.
pub fn spread(g: &mut dyn Graph, bound: Value, result: Var) -> Var {
    let shape = g.shape(result);
    match bound {
        Operand::Scalar(bound) => constant(g, shape, bound.as_f64()),
        Operand::Tensor(bound) => g.expand(bound, shape),
    }
}

/// A bound that says nothing.
pub fn unknown(g: &mut dyn Graph, result: Var) -> Var {
    let shape = g.shape(result);
    constant(g, shape, f64::INFINITY)
}
