//! Reductions over one, several or all axes.

use super::sample::{sample, tensor};
use crate::batching::{self, Batching};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::instruction::Attribute;
use crate::operation::Defaults;
use crate::operation::Gradient::Each;
use crate::operation::facts::says::*;
use crate::operation::{
    Call, ComplexRule, Default, FIRST, Family, Graph, Meta, OUTPUT, Operation, Parameter, Sample,
    Saved, Var, face, takes,
};
use crate::shape::{Shape, axes};
use crate::sharding::{Reduction, Rule, along_kept_axes, reduction};

/// A tensor, the axes that are reduced (none for all), and whether they stay with length 1.
pub(super) const OVER: &[Parameter] = &[
    takes::tensor("input"),
    takes::dims("dim").or(Default::None),
    takes::flag("keepdim").or(Default::Bool(false)),
];

/// `dim` empty means all axes.
const REDUCE: Defaults = Defaults(Operation {
    family: Family::Reduce,
    parameters: OVER,
    face: face::BOTH,
    batching: Batching::Leading,
    ..Operation::base().0
});

const NUMBERS: &[DType] =
    &[DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::I32, DType::U8];
const FLOATS: &[DType] = &[DType::F32, DType::F64];

/// The shape after reducing the axes in attribute 0.
fn reduced_shape(call: &Call, may_be_empty: bool) -> Result<(Meta, Shape)> {
    let meta = call.tensor(0)?;
    // As `x.sum()`: nothing is left.
    if call.ints(0).is_empty() && !call.bool(1) && (may_be_empty || meta.shape.numel() > 0) {
        return Ok((meta, Shape::SCALAR));
    }
    let gone = axes(call.ints(0), meta.shape.rank(), call.operation)?;
    if !may_be_empty && gone.iter().any(|&axis| meta.shape[axis] == 0) {
        return Err(Error::EmptyReduction { operation: call.operation, shape: meta.shape });
    }
    let shape = gone.iter().rev().fold(meta.shape, |shape, &axis| {
        if call.bool(1) { shape.with(axis, 1) } else { shape.without(axis) }
    });
    Ok((meta, shape))
}

/// Sums of bool and integers are int64.
pub(super) fn widened(dtype: DType) -> DType {
    if dtype.is_exact() { DType::I64 } else { dtype }
}

fn float_only(call: &Call, given: DType) -> Result<()> {
    let expected = "a float dtype; cast with .to(gt.float32)";
    if !given.is_exact() {
        return Ok(());
    }
    Err(Error::DTypeMismatch { operation: call.operation, given, expected })
}

fn infer_widened(call: &Call) -> Result<Meta> {
    let (meta, shape) = reduced_shape(call, true)?;
    Ok(Meta::new(widened(meta.dtype), shape))
}

fn infer_same(call: &Call) -> Result<Meta> {
    let (meta, shape) = reduced_shape(call, false)?;
    Ok(Meta::new(meta.dtype, shape))
}

fn infer_float(call: &Call) -> Result<Meta> {
    let (meta, shape) = reduced_shape(call, true)?;
    float_only(call, meta.dtype)?;
    Ok(Meta::new(meta.dtype, shape))
}

/// The gradient of the result expanded over the reduced axes.
fn spread(g: &mut dyn Graph, s: &Saved, grad: Var) -> Var {
    g.restore(grad, s.shape(0), s.ints(0), true)
}

/// How many elements each result is reduced from.
fn count(s: &Saved) -> f64 {
    s.shape(0).numel() as f64 / s.output_meta.shape.numel().max(1) as f64
}

