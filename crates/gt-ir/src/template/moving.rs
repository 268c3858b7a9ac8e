//! Slices whose place moves: in each iteration other slots have what is taken.

use super::{Values, Varying};
use crate::exchange::{Parts, SlotId};
use crate::layout::Layout;
use crate::record;
use crate::redistribute::Redistribution;
use crate::shape::Shape;

/// A slice, without gaps, of a tensor that is cut along an axis of which a part is taken. How the
/// slice itself lies does not depend on its place; which blocks go where does.
#[derive(Clone, PartialEq, Debug)]
pub struct MovingSlice {
    /// The tensor that is sliced,
    pub whole: Shape,
    /// and how it lies.
    pub from: Layout,
    /// How many elements are taken along each axis,
    pub size: Shape,
    /// from which on,
    pub starts: Varying,
    /// and how they are to lie.
    pub to: Layout,
}

record!(struct MovingSlice { whole, from, size, starts, to });

impl MovingSlice {
    /// The blocks that a slot gives and gets in an iteration. A place that is not within the tensor
    /// gives none: the exchange fails for want of them.
    pub fn parts(&self, values: &impl Values, slot: SlotId) -> Parts {
        let starts: Vec<i64> = self.starts.numbers(values).collect();
        let fits = |axis: usize, start: i64| {
            start >= 0 && start as usize + self.size[axis] <= self.whole[axis]
        };
        let is_within = starts.len() == self.whole.rank()
            && starts.len() == self.size.rank()
            && starts.iter().enumerate().all(|(axis, &start)| fits(axis, start));
        if !is_within {
            return Parts::default();
        }
        let way = Redistribution { from: &self.from, to: &self.to, whole: self.whole };
        let all = way.of_slice(&starts, self.size);
        all.into_iter().find(|parts| parts.slot == slot).map(|own| own.parts).unwrap_or_default()
    }
}
