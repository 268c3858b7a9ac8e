//! Shapes, broadcasting and axes.

use std::fmt;
use std::ops::Deref;

use crate::error::{Error, Result};

/// The most axes a tensor may have.
pub const MAX_RANK: usize = 8;

/// The lengths of a tensor's axes. Small and `Copy`, so that instructions need no allocation.
#[derive(Clone, Copy)]
pub struct Shape {
    /// A full word, so that the struct has no padding and copies are plain.
    rank: usize,
    dims: [usize; MAX_RANK],
}

impl Shape {
    /// The shape of a single number.
    pub const SCALAR: Shape = Shape { rank: 0, dims: [0; MAX_RANK] };

    /// A shape from its dims.
    ///
    /// # Errors
    /// More than [`MAX_RANK`] axes, or more elements than can be addressed.
    pub fn new(dims: &[usize]) -> Result<Shape> {
        if dims.len() > MAX_RANK {
            return Err(Error::RankTooHigh { rank: dims.len(), max: MAX_RANK });
        }
        let mut shape = Shape::SCALAR;
        shape.rank = dims.len();
        shape.dims[..dims.len()].copy_from_slice(dims);
        // The limit is beyond any machine's memory, and keeps later arithmetic from overflowing.
        let total = dims.iter().try_fold(1usize, |total, &dim| total.checked_mul(dim.max(1)));
        match total {
            Some(total) if total <= 1 << 48 => Ok(shape),
            _ => Err(Error::TooLarge { dims: dims.to_vec() }),
        }
    }

    pub const fn rank(&self) -> usize {
        self.rank
    }

    pub fn dims(&self) -> &[usize] {
        &self.dims[..self.rank()]
    }

    /// The number of elements.
    pub fn numel(&self) -> usize {
        self.dims().iter().product()
    }

    /// The shape both broadcast to, by NumPy's and PyTorch's rules.
    pub fn broadcast(&self, other: &Shape, operation: &'static str) -> Result<Shape> {
        if self == other {
            return Ok(*self);
        }
        if self == other {
            return Ok(*self);
        }
        let rank = self.rank().max(other.rank());
        let mut shape = Shape { rank, dims: [0; MAX_RANK] };
        for back in 1..=rank {
            let a = if back <= self.rank() { self[self.rank() - back] } else { 1 };
            let b = if back <= other.rank() { other[other.rank() - back] } else { 1 };
            shape.dims[rank - back] = match (a, b) {
                (a, b) if a == b => a,
                (1, b) => b,
                (a, 1) => a,
                _ => {
                    return Err(Error::Broadcast {
                        operation,
                        left: *self,
                        right: *other,
                        axis: rank - back,
                    });
                }
            };
        }
        Shape::new(shape.dims())
    }

    /// Whether a tensor of this shape can be expanded to `target`.
    pub fn expands_to(&self, target: &Shape) -> bool {
        self.rank() <= target.rank()
            && (1..=self.rank()).all(|back| {
                let dim = self[self.rank() - back];
                dim == 1 || dim == target[target.rank() - back]
            })
    }

    /// The shape with `axis` set to `dim`.
    pub fn with(mut self, axis: usize, dim: usize) -> Shape {
        self.dims[..self.rank][axis] = dim;
        self
    }

    /// The shape without `axis`.
    pub fn without(mut self, axis: usize) -> Shape {
        self.dims.copy_within(axis + 1..self.rank, axis);
        self.rank -= 1;
        self
    }

    /// The strides, in elements, of a contiguous tensor of this shape.
    pub fn strides(&self) -> [usize; MAX_RANK] {
        let mut strides = [1; MAX_RANK];
        for axis in (0..self.rank().saturating_sub(1)).rev() {
            strides[axis] = strides[axis + 1] * self[axis + 1];
        }
        strides
    }
}

/// Normalizes an axis that may be negative (counted from the back).
///
/// # Errors
/// The axis is outside `-rank..rank` (a scalar takes -1 and 0, as in PyTorch).
pub fn axis(axis: i64, rank: usize, operation: &'static str) -> Result<usize> {
    let span = rank.max(1) as i64;
    if axis < -span || axis >= span {
        return Err(Error::BadAxis { operation, axis, rank });
    }
    Ok(if axis < 0 { axis + span } else { axis } as usize)
}

/// Normalizes and sorts `axes`; all axes if it is empty.
///
/// # Errors
/// An axis outside the rank, or the same axis twice.
pub fn axes(axes: &[i64], rank: usize, operation: &'static str) -> Result<Vec<usize>> {
    if axes.is_empty() {
        return Ok((0..rank).collect());
    }
    let mut out = axes.iter().map(|&a| axis(a, rank, operation)).collect::<Result<Vec<_>>>()?;
    out.sort_unstable();
    if let Some(pair) = out.windows(2).find(|pair| pair[0] == pair[1]) {
        return Err(Error::RepeatedAxis { operation, axis: pair[0] });
    }
    out.retain(|&a| a < rank);
    Ok(out)
}

impl Deref for Shape {
    type Target = [usize];

    fn deref(&self) -> &[usize] {
        self.dims()
    }
}

impl PartialEq for Shape {
    fn eq(&self, other: &Shape) -> bool {
        // Element by element: shapes are too short for a memcmp to be worth it.
        self.rank == other.rank && (0..self.rank()).all(|axis| self.dims[axis] == other.dims[axis])
    }
}

impl Eq for Shape {}

/// As Python writes it: `(3, 4)`, `(3,)`, `()`.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(")?;
        for (index, dim) in self.dims().iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{dim}")?;
        }
        f.write_str(if self.rank() == 1 { ",)" } else { ")" })
    }
}

impl fmt::Debug for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shape(dims: &[usize]) -> Shape {
        Shape::new(dims).unwrap()
    }

    #[test]
    fn broadcasting_follows_numpy() {
        let check = |a: &[usize], b: &[usize], want: Option<&[usize]>| {
            let got = shape(a).broadcast(&shape(b), "add").ok();
            assert_eq!(got, want.map(shape), "{a:?} with {b:?}");
        };
        check(&[3, 1], &[1, 4], Some(&[3, 4]));
        check(&[], &[2, 3], Some(&[2, 3]));
        check(&[0], &[1], Some(&[0]));
        check(&[2], &[3], None);
        check(&[5, 1, 7], &[2, 7], Some(&[5, 2, 7]));
    }

    #[test]
    fn axes_count_from_both_ends() {
        assert_eq!(axes(&[-1, 0], 3, "sum").unwrap(), [0, 2]);
        assert_eq!(axes(&[], 2, "sum").unwrap(), [0, 1]);
        assert!(axes(&[3], 3, "sum").is_err());
        assert!(axes(&[1, -2], 3, "sum").is_err());
        assert_eq!(axes(&[-1], 0, "sum").unwrap(), [] as [usize; 0]);
    }

    #[test]
    fn shapes_print_as_python_tuples() {
        assert_eq!(shape(&[]).to_string(), "()");
        assert_eq!(shape(&[3]).to_string(), "(3,)");
        assert_eq!(shape(&[3, 4]).to_string(), "(3, 4)");
    }

    #[test]
    fn huge_shapes_are_refused() {
        assert!(Shape::new(&[usize::MAX, 2]).is_err());
        assert!(Shape::new(&[1; 9]).is_err());
        assert!(Shape::new(&[1 << 60, 0]).is_err());
    }
}
