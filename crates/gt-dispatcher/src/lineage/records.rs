//! A lineage in a journal.

use std::sync::Arc;

use super::{Copy, Lineage, Snapshot, Stage};
use crate::journal::{Base, JournalRecord, StoredCopy, StoredTensors};
use crate::planner::{Slots, Tensors};

impl Lineage {
    /// Goes on from a snapshot of a journal; the next have numbers after `last`.
    pub fn go_on_from(&mut self, base: Snapshot, last: u64) {
        self.planned = base.planned;
        self.log.begin_at(base.planned);
        self.last = last;
        // Of what the server had kept, nothing is left.
        self.is_thin = base.copies.values().any(|copy| copy.keeper.is_none());
        self.base = Ok(base);
    }

    /// The record of a snapshot in a journal: with all tensors, or with what has changed since
    /// another, which the journal has as the base.
    fn record(
        &self,
        session: u32,
        received: u64,
        snapshot: &Snapshot,
        since: Option<&Snapshot>,
    ) -> JournalRecord {
        let tensors = snapshot.state.catalogue.tensors();
        let tensors = match since {
            Some(since) => StoredTensors::Changes(tensors.changes(since.state.catalogue.tensors())),
            None => StoredTensors::All(tensors.changes(&Tensors::default())),
        };
        let copies = snapshot.copies.iter().map(|(slot, copy)| {
            let Copy { host, keeper, bytes, .. } = *copy;
            StoredCopy { slot: *slot, host, keeper, bytes }
        });
        JournalRecord::Base(Box::new(Base {
            session,
            snapshot: snapshot.number,
            received,
            planned: snapshot.planned,
            state: Arc::clone(&snapshot.state),
            tensors,
            copies: copies.collect(),
            blocks: snapshot.blocks.clone(),
        }))
    }

    /// The record of the base, unless that of its successor is written already.
    pub fn base_record(&self, session: u32, received: u64) -> Option<JournalRecord> {
        let is_written = |pending: &Snapshot| pending.stage == Stage::Written;
        let base =
            self.base.as_ref().ok().filter(|_| !self.pending.as_ref().is_some_and(is_written));
        base.map(|base| self.record(session, received, base, Some(base)))
    }

    /// The record of the pending snapshot if it is to be written: it is the base in the journal from
    /// then on.
    pub fn pending_record(&self, session: u32, received: u64) -> Option<JournalRecord> {
        let is_written = |pending: &&Snapshot| pending.stage == Stage::Written;
        let pending = self.pending.as_ref().filter(is_written)?;
        Some(self.record(session, received, pending, self.base.as_ref().ok()))
    }

    /// The records that a journal of the session begins with.
    pub fn records(&self, session: u32, received: u64, slots: &Slots) -> Vec<JournalRecord> {
        let base = match &self.base {
            Ok(base) => self.record(session, received, base, None),
            Err(reason) => {
                let (from, reason) = (self.log.first(), reason.clone());
                JournalRecord::Unkept { session, from, reason }
            }
        };
        let mut all = vec![base];
        all.extend(self.log.records(session, received, slots));
        all.extend(self.pending_record(session, received));
        all
    }
}
