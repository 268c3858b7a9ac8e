//! Elementwise arithmetic on two operands, broadcast and promoted.

use super::infer::{elementwise, elementwise_float};
use super::sample::binary;
use crate::batching::Batching;
use crate::dtype::{Category, DType};
use crate::error::{Error, Result};
use crate::instruction::Operand;
use crate::number::Numbers;
use crate::operation::Defaults;
use crate::operation::Gradient::Each;
use crate::operation::facts::says::*;
use crate::operation::{
    Call, ComplexRule, FIRST, Family, Graph, Meta, OUTPUT, Operation, SECOND, Saved, Var, face,
    takes,
};
use crate::sharding::{self, Sharding};

pub(super) const BINARY: Defaults = Defaults(Operation {
    family: Family::Binary,
    parameters: &[takes::value("input"), takes::value("other")],
    face: face::ELEMENTWISE,
    sharding: sharding::elementwise,
    batching: Batching::Broadcast,
    ..Operation::base().0
});

const SUMS: Sharding = |call, output| {
    let linear: &[u64] = if output.dtype == DType::Bool { &[] } else { &[0b11] };
    sharding::elementwise(call, output).linear_in(linear)
};

pub(super) const NUMBERS: &[DType] =
    &[DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::I32, DType::U8];
pub(super) const FLOATS: &[DType] = &[DType::F32, DType::F64, DType::F16, DType::BF16];

fn wrong_dtype(call: &Call, given: DType, expected: &'static str) -> Error {
    Error::DTypeMismatch { operation: call.operation, given, expected }
}

pub(super) fn no_bool(call: &Call) -> Result<Meta> {
    let meta = elementwise(call)?;
    if meta.dtype == DType::Bool {
        return Err(wrong_dtype(call, meta.dtype, "a number; for bool use |, & and ^"));
    }
    Ok(meta)
}

/// Subtraction rejects bools: `1 - mask` is more often a mistake than meant.
fn no_mask(call: &Call) -> Result<Meta> {
    if call.operands.iter().filter_map(Operand::tensor).any(|meta| meta.dtype == DType::Bool) {
        let expected = "a number; use ~ to turn bools around, or cast them";
        return Err(wrong_dtype(call, DType::Bool, expected));
    }
    elementwise(call)
}

pub(super) fn whole(call: &Call) -> Result<Meta> {
    let meta = elementwise(call)?;
    if meta.dtype.category() == Category::Float {
        return Err(wrong_dtype(call, meta.dtype, "bool or an integer dtype"));
    }
    Ok(meta)
}

pub static ADD: Operation = Operation {
    id: 35,
    name: "add",
    doc: "a + b; for bool, or",
    complex: ComplexRule::OwnRule,
    infer: elementwise,
    gradient: Each(&[|_, s| s.grad, |_, s| s.grad]),
    sharding: SUMS,
    samples: || binary(&[NUMBERS, &[DType::Bool]].concat(), (0.0, 3.0), (0.0, 3.0)),
    ..BINARY.with(facts(Unchanged, Sum, Computed))
};

pub static SUB: Operation = Operation {
    id: 36,
    name: "sub",
    doc: "a - b",
    complex: ComplexRule::OwnRule,
    infer: no_mask,
    gradient: Each(&[|_, s| s.grad, |g, s| g.neg(s.grad)]),
    sharding: SUMS,
    samples: || binary(NUMBERS, (3.0, 6.0), (0.0, 3.0)),
    ..BINARY.with(facts(Unchanged, Sum, Computed))
};

pub static MUL: Operation = Operation {
    id: 37,
    name: "mul",
    doc: "a * b; for bool, and",
    complex: ComplexRule::Holomorphic,
    infer: elementwise,
    gradient: Each(&[|g, s| g.mul(s.grad, s.operand(1)), |g, s| g.mul(s.grad, s.operand(0))]),
    sharding: |call, output| {
        let linear: &[u64] = if output.dtype == DType::Bool { &[] } else { &[0b01, 0b10] };
        sharding::elementwise(call, output).linear_in(linear)
    },
    saves: FIRST | SECOND,
    samples: || binary(&[NUMBERS, &[DType::Bool]].concat(), (0.0, 3.0), (0.0, 3.0)),
    ..BINARY.with(facts(Unchanged, Product, Computed))
};

pub static DIV: Operation = Operation {
    id: 38,
    name: "div",
    doc: "a / b, in floats",
    complex: ComplexRule::Holomorphic,
    infer: elementwise_float,
    gradient: Each(&[
        |g, s| g.div(s.grad, s.operand(1)),
        |g, s| {
            // d(a / b) / db = -(a / b) / b
            let quotient = g.div(s.output(), s.operand(1));
            let product = g.mul(s.grad, quotient);
            g.neg(product)
        },
    ]),
    sharding: |call, output| {
        // A partial 0 divided by 0 is NaN, though the quotient of the sum may be a number.
        let divisor = call.operands[1].scalar().map_or(0.0, |number| number.as_f64());
        let linear: &[u64] = if divisor == 0.0 { &[] } else { &[0b01] };
        sharding::elementwise(call, output).linear_in(linear)
    },
    saves: SECOND | OUTPUT,
    samples: || binary(NUMBERS, (-3.0, 3.0), (1.0, 4.0)),
    ..BINARY.with(facts(Unchanged, Quotient { is_whole: false }, Computed))
};

pub static FLOOR_DIVIDE: Operation = Operation {
    id: 39,
    name: "floor_divide",
    doc: "a / b rounded down",
    infer: no_bool,
    samples: || binary(NUMBERS, (0.0, 9.0), (1.0, 4.0)),
    ..BINARY.with(facts(Unchanged, Quotient { is_whole: true }, Computed))
};

