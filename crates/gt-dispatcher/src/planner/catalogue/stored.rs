//! The encoding of a catalogue, from which a server that is started again goes on.

use std::sync::Arc;

use gt_ir::layout::Layout;
use gt_ir::record;
use gt_ir::wire::{Decoded, Record, Sink, Source};

use super::{Catalogue, Placed, Provenance, TensorCopy, TensorState};
use crate::planner::meshes::Meshes;

record!(struct Provenance { placed, combined });
record!(struct TensorCopy { layout, id, made });
record!(struct Placed { meta, copies, provenance });
record!(enum TensorState { 0 => Placed(placed), 1 => Failed(failure) });

/// Without caches and what is recorded for an explanation.
impl Record for Catalogue {
    fn write<S: Sink>(&self, to: &mut S) {
        self.slots.write(to);
        to.varint(self.signals.len() as u64);
        for (number, scope) in &self.signals {
            number.write(to);
            scope.write(to);
        }
        self.strict.write(to);
        to.varint(self.tensors.len() as u64);
        for (id, state) in &self.tensors {
            id.write(to);
            state.write(to);
        }
        (self.made, self.transfers).write(to);
        self.moves.write(to);
    }

    fn read(from: &mut Source) -> Decoded<Catalogue> {
        let mut catalogue = Catalogue { slots: Record::read(from)?, ..Catalogue::default() };
        catalogue.signals = Vec::read(from)?.into_iter().collect();
        catalogue.strict = Record::read(from)?;
        catalogue.tensors = Vec::read(from)?.into_iter().collect();
        (catalogue.made, catalogue.transfers) = Record::read(from)?;
        catalogue.moves = Record::read(from)?;
        Ok(catalogue)
    }
}

impl Catalogue {
    /// Makes a catalogue that was read like one that was planned: meshes and layouts are shared, and
    /// extra copies are counted.
    pub fn settle_in(&mut self, meshes: &mut Meshes) {
        let mut layouts: Vec<Arc<Layout>> = Vec::new();
        for (id, state) in &mut self.tensors {
            let TensorState::Placed(placed) = state else { continue };
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
                    self.moved.insert(copy.made, (*id, bytes));
                    self.moved_bytes += bytes;
                }
            }
        }
    }
}
