//! Matrix multiplication.

use smallvec::SmallVec;

use super::gradients::WEIGHT_BACKWARD;
use super::sample::{sample, tensor};
use crate::batching::{self, Batching};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::instruction::Attributes;
use crate::operation::Gradient::Each;
use crate::operation::facts::says::*;
use crate::operation::{Call, ComplexRule, FIRST, Family, Meta, Operation, SECOND, takes};
use crate::shape::Shape;
use crate::sharding::{Reduction, Rule, shape_of};

/// The client adds the second axis of one-axis operands.
pub static MATMUL: Operation = Operation {
    id: 80,
    name: "matmul",
    family: Family::Matmul,
    doc: "the matrix product of the last two axes; the axes before them broadcast",
    complex: ComplexRule::Holomorphic,
    parameters: &[takes::tensor("input"), takes::tensor("other")],
    infer,
    gradient: Each(&[
        |g, s| {
            let turned = g.transpose(s.tensor(1));
            g.matmul(s.grad, turned)
        },
        |g, s| {
            let (input, shared) = (s.tensor(0), s.shape(1).rank() == 2 && s.shape(0).rank() > 2);
            if shared && g.is_transposed(s.tensor(1)) {
                let product =
                    g.emit(&WEIGHT_BACKWARD, &[s.grad.into(), input.into()], Attributes::new());
                return g.transpose(product);
            }
            if shared {
                return g.emit(&WEIGHT_BACKWARD, &[input.into(), s.grad.into()], Attributes::new());
            }
            if g.is_transposed(s.tensor(1)) {
                let turned = g.transpose(s.grad);
                let product = g.matmul(turned, s.tensor(0));
                return g.transpose(product);
            }
            let turned = g.transpose(s.tensor(0));
            g.matmul(turned, s.grad)
        },
    ]),
    saves: FIRST | SECOND,
    sharding,
    samples: || {
        let mut samples = Vec::new();
        let pairs: [(&[usize], &[usize]); 7] = [
            (&[2, 3], &[3, 4]),
            (&[1, 5], &[5, 1]),
            (&[2, 3, 4], &[2, 4, 5]),
            (&[3, 4], &[2, 4, 5]),
            (&[2, 1, 3, 4], &[5, 4, 2]),
            (&[0, 3], &[3, 2]),
            (&[2, 0], &[0, 3]),
        ];
        for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::I32] {
            for (a, b) in pairs {
                let operands = [tensor(dtype, a, -3.0, 3.0), tensor(dtype, b, -3.0, 3.0)];
                samples.push(sample(&operands, &[]));
            }
        }
        samples
    },
    batching: Batching::Rule(batching::products::matmul),
    ..Operation::base().with(facts(Lower, Contraction(LastAxis), Computed))
};

fn infer(call: &Call) -> Result<Meta> {
    let (left, right) = (call.tensor(0)?, call.tensor(1)?);
    for given in [left.shape, right.shape] {
        if given.rank() < 2 {
            let expected = "two axes or more".to_string();
            return Err(Error::ShapeMismatch { operation: "matmul", given, expected });
        }
    }
    let split = |shape: Shape| {
        let (batch, matrix) = shape.split_at(shape.rank() - 2);
        (Shape::new(batch).expect("a part of a shape"), matrix[0], matrix[1])
    };
    let (left_batch, rows, left_inner) = split(left.shape);
    let (right_batch, right_inner, columns) = split(right.shape);
    if left_inner != right_inner {
        return Err(Error::Matmul {
            left: left.shape,
            right: right.shape,
            left_inner,
            right_inner,
        });
    }
    if left.dtype != right.dtype {
        return Err(Error::MatmulDTypes { left: left.dtype, right: right.dtype });
    }
    let dtype = left.dtype;
    if dtype == DType::Bool {
        let expected = "a number; cast with .to(gt.float32)";
        return Err(Error::DTypeMismatch { operation: "matmul", given: dtype, expected });
    }
    let batch = left_batch.broadcast(&right_batch, "matmul")?;
    let dims = [batch.dims(), &[rows, columns]].concat();
    Ok(Meta::new(dtype, Shape::new(&dims)?))
}

/// `b m k, b k n -> b m n`, where each batch axis may be missing or 1 on either side.
fn sharding(call: &Call, output: &Meta) -> Rule {
    let mut rule = Rule::whole(call, output);
    let (left, right, rank) = (shape_of(call, 0), shape_of(call, 1), output.shape.rank());
    let (left_rank, right_rank) = (left.rank(), right.rank());
    for along in 0..rank - 2 {
        if output.shape[along] <= 1 {
            continue;
        }
        let mut shared: SmallVec<[(usize, usize); 2]> = SmallVec::new();
        for (operand, shape) in [left, right].into_iter().enumerate() {
            let missing = rank - shape.rank();
            if along >= missing && shape[along - missing] == output.shape[along] {
                shared.push((operand, along - missing));
            }
        }
        rule.share(&shared, Some(along));
    }
    if output.shape[rank - 2] > 1 {
        rule.share(&[(0, left_rank - 2)], Some(rank - 2));
    }
    if output.shape[rank - 1] > 1 {
        rule.share(&[(1, right_rank - 1)], Some(rank - 1));
    }
    if left[left_rank - 1] > 1 {
        rule.reduce(&[(0, left_rank - 1), (1, right_rank - 2)], Reduction::Sum);
    }
    rule.linear_in(&[0b01, 0b10])
}