fn with_axes(dtypes: &[DType], low: f64, high: f64, empty: bool) -> Vec<Sample> {
    let mut samples = Vec::new();
    let flags = |axes: &[i64], keep| [Attribute::ints(axes), Attribute::Bool(keep)];
    for &dtype in dtypes {
        for (axes, keep) in [(&[][..], false), (&[0], false), (&[-1], true), (&[0, 2], false)] {
            samples.push(sample(&[tensor(dtype, &[2, 3, 4], low, high)], &flags(axes, keep)));
        }
    }
    let x = |dims: &[usize]| tensor(DType::F32, dims, low, high);
    samples.push(sample(&[x(&[])], &flags(&[], false)));
    samples.push(sample(&[x(&[70, 33])], &flags(&[0], false)));
    samples.push(sample(&[x(&[5, 300])], &flags(&[1], false)));
    if empty {
        samples.push(sample(&[x(&[0, 3])], &flags(&[0], false)));
    }
    samples
}

pub static SUM: Operation = Operation {
    id: 65,
    name: "sum",
    doc: "the sum; int64 for bool and integers",
    complex: ComplexRule::OwnRule,
    infer: infer_widened,
    gradient: Each(&[|g, s| spread(g, s, s.grad)]),
    samples: || with_axes(&[NUMBERS, &[DType::Bool]].concat(), 0.0, 3.0, true),
    sharding: |call, output| reduction(call, output, Reduction::Sum).linear_in(&[1]),
    ..REDUCE.with(facts(Float32, Reduction(Reduced), Computed))
};

pub static MEAN: Operation = Operation {
    id: 66,
    name: "mean",
    doc: "the arithmetic mean of floats",
    complex: ComplexRule::OwnRule,
    infer: infer_float,
    gradient: Each(&[|g, s| {
        let share = g.mul(s.grad, 1.0 / count(s));
        spread(g, s, share)
    }]),
    samples: || with_axes(&[DType::F32, DType::F64, DType::F16, DType::BF16], -3.0, 3.0, false),
    sharding: |call, output| Rule {
        averaged: true,
        ..reduction(call, output, Reduction::Sum).linear_in(&[1])
    },
    ..REDUCE.with(facts(Unchanged, Reduction(Reduced), Computed))
};

pub static PROD: Operation = Operation {
    id: 67,
    name: "prod",
    doc: "the product; int64 for bool and integers",
    complex: ComplexRule::Holomorphic,
    infer: infer_widened,
    gradient: Each(&[prod_gradient]),
    saves: FIRST,
    samples: || with_axes(&[DType::F32, DType::F64, DType::I64], 0.5, 1.5, true),
    sharding: |call, output| reduction(call, output, Reduction::Prod),
    ..REDUCE.with(facts(Float32, Products(Reduced), Computed))
};

/// The product of all other elements, also with zeros, as a function that has the right gradients
/// itself: with one zero among the others it is 0, and its gradient by that zero the product of the
/// rest; with two it has no gradients.
fn prod_gradient(g: &mut dyn Graph, s: &Saved) -> Var {
    let x = s.tensor(0);
    let zeros = g.eq(x, 0i64);
    let dtype = s.meta(0).dtype;
    let as_number = g.cast(zeros, dtype);
    let zero_count = g.sum(as_number, s.ints(0), true);
    let other_zeros = g.sub(zero_count, as_number);
    let filled = g.select(zeros, 1i64, x);
    let attributes = s.attributes.iter().take(1).cloned().chain([Attribute::Bool(true)]).collect();
    let product = g.emit(&PROD, &[filled.into()], attributes);
    let quotient = g.div(product, filled);
    // The only other zero.
    let own = g.select(zeros, x, 0i64);
    let sum_of_zeros = g.sum(own, s.ints(0), true);
    let other = g.sub(sum_of_zeros, own);
    let none = g.eq(other_zeros, 0i64);
    let one = g.eq(other_zeros, 1i64);
    let rest = g.select(one, other, 0i64);
    let factor = g.select(none, 1i64, rest);
    let slope = g.mul(quotient, factor);
    let grad = spread(g, s, s.grad);
    g.mul(grad, slope)
}

