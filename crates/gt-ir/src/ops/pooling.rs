//! The largest values of sliding windows.

use smallvec::{SmallVec, smallvec};

use super::sample::{sample, tensor};
use super::window::Window;
use crate::batching::Batching;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::instruction::Attribute;
use crate::operation::Gradient::Each;
use crate::operation::facts::says::*;
use crate::operation::{Call, Family, Graph, Meta, OUTPUT, Operation, Sample, Saved, Var, takes};
use crate::shape::Shape;
use crate::sharding::{Rule, shape_of};

/// A window is over at least as many inputs as padding, as PyTorch has it.
const HALF: &str = "one of 0 up to half the kernel for each axis";

pub static MAX_POOL: Operation = Operation {
    id: 241,
    name: "max_pool",
    family: Family::Reduce,
    doc: "the largest value of windows over the last axes, and its place in these, flattened; NaN counts as the largest, of equal ones the first is taken",
    parameters: &[
        takes::tensor("input"),
        takes::ints("kernel_size"),
        takes::ints("stride"),
        takes::ints("padding"),
        takes::ints("dilation"),
        takes::flag("ceil_mode"),
    ],
    infer,
    further: Some(|_, values| smallvec![Meta::new(DType::I64, values.shape)]),
    gradient: Each(&[back]),
    saves: OUTPUT,
    sharding: along_planes,
    samples,
    batching: Batching::Leading,
    ..Operation::base().with(facts(Unchanged, Ordered { has_ties: false }, Computed))
};

fn infer(call: &Call) -> Result<Meta> {
    let meta = call.tensor(0)?;
    let operation = call.operation;
    if meta.dtype == DType::Bool {
        let expected = "a number; cast with .to(gt.float32)";
        return Err(Error::DTypeMismatch { operation, given: meta.dtype, expected });
    }
    let bad = |attribute, list: &[i64], expected| {
        let given = format!("{list:?}");
        Error::BadAttribute { operation, attribute, given, expected }
    };
    let [kernel, stride, padding, dilation] = [0, 1, 2, 3].map(|list| call.ints(list));
    let axes = kernel.len();
    if !(1..=super::convolution::MAX_AXES).contains(&axes) || kernel.contains(&0) {
        return Err(bad("kernel_size", kernel, "lengths for 1 to 3 axes, 1 or more each"));
    }
    for (name, list) in [("stride", stride), ("padding", padding), ("dilation", dilation)] {
        if list.len() != axes {
            return Err(bad(name, list, "one for each length of kernel_size"));
        }
    }
    if padding.iter().zip(kernel).any(|(p, k)| *p < 0 || *p > k / 2) {
        return Err(bad("padding", padding, HALF));
    }
    if meta.shape.rank() < axes {
        let expected = format!("{axes} axes or more");
        return Err(Error::ShapeMismatch { operation, given: meta.shape, expected });
    }
    let mut shape = meta.shape;
    let lead = shape.rank() - axes;
    for (axis, &kernel) in kernel.iter().enumerate() {
        let step = |value: i64| usize::try_from(value).unwrap_or(0);
        let window = Window {
            stride: step(stride[axis]),
            padding_low: padding[axis] as isize,
            padding_high: padding[axis] as isize,
            dilation: step(dilation[axis]),
            base_dilation: 1,
        };
        let (length, kernel) = (shape[lead + axis], step(kernel));
        let count = if call.bool(4) {
            window.output_over_end(length, kernel)
        } else {
            window.output(length, kernel)
        };
        let expected = "steps of 1 or more, and countable lengths";
        let count = count.filter(|_| kernel > 0).ok_or_else(|| bad("stride", stride, expected))?;
        shape = shape.with(lead + axis, count);
    }
    Ok(Meta::new(meta.dtype, Shape::new(&shape)?))
}

/// The gradient of values goes back to where they were.
fn back(g: &mut dyn Graph, s: &Saved) -> Var {
    let (shape, axes) = (s.shape(0), s.ints(0).len());
    let lead = shape.rank() - axes;
    let flat = |shape: Shape| {
        let mut dims: SmallVec<[usize; 8]> = SmallVec::from_slice(&shape[..lead]);
        dims.push(shape[lead..].iter().product());
        Shape::new(&dims).expect("as many elements as before")
    };
    let output = flat(s.output_meta.shape);
    let index = g.reshape(s.further[0], output);
    let grad = g.reshape(s.grad, output);
    let zeros = g.full(flat(shape), s.meta(0).dtype, 0i64);
    let sum = g.scatter_add(zeros, index, grad, lead as i64);
    g.reshape(sum, shape)
}

/// Shardable along the axes that windows do not slide over.
fn along_planes(call: &Call, output: &Meta) -> Rule {
    let mut rule = Rule::whole(call, output);
    let shape = shape_of(call, 0);
    for along in 0..shape.rank() - call.ints(0).len() {
        if shape[along] > 1 {
            rule.share(&[(0, along)], Some(along));
        }
    }
    rule
}

fn samples() -> Vec<Sample> {
    type Case<'a> = (&'a [usize], [&'a [i64]; 4], bool);
    let cases: [Case; 5] = [
        (&[2, 6], [&[2], &[2], &[0], &[1]], false),
        (&[2, 3, 7], [&[3], &[2], &[1], &[2]], false),
        (&[2, 2, 5, 4], [&[2, 3], &[2, 1], &[1, 0], &[1, 1]], true),
        (&[2, 3, 3, 4], [&[2, 2, 2], &[1, 1, 2], &[0, 1, 0], &[1, 1, 1]], false),
        (&[0, 4], [&[2], &[2], &[0], &[1]], false),
    ];
    let dtypes = [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::U8];
    let mut samples = Vec::new();
    for dtype in dtypes {
        for (dims, lists, ceil_mode) in cases {
            let mut attributes: Vec<Attribute> = lists.map(Attribute::ints).into();
            attributes.push(Attribute::Bool(ceil_mode));
            samples.push(sample(&[tensor(dtype, dims, 0.0, 99.0)], &attributes));
        }
    }
    samples
}
