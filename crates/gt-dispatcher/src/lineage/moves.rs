//! Slots that move to other workers once their values are kept, and copies of values that are made
//! good where one worker alone has them.

use gt_ir::{SlotId, WorkerId};

use super::Lineage;

impl Lineage {
    /// Some workers carry several slots while others carry fewer: after the next snapshot, slots
    /// move.
    pub fn crowd(&mut self) {
        self.crowded.get_or_insert(self.last);
    }

    /// Slots have moved, or need not.
    pub fn evened(&mut self) {
        self.crowded = None;
    }

    /// Whether slots that are to move may: a snapshot was taken for it, and little has come since.
    pub fn may_move(&self) -> bool {
        let base = self.base.as_ref().map_or(0, |base| base.number);
        let is_fresh = self.crowded.is_some_and(|since| base > since);
        is_fresh && self.is_calm() && !self.is_restored()
    }

    /// The slots of whose values in the base one worker alone has a copy, and that worker.
    pub fn single_copies(
        &mut self,
        is_there: impl Fn(WorkerId) -> bool,
    ) -> Vec<(SlotId, WorkerId)> {
        self.copying.retain(|_, to| is_there(*to));
        let Ok(base) = &self.base else { return Vec::new() };
        let free = base.copies.iter().filter(|(slot, _)| {
            !self.copying.contains_key(slot) && !self.handing.contains_key(slot)
        });
        free.filter_map(|(slot, copy)| Some((*slot, copy.only_holder(&is_there)?))).collect()
    }

    /// Whether values of the base are on one of these workers alone.
    pub fn is_exposed(&self, on: &[WorkerId], is_there: impl Fn(WorkerId) -> bool) -> bool {
        let copies = self.base.as_ref().into_iter().flat_map(|base| base.copies.values());
        let mut holders = copies.filter_map(|copy| copy.only_holder(&is_there));
        holders.any(|holder| on.contains(&holder))
    }

    /// Another copy of a slot's values is on its way to a worker. Returns the snapshot's number.
    pub fn copy_to(&mut self, slot: SlotId, worker: WorkerId) -> Option<u64> {
        let number = self.base.as_ref().ok()?.number;
        self.copying.insert(slot, worker);
        Some(number)
    }
}
