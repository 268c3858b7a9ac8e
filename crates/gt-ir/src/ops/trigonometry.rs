//! Trigonometric and hyperbolic functions and their inverses, and logarithms and powers to other
//! bases.

use std::f64::consts::{LN_2, LN_10};

use super::binary::BINARY;
use super::infer::{elementwise_float, number};
use super::sample::{binary, unary};
use super::unary::{FLOATS, MIXED, UNARY};
use crate::operation::Defaults;
use crate::operation::Gradient::Each;
use crate::operation::facts::says::*;
use crate::operation::{ComplexRule, FIRST, OUTPUT, Operation, SECOND, face};

const FUNCTION: Defaults =
    Defaults(Operation { infer: elementwise_float, saves: FIRST, ..UNARY.0 });

pub static TAN: Operation = Operation {
    id: 112,
    name: "tan",
    doc: "tangent of radians",
    complex: ComplexRule::Holomorphic,
    gradient: Each(&[|g, s| {
        // 1 + tan(x)^2
        let square = g.mul(s.output(), s.output());
        let slope = g.add(square, 1.0);
        g.mul(s.grad, slope)
    }]),
    saves: OUTPUT,
    samples: || unary(MIXED, -1.0, 1.0),
    ..FUNCTION.with(facts(Float32, Function(Coarse), Computed))
};

pub static ASIN: Operation = Operation {
    id: 113,
    name: "asin",
    doc: "the angle in radians whose sine is x; NaN outside of -1 to 1",
    complex: ComplexRule::Holomorphic,
    aliases: &["arcsin"],
    gradient: Each(&[|g, s| {
        // 1 / sqrt(1 - x^2)
        let square = g.mul(s.tensor(0), s.tensor(0));
        let rest = g.sub(1.0, square);
        let root = g.sqrt(rest);
        g.div(s.grad, root)
    }]),
    samples: || unary(FLOATS, -0.9, 0.9),
    ..FUNCTION.with(facts(Float32, Function(Units), Computed))
};

pub static ACOS: Operation = Operation {
    id: 114,
    name: "acos",
    doc: "the angle in radians whose cosine is x; NaN outside of -1 to 1",
    complex: ComplexRule::Holomorphic,
    aliases: &["arccos"],
    gradient: Each(&[|g, s| {
        let square = g.mul(s.tensor(0), s.tensor(0));
        let rest = g.sub(1.0, square);
        let root = g.sqrt(rest);
        let slope = g.div(s.grad, root);
        g.neg(slope)
    }]),
    samples: || unary(FLOATS, -0.9, 0.9),
    ..FUNCTION.with(facts(Float32, Function(Units), Computed))
};

pub static ATAN: Operation = Operation {
    id: 115,
    name: "atan",
    doc: "the angle in radians whose tangent is x",
    complex: ComplexRule::Holomorphic,
    aliases: &["arctan"],
    gradient: Each(&[|g, s| {
        let square = g.mul(s.tensor(0), s.tensor(0));
        let sum = g.add(square, 1.0);
        g.div(s.grad, sum)
    }]),
    samples: || unary(MIXED, -3.0, 3.0),
    ..FUNCTION.with(facts(Unchanged, Function(Units), Computed))
};

pub static SINH: Operation = Operation {
    id: 116,
    name: "sinh",
    doc: "hyperbolic sine: (exp(x) - exp(-x)) / 2",
    complex: ComplexRule::Holomorphic,
    gradient: Each(&[|g, s| {
        let slope = g.call(&COSH, &[s.operand(0)]);
        g.mul(s.grad, slope)
    }]),
    samples: || unary(MIXED, -3.0, 3.0),
    ..FUNCTION.with(facts(Float32, Function(Units), Computed))
};

pub static COSH: Operation = Operation {
    id: 117,
    name: "cosh",
    doc: "hyperbolic cosine: (exp(x) + exp(-x)) / 2",
    complex: ComplexRule::Holomorphic,
    gradient: Each(&[|g, s| {
        let slope = g.call(&SINH, &[s.operand(0)]);
        g.mul(s.grad, slope)
    }]),
    samples: || unary(MIXED, -3.0, 3.0),
    ..FUNCTION.with(facts(Float32, Function(Units), Computed))
};

pub static ASINH: Operation = Operation {
    id: 118,
    name: "asinh",
    doc: "the number whose hyperbolic sine is x",
    complex: ComplexRule::Holomorphic,
    aliases: &["arcsinh"],
    gradient: Each(&[|g, s| {
        let square = g.mul(s.tensor(0), s.tensor(0));
        let sum = g.add(square, 1.0);
        let root = g.sqrt(sum);
        g.div(s.grad, root)
    }]),
    samples: || unary(MIXED, -3.0, 3.0),
    ..FUNCTION.with(facts(Unchanged, Function(Units), Computed))
};