/// Shared evenly between equal extremes, as in PyTorch's amax.
fn extreme_gradient(g: &mut dyn Graph, s: &Saved) -> Var {
    let extreme = g.restore(s.output(), s.shape(0), s.ints(0), false);
    let mut chosen = g.eq(s.tensor(0), extreme);
    if s.ints(0).is_empty() && s.meta(0).dtype.is_float() {
        // `max()` and `min()` of all: those that are not numbers share, as in PyTorch.
        let is_none = g.ne(s.tensor(0), s.tensor(0));
        let found_none = g.ne(extreme, extreme);
        let none = g.logical_and(is_none, found_none);
        chosen = g.logical_or(chosen, none);
    }
    let dtype = s.meta(0).dtype;
    let chosen = g.cast(chosen, dtype);
    let number = g.sum(chosen, s.ints(0), true);
    let grad = g.restore(s.grad, s.shape(0), s.ints(0), false);
    let share = g.div(grad, number);
    g.mul(chosen, share)
}

pub static AMAX: Operation = Operation {
    id: 68,
    name: "amax",
    doc: "the largest value",
    infer: infer_same,
    gradient: Each(&[extreme_gradient]),
    saves: FIRST | OUTPUT,
    samples: || with_axes(NUMBERS, 0.0, 9.0, false),
    sharding: |call, output| reduction(call, output, Reduction::Max),
    ..REDUCE.with(facts(Unchanged, Selected, Computed))
};

pub static AMIN: Operation = Operation {
    id: 69,
    name: "amin",
    doc: "the smallest value",
    infer: infer_same,
    gradient: Each(&[extreme_gradient]),
    saves: FIRST | OUTPUT,
    samples: || with_axes(NUMBERS, 0.0, 9.0, false),
    sharding: |call, output| reduction(call, output, Reduction::Min),
    ..REDUCE.with(facts(Unchanged, Selected, Computed))
};

const ARG: Defaults = Defaults(Operation {
    infer: |call| {
        let (_, shape) = reduced_shape(call, false)?;
        if call.ints(0).len() > 1 {
            return Err(Error::BadAttribute {
                operation: call.operation,
                attribute: "dim",
                given: format!("{:?}", call.ints(0)),
                expected: "one axis, or none for the flattened tensor",
            });
        }
        Ok(Meta::new(DType::I64, shape))
    },
    samples: || {
        let flags = |axes: &[i64], keep| [Attribute::ints(axes), Attribute::Bool(keep)];
        let mut samples = Vec::new();
        for dtype in [DType::F32, DType::F64, DType::I64, DType::I32] {
            for (axes, keep) in [(&[][..], false), (&[0], false), (&[-1], true)] {
                let x = tensor(dtype, &[2, 3, 40], -90.0, 90.0);
                samples.push(sample(&[x], &flags(axes, keep)));
            }
        }
        samples
    },
    sharding: along_kept_axes,
    batching: Batching::Rule(batching::structure::place),
    ..REDUCE.0
});

pub static ARGMAX: Operation = Operation {
    id: 70,
    name: "argmax",
    doc: "where the largest value is, the first of equals",
    ..ARG.with(facts(Unchanged, IndexOf { is_max: true }, Computed))
};

pub static ARGMIN: Operation = Operation {
    id: 71,
    name: "argmin",
    doc: "where the smallest value is, the first of equals",
    ..ARG.with(facts(Unchanged, IndexOf { is_max: false }, Computed))
};

const SPREAD: Defaults = Defaults(Operation {
    parameters: &[
        takes::tensor("input"),
        takes::dims("dim").or(Default::None),
        takes::flag("keepdim").or(Default::Bool(false)),
        takes::float("correction").or(Default::Float(1.0)),
    ],
    infer: infer_float,
    samples: || {
        let flags = |axes: &[i64], keep, correction| {
            [Attribute::ints(axes), Attribute::Bool(keep), Attribute::Float(correction)]
        };
        let mut samples = Vec::new();
        for &dtype in FLOATS {
            for correction in [0.0, 1.0] {
                let x = tensor(dtype, &[3, 4, 5], -2.0, 2.0);
                samples.push(sample(&[x], &flags(&[], false, correction)));
                samples.push(sample(&[x], &flags(&[1], true, correction)));
                samples.push(sample(&[x], &flags(&[0, -1], false, correction)));
            }
        }
        samples
    },
    sharding: along_kept_axes,
    ..REDUCE.0
});

