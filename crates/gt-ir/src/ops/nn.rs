//! Composite operations of neural networks: one instruction each, so that an engine may fuse them;
//! expanded for engines that do not lower them.

use super::gradients::{GELU_BACKWARD, LOG_SOFTMAX_BACKWARD, SOFTMAX_BACKWARD};
use super::infer::{elementwise_float, to_float};
use super::reduce::OVER;
use super::sample::{sample, tensor, unary};
use crate::batching::Batching;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::instruction::{Attribute, Attributes, Operand};
use crate::operation::Body::Composite;
use crate::operation::Defaults;
use crate::operation::Gradient::Each;
use crate::operation::facts::says::*;
use crate::operation::{
    Call, ComplexRule, Default, FIRST, Family, Graph, Meta, OUTPUT, Operation, Sample, Var, face,
    int, ints, takes,
};
use crate::shape::{axes, axis};
use crate::sharding;

pub(super) const FLOATS: &[DType] = &[DType::F32, DType::F64, DType::F16, DType::BF16];

fn the_tensor(operands: &[Operand<Var>]) -> Var {
    *operands[0].tensor().expect("a tensor operand")
}

/// Operand `index`, a tensor of floats.
pub(super) fn float_tensor(call: &Call, index: usize) -> Result<Meta> {
    let meta = call.tensor(index)?;
    if meta.dtype.is_float() {
        return Ok(meta);
    }
    let expected = "a float dtype; cast with .to(gt.float32)";
    Err(Error::DTypeMismatch { operation: call.operation, given: meta.dtype, expected })
}

const ALONG: Defaults = Defaults(Operation {
    family: Family::Reduce,
    parameters: &[takes::tensor("input"), takes::dim("dim")],
    face: face::BOTH | face::FUNCTIONAL,
    infer: |call| {
        let meta = float_tensor(call, 0)?;
        axis(call.int(0), meta.shape.rank(), call.operation)?;
        Ok(meta)
    },
    sharding: sharding::along_other_axes,
    samples: || {
        let mut samples: Vec<Sample> = Vec::new();
        for &dtype in FLOATS {
            for axis in [0, -1] {
                let x = tensor(dtype, &[3, 4], -3.0, 3.0);
                samples.push(sample(&[x], &[Attribute::Int(axis)]));
            }
        }
        samples.push(sample(&[tensor(DType::F32, &[0, 4], 0.0, 1.0)], &[Attribute::Int(1)]));
        samples.push(sample(&[tensor(DType::F32, &[2, 3, 40], -90.0, 90.0)], &[Attribute::Int(1)]));
        samples
    },
    batching: Batching::Leading,
    ..Operation::base().0
});

/// x minus its largest value along the axis, which keeps exp in range.
fn shifted(g: &mut dyn Graph, x: Var, attributes: &Attributes) -> Var {
    let along = int(attributes, 0);
    let meta = g.meta(x);
    if meta.shape.numel() == 0 || meta.shape.rank() == 0 {
        return x;
    }
    let largest = g.amax(x, &[along], true);
    g.sub(x, largest)
}

/// 16-bit floats as float32, as sums of many elements overflow.
pub(super) fn widened(g: &mut dyn Graph, x: Var) -> (Var, DType) {
    let given = g.meta(x).dtype;
    let dtype = to_float(given);
    let wide = if dtype.size() == 2 { DType::F32 } else { dtype };
    (if wide == given { x } else { g.cast(x, wide) }, dtype)
}

pub static SOFTMAX: Operation = Operation {
    id: 105,
    name: "softmax",
    doc: "exp(x) over its sum along an axis",
    gradient: Each(&[|g, s| {
        let operands = [s.grad.into(), s.output().into()];
        g.emit(&SOFTMAX_BACKWARD, &operands, s.attributes.clone())
    }]),
    saves: OUTPUT,
    body: Composite(|g, operands, attributes| {
        let (x, dtype) = widened(g, the_tensor(operands));
        let small = shifted(g, x, attributes);
        let exp = g.exp(small);
        let total = g.sum(exp, &[int(attributes, 0)], true);
        let share = g.div(exp, total);
        g.cast(share, dtype)
    }),
    ..ALONG.with(facts(Float32, OfBody, Computed))
};

pub static LOG_SOFTMAX: Operation = Operation {
    id: 106,
    name: "log_softmax",
    doc: "the logarithm of softmax, exact where softmax is near 0",
    gradient: Each(&[|g, s| {
        let operands = [s.grad.into(), s.output().into()];
        g.emit(&LOG_SOFTMAX_BACKWARD, &operands, s.attributes.clone())
    }]),
    saves: OUTPUT,
    body: Composite(|g, operands, attributes| {
        let (x, dtype) = widened(g, the_tensor(operands));
        let small = shifted(g, x, attributes);
        let exp = g.exp(small);
        let total = g.sum(exp, &[int(attributes, 0)], true);
        let log = g.log(total);
        let log = g.sub(small, log);
        g.cast(log, dtype)
    }),
    ..ALONG.with(facts(Float32, OfBody, Computed))
};

