//! What a mask picks: operations whose result is as long as the mask has true values.
//!
//! That number depends on data. It is counted where the mask is, and awaited; the instruction then has
//! it as its attribute `count`, so that shapes are known before values, as of all others.

use super::index::{mismatch, same_dtype};
use super::sample::{sample, tensor};
use crate::batching::{self, Batching};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::instruction::Attribute;
use crate::operation::Defaults;
use crate::operation::Gradient::Each;
use crate::operation::facts::says::*;
use crate::operation::{
    Call, ComplexRule, Family, Meta, NO_GRADIENT, Operation, SECOND, Sample, SampleOperand, takes,
};
use crate::shape::Shape;
use crate::sharding::{Rule, shape_of};
use smallvec::smallvec;

const COUNTED: Defaults = Defaults(Operation { family: Family::Index, ..Operation::base().0 });

const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::I64, DType::Bool];

/// The attribute `count`: no more than there are elements to count.
fn count(call: &Call, elements: usize) -> Result<usize> {
    let count = call.int(0);
    if (0..=elements as i64).contains(&count) {
        return Ok(count as usize);
    }
    Err(Error::BadAttribute {
        operation: call.operation,
        attribute: "count",
        given: count.to_string(),
        expected: "how many values of the mask are true",
    })
}

/// Operand 1, a mask over the leading axes of operand 0.
fn mask_operand(call: &Call) -> Result<(Meta, Meta)> {
    let (meta, mask) = (call.tensor(0)?, call.tensor(1)?);
    if mask.dtype != DType::Bool {
        let expected = "a mask of dtype bool";
        return Err(Error::DTypeMismatch {
            operation: call.operation,
            given: mask.dtype,
            expected,
        });
    }
    if mask.shape.rank() == 0 || !meta.shape.starts_with(mask.shape.dims()) {
        let expected = format!("a mask over the leading axes of {}", meta.shape);
        return Err(mismatch(call, mask, expected));
    }
    Ok((meta, mask))
}

/// The shape of `count` rows: an axis instead of those that the mask is over.
fn rows(meta: &Meta, mask: &Meta, count: usize) -> Result<Shape> {
    let dims: Vec<usize> =
        [count].into_iter().chain(meta.shape[mask.shape.rank()..].iter().copied()).collect();
    Shape::new(&dims)
}

/// Shards the axes that the mask is not over: the same in the tensor, as operand 0, and in what has
/// rows, which is the operand of that number or the output.
fn along_rows(call: &Call, output: &Meta, rows: Option<usize>) -> Rule {
    let mut rule = Rule::whole(call, output);
    let (shape, masked) = (shape_of(call, 0), shape_of(call, 1).rank());
    for along in masked..shape.rank() {
        let in_rows = along + 1 - masked;
        if shape[along] <= 1 {
            continue;
        }
        match rows {
            Some(operand) => rule.share(&[(0, along), (operand, in_rows)], Some(along)),
            None => rule.share(&[(0, along)], Some(in_rows)),
        };
    }
    rule
}

/// A mask of which all values are true, or none.
fn mask(dims: &[usize], value: bool) -> SampleOperand {
    let value = f64::from(u8::from(value));
    tensor(DType::Bool, dims, value, value + f64::from(u8::from(value > 0.0)))
}

pub static NONZERO: Operation = Operation {
    id: 244,
    name: "nonzero",
    doc: "the places of the values that are not zero, a row for each, in row-major order; `count` says how many there are",
    complex: ComplexRule::OwnRule,
    parameters: &[takes::tensor("input"), takes::int("count")],
    data_dependent: true,
    infer: |call| {
        let meta = call.tensor(0)?;
        let dims = [count(call, meta.shape.numel())?, meta.shape.rank()];
        Ok(Meta::new(DType::I64, Shape::new(&dims)?))
    },
    samples: || {
        let mut samples: Vec<Sample> = Vec::new();
        for dtype in [DType::F32, DType::F16, DType::I64, DType::U8] {
            samples.push(sample(&[tensor(dtype, &[3, 4], 1.0, 3.0)], &[Attribute::Int(12)]));
        }
        samples.push(sample(&[mask(&[2, 5, 3], true)], &[Attribute::Int(30)]));
        samples.push(sample(&[mask(&[7], false)], &[Attribute::Int(0)]));
        samples.push(sample(&[tensor(DType::F32, &[], 1.0, 2.0)], &[Attribute::Int(1)]));
        samples.push(sample(&[tensor(DType::F32, &[0, 2], 1.0, 2.0)], &[Attribute::Int(0)]));
        samples
    },
    ..COUNTED.with(facts(Unchanged, Same, Computed))
};

