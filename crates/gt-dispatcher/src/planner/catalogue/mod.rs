//! The catalogue of a session: every live tensor's shape, dtype, provenance and copies.
//! [`by_slot`]: the same by slot; [`stored`]: its encoding; [`abandoned`]: without its client.

mod abandoned;
mod by_slot;
mod stored;

use std::collections::BTreeMap;
use std::sync::Arc;

use gt_ir::layout::Layout;
use gt_ir::message::Failure;
use gt_ir::{Meta, Operand, SlotId, SourceId, TensorId, TransferId, WorkerCommand};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use by_slot::CopyCounts;

use crate::pages::Pages;
use crate::planner::explain::PlanRecorder;
use crate::planner::meshes::Meshes;
use crate::planner::scope::SignalScope;
use crate::planner::slots::Slots;
use crate::planner::streams::Streams;
use crate::planner::varying_slices::VaryingSlices;

/// The bytes of extra copies that a session keeps for reuse, counting each copy's largest part.
const MAX_EXTRA_BYTES: u64 = 2 << 30;

/// The shapes and dtypes of an instruction's operands.
pub type OperandMetas = SmallVec<[Operand<Meta>; 3]>;

/// A session's tensors by number. Clones share what has not changed.
pub(crate) type TensorTable = Pages<TensorState>;

/// The state of a tensor in the catalogue.
#[derive(Clone)]
pub(crate) enum TensorState {
    Placed(Placed),
    /// Lost, or never computed, with the reason.
    Failed(Arc<Failure>),
}

/// A tensor that workers hold, or will hold, in one or several layouts.
#[derive(Clone)]
pub struct Placed {
    pub meta: Meta,
    /// The first is the tensor as computed; the others were redistributed from it.
    pub copies: SmallVec<[TensorCopy; 1]>,
    pub provenance: Provenance,
}

/// Why a tensor has its layout.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Provenance {
    /// A scope placed it, or the tensor that it is an update of.
    pub placed: bool,
    /// It is sharded as the result of a reduce-scatter of partial values; gathering it completes
    /// their all-reduce.
    pub combined: bool,
}

/// One layout of a tensor, and its name on the workers.
#[derive(Clone)]
pub struct TensorCopy {
    pub layout: Arc<Layout>,
    pub id: TensorId,
    /// The order in which extra copies were made; 0 for the tensor as computed.
    pub made: u64,
}

impl TensorCopy {
    /// Returns the bytes of its largest part.
    fn bytes(&self, meta: Meta) -> u64 {
        let part = |rank| self.layout.block(meta.shape, rank).shape.numel();
        let most = (0..self.layout.mesh.size()).map(part).max().unwrap_or(0);
        (most * meta.dtype.size()) as u64
    }
}

/// A session's tensors, and the state that decides their placement.
#[derive(Clone, Default)]
pub struct Catalogue {
    pub slots: Slots,
    /// The layout of tensors at the home slot, cached.
    home: Option<(SlotId, Arc<Layout>)>,
    signals: FxHashMap<u32, SignalScope>,
    /// Incremented when a signal's meaning changes.
    signals_version: u64,
    /// Records what is planned, between the two `Explain` requests.
    pub recorder: Option<PlanRecorder>,
    /// Redistributions of more bytes than this are errors, unless a scope or a reduction requires
    /// them.
    pub strict: Option<u64>,
    /// The parts of the iteration being planned that vary with its numbers.
    pub varying: VaryingSlices,
    tensors: TensorTable,
    counted: CopyCounts,
    /// Incremented when a tensor's copies change.
    changes: u64,
    /// The numbers of planner-made tensors and of transfers so far.
    made: u64,
    transfers: u64,
    /// The live extra copies in the order in which they were made: the tensor, and the bytes of the
    /// largest part.
    extra_copies: BTreeMap<u64, (TensorId, u64)>,
    extra_bytes: u64,
    extra_count: u64,
}

impl Catalogue {
    /// Checks the name that a client gives a new tensor.
    ///
    /// # Errors
    /// The name is in the planner's range.
    #[inline]
    pub fn check_new(&self, id: TensorId) -> Result<(), String> {
        if id < TensorId::PLANNED {
            return Ok(());
        }
        Err(format!("tensor number {id} is out of range"))
    }

    /// Returns the layout of tensors at the home slot.
    pub fn home(&mut self, meshes: &mut Meshes) -> Arc<Layout> {
        let slot = self.slots.home().expect("sessions are planned only with a worker");
        match &self.home {
            Some((home, layout)) if *home == slot => Arc::clone(layout),
            _ => {
                let layout = Arc::new(Layout::replicated(&meshes.single(slot)));
                self.home = Some((slot, Arc::clone(&layout)));
                layout
            }
        }
    }

    /// Returns a signal's scope.
    pub fn signal(&self, number: u32) -> Option<&SignalScope> {
        self.signals.get(&number)
    }

    /// Returns a signal's scope, and the slots to resolve it on.
    pub fn scope(&mut self, number: u32) -> Option<(&mut SignalScope, &Slots)> {
        Some((self.signals.get_mut(&number)?, &self.slots))
    }

