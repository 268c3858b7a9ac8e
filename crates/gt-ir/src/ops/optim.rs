//! What optimizers compute for each parameter: one instruction each, as a step has many parameters.

use smallvec::smallvec;

use super::infer::{elementwise_float, number as floats};
use super::nn::FLOATS;
use super::sample::{number, sample, tensor};
use super::ternary::MUL_ADD;
use crate::batching::Batching;
use crate::error::Error;
use crate::instruction::{Attribute, Operand};
use crate::operation::Body::Composite;
use crate::operation::Defaults;
use crate::operation::Gradient::Each;
use crate::operation::facts::says::*;
use crate::operation::{
    FIFTH, FOURTH, Family, Graph, NO_GRADIENT, Operation, Parameter, SECOND, SIXTH, THIRD, Var,
    float, takes,
};
use crate::sharding;

const AVERAGE: Defaults = Defaults(Operation {
    family: Family::Binary,
    parameters: AVERAGED,
    infer: floats,
    sharding: sharding::elementwise,
    batching: Batching::Broadcast,
    samples: || {
        let factors = [Attribute::Float(0.9), Attribute::Float(0.25)];
        let mut samples = Vec::new();
        for &dtype in FLOATS {
            let x = |dims: &[usize]| tensor(dtype, dims, -3.0, 3.0);
            samples.push(sample(&[x(&[3, 5]), x(&[3, 5])], &factors));
            samples.push(sample(&[x(&[5]), x(&[3, 1])], &factors));
        }
        samples
    },
    ..Operation::base().0
});

const AVERAGED: &[Parameter] = &[
    takes::tensor("average"),
    takes::tensor("input"),
    takes::float("keep"),
    takes::float("weight"),
];

/// keep average + weight x.
fn averaged(g: &mut dyn Graph, average: Var, x: Var, [keep, weight]: [f64; 2]) -> Var {
    let kept = g.mul(average, keep);
    g.emit(&MUL_ADD, &[kept.into(), x.into(), weight.into()], smallvec![])
}

/// The running average of a value.
pub static RUNNING_MEAN: Operation = Operation {
    id: 310,
    name: "running_mean",
    doc: "keep average + weight x: a running average of x",
    gradient: Each(&[|g, s| g.mul(s.grad, s.float(0)), |g, s| g.mul(s.grad, s.float(1))]),
    body: Composite(|g, operands, attributes| {
        let [average, x] = [0, 1].map(|index: usize| *operands[index].tensor().expect("a tensor"));
        averaged(g, average, x, [float(attributes, 0), float(attributes, 1)])
    }),
    ..AVERAGE.with(facts(Unchanged, OfBody, Computed))
};

/// The running average of a value's square.
pub static RUNNING_SQUARE: Operation = Operation {
    id: 311,
    name: "running_square",
    doc: "keep average + weight x x: a running average of the square of x",
    gradient: Each(&[
        |g, s| g.mul(s.grad, s.float(0)),
        |g, s| {
            let slope = g.mul(s.tensor(1), 2.0 * s.float(1));
            g.mul(s.grad, slope)
        },
    ]),
    saves: SECOND,
    body: Composite(|g, operands, attributes| {
        let [average, x] = [0, 1].map(|index: usize| *operands[index].tensor().expect("a tensor"));
        let square = g.mul(x, x);
        averaged(g, average, square, [float(attributes, 0), float(attributes, 1)])
    }),
    ..AVERAGE.with(facts(Unchanged, OfBody, Computed))
};

/// A parameter after a step of Adam.
pub static ADAM_STEP: Operation = Operation {
    id: 312,
    name: "adam_step",
    doc: "keep x - rate mean / (scale sqrt(square) + eps): a parameter x after a step of Adam",
    family: Family::Ternary,
    parameters: &[
        takes::tensor("input"),
        takes::tensor("mean"),
        takes::tensor("square"),
        takes::value("keep"),
        takes::value("rate"),
        takes::value("scale"),
        takes::float("eps"),
    ],
    infer: |call| {
        if call.operands[3..].iter().any(|factor| factor.tensor().is_some()) {
            let (attribute, given) = ("keep, rate or scale", "a tensor".to_string());
            let expected = "a number";
            return Err(Error::BadAttribute { operation: "adam_step", attribute, given, expected });
        }
        elementwise_float(call)
    },
    gradient: Each(&[
        |g, s| g.mul(s.grad, s.operand(3)),
        |g, s| {
            let (_, divisor) = divisor(g, s.tensor(2), s.operand(5), s.float(0));
            let share = g.div(s.grad, divisor);
            let scaled = g.mul(share, s.operand(4));
            g.neg(scaled)
        },
        |g, s| {
            // rate mean / divisor^2 scale / (2 sqrt(square))
            let (root, divisor) = divisor(g, s.tensor(2), s.operand(5), s.float(0));
            let quotient = g.div(s.tensor(1), divisor);
            let share = g.div(quotient, divisor);
            let product = g.mul(s.grad, share);
            let scaled = g.mul(product, s.operand(4));
            let scaled = g.mul(scaled, s.operand(5));
            let half = g.mul(scaled, 0.5);
            g.div(half, root)
        },
        NO_GRADIENT,
        NO_GRADIENT,
        NO_GRADIENT,
    ]),
    saves: SECOND | THIRD | FOURTH | FIFTH | SIXTH,
    sharding: sharding::elementwise,
    batching: Batching::Broadcast,
    body: Composite(|g, operands, attributes| {
        let [x, mean, square] =
            [0, 1, 2].map(|index: usize| *operands[index].tensor().expect("a tensor"));
        let (_, divisor) = divisor(g, square, operands[5], float(attributes, 0));
        let change = g.div(mean, divisor);
        let change = g.mul(change, operands[4]);
        let kept = g.mul(x, operands[3]);
        g.sub(kept, change)
    }),
    open_numbers: true,
    samples: || {
        let numbers = [number(0.75), number(0.5), number(1.5)];
        let eps = [Attribute::Float(1e-3)];
        let mut samples = Vec::new();
        for &dtype in FLOATS {
            let x = |low: f64| tensor(dtype, &[3, 5], low, 3.0);
            let tensors = [x(-3.0), x(-3.0), x(0.5)];
            samples.push(sample(&[tensors, numbers].concat(), &eps));
        }
        samples
    },
    ..Operation::base().with(facts(Unchanged, OfBody, Computed))
};

/// sqrt(square), and scale sqrt(square) + eps.
fn divisor(g: &mut dyn Graph, square: Var, scale: Operand<Var>, eps: f64) -> (Var, Var) {
    let root = g.sqrt(square);
    let scaled = g.mul(root, scale);
    (root, g.add(scaled, eps))
}
