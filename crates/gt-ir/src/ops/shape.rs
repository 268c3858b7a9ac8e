//! Operations that rearrange elements.

use super::sample::{sample, tensor};
use crate::Attributes;
use crate::batching::{self, Batching};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::instruction::Attribute;
use crate::operation::Defaults;
use crate::operation::Gradient::{Any, Each};
use crate::operation::facts::says::*;
use crate::operation::{Body, Call, ComplexRule, Default, Family, Meta, Operation, face, takes};
use crate::shape::{Shape, axes, axis};
use crate::sharding::{FactorRun, LocalPart, Rule, elementwise, localize_shape, shape_of};

const RESHAPING: Defaults = Defaults(Operation { family: Family::Reshape, ..Operation::base().0 });

pub(super) const DTYPES: [DType; 5] = [DType::F32, DType::F64, DType::F16, DType::I64, DType::Bool];

pub(super) fn x(dtype: DType, dims: &[usize]) -> crate::operation::SampleOperand {
    tensor(dtype, dims, 0.0, 2.0)
}

/// The shape in attribute 0, whose lengths must not be negative.
fn target(call: &Call) -> Result<Shape> {
    let dims = call
        .ints(0)
        .iter()
        .map(|&dim| usize::try_from(dim))
        .collect::<std::result::Result<Vec<_>, _>>();
    let dims = dims.map_err(|_| Error::BadAttribute {
        operation: call.operation,
        attribute: "shape",
        given: format!("{:?}", call.ints(0)),
        expected: "lengths of 0 or more",
    })?;
    Shape::new(&dims)
}

pub static RESHAPE: Operation = Operation {
    id: 85,
    name: "reshape",
    doc: "the same values in row-major order under another shape",
    complex: ComplexRule::OwnRule,
    parameters: &[takes::tensor("input"), takes::size("shape")],
    infer: |call| {
        let (meta, to) = (call.tensor(0)?, target(call)?);
        if meta.shape.numel() != to.numel() {
            let to = call.ints(0).to_vec();
            return Err(Error::Reshape { operation: "reshape", from: meta.shape, to });
        }
        Ok(Meta::new(meta.dtype, to))
    },
    gradient: Each(&[|g, s| g.reshape(s.grad, s.shape(0))]),
    samples: || {
        let mut samples = Vec::new();
        for dtype in DTYPES {
            samples.push(sample(&[x(dtype, &[2, 6])], &[Attribute::dims(&[3, 4])]));
        }
        samples.push(sample(&[x(DType::F32, &[1])], &[Attribute::dims(&[])]));
        samples.push(sample(&[x(DType::F32, &[0, 3])], &[Attribute::dims(&[3, 0, 2])]));
        samples
    },
    sharding: reshape_rule,
    localize: Some(localize_shape),
    batching: Batching::Rule(batching::structure::reshape),
    ..RESHAPING.with(facts(Unchanged, Moved(&[0]), View))
};

