//! Convolution in its general form, as XLA's: transposed convolution and both gradients are the
//! same operation with other windows, or with axes exchanged.

use smallvec::{SmallVec, smallvec};

use super::sample::{sample, tensor};
use super::shape::FLIP;
pub use super::window::Window;
use crate::batching::{self, Batching};
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::instruction::{Attribute, Attributes};
use crate::operation::Gradient::Each;
use crate::operation::facts::says::*;
use crate::operation::{
    Call, FIRST, Family, Graph, Meta, Operation, SECOND, Sample, Saved, Var, ints, takes,
};
use crate::shape::Shape;
use crate::sharding::{FactorRun, LocalPart, Reduction, Rule, shape_of};

/// The most spatial axes.
pub const MAX_AXES: usize = 3;

/// The place of the attribute `groups`, behind the lists that make up the windows.
const GROUPS: usize = 5;

/// `out[n, o, t] = sum over c, k of input[n, c, t * stride + k * dilation - padding_low] *
/// weight[o, c, k]`, where `base_dilation` puts zeros between the inputs and each of the groups has
/// its share of channels and outputs.
pub static CONV_GENERAL: Operation = Operation {
    id: 240,
    name: "conv_general",
    family: Family::Convolution,
    doc: "the products of kernels (outputs, channels / groups, spatial...) with the windows of an input (batch, channels, spatial...), which base_dilation spreads and padding surrounds with zeros",
    parameters: &[
        takes::tensor("input"),
        takes::tensor("weight"),
        takes::ints("stride"),
        takes::ints("padding_low"),
        takes::ints("padding_high"),
        takes::ints("dilation"),
        takes::ints("base_dilation"),
        takes::int("groups"),
    ],
    infer,
    gradient: Each(&[of_input, of_weight]),
    saves: FIRST | SECOND,
    sharding,
    localize: Some(localize),
    samples,
    batching: Batching::Rule(batching::products::convolution),
    ..Operation::base().with(facts(Lower, Contraction(Filter), Computed))
};

/// The windows along the spatial axes; none where the lists are not of one length, or a step is
/// below 0.
pub fn windows(attributes: &Attributes) -> Option<SmallVec<[Window; MAX_AXES]>> {
    let [stride, low, high, dilation, base] = [0, 1, 2, 3, 4].map(|list| ints(attributes, list));
    let axes = stride.len();
    if [low, high, dilation, base].iter().any(|list| list.len() != axes) {
        return None;
    }
    (0..axes)
        .map(|axis| {
            Some(Window {
                stride: stride[axis].try_into().ok()?,
                padding_low: low[axis].try_into().ok()?,
                padding_high: high[axis].try_into().ok()?,
                dilation: dilation[axis].try_into().ok()?,
                base_dilation: base[axis].try_into().ok()?,
            })
        })
        .collect()
}

/// The attributes that say so.
fn attributes(windows: &[Window], groups: i64) -> Attributes {
    let list = |of: &dyn Fn(&Window) -> i64| {
        Attribute::ints(&windows.iter().map(of).collect::<SmallVec<[i64; MAX_AXES]>>())
    };
    smallvec![
        list(&|window| window.stride as i64),
        list(&|window| window.padding_low as i64),
        list(&|window| window.padding_high as i64),
        list(&|window| window.dilation as i64),
        list(&|window| window.base_dilation as i64),
        Attribute::Int(groups),
    ]
}

