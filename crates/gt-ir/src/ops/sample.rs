//! Builders for the samples that tests run on every operation.

use smallvec::SmallVec;

use crate::dtype::DType;
use crate::instruction::{Attribute, Operand};
use crate::operation::{Meta, Sample, SampleOperand};
use crate::scalar::Scalar;
use crate::shape::Shape;

/// A tensor operand of `dims` with values from `low..high`.
pub fn tensor(dtype: DType, dims: &[usize], low: f64, high: f64) -> SampleOperand {
    let shape = Shape::new(dims).expect("a sample's shape is small");
    SampleOperand::Tensor { meta: Meta::new(dtype, shape), low, high }
}

pub fn number(value: impl Into<Scalar>) -> SampleOperand {
    SampleOperand::Scalar(value.into())
}

pub fn sample(operands: &[SampleOperand], attributes: &[Attribute]) -> Sample {
    Sample {
        operands: SmallVec::from_slice(operands),
        attributes: attributes.iter().cloned().collect(),
    }
}

/// The operands' metas, as inference takes them.
pub fn metas(sample: &Sample) -> Vec<Operand<Meta>> {
    sample
        .operands
        .iter()
        .map(|operand| match operand {
            SampleOperand::Tensor { meta, .. } => Operand::Tensor(*meta),
            SampleOperand::Scalar(scalar) => Operand::Scalar(*scalar),
        })
        .collect()
}

/// Shapes to test elementwise operations on: plain, scalar, empty, and several SIMD blocks long.
const SHAPES: [&[usize]; 4] = [&[2, 3], &[], &[0, 3], &[3, 37]];

/// One operand of each shape and dtype, values from `low..high`.
pub fn unary(dtypes: &[DType], low: f64, high: f64) -> Vec<Sample> {
    let mut samples = Vec::new();
    for &dtype in dtypes {
        for dims in SHAPES {
            samples.push(sample(&[tensor(dtype, dims, low, high)], &[]));
        }
    }
    samples
}

/// Two operands: of equal shapes, broadcast both ways, with a number on either side, of two dtypes.
pub fn binary(dtypes: &[DType], left: (f64, f64), right: (f64, f64)) -> Vec<Sample> {
    const PAIRS: [(&[usize], &[usize]); 6] = [
        (&[2, 3], &[2, 3]),
        (&[3, 1], &[1, 4]),
        (&[], &[5]),
        (&[0, 3], &[1, 3]),
        (&[2, 1, 3], &[4, 1]),
        (&[3, 37], &[37]),
    ];
    let mut samples = Vec::new();
    for &dtype in dtypes {
        for (a, b) in PAIRS {
            let operands = [tensor(dtype, a, left.0, left.1), tensor(dtype, b, right.0, right.1)];
            samples.push(sample(&operands, &[]));
        }
        let number_right: Scalar =
            if dtype.is_float() { Scalar::Float(1.5) } else { Scalar::Int(2) };
        samples.push(sample(
            &[tensor(dtype, &[2, 3], left.0, left.1), SampleOperand::Scalar(number_right)],
            &[],
        ));
        samples.push(sample(
            &[SampleOperand::Scalar(number_right), tensor(dtype, &[4], right.0, right.1)],
            &[],
        ));
    }
    for pair in dtypes.windows(2) {
        samples.push(sample(
            &[tensor(pair[0], &[2, 3], left.0, left.1), tensor(pair[1], &[3], right.0, right.1)],
            &[],
        ));
    }
    samples
}
