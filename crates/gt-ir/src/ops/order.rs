//! Values in order, and the largest or smallest with their places: operations that give values and
//! indices.

use super::sample::{sample, tensor};
use crate::batching::Batching;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::instruction::{Attribute, Results};
use crate::operation::Defaults;
use crate::operation::Gradient::Each;
use crate::operation::facts::says::*;
use crate::operation::{
    Call, Default, Family, Graph, Meta, OUTPUT, Operation, Sample, Saved, Var, face, takes,
};
use crate::shape::axis;
use crate::sharding::along_other_axes;
use smallvec::smallvec;

const DTYPES: [DType; 6] = [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::U8];

/// The places of the values.
fn places(_: &Call, values: Meta) -> Results {
    smallvec![Meta::new(DType::I64, values.shape)]
}

/// The gradient of values goes back to where they were.
fn back(g: &mut dyn Graph, s: &Saved) -> Var {
    if s.shape(0).rank() == 0 {
        return s.grad;
    }
    let zeros = g.full(s.shape(0), s.meta(0).dtype, 0i64);
    g.scatter_add(zeros, s.further[0], s.grad, along(s))
}

/// The axis, which is the attribute named `dim`.
fn along(s: &Saved) -> i64 {
    s.int(0)
}

/// What gives values along an axis and their places.
const ALONG: Defaults = Defaults(Operation {
    family: Family::Reduce,
    further: Some(places),
    gradient: Each(&[back]),
    saves: OUTPUT,
    sharding: along_other_axes,
    batching: Batching::Leading,
    ..Operation::base().0
});

pub static SORT: Operation = Operation {
    id: 138,
    name: "sort",
    doc: "the values in order along an axis, and where they were; equal ones stay in their order, NaN counts as the largest",
    parameters: &[
        takes::tensor("input"),
        takes::dim("dim").or(Default::Int(-1)),
        takes::flag("descending").or(Default::Bool(false)),
    ],
    infer: |call| {
        let meta = call.tensor(0)?;
        axis(call.int(0), meta.shape.rank(), call.operation)?;
        Ok(meta)
    },
    samples: || {
        let mut samples: Vec<Sample> = Vec::new();
        for dtype in DTYPES {
            for (dim, descending) in [(0, false), (-1, true)] {
                let attributes = [Attribute::Int(dim), Attribute::Bool(descending)];
                samples.push(sample(&[tensor(dtype, &[3, 4], 0.0, 9.0)], &attributes));
            }
        }
        let attributes = [Attribute::Int(0), Attribute::Bool(false)];
        samples.push(sample(&[tensor(DType::F32, &[], 0.0, 1.0)], &attributes));
        samples.push(sample(&[tensor(DType::F32, &[0, 2], 0.0, 1.0)], &attributes));
        samples
    },
    ..ALONG.with(facts(Unchanged, Ordered { has_ties: true }, Computed))
};

pub static TOPK: Operation = Operation {
    id: 139,
    name: "topk",
    doc: "the k largest (or smallest) values along an axis, in order, and where they were",
    parameters: &[
        takes::tensor("input"),
        takes::dim("dim"),
        takes::int("k"),
        takes::flag("largest").or(Default::Bool(true)),
    ],
    infer: |call| {
        let meta = call.tensor(0)?;
        let (rank, k) = (meta.shape.rank(), call.int(1));
        let at = axis(call.int(0), rank, call.operation)?;
        let length = if rank == 0 { 1 } else { meta.shape[at] };
        if k < 0 || k as usize > length {
            return Err(Error::BadAttribute {
                operation: "topk",
                attribute: "k",
                given: format!("{k} for an axis of length {length}"),
                expected: "0 up to the length of the axis",
            });
        }
        Ok(if rank == 0 { meta } else { Meta::new(meta.dtype, meta.shape.with(at, k as usize)) })
    },
    samples: || {
        let mut samples: Vec<Sample> = Vec::new();
        for dtype in DTYPES {
            for (dim, largest) in [(0, false), (-1, true)] {
                let attributes = [Attribute::Int(dim), Attribute::Int(2), Attribute::Bool(largest)];
                samples.push(sample(&[tensor(dtype, &[3, 4], 0.0, 99.0)], &attributes));
            }
        }
        samples
    },
    ..ALONG.with(facts(Unchanged, Ordered { has_ties: true }, Computed))
};

fn extreme(call: &Call) -> Result<Meta> {
    let meta = call.tensor(0)?;
    let rank = meta.shape.rank();
    let at = axis(call.int(0), rank, call.operation)?;
    if rank == 0 {
        return Ok(meta);
    }
    if meta.shape[at] == 0 {
        return Err(Error::EmptyReduction { operation: call.operation, shape: meta.shape });
    }
    Ok(Meta::new(meta.dtype, meta.shape.with(at, 1)))
}

fn extremes() -> Vec<Sample> {
    let mut samples: Vec<Sample> = Vec::new();
    for dtype in DTYPES {
        for dim in [0, -1] {
            samples.push(sample(&[tensor(dtype, &[3, 4], 0.0, 9.0)], &[Attribute::Int(dim)]));
        }
    }
    samples.push(sample(&[tensor(DType::F32, &[], 0.0, 1.0)], &[Attribute::Int(0)]));
    samples
}

pub static MAX_ALONG: Operation = Operation {
    id: 140,
    name: "max_along",
    doc: "the largest value along an axis, which stays with length 1, and where it is; NaN counts as the largest, of equal ones the first is taken",
    parameters: &[takes::tensor("input"), takes::dim("dim")],
    infer: extreme,
    samples: extremes,
    ..ALONG.with(facts(Unchanged, Ordered { has_ties: true }, Computed))
};

pub static MIN_ALONG: Operation = Operation {
    id: 141,
    name: "min_along",
    doc: "the smallest value along an axis, which stays with length 1, and where it is; NaN counts as the smallest, of equal ones the first is taken",
    parameters: &[takes::tensor("input"), takes::dim("dim")],
    infer: extreme,
    samples: extremes,
    ..ALONG.with(facts(Unchanged, Ordered { has_ties: true }, Computed))
};

/// What gives for each place the extreme of all values up to it.
const RUNNING: Defaults = Defaults(Operation {
    parameters: &[takes::tensor("input"), takes::dim("dim")],
    infer: |call| {
        let meta = call.tensor(0)?;
        axis(call.int(0), meta.shape.rank(), call.operation)?;
        Ok(meta)
    },
    face: face::BOTH,
    ..ALONG.0
});

pub static CUMMAX: Operation = Operation {
    id: 142,
    name: "cummax",
    doc: "the largest of all values up to each along an axis, and where it is, of equal ones the last",
    samples: extremes,
    ..RUNNING.with(facts(Unchanged, Ordered { has_ties: true }, Computed))
};

pub static CUMMIN: Operation = Operation {
    id: 143,
    name: "cummin",
    doc: "the smallest of all values up to each along an axis, and where it is, of equal ones the last",
    samples: extremes,
    ..RUNNING.with(facts(Unchanged, Ordered { has_ties: true }, Computed))
};
