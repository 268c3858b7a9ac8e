//! What combines all values up to each along an axis.

use super::infer::number;
use super::reduce::widened;
use super::sample::{sample, tensor};
use crate::batching::Batching;
use crate::dtype::DType;
use crate::instruction::Attribute;
use crate::operation::Defaults;
use crate::operation::Gradient::Each;
use crate::operation::facts::says::*;
use crate::operation::{
    ComplexRule, FIRST, Family, Graph, Meta, OUTPUT, Operation, Sample, Saved, Var, face, takes,
};
use crate::shape::axis;
use crate::sharding::along_other_axes;
use smallvec::smallvec;

const RUNNING: Defaults = Defaults(Operation {
    family: Family::Reduce,
    parameters: &[takes::tensor("input"), takes::dim("dim")],
    sharding: along_other_axes,
    saves: FIRST | OUTPUT,
    batching: Batching::Leading,
    ..Operation::base().0
});

fn samples(dtypes: &[DType]) -> Vec<Sample> {
    let mut samples = Vec::new();
    for &dtype in dtypes {
        for dim in [0, -1] {
            samples.push(sample(&[tensor(dtype, &[3, 4], 0.5, 2.5)], &[Attribute::Int(dim)]));
        }
    }
    samples.push(sample(&[tensor(DType::F32, &[], 0.0, 1.0)], &[Attribute::Int(0)]));
    samples.push(sample(&[tensor(DType::F32, &[0, 2], 0.0, 1.0)], &[Attribute::Int(0)]));
    samples
}

/// The sums of all values from each to the end.
fn sums_from(g: &mut dyn Graph, x: Var, dim: i64) -> Var {
    let turned = g.flip(x, dim);
    let summed = g.cumsum(turned, dim);
    g.flip(summed, dim)
}

pub static CUMSUM: Operation = Operation {
    id: 76,
    name: "cumsum",
    doc: "sums of all values up to each, along an axis; int64 for bool and integers",
    complex: ComplexRule::OwnRule,
    parameters: &[takes::tensor("input"), takes::dim("dim")],
    face: face::BOTH,
    infer: |call| {
        let meta = call.tensor(0)?;
        axis(call.int(0), meta.shape.rank(), call.operation)?;
        Ok(Meta::new(widened(meta.dtype), meta.shape))
    },
    gradient: Each(&[|g, s| {
        // Each value is in all later sums.
        if s.shape(0).rank() == 0 { s.grad } else { sums_from(g, s.grad, s.int(0)) }
    }]),
    samples: || {
        let mut samples = Vec::new();
        for dtype in [DType::F32, DType::F64, DType::I64, DType::I32, DType::Bool] {
            for axis in [0, -1] {
                let x = tensor(dtype, &[3, 4], 0.0, 3.0);
                samples.push(sample(&[x], &[Attribute::Int(axis)]));
            }
        }
        samples.push(sample(&[tensor(DType::F32, &[0, 2], 0.0, 1.0)], &[Attribute::Int(0)]));
        samples.push(sample(&[tensor(DType::F32, &[], 0.0, 1.0)], &[Attribute::Int(0)]));
        samples
    },
    sharding: |call, output| along_other_axes(call, output).linear_in(&[1]),
    family: Family::Reduce,
    batching: Batching::Leading,
    ..Operation::base().with(facts(Float32, Reduction(AlongAxis), Computed))
};

pub static CUMPROD: Operation = Operation {
    id: 146,
    name: "cumprod",
    doc: "products of all values up to each, along an axis; int64 for bool and integers",
    complex: ComplexRule::Holomorphic,
    infer: |call| {
        let meta = call.tensor(0)?;
        axis(call.int(0), meta.shape.rank(), call.operation)?;
        Ok(Meta::new(widened(meta.dtype), meta.shape))
    },
    gradient: Each(&[|g, s| {
        if s.shape(0).rank() == 0 {
            return s.grad;
        }
        of_products(g, s)
    }]),
    samples: || samples(&[DType::F32, DType::F64, DType::F16, DType::I64, DType::I32]),
    ..RUNNING.with(facts(Float32, Products(AlongAxis), Computed))
};

/// The sum over later products of grad * product / x. At a zero the products without it are taken,
/// which are 0 behind another zero: their gradients, too, behind a third, so that those of the first
/// two zeros are enough for gradients of gradients.
fn of_products(g: &mut dyn Graph, s: &Saved) -> Var {
    let (x, dim) = (s.tensor(0), s.int(0));
    let is_zero = g.eq(x, 0.0);
    let ones = g.cast(is_zero, s.output_meta.dtype);
    let count = g.cumsum(ones, dim);
    let weighted = g.mul(s.grad, s.output());
    let sums = sums_from(g, weighted, dim);
    let divisor = g.select(is_zero, 1.0, x);
    let plain = g.div(sums, divisor);
    let first = at_zero(g, s, is_zero, count, 1.0);
    let second = at_zero(g, s, is_zero, count, 2.0);
    let at_zeros = g.add(first, second);
    g.select(is_zero, at_zeros, plain)
}

/// The gradient at the zero of that number, and 0 elsewhere.
fn at_zero(g: &mut dyn Graph, s: &Saved, is_zero: Var, count: Var, number: f64) -> Var {
    let dim = s.int(0);
    let counted = g.eq(count, number);
    let here = g.logical_and(is_zero, counted);
    let without = g.select(here, 1.0, s.tensor(0));
    let products = g.emit(&CUMPROD, &[without.into()], smallvec![Attribute::Int(dim)]);
    let weighted = g.mul(s.grad, products);
    let sums = sums_from(g, weighted, dim);
    g.select(here, sums, 0.0)
}

pub static LOGCUMSUMEXP: Operation = Operation {
    id: 147,
    name: "logcumsumexp",
    doc: "logarithms of the sums of the exponentials of all values up to each, along an axis",
    face: face::BOTH,
    infer: |call| {
        let meta = number(call)?;
        axis(call.int(0), meta.shape.rank(), call.operation)?;
        Ok(meta)
    },
    gradient: Each(&[|g, s| {
        // exp(x) times the sum over later places of grad / exp(out), each kept in range.
        if s.shape(0).rank() == 0 {
            return s.grad;
        }
        let dim = s.int(0);
        let part = |g: &mut dyn Graph, sign: f64| {
            let signed = g.mul(s.grad, sign);
            let positive = g.gt(signed, 0.0);
            let size = g.select(positive, signed, 1.0);
            let log = g.log(size);
            let log = g.select(positive, log, f64::NEG_INFINITY);
            let exponent = g.sub(log, s.output());
            let turned = g.flip(exponent, dim);
            let axis = smallvec![Attribute::Int(dim)];
            let summed = g.emit(&LOGCUMSUMEXP, &[turned.into()], axis);
            let summed = g.flip(summed, dim);
            let whole = g.add(summed, s.tensor(0));
            g.exp(whole)
        };
        let positive = part(g, 1.0);
        let negative = part(g, -1.0);
        g.sub(positive, negative)
    }]),
    samples: || samples(&[DType::F32, DType::F64, DType::F16]),
    ..RUNNING.with(facts(Unchanged, LogSum, Computed))
};
