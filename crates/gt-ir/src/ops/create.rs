//! Operations that create tensors without tensor operands.

use super::sample::{number, sample};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::instruction::Attribute;
use crate::instruction::Attributes;
use crate::operation::{Call, Complex, Family, Meta, Operation, takes};
use crate::shape::Shape;
use crate::sharding::{LocalPart, created, localize_shape};

const CREATE: Operation = Operation { family: Family::Create, ..Operation::base() };

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

fn infer_shaped(call: &Call) -> Result<Meta> {
    Ok(Meta::new(call.dtype(1).unwrap_or(DType::F32), shape_attribute(call, 0)?))
}

fn infer_random_float(call: &Call) -> Result<Meta> {
    let meta = infer_shaped(call)?;
    check_part(call, meta.shape)?;
    if meta.dtype.is_float() {
        return Ok(meta);
    }
    let expected = "a float dtype";
    Err(Error::DTypeMismatch { operation: call.operation, given: meta.dtype, expected })
}

fn length_attribute(call: &Call, index: usize) -> Result<usize> {
    usize::try_from(call.int(index)).map_err(|_| Error::BadAttribute {
        operation: call.operation,
        attribute: "length",
        given: call.int(index).to_string(),
        expected: "0 or more",
    })
}

fn dims(values: &[i64]) -> Attribute {
    Attribute::ints(values)
}

pub static FULL: Operation = Operation {
    id: 1,
    name: "full",
    doc: "A tensor of `shape` filled with a number.",
    complex: Complex::OwnRule,
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
    ..CREATE
};

pub static ARANGE: Operation = Operation {
    id: 2,
    name: "arange",
    doc: "`length` numbers from `start` in steps of `step`: element i is start + i * step.",
    complex: Complex::OwnRule,
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
    ..CREATE
};

pub static LINSPACE: Operation = Operation {
    id: 3,
    name: "linspace",
    doc: "`length` numbers evenly from `start` to `end`, both included.",
    complex: Complex::OwnRule,
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
    ..CREATE
};

pub static EYE: Operation = Operation {
    id: 4,
    name: "eye",
    doc: "Ones on the main diagonal of `rows` x `columns`, zeros elsewhere.",
    complex: Complex::OwnRule,
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
    ..CREATE
};

/// Splits attribute `part` of random operations: the part's starts within the whole, and the
/// whole's shape. `None` if it is the whole itself.
pub fn random_part(part: &[i64]) -> Option<(&[i64], &[i64])> {
    (!part.is_empty()).then(|| part.split_at(part.len() / 2))
}

fn check_part(call: &Call, shape: Shape) -> Result<()> {
    let Some((starts, whole)) = random_part(call.ints(2)) else { return Ok(()) };
    let inside = starts.len() == shape.rank()
        && whole.len() == shape.rank()
        && (0..shape.rank()).all(|axis| {
            let end = starts[axis].checked_add(shape[axis] as i64);
            starts[axis] >= 0 && end.is_some_and(|end| end <= whole[axis])
        });
    if inside {
        return Ok(());
    }
    Err(Error::BadAttribute {
        operation: call.operation,
        attribute: "part",
        given: format!("{:?}", call.ints(2)),
        expected: "for each axis a start, then for each the length of the whole around it",
    })
}

fn localize_random(attributes: &Attributes, part: &LocalPart) -> Attributes {
    let mut local = localize_shape(attributes, part);
    let rank = part.whole.rank();
    let starts = part.output.starts[..rank].iter().map(|&start| start as i64);
    // Starts of a part of a part are relative to the whole.
    let places: Vec<i64> = match random_part(crate::operation::ints(attributes, 2)) {
        Some((outer, whole)) => starts
            .zip(outer)
            .map(|(start, outer)| start + outer)
            .chain(whole.iter().copied())
            .collect(),
        None => starts.chain(part.whole.iter().map(|&length| length as i64)).collect(),
    };
    local[2] = Attribute::ints(&places);
    local
}

/// The seed and the instruction's number are operands, so that neither is part of a program's
/// structure.
const RANDOM: Operation = Operation {
    parameters: &[
        takes::value("seed"),
        takes::value("instruction"),
        takes::ints("size"),
        takes::dtype("dtype"),
        takes::ints("part"),
    ],
    sharding: created,
    localize: Some(localize_random),
    ..CREATE
};

pub static RAND: Operation = Operation {
    id: 5,
    name: "rand",
    doc: "Uniform numbers on [0, 1) from (seed, instruction number, element).",
    infer: infer_random_float,
    samples: || {
        [DType::F32, DType::F64, DType::F16, DType::BF16]
            .iter()
            .map(|&dtype| {
                let attributes = [dims(&[3, 5]), Attribute::DType(dtype), dims(&[])];
                sample(&[number(1), number(2)], &attributes)
            })
            .chain([sample(
                &[number(1), number(2)],
                &[dims(&[3, 5]), Attribute::DType(DType::F32), dims(&[2, 1, 8, 7])],
            )])
            .collect()
    },
    ..RANDOM
};

pub static RANDN: Operation = Operation {
    id: 6,
    name: "randn",
    doc: "Standard normal numbers from (seed, instruction number, element).",
    infer: infer_random_float,
    samples: RAND.samples,
    ..RANDOM
};

pub static RANDINT: Operation = Operation {
    id: 7,
    name: "randint",
    doc: "Whole numbers, uniform on low..high, from (seed, instruction number, element, low, high).",
    parameters: &[
        takes::value("seed"),
        takes::value("instruction"),
        takes::value("low"),
        takes::value("high"),
        takes::ints("size"),
        takes::dtype("dtype"),
        takes::ints("part"),
    ],
    infer: |call| {
        let meta = infer_shaped(call)?;
        check_part(call, meta.shape)?;
        Ok(meta)
    },
    samples: || {
        [DType::I64, DType::I32, DType::F32]
            .iter()
            .map(|&dtype| {
                sample(
                    &[number(1), number(2), number(-3), number(9)],
                    &[dims(&[4, 5]), Attribute::DType(dtype), dims(&[])],
                )
            })
            .collect()
    },
    ..RANDOM
};
