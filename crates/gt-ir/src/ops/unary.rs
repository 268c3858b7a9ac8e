//! Elementwise operations on one tensor.

use super::infer::{elementwise, elementwise_bool, elementwise_float};
use super::sample::{sample, tensor, unary};
use crate::batching::Batching;
use crate::dtype::{Category, DType};
use crate::error::{Error, Result};
use crate::instruction::Attribute;
use crate::operation::Defaults;
use crate::operation::Gradient::Each;
use crate::operation::facts::says::*;
use crate::operation::{
    Call, ComplexRule, FIRST, Family, Meta, OUTPUT, Operation, dtype, face, takes,
};
use crate::sharding::{self, Sharding};

pub(super) const UNARY: Defaults = Defaults(Operation {
    family: Family::Unary,
    parameters: &[takes::tensor("input")],
    face: face::ELEMENTWISE,
    sharding: sharding::elementwise,
    batching: Batching::Broadcast,
    ..Operation::base().0
});

/// Elementwise, and linear.
const LINEAR: Sharding = |call, output| sharding::elementwise(call, output).linear_in(&[1]);

pub(super) const FLOATS: &[DType] = &[DType::F32, DType::F64, DType::F16, DType::BF16];
pub(super) const NUMBERS: &[DType] = &[
    DType::F32,
    DType::F64,
    DType::F16,
    DType::BF16,
    DType::I64,
    DType::I32,
    DType::I16,
    DType::I8,
];
pub(super) const MIXED: &[DType] =
    &[DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::Bool];

fn not_bool(call: &Call) -> Result<Meta> {
    let meta = elementwise(call)?;
    if meta.dtype == DType::Bool {
        return Err(Error::DTypeMismatch {
            operation: call.operation,
            given: meta.dtype,
            expected: "a number; for bool use logical operations",
        });
    }
    Ok(meta)
}

pub static CAST: Operation = Operation {
    id: 10,
    name: "cast",
    doc: "The values in another dtype; floats are cut towards zero for integers.",
    complex: ComplexRule::OwnRule,
    parameters: &[takes::tensor("input"), takes::dtype("dtype")],
    face: face::HIDDEN,
    infer: |call| Ok(Meta::new(call.dtype(0).unwrap_or(DType::F32), call.tensor(0)?.shape)),
    gradient: Each(&[|g, s| g.cast(s.grad, s.meta(0).dtype)]),
    sharding: |call, output| {
        // Partial sums may be widened before they are added, but not narrowed.
        let from = call.operands[0].tensor().map_or(output.dtype, |meta| meta.dtype);
        let widens =
            from.is_float() && output.dtype.is_float() && from.size() <= output.dtype.size();
        sharding::elementwise(call, output).linear_in(if widens { &[1] } else { &[] })
    },
    samples: || {
        let mut samples = Vec::new();
        for from in DType::ALL {
            for to in DType::ALL {
                let low = if from == DType::U8 || to == DType::U8 { 0.0 } else { -9.0 };
                samples.push(sample(&[tensor(from, &[2, 3], low, 9.0)], &[Attribute::DType(to)]));
            }
        }
        samples
    },
    ..UNARY.with(facts(Unchanged, Cast, Computed))
};

/// The target dtype of a cast.
pub fn cast_target(attributes: &crate::instruction::Attributes) -> DType {
    dtype(attributes, 0).unwrap_or(DType::F32)
}

pub static NEG: Operation = Operation {
    id: 11,
    name: "neg",
    doc: "-x",
    complex: ComplexRule::OwnRule,
    infer: not_bool,
    gradient: Each(&[|g, s| g.neg(s.grad)]),
    sharding: LINEAR,
    samples: || unary(NUMBERS, -3.0, 3.0),
    ..UNARY.with(facts(Unchanged, Negated, Computed))
};

pub static ABS: Operation = Operation {
    id: 12,
    name: "abs",
    doc: "|x|; the length of a complex number",
    complex: ComplexRule::OwnRule,
    infer: |call| {
        let meta = not_bool(call)?;
        Ok(Meta::new(meta.dtype.to_real(), meta.shape))
    },
    gradient: Each(&[|g, s| {
        let sign =
            if s.meta(0).dtype.is_complex() { g.sgn(s.tensor(0)) } else { g.sign(s.tensor(0)) };
        g.mul(s.grad, sign)
    }]),
    saves: FIRST,
    samples: || unary(NUMBERS, -3.0, 3.0),
    ..UNARY.with(facts(Unchanged, Negated, Computed))
};

