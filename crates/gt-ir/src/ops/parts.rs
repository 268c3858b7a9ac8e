//! The parts of numbers: signs, integral parts, remainders, bits, neighbours.

use super::binary::{BINARY, FLOATS, NUMBERS, no_bool, whole};
use super::infer::{elementwise, elementwise_bool, number};
use super::sample::{binary, sample, tensor, unary};
use super::unary::UNARY;
use crate::dtype::DType;
use crate::number::Numbers;
use crate::operation::Gradient::Each;
use crate::operation::facts::says::*;
use crate::operation::{Call, FIRST, Graph, Meta, OUTPUT, Operation, SECOND, Saved, Var, face};

/// Not differentiable, or constant: the gradient is 0.
const FLAT: crate::operation::Gradient = Each(&[|g, s| g.zeros_like(s.grad)]);

pub static TRUNC: Operation = Operation {
    id: 126,
    name: "trunc",
    doc: "the whole part: the next whole number towards zero",
    aliases: &["fix"],
    infer: no_bool,
    gradient: FLAT,
    samples: || unary(&[DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64], -3.0, 3.0),
    ..UNARY.with(facts(Unchanged, Stepwise, Computed))
};

pub static SIGNBIT: Operation = Operation {
    id: 127,
    name: "signbit",
    doc: "whether the sign bit is set: for numbers below 0 and for -0.0",
    face: face::BOTH,
    infer: elementwise_bool,
    samples: || unary(&[DType::F32, DType::F64, DType::F16, DType::I64, DType::Bool], -3.0, 3.0),
    ..UNARY.with(facts(Unchanged, Stepwise, Computed))
};

pub static FMOD: Operation = Operation {
    id: 128,
    name: "fmod",
    doc: "what is left of input divided by other, with the sign of input",
    numbers: Numbers::Rounded,
    infer: no_bool,
    gradient: Each(&[
        |_, s| s.grad,
        |g, s| {
            let quotient = g.div(s.operand(0), s.operand(1));
            let whole = g.call(&TRUNC, &[quotient.into()]);
            let product = g.mul(s.grad, whole);
            g.neg(product)
        },
    ]),
    saves: FIRST | SECOND,
    samples: || binary(NUMBERS, (3.0, 6.0), (1.0, 2.9)),
    ..BINARY.with(facts(Unchanged, Remainder { is_exact: true }, Computed))
};

pub static COPYSIGN: Operation = Operation {
    id: 129,
    name: "copysign",
    doc: "|input| with the sign of other",
    infer: super::infer::elementwise_float,
    gradient: Each(&[
        |g, s| {
            let ratio = g.div(s.output(), s.operand(0));
            let is_zero = g.eq(s.operand(0), 0i64);
            let sign = g.select(is_zero, 0.0, ratio);
            g.mul(s.grad, sign)
        },
        |g, s| g.zeros_like(s.grad),
    ]),
    saves: FIRST | OUTPUT,
    samples: || binary(FLOATS, (0.5, 3.0), (0.5, 2.0)),
    ..BINARY.with(facts(Unchanged, Stepwise, Computed))
};

pub static NEXTAFTER: Operation = Operation {
    id: 130,
    name: "nextafter",
    doc: "the next float after input in the direction of other",
    infer: number,
    gradient: Each(&[|_, s| s.grad, |g, s| g.zeros_like(s.grad)]),
    samples: || binary(&[DType::F32, DType::F64], (0.5, 3.0), (0.5, 2.0)),
    ..BINARY.with(facts(Unchanged, Function(Coarse), Computed))
};

pub static GCD: Operation = Operation {
    id: 131,
    name: "gcd",
    doc: "the greatest common divisor, not negative",
    infer: whole,
    samples: || binary(&[DType::I64, DType::I32, DType::U8], (1.0, 40.0), (0.0, 40.0)),
    ..BINARY.with(facts(Unchanged, Bits, Computed))
};

pub static LCM: Operation = Operation {
    id: 132,
    name: "lcm",
    doc: "the least common multiple, not negative",
    infer: whole,
    samples: || binary(&[DType::I64, DType::I32], (1.0, 40.0), (0.0, 40.0)),
    ..BINARY.with(facts(Unchanged, Bits, Computed))
};

