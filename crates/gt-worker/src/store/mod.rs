//! A lane's tensors, by name, with accounting of the memory they hold.
//!
//! - [`shared`]: buffers of several tensors; [`borrowed`], [`published`]: tensors of
//!   publications; [`spilled`]: tensors moved elsewhere; [`failed`]: tensors that have failed.
//! - [`held`]: the totals of all lanes.
//! - [`list`]: lists of tensors; [`listed`]: the names of all.

mod borrowed;
mod failed;
mod held;
mod list;
mod listed;
mod published;
mod shared;
mod spilled;

use std::sync::Arc;

use gt_ir::message::Failure;
use gt_ir::{Meta, SourceId, TensorId};
use rustc_hash::{FxHashMap, FxHashSet};

pub(crate) use held::HeldTotals;
pub(crate) use list::Listed;
use listed::ListedNames;
pub(crate) use shared::SharedBuffers;
pub(crate) use spilled::{Away, SpillPlace};

/// The state of a tensor.
pub(crate) enum Stored<T> {
    Ready {
        tensor: T,
        meta: Meta,
        /// The line that made it.
        line: SourceId,
        /// When it was used last, in turns of the worker.
        used: u64,
    },
    Failed(Arc<Failure>),
    /// Pending an exchange or a load; this many bytes are reserved for it.
    Pending(u64),
    Away(Box<Away>),
}

/// The tensors of a lane, by name.
pub(crate) struct Store<T> {
    tensors: FxHashMap<TensorId, Stored<T>>,
    listed: ListedNames,
    pub shared: SharedBuffers,
    /// The numbers of pending and of spilled tensors.
    pending: usize,
    away: usize,
    bytes: u64,
    spilled: u64,
    /// The worker's turn.
    pub turn: u64,
}

impl<T> Default for Store<T> {
    fn default() -> Store<T> {
        Store {
            tensors: FxHashMap::default(),
            listed: ListedNames::default(),
            shared: SharedBuffers::default(),
            pending: 0,
            away: 0,
            bytes: 0,
            spilled: 0,
            turn: 0,
        }
    }
}

impl<T> Store<T> {
    #[inline]
    pub fn get(&self, id: TensorId) -> Option<&Stored<T>> {
        self.tensors.get(&id)
    }

    /// Returns a tensor, and marks it as used now.
    #[inline]
    pub fn get_used(&mut self, id: TensorId) -> Option<&Stored<T>> {
        let stored = self.tensors.get_mut(&id)?;
        if let Stored::Ready { used, .. } = stored {
            *used = self.turn;
        }
        Some(stored)
    }

    /// Returns a ready tensor, and marks it as used now.
    #[inline]
    pub fn ready(&mut self, id: TensorId) -> Option<&T> {
        match self.get_used(id) {
            Some(Stored::Ready { tensor, .. }) => Some(tensor),
            _ => None,
        }
    }

    /// Shape and dtype of a tensor that is ready.
    pub fn meta(&self, id: TensorId) -> Option<Meta> {
        match self.tensors.get(&id) {
            Some(Stored::Ready { meta, .. }) => Some(*meta),
            _ => None,
        }
    }

    #[inline]
    pub fn is_pending(&self, id: TensorId) -> bool {
        self.pending > 0 && matches!(self.tensors.get(&id), Some(Stored::Pending(_)))
    }

    /// Returns whether any tensor is pending or spilled.
    #[inline]
    pub fn has_absent(&self) -> bool {
        self.pending + self.away > 0
    }

    /// Returns whether a tensor is pending, or being unspilled.
    pub fn is_on_its_way(&self, id: TensorId) -> bool {
        let is_read = |away: &Away| matches!(away.place, SpillPlace::Reading { .. });
        self.is_pending(id) || self.away(id).is_some_and(is_read)
    }

    /// Returns a spilled tensor.
    pub fn away(&self, id: TensorId) -> Option<&Away> {
        match self.tensors.get(&id) {
            Some(Stored::Away(away)) => Some(away),
            _ => None,
        }
    }

