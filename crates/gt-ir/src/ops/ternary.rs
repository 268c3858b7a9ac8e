//! Elementwise operations on three operands.

use super::infer::{broadcast, elementwise, promote};
use super::sample::{number as given, sample, tensor};
use crate::batching::Batching;
use crate::dtype::DType;
use crate::error::Error;
use crate::instruction::Operand;
use crate::number::{self, Numbers};
use crate::operation::Defaults;
use crate::operation::Gradient::Each;
use crate::operation::facts::says::*;
use crate::operation::{
    ComplexRule, FIRST, Family, Meta, NO_GRADIENT, Operation, SECOND, THIRD, Var, takes,
};
use crate::sharding;

const TERNARY: Defaults = Defaults(Operation {
    family: Family::Ternary,
    parameters: &[takes::value("input"), takes::value("a"), takes::value("b")],
    sharding: sharding::elementwise,
    batching: Batching::Broadcast,
    ..Operation::base().0
});

pub static WHERE: Operation = Operation {
    id: 60,
    name: "where",
    doc: "`input` where the condition holds, `other` elsewhere",
    parameters: &[takes::value("condition"), takes::value("input"), takes::value("other")],
    numbers: Numbers::Stored(|operands| number::unless_half(promote(&operands[1..]))),
    complex: ComplexRule::OwnRule,
    infer: |call| {
        if let Some(meta) = call.operands[0].tensor()
            && meta.dtype != DType::Bool
        {
            let expected = "a bool condition; compare it with something first";
            return Err(Error::DTypeMismatch { operation: "where", given: meta.dtype, expected });
        }
        Ok(Meta::new(promote(&call.operands[1..]), broadcast(call)?))
    },
    gradient: Each(&[
        NO_GRADIENT,
        |g, s| g.select(s.operand(0), s.grad, 0i64),
        |g, s| g.select(s.operand(0), 0i64, s.grad),
    ]),
    sharding: |call, output| sharding::elementwise(call, output).linear_in(&[0b110]),
    saves: FIRST,
    samples: || {
        let condition = |dims: &[usize]| tensor(DType::Bool, dims, 0.0, 2.0);
        let value = |dtype, dims: &[usize]| tensor(dtype, dims, -3.0, 3.0);
        let mut samples = Vec::new();
        for dtype in [DType::F32, DType::F64, DType::F16, DType::I64, DType::Bool] {
            samples.push(sample(
                &[condition(&[2, 3]), value(dtype, &[2, 3]), value(dtype, &[3])],
                &[],
            ));
        }
        samples.push(sample(&[condition(&[3, 1]), value(DType::F32, &[4]), given(0.0)], &[]));
        samples.push(sample(&[condition(&[3]), given(1), value(DType::F32, &[2, 1])], &[]));
        samples.push(sample(&[condition(&[0]), value(DType::F32, &[1]), given(2.0)], &[]));
        samples
    },
    ..TERNARY.with(facts(Unchanged, Chosen, Computed))
};

pub static CLAMP: Operation = Operation {
    id: 61,
    name: "clamp",
    doc: "x, no less than low and no more than high",
    numbers: Numbers::Limits,
    infer: elementwise,
    gradient: Each(&[
        |g, s| {
            // At a limit the gradient is 0, as in PyTorch.
            // An infinite value is within an infinite limit, which is none.
            let is_none = |limit: Operand<Var>| {
                limit.scalar().is_some_and(|number| number.as_f64().is_infinite())
            };
            if is_none(s.operand(2)) {
                let above = g.gt(s.operand(0), s.operand(1));
                return g.select(above, s.grad, 0i64);
            }
            let below = g.lt(s.operand(0), s.operand(2));
            if is_none(s.operand(1)) {
                return g.select(below, s.grad, 0i64);
            }
            let above = g.gt(s.operand(0), s.operand(1));
            let inside = g.logical_and(above, below);
            g.select(inside, s.grad, 0i64)
        },
        |g, s| {
            let below = g.lt(s.operand(0), s.operand(1));
            g.select(below, s.grad, 0i64)
        },
        |g, s| {
            let above = g.gt(s.operand(0), s.operand(2));
            g.select(above, s.grad, 0i64)
        },
    ]),
    saves: FIRST | SECOND | THIRD,
    samples: || {
        let mut samples = Vec::new();
        for dtype in [DType::F32, DType::F64, DType::F16, DType::I64] {
            samples.push(sample(&[tensor(dtype, &[3, 4], -4.0, 4.0), given(-1), given(2)], &[]));
        }
        let x = tensor(DType::F32, &[3, 4], -4.0, 4.0);
        samples.push(sample(
            &[x, tensor(DType::F32, &[4], -2.0, 0.0), tensor(DType::F32, &[3, 1], 0.5, 2.0)],
            &[],
        ));
        samples
    },
    ..TERNARY.with(facts(Unchanged, Selected, Computed))
};

pub static MUL_ADD: Operation = Operation {
    id: 62,
    name: "mul_add",
    doc: "a + b * c, the step of every optimizer",
    complex: ComplexRule::Holomorphic,
    infer: elementwise,
    gradient: Each(&[
        |_, s| s.grad,
        |g, s| g.mul(s.grad, s.operand(2)),
        |g, s| g.mul(s.grad, s.operand(1)),
    ]),
    sharding: |call, output| sharding::elementwise(call, output).linear_in(&[0b011, 0b101]),
    saves: SECOND | THIRD,
    samples: || {
        let x = |dtype, dims: &[usize]| tensor(dtype, dims, 0.0, 3.0);
        let mut samples = Vec::new();
        for dtype in [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64] {
            samples.push(sample(&[x(dtype, &[3, 5]), x(dtype, &[3, 5]), given(2)], &[]));
            samples.push(sample(&[x(dtype, &[3, 5]), x(dtype, &[5]), x(dtype, &[3, 1])], &[]));
        }
        samples.push(sample(&[x(DType::F32, &[40]), x(DType::F32, &[40]), given(-0.5)], &[]));
        samples
    },
    ..TERNARY.with(facts(Unchanged, ProductSum, Computed))
};
