//! The catalogue of a session: every live tensor's shape, dtype, owner and placements.
//! [`by_slot`]: the same by slot.

mod by_slot;

use std::collections::BTreeMap;
use std::sync::Arc;

use gt_ir::layout::Layout;
use gt_ir::message::Failure;
use gt_ir::{Meta, Operand, SlotId, SourceId, TensorId, TransferId, WorkerCommand};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use crate::planner::explain::Recorder;
use crate::planner::meshes::Meshes;
use crate::planner::moving::Moving;
use crate::planner::scope::Scope;
use crate::planner::slots::Slots;
use crate::planner::streams::Streams;

/// How many bytes of a session's copies a worker keeps in case they are needed again.
const COPIES: u64 = 2 << 30;

/// Shapes and dtypes of an instruction's operands.
pub type Metas = SmallVec<[Operand<Meta>; 3]>;

/// A tensor, as the dispatcher knows it.
enum TensorState {
    Placed(Placed),
    /// Lost, or never computed, because of this.
    Failed(Arc<Failure>),
}

/// A tensor that is on workers, or on its way there, in one or several layouts.
pub struct Placed {
    pub meta: Meta,
    /// The first is as it was made; others were made of it.
    pub copies: SmallVec<[TensorCopy; 1]>,
    pub provenance: Provenance,
}

/// Why a tensor lies as it does.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Provenance {
    /// A scope wanted it so, for it or for what it is an update of.
    pub placed: bool,
    /// It is cut because partial values were added up that way: putting it together completes
    /// that.
    pub combined: bool,
}

/// One layout of a tensor, and its name on the workers.
#[derive(Clone)]
pub struct TensorCopy {
    pub layout: Arc<Layout>,
    pub id: TensorId,
    /// When it was made for an instruction, counted; 0 for the tensor as it was made.
    pub made: u64,
}

/// A session's tensors, and what decides where they go.
#[derive(Default)]
pub struct Catalogue {
    pub slots: Slots,
    /// The layout of what is at the home slot.
    home: Option<(SlotId, Arc<Layout>)>,
    signals: FxHashMap<u32, Scope>,
    /// Grows with every change of a signal's meaning.
    signals_version: u64,
    /// What is planned is recorded, while somebody wants it explained.
    pub recorder: Option<Recorder>,
    /// Moves of more bytes than this are errors, unless a scope or a sum asks for them.
    pub strict: Option<u64>,
    /// What the slices of an iteration that is planned depend on.
    pub moving: Moving,
    tensors: FxHashMap<TensorId, TensorState>,
    /// Grows with every change of a tensor's places.
    changes: u64,
    /// How many names of the planner's own were given, and transfers begun.
    made: u64,
    transfers: u64,
    /// The copies that were made for instructions and are there, by when they were made: of which
    /// tensor, and their bytes on the slot that has most of them.
    moved: BTreeMap<u64, (TensorId, u64)>,
    moved_bytes: u64,
    moves: u64,
}

impl Catalogue {
    /// Checks a client's name for a tensor that it makes now.
    ///
    /// # Errors
    /// It is one of the planner's own.
    #[inline]
    pub fn check_new(&self, id: TensorId) -> Result<(), String> {
        if id < TensorId::PLANNED {
            return Ok(());
        }
        Err(format!("tensor number {id} is out of range"))
    }

    /// The layout of what is at the home slot.
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

    pub fn signal(&self, number: u32) -> Option<&Scope> {
        self.signals.get(&number)
    }

    /// A signal with the slots that it is resolved on.
    pub fn scope(&mut self, number: u32) -> Option<(&mut Scope, &Slots)> {
        Some((self.signals.get_mut(&number)?, &self.slots))
    }

    /// A signal means this from now on.
    pub fn set_signal(&mut self, number: u32, scope: Scope) {
        self.signals.insert(number, scope);
        self.signals_version += 1;
    }

    pub fn signals_version(&self) -> u64 {
        self.signals_version
    }

    /// Grows with every change of a tensor's places.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// A new name for a tensor of the planner's own.
    pub fn name(&mut self) -> TensorId {
        self.made += 1;
        TensorId::PLANNED.after(self.made)
    }

