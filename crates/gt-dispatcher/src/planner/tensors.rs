//! The tensors of one session, and where they are.

use std::collections::BTreeMap;
use std::sync::Arc;

use gt_ir::message::Failure;
use gt_ir::{Command, Meta, Operand, SourceId, TensorId, TransferId, WorkerId};
use rustc_hash::FxHashMap;
use smallvec::{SmallVec, smallvec};

use super::explain::Notes;
use super::layout::{Layout, Mesh};
use super::meshes::Meshes;
use super::scope::Scope;
use super::streams::Streams;

/// Clients name tensors below this; copies that the planner makes are named above.
const CLIENT_NAMES: u64 = 1 << (TensorId::LOCAL_BITS - 1);

/// How many bytes of a session's copies a worker keeps in case they are needed again.
const COPIES: u64 = 2 << 30;

/// Shapes and dtypes of an instruction's operands.
pub type Metas = SmallVec<[Operand<Meta>; 3]>;

/// A tensor, as the dispatcher knows it.
enum TensorHandle {
    There(There),
    /// Lost, or never computed, because of this.
    Failed(Arc<Failure>),
}

/// A tensor that is on workers, or on its way there, in one or several layouts.
pub struct There {
    pub meta: Meta,
    /// The first is as it was made; others were made of it.
    pub copies: SmallVec<[Copy; 1]>,
    pub origin: Origin,
}

/// Why a tensor lies as it does.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Origin {
    /// A scope wanted it so, for it or for what it is an update of.
    pub placed: bool,
    /// It is cut because partial values were added up that way: putting it together completes
    /// that.
    pub combined: bool,
}

/// One layout of a tensor, and its name on the workers.
#[derive(Clone)]
pub struct Copy {
    pub layout: Arc<Layout>,
    pub id: TensorId,
    /// When it was made for an instruction, counted; 0 for the tensor as it was made.
    pub made: u64,
}

/// A session's name space.
pub struct Tensors {
    pub session: u32,
    /// Where tensors go that nothing else decides on.
    pub home: Option<(WorkerId, Arc<Layout>)>,
    pub signals: FxHashMap<u32, Scope>,
    /// Grows with every change of a signal's meaning.
    pub signals_version: u64,
    /// There is one worker only: it gets everything as it comes, and nothing is kept here.
    pub direct: bool,
    /// The highest name that a client has given so far, plus 1.
    named: u64,
    /// What is planned, while somebody wants it explained.
    pub notes: Option<Notes>,
    /// Moves of more bytes than this are errors, unless a scope or a sum asks for them.
    pub strict: Option<u64>,
    /// All tensors named below this were lost with a worker, before anything was kept here.
    lost: Option<(u64, Arc<Failure>)>,
    handles: FxHashMap<TensorId, TensorHandle>,
    made: u64,
    transfers: u64,
    /// The copies that were made for instructions and are there, by when they were made: of which
    /// tensor, and their bytes on the worker that has most of them.
    moved: BTreeMap<u64, (TensorId, u64)>,
    moved_bytes: u64,
    moves: u64,
}

impl Tensors {
    /// `generation`: how often the session's number was used before.
    pub fn new(session: u32, generation: u64) -> Tensors {
        Tensors {
            session,
            home: None,
            signals: FxHashMap::default(),
            signals_version: 0,
            direct: false,
            named: 0,
            notes: None,
            strict: None,
            lost: None,
            handles: FxHashMap::default(),
            made: 0,
            transfers: TransferId::first(generation),
            moved: BTreeMap::new(),
            moved_bytes: 0,
            moves: 0,
        }
    }

    /// A client's name for a tensor as workers know it; `None` if no client would use it.
    pub fn qualify(&self, id: TensorId) -> Option<TensorId> {
        if id.0 < CLIENT_NAMES { id.qualify(self.session) } else { None }
    }

    /// The same for a tensor that the client makes now.
    pub fn qualify_new(&mut self, id: TensorId) -> Result<TensorId, String> {
        let name = self.qualify(id).ok_or_else(|| format!("tensor number {id} is out of range"))?;
        self.named = self.named.max(id.0 + 1);
        Ok(name)
    }

