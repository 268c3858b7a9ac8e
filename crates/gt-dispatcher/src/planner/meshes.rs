//! The meshes in use: equal ones are one.

use std::sync::Arc;

use gt_ir::WorkerId;
use smallvec::SmallVec;

use super::layout::Mesh;

#[derive(Default)]
pub struct Meshes {
    known: Vec<Arc<Mesh>>,
    next: u32,
}

impl Meshes {
    /// The mesh of these workers, `dims` along each axis.
    pub fn get(&mut self, dims: &[usize], workers: &[WorkerId]) -> Arc<Mesh> {
        debug_assert_eq!(dims.iter().product::<usize>(), workers.len());
        let same = |mesh: &&Arc<Mesh>| *mesh.dims == *dims && *mesh.workers == *workers;
        if let Some(mesh) = self.known.iter().find(same) {
            return Arc::clone(mesh);
        }
        self.next += 1;
        let mesh =
            Mesh { number: self.next, dims: SmallVec::from_slice(dims), workers: workers.to_vec() };
        self.known.push(Arc::new(mesh));
        Arc::clone(&self.known[self.known.len() - 1])
    }

    /// The mesh of one worker alone.
    pub fn single(&mut self, worker: WorkerId) -> Arc<Mesh> {
        self.get(&[1], &[worker])
    }

    /// Forgets meshes with a worker that is gone.
    pub fn remove(&mut self, worker: WorkerId) {
        self.known.retain(|mesh| !mesh.workers.contains(&worker));
    }
}
