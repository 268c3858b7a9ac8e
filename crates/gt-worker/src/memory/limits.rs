//! How many bytes each lane may hold.

use std::collections::BTreeMap;

use gt_ir::LaneId;
use gt_ir::standing::{MemoryQuota, Standing};
use rustc_hash::FxHashMap;

use crate::lane::Lane;
use crate::memory::failure::NoRoom;
use crate::store::Held;

/// The memory of a lane.
pub(crate) struct LaneMemory {
    /// The bytes that it may hold in this turn.
    pub limit: u64,
    /// Whether it waits for room.
    pub waits: bool,
    /// Its next command fails if there is no room for it, for this reason.
    pub gives_up: Option<Box<NoRoom>>,
}

impl Default for LaneMemory {
    fn default() -> LaneMemory {
        LaneMemory { limit: u64::MAX, waits: false, gives_up: None }
    }
}

/// A limit that a lane would pass.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Passed {
    /// Whose quota it is, as `user ada`; empty for the worker's memory.
    pub holder: String,
    pub allowed: u64,
    /// What is held of it.
    pub held: u64,
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
    pub fn admit(&mut self, session: u32, standing: &Standing) {
        match standing.memory.is_empty() {
            true => self.quotas.remove(&session),
            false => self.quotas.insert(session, standing.memory.clone()),
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
        own.map(|lane| lane.store.bytes() + lane.store.spilled()).sum()
    }

    /// The most bytes that a lane may hold in memory, as things are.
    pub fn of_lane<T>(&self, lanes: &BTreeMap<LaneId, Lane<T>>, held: &Held, id: LaneId) -> u64 {
        let own = lanes.get(&id).map_or(0, |lane| lane.store.bytes());
        let others = held.bytes - own;
        let mut most = self.capacity.map_or(u64::MAX, |all| all.saturating_sub(others));
        for quota in self.quotas(id.session) {
            let others = self.held_by(lanes, &quota.holder) - own;
            most = most.min(quota.bytes.saturating_sub(others));
        }
        most
    }

    /// The limit that a lane would pass with so many bytes more; a quota before the worker's memory.
    pub fn passed<T>(
        &self,
        lanes: &BTreeMap<LaneId, Lane<T>>,
        held: &Held,
        id: LaneId,
        need: u64,
    ) -> Option<Passed> {
        for MemoryQuota { holder, bytes } in self.quotas(id.session) {
            let held = self.held_by(lanes, holder);
            if held.saturating_add(need) > *bytes {
                return Some(Passed { holder: holder.clone(), allowed: *bytes, held });
            }
        }
        let allowed = self.capacity?;
        let passed = Passed { holder: String::new(), allowed, held: held.bytes };
        (held.bytes.saturating_add(need) > allowed).then_some(passed)
    }
}
