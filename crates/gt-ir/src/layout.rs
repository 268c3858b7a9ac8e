//! Layouts: how a tensor is distributed over a mesh of a session's slots.

use std::fmt;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::ids::SlotId;
use crate::record;
use crate::shape::Shape;
use crate::sharding::{Block, Reduction};
use crate::wire::{DecodeError, Decoded, Record, Sink, Source};

/// An ordered set of worker slots along one or two axes.
#[derive(Debug)]
pub struct Mesh {
    /// An intern number, from 1: the same for equal meshes of one dispatcher. 0 if not interned.
    pub number: u32,
    /// The lengths of its axes; their product is the number of slots.
    pub dims: SmallVec<[usize; 2]>,
    /// In row-major order.
    pub slots: Vec<SlotId>,
}

impl Mesh {
    /// The number of slots.
    pub fn size(&self) -> usize {
        self.slots.len()
    }

    /// The coordinate of a rank on mesh axis `axis`.
    pub fn coordinate(&self, rank: usize, axis: usize) -> usize {
        let inner: usize = self.dims[axis + 1..].iter().product();
        rank / inner % self.dims[axis]
    }

    /// The ranks that differ from `rank` along mesh axis `axis` alone, and `rank` itself, in
    /// order.
    pub fn line(&self, rank: usize, axis: usize) -> impl Iterator<Item = usize> + use<> {
        let inner: usize = self.dims[axis + 1..].iter().product();
        let first = rank - self.coordinate(rank, axis) * inner;
        let length = self.dims[axis];
        (0..length).map(move |step| first + step * inner)
    }

    pub fn rank_of(&self, slot: SlotId) -> Option<usize> {
        self.slots.iter().position(|&other| other == slot)
    }
}

impl PartialEq for Mesh {
    fn eq(&self, other: &Mesh) -> bool {
        self.number == other.number
            && (self.number != 0 || (&self.dims, &self.slots) == (&other.dims, &other.slots))
    }
}

impl Eq for Mesh {}

impl Record for Mesh {
    fn write<S: Sink>(&self, to: &mut S) {
        self.dims.write(to);
        self.slots.write(to);
    }

    fn read(from: &mut Source) -> Decoded<Mesh> {
        let dims: SmallVec<[usize; 2]> = Record::read(from)?;
        let slots: Vec<SlotId> = Record::read(from)?;
        let size = dims.iter().try_fold(1usize, |size, &length| size.checked_mul(length));
        if size != Some(slots.len()) || slots.is_empty() {
            return Err(DecodeError::BadCode { what: "a mesh", code: slots.len() as u64 });
        }
        Ok(Mesh { number: 0, dims, slots })
    }
}

/// How a tensor is distributed along one mesh axis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Placement {
    /// Each slot has the whole tensor.
    Replicate,
    /// Each slot has the part of `axis` between two neighbouring cuts, which begin with 0 and end
    /// with the axis's length.
    Shard { axis: usize, cuts: Arc<[usize]> },
    /// Each slot has a summand (or factor, maximum, ...): their reduction is the tensor.
    Partial(Reduction),
}

record!(enum Placement { 0 => Replicate, 1 => Shard { axis, cuts }, 2 => Partial(reduction) });

impl Placement {
    /// Returns the sharding of an axis into parts of lengths as equal as possible, the longer ones
    /// first.
    pub fn balanced(axis: usize, length: usize, parts: usize) -> Placement {
        Placement::Shard { axis, cuts: balanced_cuts(length, parts) }
    }

    pub fn is_partial(&self) -> bool {
        matches!(self, Placement::Partial(_))
    }

    pub fn shard_axis(&self) -> Option<usize> {
        match self {
            Placement::Shard { axis, .. } => Some(*axis),
            _ => None,
        }
    }
}

/// Returns the cuts of an axis of `length` into parts as equal as possible, the longer ones first.
pub fn balanced_cuts(length: usize, parts: usize) -> Arc<[usize]> {
    let (each, longer) = (length / parts, length % parts);
    (0..=parts).map(|part| part * each + part.min(longer)).collect()
}