pub static SIGN: Operation = Operation {
    id: 13,
    name: "sign",
    doc: "-1, 0 or 1",
    infer: elementwise,
    gradient: Each(&[|g, s| g.zeros_like(s.grad)]),
    samples: || unary(NUMBERS, -3.0, 3.0),
    ..UNARY.with(facts(Unchanged, Stepwise, Computed))
};

pub static EXP: Operation = Operation {
    id: 14,
    name: "exp",
    doc: "e to the x",
    complex: ComplexRule::Holomorphic,
    infer: elementwise_float,
    gradient: Each(&[|g, s| g.mul(s.grad, s.output())]),
    saves: OUTPUT,
    samples: || unary(MIXED, -2.0, 2.0),
    ..UNARY.with(facts(Float32, Function(Units), Computed))
};

pub static LOG: Operation = Operation {
    id: 15,
    name: "log",
    doc: "natural logarithm",
    complex: ComplexRule::Holomorphic,
    infer: elementwise_float,
    gradient: Each(&[|g, s| g.div(s.grad, s.tensor(0))]),
    saves: FIRST,
    samples: || unary(MIXED, 0.5, 4.0),
    ..UNARY.with(facts(Float32, Function(Units), Computed))
};

pub static LOG1P: Operation = Operation {
    id: 16,
    name: "log1p",
    doc: "log(1 + x), exact near 0",
    complex: ComplexRule::Holomorphic,
    infer: elementwise_float,
    gradient: Each(&[|g, s| {
        let below = g.add(s.tensor(0), 1.0);
        g.div(s.grad, below)
    }]),
    saves: FIRST,
    samples: || unary(MIXED, -0.5, 3.0),
    ..UNARY.with(facts(Float32, Function(Units), Computed))
};

pub static EXPM1: Operation = Operation {
    id: 17,
    name: "expm1",
    doc: "exp(x) - 1, exact near 0",
    complex: ComplexRule::Holomorphic,
    infer: elementwise_float,
    gradient: Each(&[|g, s| {
        let exp = g.add(s.output(), 1.0);
        g.mul(s.grad, exp)
    }]),
    saves: OUTPUT,
    samples: || unary(MIXED, -2.0, 2.0),
    ..UNARY.with(facts(Float32, Function(Units), Computed))
};

pub static SQRT: Operation = Operation {
    id: 18,
    name: "sqrt",
    doc: "square root",
    complex: ComplexRule::Holomorphic,
    infer: elementwise_float,
    gradient: Each(&[|g, s| {
        let below = g.mul(s.output(), 2.0);
        g.div(s.grad, below)
    }]),
    saves: OUTPUT,
    samples: || unary(MIXED, 0.5, 4.0),
    ..UNARY.with(facts(Unchanged, Function(Accuracy::Rounded), Computed))
};

pub static RSQRT: Operation = Operation {
    id: 19,
    name: "rsqrt",
    doc: "1 / sqrt(x)",
    complex: ComplexRule::Holomorphic,
    infer: elementwise_float,
    gradient: Each(&[|g, s| {
        let cube = g.pow(s.output(), 3i64);
        let slope = g.mul(cube, -0.5);
        g.mul(s.grad, slope)
    }]),
    saves: OUTPUT,
    samples: || unary(MIXED, 0.5, 4.0),
    ..UNARY.with(facts(Float32, Function(Units), Computed))
};

pub static SIN: Operation = Operation {
    id: 20,
    name: "sin",
    doc: "sine of radians",
    complex: ComplexRule::Holomorphic,
    infer: elementwise_float,
    gradient: Each(&[|g, s| {
        let cos = g.cos(s.tensor(0));
        g.mul(s.grad, cos)
    }]),
    saves: FIRST,
    samples: || unary(MIXED, -3.0, 3.0),
    ..UNARY.with(facts(Unchanged, Function(Units), Computed))
};

pub static COS: Operation = Operation {
    id: 21,
    name: "cos",
    doc: "cosine of radians",
    complex: ComplexRule::Holomorphic,
    infer: elementwise_float,
    gradient: Each(&[|g, s| {
        let sin = g.sin(s.tensor(0));
        let slope = g.neg(sin);
        g.mul(s.grad, slope)
    }]),
    saves: FIRST,
    samples: || unary(MIXED, -3.0, 3.0),
    ..UNARY.with(facts(Unchanged, Function(Units), Computed))
};

pub static ERF: Operation = Operation {
    id: 22,
    name: "erf",
    doc: "error function",
    infer: elementwise_float,
    gradient: Each(&[|g, s| {
        let square = g.mul(s.tensor(0), s.tensor(0));
        let minus = g.neg(square);
        let bell = g.exp(minus);
        let slope = g.mul(bell, std::f64::consts::FRAC_2_SQRT_PI);
        g.mul(s.grad, slope)
    }]),
    saves: FIRST,
    samples: || unary(MIXED, -2.0, 2.0),
    ..UNARY.with(facts(Unchanged, Function(Units), Computed))
};

