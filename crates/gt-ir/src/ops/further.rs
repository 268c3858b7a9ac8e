//! The results of an operation beyond its first, as steps of a plan.

use super::sample::{sample, tensor};
use crate::batching::Batching;
use crate::dtype::DType;
use crate::instruction::Attribute;
use crate::operation::facts::says::*;
use crate::operation::{Body, ComplexRule, Family, Operation, takes};

/// In a plan, each step makes one value. An operation with several results is followed by a step of
/// this operation for each of the others; engines take them out of what they have computed. As an
/// instruction of its own it gives its operand.
pub static FURTHER: Operation = Operation {
    id: 111,
    name: "further",
    family: Family::Reshape,
    doc: "a result beyond the first of the operation before, in plans; otherwise the operand",
    complex: ComplexRule::OwnRule,
    parameters: &[takes::tensor("input"), takes::int("index")],
    infer: |call| call.tensor(0),
    body: Body::Composite(|_, operands, _| *operands[0].tensor().expect("a tensor")),
    samples: || vec![sample(&[tensor(DType::F32, &[2], 0.0, 1.0)], &[Attribute::Int(1)])],
    batching: Batching::Leading,
    ..Operation::base().with(facts(Unchanged, OfBody, Computed))
};