pub static PERMUTE: Operation = Operation {
    id: 86,
    name: "permute",
    doc: "the axes in another order",
    complex: ComplexRule::OwnRule,
    parameters: &[takes::tensor("input"), takes::size("dims")],
    face: face::BOTH,
    infer: |call| {
        let meta = call.tensor(0)?;
        let rank = meta.shape.rank();
        if call.ints(0).len() != rank {
            return Err(Error::BadAttribute {
                operation: "permute",
                attribute: "dims",
                given: format!("{:?}", call.ints(0)),
                expected: "each axis of the tensor once",
            });
        }
        // Also checks that no axis is repeated.
        axes(call.ints(0), rank, "permute")?;
        let mut shape = meta.shape;
        for (to, &from) in call.ints(0).iter().enumerate() {
            shape = shape.with(to, meta.shape[axis(from, rank, "permute")?]);
        }
        Ok(Meta::new(meta.dtype, shape))
    },
    gradient: Each(&[|g, s| {
        let rank = s.shape(0).rank();
        let mut back = vec![0; rank];
        for (to, &from) in s.ints(0).iter().enumerate() {
            back[axis(from, rank, "permute").expect("checked by infer")] = to as i64;
        }
        g.permute(s.grad, &back)
    }]),
    samples: || {
        let mut samples = Vec::new();
        for dtype in DTYPES {
            samples.push(sample(&[x(dtype, &[2, 3, 4])], &[Attribute::ints(&[2i64, 0, 1])]));
        }
        samples.push(sample(&[x(DType::F32, &[3, 2])], &[Attribute::ints(&[-1i64, 0])]));
        samples.push(sample(&[x(DType::F32, &[])], &[Attribute::ints::<i64>(&[])]));
        samples.push(sample(&[x(DType::F32, &[0, 2])], &[Attribute::ints(&[1i64, 0])]));
        samples
    },
    sharding: |call, output| {
        let mut rule = Rule::whole(call, output);
        let rank = output.shape.rank();
        for (to, &from) in call.ints(0).iter().enumerate() {
            if output.shape[to] > 1 {
                let from = axis(from, rank, "permute").expect("checked by infer");
                rule.share(&[(0, from)], Some(to));
            }
        }
        rule.linear_in(&[1])
    },
    batching: Batching::Rule(batching::structure::permute),
    ..RESHAPING.with(facts(Unchanged, Moved(&[0]), View))
};

pub static EXPAND: Operation = Operation {
    id: 87,
    name: "expand",
    doc: "axes of length 1 repeated, new ones put in front",
    complex: ComplexRule::OwnRule,
    parameters: &[takes::tensor("input"), takes::size("size")],
    infer: |call| {
        let (meta, to) = (call.tensor(0)?, target(call)?);
        if !meta.shape.expands_to(&to) {
            let expected = format!("one that expands to {to}: equal lengths, or 1");
            return Err(Error::ShapeMismatch { operation: "expand", given: meta.shape, expected });
        }
        Ok(Meta::new(meta.dtype, to))
    },
    gradient: Each(&[|g, s| g.unbroadcast(s.grad, s.shape(0))]),
    samples: || {
        let mut samples = Vec::new();
        for dtype in DTYPES {
            samples.push(sample(&[x(dtype, &[2, 1])], &[Attribute::dims(&[3, 2, 4])]));
        }
        samples.push(sample(&[x(DType::F32, &[])], &[Attribute::dims(&[2, 2])]));
        samples.push(sample(&[x(DType::F32, &[1])], &[Attribute::dims(&[0])]));
        samples
    },
    sharding: |call, output| elementwise(call, output).linear_in(&[1]),
    localize: Some(localize_shape),
    batching: Batching::Rule(batching::structure::expand),
    ..RESHAPING.with(facts(Unchanged, Moved(&[0]), RepeatedView))
};

/// The identity: under a signal, the planner gives the result the signal's placement.
pub static PLACE: Operation = Operation {
    id: 94,
    name: "place",
    doc: "the same values, placed as the scope's signal says",
    complex: ComplexRule::OwnRule,
    parameters: &[takes::tensor("input")],
    infer: |call| call.tensor(0),
    gradient: Each(&[|g, s| g.emit(&PLACE, &[s.grad.into()], s.attributes.clone())]),
    sharding: |call, output| elementwise(call, output).linear_in(&[1]),
    body: Body::Composite(|_, operands, _| *operands[0].tensor().expect("a tensor")),
    samples: || vec![sample(&[x(DType::F32, &[2, 3])], &[]), sample(&[x(DType::I64, &[])], &[])],
    batching: Batching::Broadcast,
    ..RESHAPING.with(facts(Unchanged, OfBody, Computed))
};

