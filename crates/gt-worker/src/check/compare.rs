//! Compares an output element by element with what is expected.

use gt_ir::{DType, TensorData};

use super::terms::tiny;
use crate::mismatch::Difference;

/// How much more than its bound a difference may be: the analysis itself is rounded, and leaves
/// out products of small numbers.
const SLACK: f64 = 2.0;

/// How far the elements of an output may be from the expected ones.
#[derive(Default)]
pub struct Allowed {
    /// For each element, as float64; `None` for not at all.
    pub bounds: Option<TensorData>,
    /// Of indices of the largest or in order: what was compared to find them.
    pub ties: Option<Ties>,
}

/// The values among which an index chooses, in float64, with their bounds.
pub struct Ties {
    pub values: TensorData,
    pub bounds: TensorData,
    /// The axis along which it counts; `None` for the flattened tensor.
    pub axis: Option<usize>,
}

/// Finds what differs by more than is allowed; the two have the same dtype and shape.
///
/// Infinities and NaN are to be in the same places, unless the bound is infinite. The sign of a
/// zero counts only where the comparison is bit for bit: with `allowed` of `None`. There, too, any
/// NaN is as good as another.
pub fn difference(
    given: &TensorData,
    expected: &TensorData,
    allowed: Option<&Allowed>,
) -> Option<Difference> {
    if given.bytes == expected.bytes {
        return None;
    }
    let (elements, size) = (given.shape.numel(), given.dtype.size());
    let least = if allowed.is_some() { tiny(given.dtype) } else { 0.0 };
    let bound = |index: usize| {
        let bounds = allowed.and_then(|allowed| allowed.bounds.as_ref());
        bounds.map_or(0.0, |bounds| bounds.element(index).as_f64() * SLACK) + least
    };
    let is_wrong = |&index: &usize| {
        let bytes = index * size..(index + 1) * size;
        if given.bytes[bytes.clone()] == expected.bytes[bytes] {
            return false;
        }
        let Some(allowed) = allowed else {
            return !(is_nan(given, index) && is_nan(expected, index));
        };
        match &allowed.ties {
            Some(ties) => !ties.allow(given, expected, index),
            None => !is_near(given, expected, index, bound(index)),
        }
    };
    let mut wrong = (0..elements).filter(is_wrong);
    let first = wrong.next()?;
    Some(Difference {
        index: position(given.shape.dims(), first),
        given: shown(given, first),
        expected: shown(expected, first),
        bound: bound(first),
        count: 1 + wrong.count(),
        elements,
    })
}

fn is_nan(data: &TensorData, index: usize) -> bool {
    let (real, imaginary) = data.complex(index);
    real.is_nan() || imaginary.is_nan()
}

fn is_near(given: &TensorData, expected: &TensorData, index: usize, bound: f64) -> bool {
    if bound == f64::INFINITY || is_nan(given, index) && is_nan(expected, index) {
        return true;
    }
    if !given.dtype.is_complex() && given.dtype.is_exact() {
        // As integers: float64 does not hold all of int64.
        let (a, b) = (given.element(index).as_i64(), expected.element(index).as_i64());
        return (i128::from(a) - i128::from(b)).unsigned_abs() as f64 <= bound;
    }
    let (a, b) = (given.complex(index), expected.complex(index));
    a == b || (a.0 - b.0).hypot(a.1 - b.1) <= bound
}

impl Ties {
    /// Whether the values at both indices are so near that either may be chosen.
    fn allow(&self, given: &TensorData, expected: &TensorData, index: usize) -> bool {
        let shape = self.values.shape;
        let place = |chosen: i64| {
            let chosen = usize::try_from(chosen).ok()?;
            let Some(axis) = self.axis else { return (chosen < shape.numel()).then_some(chosen) };
            if shape.rank() == 0 {
                return (chosen == 0).then_some(0);
            }
            if chosen >= shape[axis] {
                return None;
            }
            // The output has the operand's other axes, and maybe this one.
            let inner: usize = shape[axis + 1..].iter().product();
            let others: usize = shape.numel() / shape[axis].max(1);
            let along = given.shape.numel() / others.max(1);
            let (row, column) = (index / (inner * along), index % inner);
            Some((row * shape[axis] + chosen) * inner + column)
        };
        let places = [given, expected].map(|data| place(data.element(index).as_i64()));
        let [Some(a), Some(b)] = places else { return false };
        let value = |at: usize| self.values.element(at).as_f64();
        let bound = |at: usize| self.bounds.element(at).as_f64();
        let both = bound(a) + bound(b);
        let (x, y) = (value(a), value(b));
        x == y || both == f64::INFINITY || x.is_nan() && y.is_nan() || (x - y).abs() <= SLACK * both
    }
}