pub static LOGSUMEXP: Operation = Operation {
    id: 107,
    name: "logsumexp",
    family: Family::Reduce,
    doc: "the logarithm of the sum of exp(x), over axes",
    parameters: OVER,
    face: face::BOTH,
    complex: ComplexRule::Holomorphic,
    infer: |call| {
        let meta = call.tensor(0)?;
        let gone = axes(call.ints(0), meta.shape.rank(), call.operation)?;
        let shape = gone.iter().rev().fold(meta.shape, |shape, &axis| {
            if call.bool(1) { shape.with(axis, 1) } else { shape.without(axis) }
        });
        Ok(Meta::new(to_float(meta.dtype), shape))
    },
    gradient: Each(&[|g, s| {
        let kept = g.restore(s.output(), s.shape(0), s.ints(0), false);
        let difference = g.sub(s.tensor(0), kept);
        let softmax = g.exp(difference);
        let grad = g.restore(s.grad, s.shape(0), s.ints(0), false);
        g.mul(grad, softmax)
    }]),
    saves: FIRST | OUTPUT,
    sharding: sharding::along_kept_axes,
    body: Composite(|g, operands, attributes| {
        let (x, dtype) = widened(g, the_tensor(operands));
        let over = ints(attributes, 0);
        let keepdims = crate::operation::bool(attributes, 1);
        if g.shape(x).numel() == 0 {
            // The sum of nothing is 0, its logarithm -inf.
            let exp = g.exp(x);
            let total = g.sum(exp, over, keepdims);
            let log = g.log(total);
            return g.cast(log, dtype);
        }
        let size = real_part(g, x);
        let largest = g.amax(size, over, true);
        // An infinite maximum would give inf - inf.
        let size = g.abs(largest);
        let finite = g.lt(size, f64::INFINITY);
        let shift = g.select(finite, largest, 0.0);
        let small = g.sub(x, shift);
        let exp = g.exp(small);
        let total = g.sum(exp, over, keepdims);
        let log = g.log(total);
        let shape = g.shape(total);
        let shift = g.reshape(shift, shape);
        let whole = g.add(log, shift);
        g.cast(whole, dtype)
    }),
    samples: || {
        let flags = |axes: &[i64], keep| [Attribute::ints(axes), Attribute::Bool(keep)];
        let mut samples = Vec::new();
        for &dtype in [FLOATS, &[DType::C64, DType::I64]].concat().iter() {
            let x = tensor(dtype, &[3, 4], -3.0, 3.0);
            samples.push(sample(&[x], &flags(&[], false)));
            samples.push(sample(&[x], &flags(&[1], true)));
        }
        samples
    },
    batching: Batching::Leading,
    ..Operation::base().with(facts(Unchanged, OfBody, Computed))
};

/// The real part of complex numbers; real numbers themselves.
fn real_part(g: &mut dyn Graph, x: Var) -> Var {
    let Meta { shape, dtype } = g.meta(x);
    if !dtype.is_complex() {
        return x;
    }
    let parts = g.view_as_real(x);
    let rank = shape.rank() + 1;
    let mut sizes: Vec<i64> = g.shape(parts).iter().map(|&length| length as i64).collect();
    sizes[rank - 1] = 1;
    let real = g.slice(parts, &vec![0; rank], &sizes, &vec![1; rank]);
    g.reshape(real, shape)
}

const ACTIVATION: Defaults = Defaults(Operation {
    family: Family::Unary,
    parameters: &[takes::tensor("input")],
    face: face::ELEMENTWISE | face::FUNCTIONAL,
    infer: elementwise_float,
    sharding: sharding::elementwise,
    batching: Batching::Broadcast,
    ..Operation::base().0
});

/// sqrt(2 / pi) and the cubic factor of the tanh form of gelu (Hendrycks and Gimpel, 2016).
const GELU_SCALE: f64 = 0.797_884_560_802_865_4;
const GELU_CUBE: f64 = 0.044_715;

