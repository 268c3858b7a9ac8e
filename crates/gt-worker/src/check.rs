//! Compares the outputs of two ways of computing a plan.

use gt_ir::{DType, TensorData};

/// How many leading bytes of an output are compared.
const LOOKED_AT: usize = 64 << 20;

/// Describes how a value differs from the expected one; `None` if only by rounding, as compilers
/// may reorder additions.
pub fn difference(given: &TensorData, expected: &TensorData) -> Option<String> {
    if (given.dtype, given.shape) != (expected.dtype, expected.shape) {
        return Some(format!(
            "{} {} instead of {} {}",
            given.dtype, given.shape, expected.dtype, expected.shape
        ));
    }
    let count = given.shape.numel().min(LOOKED_AT / given.dtype.size());
    let pairs = || {
        (0..count).map(|index| (given.element(index).as_f64(), expected.element(index).as_f64()))
    };
    if !given.dtype.is_float() {
        // Rounding to integers, or an argmax of almost equal numbers, may differ in a few elements.
        let others = pairs().filter(|(a, b)| a != b).count();
        return (others * 100 > count).then(|| format!("{others} of {count} elements differ"));
    }
    let largest = pairs().map(|(_, b)| b.abs()).filter(|b| b.is_finite()).fold(0.0, f64::max);
    let limit = tolerance(given.dtype) * largest.max(1e-30);
    let apart = |(a, b): &(f64, f64)| {
        let both_nan = a.is_nan() && b.is_nan();
        !both_nan && a != b && (a - b).abs().partial_cmp(&limit) != Some(std::cmp::Ordering::Less)
    };
    let (a, b) = pairs().find(apart)?;
    Some(format!("{a} instead of {b}, where the largest is {largest}"))
}

/// The largest difference allowed, relative to the largest element.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 2e-2,
        DType::BF16 => 1e-1,
        DType::F32 => 2e-3,
        _ => 1e-9,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gt_ir::{Scalar, Shape};

    fn data(dtype: DType, values: &[f64]) -> TensorData {
        let mut bytes = Vec::new();
        values.iter().for_each(|&x| TensorData::encode(dtype, Scalar::Float(x), &mut bytes));
        TensorData::new(dtype, Shape::new(&[values.len()]).unwrap(), bytes.into()).unwrap()
    }

    #[test]
    fn rounding_is_no_difference() {
        let a = data(DType::F32, &[1.0, 200.0, f64::NAN, f64::INFINITY, 0.0]);
        let b = data(DType::F32, &[1.1, 200.1, f64::NAN, f64::INFINITY, 1e-5]);
        assert_eq!(difference(&a, &b), None);
        assert_eq!(difference(&a, &a), None);
    }

    #[test]
    fn other_numbers_are() {
        let a = data(DType::F32, &[1.0, 2.0]);
        for other in [[1.0, 2.1], [1.0, f64::NAN], [f64::INFINITY, 2.0]] {
            assert!(difference(&data(DType::F32, &other), &a).is_some(), "{other:?}");
            assert!(difference(&a, &data(DType::F32, &other)).is_some(), "{other:?}");
        }
        assert!(
            difference(&data(DType::I64, &[1.0, 3.0]), &data(DType::I64, &[1.0, 2.0])).is_some()
        );
        assert!(difference(&data(DType::F64, &[1.0, 2.0]), &a).is_some());
    }
}
