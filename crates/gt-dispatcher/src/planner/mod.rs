//! The planner: decides on which slots each instruction runs, and emits the commands and the
//! redistributions that this takes.
//!
//! - State: [`catalogue`]: a session's tensors and their copies; [`slots`]: its slots; [`topology`]:
//!   which workers are near each other; [`meshes`]: the meshes in use; [`scope`]: the placements that
//!   signals ask for.
//! - One instruction: [`run`]: the general path; [`in_place`]: the fast path, if operands share a
//!   layout; [`strategy`]: the cheapest way to shard it; [`predicates`]: predicates on a strategy;
//!   [`expand`]: composites; [`commit`]: the commit of a step; [`mod@slice`]: slices along sharded
//!   axes.
//! - Files: [`save`]: which slot writes which block. [`published`]: what is shared with others.
//! - Output: [`redistribution`]: the stages from one layout to another; [`local`]: each slot's part
//!   of an instruction; [`emit`]: commands; [`fabrics`]: exchanges that engines run as collectives;
//!   [`chains`]: those that go from neighbour to neighbour; [`streams`]: commands by slot.
//! - Iterations: [`iteration`]: what is to be planned; [`plans`]: the cache of plans; [`plan`]: one of
//!   them; [`write`]: a planned iteration as templates; [`touches`]: the tensors that it uses;
//!   [`varying_slices`]: what in it varies.
//! - [`explain`]: records what is planned, on request; [`rehearsal`]: plans on a copy of the catalogue.

mod catalogue;
mod chains;
mod commit;
mod emit;
mod expand;
mod explain;
mod fabrics;
mod in_place;
mod iteration;
mod local;
mod meshes;
mod plan;
mod plans;
mod predicates;
mod published;
mod redistribution;
mod rehearsal;
mod run;
mod save;
mod scope;
mod slice;
mod slots;
mod strategy;
mod streams;
mod topology;
mod touches;
mod varying_slices;
mod write;

use std::sync::Arc;

use gt_ir::explain::{Explanation, PlacedTensor};
use gt_ir::layout::{Layout, Placement};
use gt_ir::message::Failure;
use gt_ir::sharding::Block;
use gt_ir::stored::{StoredPart, StoredValues};
use gt_ir::{
    ClientCommand, Content, Create, Instruction, Meta, SlotId, SourceId, TensorData, TensorId,
    WorkerCommand,
};

pub use catalogue::Catalogue;
pub(crate) use catalogue::{TensorState, TensorTable};
pub use explain::PlanRecorder;
pub use fabrics::Fabrics;
pub use iteration::{InvocationObserver, TemplateIteration};
pub use plans::PlanCache;
pub use scope::SignalScope;
pub use slots::{Host, Network, Slots};
pub use streams::Streams;
pub use topology::{Place, Topology};

use catalogue::{Placed, Provenance, TensorCopy, missing};
use explain::Reason;
use meshes::Meshes;
use scope::ResolvedPlacement;

/// Replicated data up to this size is sent to each slot; larger data to one, which forwards it.
const SMALL_DATA: usize = 64 << 10;

/// Plans the streams of all sessions.
pub struct Planner {
    meshes: Meshes,
    /// Tensors of at least this many bytes are sharded over all workers if no signal places them.
    auto_shard: Option<usize>,
    /// The work ([`gt_ir::Operation::work`]) that the slowest engine does in a second.
    rate: u64,
    stats: PlannerStats,
}

/// Counters of redistributions.
#[derive(Clone, Copy, Default, Debug)]
pub struct PlannerStats {
    /// Redistributions between workers, and their bytes.
    pub redistributions: u64,
    pub bytes: u64,
}

impl Default for Planner {
    fn default() -> Planner {
        let (meshes, stats) = (Meshes::default(), PlannerStats::default());
        Planner { meshes, auto_shard: None, rate: u64::MAX, stats }
    }
}

impl Planner {
    /// Shards tensors of at least `bytes` over all workers where no signal places them.
    pub fn shard_automatically(&mut self, bytes: usize) {
        self.auto_shard = Some(bytes);
    }

    /// Returns the counters of redistributions.
    pub fn stats(&self) -> PlannerStats {
        self.stats
    }

    /// Sets the work that the slowest engine does in a second.
    pub fn set_rate(&mut self, rate: u64) {
        self.rate = rate;
    }

    /// Returns the work after which a session's iteration yields to other lanes: a hundredth of
    /// what the slowest engine did in a second when the session's first template was divided into
    /// parts.
    fn quantum(&self, catalogue: &mut Catalogue) -> u64 {
        (catalogue.slots.rate(self.rate) / 100).max(1)
    }

    /// Makes a catalogue that was decoded from a journal like one that was planned here.
    pub(crate) fn intern_layouts(&mut self, catalogue: &mut Catalogue) {
        catalogue.intern_layouts(&mut self.meshes);
    }

