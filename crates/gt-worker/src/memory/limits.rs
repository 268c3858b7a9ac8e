//! How many bytes each lane may hold.

use std::collections::BTreeMap;

use gt_ir::entitlement::{Entitlement, MemoryQuota};
use gt_ir::{LaneId, TensorId};
use rustc_hash::FxHashMap;

use crate::lane::Lane;
use crate::memory::failure::NoRoom;
use crate::store::{Held, Store};

/// What each tensor counts for a quota besides its elements: the server and the worker keep records of it.
const RECORD: u64 = 400;
/// How many tensors a lane may have whose records do not count.
const UNCOUNTED: usize = 4096;

/// The bytes that the records of a lane's tensors count for its quotas, if there are so many.
pub(crate) fn records(tensors: usize) -> u64 {
    RECORD * tensors.saturating_sub(UNCOUNTED) as u64
}

/// The memory of a lane.
pub(crate) struct LaneMemory {
    /// The bytes that it may hold in memory in this turn, and for records, by its quotas if it has any.
    pub quota: Option<u64>,
    /// The bytes that it may hold by the worker's memory: also what comes back from elsewhere, which is
    /// in its quotas already.
    pub capacity: u64,
    /// Whether it waits for room.
    pub waits: bool,
    /// What is kept for its next command, which has waited.
    pub grant: Option<Box<Grant>>,
    /// Its next command fails if there is no room for it, for this reason.
    pub gives_up: Option<Box<NoRoom>>,
    /// Why it gave up last.
    pub gave_up: Option<Box<NoRoom>>,
}

/// Room that is kept for a lane's next command, so that others do not take it before its turn: no two
/// lanes take each other's tensors for ever.
#[derive(Debug)]
pub(crate) struct Grant {
    /// The bytes that it will need still.
    pub bytes: u64,
    /// The tensors that it reads, which stay.
    pub pinned: Vec<TensorId>,
}

impl LaneMemory {
    /// The bytes that a lane may hold beside those that it holds, in so many more tensors; `None` if
    /// even the records of these are too many for a quota.
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

    /// The bytes that may come back to a lane from elsewhere.
    #[inline]
    pub fn room_back<T>(&self, store: &Store<T>) -> u64 {
        self.capacity.saturating_sub(store.bytes())
    }

    /// Nothing is kept any more for the lane.
    pub fn end_grant(&mut self, held: &mut Held) {
        if let Some(grant) = self.grant.take() {
            held.granted -= grant.bytes;
        }
    }

    /// So many bytes of those that are kept are used.
    pub fn use_grant(&mut self, held: &mut Held, bytes: u64) {
        if let Some(grant) = &mut self.grant {
            let used = bytes.min(grant.bytes);
            grant.bytes -= used;
            held.granted -= used;
        }
    }

    /// What is kept for others.
    fn granted_to_others(&self, held: &Held) -> u64 {
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
    /// How many these are.
    pub tensors: usize,
    /// For tensors that come back from elsewhere.
    pub back: u64,
}

/// A limit that a lane would pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Passed {
    /// Whose quota it is, as `user ada`; empty for the worker's memory.
    pub holder: String,
    pub allowed: u64,
    /// What is held of it.
    pub held: u64,
    /// Of this, what is counted for the records of tensors.
    pub records: u64,
    /// What the records of the command's own results count.
    pub more: u64,
}

/// The limits of a worker's lanes.
#[derive(Default)]
pub(crate) struct Limits {
    /// The bytes of the worker's memory.
    pub capacity: Option<u64>,
    /// The quotas of the sessions that have any.
    quotas: FxHashMap<u32, Vec<MemoryQuota>>,
}

impl Limits {
    /// Sets the quotas of a session.
    pub fn admit(&mut self, session: u32, entitlement: &Entitlement) {
        match entitlement.memory.is_empty() {
            true => self.quotas.remove(&session),
            false => self.quotas.insert(session, entitlement.memory.clone()),
        };
    }

    pub fn retire(&mut self, session: u32) {
        self.quotas.remove(&session);
    }

    fn quotas(&self, session: u32) -> &[MemoryQuota] {
        self.quotas.get(&session).map_or(&[], Vec::as_slice)
    }

    /// Whether a session's bytes count for a holder's quota.
    pub fn is_of(&self, session: u32, holder: &str) -> bool {
        self.quotas(session).iter().any(|quota| quota.holder == holder)
    }

    /// The bytes that a holder has, in memory and elsewhere.
    fn held_by<T>(&self, lanes: &BTreeMap<LaneId, Lane<T>>, holder: &str) -> u64 {
        let own = lanes.values().filter(|lane| self.is_of(lane.id.session, holder));
        own.map(Lane::counted).sum()
    }

    /// The most bytes that a lane may hold in memory, as things are: by its quotas, if it has any, and
    /// by the worker's memory.
    pub fn of_lane<T>(
        &self,
        lanes: &BTreeMap<LaneId, Lane<T>>,
        held: &Held,
        id: LaneId,
    ) -> (Option<u64>, u64) {
        let Some(lane) = lanes.get(&id) else { return (None, u64::MAX) };
        let own = lane.store.bytes();
        let others = held.bytes - own + held.snapshots + lane.memory.granted_to_others(held);
        let capacity = self.capacity.map_or(u64::MAX, |all| all.saturating_sub(others));
        let quotas = self.quotas(id.session).iter().map(|quota| {
            let others = self.held_by(lanes, &quota.holder) - own - lane.records();
            quota.bytes.saturating_sub(others)
        });
        (quotas.min(), capacity)
    }

    /// The limit that a lane would pass with what it needs; a quota before the worker's memory.
    pub fn passed<T>(
        &self,
        lanes: &BTreeMap<LaneId, Lane<T>>,
        held: &Held,
        id: LaneId,
        Need { new, tensors, back }: Need,
    ) -> Option<Passed> {
        let lane = lanes.get(&id);
        let more = lane.map_or(0, |lane| lane.records_of(tensors));
        let wanted = new + more;
        for MemoryQuota { holder, bytes } in self.quotas(id.session) {
            let held = self.held_by(lanes, holder);
            if wanted > 0 && held.saturating_add(wanted) > *bytes {
                let own = lanes.values().filter(|lane| self.is_of(lane.id.session, holder));
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