    /// Whether it has had no tensors yet.
    pub fn is_new(&self) -> bool {
        self.named == 0
    }

    /// Learns of tensors that its worker has.
    pub fn learn(&mut self, tensors: Vec<(TensorId, Result<Meta, Failure>)>) {
        let Some((_, home)) = &self.home else { return };
        let home = Arc::clone(home);
        for (name, meta) in tensors {
            let id = name.split().1;
            match meta {
                Ok(meta) => self.put(id, meta, Arc::clone(&home), name),
                Err(failure) => self.fail(id, Arc::new(failure)),
            }
        }
    }

    /// A new name for a tensor of the planner's own, as clients count.
    pub fn name(&mut self) -> TensorId {
        self.made += 1;
        TensorId(CLIENT_NAMES + self.made)
    }

    /// A new name as workers know it.
    pub fn worker_name(&mut self) -> TensorId {
        let name = self.name();
        name.qualify(self.session).expect("names are counted from within the range")
    }

    pub fn transfer(&mut self) -> TransferId {
        self.transfers += 1;
        self.transfer_at(self.transfers).expect("it is within the range")
    }

    /// The transfer of a number.
    pub fn transfer_at(&self, number: u64) -> Option<TransferId> {
        let local = TensorId(number & (CLIENT_NAMES - 1));
        local.qualify(self.session).map(|id| TransferId(id.0))
    }

    /// The planner's own name of a number, as workers know it.
    pub fn made_name(&self, number: u64) -> Option<TensorId> {
        TensorId(CLIENT_NAMES + number).qualify(self.session)
    }

    /// How many names of the planner's own were given, and transfers begun.
    pub fn counts(&self) -> (u64, u64) {
        (self.made, self.transfers)
    }

    /// Gives so many names and transfers at once: the first of each.
    pub fn skip(&mut self, names: u64, transfers: u64) -> Option<(TensorId, TransferId)> {
        let first = (self.made_name(self.made + 1)?, self.transfer_at(self.transfers + 1)?);
        self.made += names;
        self.transfers += transfers;
        Some(first)
    }

    /// Takes a tensor out, to be laid otherwise. Nothing is said to the workers.
    pub fn take(&mut self, id: TensorId) -> Option<There> {
        match self.handles.remove(&id) {
            Some(TensorHandle::There(there)) => Some(there),
            _ => None,
        }
    }

    /// Lets a tensor lie as it does after a pass: in copies that are there, and others that were
    /// moved, which are marked.
    pub fn lay(&mut self, id: TensorId, meta: Meta, origin: Origin, copies: Vec<(Copy, bool)>) {
        let kept = copies.iter().filter(|(_, moved)| !moved).map(|(copy, _)| copy.clone());
        let there = There { meta, copies: kept.collect(), origin };
        self.handles.insert(id, TensorHandle::There(there));
        for (copy, _) in copies.into_iter().filter(|(_, moved)| *moved) {
            self.add_copy(id, copy);
        }
    }

    /// A tensor, or why it is not there.
    pub fn get(&self, id: TensorId) -> Result<&There, Arc<Failure>> {
        match self.handles.get(&id) {
            Some(TensorHandle::There(there)) => Ok(there),
            _ => Err(self.failure(id).unwrap_or_else(|| Arc::new(missing(id)))),
        }
    }

    /// Why a tensor will never be there, if that is known.
    pub fn failure(&self, id: TensorId) -> Option<Arc<Failure>> {
        match (self.handles.get(&id), &self.lost) {
            (Some(TensorHandle::Failed(failure)), _) => Some(Arc::clone(failure)),
            (None, Some((below, failure))) if id.0 < *below => Some(Arc::clone(failure)),
            _ => None,
        }
    }

    /// A tensor that is known to be there.
    pub fn there(&self, id: TensorId) -> &There {
        match self.handles.get(&id) {
            Some(TensorHandle::There(there)) => there,
            _ => unreachable!("tensor {id} was there when the instruction began"),
        }
    }

