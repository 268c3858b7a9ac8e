//! Creation of tensors: constants, sequences and random numbers.

use gt_ir::philox::RandomStream;
use gt_ir::{Attributes, DType, Meta};

use super::{Array, positions};

/// Returns the result of an operation that creates a tensor from numbers.
pub fn created(name: &str, x: &[Array], attributes: &Attributes, output: Meta) -> Option<Vec<f64>> {
    let n = output.shape.numel();
    let number = |index: usize| x[index].values[0];
    let stream = || RandomStream::new(number(0) as u64, number(1) as u64);
    // The position of an element in the whole tensor, of which this may be a part.
    let place = |position: &[usize]| match attributes.get(2) {
        Some(gt_ir::Attribute::Ints(part)) if !part.is_empty() => {
            let (starts, whole) = part.split_at(part.len() / 2);
            position.iter().zip(starts).zip(whole).fold(0, |place, ((&at, &start), &length)| {
                place * length as u64 + at as u64 + start as u64
            })
        }
        _ => position
            .iter()
            .zip(output.shape.dims())
            .fold(0, |place, (&at, &length)| place * length as u64 + at as u64),
    };
    let places: Vec<u64> = positions(&output.shape).iter().map(|at| place(at)).collect();
    let indices = places.into_iter();
    Some(match name {
        "full" => vec![number(0); n],
        "arange" => (0..n).map(|i| number(0) + i as f64 * number(1)).collect(),
        "linspace" if n == 1 => vec![number(0)],
        "linspace" => {
            let step = (number(1) - number(0)) / (n.max(2) - 1) as f64;
            (0..n).map(|i| number(0) + i as f64 * step).collect()
        }
        "eye" => {
            positions(&output.shape).iter().map(|at| f64::from(u8::from(at[0] == at[1]))).collect()
        }
        "rand" if output.dtype == DType::F64 => indices.map(|i| stream().uniform_f64(i)).collect(),
        "rand" => indices.map(|i| f64::from(stream().uniform_f32(i))).collect(),
        "randn" if output.dtype == DType::F64 => indices.map(|i| stream().normal_f64(i)).collect(),
        "randn" => indices.map(|i| f64::from(stream().normal_f32(i))).collect(),
        "randint" => indices
            .map(|i| stream().integer(i, number(2) as i64, number(3) as i64) as f64)
            .collect(),
        _ => return None,
    })
}
