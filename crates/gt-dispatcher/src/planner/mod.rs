//! The planner: rewrites a session's stream for the workers that compute it.
//!
//! - [`layout`]: how a tensor lies over workers; [`meshes`]: the sets of workers in use.
//! - [`tensors`]: a session's tensors and the copies there are of each.
//! - [`scope`]: what signals ask for.
//! - [`strategy`]: the ways to compute an instruction, and the cheapest.
//! - [`moves`]: from one layout to another.
//! - [`explain`]: notes of what is planned, for who asks.
//! - [`run`]: one instruction with all of these; [`expand`]: a composite as several;
//!   [`mod@slice`]: a part of what is cut.
//! - [`passes`]: what was planned before, played again; [`touches`]: what it concerns.
//! - [`local`]: each worker's part of an instruction; [`emit`]: of a move; [`fabrics`]: which moves
//!   engines make themselves.

mod emit;
mod expand;
mod explain;
mod fabrics;
mod layout;
mod local;
mod meshes;
mod moves;
mod passes;
mod run;
mod scope;
mod slice;
mod strategy;
mod streams;
mod tensors;
mod touches;

use std::sync::Arc;

use gt_ir::explain::{Explanation, PlacedTensor};
use gt_ir::message::Failure;
use gt_ir::{Command, Content, Instruction, Meta, SourceId, TensorData, TensorId, WorkerId};

pub use fabrics::Fabrics;
pub use layout::{Layout, Mesh, Placement};
pub use passes::{PassAtHand, Passes};
pub use scope::{Cluster, Scope};
pub use streams::Streams;
pub use tensors::Tensors;

use explain::{Notes, Reason};
use meshes::Meshes;
use scope::Wanted;
use tensors::{Copy, Origin, There, missing};

/// Data up to this size goes to several workers as it is; more goes to one, which passes it on.
const SMALL_DATA: usize = 64 << 10;

/// Plans the streams of all sessions.
#[derive(Default)]
pub struct Planner {
    meshes: Meshes,
    cluster: Cluster,
    /// Tensors from this size on are cut over all workers where no signal says otherwise.
    auto_shard: Option<usize>,
    stats: Stats,
}

/// What the planner has done.
#[derive(Clone, Copy, Default, Debug)]
pub struct Stats {
    /// Moves between workers, and their bytes.
    pub moves: u64,
    pub bytes: u64,
}

impl Planner {
    /// Cuts tensors of at least `bytes` over all workers without being told.
    pub fn shard_automatically(&mut self, bytes: usize) {
        self.auto_shard = Some(bytes);
    }

    pub fn stats(&self) -> Stats {
        self.stats
    }

    /// The workers have changed.
    pub fn set_workers(&mut self, workers: Vec<(u32, WorkerId)>, fabrics: Fabrics) {
        let version = self.cluster.version + 1;
        self.cluster = Cluster { workers, fabrics, version };
    }

    /// Lets a session's tensors begin at a worker.
    pub fn settle(&mut self, tensors: &mut Tensors, worker: WorkerId) {
        let layout = Layout::replicated(&self.meshes.single(worker));
        tensors.home = Some((worker, Arc::new(layout)));
    }

    /// A worker is gone: what only it had has failed.
    pub fn lose_worker(
        &mut self,
        tensors: &mut Tensors,
        streams: &mut Streams,
        worker: WorkerId,
        failure: &Arc<Failure>,
    ) {
        tensors.lose_worker(worker, failure, &mut self.meshes, streams);
    }

    /// Plans an instruction.
    ///
    /// # Errors
    /// It names what no valid client would.
    pub fn instruction(
        &mut self,
        tensors: &mut Tensors,
        streams: &mut Streams,
        instruction: Instruction,
    ) -> Result<(), String> {
        tensors.qualify_new(instruction.output)?;
        self.run(tensors, streams, instruction)
    }

    /// Plans a tensor made from data: to where its scope wants it. Gives the worker that gets
    /// the data as it came.
    ///
    /// # Errors
    /// It has a name that no valid client would give.
    pub fn create(
        &mut self,
        tensors: &mut Tensors,
        streams: &mut Streams,
        output: TensorId,
        content: Content,
        signal: u32,
    ) -> Result<Option<WorkerId>, String> {
        let name = tensors.qualify_new(output)?;
        let meta = content.meta();
        let wanted = match self.wanted(tensors, signal) {
            Ok(wanted) => wanted.or_else(|| self.automatic(meta)).map(|wanted| wanted.layout(meta)),
            Err(reason) => {
                let failure = Failure { operation: "create".into(), reason, ..missing(output) };
                tensors.fail(output, Arc::new(failure));
                return Ok(None);
            }
        };
        let command = |content| Command::Create { output: name, content, signal };
        let Some(layout) = wanted else {
            let home = self.home(tensors);
            let worker = home.mesh.workers[0];
            streams.push(worker, command(content));
            tensors.put(output, meta, home, name);
            return Ok(Some(worker));
        };
        let worker = layout.mesh.workers[0];
        match content {
            Content::Data(data) if splits(&layout, &data) => {
                for (rank, &worker) in layout.mesh.workers.iter().enumerate() {
                    streams.push(worker, command(Content::Data(part(&data, &layout, rank))));
                }
                tensors.put(output, meta, Arc::new(layout), name);
                tensors.set_origin(output, Origin { placed: true, combined: false });
            }
            content => {
                streams.push(worker, command(content));
                let whole = Layout::replicated(&self.meshes.single(worker));
                tensors.put(output, meta, Arc::new(whole), name);
                let (line, reason) = (SourceId::default(), Reason::Created);
                self.copy_in(tensors, streams, output, &layout, line, reason);
                self.note_other(tensors, "create", output, line);
                tensors.keep_only(output, &layout, streams);
                tensors.set_origin(output, Origin { placed: true, combined: false });
            }
        }
        Ok(Some(worker))
    }

