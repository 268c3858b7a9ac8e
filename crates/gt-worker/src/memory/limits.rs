//! The limits of what each lane may hold.

use std::collections::BTreeMap;

use gt_ir::entitlement::{Entitlement, MemoryQuota};
use gt_ir::{Incarnation, LaneId, TensorId};
use rustc_hash::FxHashMap;

use crate::lane::Lane;
use crate::memory::failure::NoRoom;
use crate::store::{HeldTotals, Store};

/// The bytes that each tensor counts for a quota besides its elements: the server and the worker
/// keep records of it.
const RECORD: u64 = 400;
/// The number of tensors of a lane whose records do not count.
const UNCOUNTED: usize = 4096;

/// Returns the bytes that the records of `count` tensors count for a lane's quotas.
pub(crate) fn records(tensors: usize) -> u64 {
    RECORD * tensors.saturating_sub(UNCOUNTED) as u64
}

/// The memory of a lane.
pub(crate) struct LaneMemory {
    /// The bytes that it may hold in memory in this turn, records included, by its quotas if any.
    pub quota: Option<u64>,
    /// The bytes that it may hold by the worker's memory; unspilled tensors count here, and were in
    /// its quotas already.
    pub capacity: u64,
    /// Whether it waits for room.
    pub waits: bool,
    /// The grant for its next command, which has waited.
    pub grant: Option<Box<Grant>>,
    /// If set, its next command fails for this reason if it does not fit.
    pub gives_up: Option<Box<NoRoom>>,
    /// Why its last wait failed.
    pub gave_up: Option<Box<NoRoom>>,
}

/// Memory that is granted to a lane's next command, so that no other lane takes it before its turn:
/// no two lanes spill each other's tensors forever.
#[derive(Debug)]
pub(crate) struct Grant {
    /// The bytes that it still needs.
    pub bytes: u64,
    /// The tensors that it reads, which stay.
    pub pinned: Vec<TensorId>,
}

impl LaneMemory {
    /// Returns the additional bytes that a lane may hold, in `more` more tensors; `None` if even
    /// the records of these exceed a quota.
    #[inline]
    pub fn room<T>(&self, store: &Store<T>, tensors: usize) -> Option<u64> {
        let room = self.room_back(store);
        match self.quota {
            None => Some(room),
            Some(quota) => {
                let records = records(store.count() + tensors);
                let left = quota.checked_sub(store.bytes() + records);
                left.or((records == 0).then_some(0)).map(|left| left.min(room))
            }
        }
    }

    /// Returns the bytes of a lane that may be unspilled.
    #[inline]
    pub fn room_back<T>(&self, store: &Store<T>) -> u64 {
        self.capacity.saturating_sub(store.bytes())
    }

    /// Drops the lane's grant.
    pub fn end_grant(&mut self, held: &mut HeldTotals) {
        if let Some(grant) = self.grant.take() {
            held.granted -= grant.bytes;
        }
    }

    /// Uses `bytes` bytes of the grant.
    pub fn use_grant(&mut self, held: &mut HeldTotals, bytes: u64) {
        if let Some(grant) = &mut self.grant {
            let used = bytes.min(grant.bytes);
            grant.bytes -= used;
            held.granted -= used;
        }
    }

    /// Returns the bytes granted to other lanes.
    fn granted_to_others(&self, held: &HeldTotals) -> u64 {
        held.granted - self.grant.as_ref().map_or(0, |grant| grant.bytes)
    }
}

impl Default for LaneMemory {
    fn default() -> LaneMemory {
        LaneMemory {
            quota: None,
            capacity: u64::MAX,
            waits: false,
            grant: None,
            gives_up: None,
            gave_up: None,
        }
    }
}

/// The bytes that a command needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Need {
    /// For its results.
    pub new: u64,
    /// The number of results.
    pub tensors: usize,
    /// For tensors to be unspilled.
    pub back: u64,
}

/// A limit that a lane would exceed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Passed {
    /// Whose quota it is, as `user ada`; empty for the worker's memory.
    pub holder: String,
    pub allowed: u64,
    /// The bytes held.
    pub held: u64,
    /// Of these, the bytes of tensors' records.
    pub records: u64,
    /// The bytes of the records of the command's results.
    pub more: u64,
}

/// The limits of a worker's lanes.
#[derive(Default)]
pub(crate) struct LaneLimits {
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
    pub fn passed<T>(
        &self,
        lanes: &BTreeMap<LaneId, Lane<T>>,
        held: &HeldTotals,
        id: LaneId,
        Need { new, tensors, back }: Need,
    ) -> Option<Passed> {
        let lane = lanes.get(&id);
        let more = lane.map_or(0, |lane| lane.records_of(tensors));
        let wanted = new + more;
        for MemoryQuota { holder, bytes } in self.quotas(id.incarnation) {
            let held = self.held_by(lanes, holder);
            if wanted > 0 && held.saturating_add(wanted) > *bytes {
                let own = lanes.values().filter(|lane| self.is_of(lane.id.incarnation, holder));
                let records = own.map(Lane::records).sum();
                let holder = holder.clone();
                return Some(Passed { holder, allowed: *bytes, held, records, more });
            }
        }
        let allowed = self.capacity?;
        let granted = lane.map_or(0, |lane| lane.memory.granted_to_others(held));
        let all = held.bytes + held.snapshots;
        let passed = Passed { holder: String::new(), allowed, held: all, records: 0, more: 0 };
        (all.saturating_add(granted).saturating_add(new + back) > allowed).then_some(passed)
    }
}