pub static REMAINDER: Operation = Operation {
    id: 40,
    name: "remainder",
    doc: "a - b * floor(a / b): the sign is b's",
    numbers: Numbers::Rounded,
    infer: no_bool,
    gradient: Each(&[
        |_, s| s.grad,
        |g, s| {
            let quotient = g.floor_divide(s.operand(0), s.operand(1));
            let product = g.mul(s.grad, quotient);
            g.neg(product)
        },
    ]),
    saves: FIRST | SECOND,
    samples: || binary(NUMBERS, (4.1, 4.9), (2.1, 3.9)),
    ..BINARY.with(facts(Unchanged, Remainder { is_exact: false }, Computed))
};

pub static POW: Operation = Operation {
    id: 41,
    name: "pow",
    doc: "a to the b",
    numbers: Numbers::Exponent,
    complex: ComplexRule::Holomorphic,
    infer: no_bool,
    gradient: Each(&[pow_base, pow_exponent]),
    saves: FIRST | SECOND | OUTPUT,
    samples: || binary(NUMBERS, (1.0, 3.0), (0.0, 3.0)),
    ..BINARY.with(facts(Float32, Function(Power), Computed))
};

/// d(a^b)/da = b a^(b-1); 0 where b is 0, whatever a is.
fn pow_base(g: &mut dyn Graph, s: &Saved) -> Var {
    if let crate::Operand::Scalar(exponent) = s.operand(1) {
        // The square is common, and has a shorter form.
        if exponent.as_f64() == 2.0 {
            let slope = g.mul(s.operand(0), 2i64);
            return g.mul(s.grad, slope);
        }
        if exponent.as_f64() == 0.0 {
            return g.mul(s.grad, 0i64);
        }
        let power = g.pow(s.operand(0), exponent.as_f64() - 1.0);
        let slope = g.mul(power, exponent.as_f64());
        return g.mul(s.grad, slope);
    }
    // A bool exponent must become a number first.
    let exponent = g.cast(s.tensor(1), s.output_meta.dtype);
    let less = g.sub(exponent, 1i64);
    let power = g.pow(s.operand(0), less);
    let slope = g.mul(power, exponent);
    let product = g.mul(s.grad, slope);
    let zero = g.eq(exponent, 0i64);
    g.select(zero, 0i64, product)
}

/// d(a^b)/db = a^b log a; 0 where a is 0 and b is not negative.
fn pow_exponent(g: &mut dyn Graph, s: &Saved) -> Var {
    let dtype = s.output_meta.dtype;
    let base = match s.operand(0) {
        crate::Operand::Scalar(scalar) => g.full(crate::Shape::SCALAR, dtype, scalar),
        crate::Operand::Tensor(tensor) => tensor,
    };
    let log = g.log(base);
    let slope = g.mul(s.output(), log);
    let product = g.mul(s.grad, slope);
    let zero = g.eq(base, 0i64);
    // Of a complex exponent the real part decides.
    let exponent = s.operand(1).map(|&exponent| match g.meta(exponent).dtype {
        own if own.is_complex() => g.cast(exponent, own.to_real()),
        _ => exponent,
    });
    let not_negative = g.ge(exponent, 0i64);
    let flat = g.logical_and(zero, not_negative);
    g.select(flat, 0i64, product)
}

/// The gradient goes to the operand that was chosen; half to each where they are equal, all to both
/// where one is NaN.
fn to_chosen(g: &mut dyn Graph, s: &Saved, chosen: usize, larger: bool) -> Var {
    let (own, other) = (s.operand(chosen), s.operand(1 - chosen));
    let loses = if larger { g.lt(own, other) } else { g.gt(own, other) };
    let tie = g.eq(own, other);
    let half = g.mul(s.grad, 0.5);
    let kept = g.select(tie, half, s.grad);
    g.select(loses, 0i64, kept)
}

pub static MAXIMUM: Operation = Operation {
    id: 42,
    name: "maximum",
    doc: "the larger of a and b; NaN where either is",
    infer: elementwise,
    gradient: Each(&[|g, s| to_chosen(g, s, 0, true), |g, s| to_chosen(g, s, 1, true)]),
    saves: FIRST | SECOND,
    samples: || binary(&[NUMBERS, &[DType::Bool]].concat(), (0.0, 3.0), (0.0, 3.0)),
    ..BINARY.with(facts(Unchanged, Selected, Computed))
};

pub static MINIMUM: Operation = Operation {
    id: 43,
    name: "minimum",
    doc: "the smaller of a and b; NaN where either is",
    infer: elementwise,
    gradient: Each(&[|g, s| to_chosen(g, s, 0, false), |g, s| to_chosen(g, s, 1, false)]),
    saves: FIRST | SECOND,
    samples: || binary(FLOATS, (-3.0, 3.0), (-3.0, 3.0)),
    ..BINARY.with(facts(Unchanged, Selected, Computed))
};

pub static BITWISE_AND: Operation = Operation {
    id: 44,
    name: "bitwise_and",
    doc: "a & b",
    infer: whole,
    samples: || binary(&[DType::I64, DType::I32, DType::U8, DType::Bool], (0.0, 9.0), (0.0, 9.0)),
    ..BINARY.with(facts(Unchanged, Bits, Computed))
};

pub static BITWISE_OR: Operation = Operation {
    id: 45,
    name: "bitwise_or",
    doc: "a | b",
    infer: whole,
    samples: BITWISE_AND.samples,
    ..BINARY.with(facts(Unchanged, Bits, Computed))
};

pub static BITWISE_XOR: Operation = Operation {
    id: 46,
    name: "bitwise_xor",
    doc: "a ^ b",
    infer: whole,
    samples: BITWISE_AND.samples,
    ..BINARY.with(facts(Unchanged, Bits, Computed))
};
