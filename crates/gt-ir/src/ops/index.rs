//! Gathers and scatters: reading and writing at indices from another tensor.

use super::sample::{sample, tensor};
use crate::batching::{self, Batching};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::instruction::Attribute;
use crate::operation::Defaults;
use crate::operation::Gradient::Each;
use crate::operation::facts::says::*;
use crate::operation::{
    Call, ComplexRule, Family, Meta, NO_GRADIENT, Operation, SECOND, SampleOperand, face, takes,
};
use crate::shape::axis;
use crate::sharding::{Reduction, Rule, elementwise, shape_of};

/// Indices out of range are errors on the worker, where their values are known.
const INDEX: Defaults = Defaults(Operation { family: Family::Index, ..Operation::base().0 });

const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::I64, DType::Bool];

fn x(dtype: DType, dims: &[usize]) -> SampleOperand {
    tensor(dtype, dims, 0.0, 2.0)
}

fn at(dims: &[usize], below: f64) -> SampleOperand {
    tensor(DType::I64, dims, 0.0, below)
}

/// Operand 1, an index of int64 or int32.
fn index_operand(call: &Call) -> Result<Meta> {
    let index = call.tensor(1)?;
    if matches!(index.dtype, DType::I64 | DType::I32) {
        return Ok(index);
    }
    let expected = "an index of dtype int64 or int32, such as gt.tensor([0], dtype=gt.int64)";
    Err(Error::DTypeMismatch { operation: call.operation, given: index.dtype, expected })
}

pub(super) fn mismatch(call: &Call, meta: Meta, expected: String) -> Error {
    Error::ShapeMismatch { operation: call.operation, given: meta.shape, expected }
}

pub(super) fn same_dtype(call: &Call, meta: Meta, source: Meta) -> Result<()> {
    if meta.dtype == source.dtype {
        return Ok(());
    }
    let expected = "the dtype of the tensor it goes into";
    Err(Error::DTypeMismatch { operation: call.operation, given: source.dtype, expected })
}

/// gather and scatter: the index has the tensor's rank, and may be longer only along the axis.
pub(super) fn check_pointwise(call: &Call) -> Result<(Meta, Meta)> {
    let (meta, index) = (call.tensor(0)?, index_operand(call)?);
    let along = axis(call.int(0), meta.shape.rank(), call.operation)?;
    let fits = index.shape.rank() == meta.shape.rank()
        && (0..meta.shape.rank()).all(|a| a == along || index.shape[a] <= meta.shape[a]);
    if !fits {
        let expected = format!("an index no longer than {} but for axis {along}", meta.shape);
        return Err(mismatch(call, index, expected));
    }
    Ok((meta, index))
}

/// index_select, index_add and index_copy: the index has one axis.
fn check_rows(call: &Call) -> Result<(Meta, Meta, usize)> {
    let (meta, index) = (call.tensor(0)?, index_operand(call)?);
    let along = axis(call.int(0), meta.shape.rank(), call.operation)?;
    if index.shape.rank() != 1 || meta.shape.rank() == 0 {
        return Err(mismatch(call, index, "a tensor of one axis or more, an index of one".into()));
    }
    Ok((meta, index, along))
}

/// Operand 2 has a row for each index.
fn infer_rows_from(call: &Call) -> Result<Meta> {
    let (meta, index, along) = check_rows(call)?;
    let source = call.tensor(2)?;
    same_dtype(call, meta, source)?;
    let expected = meta.shape.with(along, index.shape[0]);
    if source.shape != expected {
        return Err(mismatch(call, source, expected.to_string()));
    }
    Ok(meta)
}

pub static GATHER: Operation = Operation {
    id: 95,
    name: "gather",
    doc: "the values at an index along an axis: `out[i][j] = x[index[i][j]][j]` for axis 0",
    complex: ComplexRule::OwnRule,
    parameters: &[takes::tensor("input"), takes::dim("dim"), takes::tensor("index")],
    face: face::BOTH,
    infer: |call| {
        let (meta, index) = check_pointwise(call)?;
        Ok(Meta::new(meta.dtype, index.shape))
    },
    gradient: Each(&[
        |g, s| {
            let zeros = g.full(s.shape(0), s.meta(0).dtype, 0i64);
            g.scatter_add(zeros, s.tensor(1), s.grad, s.int(0))
        },
        NO_GRADIENT,
    ]),
    saves: SECOND,
    samples: || {
        let mut samples = Vec::new();
        for dtype in DTYPES {
            samples.push(sample(&[x(dtype, &[3, 4]), at(&[2, 4], 3.0)], &[Attribute::Int(0)]));
            samples.push(sample(&[x(dtype, &[3, 4]), at(&[3, 6], 4.0)], &[Attribute::Int(-1)]));
        }
        samples
    },
    sharding: |call, output| {
        let (x, index) = (shape_of(call, 0), shape_of(call, 1));
        let mut rule = Rule::whole(call, output);
        let over = the_axis(call);
        for along in 0..index.rank() {
            if index[along] <= 1 {
                continue;
            }
            if along == over {
                rule.share(&[(1, along)], Some(along));
            } else if x[along] == index[along] {
                rule.share(&[(0, along), (1, along)], Some(along));
            }
        }
        rule.linear_in(&[0b01])
    },
    batching: Batching::Rule(batching::index::gather),
    ..INDEX.with(facts(Unchanged, Moved(&[0]), Computed))
};

