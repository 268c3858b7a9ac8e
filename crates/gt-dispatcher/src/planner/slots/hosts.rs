//! The workers that host a session's slots: as slots are made, as workers join, and as these are
//! lost.

use std::collections::BTreeSet;

use gt_ir::{SlotId, WorkerId};

use super::{Host, Slots, WorkerSlot};

impl Slots {
    /// Assigns slots without a worker to those that host the fewest, one with the slot's number
    /// first among equals.
    pub fn assign_hosts(&mut self, hosts: &[Host]) {
        for slot in self.all() {
            if self.host(slot).is_some() {
                continue;
            }
            let WorkerSlot { number, arithmetic, .. } = self.slots[slot.0 as usize];
            let load = |host: &&Host| {
                let is_other = host.arithmetic != arithmetic;
                (is_other, self.on(host.worker).len(), host.number != number)
            };
            if let Some(host) = hosts.iter().min_by_key(load) {
                self.move_to(slot, *host);
            }
        }
    }

    /// Returns the moves that balance the number of slots per worker, from workers with the most to
    /// those with the fewest that have the same arithmetic.
    pub fn rebalanced(&self, hosts: &[Host]) -> Vec<(SlotId, Host)> {
        let kinds: BTreeSet<u64> = hosts.iter().map(|host| host.arithmetic).collect();
        let among = kinds.into_iter().map(|kind| {
            hosts.iter().filter(|host| host.arithmetic == kind).copied().collect::<Vec<Host>>()
        });
        among.flat_map(|hosts| self.rebalanced_among(&hosts)).collect()
    }

    fn rebalanced_among(&self, hosts: &[Host]) -> Vec<(SlotId, Host)> {
        let mut after = self.clone();
        let mut moves = Vec::new();
        loop {
            let load = |host: &&Host| after.on(host.worker).len();
            let (Some(most), Some(least)) =
                (hosts.iter().max_by_key(load), hosts.iter().min_by_key(load))
            else {
                return moves;
            };
            let carried = after.on(most.worker);
            if carried.len() < load(&least) + 2 {
                return moves;
            }
            // A slot on a substitute moves first, the home slot last.
            let order = |slot: &SlotId| {
                (after.slots[slot.0 as usize].is_displaced, Some(*slot) != after.home, slot.0)
            };
            let Some(slot) = carried.into_iter().max_by_key(order) else { return moves };
            after.move_to(slot, *least);
            moves.push((slot, *least));
        }
    }

    /// Moves a lost worker's slots to others: for each slot, the preferred worker if it is among
    /// them and has the same arithmetic. Returns the slots.
    pub fn remove(
        &mut self,
        gone: WorkerId,
        others: &[Host],
        preferred: impl Fn(SlotId) -> Option<WorkerId>,
    ) -> Vec<SlotId> {
        let moved = self.on(gone);
        for slot in &moved {
            // Prefer the same arithmetic, then the preferred worker, then the one with the fewest
            // slots of this session, then the nearest, then the first.
            let (preferred, arithmetic) = (preferred(*slot), self.arithmetic(*slot));
            let adjacent = self.adjacent_hosts(*slot);
            let order = |host: &&Host| {
                let is_other = host.arithmetic != arithmetic;
                let distance =
                    |other: &WorkerId| self.network.topology.distance(host.worker, *other);
                let distance: u32 = adjacent.iter().map(distance).sum();
                (is_other, Some(host.worker) != preferred, self.on(host.worker).len(), distance)
            };
            let host = others.iter().min_by_key(order).copied();
            let slot = &mut self.slots[slot.0 as usize];
            match host {
                Some(host) => slot.put_on(host, true),
                None => (slot.host, slot.is_displaced) = (None, true),
            }
        }
        self.hosts_version += u64::from(!moved.is_empty());
        moved
    }

    /// Returns the workers of the slots with the numbers before and after a slot's.
    fn adjacent_hosts(&self, slot: SlotId) -> Vec<WorkerId> {
        let number = self.slots[slot.0 as usize].number;
        let is_adjacent = |other: &&WorkerSlot| other.number.abs_diff(number) == 1;
        self.slots.iter().filter(is_adjacent).filter_map(|other| other.host).collect()
    }
}