    /// Handles the loss of a slot's worker: tensors that only this slot held fail.
    pub fn lose_slot(
        &mut self,
        catalogue: &mut Catalogue,
        streams: &mut Streams,
        slot: SlotId,
        failure: &Arc<Failure>,
    ) {
        catalogue.lose_slot(slot, failure, &mut self.meshes, streams);
    }

    /// Plans an instruction.
    ///
    /// # Errors
    /// No valid client would send it.
    pub fn instruction(
        &mut self,
        catalogue: &mut Catalogue,
        streams: &mut Streams,
        instruction: Instruction,
    ) -> Result<(), String> {
        for (id, _) in instruction.outputs() {
            catalogue.check_new(id)?;
        }
        if instruction.results.is_empty() {
            return Err(format!("'{}' declares no result", instruction.operation.name));
        }
        self.run(catalogue, streams, instruction)
    }

    /// Fails the outputs of an instruction that is not run.
    pub(crate) fn give_up(
        &mut self,
        catalogue: &mut Catalogue,
        instruction: &Instruction,
        failure: &Arc<Failure>,
    ) {
        catalogue.fix_slots_for(instruction.signal);
        run::fail_outputs(catalogue, instruction, failure);
    }

    /// Plans a tensor made from data, placed as its scope asks. Returns the first slot that
    /// receives the data.
    ///
    /// # Errors
    /// The name is one that no valid client uses.
    pub fn create(
        &mut self,
        catalogue: &mut Catalogue,
        streams: &mut Streams,
        create: Create,
    ) -> Result<Option<SlotId>, String> {
        let Create { output, content, signal, source } = create;
        catalogue.check_new(output)?;
        let meta = content.meta();
        let wanted = match self.wanted(catalogue, signal) {
            Ok(wanted) => wanted.or_else(|| self.automatic(catalogue, meta)),
            Err(reason) => {
                let failure = Failure { operation: "create".into(), reason, ..missing(output) };
                catalogue.fail(output, Arc::new(failure));
                return Ok(None);
            }
        };
        let command =
            |content| WorkerCommand::Create(Box::new(Create { output, content, signal, source }));
        let Some(layout) = wanted.map(|wanted| wanted.layout(meta)) else {
            let home = catalogue.home(&mut self.meshes);
            let slot = home.mesh.slots[0];
            streams.push(slot, command(content));
            catalogue.put(output, meta, home, output);
            return Ok(Some(slot));
        };
        let slot = layout.mesh.slots[0];
        let provenance = Provenance { placed: true, combined: false };
        match content {
            Content::Data(data) if splits(&layout, &data) => {
                for (rank, &slot) in layout.mesh.slots.iter().enumerate() {
                    streams.push(slot, command(Content::Data(part(&data, &layout, rank))));
                }
                catalogue.put(output, meta, Arc::new(layout), output);
                catalogue.set_provenance(output, provenance);
            }
            // Each slot reads what it needs.
            Content::Stored(stored) => {
                for (rank, &slot) in layout.mesh.slots.iter().enumerate() {
                    let need = layout.block(meta.shape, rank);
                    let part = Meta::new(meta.dtype, need.shape);
                    let parts = overlapping(&stored.parts, &need);
                    let stored = StoredValues { meta: part, need, parts };
                    streams.push(slot, command(Content::Stored(Box::new(stored))));
                }
                catalogue.put(output, meta, Arc::new(layout), output);
                catalogue.set_provenance(output, provenance);
            }
            content => {
                streams.push(slot, command(content));
                let whole = Layout::replicated(&self.meshes.single(slot));
                catalogue.put(output, meta, Arc::new(whole), output);
                let (line, reason) = (SourceId::default(), Reason::Created);
                self.copy_in_layout(catalogue, streams, output, &layout, line, reason);
                record_other(catalogue, "create", output, line);
                catalogue.keep_only(output, &layout, streams);
                catalogue.set_provenance(output, provenance);
            }
        }
        Ok(Some(slot))
    }

    /// Emits the command that `fetch` makes for a slot with a replica of the tensor. If no slot has
    /// one, one gets a temporary copy.
    pub fn with_replica(
        &mut self,
        catalogue: &mut Catalogue,
        streams: &mut Streams,
        id: TensorId,
        line: SourceId,
        fetch: impl FnOnce(SlotId, TensorId) -> WorkerCommand,
    ) {
        if let Some((slot, name)) = catalogue.replica(id) {
            return streams.push(slot, fetch(slot, name));
        }
        let placed = catalogue.placed(id);
        let slot = placed.copies[0].layout.mesh.slots[0];
        let layout = Layout::replicated(&self.meshes.single(slot));
        let copy: TensorCopy =
            self.copy_in_layout(catalogue, streams, id, &layout, line, Reason::Fetched);
        record_other(catalogue, "fetch", id, line);
        streams.push(slot, fetch(slot, copy.id));
        catalogue.drop_copy(id, &copy, streams);
    }