pub static SCATTER_ADD: Operation = Operation {
    id: 96,
    name: "scatter_add",
    doc: "values added at an index along an axis: `x[index[i][j]][j] += source[i][j]` for axis 0",
    complex: ComplexRule::OwnRule,
    parameters: &[
        takes::tensor("input"),
        takes::dim("dim"),
        takes::tensor("index"),
        takes::tensor("src"),
    ],
    infer: |call| {
        let (meta, index) = check_pointwise(call)?;
        let source = call.tensor(2)?;
        same_dtype(call, meta, source)?;
        if source.shape != index.shape {
            return Err(mismatch(call, source, format!("the index's {}", index.shape)));
        }
        Ok(meta)
    },
    gradient: Each(&[|_, s| s.grad, NO_GRADIENT, |g, s| g.gather(s.grad, s.tensor(1), s.int(0))]),
    saves: SECOND,
    samples: || {
        let mut samples = Vec::new();
        for dtype in [DType::F32, DType::F64, DType::I64] {
            let operands = [x(dtype, &[3, 4]), at(&[2, 4], 3.0), x(dtype, &[2, 4])];
            samples.push(sample(&operands, &[Attribute::Int(0)]));
            let operands = [x(dtype, &[3, 4]), at(&[3, 6], 4.0), x(dtype, &[3, 6])];
            samples.push(sample(&operands, &[Attribute::Int(1)]));
        }
        samples
    },
    sharding: |call, output| {
        let (x, index) = (shape_of(call, 0), shape_of(call, 1));
        let mut rule = Rule::whole(call, output);
        let over = the_axis(call);
        for along in 0..index.rank() {
            if index[along] <= 1 {
                continue;
            }
            if along == over {
                rule.reduce(&[(1, along), (2, along)], Reduction::Sum);
            } else if x[along] == index[along] {
                rule.share(&[(0, along), (1, along), (2, along)], Some(along));
            }
        }
        rule.adds_first = true;
        rule.linear_in(&[0b101])
    },
    batching: Batching::Leading,
    ..INDEX.with(facts(Unchanged, ScatteredSum(ScatteredAlongAxis), Computed))
};

pub static INDEX_SELECT: Operation = Operation {
    id: 97,
    name: "index_select",
    doc: "whole rows (or slices along an axis) in the order an index names",
    complex: ComplexRule::OwnRule,
    parameters: &[takes::tensor("input"), takes::dim("dim"), takes::tensor("index")],
    face: face::BOTH,
    infer: |call| {
        let (meta, index, along) = check_rows(call)?;
        Ok(Meta::new(meta.dtype, meta.shape.with(along, index.shape[0])))
    },
    gradient: Each(&[
        |g, s| {
            let zeros = g.full(s.shape(0), s.meta(0).dtype, 0i64);
            g.index_add(zeros, s.tensor(1), s.grad, s.int(0))
        },
        NO_GRADIENT,
    ]),
    saves: SECOND,
    samples: || {
        let mut samples = Vec::new();
        for dtype in DTYPES {
            samples.push(sample(&[x(dtype, &[3, 4]), at(&[5], 3.0)], &[Attribute::Int(0)]));
            samples.push(sample(&[x(dtype, &[2, 3, 4]), at(&[2], 4.0)], &[Attribute::Int(-1)]));
        }
        samples.push(sample(&[x(DType::F32, &[3, 2]), at(&[0], 3.0)], &[Attribute::Int(0)]));
        samples
    },
    sharding: |call, output| {
        let mut rule = rows(call, output, &[0]);
        let over = the_axis(call);
        if output.shape[over] > 1 {
            rule.share(&[(1, 0)], Some(over));
        }
        rule.linear_in(&[0b01])
    },
    batching: Batching::Rule(batching::index::index_select),
    ..INDEX.with(facts(Unchanged, Moved(&[0]), Computed))
};