pub static GELU: Operation = Operation {
    id: 108,
    name: "gelu",
    doc: "x times the normal distribution function of x, exact or in its tanh form",
    parameters: &[
        takes::tensor("input"),
        takes::choice("approximate", &["none", "tanh"]).or(Default::Word("none")),
    ],
    gradient: Each(&[|g, s| {
        let operands = [s.grad.into(), s.tensor(0).into()];
        g.emit(&GELU_BACKWARD, &operands, s.attributes.clone())
    }]),
    saves: FIRST,
    body: Composite(|g, operands, attributes| {
        let x = the_tensor(operands);
        let share = if int(attributes, 0) == 1 {
            let (tanh, _) = gelu_tanh(g, x);
            tanh
        } else {
            let scaled = g.mul(x, std::f64::consts::FRAC_1_SQRT_2);
            g.erf(scaled)
        };
        let above = g.add(share, 1.0);
        let half = g.mul(x, 0.5);
        g.mul(half, above)
    }),
    samples: || {
        let mut samples = Vec::new();
        for &dtype in FLOATS {
            for form in [0, 1] {
                samples.push(sample(&[tensor(dtype, &[3, 5], -3.0, 3.0)], &[Attribute::Int(form)]));
            }
        }
        samples
    },
    ..ACTIVATION.with(facts(Unchanged, OfBody, Computed))
};

/// tanh(scale (x + cube x^3)), and the derivative of its argument.
pub(super) fn gelu_tanh(g: &mut dyn Graph, x: Var) -> (Var, Var) {
    let square = g.mul(x, x);
    let cubic = g.mul(square, GELU_CUBE);
    let factor = g.add(cubic, 1.0);
    let inner = g.mul(x, factor);
    let argument = g.mul(inner, GELU_SCALE);
    let tanh = g.tanh(argument);
    let slope = g.mul(square, 3.0 * GELU_CUBE * GELU_SCALE);
    (tanh, g.add(slope, GELU_SCALE))
}

/// The second derivative of the argument of [`gelu_tanh`].
pub(super) fn gelu_argument_bend(g: &mut dyn Graph, x: Var) -> Var {
    g.mul(x, 6.0 * GELU_CUBE * GELU_SCALE)
}

/// The derivative of gelu in one of its forms.
pub(super) fn gelu_slope(g: &mut dyn Graph, x: Var, form: i64) -> Var {
    if form == 1 { gelu_tanh_slope(g, x) } else { gelu_exact_slope(g, x) }
}

fn gelu_tanh_slope(g: &mut dyn Graph, x: Var) -> Var {
    let (tanh, inner_slope) = gelu_tanh(g, x);
    let above = g.add(tanh, 1.0);
    let first = g.mul(above, 0.5);
    let square = g.mul(tanh, tanh);
    let rest = g.sub(1.0, square);
    let half = g.mul(x, 0.5);
    let scaled = g.mul(half, rest);
    let second = g.mul(scaled, inner_slope);
    g.add(first, second)
}

/// The normal distribution function plus x times its density.
fn gelu_exact_slope(g: &mut dyn Graph, x: Var) -> Var {
    let scaled = g.mul(x, std::f64::consts::FRAC_1_SQRT_2);
    let erf = g.erf(scaled);
    let above = g.add(erf, 1.0);
    let distribution = g.mul(above, 0.5);
    let square = g.mul(x, x);
    let exponent = g.mul(square, -0.5);
    let bell = g.exp(exponent);
    let density = g.mul(bell, GELU_SCALE * 0.5);
    let weighted = g.mul(x, density);
    g.add(distribution, weighted)
}

pub static SILU: Operation = Operation {
    id: 109,
    name: "silu",
    doc: "x sigmoid(x)",
    complex: ComplexRule::Holomorphic,
    gradient: Each(&[|g, s| {
        let x = s.tensor(0);
        let sigmoid = g.sigmoid(x);
        let rest = g.sub(1.0, sigmoid);
        let weighted = g.mul(x, rest);
        let factor = g.add(weighted, 1.0);
        let slope = g.mul(sigmoid, factor);
        g.mul(s.grad, slope)
    }]),
    saves: FIRST,
    body: Composite(|g, operands, _| {
        let x = the_tensor(operands);
        let sigmoid = g.sigmoid(x);
        g.mul(x, sigmoid)
    }),
    samples: || unary(FLOATS, -4.0, 4.0),
    ..ACTIVATION.with(facts(Unchanged, OfBody, Computed))
};

pub static SOFTPLUS: Operation = Operation {
    id: 110,
    name: "softplus",
    doc: "log(1 + exp(x)), without overflow",
    gradient: Each(&[|g, s| {
        let slope = g.sigmoid(s.tensor(0));
        g.mul(s.grad, slope)
    }]),
    saves: FIRST,
    body: Composite(|g, operands, _| {
        // max(x, 0) + log1p(exp(-|x|))
        let x = the_tensor(operands);
        let dtype = to_float(g.meta(x).dtype);
        let x = g.cast(x, dtype);
        let size = g.abs(x);
        let minus = g.neg(size);
        let exp = g.exp(minus);
        let log = g.log1p(exp);
        let positive = g.maximum(x, 0i64);
        g.add(positive, log)
    }),
    samples: || unary(FLOATS, -4.0, 4.0),
    ..ACTIVATION.with(facts(Float32, OfBody, Computed))
};