/// 2 (x - mean) / (n - correction), the slope of the variance.
fn variance_slope(g: &mut dyn Graph, s: &Saved, factor: f64) -> Var {
    let mean = g.mean(s.tensor(0), s.ints(0), true);
    let centered = g.sub(s.tensor(0), mean);
    g.mul(centered, factor / (count(s) - s.float(2)).max(0.0))
}

pub static VAR: Operation = Operation {
    id: 72,
    name: "var",
    doc: "the variance: squared distances from the mean over (n - correction)",
    gradient: Each(&[|g, s| {
        let slope = variance_slope(g, s, 2.0);
        let grad = spread(g, s, s.grad);
        g.mul(grad, slope)
    }]),
    saves: FIRST,
    body: crate::operation::Body::Composite(|g, operands, attributes| {
        variance(g, *operands[0].tensor().expect("a tensor"), attributes)
    }),
    ..SPREAD.with(facts(Unchanged, OfBody, Computed))
};

pub static STD: Operation = Operation {
    id: 73,
    name: "std",
    doc: "the square root of the variance",
    gradient: Each(&[|g, s| {
        let slope = variance_slope(g, s, 1.0);
        // Where all values are equal the slope is 0, not 0 / 0.
        let quotient = g.div(s.grad, s.output());
        let flat = g.eq(s.output(), 0i64);
        let share = g.select(flat, 0i64, quotient);
        let grad = spread(g, s, share);
        g.mul(grad, slope)
    }]),
    saves: FIRST | OUTPUT,
    body: crate::operation::Body::Composite(|g, operands, attributes| {
        let variance = variance(g, *operands[0].tensor().expect("a tensor"), attributes);
        g.sqrt(variance)
    }),
    ..SPREAD.with(facts(Unchanged, OfBody, Computed))
};

fn variance(g: &mut dyn Graph, x: Var, attributes: &crate::Attributes) -> Var {
    let (over, keepdims) =
        (crate::operation::ints(attributes, 0), crate::operation::bool(attributes, 1));
    let dtype = g.meta(x).dtype;
    // Squares of 16-bit floats overflow early.
    let x = if dtype.size() == 2 { g.cast(x, DType::F32) } else { x };
    let mean = g.mean(x, over, true);
    let centered = g.sub(x, mean);
    let square = g.mul(centered, centered);
    let total = g.sum(square, over, keepdims);
    let n = g.shape(x).numel() as f64 / g.shape(total).numel().max(1) as f64;
    let share = g.mul(total, 1.0 / (n - crate::operation::float(attributes, 2)).max(0.0));
    g.cast(share, dtype)
}

fn infer_truth(call: &Call) -> Result<Meta> {
    let (_, shape) = reduced_shape(call, true)?;
    Ok(Meta::new(DType::Bool, shape))
}

pub static ANY: Operation = Operation {
    id: 74,
    name: "any",
    doc: "whether any value is not zero",
    complex: ComplexRule::OwnRule,
    infer: infer_truth,
    samples: || with_axes(&[DType::Bool, DType::F32, DType::I64], 0.0, 2.0, true),
    sharding: |call, output| reduction(call, output, Reduction::Max),
    ..REDUCE.with(facts(Unchanged, Selected, Computed))
};

pub static ALL: Operation = Operation {
    id: 75,
    name: "all",
    doc: "whether all values are not zero",
    complex: ComplexRule::OwnRule,
    infer: infer_truth,
    samples: || with_axes(&[DType::Bool, DType::F32, DType::I64], 0.0, 2.0, true),
    sharding: |call, output| reduction(call, output, Reduction::Min),
    ..REDUCE.with(facts(Unchanged, Selected, Computed))
};