    /// Fixes the number of slots, if a signal (0 for none) shards tensors over them.
    #[inline]
    pub fn fix_slots_for(&mut self, signal: u32) {
        if signal != 0
            && !self.slots.is_fixed()
            && self.signal(signal).is_some_and(SignalScope::is_sharded)
        {
            self.slots.fix();
        }
    }

    /// Defines or redefines a signal.
    pub fn set_signal(&mut self, number: u32, scope: SignalScope) {
        self.signals.insert(number, scope);
        self.signals_version += 1;
    }

    /// Returns a version of the signals: incremented when a signal is defined or redefined.
    pub fn signals_version(&self) -> u64 {
        self.signals_version
    }

    /// Returns a version of the tensors' copies: incremented when they change.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// Returns a new name for a planner-made tensor.
    pub fn name(&mut self) -> TensorId {
        self.made += 1;
        TensorId::PLANNED.after(self.made)
    }

    /// Returns a new transfer.
    pub fn transfer(&mut self) -> TransferId {
        self.transfers += 1;
        TransferId(self.transfers)
    }

    /// Returns the next planner-made name and the next transfer.
    pub fn next(&self) -> (TensorId, TransferId) {
        (TensorId::PLANNED.after(self.made + 1), TransferId(self.transfers + 1))
    }

    /// Reserves names and transfers, and returns the first of each.
    pub fn skip(&mut self, names: u64, transfers: u64) -> (TensorId, TransferId) {
        let first = self.next();
        self.made += names;
        self.transfers += transfers;
        first
    }

    /// Takes a tensor out, to be put back by [`Catalogue::put_placed`]. Emits no commands.
    pub fn take(&mut self, id: TensorId) -> Option<Placed> {
        self.changes += 1;
        match self.tensors.remove(id.0) {
            Some(TensorState::Placed(placed)) => Some(placed),
            _ => None,
        }
    }

    /// Puts a tensor in the placement in which an iteration leaves it; `true` marks extra copies.
    /// Emits no commands.
    pub fn put_placed(
        &mut self,
        id: TensorId,
        meta: Meta,
        provenance: Provenance,
        copies: Vec<(TensorCopy, bool)>,
    ) {
        self.changes += 1;
        let kept = copies.iter().filter(|(_, is_extra)| !is_extra).map(|(copy, _)| copy.clone());
        let placed = Placed { meta, copies: kept.collect(), provenance };
        self.tensors.insert(id.0, TensorState::Placed(placed));
        for (copy, _) in copies.into_iter().filter(|(_, is_extra)| *is_extra) {
            self.add_copy(id, copy);
        }
    }

    /// Returns a tensor, or its failure.
    pub fn get(&self, id: TensorId) -> Result<&Placed, Arc<Failure>> {
        match self.tensors.get(id.0) {
            Some(TensorState::Placed(placed)) => Ok(placed),
            _ => Err(self.failure(id).unwrap_or_else(|| Arc::new(missing(id)))),
        }
    }

    /// Returns a slot that holds a replica of a tensor, and the tensor's name there.
    pub fn replica(&self, id: TensorId) -> Option<(SlotId, TensorId)> {
        let Some(TensorState::Placed(placed)) = self.tensors.get(id.0) else { return None };
        let copy = placed.copies.iter().find(|copy| copy.layout.is_replicated())?;
        Some((copy.layout.mesh.slots[0], copy.id))
    }

    /// Returns the failure of a tensor that is known to have failed.
    pub fn failure(&self, id: TensorId) -> Option<Arc<Failure>> {
        match self.tensors.get(id.0) {
            Some(TensorState::Failed(failure)) => Some(Arc::clone(failure)),
            _ => None,
        }
    }

    /// Returns a tensor that the caller has found to be placed.
    pub fn placed(&self, id: TensorId) -> &Placed {
        match self.tensors.get(id.0) {
            Some(TensorState::Placed(placed)) => placed,
            _ => unreachable!("tensor {id} was placed when the instruction began"),
        }
    }

    fn placed_mut(&mut self, id: TensorId) -> &mut Placed {
        match self.tensors.get_mut(id.0) {
            Some(TensorState::Placed(placed)) => placed,
            _ => unreachable!("tensor {id} was placed when the instruction began"),
        }
    }

    /// Adds a tensor in one layout, `name` on the workers.
    #[inline]
    pub fn put(&mut self, id: TensorId, meta: Meta, layout: Arc<Layout>, name: TensorId) {
        self.changes += 1;
        let copies = smallvec![TensorCopy { layout, id: name, made: 0 }];
        let provenance = Provenance::default();
        self.tensors.insert(id.0, TensorState::Placed(Placed { meta, copies, provenance }));
    }

    /// Sets why a tensor has its layout.
    pub fn set_provenance(&mut self, id: TensorId, provenance: Provenance) {
        self.placed_mut(id).provenance = provenance;
    }