    /// Returns the bytes that unspilling these tensors needs.
    pub fn elsewhere(&self, ids: &[TensorId]) -> u64 {
        let is_first = |(at, id): &(usize, &TensorId)| !ids[..*at].contains(id);
        let all = ids.iter().enumerate().filter(is_first);
        all.filter_map(|(_, id)| self.away(*id)).map(Away::elsewhere).sum()
    }

    /// Returns the line that made a tensor that is ready.
    pub fn line(&self, id: TensorId) -> SourceId {
        match self.tensors.get(&id) {
            Some(Stored::Ready { line, .. }) => *line,
            _ => SourceId::default(),
        }
    }

    /// A tensor that is ready, with what is known of it.
    pub fn details(&self, id: TensorId) -> Option<(T, Meta, SourceId)>
    where
        T: Clone,
    {
        match self.tensors.get(&id) {
            Some(Stored::Ready { tensor, meta, line, .. }) => Some((tensor.clone(), *meta, *line)),
            _ => None,
        }
    }

    /// Returns the number of tensors, failed ones included.
    #[inline]
    pub fn count(&self) -> usize {
        self.tensors.len()
    }

    /// The bytes of all tensors in the device's memory.
    #[inline]
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The bytes of the elements of all tensors in the device's memory, also of those that repeat them.
    pub fn values(&self) -> u64 {
        self.bytes + self.shared.beyond()
    }

    /// Returns the bytes of all spilled tensors.
    pub fn spilled(&self) -> u64 {
        self.spilled
    }

    /// Stores a tensor with memory of its own.
    #[inline]
    pub fn keep(
        &mut self,
        held: &mut HeldTotals,
        id: TensorId,
        tensor: T,
        meta: Meta,
        line: SourceId,
    ) {
        self.keep_charged(held, (id, tensor, meta, line), meta.bytes() as u64);
    }

    /// Stores a tensor for which `bytes` are charged.
    #[inline]
    pub fn keep_charged(
        &mut self,
        held: &mut HeldTotals,
        (id, tensor, meta, line): (TensorId, T, Meta, SourceId),
        bytes: u64,
    ) {
        let ready = Stored::Ready { tensor, meta, line, used: self.turn };
        self.listed.note(id);
        let before = self.tensors.insert(id, ready);
        self.forget(held, id, before);
        held.tensors += 1;
        held.add(bytes);
        self.bytes += bytes;
    }

    pub fn fail(&mut self, held: &mut HeldTotals, id: TensorId, failure: Arc<Failure>) {
        self.listed.note(id);
        let before = self.tensors.insert(id, Stored::Failed(failure));
        self.forget(held, id, before);
    }

    /// Marks a tensor of `bytes` bytes as pending.
    pub fn wait_for(&mut self, held: &mut HeldTotals, id: TensorId, bytes: u64) {
        self.pending += 1;
        held.add(bytes);
        self.bytes += bytes;
        self.listed.note(id);
        let before = self.tensors.insert(id, Stored::Pending(bytes));
        self.forget(held, id, before);
    }

    /// Replaces a tensor by its spilled form.
    pub fn put_away(&mut self, held: &mut HeldTotals, id: TensorId, away: Away) {
        self.away += 1;
        held.tensors += 1;
        held.add(away.in_memory());
        held.spilled_tensors += 1;
        held.spilled_bytes += away.elsewhere();
        match away.place {
            SpillPlace::Writing { number, .. } => drop(held.writing.insert(number, away.bytes())),
            SpillPlace::Disk { .. } => held.disk_bytes += away.bytes(),
            SpillPlace::Host(_) | SpillPlace::Reading { .. } => {}
        }
        self.bytes += away.in_memory();
        self.spilled += away.elsewhere();
        self.listed.note(id);
        let before = self.tensors.insert(id, Stored::Away(Box::new(away)));
        self.forget(held, id, before);
    }

    /// Removes and returns a spilled tensor; the caller is responsible for its file.
    pub fn take_away(&mut self, held: &mut HeldTotals, id: TensorId) -> Option<Away> {
        self.listed.note(id);
        match self.tensors.remove(&id)? {
            Stored::Away(away) => {
                self.forget_away(held, &away);
                Some(*away)
            }
            other => {
                self.tensors.insert(id, other);
                None
            }
        }
    }