pub static FLIP: Operation = Operation {
    id: 88,
    name: "flip",
    doc: "the values in reverse along axes",
    complex: ComplexRule::OwnRule,
    parameters: &[takes::tensor("input"), takes::size("dims")],
    face: face::BOTH,
    infer: |call| {
        let meta = call.tensor(0)?;
        axes(call.ints(0), meta.shape.rank(), "flip")?;
        Ok(meta)
    },
    gradient: Each(&[|g, s| g.emit(&FLIP, &[s.grad.into()], s.attributes.clone())]),
    samples: || {
        let mut samples = Vec::new();
        for dtype in DTYPES {
            samples.push(sample(&[x(dtype, &[2, 3])], &[Attribute::ints(&[1i64])]));
        }
        samples.push(sample(&[x(DType::F32, &[2, 3])], &[Attribute::ints(&[0i64, -1])]));
        samples
    },
    sharding: |call, output| {
        let rank = output.shape.rank();
        let turned = axes(call.ints(0), rank, "flip").expect("checked by infer");
        along(call, output, |axis| !turned.contains(&axis)).linear_in(&[1])
    },
    batching: Batching::Rule(batching::structure::flip),
    ..RESHAPING.with(facts(Unchanged, Moved(&[0]), Computed))
};

pub static CAT: Operation = Operation {
    id: 91,
    name: "cat",
    family: Family::Concat,
    doc: "tensors one after another along an axis",
    complex: ComplexRule::OwnRule,
    parameters: &[takes::tensors("tensors"), takes::dim("dim").or(Default::Int(0))],
    infer: |call| {
        let first = call.tensor(0)?;
        let along = axis(call.int(0), first.shape.rank(), "cat")?;
        if first.shape.rank() == 0 {
            let expected = "one axis or more; use stack for scalars".to_string();
            return Err(Error::ShapeMismatch { operation: "cat", given: first.shape, expected });
        }
        let (mut dtype, mut length) = (first.dtype, 0usize);
        for index in 0..call.operands.len() {
            let meta = call.tensor(index)?;
            if meta.shape.rank() != first.shape.rank()
                || meta.shape.with(along, 0) != first.shape.with(along, 0)
            {
                let expected = format!("{} but for axis {along}", first.shape);
                return Err(Error::ShapeMismatch { operation: "cat", given: meta.shape, expected });
            }
            dtype = dtype.promote(meta.dtype);
            length = length.saturating_add(meta.shape[along]);
        }
        Ok(Meta::new(dtype, Shape::new(&first.shape.with(along, length))?))
    },
    gradient: Any(|g, s, index| {
        let shape = s.shape(index);
        let along = axis(s.int(0), shape.rank(), "cat").expect("checked by infer");
        let start: usize = (0..index).map(|before| s.shape(before)[along]).sum();
        let mut starts = vec![0; shape.rank()];
        starts[along] = start as i64;
        let sizes: Vec<i64> = shape.iter().map(|&dim| dim as i64).collect();
        g.slice(s.grad, &starts, &sizes, &vec![1; shape.rank()])
    }),
    samples: || {
        let mut samples = Vec::new();
        for dtype in DTYPES {
            let operands = [x(dtype, &[2, 3]), x(dtype, &[1, 3]), x(dtype, &[0, 3])];
            samples.push(sample(&operands, &[Attribute::Int(0)]));
        }
        let mixed = [x(DType::F32, &[2, 3]), x(DType::I64, &[2, 2])];
        samples.push(sample(&mixed, &[Attribute::Int(-1)]));
        samples.push(sample(&[x(DType::F32, &[2])], &[Attribute::Int(0)]));
        samples
    },
    sharding: |call, output| {
        let along = axis(call.int(0), output.shape.rank(), "cat").expect("checked by infer");
        let mut rule = Rule::whole(call, output);
        let operands = call.operands.len();
        for axis in 0..output.shape.rank() {
            if axis != along && output.shape[axis] > 1 {
                let shared: Vec<_> = (0..operands).map(|operand| (operand, axis)).collect();
                rule.share(&shared, Some(axis));
            }
        }
        let all = if operands < 64 { (1 << operands) - 1 } else { 0 };
        rule.linear_in(if all == 0 { &[] } else { std::slice::from_ref(&all) })
    },
    batching: Batching::Leading,
    ..Operation::base().with(facts(Unchanged, MovedFromAll, Computed))
};

