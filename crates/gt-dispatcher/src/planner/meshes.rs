//! Interns meshes: equal meshes share one allocation and number.

use std::hash::{Hash, Hasher};
use std::sync::{Arc, Weak};

use gt_ir::SlotId;
use gt_ir::layout::Mesh;
use rustc_hash::{FxHashMap, FxHasher};
use smallvec::SmallVec;

/// The meshes in use.
#[derive(Default)]
pub struct Meshes {
    /// By a hash of dims and slots. Unused meshes are removed as the table grows.
    known: FxHashMap<u64, SmallVec<[Weak<Mesh>; 1]>>,
    /// The number of entries left by the last removal.
    used: usize,
    next: u32,
}

impl Meshes {
    /// Returns the mesh of these slots, `dims` along each axis.
    pub fn get(&mut self, dims: &[usize], slots: &[SlotId]) -> Arc<Mesh> {
        debug_assert_eq!(dims.iter().product::<usize>(), slots.len());
        let mut hasher = FxHasher::default();
        (dims, slots).hash(&mut hasher);
        let key = hasher.finish();
        let alike = self.known.get(&key).into_iter().flatten().filter_map(Weak::upgrade);
        let same = |mesh: &Arc<Mesh>| *mesh.dims == *dims && *mesh.slots == *slots;
        if let Some(mesh) = alike.into_iter().find(same) {
            return mesh;
        }
        if self.known.len() > 2 * self.used + 64 {
            self.known.retain(|_, alike| {
                alike.retain(|mesh| mesh.strong_count() > 0);
                !alike.is_empty()
            });
            self.used = self.known.len();
        }
        self.next += 1;
        let (dims, slots) = (SmallVec::from_slice(dims), slots.to_vec());
        let mesh = Arc::new(Mesh { number: self.next, dims, slots });
        self.known.entry(key).or_default().push(Arc::downgrade(&mesh));
        mesh
    }

    /// Returns the mesh of a single slot.
    pub fn single(&mut self, slot: SlotId) -> Arc<Mesh> {
        self.get(&[1], &[slot])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_meshes_are_shared_and_unused_meshes_are_dropped() {
        let mut meshes = Meshes::default();
        let first = meshes.single(SlotId(7));
        for number in 0..1000 {
            assert_ne!(meshes.get(&[2], &[SlotId(number), SlotId(number + 1)]), first);
        }
        assert_eq!(meshes.single(SlotId(7)), first);
        assert!(meshes.known.len() < 200);
    }
}
