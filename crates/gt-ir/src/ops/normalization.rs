//! Layer normalization (Ba et al., 2016, <https://arxiv.org/abs/1607.06450>) and its gradients.
//!
//! Statistics are over the last axes, a *row*. With `s = 1 / sqrt(var + eps)`, `n = (x - mean) s`
//! and means over a row,
//!
//! ```text
//! y  = n weight + bias
//! dx = P(g weight)  where  P(h) = s (h - mean(h) - n mean(h n))
//! dweight = sum over rows of g n
//! ```
//!
//! P is the derivative of n by x, a symmetric matrix for each row: so the gradient of `P(h)` by h,
//! given u, is `P(u)`, and that by x is `-s (n mean(u P(h)) + mean(h n) P(u) + mean(u n) P(h))`.

use smallvec::{SmallVec, smallvec};

use super::nn::{FLOATS, float_tensor, widened};
use super::sample::{number, sample, tensor};
use super::unary::RSQRT;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::instruction::{Attribute, Attributes, Operand};
use crate::operation::Body::Composite;
use crate::operation::Defaults;
use crate::operation::Gradient::Each;
use crate::operation::facts::says::*;
use crate::operation::{
    Call, FIRST, Family, Graph, Meta, Operation, SECOND, Sample, SampleOperand, Saved, THIRD, Var,
    float, int, takes,
};
use crate::shape::Shape;
use crate::sharding::{Reduction, Rule, shape_of};

const BASE: Defaults = Defaults(Operation { family: Family::Reduce, ..Operation::base().0 });

pub static LAYER_NORM: Operation = Operation {
    id: 280,
    name: "layer_norm",
    doc: "weight (x - mean) / sqrt(var + eps) + bias, by the statistics of the last axes, of which there are `axes`; weight and bias have these, or are numbers",
    parameters: &[
        takes::tensor("input"),
        takes::value("weight"),
        takes::value("bias"),
        takes::int("axes"),
        takes::float("eps"),
    ],
    infer: |call| {
        let meta = rows(call, 0)?;
        of_a_row(call, 1, meta)?;
        of_a_row(call, 2, meta)?;
        Ok(meta)
    },
    gradient: Each(&[
        |g, s| project(g, s, s.grad, s.tensor(0), s.operand(1)),
        |g, s| {
            let operands = [s.grad.into(), s.tensor(0).into()];
            g.emit(&LAYER_NORM_WEIGHT_BACKWARD, &operands, s.attributes.clone())
        },
        |_, s| s.grad,
    ]),
    saves: FIRST | SECOND,
    sharding: |call, output| along_rows(call, output, &[0]),
    body: Composite(|g, operands, attributes| {
        let ([x, weight, bias], dtype) = wide(g, [operands[0], operands[1], operands[2]]);
        let (normal, _) = standardized(g, x, attributes);
        let scaled = g.mul(normal, weight);
        let shifted = g.add(scaled, bias);
        g.cast(shifted, dtype)
    }),
    samples: || samples(|x, row| vec![x, row, row], |x| vec![x, number(1.0), number(0.0)]),
    ..BASE.with(facts(Float32, OfBody, Computed))
};

pub static LAYER_NORM_BACKWARD: Operation = Operation {
    id: 281,
    name: "layer_norm_backward",
    doc: "the gradient of layer_norm by its input, from that of its result",
    parameters: &[
        takes::tensor("grad"),
        takes::tensor("input"),
        takes::value("weight"),
        takes::int("axes"),
        takes::float("eps"),
    ],
    infer: |call| {
        let meta = alike(call)?;
        of_a_row(call, 2, meta)?;
        Ok(meta)
    },
    gradient: Each(&[
        |g, s| {
            let projected = project(g, s, s.grad, s.tensor(1), 1.0.into());
            g.mul(projected, s.operand(2))
        },
        projected_by_input,
        |g, s| {
            let projected = project(g, s, s.grad, s.tensor(1), 1.0.into());
            g.mul(projected, s.tensor(0))
        },
    ]),
    saves: FIRST | SECOND | THIRD,
    sharding: |call, output| along_rows(call, output, &[0, 1]).linear_in(&[1]),
    body: Composite(|g, operands, attributes| {
        let ([grad, x, weight], dtype) = wide(g, [operands[0], operands[1], operands[2]]);
        let (normal, scale) = standardized(g, x, attributes);
        let scaled = g.mul(grad, weight);
        let mean = mean(g, scaled, attributes);
        let product = g.mul(scaled, normal);
        let share = self::mean(g, product, attributes);
        let along = g.mul(normal, share);
        let centered = g.sub(scaled, mean);
        let rest = g.sub(centered, along);
        let result = g.mul(rest, scale);
        g.cast(result, dtype)
    }),
    samples: || samples(|x, row| vec![x, x, row], |x| vec![x, x, number(1.0)]),
    ..BASE.with(facts(Unchanged, OfBody, Computed))
};