    pub fn transfer(&mut self) -> TransferId {
        self.transfers += 1;
        TransferId(self.transfers)
    }

    /// The names of the planner's own and the transfers that come next.
    pub fn next(&self) -> (TensorId, TransferId) {
        (TensorId::PLANNED.after(self.made + 1), TransferId(self.transfers + 1))
    }

    /// Gives so many names and transfers at once: the first of each.
    pub fn skip(&mut self, names: u64, transfers: u64) -> (TensorId, TransferId) {
        let first = self.next();
        self.made += names;
        self.transfers += transfers;
        first
    }

    /// Takes a tensor out, to be laid otherwise. Nothing is said to the workers.
    pub fn take(&mut self, id: TensorId) -> Option<Placed> {
        match self.tensors.remove(&id) {
            Some(TensorState::Placed(placed)) => Some(placed),
            _ => None,
        }
    }

    /// Lets a tensor lie as it does after an iteration: in copies that are there, and others that were
    /// moved, which are marked.
    pub fn lay(
        &mut self,
        id: TensorId,
        meta: Meta,
        provenance: Provenance,
        copies: Vec<(TensorCopy, bool)>,
    ) {
        let kept = copies.iter().filter(|(_, moved)| !moved).map(|(copy, _)| copy.clone());
        let placed = Placed { meta, copies: kept.collect(), provenance };
        self.tensors.insert(id, TensorState::Placed(placed));
        for (copy, _) in copies.into_iter().filter(|(_, moved)| *moved) {
            self.add_copy(id, copy);
        }
    }

    /// A tensor, or why it is not there.
    pub fn get(&self, id: TensorId) -> Result<&Placed, Arc<Failure>> {
        match self.tensors.get(&id) {
            Some(TensorState::Placed(placed)) => Ok(placed),
            _ => Err(self.failure(id).unwrap_or_else(|| Arc::new(missing(id)))),
        }
    }

    /// Why a tensor will never be there, if that is known.
    pub fn failure(&self, id: TensorId) -> Option<Arc<Failure>> {
        match self.tensors.get(&id) {
            Some(TensorState::Failed(failure)) => Some(Arc::clone(failure)),
            _ => None,
        }
    }

    /// A tensor that is known to be there.
    pub fn placed(&self, id: TensorId) -> &Placed {
        match self.tensors.get(&id) {
            Some(TensorState::Placed(placed)) => placed,
            _ => unreachable!("tensor {id} was there when the instruction began"),
        }
    }

    fn placed_mut(&mut self, id: TensorId) -> &mut Placed {
        match self.tensors.get_mut(&id) {
            Some(TensorState::Placed(placed)) => placed,
            _ => unreachable!("tensor {id} was there when the instruction began"),
        }
    }

    #[inline]
    pub fn put(&mut self, id: TensorId, meta: Meta, layout: Arc<Layout>, name: TensorId) {
        self.changes += 1;
        let copies = smallvec![TensorCopy { layout, id: name, made: 0 }];
        let provenance = Provenance::default();
        self.tensors.insert(id, TensorState::Placed(Placed { meta, copies, provenance }));
    }

    pub fn set_provenance(&mut self, id: TensorId, provenance: Provenance) {
        self.placed_mut(id).provenance = provenance;
    }

    pub fn add_copy(&mut self, id: TensorId, mut copy: TensorCopy) {
        self.changes += 1;
        self.moves += 1;
        copy.made = self.moves;
        let placed = self.placed_mut(id);
        let part = |rank| copy.layout.block(placed.meta.shape, rank).shape.numel();
        let most = (0..copy.layout.mesh.size()).map(part).max().unwrap_or(0);
        let bytes = (most * placed.meta.dtype.size()) as u64;
        placed.copies.push(copy);
        self.moved.insert(self.moves, (id, bytes));
        self.moved_bytes += bytes;
    }

    /// Frees a copy on the workers, and forgets when it was made.
    #[inline]
    fn let_go(&mut self, copy: &TensorCopy, streams: &mut Streams) {
        self.changes += 1;
        free_copy(copy, streams);
        self.forget_made(copy);
    }