fn infer(call: &Call) -> Result<Meta> {
    let (input, weight) = (call.tensor(0)?, call.tensor(1)?);
    if input.dtype != weight.dtype || input.dtype == DType::Bool {
        let expected = "numbers, of one dtype in input and weight";
        let operation = call.operation;
        return Err(Error::DTypeMismatch { operation, given: weight.dtype, expected });
    }
    let bad = |attribute, given: String, expected| Error::BadAttribute {
        operation: call.operation,
        attribute,
        given,
        expected,
    };
    let windows = windows(call.attributes).ok_or_else(|| {
        let given = format!("{:?}", call.attributes);
        bad("stride", given, "lists of one length, with steps of 1 or more")
    })?;
    let axes = windows.len();
    if !(1..=MAX_AXES).contains(&axes) {
        return Err(bad("stride", format!("{axes} steps"), "one for each of 1 to 3 spatial axes"));
    }
    for given in [input.shape, weight.shape] {
        if given.rank() != axes + 2 {
            let expected = format!("{} axes", axes + 2);
            return Err(Error::ShapeMismatch { operation: call.operation, given, expected });
        }
    }
    let groups = usize::try_from(call.int(GROUPS)).unwrap_or(0);
    let channels = weight.shape[1].checked_mul(groups);
    if groups == 0 || !weight.shape[0].is_multiple_of(groups) || channels != Some(input.shape[1]) {
        let expected = format!("outputs for {groups} groups of the input's {}", input.shape[1]);
        let operation = call.operation;
        return Err(Error::ShapeMismatch { operation, given: weight.shape, expected });
    }
    let mut dims: SmallVec<[usize; 5]> = smallvec![input.shape[0], weight.shape[0]];
    for (axis, window) in windows.iter().enumerate() {
        let output = window.output(input.shape[axis + 2], weight.shape[axis + 2]);
        dims.push(output.ok_or_else(|| {
            bad("stride", format!("{window:?}"), "steps of 1 or more, and countable lengths")
        })?);
    }
    Ok(Meta::new(input.dtype, Shape::new(&dims)?))
}

/// The windows of a gradient.
fn windows_of(
    s: &Saved,
    of: impl Fn(&Window, usize, usize) -> Window,
) -> SmallVec<[Window; MAX_AXES]> {
    let windows = windows(s.attributes).expect("checked by infer");
    let (input, weight) = (s.shape(0), s.shape(1));
    let lengths = input[2..].iter().zip(&weight[2..]);
    windows.iter().zip(lengths).map(|(window, (n, k))| of(window, *n, *k)).collect()
}

/// Axis `along`, which has `groups` times something, and the other of the first two exchanged
/// within each group: of axis 0 (groups * a, b) becomes (groups * b, a), of axis 1 (a, groups * b)
/// becomes (b, groups * a).
fn exchanged(g: &mut dyn Graph, x: Var, groups: usize, along: usize) -> Var {
    let shape = g.shape(x);
    let rest = 2..shape.rank();
    if groups == 1 {
        let order: SmallVec<[i64; 8]> = [1, 0].into_iter().chain(rest.map(|a| a as i64)).collect();
        return g.permute(x, &order);
    }
    let inner = shape[along] / groups;
    let (split, order, first) = if along == 0 {
        ([groups, inner, shape[1]], [0, 2, 1], [groups * shape[1], inner])
    } else {
        ([shape[0], groups, inner], [2, 1, 0], [inner, groups * shape[0]])
    };
    let dims = |first: &[usize]| {
        let dims: SmallVec<[usize; 8]> = first.iter().chain(&shape[2..]).copied().collect();
        Shape::new(&dims).expect("as many elements as before")
    };
    let order: SmallVec<[i64; 8]> =
        order.into_iter().chain(rest.map(|axis| axis as i64 + 1)).collect();
    let grouped = g.reshape(x, dims(&split));
    let turned = g.permute(grouped, &order);
    g.reshape(turned, dims(&first))
}

/// The output's gradient with the kernels in reverse, inputs and outputs exchanged.
fn of_input(g: &mut dyn Graph, s: &Saved) -> Var {
    let groups = s.int(GROUPS);
    let mut weight = exchanged(g, s.tensor(1), groups as usize, 0);
    let kernel = s.shape(1);
    let long: SmallVec<[i64; 3]> =
        (2..kernel.rank()).filter(|&axis| kernel[axis] > 1).map(|axis| axis as i64).collect();
    if !long.is_empty() {
        weight = g.emit(&FLIP, &[weight.into()], smallvec![Attribute::ints(&long)]);
    }
    let windows = windows_of(s, Window::for_input);
    g.emit(&CONV_GENERAL, &[s.grad.into(), weight.into()], attributes(&windows, groups))
}