    fn there_mut(&mut self, id: TensorId) -> &mut There {
        match self.handles.get_mut(&id) {
            Some(TensorHandle::There(there)) => there,
            _ => unreachable!("tensor {id} was there when the instruction began"),
        }
    }

    pub fn put(&mut self, id: TensorId, meta: Meta, layout: Arc<Layout>, worker_name: TensorId) {
        let copies = smallvec![Copy { layout, id: worker_name, made: 0 }];
        let origin = Origin::default();
        self.handles.insert(id, TensorHandle::There(There { meta, copies, origin }));
    }

    pub fn set_origin(&mut self, id: TensorId, origin: Origin) {
        self.there_mut(id).origin = origin;
    }

    pub fn add_copy(&mut self, id: TensorId, mut copy: Copy) {
        self.moves += 1;
        copy.made = self.moves;
        let there = self.there_mut(id);
        let part = |rank| copy.layout.block(there.meta.shape, rank).shape.numel();
        let most = (0..copy.layout.mesh.size()).map(part).max().unwrap_or(0);
        let bytes = (most * there.meta.dtype.size()) as u64;
        there.copies.push(copy);
        self.moved.insert(self.moves, (id, bytes));
        self.moved_bytes += bytes;
    }

    /// Frees a copy on the workers, and forgets when it was made.
    fn let_go(&mut self, copy: &Copy, streams: &mut Streams) {
        free_copy(copy, streams);
        self.forget_made(copy);
    }