    fn forget_made(&mut self, copy: &TensorCopy) {
        if copy.made == 0 {
            return;
        }
        if let Some((_, bytes)) = self.moved.remove(&copy.made) {
            self.moved_bytes -= bytes;
        }
    }

    /// Frees the oldest copies that were made for instructions, where they take more memory of a
    /// worker than they may. They are made again when they are needed again.
    pub fn limit_copies(&mut self, streams: &mut Streams) {
        while self.moved_bytes > COPIES {
            let Some((made, (tensor, bytes))) = self.moved.pop_first() else { return };
            self.moved_bytes -= bytes;
            let Some(TensorState::Placed(placed)) = self.tensors.get_mut(&tensor) else { continue };
            if placed.copies.len() > 1
                && let Some(index) = placed.copies.iter().position(|copy| copy.made == made)
            {
                free_copy(&placed.copies.remove(index), streams);
            }
        }
    }

    pub fn fail(&mut self, id: TensorId, failure: Arc<Failure>) {
        self.changes += 1;
        self.tensors.insert(id, TensorState::Failed(failure));
    }

    /// Moves a tensor to another name.
    pub fn rename(&mut self, from: TensorId, to: TensorId) {
        self.changes += 1;
        if let Some(state) = self.tensors.remove(&from) {
            if let TensorState::Placed(placed) = &state {
                for copy in &placed.copies {
                    if let Some((tensor, _)) = self.moved.get_mut(&copy.made) {
                        *tensor = to;
                    }
                }
            }
            self.tensors.insert(to, state);
        }
    }

    /// Forgets a tensor, here and on the workers.
    #[inline]
    pub fn free(&mut self, id: TensorId, streams: &mut Streams) {
        self.changes += 1;
        if let Some(TensorState::Placed(placed)) = self.tensors.remove(&id) {
            placed.copies.iter().for_each(|copy| self.let_go(copy, streams));
        }
    }

    /// Frees partial values that have been combined: the whole is as good.
    pub fn drop_combined(&mut self, id: TensorId, streams: &mut Streams) {
        let Some(TensorState::Placed(placed)) = self.tensors.get_mut(&id) else { return };
        if placed.copies.len() < 2 || placed.copies.iter().all(|copy| copy.layout.is_partial()) {
            return;
        }
        let (kept, combined) = placed
            .copies
            .drain(..)
            .partition::<SmallVec<[TensorCopy; 1]>, _>(|copy| !copy.layout.is_partial());
        placed.copies = kept;
        combined.iter().for_each(|copy| self.let_go(copy, streams));
        self.settle(id);
    }

    /// Frees one of several copies.
    pub fn drop_copy(&mut self, id: TensorId, copy: &TensorCopy, streams: &mut Streams) {
        let Some(index) = self.placed(id).copies.iter().position(|other| other.id == copy.id)
        else {
            return;
        };
        let copy = self.placed_mut(id).copies.remove(index);
        self.let_go(&copy, streams);
        self.settle(id);
    }

    /// Frees all copies but one.
    pub fn keep_only(&mut self, id: TensorId, layout: &Layout, streams: &mut Streams) {
        let placed = self.placed_mut(id);
        let (kept, others) = placed
            .copies
            .drain(..)
            .partition::<SmallVec<[TensorCopy; 1]>, _>(|copy| *copy.layout == *layout);
        placed.copies = kept;
        others.iter().for_each(|copy| self.let_go(copy, streams));
        self.settle(id);
    }

    /// A copy that is the only one is the tensor from now on.
    fn settle(&mut self, id: TensorId) {
        if let [only] = self.placed_mut(id).copies.as_mut_slice() {
            let was = only.clone();
            only.made = 0;
            self.forget_made(&was);
        }
    }
}

#[inline]
pub fn free_copy(copy: &TensorCopy, streams: &mut Streams) {
    for &slot in &copy.layout.mesh.slots {
        streams.push(slot, WorkerCommand::Free(copy.id));
    }
}

/// The failure of a tensor that is not placed.
pub fn missing(tensor: TensorId) -> Failure {
    Failure {
        operation: "fetch".into(),
        reason: format!("tensor {tensor} does not exist in this session"),
        worker: String::new(),
        line: SourceId::default(),
    }
}
