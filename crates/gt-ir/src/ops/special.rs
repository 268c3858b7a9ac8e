//! Special functions: gamma and error functions and their kin.
//!
//! Formulas of gradients are those of the NIST Digital Library of Mathematical Functions.

use std::f64::consts::{FRAC_2_SQRT_PI, PI};

use super::infer::elementwise_float;
use super::sample::{binary, sample, tensor, unary};
use super::trigonometry;
use super::unary::{FLOATS, MIXED, UNARY};
use crate::dtype::DType;
use crate::instruction::Attribute;
use crate::operation::Defaults;
use crate::operation::Gradient::Each;
use crate::operation::facts::says::*;
use crate::operation::{FIRST, NO_GRADIENT, OUTPUT, Operation, Saved, Var, face, takes};
use crate::{Graph, Operand};
use smallvec::smallvec;

pub(super) const FUNCTION: Defaults = Defaults(Operation {
    infer: elementwise_float,
    saves: FIRST,
    face: face::ELEMENTWISE | face::SPECIAL,
    ..UNARY.0
});

/// Of `gt.special` alone.
pub(super) const RARE: Defaults = Defaults(Operation { face: face::SPECIAL, ..FUNCTION.0 });

pub(super) fn scaled(g: &mut dyn Graph, s: &Saved, slope: Var) -> Var {
    g.mul(s.grad, slope)
}

/// exp(-x^2) times a factor.
fn bell(g: &mut dyn Graph, x: Operand<Var>, factor: f64) -> Var {
    let square = g.mul(x, x);
    let minus = g.neg(square);
    let exp = g.exp(minus);
    g.mul(exp, factor)
}

pub static ERFC: Operation = Operation {
    id: 150,
    name: "erfc",
    doc: "1 - erf(x), exact where erf is near 1",
    gradient: Each(&[|g, s| {
        let slope = bell(g, s.operand(0), -FRAC_2_SQRT_PI);
        scaled(g, s, slope)
    }]),
    samples: || unary(MIXED, -2.0, 2.0),
    ..FUNCTION.with(facts(Unchanged, Function(Units), Computed))
};

pub static ERFINV: Operation = Operation {
    id: 149,
    name: "erfinv",
    doc: "the number whose erf is x; NaN outside of -1 to 1",
    gradient: Each(&[|g, s| {
        // sqrt(pi) / 2 exp(out^2)
        let square = g.mul(s.output(), s.output());
        let exp = g.exp(square);
        let slope = g.mul(exp, 1.0 / FRAC_2_SQRT_PI);
        scaled(g, s, slope)
    }]),
    saves: OUTPUT,
    samples: || unary(FLOATS, -0.9, 0.9),
    ..FUNCTION.with(facts(Float32, Function(Coarse), Computed))
};

pub static LGAMMA: Operation = Operation {
    id: 151,
    name: "lgamma",
    doc: "the logarithm of |gamma(x)|",
    aliases: &["gammaln"],
    gradient: Each(&[|g, s| {
        let slope = g.call(&DIGAMMA, &[s.operand(0)]);
        scaled(g, s, slope)
    }]),
    samples: || unary(MIXED, 0.5, 4.0),
    ..FUNCTION.with(facts(Unchanged, Function(Coarse), Computed))
};

pub static DIGAMMA: Operation = Operation {
    id: 152,
    name: "digamma",
    doc: "the derivative of lgamma",
    aliases: &["psi"],
    gradient: Each(&[|g, s| {
        let slope = g.emit(&POLYGAMMA, &[s.operand(0)], smallvec![Attribute::Int(1)]);
        scaled(g, s, slope)
    }]),
    samples: || unary(MIXED, 0.5, 4.0),
    ..FUNCTION.with(facts(Unchanged, Function(Coarse), Computed))
};