pub static SIGMOID: Operation = Operation {
    id: 23,
    name: "sigmoid",
    doc: "1 / (1 + exp(-x))",
    complex: ComplexRule::Holomorphic,
    infer: elementwise_float,
    gradient: Each(&[|g, s| {
        let rest = g.sub(1.0, s.output());
        let slope = g.mul(s.output(), rest);
        g.mul(s.grad, slope)
    }]),
    saves: OUTPUT,
    samples: || unary(MIXED, -4.0, 4.0),
    face: face::ELEMENTWISE | face::FUNCTIONAL,
    ..UNARY.with(facts(Unchanged, Function(Units), Computed))
};

pub static TANH: Operation = Operation {
    id: 24,
    name: "tanh",
    doc: "hyperbolic tangent",
    complex: ComplexRule::Holomorphic,
    infer: elementwise_float,
    gradient: Each(&[|g, s| {
        let square = g.mul(s.output(), s.output());
        let slope = g.sub(1.0, square);
        g.mul(s.grad, slope)
    }]),
    saves: OUTPUT,
    samples: || unary(MIXED, -2.0, 2.0),
    face: face::ELEMENTWISE | face::FUNCTIONAL,
    ..UNARY.with(facts(Unchanged, Function(Units), Computed))
};

pub static RELU: Operation = Operation {
    id: 25,
    name: "relu",
    doc: "max(x, 0)",
    infer: not_bool,
    gradient: Each(&[|g, s| {
        let off = g.le(s.output(), 0i64);
        g.select(off, 0i64, s.grad)
    }]),
    saves: OUTPUT,
    samples: || unary(NUMBERS, -3.0, 3.0),
    face: face::ELEMENTWISE | face::FUNCTIONAL,
    ..UNARY.with(facts(Unchanged, Selected, Computed))
};

/// floor, ceil and round are the identity on integers.
pub static FLOOR: Operation = Operation {
    id: 26,
    name: "floor",
    doc: "the next whole number below",
    infer: not_bool,
    gradient: Each(&[|g, s| g.zeros_like(s.grad)]),
    samples: || unary(NUMBERS, -3.0, 3.0),
    ..UNARY.with(facts(Unchanged, Stepwise, Computed))
};

pub static CEIL: Operation = Operation {
    id: 27,
    name: "ceil",
    doc: "the next whole number above",
    infer: not_bool,
    gradient: Each(&[|g, s| g.zeros_like(s.grad)]),
    samples: || unary(NUMBERS, -3.0, 3.0),
    ..UNARY.with(facts(Unchanged, Stepwise, Computed))
};

pub static ROUND: Operation = Operation {
    id: 28,
    name: "round",
    doc: "the nearest whole number, halves to even",
    infer: not_bool,
    gradient: Each(&[|g, s| g.zeros_like(s.grad)]),
    samples: || unary(NUMBERS, -3.0, 3.0),
    ..UNARY.with(facts(Unchanged, Stepwise, Computed))
};

pub static LOGICAL_NOT: Operation = Operation {
    id: 29,
    name: "logical_not",
    doc: "whether x is zero",
    complex: ComplexRule::OwnRule,
    infer: elementwise_bool,
    samples: || unary(&[DType::Bool, DType::F32, DType::I64], -1.0, 2.0),
    ..UNARY.with(facts(Unchanged, Stepwise, Computed))
};

pub static BITWISE_NOT: Operation = Operation {
    id: 30,
    name: "bitwise_not",
    doc: "every bit turned; for bool, not",
    infer: |call| {
        let meta = elementwise(call)?;
        if meta.dtype.category() == Category::Float {
            let expected = "bool or an integer dtype";
            return Err(Error::DTypeMismatch {
                operation: call.operation,
                given: meta.dtype,
                expected,
            });
        }
        Ok(meta)
    },
    samples: || unary(&[DType::Bool, DType::I64, DType::U8, DType::I32], 0.0, 2.0),
    ..UNARY.with(facts(Unchanged, Bits, Computed))
};

pub static ISNAN: Operation = Operation {
    id: 31,
    name: "isnan",
    doc: "whether x is not a number",
    complex: ComplexRule::OwnRule,
    infer: elementwise_bool,
    samples: || unary(FLOATS, -1.0, 1.0),
    ..UNARY.with(facts(Unchanged, Finiteness, Computed))
};
