//! Operations that create tensors without tensor operands.

use super::sample::{number, sample};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::instruction::Attribute;
use crate::operation::Defaults;
use crate::operation::facts::says::*;
use crate::operation::{Call, ComplexRule, Family, Meta, Operation, takes};
use crate::shape::Shape;
use crate::sharding::{created, localize_shape};

pub(super) const CREATE: Defaults =
    Defaults(Operation { family: Family::Create, ..Operation::base().0 });

/// The shape in attribute `index`.
fn shape_attribute(call: &Call, index: usize) -> Result<Shape> {
    let mut dims = Vec::with_capacity(call.ints(index).len());
    for &dim in call.ints(index) {
        dims.push(usize::try_from(dim).map_err(|_| Error::BadAttribute {
            operation: call.operation,
            attribute: "shape",
            given: dim.to_string(),
            expected: "lengths of 0 or more",
        })?);
    }
    Shape::new(&dims)
}

pub(super) fn infer_shaped(call: &Call) -> Result<Meta> {
    Ok(Meta::new(call.dtype(1).unwrap_or(DType::F32), shape_attribute(call, 0)?))
}

fn length_attribute(call: &Call, index: usize) -> Result<usize> {
    usize::try_from(call.int(index)).map_err(|_| Error::BadAttribute {
        operation: call.operation,
        attribute: "steps",
        given: call.int(index).to_string(),
        expected: "0 or more",
    })
}

pub(super) fn dims(values: &[i64]) -> Attribute {
    Attribute::ints(values)
}

pub static FULL: Operation = Operation {
    id: 1,
    name: "full",
    doc: "A tensor of `shape` filled with a number.",
    complex: ComplexRule::OwnRule,
    parameters: &[takes::value("fill_value"), takes::ints("size"), takes::dtype("dtype")],
    infer: infer_shaped,
    samples: || {
        DType::ALL
            .iter()
            .map(|&dtype| sample(&[number(1)], &[dims(&[2, 3]), Attribute::DType(dtype)]))
            .chain([sample(&[number(2.5)], &[dims(&[]), Attribute::DType(DType::F32)])])
            .chain([sample(&[number(7)], &[dims(&[0, 2]), Attribute::DType(DType::I64)])])
            .collect()
    },
    sharding: created,
    localize: Some(localize_shape),
    ..CREATE.with(facts(Unchanged, Rounded, Computed))
};

pub static ARANGE: Operation = Operation {
    id: 2,
    name: "arange",
    doc: "`length` numbers from `start` in steps of `step`: element i is start + i * step.",
    complex: ComplexRule::OwnRule,
    parameters: &[
        takes::value("start"),
        takes::value("step"),
        takes::int("length"),
        takes::dtype("dtype"),
    ],
    infer: |call| {
        Ok(Meta::new(
            call.dtype(1).unwrap_or(DType::I64),
            Shape::new(&[length_attribute(call, 0)?])?,
        ))
    },
    samples: || {
        [DType::I64, DType::I32, DType::F32, DType::F64]
            .iter()
            .map(|&dtype| {
                sample(&[number(2), number(3)], &[Attribute::Int(5), Attribute::DType(dtype)])
            })
            .chain([sample(
                &[number(0.5), number(-0.25)],
                &[Attribute::Int(9), Attribute::DType(DType::F32)],
            )])
            .collect()
    },
    ..CREATE.with(facts(Unchanged, Spaced, Computed))
};

pub static LINSPACE: Operation = Operation {
    id: 3,
    name: "linspace",
    doc: "`length` numbers evenly from `start` to `end`, both included.",
    complex: ComplexRule::OwnRule,
    parameters: &[
        takes::value("start"),
        takes::value("end"),
        takes::int("length"),
        takes::dtype("dtype"),
    ],
    infer: |call| {
        Ok(Meta::new(
            call.dtype(1).unwrap_or(DType::F32),
            Shape::new(&[length_attribute(call, 0)?])?,
        ))
    },
    samples: || {
        [0, 1, 2, 7]
            .iter()
            .map(|&n| {
                sample(
                    &[number(-1.0), number(2.0)],
                    &[Attribute::Int(n), Attribute::DType(DType::F32)],
                )
            })
            .collect()
    },
    ..CREATE.with(facts(Unchanged, Spaced, Computed))
};

pub static EYE: Operation = Operation {
    id: 4,
    name: "eye",
    doc: "Ones on the main diagonal of `rows` x `columns`, zeros elsewhere.",
    complex: ComplexRule::OwnRule,
    parameters: &[takes::int("n"), takes::int("m"), takes::dtype("dtype")],
    infer: |call| {
        let shape = Shape::new(&[length_attribute(call, 0)?, length_attribute(call, 1)?])?;
        Ok(Meta::new(call.dtype(2).unwrap_or(DType::F32), shape))
    },
    samples: || {
        let eye = |n, m, dtype| {
            sample(&[], &[Attribute::Int(n), Attribute::Int(m), Attribute::DType(dtype)])
        };
        vec![
            eye(3, 3, DType::F32),
            eye(2, 4, DType::I64),
            eye(4, 2, DType::Bool),
            eye(0, 2, DType::F32),
        ]
    },
    ..CREATE.with(facts(Unchanged, Same, Computed))
};
