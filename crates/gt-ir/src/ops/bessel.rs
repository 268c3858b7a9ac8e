//! Bessel functions, and Airy's.
//!
//! Formulas of gradients are those of the NIST Digital Library of Mathematical Functions.

use super::sample::unary;
use super::special::{FUNCTION, RARE, scaled};
use super::unary::MIXED;
use crate::Graph;
use crate::operation::Gradient::Each;
use crate::operation::facts::says::*;
use crate::operation::{FIRST, OUTPUT, Operation, Saved, Var};

pub static I0: Operation = Operation {
    id: 157,
    name: "i0",
    doc: "the modified Bessel function of the first kind of order 0",
    gradient: Each(&[|g, s| {
        let slope = g.call(&I1, &[s.operand(0)]);
        scaled(g, s, slope)
    }]),
    samples: || unary(MIXED, -3.0, 3.0),
    ..FUNCTION.with(facts(Unchanged, Function(Coarse), Computed))
};

pub static I0E: Operation = Operation {
    id: 158,
    name: "i0e",
    doc: "exp(-|x|) i0(x)",
    gradient: Each(&[|g, s| {
        let (first, sign) = (g.call(&I1E, &[s.operand(0)]), g.sign(s.operand(0)));
        let rest = g.mul(sign, s.output());
        let slope = g.sub(first, rest);
        scaled(g, s, slope)
    }]),
    saves: FIRST | OUTPUT,
    samples: || unary(MIXED, -3.0, 3.0),
    ..RARE.with(facts(Unchanged, Function(Coarse), Computed))
};

pub static I1: Operation = Operation {
    id: 159,
    name: "i1",
    doc: "the modified Bessel function of the first kind of order 1",
    gradient: Each(&[|g, s| {
        // i0(x) - i1(x) / x, which is 1/2 at 0
        let zeroth = g.call(&I0, &[s.operand(0)]);
        let at_zero = g.eq(s.operand(0), 0.0);
        let divisor = g.select(at_zero, 1.0, s.operand(0));
        let share = g.div(s.output(), divisor);
        let slope = g.sub(zeroth, share);
        let slope = g.select(at_zero, 0.5, slope);
        scaled(g, s, slope)
    }]),
    saves: FIRST | OUTPUT,
    samples: || unary(MIXED, -3.0, 3.0),
    ..RARE.with(facts(Unchanged, Function(Coarse), Computed))
};

pub static I1E: Operation = Operation {
    id: 160,
    name: "i1e",
    doc: "exp(-|x|) i1(x)",
    gradient: Each(&[|g, s| {
        // i0e(x) - i1e(x) (sign(x) + 1 / x), which is 1/2 at 0
        let zeroth = g.call(&I0E, &[s.operand(0)]);
        let sign = g.sign(s.operand(0));
        let at_zero = g.eq(s.operand(0), 0.0);
        let divisor = g.select(at_zero, 1.0, s.operand(0));
        let inverse = g.div(1.0, divisor);
        let factor = g.add(sign, inverse);
        let rest = g.mul(s.output(), factor);
        let slope = g.sub(zeroth, rest);
        let slope = g.select(at_zero, 0.5, slope);
        scaled(g, s, slope)
    }]),
    saves: FIRST | OUTPUT,
    samples: || unary(MIXED, -3.0, 3.0),
    ..RARE.with(facts(Unchanged, Function(Coarse), Computed))
};

pub static BESSEL_J0: Operation = Operation {
    id: 161,
    name: "bessel_j0",
    doc: "the Bessel function of the first kind of order 0",
    gradient: Each(&[|g, s| {
        let other = g.call(&BESSEL_J1, &[s.operand(0)]);
        let slope = g.neg(other);
        scaled(g, s, slope)
    }]),
    saves: FIRST,
    samples: || unary(MIXED, 0.5, 4.0),
    ..RARE.with(facts(Unchanged, Function(Coarse), Computed))
};

pub static BESSEL_J1: Operation = Operation {
    id: 162,
    name: "bessel_j1",
    doc: "the Bessel function of the first kind of order 1",
    gradient: Each(&[|g, s| of_order_1(g, s, &BESSEL_J0, 1.0, 0.5)]),
    saves: FIRST | OUTPUT,
    samples: || unary(MIXED, 0.5, 4.0),
    ..RARE.with(facts(Unchanged, Function(Coarse), Computed))
};

pub static BESSEL_Y0: Operation = Operation {
    id: 163,
    name: "bessel_y0",
    doc: "the Bessel function of the second kind of order 0",
    gradient: Each(&[|g, s| {
        let other = g.call(&BESSEL_Y1, &[s.operand(0)]);
        let slope = g.neg(other);
        scaled(g, s, slope)
    }]),
    saves: FIRST,
    samples: || unary(MIXED, 0.5, 4.0),
    ..RARE.with(facts(Unchanged, Function(Coarse), Computed))
};

