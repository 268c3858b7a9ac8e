//! The limits of what each lane may hold.

use gt_ir::TensorId;

use super::failure::NoRoom;
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
    pub failure_if_short: Option<Box<NoRoom>>,
    /// Why its last wait failed.
    pub last_failure: Option<Box<NoRoom>>,
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
    pub fn granted_to_others(&self, held: &HeldTotals) -> u64 {
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
            failure_if_short: None,
            last_failure: None,
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
