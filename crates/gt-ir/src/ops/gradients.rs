//! Gradients as composites of their own, which engines may take whole.

use super::infer::elementwise_float;
use super::nn::{FLOATS, float_tensor, gelu_slope, gelu_tanh, widened};
use super::sample::{sample, tensor};
use crate::batching::{Batching, products};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::instruction::Attribute;
use crate::operation::Body::Composite;
use crate::operation::Defaults;
use crate::operation::Gradient::Each;
use crate::operation::facts::says::*;
use crate::operation::{
    Call, ComplexRule, FIRST, Family, Graph, Meta, Operation, SECOND, Sample, Var, int, takes,
};
use crate::shape::{Shape, axis};
use crate::sharding::{self, Reduction, Rule, shape_of};

pub static WEIGHT_BACKWARD: Operation = Operation {
    id: 290,
    name: "weight_backward",
    family: Family::Matmul,
    doc: "the transposed input times grad, as one product of the rows of all batches: the gradient of a matrix product by a right operand that the batches share",
    complex: ComplexRule::Holomorphic,
    parameters: &[takes::tensor("input"), takes::tensor("grad")],
    infer: |call| {
        let (input, grad) = (call.tensor(0)?, call.tensor(1)?);
        let rank = input.shape.rank();
        let fits = rank >= 2
            && grad.shape.rank() == rank
            && input.shape.dims()[..rank - 1] == grad.shape.dims()[..rank - 1];
        if !fits {
            let expected = format!("that of the input but for the last axis, {}", input.shape);
            let (operation, given) = (call.operation, grad.shape);
            return Err(Error::ShapeMismatch { operation, given, expected });
        }
        if input.dtype != grad.dtype {
            return Err(Error::MatmulDTypes { left: input.dtype, right: grad.dtype });
        }
        let sides = [input.shape[rank - 1], grad.shape[rank - 1]];
        Ok(Meta::new(input.dtype, Shape::new(&sides)?))
    },
    gradient: Each(&[
        |g, s| {
            let turned = g.transpose(s.grad);
            g.matmul(s.tensor(1), turned)
        },
        |g, s| g.matmul(s.tensor(0), s.grad),
    ]),
    saves: FIRST | SECOND,
    sharding: |call, output| {
        let mut rule = Rule::whole(call, output);
        let (input, last) = (shape_of(call, 0), shape_of(call, 0).rank() - 1);
        for along in (0..last).filter(|&along| input[along] > 1) {
            rule.reduce(&[(0, along), (1, along)], Reduction::Sum);
        }
        for side in (0..2).filter(|&side| output.shape[side] > 1) {
            rule.share(&[(side, last)], Some(side));
        }
        rule.linear_in(&[0b01, 0b10])
    },
    body: Composite(|g, operands, _| {
        let rows = |g: &mut dyn Graph, operand: usize| {
            let x = *operands[operand].tensor().expect("a tensor operand");
            let shape = g.shape(x);
            let (count, width) = shape
                .dims()
                .split_last()
                .map_or((1, 1), |(width, rest)| (rest.iter().product::<usize>(), *width));
            g.reshape(x, Shape::new(&[count, width]).expect("two axes"))
        };
        let (input, grad) = (rows(g, 0), rows(g, 1));
        let turned = g.transpose(input);
        g.matmul(turned, grad)
    }),
    samples: || {
        let shapes: [(&[usize], &[usize]); 4] = [
            (&[2, 3, 4], &[2, 3, 5]),
            (&[3, 2], &[3, 4]),
            (&[2, 1, 3, 2], &[2, 1, 3, 1]),
            (&[0, 3, 2], &[0, 3, 4]),
        ];
        let each = |dtype| {
            let operands = move |(a, b)| [tensor(dtype, a, -3.0, 3.0), tensor(dtype, b, -3.0, 3.0)];
            shapes.into_iter().map(move |pair| sample(&operands(pair), &[]))
        };
        [FLOATS, &[DType::I64, DType::C64]].concat().into_iter().flat_map(each).collect()
    },
    batching: Batching::Rule(products::weight_backward),
    ..Operation::base().with(facts(Unchanged, OfBody, Computed))
};

const OF_OUTPUT: Defaults = Defaults(Operation {
    family: Family::Reduce,
    parameters: &[takes::tensor("grad"), takes::tensor("output"), takes::dim("dim")],
    infer: |call| {
        let meta = alike(call)?;
        axis(call.int(0), meta.shape.rank(), call.operation)?;
        Ok(meta)
    },
    saves: FIRST | SECOND,
    sharding: |call, output| {
        let mut rule = Rule::whole(call, output);
        let rank = output.shape.rank();
        let summed = axis(call.int(0), rank, call.operation).unwrap_or(rank);
        for along in (0..rank).filter(|&along| along != summed && output.shape[along] > 1) {
            rule.share(&[(0, along), (1, along)], Some(along));
        }
        rule.linear_in(&[0b01])
    },
    samples: || {
        let mut samples: Vec<Sample> = Vec::new();
        for &dtype in FLOATS {
            for axis in [0, -1] {
                let operands =
                    [tensor(dtype, &[3, 4], -2.0, 2.0), tensor(dtype, &[3, 4], -2.0, -0.1)];
                samples.push(sample(&operands, &[Attribute::Int(axis)]));
            }
        }
        samples
    },
    batching: Batching::Leading,
    ..Operation::base().0
});