pub static ACOSH: Operation = Operation {
    id: 119,
    name: "acosh",
    doc: "the number whose hyperbolic cosine is x; NaN below 1",
    complex: ComplexRule::Holomorphic,
    aliases: &["arccosh"],
    gradient: Each(&[|g, s| {
        // Two roots, for the root of the product is another for complex numbers.
        let (less, more) = (g.sub(s.tensor(0), 1.0), g.add(s.tensor(0), 1.0));
        let (less, more) = (g.sqrt(less), g.sqrt(more));
        let root = g.mul(less, more);
        g.div(s.grad, root)
    }]),
    samples: || unary(FLOATS, 1.1, 4.0),
    ..FUNCTION.with(facts(Unchanged, Function(Units), Computed))
};

pub static ATANH: Operation = Operation {
    id: 120,
    name: "atanh",
    doc: "the number whose hyperbolic tangent is x; NaN outside of -1 to 1",
    complex: ComplexRule::Holomorphic,
    aliases: &["arctanh"],
    gradient: Each(&[|g, s| {
        let square = g.mul(s.tensor(0), s.tensor(0));
        let rest = g.sub(1.0, square);
        g.div(s.grad, rest)
    }]),
    samples: || unary(FLOATS, -0.9, 0.9),
    ..FUNCTION.with(facts(Unchanged, Function(Units), Computed))
};

pub static LOG2: Operation = Operation {
    id: 121,
    name: "log2",
    doc: "logarithm to the base 2",
    complex: ComplexRule::Holomorphic,
    gradient: Each(&[|g, s| {
        let scaled = g.mul(s.tensor(0), LN_2);
        g.div(s.grad, scaled)
    }]),
    samples: || unary(MIXED, 0.5, 4.0),
    ..FUNCTION.with(facts(Float32, Function(Units), Computed))
};

pub static LOG10: Operation = Operation {
    id: 122,
    name: "log10",
    doc: "logarithm to the base 10",
    complex: ComplexRule::Holomorphic,
    gradient: Each(&[|g, s| {
        let scaled = g.mul(s.tensor(0), LN_10);
        g.div(s.grad, scaled)
    }]),
    samples: || unary(MIXED, 0.5, 4.0),
    ..FUNCTION.with(facts(Float32, Function(Units), Computed))
};

pub static EXP2: Operation = Operation {
    id: 123,
    name: "exp2",
    doc: "2 to the x",
    complex: ComplexRule::Holomorphic,
    face: face::ELEMENTWISE | face::SPECIAL,
    gradient: Each(&[|g, s| {
        let slope = g.mul(s.output(), LN_2);
        g.mul(s.grad, slope)
    }]),
    saves: OUTPUT,
    samples: || unary(MIXED, -2.0, 2.0),
    ..FUNCTION.with(facts(Unchanged, Function(Units), Computed))
};

/// Of two floats.
pub(super) const PAIR: Defaults =
    Defaults(Operation { infer: elementwise_float, saves: FIRST | SECOND, ..BINARY.0 });

pub static ATAN2: Operation = Operation {
    id: 124,
    name: "atan2",
    doc: "the angle of the point (other, input) from the first axis, in radians, in its quadrant",
    aliases: &["arctan2"],
    gradient: Each(&[
        |g, s| {
            let share = over_squares(g, s);
            g.mul(share, s.operand(1))
        },
        |g, s| {
            let share = over_squares(g, s);
            let minus = g.neg(share);
            g.mul(minus, s.operand(0))
        },
    ]),
    samples: || binary(FLOATS, (-3.0, 3.0), (0.5, 3.0)),
    ..PAIR.with(facts(Unchanged, Function(Units), Computed))
};

/// grad / (a^2 + b^2), and 0 where both are 0.
fn over_squares(g: &mut dyn crate::Graph, s: &crate::operation::Saved) -> crate::Var {
    let (a, b) = (s.operand(0), s.operand(1));
    let (first, second) = (g.mul(a, a), g.mul(b, b));
    let sum = g.add(first, second);
    let share = g.div(s.grad, sum);
    let is_origin = g.eq(sum, 0.0);
    g.select(is_origin, 0.0, share)
}

pub static HYPOT: Operation = Operation {
    id: 125,
    name: "hypot",
    doc: "sqrt(input^2 + other^2), without overflow on the way",
    gradient: Each(&[
        |g, s| {
            let share = g.div(s.operand(0), s.output());
            g.mul(s.grad, share)
        },
        |g, s| {
            let share = g.div(s.operand(1), s.output());
            g.mul(s.grad, share)
        },
    ]),
    infer: number,
    saves: FIRST | SECOND | OUTPUT,
    samples: || binary(FLOATS, (0.5, 3.0), (0.5, 3.0)),
    ..PAIR.with(facts(Unchanged, Function(Units), Computed))
};
