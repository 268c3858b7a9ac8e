//! Slicing: the values of a region of a tensor, and the tensor with a region replaced.

use super::sample::{number, sample};
use super::shape::{DTYPES, along, x};
use crate::Attributes;
use crate::batching::{self, Batching};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::instruction::Attribute;
use crate::operation::Defaults;
use crate::operation::Gradient::Each;
use crate::operation::facts::says::*;
use crate::operation::{Call, ComplexRule, Family, Meta, Operation, takes};
use crate::shape::Shape;
use crate::sharding::{LocalPart, shape_of};

/// A region of a tensor: along each axis `sizes` elements from `starts` in `steps`.
fn region(call: &Call, meta: &Meta) -> Result<Shape> {
    let (starts, sizes, steps) = (call.ints(0), call.ints(1), call.ints(2));
    let rank = meta.shape.rank();
    let mut shape = meta.shape;
    let lists_fit = [starts, sizes, steps].iter().all(|list| list.len() == rank);
    for along in 0..if lists_fit { rank } else { 0 } {
        let (start, size, step) = (starts[along], sizes[along], steps[along]);
        let length = meta.shape[along] as i64;
        let last = size
            .checked_sub(1)
            .and_then(|n| n.checked_mul(step))
            .and_then(|n| n.checked_add(start));
        let inside = size == 0 || last.is_some_and(|last| last < length);
        if step < 1 || size < 0 || start < 0 || start > length || !inside {
            let index = last.unwrap_or(i64::MAX);
            return Err(Error::BadIndex {
                operation: call.operation,
                index,
                axis: along,
                length: length as usize,
            });
        }
        shape = shape.with(along, size as usize);
    }
    if !lists_fit {
        return Err(Error::BadAttribute {
            operation: call.operation,
            attribute: "starts, sizes, steps",
            given: format!("{starts:?}, {sizes:?}, {steps:?}"),
            expected: "one entry per axis each",
        });
    }
    Ok(shape)
}

const SLICING: Defaults = Defaults(Operation {
    family: Family::Slice,
    parameters: &[
        takes::tensor("input"),
        takes::ints("starts").varying(),
        takes::ints("sizes"),
        takes::ints("steps"),
    ],
    ..Operation::base().0
});

/// Starts, sizes and steps for a tensor of [4, 5] in the samples.
fn regions() -> [[Attribute; 3]; 3] {
    let lists = |starts: [i64; 2], sizes: [i64; 2], steps: [i64; 2]| {
        [Attribute::ints(&starts), Attribute::ints(&sizes), Attribute::ints(&steps)]
    };
    [lists([1, 0], [2, 5], [1, 1]), lists([0, 1], [2, 2], [2, 3]), lists([4, 0], [0, 3], [1, 2])]
}

pub static SLICE: Operation = Operation {
    id: 89,
    name: "slice",
    doc: "along each axis `sizes` elements from `starts` in `steps`",
    complex: ComplexRule::OwnRule,
    infer: |call| {
        let meta = call.tensor(0)?;
        Ok(Meta::new(meta.dtype, region(call, &meta)?))
    },
    gradient: Each(&[|g, s| {
        let zeros = g.full(s.shape(0), s.meta(0).dtype, 0i64);
        g.slice_assign(zeros, s.grad, s.ints(0), s.ints(1), s.ints(2))
    }]),
    samples: || {
        let mut samples = Vec::new();
        for dtype in DTYPES {
            for attributes in regions() {
                samples.push(sample(&[x(dtype, &[4, 5])], &attributes));
            }
        }
        samples
    },
    sharding: |call, output| {
        let shape = shape_of(call, 0);
        along(call, output, |axis| call.ints(1)[axis] == shape[axis] as i64).linear_in(&[1])
    },
    localize: Some(localize_slice),
    batching: Batching::Rule(batching::structure::slice),
    ..SLICING.with(facts(Unchanged, Moved(&[0]), View))
};

pub static SLICE_ASSIGN: Operation = Operation {
    id: 90,
    name: "slice_assign",
    doc: "the first tensor with a region of it replaced by the second, which broadcasts",
    complex: ComplexRule::OwnRule,
    parameters: &[
        takes::tensor("input"),
        takes::tensor("src"),
        takes::ints("starts").varying(),
        takes::ints("sizes"),
        takes::ints("steps"),
    ],
    infer: |call| {
        let meta = call.tensor(0)?;
        let shape = region(call, &meta)?;
        if let Some(value) = call.operands[1].tensor()
            && !value.shape.expands_to(&shape)
        {
            let expected = format!("one that expands to the region's {shape}");
            return Err(Error::ShapeMismatch {
                operation: call.operation,
                given: value.shape,
                expected,
            });
        }
        Ok(meta)
    },
    gradient: Each(&[
        |g, s| {
            let region: Vec<usize> = s.ints(1).iter().map(|&size| size as usize).collect();
            let region = Shape::new(&region).expect("checked by infer");
            let zeros = g.full(region, s.meta(0).dtype, 0i64);
            g.slice_assign(s.grad, zeros, s.ints(0), s.ints(1), s.ints(2))
        },
        |g, s| g.slice(s.grad, s.ints(0), s.ints(1), s.ints(2)),
    ]),
    samples: || {
        let mut samples = Vec::new();
        for dtype in DTYPES {
            for (attributes, dims) in regions().into_iter().zip([[2, 5], [2, 2], [0, 3]]) {
                samples.push(sample(&[x(dtype, &[4, 5]), x(dtype, &dims)], &attributes));
            }
        }
        let [region, ..] = regions();
        samples.push(sample(&[x(DType::F32, &[4, 5]), x(DType::F32, &[5])], &region));
        samples.push(sample(&[x(DType::F32, &[4, 5]), number(3.0)], &region));
        samples.push(sample(&[x(DType::F32, &[4, 5]), x(DType::I64, &[])], &region));
        samples
    },
    sharding: |call, output| {
        let (value, rank) = (shape_of(call, 1), output.shape.rank());
        let mut rule = along(call, output, |axis| call.ints(1)[axis] == output.shape[axis] as i64);
        // The value is sharded along the axes that it is not broadcast along.
        let missing = rank - value.rank();
        for axis in missing..rank {
            if value[axis - missing] == output.shape[axis] && rule.output[axis].is_some() {
                rule.operands[1][axis - missing] = rule.output[axis];
            }
        }
        rule.linear_in(&[0b11])
    },
    localize: Some(localize_assign),
    batching: Batching::Rule(batching::structure::slice_assign),
    ..SLICING.with(facts(Unchanged, Moved(&[0, 1]), Computed))
};

/// A part's slice has the size of the output part.
fn localize_slice(attributes: &Attributes, part: &LocalPart) -> Attributes {
    let mut attributes = attributes.clone();
    attributes[1] = Attribute::dims(&part.output.shape);
    attributes
}

/// Sharded axes are assigned over the full length of the part.
fn localize_assign(attributes: &Attributes, part: &LocalPart) -> Attributes {
    let mut attributes = attributes.clone();
    if let Attribute::Ints(sizes) = &mut attributes[1] {
        for (axis, size) in sizes.iter_mut().enumerate() {
            if part.output.shape[axis] != part.whole[axis] {
                *size = part.output.shape[axis] as i64;
            }
        }
    }
    attributes
}
