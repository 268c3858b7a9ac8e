//! Comparisons and logic, with bool results.

use super::binary::BINARY;
use super::infer::elementwise_bool;
use super::sample::binary;
use crate::dtype::DType;
use crate::number::Numbers;
use crate::operation::Defaults;
use crate::operation::facts::says::*;
use crate::operation::{ComplexRule, Operation};

/// Operands are compared in their promoted dtype.
const COMPARE: Defaults = Defaults(Operation {
    infer: elementwise_bool,
    samples: || {
        let dtypes = [
            DType::F32,
            DType::F64,
            DType::F16,
            DType::BF16,
            DType::I64,
            DType::I32,
            DType::U8,
            DType::Bool,
        ];
        binary(&dtypes, (0.0, 4.0), (0.0, 4.0))
    },
    numbers: Numbers::Rounded,
    ..BINARY.0
});

pub static EQ: Operation = Operation {
    id: 50,
    name: "eq",
    doc: "a == b",
    complex: ComplexRule::OwnRule,
    ..COMPARE.with(facts(Unchanged, Equality, Computed))
};
pub static NE: Operation = Operation {
    id: 51,
    name: "ne",
    doc: "a != b",
    complex: ComplexRule::OwnRule,
    ..COMPARE.with(facts(Unchanged, Equality, Computed))
};
pub static LT: Operation = Operation {
    id: 52,
    name: "lt",
    doc: "a < b",
    ..COMPARE.with(facts(Unchanged, Stepwise, Computed))
};
pub static LE: Operation = Operation {
    id: 53,
    name: "le",
    doc: "a <= b",
    ..COMPARE.with(facts(Unchanged, Stepwise, Computed))
};
pub static GT: Operation = Operation {
    id: 54,
    name: "gt",
    doc: "a > b",
    ..COMPARE.with(facts(Unchanged, Stepwise, Computed))
};
pub static GE: Operation = Operation {
    id: 55,
    name: "ge",
    doc: "a >= b",
    ..COMPARE.with(facts(Unchanged, Stepwise, Computed))
};

pub static LOGICAL_AND: Operation = Operation {
    id: 56,
    name: "logical_and",
    doc: "whether both are not zero",
    complex: ComplexRule::OwnRule,
    ..COMPARE.with(facts(Unchanged, Stepwise, Computed))
};
pub static LOGICAL_OR: Operation = Operation {
    id: 57,
    name: "logical_or",
    doc: "whether either is not zero",
    complex: ComplexRule::OwnRule,
    ..COMPARE.with(facts(Unchanged, Stepwise, Computed))
};
pub static LOGICAL_XOR: Operation = Operation {
    id: 58,
    name: "logical_xor",
    doc: "whether one alone is not zero",
    complex: ComplexRule::OwnRule,
    ..COMPARE.with(facts(Unchanged, Stepwise, Computed))
};