fn position(dims: &[usize], mut index: usize) -> Vec<usize> {
    let mut position = vec![0; dims.len()];
    for (axis, &dim) in dims.iter().enumerate().rev() {
        position[axis] = index % dim;
        index /= dim;
    }
    position
}

fn shown(data: &TensorData, index: usize) -> String {
    match data.dtype {
        DType::C64 | DType::C128 => {
            let (real, imaginary) = data.complex(index);
            format!("{real}{imaginary:+}j")
        }
        _ => data.element(index).to_string(),
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

    fn within(bounds: &[f64]) -> Allowed {
        Allowed { bounds: Some(data(DType::F64, bounds)), ties: None }
    }

    #[test]
    fn each_element_has_a_bound_of_its_own() {
        let expected = data(DType::F32, &[1e6, 1.0, f64::NAN, f64::INFINITY, 0.0]);
        let near = data(DType::F32, &[1e6 + 1.0, 1.0, f64::NAN, f64::INFINITY, -0.0]);
        let allowed = within(&[1.0, 1e-6, 0.0, 0.0, 0.0]);
        assert_eq!(difference(&near, &expected, Some(&allowed)), None);
        let other = data(DType::F32, &[1e6, 1.001, f64::NAN, f64::INFINITY, 0.0]);
        let found = difference(&other, &expected, Some(&allowed)).unwrap();
        assert_eq!((found.index, found.count), (vec![1], 1));
        let strict = difference(&near, &expected, None).unwrap();
        assert_eq!((strict.index, strict.count), (vec![0], 2));
    }

    #[test]
    fn infinities_and_nan_are_in_the_same_places() {
        let expected = data(DType::F32, &[1.0, 2.0]);
        let allowed = within(&[0.5, 0.5]);
        for other in [[1.0, f64::NAN], [f64::INFINITY, 2.0]] {
            let other = data(DType::F32, &other);
            assert!(difference(&other, &expected, Some(&allowed)).is_some());
            assert!(difference(&expected, &other, Some(&allowed)).is_some());
            let unknown = within(&[f64::INFINITY, f64::INFINITY]);
            assert!(difference(&expected, &other, Some(&unknown)).is_none());
        }
    }

    #[test]
    fn integers_are_exact() {
        let expected = TensorData::new(
            DType::I64,
            Shape::new(&[1]).unwrap(),
            (i64::MAX - 1).to_le_bytes().to_vec().into(),
        );
        let other = TensorData::new(
            DType::I64,
            Shape::new(&[1]).unwrap(),
            i64::MAX.to_le_bytes().to_vec().into(),
        );
        let found = difference(&other.unwrap(), &expected.unwrap(), Some(&Allowed::default()));
        assert_eq!(found.unwrap().bound, 0.0);
    }

    #[test]
    fn an_index_may_be_another_only_in_a_near_tie() {
        let ties = Ties {
            values: data(DType::F64, &[3.0, 2.9999, 1.0]),
            bounds: data(DType::F64, &[1e-4, 1e-4, 1e-4]),
            axis: Some(0),
        };
        let allowed = Allowed { bounds: None, ties: Some(ties) };
        let at = |index: f64| data(DType::I64, &[index]);
        assert!(difference(&at(1.0), &at(0.0), Some(&allowed)).is_none());
        for other in [2.0, 3.0, -1.0] {
            assert!(difference(&at(other), &at(0.0), Some(&allowed)).is_some());
        }
    }
}