    /// Adds an extra copy of a tensor.
    pub fn add_copy(&mut self, id: TensorId, mut copy: TensorCopy) {
        self.changes += 1;
        self.extra_count += 1;
        copy.made = self.extra_count;
        let placed = self.placed_mut(id);
        let bytes = copy.bytes(placed.meta);
        placed.copies.push(copy);
        self.extra_copies.insert(self.extra_count, (id, bytes));
        self.extra_bytes += bytes;
    }

    /// Frees a copy on the workers, and removes it from the extra copies.
    #[inline]
    fn release_copy(&mut self, copy: &TensorCopy, streams: &mut Streams) {
        self.changes += 1;
        free_copy(copy, streams);
        self.forget_extra(copy);
    }

    /// Removes a copy from the extra copies, if it is one.
    pub fn forget_extra(&mut self, copy: &TensorCopy) {
        if copy.made == 0 {
            return;
        }
        if let Some((_, bytes)) = self.extra_copies.remove(&copy.made) {
            self.extra_bytes -= bytes;
        }
    }

    /// Frees the oldest extra copies while they exceed [`MAX_EXTRA_BYTES`]. They are recomputed on
    /// demand.
    pub fn limit_copies(&mut self, streams: &mut Streams) {
        while self.extra_bytes > MAX_EXTRA_BYTES {
            let Some((made, (tensor, bytes))) = self.extra_copies.pop_first() else { return };
            self.extra_bytes -= bytes;
            let Some(TensorState::Placed(placed)) = self.tensors.get_mut(tensor.0) else {
                continue;
            };
            if placed.copies.len() > 1
                && let Some(index) = placed.copies.iter().position(|copy| copy.made == made)
            {
                self.changes += 1;
                free_copy(&placed.copies.remove(index), streams);
            }
        }
    }

    /// Marks a tensor as failed.
    pub fn fail(&mut self, id: TensorId, failure: Arc<Failure>) {
        self.changes += 1;
        self.tensors.insert(id.0, TensorState::Failed(failure));
    }

    /// Renames a tensor.
    pub fn rename(&mut self, from: TensorId, to: TensorId) {
        self.changes += 1;
        if let Some(state) = self.tensors.remove(from.0) {
            if let TensorState::Placed(placed) = &state {
                for copy in &placed.copies {
                    if let Some((tensor, _)) = self.extra_copies.get_mut(&copy.made) {
                        *tensor = to;
                    }
                }
            }
            self.tensors.insert(to.0, state);
        }
    }

    /// Frees a tensor, here and on the workers.
    #[inline]
    pub fn free(&mut self, id: TensorId, streams: &mut Streams) {
        self.changes += 1;
        if let Some(TensorState::Placed(placed)) = self.tensors.remove(id.0) {
            placed.copies.iter().for_each(|copy| self.release_copy(copy, streams));
        }
    }

    /// Frees the partial copies of a tensor that has a combined copy.
    pub fn drop_combined(&mut self, id: TensorId, streams: &mut Streams) {
        let Some(TensorState::Placed(placed)) = self.tensors.get_mut(id.0) else { return };
        if placed.copies.len() < 2 || placed.copies.iter().all(|copy| copy.layout.is_partial()) {
            return;
        }
        let (kept, combined) = placed
            .copies
            .drain(..)
            .partition::<SmallVec<[TensorCopy; 1]>, _>(|copy| !copy.layout.is_partial());
        placed.copies = kept;
        combined.iter().for_each(|copy| self.release_copy(copy, streams));
        self.promote_sole_copy(id);
    }

    /// Frees one of several copies.
    pub fn drop_copy(&mut self, id: TensorId, copy: &TensorCopy, streams: &mut Streams) {
        let Some(index) = self.placed(id).copies.iter().position(|other| other.id == copy.id)
        else {
            return;
        };
        let copy = self.placed_mut(id).copies.remove(index);
        self.release_copy(&copy, streams);
        self.promote_sole_copy(id);
    }

    /// Frees all copies but the one in `layout`.
    pub fn keep_only(&mut self, id: TensorId, layout: &Layout, streams: &mut Streams) {
        let placed = self.placed_mut(id);
        let (kept, others) = placed
            .copies
            .drain(..)
            .partition::<SmallVec<[TensorCopy; 1]>, _>(|copy| *copy.layout == *layout);
        placed.copies = kept;
        others.iter().for_each(|copy| self.release_copy(copy, streams));
        self.promote_sole_copy(id);
    }

    /// Makes a sole remaining copy the tensor itself: it no longer counts as an extra copy.
    fn promote_sole_copy(&mut self, id: TensorId) {
        if let [only] = self.placed_mut(id).copies.as_mut_slice() {
            let was = only.clone();
            only.made = 0;
            self.forget_extra(&was);
        }
    }
}

/// Frees a copy on the workers.
#[inline]
pub fn free_copy(copy: &TensorCopy, streams: &mut Streams) {
    for &slot in &copy.layout.mesh.slots {
        streams.push(slot, WorkerCommand::Free(copy.id));
    }
}

/// Returns the failure of a tensor that does not exist.
pub fn missing(tensor: TensorId) -> Failure {
    Failure::new(
        "fetch",
        format!("tensor {tensor} does not exist in this session"),
        String::new(),
        SourceId::default(),
    )
}