pub static INDEX_ADD: Operation = Operation {
    id: 98,
    name: "index_add",
    doc: "rows added at an index along an axis",
    complex: ComplexRule::OwnRule,
    parameters: &[
        takes::tensor("input"),
        takes::dim("dim"),
        takes::tensor("index"),
        takes::tensor("source"),
    ],
    infer: infer_rows_from,
    gradient: Each(&[
        |_, s| s.grad,
        NO_GRADIENT,
        |g, s| g.index_select(s.grad, s.tensor(1), s.int(0)),
    ]),
    saves: SECOND,
    samples: || {
        let mut samples = Vec::new();
        for dtype in [DType::F32, DType::F64, DType::I64] {
            let operands = [x(dtype, &[3, 4]), at(&[5], 3.0), x(dtype, &[5, 4])];
            samples.push(sample(&operands, &[Attribute::Int(0)]));
            let operands = [x(dtype, &[3, 4]), at(&[2], 4.0), x(dtype, &[3, 2])];
            samples.push(sample(&operands, &[Attribute::Int(1)]));
        }
        samples
    },
    sharding: |call, output| {
        let mut rule = rows(call, output, &[0, 2]);
        if shape_of(call, 1)[0] > 1 {
            rule.reduce(&[(1, 0), (2, the_axis(call))], Reduction::Sum);
        }
        rule.adds_first = true;
        rule.linear_in(&[0b101])
    },
    batching: Batching::Rule(batching::index::index_write),
    ..INDEX.with(facts(Unchanged, ScatteredSum(Indices), Computed))
};

pub static INDEX_COPY: Operation = Operation {
    id: 99,
    name: "index_copy",
    doc: "rows replaced at an index along an axis; of equal indices the last counts",
    complex: ComplexRule::OwnRule,
    parameters: &[
        takes::tensor("input"),
        takes::dim("dim"),
        takes::tensor("index"),
        takes::tensor("source"),
    ],
    face: face::ELEMENTWISE,
    infer: infer_rows_from,
    gradient: Each(&[
        |g, s| {
            let source = s.shape(2);
            let zeros = g.full(source, s.meta(0).dtype, 0i64);
            g.index_copy(s.grad, s.tensor(1), zeros, s.int(0))
        },
        NO_GRADIENT,
        |g, s| g.index_select(s.grad, s.tensor(1), s.int(0)),
    ]),
    saves: SECOND,
    samples: || {
        let mut samples = Vec::new();
        for dtype in DTYPES {
            // One index only: with repeated ones the finite difference is not defined.
            let operands = [x(dtype, &[3, 4]), at(&[1], 3.0), x(dtype, &[1, 4])];
            samples.push(sample(&operands, &[Attribute::Int(0)]));
            let operands = [x(dtype, &[3, 4]), at(&[1], 4.0), x(dtype, &[3, 1])];
            samples.push(sample(&operands, &[Attribute::Int(1)]));
        }
        samples
    },
    sharding: |call, output| rows(call, output, &[0, 2]).linear_in(&[0b101]),
    batching: Batching::Rule(batching::index::index_write),
    ..INDEX.with(facts(Unchanged, Moved(&[0, 2]), Computed))
};

pub static WRAP_INDEX: Operation = Operation {
    id: 100,
    name: "wrap_index",
    doc: "indices counted from the front (negative ones count from the back), or an error",
    complex: ComplexRule::OwnRule,
    parameters: &[takes::tensor("input"), takes::int("length")],
    infer: |call| {
        let meta = call.tensor(0)?;
        if meta.dtype.is_float() || meta.dtype == DType::Bool {
            let expected = "an integer dtype";
            return Err(Error::DTypeMismatch {
                operation: call.operation,
                given: meta.dtype,
                expected,
            });
        }
        Ok(Meta::new(DType::I64, meta.shape))
    },
    samples: || {
        vec![
            sample(&[tensor(DType::I64, &[2, 3], -4.0, 4.0)], &[Attribute::Int(4)]),
            sample(&[tensor(DType::I32, &[5], -4.0, 4.0)], &[Attribute::Int(4)]),
            sample(&[tensor(DType::U8, &[5], 0.0, 4.0)], &[Attribute::Int(4)]),
            sample(&[tensor(DType::I64, &[], 0.0, 4.0)], &[Attribute::Int(4)]),
        ]
    },
    sharding: elementwise,
    batching: Batching::Broadcast,
    ..INDEX.with(facts(Unchanged, Opaque, Computed))
};

pub(super) fn the_axis(call: &Call) -> usize {
    axis(call.int(0), shape_of(call, 0).rank(), call.operation).expect("checked by infer")
}

/// Shards any axis but the indexed one, the same in `operands` and the output.
fn rows(call: &Call, output: &Meta, operands: &[usize]) -> Rule {
    let mut rule = Rule::whole(call, output);
    let over = the_axis(call);
    for along in 0..output.shape.rank() {
        if along != over && output.shape[along] > 1 {
            let shared: Vec<_> = operands.iter().map(|&operand| (operand, along)).collect();
            rule.share(&shared, Some(along));
        }
    }
    rule
}
