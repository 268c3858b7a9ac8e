//! What a session reads of publications.

use std::collections::{BTreeMap, BTreeSet};

use gt_ir::wire::{Decoded, Record, Sink, Source};
use gt_ir::{SessionId, TensorId};

/// The tensors of a session that belong to publications, and perhaps some that were freed.
#[derive(Clone, Default)]
pub(crate) struct BorrowedTensors {
    by_id: BTreeMap<TensorId, SessionId>,
    /// The publications that it has found, and reads no tensor of yet.
    found: BTreeSet<SessionId>,
    /// The number of tensors at which those that were freed are removed.
    limit: usize,
}

impl Record for BorrowedTensors {
    fn write<S: Sink>(&self, to: &mut S) {
        let all: Vec<(TensorId, SessionId)> =
            self.by_id.iter().map(|(id, of)| (*id, *of)).collect();
        all.write(to);
    }

    fn read(from: &mut Source) -> Decoded<BorrowedTensors> {
        let all: Vec<(TensorId, SessionId)> = Record::read(from)?;
        Ok(BorrowedTensors { by_id: all.into_iter().collect(), ..BorrowedTensors::default() })
    }
}

impl BorrowedTensors {
    /// Notes that the session has found a publication, and will read it.
    pub fn find(&mut self, publication: SessionId) {
        self.found.insert(publication);
    }

    /// Forgets the publications that it has found: the client that would read them is gone.
    pub fn abandon(&mut self) {
        self.found.clear();
    }

    /// Adds a tensor of a publication.
    pub fn add(&mut self, id: TensorId, of: SessionId, is_live: impl Fn(TensorId) -> bool) {
        if self.by_id.len() >= self.limit {
            self.by_id.retain(|id, _| is_live(*id));
            self.limit = 2 * self.by_id.len() + 64;
        }
        self.found.remove(&of);
        self.by_id.insert(id, of);
    }

    /// Returns the publications that live tensors belong to, and those that were found.
    pub fn publications(&self, is_live: impl Fn(TensorId) -> bool) -> BTreeSet<SessionId> {
        let live = self.by_id.iter().filter(|(id, _)| is_live(**id));
        live.map(|(_, of)| *of).chain(self.found.iter().copied()).collect()
    }
}
