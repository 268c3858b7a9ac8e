//! A lineage in a journal.

use std::sync::Arc;

use super::{Copy, Lineage, Snapshot, Stage};
use crate::journal::{Base, JournalRecord, StoredCopy};
use crate::planner::Slots;

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

    /// The record of a snapshot in a journal.
    fn record(&self, session: u32, received: u64, snapshot: &Snapshot) -> JournalRecord {
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
            copies: copies.collect(),
            blocks: snapshot.blocks.clone(),
        }))
    }

    /// The record of the base, unless that of its successor is written already.
    pub fn base_record(&self, session: u32, received: u64) -> Option<JournalRecord> {
        let is_written = |pending: &Snapshot| pending.stage == Stage::Written;
        let base =
            self.base.as_ref().ok().filter(|_| !self.pending.as_ref().is_some_and(is_written));
        base.map(|base| self.record(session, received, base))
    }

    /// The record of the pending snapshot, if it is at this stage.
    pub fn pending_record(
        &self,
        session: u32,
        received: u64,
        stage: Stage,
    ) -> Option<JournalRecord> {
        let pending = self.pending.as_ref().filter(|pending| pending.stage == stage)?;
        Some(self.record(session, received, pending))
    }

    /// The records that a journal of the session begins with.
    pub fn records(&self, session: u32, received: u64, slots: &Slots) -> Vec<JournalRecord> {
        let base = match &self.base {
            Ok(base) => self.record(session, received, base),
            Err(reason) => {
                let (from, reason) = (self.log.first(), reason.clone());
                JournalRecord::Unkept { session, from, reason }
            }
        };
        let mut all = vec![base];
        all.extend(self.log.records(session, received, slots));
        all.extend(self.pending_record(session, received, Stage::Written));
        all
    }
}
