//! Views by sizes, strides and offset in a contiguous tensor, as of `as_strided`: by a slice, a
//! permutation and an expansion if these suffice, otherwise by the elements' indices.

use gt_ir::Shape;
use gt_ir::shape::MAX_RANK;
use smallvec::{SmallVec, smallvec};

use super::Tensor;
use super::strides::Strided;
use crate::error::Result;

type Dims = SmallVec<[i64; MAX_RANK]>;

/// The operations from a contiguous tensor to a view of it: reshape, slice, permute, reshape,
/// expand.
#[derive(Debug, PartialEq)]
struct ViewPath {
    /// The shape that the base is first reshaped to.
    base: Dims,
    starts: Dims,
    sizes: Dims,
    steps: Dims,
    order: Dims,
    /// The shape after the permutation, with length 1 along axes that are expanded.
    narrow: Dims,
}

impl Tensor {
    /// Returns a view of this contiguous tensor with the sizes, strides and offset of `to`.
    ///
    /// # Errors
    /// An instruction on the way fails. The caller checks that the elements are inside the tensor.
    #[track_caller]
    pub fn restride(&self, to: &Strided) -> Result<Tensor> {
        let own = self.shape();
        let wanted = dims_of(&to.shape);
        if *to == Strided::contiguous(own) {
            return Ok(self.clone());
        }
        if to.shape.numel() == 0 {
            let empty = self.reshape(&[-1])?.narrow(0, 0, 0)?;
            return empty.reshape(&wanted);
        }
        let Some(path) = ViewPath::find(&own, to) else { return self.gather_view(to) };
        let mut view = self.clone();
        if path.base != dims_of(&own) {
            view = view.reshape(&path.base)?;
        }
        if path.sizes != path.base {
            view = view.region(&path.starts, &path.sizes, &path.steps)?;
        }
        if path.order.iter().enumerate().any(|(to, &from)| to as i64 != from) {
            view = view.permute(&path.order)?;
        }
        if path.narrow != dims_of(&view.shape()) {
            view = view.reshape(&path.narrow)?;
        }
        if path.narrow != wanted { view.expand(&wanted) } else { Ok(view) }
    }

    /// Returns the view by its elements' indices.
    fn gather_view(&self, to: &Strided) -> Result<Tensor> {
        let session = self.session();
        let range = |n: i64| {
            let (start, end, step) = (gt_ir::Scalar::Int(0), n.into(), gt_ir::Scalar::Int(1));
            Tensor::arange(&session, start, end, step, gt_ir::DType::I64)
        };
        let rank = to.shape.rank();
        let mut places = range(1)?.add(to.offset)?.reshape(&Dims::from_elem(1, rank))?;
        for axis in 0..rank {
            let length = to.shape[axis] as i64;
            let mut along = Dims::from_elem(1, rank);
            along[axis] = length;
            places = places.add(&range(length)?.mul(to.strides[axis])?.reshape(&along)?)?;
        }
        let flat = self.reshape(&[-1])?;
        let offset = self.strided().offset + to.offset;
        flat.view_at(None, &places.reshape(&[-1])?, to.shape, &to.strides[..rank], offset)
    }
}

impl ViewPath {
    fn find(own: &Shape, to: &Strided) -> Option<ViewPath> {
        let axes: SmallVec<[usize; MAX_RANK]> = (0..to.shape.rank())
            .filter(|&axis| to.shape[axis] > 1 && to.strides[axis] > 0)
            .collect();
        ViewPath::through(dims_of(own), &axes, to)
            .or_else(|| ViewPath::through(split_base(own, &axes, to, true)?, &axes, to))
            .or_else(|| ViewPath::through(split_base(own, &axes, to, false)?, &axes, to))
    }

    /// Returns the path where each of the view's `axes` runs along a different axis of `base`.
    fn through(base: Dims, axes: &[usize], to: &Strided) -> Option<ViewPath> {
        let rank = base.len();
        let mut strides: Dims = smallvec![1; rank];
        for axis in (1..rank).rev() {
            strides[axis - 1] = strides[axis] * base[axis];
        }
        let mut path = ViewPath {
            starts: (0..rank).map(|axis| to.offset / strides[axis] % base[axis]).collect(),
            sizes: smallvec![1; rank],
            steps: smallvec![1; rank],
            order: Dims::new(),
            narrow: smallvec![1; to.shape.rank()],
            base,
        };
        for &axis in axes {
            let (length, stride) = (to.shape[axis] as i64, to.strides[axis]);
            // The first axis whose stride is at most this one: the longest such stride.
            let along =
                (0..rank).find(|&along| path.base[along] > 1 && strides[along] <= stride)?;
            let step = stride / strides[along];
            let last = path.starts[along] + (length - 1) * step;
            let is_taken = path.order.contains(&(along as i64));
            if is_taken || stride % strides[along] != 0 || last >= path.base[along] {
                return None;
            }
            path.sizes[along] = length;
            path.steps[along] = step;
            path.order.push(along as i64);
            path.narrow[axis] = length;
        }
        for along in 0..rank as i64 {
            if !path.order.contains(&along) {
                path.order.push(along);
            }
        }
        Some(path)
    }
}

