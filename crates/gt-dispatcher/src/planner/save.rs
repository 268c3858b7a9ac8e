//! Plans what is written into files: which slot writes which block of a tensor.

use std::collections::BTreeMap;
use std::sync::Arc;

use gt_ir::layout::Layout;
use gt_ir::message::Failure;
use gt_ir::sharding::Block;
use gt_ir::stored::{Save, SavePart, SavedBlock};
use gt_ir::{RequestId, Shape, SlotId, SourceId, TensorId, WorkerCommand};

use super::Planner;
use super::catalogue::{Catalogue, TensorCopy};
use super::explain::Reason;
use super::streams::Streams;

impl Planner {
    /// Has slots write the blocks of tensors into a file each. `open` receives the slots that
    /// write, and returns the request that they answer.
    ///
    /// # Errors
    /// The failure of one of the tensors.
    pub fn save(
        &mut self,
        catalogue: &mut Catalogue,
        streams: &mut Streams,
        save: &Save,
        open: impl FnOnce(&Catalogue, &[SlotId]) -> RequestId,
    ) -> Result<(), Arc<Failure>> {
        for id in &save.tensors {
            catalogue.get(*id)?;
        }
        let mut blocks: BTreeMap<SlotId, Vec<SavedBlock>> = BTreeMap::new();
        let mut temporary: Vec<(TensorId, TensorCopy)> = Vec::new();
        for (index, &id) in save.tensors.iter().enumerate() {
            let copy = match catalogue.placed(id).copies.iter().find(|copy| is_complete(copy)) {
                Some(copy) => copy.clone(),
                None => {
                    let copy = self.combined(catalogue, streams, id, save.line);
                    temporary.push((id, copy.clone()));
                    copy
                }
            };
            let shape = catalogue.placed(id).meta.shape;
            for (slot, block) in writers(&copy.layout, shape, index) {
                let saved = SavedBlock { tensor: copy.id, index: index as u32, block };
                blocks.entry(slot).or_default().push(saved);
            }
        }
        let slots: Vec<SlotId> = blocks.keys().copied().collect();
        let request = open(catalogue, &slots);
        for (slot, blocks) in blocks {
            let file = format!("values-{:05}.safetensors", slot.0);
            let (folder, line) = (save.folder.clone(), save.line);
            let part = SavePart { request, folder, file, blocks, line };
            streams.push(slot, WorkerCommand::Save(Box::new(part)));
        }
        for (id, copy) in temporary {
            catalogue.drop_copy(id, &copy, streams);
        }
        Ok(())
    }

    /// Returns a temporary copy, on one slot, of a tensor whose copies are all partial.
    fn combined(
        &mut self,
        catalogue: &mut Catalogue,
        streams: &mut Streams,
        id: TensorId,
        line: SourceId,
    ) -> TensorCopy {
        let slot = catalogue.placed(id).copies[0].layout.mesh.slots[0];
        let layout = Layout::replicated(&self.meshes.single(slot));
        self.copy_in_layout(catalogue, streams, id, &layout, line, Reason::Fetched)
    }
}

fn is_complete(copy: &TensorCopy) -> bool {
    !copy.layout.is_partial()
}

/// Returns each block of a layout and the slot that writes it; slots with the same block take
/// turns.
fn writers(layout: &Layout, shape: Shape, index: usize) -> Vec<(SlotId, Block)> {
    let mut blocks: Vec<(Block, Vec<SlotId>)> = Vec::new();
    for (rank, &slot) in layout.mesh.slots.iter().enumerate() {
        let block = layout.block(shape, rank);
        match blocks.iter_mut().find(|(known, _)| *known == block) {
            Some((_, slots)) => slots.push(slot),
            None => blocks.push((block, vec![slot])),
        }
    }
    let has_values = blocks.iter().any(|(block, _)| block.shape.numel() > 0);
    blocks
        .into_iter()
        .filter(|(block, _)| block.shape.numel() > 0 || !has_values)
        .map(|(block, slots)| (slots[index % slots.len()], block))
        .collect()
}
