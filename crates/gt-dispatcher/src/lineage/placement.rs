//! Moves of slots to other workers after a snapshot, and second copies of values that only one
//! worker holds.

use gt_ir::{SlotId, WorkerId};

use super::{Lineage, SlotCopy};

impl Lineage {
    /// Requests that slots move after the next snapshot: some workers host several while others
    /// host fewer.
    pub fn request_rebalance(&mut self) {
        self.rebalance_since.get_or_insert(self.last);
    }

    /// Notes that slots have moved, or need not.
    pub fn rebalance_done(&mut self) {
        self.rebalance_since = None;
    }

    /// Returns whether requested moves of slots may happen: a snapshot was taken since the request,
    /// and nothing is being replayed or handed over.
    pub fn may_rebalance(&self) -> bool {
        let base = self.base.as_ref().map_or(0, |base| base.number);
        let is_fresh = self.rebalance_since.is_some_and(|since| base > since);
        is_fresh && self.is_quiescent() && self.handovers.is_empty()
    }

    /// Returns the slots whose values in the base only one of the workers that stay holds, and that
    /// worker; or only workers that are to end, and one of them.
    pub fn single_copies(
        &mut self,
        is_connected: impl Fn(WorkerId) -> bool,
        stays: impl Fn(WorkerId) -> bool,
    ) -> Vec<(SlotId, WorkerId)> {
        self.copying.retain(|_, to| stays(*to));
        let Ok(base) = &self.base else { return Vec::new() };
        let free = base.copies.iter().filter(|(slot, _)| {
            !self.copying.contains_key(slot) && !self.handovers.contains_key(slot)
        });
        let holder = |copy: &SlotCopy| {
            copy.only_holder(&stays).or_else(|| copy.leaving_holder(&is_connected, &stays))
        };
        free.filter_map(|(slot, copy)| Some((*slot, holder(copy)?))).collect()
    }

    /// Returns whether values of the base are on workers that are to end alone.
    pub fn is_leaving(
        &self,
        is_connected: impl Fn(WorkerId) -> bool,
        stays: impl Fn(WorkerId) -> bool,
    ) -> bool {
        let mut copies = self.base.as_ref().into_iter().flat_map(|base| base.copies.values());
        copies.any(|copy| copy.leaving_holder(&is_connected, &stays).is_some())
    }

    /// Returns whether any of these workers holds the only copy of values of the base.
    pub fn is_exposed(&self, on: &[WorkerId], is_connected: impl Fn(WorkerId) -> bool) -> bool {
        let copies = self.base.as_ref().into_iter().flat_map(|base| base.copies.values());
        let mut holders = copies.filter_map(|copy| copy.only_holder(&is_connected));
        holders.any(|holder| on.contains(&holder))
    }

    /// Notes that a slot's values are being copied to a second worker. Returns the snapshot's
    /// number.
    pub fn copy_to(&mut self, slot: SlotId, worker: WorkerId) -> Option<u64> {
        let number = self.base.as_ref().ok()?.number;
        self.copying.insert(slot, worker);
        Some(number)
    }
}