/// Returns the base's shape, split at the strides of the view's axes. With `keeps`, also at its own
/// axes, except inside a view's axis that spans several. `None` if the strides do not divide each
/// other.
fn split_base(own: &Shape, axes: &[usize], to: &Strided, keeps: bool) -> Option<Dims> {
    let all = own.numel() as i64;
    let mut rows: SmallVec<[i64; 2 * MAX_RANK]> = smallvec![1, all];
    rows.extend(axes.iter().map(|&axis| to.strides[axis]));
    if keeps {
        let mut row = 1;
        for &length in own.iter().rev() {
            row *= length as i64;
            let is_inside = axes.iter().any(|&axis| {
                let stride = to.strides[axis];
                stride < row && row < stride * to.shape[axis] as i64
            });
            if !is_inside {
                rows.push(row);
            }
        }
    }
    rows.sort_unstable_by(|a, b| b.cmp(a));
    rows.dedup();
    if rows.len() > MAX_RANK + 1 || rows[0] != all {
        return None;
    }
    rows.windows(2).map(|pair| (pair[0] % pair[1] == 0).then(|| pair[0] / pair[1])).collect()
}

fn dims_of(shape: &Shape) -> Dims {
    shape.iter().map(|&length| length as i64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strided(dims: &[usize], strides: &[i64], offset: i64) -> Strided {
        let mut to = Strided { offset, ..Strided::contiguous(Shape::new(dims).unwrap()) };
        to.strides = [0; MAX_RANK];
        to.strides[..strides.len()].copy_from_slice(strides);
        to
    }

    /// Returns the indices of a path's elements, in the order of the view.
    fn places(path: &ViewPath, to: &Strided) -> Vec<i64> {
        let rank = path.base.len();
        let stride = |axis: usize| path.base[axis + 1..].iter().product::<i64>();
        let mut places = vec![(0..rank).map(|axis| path.starts[axis] * stride(axis)).sum::<i64>()];
        let taken = path.order.iter().map(|&along| along as usize);
        let mut lengths = taken.filter(|&along| path.sizes[along] > 1);
        for axis in 0..to.shape.rank() {
            let (length, step) = match path.narrow[axis] {
                1 => (to.shape[axis] as i64, 0),
                length => {
                    let along = lengths.next().unwrap();
                    assert_eq!(path.sizes[along], length);
                    (length, path.steps[along] * stride(along))
                }
            };
            places = places
                .iter()
                .flat_map(|place| (0..length).map(move |index| place + index * step))
                .collect();
        }
        places
    }

    fn check(own: &[usize], to: &Strided) -> bool {
        let Some(path) = ViewPath::find(&Shape::new(own).unwrap(), to) else { return false };
        let mut expected = vec![to.offset];
        for axis in 0..to.shape.rank() {
            expected = expected
                .iter()
                .flat_map(|place| {
                    (0..to.shape[axis] as i64).map(move |index| place + index * to.strides[axis])
                })
                .collect();
        }
        assert_eq!(places(&path, to), expected, "{own:?} {to:?} {path:?}");
        true
    }

    #[test]
    fn ordinary_views_have_a_path() {
        assert!(check(&[4, 6], &strided(&[6, 4], &[1, 6], 0)));
        assert!(check(&[4, 6], &strided(&[2, 2], &[6, 3], 7)));
        assert!(check(&[4, 6], &strided(&[3, 4, 6], &[0, 6, 1], 0)));
        assert!(check(&[4, 6], &strided(&[4, 2, 3], &[6, 3, 1], 0)));
        assert!(check(&[4, 6], &strided(&[2, 12], &[1, 2], 0)));
        assert!(check(&[2, 3, 4], &strided(&[6, 4], &[4, 1], 0)));
        assert!(check(&[2, 3, 4], &strided(&[5, 4], &[4, 1], 4)));
        assert!(check(&[10], &strided(&[4], &[3], 0)));
        assert!(check(&[8, 36], &strided(&[3, 8, 12], &[12, 36, 1], 0)));
        assert!(check(&[], &strided(&[2, 1], &[0, 1], 0)));
    }

    #[test]
    fn windows_and_diagonals_have_no_path() {
        assert!(!check(&[6], &strided(&[4, 3], &[1, 1], 0)));
        assert!(!check(&[4, 4], &strided(&[4], &[5], 0)));
    }

    #[test]
    fn every_path_yields_the_same_elements() {
        let mut found = 0;
        for own in [&[2, 6][..], &[3, 4], &[12], &[2, 3, 2]] {
            for (n, m) in [(2, 2), (2, 3), (3, 2), (4, 2), (1, 4), (6, 2), (5, 2)] {
                for (a, b, offset) in (0..7).flat_map(|a| {
                    (0..7).flat_map(move |b| (0..4).map(move |offset| (a, b, offset)))
                }) {
                    if offset + (n - 1) * a + (m - 1) * b < 12 {
                        let dims = [n as usize, m as usize];
                        found += usize::from(check(own, &strided(&dims, &[a, b], offset)));
                    }
                }
            }
        }
        assert!(found > 500, "{found}");
    }
}