pub static POLYGAMMA: Operation = Operation {
    id: 153,
    name: "polygamma",
    doc: "the n-th derivative of digamma",
    parameters: &[takes::tensor("input"), takes::int("n")],
    face: face::HIDDEN,
    gradient: Each(&[|g, s| {
        let next = smallvec![Attribute::Int(s.int(0) + 1)];
        let slope = g.emit(&POLYGAMMA, &[s.operand(0)], next);
        scaled(g, s, slope)
    }]),
    samples: || {
        let x = |dtype, n: i64| sample(&[tensor(dtype, &[2, 3], 0.5, 4.0)], &[Attribute::Int(n)]);
        vec![x(DType::F32, 1), x(DType::F64, 2), x(DType::F64, 0), x(DType::I64, 1)]
    },
    ..FUNCTION.with(facts(Unchanged, Function(Coarse), Computed))
};

pub static ERFCX: Operation = Operation {
    id: 154,
    name: "erfcx",
    doc: "exp(x^2) erfc(x), without overflow",
    gradient: Each(&[|g, s| {
        // 2 x erfcx(x) - 2 / sqrt(pi)
        let product = g.mul(s.output(), s.operand(0));
        let twice = g.mul(product, 2.0);
        let slope = g.sub(twice, FRAC_2_SQRT_PI);
        scaled(g, s, slope)
    }]),
    saves: FIRST | OUTPUT,
    samples: || unary(MIXED, -1.0, 3.0),
    ..RARE.with(facts(Unchanged, Function(Coarse), Computed))
};

pub static NDTRI: Operation = Operation {
    id: 155,
    name: "ndtri",
    doc: "the number below which a normal variable lies with probability x",
    gradient: Each(&[|g, s| {
        // sqrt(2 pi) exp(out^2 / 2)
        let square = g.mul(s.output(), s.output());
        let half = g.mul(square, 0.5);
        let exp = g.exp(half);
        let slope = g.mul(exp, (2.0 * PI).sqrt());
        scaled(g, s, slope)
    }]),
    saves: OUTPUT,
    samples: || unary(FLOATS, 0.1, 0.9),
    ..RARE.with(facts(Unchanged, Function(Coarse), Computed))
};

pub static LOG_NDTR: Operation = Operation {
    id: 156,
    name: "log_ndtr",
    doc: "the logarithm of the normal distribution function",
    gradient: Each(&[|g, s| {
        // sqrt(2 / pi) / erfcx(-x / sqrt(2))
        let x = g.mul(s.operand(0), -std::f64::consts::FRAC_1_SQRT_2);
        let erfcx = g.call(&ERFCX, &[x.into()]);
        let slope = g.div((2.0 / PI).sqrt(), erfcx);
        scaled(g, s, slope)
    }]),
    samples: || unary(MIXED, -3.0, 3.0),
    ..RARE.with(facts(Unchanged, Function(Coarse), Computed))
};

/// Of two floats.
const PAIR: Defaults =
    Defaults(Operation { face: face::ELEMENTWISE | face::SPECIAL, ..trigonometry::PAIR.0 });

/// Returns `gradient`, that of x f(y) by x, but 0 where x is 0 and f has no value: y is at most
/// `bound`.
fn zero_outside_domain(g: &mut dyn Graph, s: &Saved, gradient: Var, bound: f64) -> Var {
    let (is_zero, is_outside) = (g.eq(s.operand(0), 0.0), g.le(s.operand(1), bound));
    let is_zero = g.logical_and(is_zero, is_outside);
    g.select(is_zero, 0.0, gradient)
}

pub static XLOGY: Operation = Operation {
    id: 314,
    name: "xlogy",
    doc: "input log(other), and 0 where input is 0 unless other is NaN",
    gradient: Each(&[
        |g, s| {
            let gradient = g.call(&XLOGY, &[s.grad.into(), s.operand(1)]);
            zero_outside_domain(g, s, gradient, 0.0)
        },
        |g, s| {
            let slope = g.div(s.operand(0), s.operand(1));
            g.mul(s.grad, slope)
        },
    ]),
    samples: || binary(FLOATS, (-2.0, 2.0), (0.5, 3.0)),
    ..PAIR.with(facts(Unchanged, Function(Units), Computed))
};