/// A placement for each axis of a mesh.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Layout {
    pub mesh: Arc<Mesh>,
    pub placements: SmallVec<[Placement; 2]>,
}

record!(struct Layout { mesh, placements });

impl Layout {
    /// Returns the layout with a replica on every slot.
    pub fn replicated(mesh: &Arc<Mesh>) -> Layout {
        let placements = mesh.dims.iter().map(|_| Placement::Replicate).collect();
        Layout { mesh: Arc::clone(mesh), placements }
    }

    pub fn is_replicated(&self) -> bool {
        self.placements.iter().all(|placement| *placement == Placement::Replicate)
    }

    pub fn is_partial(&self) -> bool {
        self.placements.iter().any(Placement::is_partial)
    }

    /// Whether two ranks hold parts of the same summand: they have the same coordinates on all
    /// partial mesh axes.
    pub fn same_summand(&self, rank: usize, other: usize) -> bool {
        self.placements.iter().enumerate().all(|(mesh_axis, placement)| {
            let at = |rank| self.mesh.coordinate(rank, mesh_axis);
            !placement.is_partial() || at(rank) == at(other)
        })
    }

    /// The part of a tensor that the slot with this rank has.
    pub fn block(&self, shape: Shape, rank: usize) -> Block {
        let mut block = Block::whole(shape);
        for (mesh_axis, placement) in self.placements.iter().enumerate() {
            if let Placement::Shard { axis, cuts } = placement {
                let at = self.mesh.coordinate(rank, mesh_axis);
                block.starts[*axis] = cuts[at];
                block.shape = block.shape.with(*axis, cuts[at + 1] - cuts[at]);
            }
        }
        block
    }
}

/// The form that users see: `Shard(0)`.
impl fmt::Display for Placement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Placement::Replicate => f.write_str("Replicate"),
            Placement::Shard { axis, .. } => write!(f, "Shard({axis})"),
            Placement::Partial(reduction) => write!(f, "Partial({})", reduction.name()),
        }
    }
}

/// The form that users see: `Shard(0) x Replicate`.
impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&describe(&self.placements))
    }
}

/// Returns the placements for a mesh's axes as users see them: `Shard(0) x Replicate`.
pub fn describe(placements: &[Placement]) -> String {
    placements.iter().map(Placement::to_string).collect::<Vec<_>>().join(" x ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use smallvec::smallvec;

    fn mesh(dims: &[usize]) -> Arc<Mesh> {
        let slots = (0..dims.iter().product::<usize>() as u32).map(SlotId).collect();
        Arc::new(Mesh { number: 1, dims: SmallVec::from_slice(dims), slots })
    }

    #[test]
    fn cuts_are_as_equal_as_can_be() {
        assert_eq!(*balanced_cuts(10, 4), [0, 3, 6, 8, 10]);
        assert_eq!(*balanced_cuts(2, 3), [0, 1, 2, 2]);
        assert_eq!(*balanced_cuts(0, 2), [0, 0, 0]);
    }

    #[test]
    fn ranks_stand_in_rows() {
        let mesh = mesh(&[2, 3]);
        assert_eq!((mesh.coordinate(4, 0), mesh.coordinate(4, 1)), (1, 1));
        assert_eq!(mesh.line(4, 1).collect::<Vec<_>>(), [3, 4, 5]);
        assert_eq!(mesh.line(4, 0).collect::<Vec<_>>(), [1, 4]);
    }

    #[test]
    fn blocks_follow_the_cuts() {
        let placements = smallvec![Placement::balanced(0, 5, 2), Placement::balanced(1, 6, 3)];
        let layout = Layout { mesh: mesh(&[2, 3]), placements };
        let block = layout.block(Shape::new(&[5, 6]).unwrap(), 5);
        assert_eq!((block.starts[0], block.starts[1]), (3, 4));
        assert_eq!(block.shape, Shape::new(&[2, 2]).unwrap());
    }
}
