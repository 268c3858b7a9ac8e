//! Tensors that are published, and those that are read from publications.

use std::collections::BTreeMap;
use std::sync::Arc;

use gt_ir::layout::Layout;
use gt_ir::message::Failure;
use gt_ir::sharding::Block;
use gt_ir::snapshot::ToPublish;
use gt_ir::stored::{PublishedPart, PublishedValues};
use gt_ir::{
    Content, Create, KeptTensor, Meta, SessionId, SlotId, SourceId, TensorId, WorkerCommand,
};

use super::explain::Reason;
use super::{Catalogue, Planner, Provenance, Streams};
use crate::library::PublishedTensor;

impl Planner {
    /// Returns tensors as they are published, and each slot's parts of them. Partial sums are
    /// combined first.
    ///
    /// # Errors
    /// The failure of one of them.
    pub fn to_publish(
        &mut self,
        catalogue: &mut Catalogue,
        streams: &mut Streams,
        tensors: &[KeptTensor],
    ) -> Result<(Vec<PublishedTensor>, BTreeMap<SlotId, Vec<ToPublish>>), Arc<Failure>> {
        for tensor in tensors {
            catalogue.get(tensor.id)?;
        }
        let (mut all, mut slots) = (Vec::with_capacity(tensors.len()), BTreeMap::new());
        for (number, tensor) in tensors.iter().enumerate() {
            let placed = catalogue.placed(tensor.id);
            let whole = placed.copies.iter().find(|copy| !copy.layout.is_partial()).cloned();
            let meta = placed.meta;
            let copy = whole.unwrap_or_else(|| {
                let home = catalogue.home(&mut self.meshes);
                let (line, reason) = (SourceId::default(), Reason::Fetched);
                self.copy_in_layout(catalogue, streams, tensor.id, &home, line, reason)
            });
            let index = TensorId(number as u64);
            for (rank, slot) in copy.layout.mesh.slots.iter().enumerate() {
                let block = copy.layout.block(meta.shape, rank);
                let parts: &mut Vec<ToPublish> = slots.entry(*slot).or_default();
                parts.push(ToPublish { tensor: copy.id, index, block });
            }
            all.push(PublishedTensor { meta, layout: copy.layout });
        }
        Ok((all, slots))
    }

    /// Plans a tensor that is read from a publication: in the layout that its scope asks for, or
    /// else as it was published.
    pub fn read_published(
        &mut self,
        catalogue: &mut Catalogue,
        streams: &mut Streams,
        (create, publication, index): (&Create, SessionId, TensorId),
        published: &PublishedTensor,
    ) {
        let Create { output, signal, source, .. } = *create;
        let meta = published.meta;
        let (layout, is_placed) = match self.wanted(catalogue, signal) {
            Ok(Some(wanted)) => (Arc::new(wanted.layout(meta)), true),
            Ok(None) => self.published_layout(catalogue, &published.layout),
            Err(reason) => {
                let failure = Failure::new("shared", reason, String::new(), source);
                return catalogue.fail(output, Arc::new(failure));
            }
        };
        for (rank, &slot) in layout.mesh.slots.iter().enumerate() {
            let need = layout.block(meta.shape, rank);
            let parts = parts(published, &need, slot);
            let part = Meta::new(meta.dtype, need.shape);
            let values = PublishedValues { publication, index, meta: part, need, parts };
            let content = Content::Published(Box::new(values));
            let create = Create { output, content, signal, source };
            streams.push(slot, WorkerCommand::Create(Box::new(create)));
        }
        catalogue.put(output, meta, layout, output);
        catalogue.set_provenance(output, Provenance { placed: is_placed, combined: false });
    }

    /// Returns the layout in which a session reads a tensor, and whether it is sharded: that of the
    /// publication, on the session's slots of the same ids, or at home.
    fn published_layout(&mut self, catalogue: &mut Catalogue, of: &Layout) -> (Arc<Layout>, bool) {
        let has_slot = |slot: &SlotId| catalogue.slots.host(*slot).is_some();
        if of.mesh.slots.len() == 1 || !of.mesh.slots.iter().all(has_slot) {
            return (catalogue.home(&mut self.meshes), false);
        }
        catalogue.slots.fix();
        let mesh = self.meshes.get(&of.mesh.dims, &of.mesh.slots);
        (Arc::new(Layout { mesh, placements: of.placements.clone() }), true)
    }
}

/// Returns the published parts from which a slot makes a block: one that has all of it, if there is
/// one, its own at best.
fn parts(published: &PublishedTensor, need: &Block, slot: SlotId) -> Vec<PublishedPart> {
    let PublishedTensor { meta, layout } = published;
    let ranks = layout.mesh.slots.iter().enumerate();
    let all = ranks.map(|(rank, slot)| (*slot, layout.block(meta.shape, rank)));
    let part = |(slot, block): (SlotId, Block)| PublishedPart { slot, block };
    let has_all = |block: &Block| block.intersect(need) == Some(*need) || block == need;
    let whole = all.clone().filter(|(_, block)| has_all(block));
    if let Some(one) = whole.min_by_key(|(of, block)| (*of != slot, block != need, *of)) {
        return vec![part(one)];
    }
    let mut parts: Vec<PublishedPart> = Vec::new();
    for (of, block) in all.filter(|(_, block)| block.intersect(need).is_some()) {
        if parts.iter().all(|other| other.block != block) {
            parts.push(part((of, block)));
        }
    }
    parts
}