    /// Frees a tensor.
    #[inline]
    pub fn free(&mut self, held: &mut HeldTotals, id: TensorId) {
        self.listed.note(id);
        let before = self.tensors.remove(&id);
        self.forget(held, id, before);
    }

    /// Takes out a tensor that is ready. It counts as held until [`Store::put_back`] or
    /// [`Store::release`].
    #[inline]
    pub fn take(&mut self, id: TensorId) -> Option<(T, Meta)> {
        self.listed.note(id);
        match self.tensors.remove(&id)? {
            Stored::Ready { tensor, meta, .. } => Some((tensor, meta)),
            other => {
                self.tensors.insert(id, other);
                None
            }
        }
    }

    /// Puts back a taken tensor.
    pub fn put_back(&mut self, id: TensorId, tensor: T, meta: Meta) {
        let (line, used) = match self.tensors.get(&id) {
            Some(Stored::Ready { line, used, .. }) => (*line, *used),
            _ => (SourceId::default(), self.turn),
        };
        self.listed.note(id);
        self.tensors.insert(id, Stored::Ready { tensor, meta, line, used });
    }

    /// Stops counting a taken tensor.
    #[inline]
    pub fn release(&mut self, held: &mut HeldTotals, id: TensorId, meta: &Meta) {
        let own = meta.bytes() as u64;
        held.tensors -= 1;
        if self.shared.is_empty() {
            self.bytes -= own;
            return held.remove(own);
        }
        let (bytes, published) = self.shared.remove(id, own);
        self.bytes -= bytes;
        match published {
            None => held.remove(bytes),
            Some(number) => held.leave_published(number, bytes),
        }
    }

    #[inline]
    fn forget(&mut self, held: &mut HeldTotals, id: TensorId, before: Option<Stored<T>>) {
        match before {
            Some(Stored::Ready { meta, .. }) => self.release(held, id, &meta),
            Some(Stored::Pending(bytes)) => {
                self.pending -= 1;
                held.remove(bytes);
                self.bytes -= bytes;
            }
            Some(Stored::Away(away)) => {
                self.forget_away(held, &away);
                // A tensor that is being written is discarded after the write.
                if let SpillPlace::Disk { number, .. } | SpillPlace::Reading { number, .. } =
                    away.place
                {
                    held.discarded.push(number);
                }
            }
            // Its record is free.
            Some(Stored::Failed(_)) => held.releases += 1,
            None => {}
        }
    }

    fn forget_away(&mut self, held: &mut HeldTotals, away: &Away) {
        self.away -= 1;
        held.tensors -= 1;
        held.remove(away.in_memory());
        held.spilled_tensors -= 1;
        held.spilled_bytes -= away.elsewhere();
        match away.place {
            SpillPlace::Writing { number, .. } => drop(held.writing.remove(&number)),
            SpillPlace::Disk { .. } => held.disk_bytes -= away.bytes(),
            SpillPlace::Host(_) | SpillPlace::Reading { .. } => {}
        }
        self.bytes -= away.in_memory();
        self.spilled -= away.elsewhere();
    }

    /// Frees the tensors in a set, except pending ones.
    pub fn free_all(&mut self, held: &mut HeldTotals, ids: &FxHashSet<TensorId>) {
        let there = |id: &&TensorId| self.tensors.contains_key(id) && !self.is_pending(**id);
        let ids: Vec<TensorId> = ids.iter().filter(there).copied().collect();
        ids.into_iter().for_each(|id| self.free(held, id));
    }

    /// Frees all tensors.
    pub fn clear(&mut self, held: &mut HeldTotals) {
        // All are freed, so the order does not matter.
        let all = std::mem::take(&mut self.tensors);
        self.listed = ListedNames::default();
        #[allow(clippy::iter_over_hash_type, reason = "sums are the same in any order")]
        for (id, stored) in all {
            self.forget(held, id, Some(stored));
        }
    }

    /// Whether any tensor is pending.
    pub fn has_pending(&self) -> bool {
        self.pending > 0
    }
}

#[cfg(test)]
mod tests;