pub static MASKED_ROWS: Operation = Operation {
    id: 245,
    name: "masked_rows",
    doc: "the rows where a mask over the leading axes is true, in order; `count` says how many there are",
    complex: ComplexRule::OwnRule,
    parameters: &[takes::tensor("input"), takes::tensor("mask"), takes::int("count")],
    data_dependent: true,
    infer: |call| {
        let (meta, mask) = mask_operand(call)?;
        let count = count(call, mask.shape.numel())?;
        Ok(Meta::new(meta.dtype, rows(&meta, &mask, count)?))
    },
    gradient: Each(&[
        |g, s| {
            let zeros = g.full(s.shape(0), s.meta(0).dtype, 0i64);
            g.call(&MASKED_ROWS_SCATTER, &[zeros.into(), s.operand(1), s.grad.into()])
        },
        NO_GRADIENT,
    ]),
    saves: SECOND,
    samples: || {
        let x = |dtype, dims: &[usize]| tensor(dtype, dims, 0.0, 2.0);
        let mut samples: Vec<Sample> = Vec::new();
        for dtype in DTYPES {
            samples.push(sample(&[x(dtype, &[3, 4]), mask(&[3, 4], true)], &[Attribute::Int(12)]));
            samples.push(sample(&[x(dtype, &[3, 4]), mask(&[3], true)], &[Attribute::Int(3)]));
            samples.push(sample(&[x(dtype, &[3, 4]), mask(&[3], false)], &[Attribute::Int(0)]));
        }
        samples
    },
    sharding: |call, output| along_rows(call, output, None).linear_in(&[0b01]),
    batching: Batching::Rule(batching::index::masked_rows),
    ..COUNTED.with(facts(Unchanged, Moved(&[0]), Computed))
};

pub static MASKED_ROWS_SCATTER: Operation = Operation {
    id: 246,
    name: "masked_rows_scatter",
    doc: "the tensor with the rows where a mask over the leading axes is true replaced by those of another, which has as many, in order",
    complex: ComplexRule::OwnRule,
    parameters: &[takes::tensor("input"), takes::tensor("mask"), takes::tensor("source")],
    infer: |call| {
        let ((meta, mask), source) = (mask_operand(call)?, call.tensor(2)?);
        same_dtype(call, meta, source)?;
        let count = source.shape.first().copied().unwrap_or(0);
        let expected = rows(&meta, &mask, count)?;
        if source.shape != expected || count > mask.shape.numel() {
            return Err(mismatch(call, source, format!("rows of {expected} for the mask")));
        }
        Ok(meta)
    },
    gradient: Each(&[
        |g, s| {
            let zeros = g.full(s.shape(2), s.meta(2).dtype, 0i64);
            g.call(&MASKED_ROWS_SCATTER, &[s.grad.into(), s.operand(1), zeros.into()])
        },
        NO_GRADIENT,
        |g, s| {
            let count = smallvec![Attribute::Int(s.shape(2)[0] as i64)];
            g.emit(&MASKED_ROWS, &[s.grad.into(), s.operand(1)], count)
        },
    ]),
    saves: SECOND,
    samples: || {
        let x = |dtype, dims: &[usize]| tensor(dtype, dims, 0.0, 2.0);
        let mut samples: Vec<Sample> = Vec::new();
        for dtype in DTYPES {
            let whole = [x(dtype, &[3, 4]), mask(&[3, 4], true), x(dtype, &[12])];
            let rows = [x(dtype, &[3, 4]), mask(&[3], true), x(dtype, &[3, 4])];
            let none = [x(dtype, &[3, 4]), mask(&[3], false), x(dtype, &[0, 4])];
            samples.extend([whole, rows, none].iter().map(|operands| sample(operands, &[])));
        }
        samples
    },
    sharding: |call, output| along_rows(call, output, Some(2)).linear_in(&[0b101]),
    batching: Batching::Rule(batching::index::masked_rows_scatter),
    ..COUNTED.with(facts(Unchanged, Moved(&[0, 2]), Computed))
};
