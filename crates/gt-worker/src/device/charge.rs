//! Charging a lane for its tensors: for their buffers, each of them once.

use std::sync::Arc;

use gt_ir::entitlement::Holding;
use gt_ir::failure::OUT_OF_MEMORY;
use gt_ir::message::Failure;
use gt_ir::{Meta, SourceId, TensorId};

use super::Device;
use crate::engine::{Engine, EngineError, SharedBuffer};
use crate::lane::Lane;
use crate::lane::holdings::largest;
use crate::memory::bytes as in_words;
use crate::store::Stored;

/// The least workspace of an engine.
const WORKSPACE: u64 = 64 << 20;

/// The workspace of an engine: what it may allocate beside results, for copies of operands and
/// temporaries.
fn workspace(memory: u64) -> u64 {
    WORKSPACE.max(memory / 16)
}

impl<E: Engine> Device<E> {
    /// Stores a tensor with the line that made it; it may share the buffer of one of `sources`.
    #[inline]
    pub fn keep(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        (id, tensor, meta, line): (TensorId, E::Tensor, Meta, SourceId),
        sources: impl Iterator<Item = TensorId>,
    ) {
        if self.events.is_on() {
            self.events.makes(&meta);
        }
        match self.engine.shared_buffer(&tensor) {
            None => lane.store.keep(&mut self.held, id, tensor, meta, line),
            Some(buffer) => {
                // A name that is assigned twice is that of the last tensor.
                lane.store.free(&mut self.held, id);
                let bytes = self.charge(lane, (id, meta), buffer, sources);
                lane.store.keep_charged(&mut self.held, (id, tensor, meta, line), bytes);
            }
        }
    }

    /// Returns the bytes that the engine may allocate in a turn of a lane with this room: the room
    /// for results, and a workspace. The workspace is bounded by the memory of the worker, not by a
    /// quota.
    pub fn begin_budget(&mut self, room: u64) {
        let bytes = self.options.memory.map(|memory| room.saturating_add(workspace(memory)));
        self.engine.set_budget(bytes);
    }

    /// The bytes that a lane is charged for a tensor in a shared buffer: nothing, if it is charged
    /// for the buffer already.
    fn charge(
        &self,
        lane: &mut Lane<E::Tensor>,
        (id, meta): (TensorId, Meta),
        buffer: SharedBuffer,
        sources: impl Iterator<Item = TensorId>,
    ) -> u64 {
        let mut base: Option<(TensorId, u64)> = None;
        let is_borrowed = |id: TensorId| lane.store.shared.borrowed.has(id);
        for source in sources {
            // Of an own tensor and a borrowed one, which it may have published, it is charged.
            if let Some(Stored::Ready { tensor, meta, .. }) = lane.store.get(source)
                && self.engine.is_in(tensor, buffer)
                && (!is_borrowed(source) || base.is_none_or(|(before, _)| is_borrowed(before)))
            {
                base = Some((source, meta.bytes() as u64));
            }
        }
        lane.store.shared.add(id, meta.bytes() as u64, buffer, base)
    }

    /// Copies the tensors of buffers of which little is used, so that these are freed.
    fn copy_out(&mut self, lane: &mut Lane<E::Tensor>) {
        for id in lane.store.shared.take_wasted() {
            let Some((tensor, meta, line)) = lane.store.details(id) else { continue };
            // Without memory for a copy it is left as it is.
            if let Ok(copy) = self.guarded(|engine| engine.compact(&tensor)) {
                lane.store.free(&mut self.held, id);
                lane.store.keep(&mut self.held, id, copy, meta, line);
            }
        }
    }

    /// Stops counting a tensor that was taken out of a lane.
    #[inline]
    pub fn release(&mut self, lane: &mut Lane<E::Tensor>, id: TensorId, meta: &Meta) {
        lane.store.release(&mut self.held, id, meta);
    }

    #[inline]
    pub fn free(&mut self, lane: &mut Lane<E::Tensor>, id: TensorId) {
        lane.store.free(&mut self.held, id);
        if lane.store.shared.has_wasted() {
            self.copy_out(lane);
        }
    }

    /// Returns the failure of a command without memory for its results, or for `back` bytes of
    /// operands to be unspilled.
    pub fn no_room_for(
        &self,
        lane: &Lane<E::Tensor>,
        operation: String,
        bytes: u64,
        line: SourceId,
    ) -> Arc<Failure> {
        let worker = self.stats.name.as_str();
        Arc::new(match &lane.memory.failure_if_short {
            Some(no_room) => no_room.failure(operation, bytes, worker, line),
            None => Failure::new(operation, OUT_OF_MEMORY, worker, line),
        })
    }

    /// An engine's error; out of memory, with what the session holds.
    pub fn explain(&self, lane: &Lane<E::Tensor>, error: &EngineError) -> String {
        let EngineError::OutOfMemory { .. } = error else { return error.to_string() };
        let own = lane.store.bytes();
        let others = self.held.bytes - own;
        let hint =
            "hint: free tensors, compute on smaller pieces, or start workers with more --memory";
        let (own, others) = (in_words(own), in_words(others));
        format!("{error}; the session holds {own}, others {others}\n  {hint}")
    }

    /// A lane's largest tensors, if an engine has no memory left.
    pub fn largest_if_full(&self, lane: &Lane<E::Tensor>, error: &EngineError) -> Vec<Holding> {
        match error {
            EngineError::OutOfMemory { .. } => largest(std::iter::once(lane)),
            _ => Vec::new(),
        }
    }
}
