//! The encoding of a catalogue in the journal.

use std::sync::Arc;

use gt_ir::layout::Layout;
use gt_ir::wire::{Decoded, Record, Sink, Source};
use gt_ir::{TensorId, record};

use super::{Catalogue, Placed, Provenance, TensorCopy, TensorState, TensorTable};
use crate::planner::meshes::Meshes;

record!(struct Provenance { placed, combined });
record!(struct TensorCopy { layout, id, made });
record!(struct Placed { meta, copies, provenance });
record!(enum TensorState { 0 => Placed(placed), 1 => Failed(failure) });

/// Encoded without its tensors, whose pages are written as they change, without caches, and without
/// the recording for an explanation.
impl Record for Catalogue {
    fn write<S: Sink>(&self, to: &mut S) {
        self.slots.write(to);
        to.varint(self.signals.len() as u64);
        for (number, scope) in &self.signals {
            number.write(to);
            scope.write(to);
        }
        self.strict.write(to);
        (self.made, self.transfers).write(to);
        self.extra_count.write(to);
    }

    fn read(from: &mut Source) -> Decoded<Catalogue> {
        let mut catalogue = Catalogue { slots: Record::read(from)?, ..Catalogue::default() };
        catalogue.signals = Vec::read(from)?.into_iter().collect();
        catalogue.strict = Record::read(from)?;
        (catalogue.made, catalogue.transfers) = Record::read(from)?;
        catalogue.extra_count = Record::read(from)?;
        Ok(catalogue)
    }
}

impl Catalogue {
    /// Returns the tensors.
    pub(crate) fn tensors(&self) -> &TensorTable {
        &self.tensors
    }

    /// Sets the tensors of a catalogue that was decoded.
    pub(crate) fn set_tensors(&mut self, tensors: TensorTable) {
        self.tensors = tensors;
    }

    /// Makes a decoded catalogue like one that was planned: equal meshes and layouts are shared,
    /// and extra copies are counted.
    pub fn intern_layouts(&mut self, meshes: &mut Meshes) {
        let mut layouts: Vec<Arc<Layout>> = Vec::new();
        for id in self.tensors.numbers() {
            let Some(TensorState::Placed(placed)) = self.tensors.get_mut(id) else { continue };
            for copy in &mut placed.copies {
                let mesh = meshes.get(&copy.layout.mesh.dims, &copy.layout.mesh.slots);
                let layout = Layout { mesh, placements: copy.layout.placements.clone() };
                let known = layouts.iter().rev().find(|known| ***known == layout);
                copy.layout = known.cloned().unwrap_or_else(|| {
                    layouts.push(Arc::new(layout));
                    Arc::clone(&layouts[layouts.len() - 1])
                });
                if copy.made > 0 {
                    let bytes = copy.bytes(placed.meta);
                    self.extra_copies.insert(copy.made, (TensorId(id), bytes));
                    self.extra_bytes += bytes;
                }
            }
        }
    }
}
