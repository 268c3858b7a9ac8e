//! Random numbers. Each follows from the seed, the instruction's number, and its place in the whole tensor:
//! so every slot draws just its part, and the numbers are the same on any placement.

use super::create::{CREATE, dims, infer_shaped};
use super::sample::{number, sample, tensor};
use crate::batching::Batching;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::instruction::{Attribute, Attributes};
use crate::operation::Defaults;
use crate::operation::facts::says::*;
use crate::operation::{Call, Meta, Operation, takes};
use crate::shape::Shape;
use crate::sharding::{self, LocalPart, created, localize_shape};

/// Splits attribute `part` of random operations: the part's starts within the whole, and the
/// whole's shape. `None` if it is the whole itself.
pub fn random_part(part: &[i64]) -> Option<(&[i64], &[i64])> {
    (!part.is_empty()).then(|| part.split_at(part.len() / 2))
}

/// Checks attribute `part`, which is the one at `index`.
fn check_part(call: &Call, index: usize, shape: Shape) -> Result<()> {
    let Some((starts, whole)) = random_part(call.ints(index)) else { return Ok(()) };
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
        given: format!("{:?}", call.ints(index)),
        expected: "for each axis a start, then for each the length of the whole around it",
    })
}

/// Attribute `part` of a part, which is the one at `index`.
fn localize_part(attributes: &Attributes, index: usize, part: &LocalPart) -> Attribute {
    let rank = part.whole.rank();
    let starts = part.output.starts[..rank].iter().map(|&start| start as i64);
    // Starts of a part of a part are relative to the whole.
    let places: Vec<i64> = match random_part(crate::operation::ints(attributes, index)) {
        Some((outer, whole)) => starts
            .zip(outer)
            .map(|(start, outer)| start + outer)
            .chain(whole.iter().copied())
            .collect(),
        None => starts.chain(part.whole.iter().map(|&length| length as i64)).collect(),
    };
    Attribute::ints(&places)
}

fn localize_random(attributes: &Attributes, part: &LocalPart) -> Attributes {
    let mut local = localize_shape(attributes, part);
    local[2] = localize_part(attributes, 2, part);
    local
}

fn infer_random_float(call: &Call) -> Result<Meta> {
    let meta = infer_shaped(call)?;
    check_part(call, 2, meta.shape)?;
    if meta.dtype.is_float() {
        return Ok(meta);
    }
    let expected = "a float dtype";
    Err(Error::DTypeMismatch { operation: call.operation, given: meta.dtype, expected })
}

/// The seed and the instruction's number are operands, so that neither is part of a program's
/// structure.
const RANDOM: Defaults = Defaults(Operation {
    parameters: &[
        takes::value("seed"),
        takes::value("instruction"),
        takes::ints("size"),
        takes::dtype("dtype"),
        takes::ints("part"),
    ],
    sharding: created,
    localize: Some(localize_random),
    batching: Batching::Drawn,
    ..CREATE.0
});

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
    ..RANDOM.with(facts(Unchanged, Same, Drawn))
};

pub static RANDN: Operation = Operation {
    id: 6,
    name: "randn",
    doc: "Standard normal numbers from (seed, instruction number, element).",
    infer: infer_random_float,
    samples: RAND.samples,
    ..RANDOM.with(facts(Unchanged, Same, Drawn))
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
        check_part(call, 2, meta.shape)?;
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
    ..RANDOM.with(facts(Unchanged, Same, Drawn))
};

/// What a sampler takes besides the tensors of its distribution's parameters: it draws a number for
/// each of their elements, of their dtype. Several attempts may be needed for one element; each has
/// numbers of its own.
const SAMPLER: Defaults = Defaults(Operation {
    infer: infer_sampled,
    sharding: sharding::elementwise,
    localize: Some(|attributes, part| [localize_part(attributes, 0, part)].into_iter().collect()),
    batching: Batching::Drawn,
    ..CREATE.0
});

/// Parameters of a distribution are tensors of floats, of one shape and dtype.
fn infer_sampled(call: &Call) -> Result<Meta> {
    let expected = "a tensor of floats";
    let given = call.operands[2..].iter().map(|operand| {
        operand.tensor().copied().ok_or_else(|| Error::BadAttribute {
            operation: call.operation,
            attribute: "input",
            given: format!("{operand:?}"),
            expected,
        })
    });
    let given = given.collect::<Result<Vec<Meta>>>()?;
    let first = given[0];
    for meta in given {
        if !meta.dtype.is_float() || meta.dtype != first.dtype {
            let given = meta.dtype;
            let expected = "one float dtype for all parameters";
            return Err(Error::DTypeMismatch { operation: call.operation, given, expected });
        }
        if meta.shape != first.shape {
            let (given, expected) = (meta.shape, format!("{}", first.shape));
            return Err(Error::ShapeMismatch { operation: call.operation, given, expected });
        }
    }
    check_part(call, 0, first.shape)?;
    Ok(first)
}

pub static POISSON: Operation = Operation {
    id: 270,
    name: "draw_poisson",
    doc: "Numbers of Poisson distributions, from (seed, instruction number, element, attempt).",
    parameters: &[
        takes::value("seed"),
        takes::value("instruction"),
        takes::tensor("input"),
        takes::ints("part"),
    ],
    samples: || {
        let drawn = |dtype, shape: &[usize], part: &[i64]| {
            sample(&[number(1), number(2), tensor(dtype, shape, 0.0, 30.0)], &[dims(part)])
        };
        vec![
            drawn(DType::F32, &[4, 5], &[]),
            drawn(DType::F64, &[7], &[]),
            drawn(DType::F16, &[0, 3], &[]),
            drawn(DType::F32, &[3, 5], &[2, 1, 8, 7]),
        ]
    },
    ..SAMPLER.with(facts(Unchanged, Estimated, Drawn))
};

pub static BINOMIAL: Operation = Operation {
    id: 271,
    name: "draw_binomial",
    doc: "Numbers of binomial distributions, from (seed, instruction number, element, attempt).",
    parameters: &[
        takes::value("seed"),
        takes::value("instruction"),
        takes::tensor("count"),
        takes::tensor("prob"),
        takes::ints("part"),
    ],
    samples: || {
        let drawn = |dtype, shape: &[usize], part: &[i64]| {
            let (count, prob) = (tensor(dtype, shape, 0.0, 90.0), tensor(dtype, shape, 0.0, 1.0));
            sample(&[number(1), number(2), count, prob], &[dims(part)])
        };
        vec![
            drawn(DType::F32, &[4, 5], &[]),
            drawn(DType::F64, &[7], &[]),
            drawn(DType::F32, &[3, 5], &[2, 1, 8, 7]),
        ]
    },
    ..SAMPLER.with(facts(Unchanged, Estimated, Drawn))
};
