//! The contiguous runs of elements that two blocks of a tensor have in common.

use crate::sharding::Block;

/// The runs that two blocks have in common, each block's elements in row-major order.
pub struct CommonRuns {
    /// The bytes of each run.
    pub bytes: usize,
    /// The offset of each run in the first block and in the second, in bytes; in the order of the
    /// first.
    pub places: Vec<(usize, usize)>,
}

/// Returns the runs that two blocks of one tensor have in common, of elements of `item` bytes;
/// `None` if they do not overlap.
pub fn common_runs(from: &Block, to: &Block, item: usize) -> Option<CommonRuns> {
    let common = from.intersect(to)?;
    let rank = common.shape.rank();
    let is_whole = |axis: &usize| {
        let length = common.shape[*axis];
        length == from.shape[*axis] && length == to.shape[*axis]
    };
    // These last axes are complete in both: with the one before, their elements are contiguous.
    let complete = (0..rank).rev().take_while(is_whole).count();
    let outer = (rank - complete).saturating_sub(1);
    let bytes = common.shape[outer..].iter().product::<usize>() * item;
    let mut places = vec![(0, 0)];
    for axis in 0..rank {
        let stride = |block: &Block| block.shape[axis + 1..].iter().product::<usize>() * item;
        let start = |block: &Block| common.starts[axis] - block.starts[axis];
        let count = if axis < outer { common.shape[axis] } else { 1 };
        let (strides, starts) = ((stride(from), stride(to)), (start(from), start(to)));
        let of_axis = |(one, other): (usize, usize)| {
            (0..count).map(move |step| {
                (one + (starts.0 + step) * strides.0, other + (starts.1 + step) * strides.1)
            })
        };
        places = places.into_iter().flat_map(of_axis).collect();
    }
    Some(CommonRuns { bytes, places })
}