    /// Has `fetch` send the commands that need a tensor whole, to a worker that has it so. If
    /// none has, one gets a copy for the time being.
    pub fn with_whole(
        &mut self,
        tensors: &mut Tensors,
        streams: &mut Streams,
        id: TensorId,
        line: SourceId,
        fetch: impl FnOnce(WorkerId, TensorId) -> Command,
    ) {
        let there = tensors.there(id);
        if let Some(copy) = there.copies.iter().find(|copy| copy.layout.is_replicated()) {
            let worker = copy.layout.mesh.workers[0];
            return streams.push(worker, fetch(worker, copy.id));
        }
        let worker = there.copies[0].layout.mesh.workers[0];
        let layout = Layout::replicated(&self.meshes.single(worker));
        let copy: Copy = self.copy_in(tensors, streams, id, &layout, line, Reason::Fetched);
        self.note_other(tensors, "fetch", id, line);
        streams.push(worker, fetch(worker, copy.id));
        tensors.drop_copy(id, &copy, streams);
    }

    /// Begins to note what is planned for a session.
    pub fn begin_explaining(&self, tensors: &mut Tensors) {
        tensors.notes = Some(Notes::default());
    }

    /// What was planned since then.
    pub fn end_explaining(&self, tensors: &mut Tensors) -> Explanation {
        let notes = tensors.notes.take().unwrap_or_default();
        notes.explanation(&self.cluster, &tensors.memory())
    }

    /// Where a tensor is: in how many layouts, and on which workers.
    pub fn locate(&self, there: &There) -> Vec<PlacedTensor> {
        let copies = there.copies.iter();
        copies.map(|copy| explain::placed(&self.cluster, there.meta, &copy.layout)).collect()
    }

    /// Notes what is not an instruction: the copy of a tensor that was made last.
    fn note_other(&self, tensors: &mut Tensors, name: &str, id: TensorId, line: SourceId) {
        if tensors.notes.is_none() {
            return;
        }
        let there = tensors.there(id);
        let placed = |copy: &Copy| explain::placed(&self.cluster, there.meta, &copy.layout);
        let (first, last) = (&there.copies[0], &there.copies[there.copies.len() - 1]);
        let (from, to) = (placed(first), placed(last));
        if let Some(notes) = &mut tensors.notes {
            notes.other(name, line, from, to);
        }
    }

    /// Forgets a tensor.
    pub fn free(&mut self, tensors: &mut Tensors, streams: &mut Streams, id: TensorId) {
        tensors.free(id, streams);
    }

    fn home(&self, tensors: &Tensors) -> Arc<Layout> {
        let (_, layout) = tensors.home.as_ref().expect("sessions are planned only with a worker");
        Arc::clone(layout)
    }

    /// What the signal of an instruction asks for.
    fn wanted(&mut self, tensors: &mut Tensors, signal: u32) -> Result<Option<Wanted>, String> {
        if signal == 0 {
            return Ok(None);
        }
        let Some(scope) = tensors.signals.get_mut(&signal) else { return Ok(None) };
        let wanted = scope.resolve(&self.cluster, &mut self.meshes).map_err(str::to_string)?;
        Ok(wanted.cloned())
    }

    /// A large tensor is cut over all workers, if that is asked for.
    fn automatic(&mut self, meta: Meta) -> Option<Wanted> {
        let threshold = self.auto_shard?;
        if self.cluster.workers.len() < 2 || meta.bytes() < threshold {
            return None;
        }
        let longest = (0..meta.shape.rank()).rev().max_by_key(|&axis| meta.shape[axis])?;
        let axis = if meta.shape[0] >= self.cluster.workers.len() { 0 } else { longest };
        let workers: Vec<WorkerId> =
            self.cluster.workers.iter().map(|(_, worker)| *worker).collect();
        Some(Wanted::new(self.meshes.get(&[workers.len()], &workers), &[Some(axis as i64)]))
    }
}

/// Whether the parts of data lie one after another, or are small copies.
fn splits(layout: &Layout, data: &TensorData) -> bool {
    match layout.placements.as_slice() {
        [Placement::Shard { axis: 0, .. }] => true,
        placements => {
            data.bytes.len() <= SMALL_DATA
                && placements.iter().all(|placement| *placement == Placement::Replicate)
        }
    }
}

/// The part of data for a rank.
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
