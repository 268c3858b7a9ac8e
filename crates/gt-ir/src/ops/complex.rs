//! Operations on complex numbers, which are pairs of floats in memory: the real part, then the
//! imaginary one.

use super::infer::elementwise;
use super::sample::{sample, tensor, unary};
use super::unary::{NUMBERS, UNARY};
use crate::batching::Batching;
use crate::dtype::DType;
use crate::error::Error;
use crate::operation::Gradient::Each;
use crate::operation::facts::says::*;
use crate::operation::{
    Call, ComplexRule, FIRST, Family, Graph, Meta, Operation, Sample, Saved, Var, face, takes,
};
use crate::shape::Shape;
use crate::sharding::{self, Rule};

const COMPLEX: &[DType] = &[DType::C64, DType::C128];

pub static CONJ: Operation = Operation {
    id: 176,
    name: "conj",
    doc: "the complex conjugate, with the other sign of the imaginary part; a real number itself",
    face: face::HIDDEN,
    infer: elementwise,
    gradient: Each(&[|g, s| g.conj(s.grad)]),
    complex: ComplexRule::OwnRule,
    sharding: |call, output| sharding::elementwise(call, output).linear_in(&[1]),
    samples: || unary(&[COMPLEX, NUMBERS].concat(), -3.0, 3.0),
    ..UNARY.with(facts(Unchanged, Negated, Computed))
};

pub static SGN: Operation = Operation {
    id: 177,
    name: "sgn",
    doc: "x / |x|, and 0 at 0: the sign of a number, for complex ones the direction",
    infer: elementwise,
    gradient: Each(&[sgn_gradient]),
    saves: FIRST,
    complex: ComplexRule::OwnRule,
    samples: || unary(&[COMPLEX, NUMBERS].concat(), -3.0, 3.0),
    ..UNARY.with(facts(Unchanged, Function(Coarse), Computed))
};

/// What of the gradient turns the direction, over the length: the derivative of x / |x| has nothing
/// along x.
fn sgn_gradient(g: &mut dyn Graph, s: &Saved) -> Var {
    if !s.output_meta.dtype.is_complex() {
        return g.zeros_like(s.grad);
    }
    let x = s.tensor(0);
    let direction = g.sgn(x);
    let length = g.abs(x);
    let conjugate = g.conj(direction);
    let turned = g.mul(s.grad, conjugate);
    let along = g.cast(turned, s.output_meta.dtype.to_real());
    let along = g.mul(direction, along);
    let across = g.sub(s.grad, along);
    let slope = g.div(across, length);
    let at_zero = g.eq(length, 0i64);
    g.select(at_zero, 0i64, slope)
}

pub static VIEW_AS_REAL: Operation = Operation {
    id: 178,
    name: "view_as_real",
    family: Family::Reshape,
    doc: "the parts of complex numbers as floats, along one more axis of length 2",
    parameters: &[takes::tensor("input")],
    face: face::FUNCTION,
    example: "\
>>> gt.view_as_real(gt.tensor([1 + 2j]))
tensor([[1., 2.]], dtype=float32)",
    infer: |call| {
        let meta = call.tensor(0)?;
        if !meta.dtype.is_complex() {
            return Err(Error::DTypeMismatch {
                operation: call.operation,
                given: meta.dtype,
                expected: "a complex dtype",
            });
        }
        Ok(Meta::new(meta.dtype.to_real(), Shape::new(&[meta.shape.dims(), &[2]].concat())?))
    },
    gradient: Each(&[|g, s| g.view_as_complex(s.grad)]),
    complex: ComplexRule::OwnRule,
    sharding: |call, output| outer_axes(call, output, output.shape.rank() - 1),
    samples: || samples(COMPLEX, &[]),
    batching: Batching::Leading,
    ..Operation::base().with(facts(Unchanged, ComplexToReal, View))
};

pub static VIEW_AS_COMPLEX: Operation = Operation {
    id: 179,
    name: "view_as_complex",
    family: Family::Reshape,
    doc: "complex numbers from floats whose last axis has their two parts",
    parameters: &[takes::tensor("input")],
    face: face::FUNCTION,
    example: "\
>>> gt.view_as_complex(gt.tensor([[1.0, 2.0]]))
tensor([1.+2.j], dtype=complex64)",
    infer: |call| {
        let meta = call.tensor(0)?;
        if !matches!(meta.dtype, DType::F32 | DType::F64) {
            return Err(Error::DTypeMismatch {
                operation: call.operation,
                given: meta.dtype,
                expected: "float32 or float64",
            });
        }
        match meta.shape.dims() {
            [outer @ .., 2] => Ok(Meta::new(meta.dtype.to_complex(), Shape::new(outer)?)),
            _ => Err(Error::ShapeMismatch {
                operation: call.operation,
                given: meta.shape,
                expected: "a last axis of length 2, the real and the imaginary part".to_string(),
            }),
        }
    },
    gradient: Each(&[|g, s| g.view_as_real(s.grad)]),
    complex: ComplexRule::OwnRule,
    sharding: |call, output| outer_axes(call, output, output.shape.rank()),
    samples: || samples(&[DType::F32, DType::F64], &[2]),
    batching: Batching::Leading,
    ..Operation::base().with(facts(Unchanged, RealToComplex, View))
};

/// All axes may be cut but that of the two parts.
fn outer_axes(call: &Call, output: &Meta, count: usize) -> Rule {
    let mut rule = Rule::whole(call, output);
    for axis in (0..count).filter(|&axis| output.shape[axis] > 1) {
        rule.share(&[(0, axis)], Some(axis));
    }
    rule.linear_in(&[1])
}

fn samples(dtypes: &[DType], inner: &[usize]) -> Vec<Sample> {
    let of = |dtype, dims: &[usize]| tensor(dtype, &[dims, inner].concat(), -2.0, 2.0);
    let shapes: [&[usize]; 3] = [&[2, 3], &[], &[0, 3]];
    let all = dtypes.iter().flat_map(|&dtype| shapes.map(|dims| sample(&[of(dtype, dims)], &[])));
    all.collect()
}
