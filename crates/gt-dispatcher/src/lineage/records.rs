//! The journal records of a lineage.

use std::sync::Arc;

use super::{Lineage, SessionSnapshot, SlotCopy, SnapshotStage};
use crate::journal::{BaseRecord, JournalRecord, StoredCopy, StoredTensors};
use crate::planner::{Slots, TensorTable};
use gt_ir::SessionId;

impl Lineage {
    /// Resumes from a snapshot of a journal; later ones have numbers after `last`.
    pub fn resume_from(&mut self, base: SessionSnapshot, last: u64) {
        self.planned = base.planned;
        self.log.begin_at(base.planned);
        self.last = last;
        // The values that the previous server stored itself are lost.
        self.lacks_second_copy = base.copies.values().any(|copy| copy.keeper.is_none());
        self.base = Ok(base);
    }

    /// Returns the journal record of a snapshot: with all tensors, or with the changes since
    /// another snapshot, which the journal has as the base.
    fn record(
        &self,
        session: SessionId,
        received: u64,
        snapshot: &SessionSnapshot,
        since: Option<&SessionSnapshot>,
    ) -> JournalRecord {
        let tensors = snapshot.state.catalogue.tensors();
        let tensors = match since {
            Some(since) => StoredTensors::Changes(tensors.changes(since.state.catalogue.tensors())),
            None => StoredTensors::All(tensors.changes(&TensorTable::default())),
        };
        let copies = snapshot.copies.iter().map(|(slot, copy)| {
            let SlotCopy { host, keeper, bytes, .. } = *copy;
            StoredCopy { slot: *slot, host, keeper, bytes }
        });
        JournalRecord::Base(Box::new(BaseRecord {
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

    /// Returns the record of the base, unless that of its successor is being written.
    pub fn base_record(&self, session: SessionId, received: u64) -> Option<JournalRecord> {
        let is_written = |pending: &SessionSnapshot| pending.stage == SnapshotStage::Writing;
        let base =
            self.base.as_ref().ok().filter(|_| !self.pending.as_ref().is_some_and(is_written));
        base.map(|base| self.record(session, received, base, Some(base)))
    }

    /// Returns the record of the pending snapshot if it is to be written: from then on, it is the
    /// base in the journal.
    pub fn pending_record(&self, session: SessionId, received: u64) -> Option<JournalRecord> {
        let is_written = |pending: &&SessionSnapshot| pending.stage == SnapshotStage::Writing;
        let pending = self.pending.as_ref().filter(is_written)?;
        Some(self.record(session, received, pending, self.base.as_ref().ok()))
    }

    /// Returns the records of the session with which a journal begins.
    pub fn records(&self, session: SessionId, received: u64, slots: &Slots) -> Vec<JournalRecord> {
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
