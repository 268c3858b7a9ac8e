//! Slices whose position, and so the slots that hold their data, changes between iterations.

use super::{Values, Varying};
use crate::exchange::Parts;
use crate::ids::SlotId;
use crate::layout::Layout;
use crate::record;
use crate::redistribute::Redistribution;
use crate::shape::Shape;

/// A contiguous slice along a sharded axis. The blocks that are sent depend on its position, but
/// its layout does not.
#[derive(Clone, PartialEq, Debug)]
pub struct VaryingSlice {
    /// The sliced tensor's shape.
    pub whole: Shape,
    /// The sliced tensor's layout.
    pub from: Layout,
    /// The slice's shape.
    pub size: Shape,
    /// The slice's position.
    pub starts: Varying,
    /// The slice's layout.
    pub to: Layout,
}

record!(struct VaryingSlice { whole, from, size, starts, to });

impl VaryingSlice {
    /// Returns the blocks that a slot sends and receives in an iteration. For a position that is
    /// not within the tensor there are none, so that the exchange fails.
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