    /// Plans a command that makes or frees tensors; others are ignored.
    ///
    /// # Errors
    /// It is not valid.
    pub fn compute(
        &mut self,
        catalogue: &mut Catalogue,
        streams: &mut Streams,
        command: ClientCommand,
    ) -> Result<(), String> {
        match command {
            ClientCommand::Run(instruction) => self.instruction(catalogue, streams, instruction),
            ClientCommand::Create(create) => self.create(catalogue, streams, create).map(drop),
            ClientCommand::Free(id) => {
                self.free(catalogue, streams, id);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Ends the recording of a session's plans and returns it.
    pub fn end_explaining(&self, catalogue: &mut Catalogue) -> Explanation {
        let recorder = catalogue.recorder.take().unwrap_or_default();
        recorder.explanation(&catalogue.slots, &catalogue.memory())
    }

    /// Returns the placement of each copy of a tensor.
    ///
    /// # Errors
    /// The tensor's failure.
    pub fn locate(
        &self,
        catalogue: &Catalogue,
        id: TensorId,
    ) -> Result<Vec<PlacedTensor>, Arc<Failure>> {
        let Placed { meta, copies, .. } = catalogue.get(id)?;
        let place = |copy: &TensorCopy| explain::placed(&catalogue.slots, *meta, &copy.layout);
        Ok(copies.iter().map(place).collect())
    }

    /// Frees a tensor.
    #[inline]
    pub fn free(&mut self, catalogue: &mut Catalogue, streams: &mut Streams, id: TensorId) {
        catalogue.free(id, streams);
    }

    /// Returns the placement that an instruction's signal asks for.
    fn wanted(
        &mut self,
        catalogue: &mut Catalogue,
        signal: u32,
    ) -> Result<Option<ResolvedPlacement>, String> {
        if signal == 0 {
            return Ok(None);
        }
        catalogue.fix_slots_for(signal);
        let Some((scope, slots)) = catalogue.scope(signal) else { return Ok(None) };
        let wanted = scope.resolve(slots, &mut self.meshes).map_err(str::to_string)?;
        Ok(wanted.cloned())
    }

    /// Returns the automatic placement of a large tensor, if that is enabled.
    fn automatic(&mut self, catalogue: &mut Catalogue, meta: Meta) -> Option<ResolvedPlacement> {
        let threshold = self.auto_shard?;
        if meta.bytes() < threshold {
            return None;
        }
        catalogue.slots.fix();
        let slots: Vec<SlotId> = catalogue.slots.numbers().iter().map(|(_, slot)| *slot).collect();
        if slots.len() < 2 {
            return None;
        }
        let longest = (0..meta.shape.rank()).rev().max_by_key(|&axis| meta.shape[axis])?;
        let axis = if meta.shape[0] >= slots.len() { 0 } else { longest };
        Some(ResolvedPlacement::new(self.meshes.get(&[slots.len()], &slots), &[Some(axis as i64)]))
    }
}

/// Records a step that is no instruction: the redistribution from a tensor's first copy to its
/// last.
fn record_other(catalogue: &mut Catalogue, name: &str, id: TensorId, line: SourceId) {
    if catalogue.recorder.is_none() {
        return;
    }
    let found = catalogue.placed(id);
    let placed = |copy: &TensorCopy| explain::placed(&catalogue.slots, found.meta, &copy.layout);
    let (first, last) = (&found.copies[0], &found.copies[found.copies.len() - 1]);
    let (from, to) = (placed(first), placed(last));
    if let Some(recorder) = &mut catalogue.recorder {
        recorder.other(name, line, from, to);
    }
}

/// Returns whether data is split here: its parts are contiguous, or it is small and replicated.
fn splits(layout: &Layout, data: &TensorData) -> bool {
    match layout.placements.as_slice() {
        [Placement::Shard { axis: 0, .. }] => true,
        placements => {
            data.bytes.len() <= SMALL_DATA
                && placements.iter().all(|placement| *placement == Placement::Replicate)
        }
    }
}

/// Returns the parts in files that a block needs.
fn overlapping(parts: &[StoredPart], need: &Block) -> Vec<StoredPart> {
    parts.iter().filter(|part| part.block.intersect(need).is_some()).cloned().collect()
}

/// Returns a rank's part of the data.
fn part(data: &TensorData, layout: &Layout, rank: usize) -> TensorData {
    let block = layout.block(data.shape, rank);
    if block.shape == data.shape {
        return data.clone();
    }
    let row = data.bytes.len() / data.shape[0].max(1);
    let start = block.starts[0] * row;
    let bytes = data.bytes.slice(start..start + block.shape[0] * row);
    TensorData { dtype: data.dtype, shape: block.shape, bytes }
}