    fn forget_made(&mut self, copy: &Copy) {
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
            let Some(TensorHandle::There(there)) = self.handles.get_mut(&tensor) else { continue };
            if there.copies.len() > 1
                && let Some(index) = there.copies.iter().position(|copy| copy.made == made)
            {
                free_copy(&there.copies.remove(index), streams);
            }
        }
    }

    pub fn fail(&mut self, id: TensorId, failure: Arc<Failure>) {
        self.handles.insert(id, TensorHandle::Failed(failure));
    }

    /// Moves a tensor to another name.
    pub fn rename(&mut self, from: TensorId, to: TensorId) {
        if let Some(handle) = self.handles.remove(&from) {
            if let TensorHandle::There(there) = &handle {
                for copy in &there.copies {
                    if let Some((tensor, _)) = self.moved.get_mut(&copy.made) {
                        *tensor = to;
                    }
                }
            }
            self.handles.insert(to, handle);
        }
    }

    /// Forgets a tensor, here and on the workers.
    pub fn free(&mut self, id: TensorId, streams: &mut Streams) {
        if let Some(TensorHandle::There(there)) = self.handles.remove(&id) {
            there.copies.iter().for_each(|copy| self.let_go(copy, streams));
        }
    }

    /// Frees partial values that have been combined: the whole is as good.
    pub fn drop_combined(&mut self, id: TensorId, streams: &mut Streams) {
        let Some(TensorHandle::There(there)) = self.handles.get_mut(&id) else { return };
        if there.copies.len() < 2 || there.copies.iter().all(|copy| copy.layout.is_partial()) {
            return;
        }
        let (kept, combined) = there
            .copies
            .drain(..)
            .partition::<SmallVec<[Copy; 1]>, _>(|copy| !copy.layout.is_partial());
        there.copies = kept;
        combined.iter().for_each(|copy| self.let_go(copy, streams));
        self.settle(id);
    }

    /// Frees one of several copies.
    pub fn drop_copy(&mut self, id: TensorId, copy: &Copy, streams: &mut Streams) {
        let Some(index) = self.there(id).copies.iter().position(|other| other.id == copy.id) else {
            return;
        };
        let copy = self.there_mut(id).copies.remove(index);
        self.let_go(&copy, streams);
        self.settle(id);
    }

    /// Frees all copies but one.
    pub fn keep_only(&mut self, id: TensorId, layout: &Layout, streams: &mut Streams) {
        let there = self.there_mut(id);
        let (kept, others) = there
            .copies
            .drain(..)
            .partition::<SmallVec<[Copy; 1]>, _>(|copy| *copy.layout == *layout);
        there.copies = kept;
        others.iter().for_each(|copy| self.let_go(copy, streams));
        self.settle(id);
    }

    /// A copy that is the only one is the tensor from now on.
    fn settle(&mut self, id: TensorId) {
        if let [only] = self.there_mut(id).copies.as_mut_slice() {
            let was = only.clone();
            only.made = 0;
            self.forget_made(&was);
        }
    }

    /// The bytes that each worker holds of this session.
    pub fn memory(&self) -> Vec<(WorkerId, u64)> {
        let mut held: FxHashMap<WorkerId, u64> = FxHashMap::default();
        // The order of a sum does not matter, and the result is sorted.
        #[allow(clippy::iter_over_hash_type, reason = "sums are the same in any order")]
        for handle in self.handles.values() {
            let TensorHandle::There(there) = handle else { continue };
            for copy in &there.copies {
                for (rank, &worker) in copy.layout.mesh.workers.iter().enumerate() {
                    let part = copy.layout.block(there.meta.shape, rank).shape.numel();
                    *held.entry(worker).or_default() += (part * there.meta.dtype.size()) as u64;
                }
            }
        }
        let mut held: Vec<_> = held.into_iter().collect();
        held.sort_unstable();
        held
    }

    /// All tensors that were given a name so far are gone.
    pub fn lose_all(&mut self, failure: &Arc<Failure>) {
        self.lost = Some((self.named, Arc::clone(failure)));
    }

    /// A worker is gone, and with it what only it had. Copies elsewhere live on.
    pub fn lose_worker(
        &mut self,
        worker: WorkerId,
        failure: &Arc<Failure>,
        meshes: &mut Meshes,
        streams: &mut Streams,
    ) {
        if self.direct {
            self.direct = false;
            self.lose_all(failure);
        }
        let mut ids: Vec<TensorId> = self.handles.keys().copied().collect();
        ids.sort_unstable();
        for id in ids {
            let Some(TensorHandle::There(there)) = self.handles.get_mut(&id) else { continue };
            let mut left: SmallVec<[Copy; 1]> = SmallVec::new();
            let mut gone: SmallVec<[Copy; 1]> = SmallVec::new();
            for copy in there.copies.drain(..) {
                if !copy.layout.mesh.workers.contains(&worker) {
                    left.push(copy);
                } else {
                    left.extend(survivor(&copy, worker, meshes, streams));
                    gone.push(copy);
                }
            }
            if left.is_empty() {
                self.handles.insert(id, TensorHandle::Failed(Arc::clone(failure)));
            } else {
                there.copies = left;
            }
            gone.iter().for_each(|copy| self.forget_made(copy));
        }
    }
}

/// What is left of a copy without a worker: another of equal copies. Its other parts are freed.
fn survivor(
    copy: &Copy,
    lost: WorkerId,
    meshes: &mut Meshes,
    streams: &mut Streams,
) -> Option<Copy> {
    let others = || copy.layout.mesh.workers.iter().copied().filter(|&worker| worker != lost);
    let keeper = copy.layout.is_replicated().then(|| others().next()).flatten();
    for worker in others().filter(|&worker| Some(worker) != keeper) {
        streams.push(worker, Command::Free(copy.id));
    }
    let mesh: Arc<Mesh> = meshes.single(keeper?);
    Some(Copy { layout: Arc::new(Layout::replicated(&mesh)), id: copy.id, made: 0 })
}

pub fn free_copy(copy: &Copy, streams: &mut Streams) {
    for &worker in &copy.layout.mesh.workers {
        streams.push(worker, Command::Free(copy.id));
    }
}

/// The failure of a tensor that is not there.
pub fn missing(tensor: TensorId) -> Failure {
    Failure {
        operation: "fetch".into(),
        reason: format!("tensor {tensor} does not exist in this session"),
        worker: String::new(),
        line: SourceId::default(),
    }
}