pub static LAYER_NORM_WEIGHT_BACKWARD: Operation = Operation {
    id: 282,
    name: "layer_norm_weight_backward",
    doc: "the gradient of layer_norm by its weight, from that of its result",
    parameters: &[
        takes::tensor("grad"),
        takes::tensor("input"),
        takes::int("axes"),
        takes::float("eps"),
    ],
    infer: |call| {
        let meta = alike(call)?;
        Ok(Meta::new(meta.dtype, row_shape(call, meta)))
    },
    gradient: Each(&[
        |g, s| {
            let operands = [s.tensor(1).into(), s.grad.into(), 0.0.into()];
            g.emit(&LAYER_NORM, &operands, s.attributes.clone())
        },
        |g, s| project(g, s, s.tensor(0), s.tensor(1), s.grad.into()),
    ]),
    saves: FIRST | SECOND,
    sharding: |call, output| {
        let mut rule = Rule::whole(call, output);
        for along in leading(call) {
            rule.reduce(&[(0, along), (1, along)], Reduction::Sum);
        }
        rule.linear_in(&[1])
    },
    body: Composite(|g, operands, attributes| {
        let ([grad, x], dtype) = wide(g, [operands[0], operands[1]]);
        let x = *x.tensor().expect("a tensor operand");
        let (normal, _) = standardized(g, x.into(), attributes);
        let product = g.mul(grad, normal);
        let rows: SmallVec<[i64; 8]> = (0..g.shape(x).rank() as i64 - int(attributes, 0)).collect();
        let sum = if rows.is_empty() { product } else { g.sum(product, &rows, false) };
        g.cast(sum, dtype)
    }),
    samples: || samples(|x, _| vec![x, x], |x| vec![x, x]),
    ..BASE.with(facts(Unchanged, OfBody, Computed))
};

/// Operand `index`, a tensor of floats with at least the axes of a row.
fn rows(call: &Call, index: usize) -> Result<Meta> {
    let meta = float_tensor(call, index)?;
    let count = call.int(0);
    if (1..=meta.shape.rank() as i64).contains(&count) {
        return Ok(meta);
    }
    Err(Error::BadAttribute {
        operation: call.operation,
        attribute: "axes",
        given: format!("{count} for a tensor of shape {}", meta.shape),
        expected: "1 up to the number of its axes",
    })
}

/// The first two operands, gradient and input, which are alike.
fn alike(call: &Call) -> Result<Meta> {
    let (grad, meta) = (float_tensor(call, 0)?, rows(call, 1)?);
    if grad.shape != meta.shape {
        let expected = format!("that of the input, {}", meta.shape);
        return Err(Error::ShapeMismatch {
            operation: call.operation,
            given: grad.shape,
            expected,
        });
    }
    Ok(meta)
}

/// Checks that operand `index` is a number or has the shape of a row.
fn of_a_row(call: &Call, index: usize, meta: Meta) -> Result<()> {
    let (operation, row) = (call.operation, row_shape(call, meta));
    match call.operands[index] {
        Operand::Tensor(given) if given.shape != row => {
            let expected = format!("that of a row, {row}");
            Err(Error::ShapeMismatch { operation, given: given.shape, expected })
        }
        Operand::Tensor(_) => float_tensor(call, index).map(|_| ()),
        Operand::Scalar(_) => Ok(()),
    }
}

fn row_shape(call: &Call, meta: Meta) -> Shape {
    let start = meta.shape.rank() - call.int(0) as usize;
    Shape::new(&meta.shape[start..]).expect("no longer than the whole")
}