pub static BESSEL_Y1: Operation = Operation {
    id: 164,
    name: "bessel_y1",
    doc: "the Bessel function of the second kind of order 1",
    gradient: Each(&[|g, s| of_order_1(g, s, &BESSEL_Y0, 1.0, f64::INFINITY)]),
    saves: FIRST | OUTPUT,
    samples: || unary(MIXED, 0.5, 4.0),
    ..RARE.with(facts(Unchanged, Function(Coarse), Computed))
};

pub static MODIFIED_BESSEL_K0: Operation = Operation {
    id: 165,
    name: "modified_bessel_k0",
    doc: "the modified Bessel function of the second kind of order 0",
    gradient: Each(&[|g, s| {
        let other = g.call(&MODIFIED_BESSEL_K1, &[s.operand(0)]);
        let slope = g.neg(other);
        scaled(g, s, slope)
    }]),
    saves: FIRST,
    samples: || unary(MIXED, 0.5, 4.0),
    ..RARE.with(facts(Unchanged, Function(Coarse), Computed))
};

pub static MODIFIED_BESSEL_K1: Operation = Operation {
    id: 166,
    name: "modified_bessel_k1",
    doc: "the modified Bessel function of the second kind of order 1",
    gradient: Each(&[|g, s| of_order_1(g, s, &MODIFIED_BESSEL_K0, -1.0, f64::NEG_INFINITY)]),
    saves: FIRST | OUTPUT,
    samples: || unary(MIXED, 0.5, 4.0),
    ..RARE.with(facts(Unchanged, Function(Coarse), Computed))
};

pub static SCALED_MODIFIED_BESSEL_K0: Operation = Operation {
    id: 167,
    name: "scaled_modified_bessel_k0",
    doc: "exp(x) modified_bessel_k0(x)",
    samples: || unary(MIXED, 0.5, 4.0),
    ..RARE.with(facts(Unchanged, Function(Coarse), Computed))
};

pub static SCALED_MODIFIED_BESSEL_K1: Operation = Operation {
    id: 168,
    name: "scaled_modified_bessel_k1",
    doc: "exp(x) modified_bessel_k1(x)",
    samples: || unary(MIXED, 0.5, 4.0),
    ..RARE.with(facts(Unchanged, Function(Coarse), Computed))
};

pub static MODIFIED_BESSEL_I0: Operation = Operation {
    id: 169,
    name: "modified_bessel_i0",
    doc: "the modified Bessel function of the first kind of order 0",
    gradient: Each(&[|g, s| {
        let slope = g.call(&MODIFIED_BESSEL_I1, &[s.operand(0)]);
        scaled(g, s, slope)
    }]),
    saves: FIRST,
    samples: || unary(MIXED, 0.5, 4.0),
    ..RARE.with(facts(Unchanged, Function(Coarse), Computed))
};

pub static MODIFIED_BESSEL_I1: Operation = Operation {
    id: 170,
    name: "modified_bessel_i1",
    doc: "the modified Bessel function of the first kind of order 1",
    gradient: Each(&[|g, s| of_order_1(g, s, &MODIFIED_BESSEL_I0, 1.0, 0.5)]),
    saves: FIRST | OUTPUT,
    samples: || unary(MIXED, 0.5, 4.0),
    ..RARE.with(facts(Unchanged, Function(Coarse), Computed))
};

pub static SPHERICAL_BESSEL_J0: Operation = Operation {
    id: 171,
    name: "spherical_bessel_j0",
    doc: "sin(x) / x, the spherical Bessel function of order 0",
    samples: || unary(MIXED, 0.5, 4.0),
    ..RARE.with(facts(Unchanged, Function(Coarse), Computed))
};

pub static AIRY_AI: Operation = Operation {
    id: 172,
    name: "airy_ai",
    doc: "the Airy function Ai",
    samples: || unary(MIXED, 0.5, 4.0),
    ..RARE.with(facts(Unchanged, Function(Coarse), Computed))
};

/// The slope of a function of order 1: its fellow of order 0, with a sign, less out / x.
fn of_order_1(
    g: &mut dyn Graph,
    s: &Saved,
    fellow: &'static Operation,
    sign: f64,
    at_zero: f64,
) -> Var {
    let zeroth = g.call(fellow, &[s.operand(0)]);
    let zeroth = g.mul(zeroth, sign);
    let share = g.div(s.output(), s.operand(0));
    let slope = g.sub(zeroth, share);
    let is_zero = g.eq(s.operand(0), 0.0);
    let slope = g.select(is_zero, at_zero, slope);
    scaled(g, s, slope)
}