/// The input with the output's gradient as kernels, batch and channels exchanged.
fn of_weight(g: &mut dyn Graph, s: &Saved) -> Var {
    let groups = s.int(GROUPS);
    let input = exchanged(g, s.tensor(0), groups as usize, 1);
    let grad = exchanged(g, s.grad, 1, 0);
    let windows = windows_of(s, Window::for_weight);
    let operands = [input.into(), grad.into()];
    let result = g.emit(&CONV_GENERAL, &operands, attributes(&windows, groups));
    exchanged(g, result, 1, 0)
}

/// `n c t, o c k -> n o u`; the groups are a factor instead of channels and outputs.
fn sharding(call: &Call, output: &Meta) -> Rule {
    let mut rule = Rule::whole(call, output);
    let (input, weight) = (shape_of(call, 0), shape_of(call, 1));
    if input[0] > 1 {
        rule.share(&[(0, 0)], Some(0));
    }
    let groups = call.int(GROUPS) as usize;
    let (channels, outputs) = (weight[1], weight[0] / groups);
    if groups > 1 {
        if channels > 0 && outputs > 0 {
            let factor = rule.factors();
            rule.operands[0][1] = Some(FactorRun { factor, inner: channels });
            rule.operands[1][0] = Some(FactorRun { factor, inner: outputs });
            rule.output[1] = Some(FactorRun { factor, inner: outputs });
        }
        return rule.linear_in(&[0b01, 0b10]);
    }
    if outputs > 1 {
        rule.share(&[(1, 0)], Some(1));
    }
    if channels > 1 {
        rule.reduce(&[(0, 1), (1, 1)], Reduction::Sum);
    }
    rule.linear_in(&[0b01, 0b10])
}

/// A part has its share of the groups.
fn localize(attributes: &Attributes, part: &LocalPart) -> Attributes {
    let mut attributes = attributes.clone();
    let channels = |operand: usize| part.operands[operand].as_ref().map(|block| block.shape[1]);
    if let (Some(all), Some(each)) = (channels(0), channels(1))
        && each > 0
    {
        attributes[GROUPS] = Attribute::Int((all / each) as i64);
    }
    attributes
}

fn samples() -> Vec<Sample> {
    let window = |stride, low, high, dilation, base_dilation| Window {
        stride,
        padding_low: low,
        padding_high: high,
        dilation,
        base_dilation,
    };
    let plain = Window::default();
    let cases: [(&[usize], &[usize], &[Window], i64); 7] = [
        (&[2, 3, 5], &[4, 3, 2], &[plain], 1),
        (&[2, 4, 7], &[6, 2, 3], &[window(2, 1, 2, 2, 1)], 2),
        (&[3, 4, 4], &[4, 1, 3], &[window(1, 2, 1, 1, 2)], 4),
        (&[2, 2, 4, 5], &[3, 2, 3, 2], &[window(1, 1, 1, 1, 1), plain], 1),
        (&[1, 2, 5, 6], &[2, 2, 2, 2], &[window(2, -1, 0, 1, 1), window(1, 0, 1, 2, 3)], 1),
        (&[2, 2, 3, 3, 2], &[2, 1, 2, 1, 2], &[plain, window(2, 1, 0, 1, 1), plain], 2),
        (&[0, 2, 4], &[3, 2, 2], &[plain], 1),
    ];
    let dtypes = [DType::F32, DType::F64, DType::F16, DType::BF16, DType::I64, DType::I32];
    let mut samples = Vec::new();
    for dtype in dtypes {
        for (input, weight, windows, groups) in cases {
            let operands = [tensor(dtype, input, -2.0, 2.0), tensor(dtype, weight, -2.0, 2.0)];
            samples.push(sample(&operands, &attributes(windows, groups)));
        }
    }
    samples
}