/// The axes before those of a row that can be cut.
fn leading(call: &Call) -> impl Iterator<Item = usize> {
    let shape = shape_of(call, 0);
    (0..shape.rank() - call.int(0) as usize).filter(move |&along| shape[along] > 1)
}

/// Shardable along the axes before those of a row, which these operands have.
fn along_rows(call: &Call, output: &Meta, operands: &[usize]) -> Rule {
    let mut rule = Rule::whole(call, output);
    for along in leading(call) {
        let shared: SmallVec<[_; 2]> = operands.iter().map(|&operand| (operand, along)).collect();
        rule.share(&shared, Some(along));
    }
    rule
}

/// Operands in the dtype that is computed in, and the dtype of the result.
fn wide<const N: usize>(
    g: &mut dyn Graph,
    operands: [Operand<Var>; N],
) -> ([Operand<Var>; N], DType) {
    let dtypes = operands.iter().filter_map(Operand::tensor).map(|&var| g.meta(var).dtype);
    let dtype = dtypes.last().expect("a tensor operand");
    (operands.map(|operand| operand.map(|&var| widened(g, var).0)), dtype)
}

fn last_axes(attributes: &Attributes) -> SmallVec<[i64; 8]> {
    (-int(attributes, 0)..0).collect()
}

fn mean(g: &mut dyn Graph, x: Var, attributes: &Attributes) -> Var {
    g.mean(x, &last_axes(attributes), true)
}

/// (x - mean) / sqrt(var + eps), and 1 / sqrt(var + eps).
fn standardized(g: &mut dyn Graph, x: Operand<Var>, attributes: &Attributes) -> (Var, Var) {
    let x = *x.tensor().expect("a tensor operand");
    let average = mean(g, x, attributes);
    let centered = g.sub(x, average);
    let square = g.mul(centered, centered);
    let var = mean(g, square, attributes);
    let above = g.add(var, float(attributes, 1));
    let scale = g.call(&RSQRT, &[above.into()]);
    (g.mul(centered, scale), scale)
}

/// `P(grad weight)` at x.
fn project(g: &mut dyn Graph, s: &Saved, grad: Var, x: Var, weight: Operand<Var>) -> Var {
    g.emit(&LAYER_NORM_BACKWARD, &[grad.into(), x.into(), weight], s.attributes.clone())
}

/// The gradient of `P(grad weight)` by x.
fn projected_by_input(g: &mut dyn Graph, s: &Saved) -> Var {
    let (u, x) = (s.grad, s.tensor(1));
    let h = g.mul(s.tensor(0), s.operand(2));
    let of_u = project(g, s, u, x, 1.0.into());
    let of_h = project(g, s, h, x, 1.0.into());
    let (normal, scale) = standardized(g, x.into(), s.attributes);
    let mut total = None;
    for (left, right, factor) in [(u, of_h, normal), (h, normal, of_u), (u, normal, of_h)] {
        let product = g.mul(left, right);
        let share = mean(g, product, s.attributes);
        let term = g.mul(share, factor);
        total = Some(total.map_or(term, |total| g.add(total, term)));
    }
    let scaled = g.mul(total.expect("three terms"), scale);
    g.neg(scaled)
}

/// Samples of every dtype, with the operands that `with_row` makes of a tensor and one of a row's
/// shape, and `plain` of a tensor alone.
fn samples(
    with_row: fn(SampleOperand, SampleOperand) -> Vec<SampleOperand>,
    plain: fn(SampleOperand) -> Vec<SampleOperand>,
) -> Vec<Sample> {
    let cases: [(&[usize], usize); 5] =
        [(&[3, 5], 1), (&[2, 3, 4], 2), (&[4, 2, 3], 1), (&[6], 1), (&[0, 4], 1)];
    let mut samples = Vec::new();
    for &dtype in FLOATS {
        for (dims, axes) in cases {
            let x = tensor(dtype, dims, -2.0, 2.0);
            let row = tensor(dtype, &dims[dims.len() - axes..], 0.5, 1.5);
            let attributes: Attributes =
                smallvec![Attribute::Int(axes as i64), Attribute::Float(0.1)];
            samples.push(sample(&with_row(x, row), &attributes));
            samples.push(sample(&plain(x), &attributes));
        }
    }
    samples
}