pub static BITWISE_LEFT_SHIFT: Operation = Operation {
    id: 133,
    name: "bitwise_left_shift",
    doc: "the bits of input moved up by other places",
    infer: whole,
    samples: || binary(&[DType::I64, DType::I32, DType::U8], (1.0, 9.0), (0.0, 4.0)),
    ..BINARY.with(facts(Unchanged, Bits, Computed))
};

pub static BITWISE_RIGHT_SHIFT: Operation = Operation {
    id: 134,
    name: "bitwise_right_shift",
    doc: "the bits of input moved down by other places; the sign stays",
    infer: whole,
    samples: || binary(&[DType::I64, DType::I32, DType::U8], (1.0, 90.0), (0.0, 4.0)),
    ..BINARY.with(facts(Unchanged, Bits, Computed))
};

/// The gradient flows to the operand that was taken; equal ones share it, as in PyTorch.
fn taken(g: &mut dyn Graph, s: &Saved, first: bool, larger: bool) -> Var {
    let (a, b) = (s.operand(0), s.operand(1));
    let wins = match (first, larger) {
        (true, true) => g.ge(a, b),
        (true, false) => g.le(a, b),
        (false, true) => g.lt(a, b),
        (false, false) => g.gt(a, b),
    };
    // A NaN is never taken if there is another.
    let other = if first { b } else { a };
    let missing = g.ne(other, other);
    let chosen = if first {
        g.logical_or(wins, missing)
    } else {
        let own = g.ne(b, b);
        let fine = g.logical_not(own);
        let either = g.logical_or(wins, missing);
        g.logical_and(either, fine)
    };
    let taken = g.select(chosen, s.grad, 0i64);
    let equal = g.eq(a, b);
    let half = g.mul(s.grad, 0.5);
    g.select(equal, half, taken)
}

pub static FMAX: Operation = Operation {
    id: 135,
    name: "fmax",
    doc: "the larger of input and other; where one is NaN, the other",
    infer: elementwise,
    gradient: Each(&[|g, s| taken(g, s, true, true), |g, s| taken(g, s, false, true)]),
    saves: FIRST | SECOND,
    face: face::BOTH,
    samples: || binary(NUMBERS, (0.0, 3.0), (0.0, 3.0)),
    ..BINARY.with(facts(Unchanged, Stepwise, Computed))
};

pub static FMIN: Operation = Operation {
    id: 136,
    name: "fmin",
    doc: "the smaller of input and other; where one is NaN, the other",
    infer: elementwise,
    gradient: Each(&[|g, s| taken(g, s, true, false), |g, s| taken(g, s, false, false)]),
    saves: FIRST | SECOND,
    face: face::BOTH,
    samples: || binary(NUMBERS, (0.0, 3.0), (0.0, 3.0)),
    ..BINARY.with(facts(Unchanged, Stepwise, Computed))
};

pub static FREXP: Operation = Operation {
    id: 137,
    name: "frexp",
    doc: "the mantissa, from 0.5 up to 1 in size, and the exponent: mantissa * 2^exponent is input",
    face: face::BOTH,
    infer: number,
    further: Some(|_: &Call, first: Meta| {
        [Meta::new(DType::I32, first.shape)].into_iter().collect()
    }),
    gradient: Each(&[|g, s| {
        let exponent = s.further[0];
        let minus = g.neg(exponent);
        let dtype = s.output_meta.dtype;
        // In 16 bits, the power of two may be infinite where its product with the gradient is not.
        let minus = g.cast(minus, if dtype.size() == 2 { DType::F32 } else { dtype });
        let scale = g.call(&super::trigonometry::EXP2, &[minus.into()]);
        g.mul(s.grad, scale)
    }]),
    saves: OUTPUT,
    samples: || {
        let x = |dtype| sample(&[tensor(dtype, &[2, 3], -9.0, 9.0)], &[]);
        vec![x(DType::F32), x(DType::F64), x(DType::F16)]
    },
    ..UNARY.with(facts(Unchanged, Estimated, Computed))
};