pub static SOFTMAX_BACKWARD: Operation = Operation {
    id: 291,
    name: "softmax_backward",
    doc: "output (grad - sum(grad output)): the gradient of softmax, from its result",
    gradient: Each(&[
        |g, s| {
            let operands = [s.grad.into(), s.tensor(1).into()];
            g.emit(&SOFTMAX_BACKWARD, &operands, s.attributes.clone())
        },
        |g, s| {
            let (grad, output) = (s.tensor(0), s.tensor(1));
            let first = centered(g, s.grad, grad, output, s.int(0));
            let product = g.mul(s.grad, output);
            let total = g.sum(product, &[s.int(0)], true);
            let second = g.mul(grad, total);
            g.sub(first, second)
        },
    ]),
    body: Composite(|g, operands, attributes| {
        let ((grad, dtype), output) = (wide(g, operands[0]), wide(g, operands[1]).0);
        let result = centered(g, output, grad, output, int(attributes, 0));
        g.cast(result, dtype)
    }),
    ..OF_OUTPUT.with(facts(Unchanged, OfBody, Computed))
};

/// factor (grad - sum(grad output)).
fn centered(g: &mut dyn Graph, factor: Var, grad: Var, output: Var, dim: i64) -> Var {
    let product = g.mul(grad, output);
    let total = g.sum(product, &[dim], true);
    let centered = g.sub(grad, total);
    g.mul(factor, centered)
}

pub static LOG_SOFTMAX_BACKWARD: Operation = Operation {
    id: 292,
    name: "log_softmax_backward",
    doc: "grad - exp(output) sum(grad): the gradient of log_softmax, from its result",
    gradient: Each(&[
        |g, s| {
            let softmax = g.exp(s.tensor(1));
            let product = g.mul(softmax, s.grad);
            let total = g.sum(product, &[s.int(0)], true);
            g.sub(s.grad, total)
        },
        |g, s| {
            let total = g.sum(s.tensor(0), &[s.int(0)], true);
            let softmax = g.exp(s.tensor(1));
            let product = g.mul(softmax, total);
            let along = g.mul(product, s.grad);
            g.neg(along)
        },
    ]),
    body: Composite(|g, operands, attributes| {
        let ((grad, dtype), output) = (wide(g, operands[0]), wide(g, operands[1]).0);
        let total = g.sum(grad, &[int(attributes, 0)], true);
        let softmax = g.exp(output);
        let product = g.mul(softmax, total);
        let result = g.sub(grad, product);
        g.cast(result, dtype)
    }),
    ..OF_OUTPUT.with(facts(Unchanged, OfBody, Computed))
};

pub static GELU_BACKWARD: Operation = Operation {
    id: 293,
    name: "gelu_backward",
    family: Family::Unary,
    doc: "grad times the derivative of gelu at the input",
    parameters: &[
        takes::tensor("grad"),
        takes::tensor("input"),
        takes::choice("approximate", &["none", "tanh"]),
    ],
    infer: alike,
    gradient: Each(&[
        |g, s| {
            let operands = [s.grad.into(), s.tensor(1).into()];
            g.emit(&GELU_BACKWARD, &operands, s.attributes.clone())
        },
        |g, s| {
            let bend = gelu_bend(g, s.tensor(1), s.int(0));
            let product = g.mul(s.grad, s.tensor(0));
            g.mul(product, bend)
        },
    ]),
    saves: FIRST | SECOND,
    sharding: sharding::elementwise,
    body: Composite(|g, operands, attributes| {
        let ((grad, dtype), x) = (wide(g, operands[0]), wide(g, operands[1]).0);
        let slope = gelu_slope(g, x, int(attributes, 0));
        let result = g.mul(grad, slope);
        g.cast(result, dtype)
    }),
    samples: || {
        let mut samples = Vec::new();
        for &dtype in FLOATS {
            for form in [0, 1] {
                let operands =
                    [tensor(dtype, &[3, 5], -3.0, 3.0), tensor(dtype, &[3, 5], -3.0, 3.0)];
                samples.push(sample(&operands, &[Attribute::Int(form)]));
            }
        }
        samples
    },
    batching: Batching::Leading,
    ..Operation::base().with(facts(Unchanged, OfBody, Computed))
};

/// The second derivative of gelu.
fn gelu_bend(g: &mut dyn Graph, x: Var, form: i64) -> Var {
    if form == 0 {
        // phi(x) (2 - x^2), by the density phi of the normal distribution.
        let square = g.mul(x, x);
        let exponent = g.mul(square, -0.5);
        let bell = g.exp(exponent);
        let density = g.mul(bell, (0.5 * std::f64::consts::FRAC_1_PI).sqrt());
        let factor = g.sub(2.0, square);
        return g.mul(density, factor);
    }
    // With t = tanh(a): (1 - t^2) (a' + x a'' / 2 - x t a'^2).
    let (tanh, slope) = gelu_tanh(g, x);
    let bend = super::nn::gelu_argument_bend(g, x);
    let half = g.mul(x, 0.5);
    let second = g.mul(half, bend);
    let square = g.mul(slope, slope);
    let product = g.mul(tanh, square);
    let third = g.mul(x, product);
    let sum = g.add(slope, second);
    let sum = g.sub(sum, third);
    let tanh_square = g.mul(tanh, tanh);
    let rest = g.sub(1.0, tanh_square);
    g.mul(rest, sum)
}

/// The first two operands, gradient and another tensor, which are alike.
fn alike(call: &Call) -> Result<Meta> {
    let (grad, other) = (float_tensor(call, 0)?, float_tensor(call, 1)?);
    if grad.shape != other.shape {
        let (operation, expected) = (call.operation, format!("that of the other, {}", other.shape));
        return Err(Error::ShapeMismatch { operation, given: grad.shape, expected });
    }
    elementwise_float(call)
}

fn wide(g: &mut dyn Graph, operand: crate::instruction::Operand<Var>) -> (Var, DType) {
    widened(g, *operand.tensor().expect("a tensor operand"))
}