const TRIANGLE: Defaults = Defaults(Operation {
    family: Family::Index,
    parameters: &[takes::tensor("input"), takes::int("diagonal").or(Default::Int(0))],
    face: face::ELEMENTWISE,
    infer: |call| {
        let meta = call.tensor(0)?;
        if meta.shape.rank() < 2 {
            let expected = "two axes or more".to_string();
            return Err(Error::ShapeMismatch {
                operation: call.operation,
                given: meta.shape,
                expected,
            });
        }
        Ok(meta)
    },
    samples: || {
        let mut samples = Vec::new();
        for dtype in DTYPES {
            for diagonal in [0, 1, -2] {
                samples.push(sample(&[x(dtype, &[2, 3, 4])], &[Attribute::Int(diagonal)]));
            }
        }
        samples.push(sample(&[x(DType::F32, &[0, 3])], &[Attribute::Int(0)]));
        samples
    },
    sharding: |call, output| elementwise(call, output).linear_in(&[1]),
    localize: Some(localize_diagonal),
    batching: Batching::Leading,
    ..Operation::base().0
});

pub static TRIL: Operation = Operation {
    id: 92,
    name: "tril",
    doc: "the values on and below a diagonal of the last two axes, zeros above",
    complex: ComplexRule::OwnRule,
    gradient: Each(&[|g, s| g.tril(s.grad, s.int(0))]),
    ..TRIANGLE.with(facts(Unchanged, Moved(&[0]), Computed))
};

pub static TRIU: Operation = Operation {
    id: 93,
    name: "triu",
    doc: "the values on and above a diagonal of the last two axes, zeros below",
    complex: ComplexRule::OwnRule,
    gradient: Each(&[|g, s| g.triu(s.grad, s.int(0))]),
    ..TRIANGLE.with(facts(Unchanged, Moved(&[0]), Computed))
};

/// Shards any axis that `free` accepts, the same in the first operand and the output.
pub(super) fn along(call: &Call, output: &Meta, free: impl Fn(usize) -> bool) -> Rule {
    let mut rule = Rule::whole(call, output);
    for axis in 0..output.shape.rank() {
        if output.shape[axis] > 1 && free(axis) {
            rule.share(&[(0, axis)], Some(axis));
        }
    }
    rule
}

/// Matches groups of input axes to groups of output axes with as many elements. The first axes of
/// both groups run over a factor whose length is their greatest common divisor.
fn reshape_rule(call: &Call, output: &Meta) -> Rule {
    let mut rule = Rule::whole(call, output).linear_in(&[1]);
    let (from, to) = (shape_of(call, 0), output.shape);
    if from.numel() == 0 {
        return rule;
    }
    let (mut i, mut o) = (0, 0);
    while i < from.rank() && o < to.rank() {
        // The group begins at the next axes that are longer than 1.
        while i < from.rank() && from[i] == 1 {
            i += 1;
        }
        while o < to.rank() && to[o] == 1 {
            o += 1;
        }
        if i == from.rank() || o == to.rank() {
            break;
        }
        let steps = greatest_common_divisor(from[i], to[o]);
        if steps > 1 {
            let factor = rule.factors();
            rule.operands[0][i] = Some(FactorRun { factor, inner: from[i] / steps });
            rule.output[o] = Some(FactorRun { factor, inner: to[o] / steps });
        }
        // The group ends where both sides have as many elements.
        let (mut left, mut right) = (from[i], to[o]);
        (i, o) = (i + 1, o + 1);
        while left != right {
            if left < right {
                left *= from[i];
                i += 1;
            } else {
                right *= to[o];
                o += 1;
            }
        }
    }
    rule
}

fn greatest_common_divisor(a: usize, b: usize) -> usize {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

/// A part's diagonal moves up by its first row and down by its first column.
fn localize_diagonal(attributes: &Attributes, part: &LocalPart) -> Attributes {
    let rank = part.whole.rank();
    let starts = &part.output.starts;
    let shift = starts[rank - 2] as i64 - starts[rank - 1] as i64;
    match attributes[0] {
        Attribute::Int(diagonal) => smallvec::smallvec![Attribute::Int(diagonal + shift)],
        ref other => unreachable!("the diagonal is {}", other.kind()),
    }
}
