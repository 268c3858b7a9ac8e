//! Discrete Fourier transforms along one axis: sums of x[j] exp(-2 pi i j k / n), or with the other
//! sign for the inverse, times a scale.

use super::sample::{sample, tensor};
use crate::batching::Batching;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::instruction::Attribute;
use crate::operation::Defaults;
use crate::operation::Gradient::Each;
use crate::operation::facts::says::*;
use crate::operation::{Call, ComplexRule, Family, Graph, Meta, Operation, Sample, Var, takes};
use crate::shape::axis;
use crate::sharding::along_other_axes;
use smallvec::smallvec;

const TRANSFORM: Defaults = Defaults(Operation {
    family: Family::Reduce,
    complex: ComplexRule::OwnRule,
    sharding: |call, output| along_other_axes(call, output).linear_in(&[1]),
    batching: Batching::Leading,
    ..Operation::base().0
});

pub static FFT_C2C: Operation = Operation {
    id: 250,
    name: "_fft_c2c",
    doc: "the Fourier transform of complex numbers along an axis",
    parameters: &[
        takes::tensor("input"),
        takes::dim("dim"),
        takes::flag("inverse"),
        takes::float("scale"),
    ],
    infer: |call| {
        let (meta, _) = line(call, true)?;
        Ok(meta)
    },
    gradient: Each(&[|g, s| c2c(g, s.grad, s.int(0), !s.bool(1), s.float(2))]),
    samples: || {
        let flags =
            |dim, inverse| [Attribute::Int(dim), Attribute::Bool(inverse), Attribute::Float(0.5)];
        samples(&[DType::C64, DType::C128], &[&flags(0, false), &flags(-1, true)])
    },
    ..TRANSFORM.with(facts(Unchanged, Fourier { scale: 2 }, Computed))
};

pub static FFT_R2C: Operation = Operation {
    id: 251,
    name: "_fft_r2c",
    doc: "the first n / 2 + 1 numbers of the Fourier transform of n real ones along an axis: the others are conjugates of these",
    parameters: &[takes::tensor("input"), takes::dim("dim"), takes::float("scale")],
    infer: |call| {
        let (meta, along) = line(call, false)?;
        let half = meta.shape[along] / 2 + 1;
        Ok(Meta::new(meta.dtype.to_complex(), meta.shape.with(along, half)))
    },
    gradient: Each(&[|g, s| {
        // The numbers that are left out have no part in it: zeros stand for them.
        let dims: Vec<i64> = s.output_meta.shape.iter().map(|&dim| dim as i64).collect();
        let whole = g.full(s.shape(0), s.output_meta.dtype, 0i64);
        let whole =
            g.slice_assign(whole, s.grad, &vec![0; dims.len()], &dims, &vec![1; dims.len()]);
        let grad = c2c(g, whole, s.int(0), true, s.float(1));
        g.cast(grad, s.meta(0).dtype)
    }]),
    samples: || {
        let along = |dim| [Attribute::Int(dim), Attribute::Float(0.5)];
        samples(&[DType::F32, DType::F64], &[&along(0), &along(-1)])
    },
    ..TRANSFORM.with(facts(Unchanged, Fourier { scale: 1 }, Computed))
};

pub static FFT_C2R: Operation = Operation {
    id: 252,
    name: "_fft_c2r",
    doc: "the inverse Fourier transform to n real numbers along an axis, of the first n / 2 + 1 complex ones, whose conjugates are the others",
    parameters: &[
        takes::tensor("input"),
        takes::dim("dim"),
        takes::int("n"),
        takes::float("scale"),
    ],
    infer: |call| {
        let (meta, along) = line(call, true)?;
        match usize::try_from(call.int(1)) {
            Ok(n) if n > 0 && n / 2 + 1 == meta.shape[along] => {
                Ok(Meta::new(meta.dtype.to_real(), meta.shape.with(along, n)))
            }
            _ => Err(Error::BadAttribute {
                operation: call.operation,
                attribute: "n",
                given: call.int(1).to_string(),
                expected: "a length n of 1 or more, of which the input has n / 2 + 1 numbers",
            }),
        }
    },
    gradient: Each(&[|g, s| {
        // All but the first, and the last of an even n, stand for two numbers.
        let attributes = smallvec![Attribute::Int(s.int(0)), Attribute::Float(s.float(2))];
        let grad = g.emit(&FFT_R2C, &[s.grad.into()], attributes);
        let along = axis(s.int(0), s.shape(0).rank(), "_fft_c2r").expect("checked by infer");
        let rank = s.shape(0).rank();
        let (mut starts, steps) = (vec![0; rank], vec![1; rank]);
        let mut sizes: Vec<i64> = s.shape(0).iter().map(|&dim| dim as i64).collect();
        (starts[along], sizes[along]) = (1, s.int(1) - sizes[along]);
        let twice = g.slice(grad, &starts, &sizes, &steps);
        let twice = g.mul(twice, 2.0);
        g.slice_assign(grad, twice, &starts, &sizes, &steps)
    }]),
    samples: || {
        let back = |dim, n| [Attribute::Int(dim), Attribute::Int(n), Attribute::Float(0.5)];
        samples(&[DType::C64, DType::C128], &[&back(0, 4), &back(0, 5), &back(-1, 6)])
    },
    ..TRANSFORM.with(facts(Unchanged, Fourier { scale: 2 }, Computed))
};

fn c2c(g: &mut dyn Graph, x: Var, dim: i64, inverse: bool, scale: f64) -> Var {
    let attributes =
        smallvec![Attribute::Int(dim), Attribute::Bool(inverse), Attribute::Float(scale)];
    g.emit(&FFT_C2C, &[x.into()], attributes)
}

/// The input, and its axis; an error unless that has at least one number, complex or real.
fn line(call: &Call, complex: bool) -> Result<(Meta, usize)> {
    let meta = call.tensor(0)?;
    if !(if complex {
        meta.dtype.is_complex()
    } else {
        matches!(meta.dtype, DType::F32 | DType::F64)
    }) {
        return Err(Error::DTypeMismatch {
            operation: call.operation,
            given: meta.dtype,
            expected: if complex { "a complex dtype" } else { "float32 or float64" },
        });
    }
    let along = axis(call.int(0), meta.shape.rank(), call.operation)?;
    if meta.shape.rank() == 0 || meta.shape[along] == 0 {
        return Err(Error::ShapeMismatch {
            operation: call.operation,
            given: meta.shape,
            expected: "at least one number along the axis".to_string(),
        });
    }
    Ok((meta, along))
}

fn samples(dtypes: &[DType], attributes: &[&[Attribute]]) -> Vec<Sample> {
    let mut samples = Vec::new();
    for &dtype in dtypes {
        for &of in attributes {
            samples.push(sample(&[tensor(dtype, &[3, 4], -2.0, 2.0)], of));
        }
    }
    samples
}