pub static XLOG1PY: Operation = Operation {
    id: 315,
    name: "xlog1py",
    doc: "input log(1 + other), and 0 where input is 0 unless other is NaN",
    face: face::SPECIAL,
    gradient: Each(&[
        |g, s| {
            let gradient = g.call(&XLOG1PY, &[s.grad.into(), s.operand(1)]);
            zero_outside_domain(g, s, gradient, -1.0)
        },
        |g, s| {
            let divisor = g.add(s.operand(1), 1.0);
            let slope = g.div(s.operand(0), divisor);
            g.mul(s.grad, slope)
        },
    ]),
    samples: || binary(FLOATS, (-2.0, 2.0), (-0.5, 2.0)),
    ..PAIR.with(facts(Float32, Function(Units), Computed))
};

pub static ENTR: Operation = Operation {
    id: 316,
    name: "entr",
    doc: "the entropy -x log(x) of each value: 0 at 0, and minus infinity below 0",
    gradient: Each(&[|g, s| {
        let log = g.log(s.operand(0));
        let slope = g.sub(-1.0, log);
        scaled(g, s, slope)
    }]),
    samples: || unary(MIXED, 0.5, 3.0),
    ..RARE.with(facts(Unchanged, Function(Units), Computed))
};

/// x^(a - 1) exp(-x) / gamma(a), the slope of igamma in x.
fn density(g: &mut dyn Graph, s: &Saved) -> Var {
    let (a, x) = (s.operand(0), s.operand(1));
    let power = g.sub(a, 1.0);
    let log = g.log(x);
    let log = g.mul(power, log);
    let exponent = g.sub(log, x);
    let gamma = g.call(&LGAMMA, &[a]);
    let exponent = g.sub(exponent, gamma);
    g.exp(exponent)
}

fn with_x(g: &mut dyn Graph, s: &Saved) -> Var {
    let slope = density(g, s);
    g.mul(s.grad, slope)
}

pub static IGAMMA: Operation = Operation {
    id: 173,
    name: "igamma",
    doc: "the lower incomplete gamma function of (input, other), as a share of gamma(input)",
    aliases: &["gammainc"],
    underived: FIRST,
    gradient: Each(&[NO_GRADIENT, with_x]),
    samples: || binary(FLOATS, (0.5, 3.0), (0.5, 3.0)),
    ..PAIR.with(facts(Unchanged, Function(Coarse), Computed))
};

pub static IGAMMAC: Operation = Operation {
    id: 174,
    name: "igammac",
    doc: "the upper incomplete gamma function of (input, other), as a share of gamma(input)",
    aliases: &["gammaincc"],
    underived: FIRST,
    gradient: Each(&[NO_GRADIENT, |g, s| {
        let grad = with_x(g, s);
        g.neg(grad)
    }]),
    samples: || binary(FLOATS, (0.5, 3.0), (0.5, 3.0)),
    ..PAIR.with(facts(Unchanged, Function(Coarse), Computed))
};

pub static ZETA: Operation = Operation {
    id: 175,
    name: "zeta",
    doc: "the Hurwitz zeta function: the sum of (k + other)^-input over k from 0 on",
    face: face::SPECIAL,
    underived: FIRST,
    gradient: Each(&[NO_GRADIENT, |g, s| {
        // -input zeta(input + 1, other)
        let next = g.add(s.operand(0), 1.0);
        let zeta = g.call(&ZETA, &[next.into(), s.operand(1)]);
        let product = g.mul(zeta, s.operand(0));
        let minus = g.neg(product);
        scaled(g, s, minus)
    }]),
    samples: || binary(FLOATS, (2.0, 4.0), (0.5, 3.0)),
    ..PAIR.with(facts(Unchanged, Function(Coarse), Computed))
};
