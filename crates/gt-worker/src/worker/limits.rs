//! The limits of what each lane may hold.

use std::collections::BTreeMap;

use gt_ir::entitlement::{Entitlement, MemoryQuota};
use gt_ir::{Incarnation, LaneId};
use rustc_hash::FxHashMap;

use crate::lane::Lane;
use crate::memory::{ExceededLimit, Need};
use crate::store::HeldTotals;

/// The limits of a worker's lanes.
#[derive(Default)]
pub(super) struct LaneLimits {
    /// The bytes of the worker's memory.
    pub capacity: Option<u64>,
    /// The quotas of the sessions that have any.
    quotas: FxHashMap<Incarnation, Vec<MemoryQuota>>,
}

impl LaneLimits {
    /// Sets the quotas of a session.
    pub fn admit(&mut self, incarnation: Incarnation, entitlement: &Entitlement) {
        match entitlement.memory.is_empty() {
            true => self.quotas.remove(&incarnation),
            false => self.quotas.insert(incarnation, entitlement.memory.clone()),
        };
    }

    pub fn retire(&mut self, incarnation: Incarnation) {
        self.quotas.remove(&incarnation);
    }

    fn quotas(&self, incarnation: Incarnation) -> &[MemoryQuota] {
        self.quotas.get(&incarnation).map_or(&[], Vec::as_slice)
    }

    /// Returns whether a session's bytes count for a holder's quota.
    pub fn is_of(&self, incarnation: Incarnation, holder: &str) -> bool {
        self.quotas(incarnation).iter().any(|quota| quota.holder == holder)
    }

    /// Returns the bytes that a holder has, in memory and spilled.
    fn held_by<T>(&self, lanes: &BTreeMap<LaneId, Lane<T>>, holder: &str) -> u64 {
        let own = lanes.values().filter(|lane| self.is_of(lane.id.incarnation, holder));
        own.map(Lane::counted).sum()
    }

    /// Returns the most bytes that a lane may hold in memory now: by its quotas, if any, and by the
    /// worker's memory.
    pub fn of_lane<T>(
        &self,
        lanes: &BTreeMap<LaneId, Lane<T>>,
        held: &HeldTotals,
        id: LaneId,
    ) -> (Option<u64>, u64) {
        let Some(lane) = lanes.get(&id) else { return (None, u64::MAX) };
        let own = lane.store.bytes();
        let others = held.bytes - own + held.snapshots + lane.memory.granted_to_others(held);
        let capacity = self.capacity.map_or(u64::MAX, |all| all.saturating_sub(others));
        let quotas = self.quotas(id.incarnation).iter().map(|quota| {
            let others = self.held_by(lanes, &quota.holder) - own - lane.records();
            quota.bytes.saturating_sub(others)
        });
        (quotas.min(), capacity)
    }

    /// Returns the limit that a lane would exceed with this need; a quota before the worker's
    /// memory.
    pub fn exceeded<T>(
        &self,
        lanes: &BTreeMap<LaneId, Lane<T>>,
        held: &HeldTotals,
        id: LaneId,
        Need { new, tensors, back }: Need,
    ) -> Option<ExceededLimit> {
        let lane = lanes.get(&id);
        let more = lane.map_or(0, |lane| lane.records_of(tensors));
        let wanted = new + more;
        for MemoryQuota { holder, bytes } in self.quotas(id.incarnation) {
            let held = self.held_by(lanes, holder);
            if wanted > 0 && held.saturating_add(wanted) > *bytes {
                let own = lanes.values().filter(|lane| self.is_of(lane.id.incarnation, holder));
                let records = own.map(Lane::records).sum();
                let holder = holder.clone();
                return Some(ExceededLimit { holder, allowed: *bytes, held, records, more });
            }
        }
        let allowed = self.capacity?;
        let granted = lane.map_or(0, |lane| lane.memory.granted_to_others(held));
        let all = held.bytes + held.snapshots;
        let exceeded =
            ExceededLimit { holder: String::new(), allowed, held: all, records: 0, more: 0 };
        (all.saturating_add(granted).saturating_add(new + back) > allowed).then_some(exceeded)
    }
}
