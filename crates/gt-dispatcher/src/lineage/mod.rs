//! Lineage: the snapshot of a session and the batches that its client has sent since, from which
//! the session is restored when a worker is lost.
//!
//! A snapshot is a point in the session's stream. The session's state there (tensors, layouts,
//! templates) is stored here, the tensors' values by the workers. After a loss the session goes
//! back to the last complete snapshot, on the workers that are connected, and its stream is
//! replayed from there. Plans depend on slots, not on workers, and random numbers on counters, so
//! all values are the same as before.
//!
//! - [`limits`]: limits on the stored stream and values.
//! - [`log`]: the batches since the snapshot, and digests of their answers.
//! - [`pace`]: how often snapshots are taken.
//! - [`placement`]: moves slots between workers, and values that only one worker holds.
//! - [`records`]: the lineage's records in a journal.
//! - [`snapshots`]: where the values of a snapshot are.
//! - [`suspicion`]: the commands of the session that may have killed workers.

mod limits;
pub(crate) mod log;
mod pace;
mod placement;
mod records;
mod snapshots;
mod suspicion;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use gt_ir::message::ServerToWorker;
use gt_ir::{SessionId, SlotId, WorkerId};

use crate::journal::SnapshotState;
use pace::Pace;

pub use limits::LineageLimits;
pub(crate) use log::{BatchLog, Digest};
pub(crate) use snapshots::{SessionSnapshot, SlotCopy, SnapshotStage};
pub(crate) use suspicion::{CommandKey, Suspicion, TrialVerdict, TriedCommand};

/// How long shared memory of a client waits for a snapshot.
const HOLD: Duration = Duration::from_millis(100);

/// The transfer of a slot's values to the slot's worker.
#[derive(Clone, Copy)]
pub(crate) struct HandOver {
    /// The worker that holds them.
    pub holder: WorkerId,
    /// Whether that worker failed to send them directly: they pass through the dispatcher.
    pub is_indirect: bool,
}

/// A session's lineage.
pub(crate) struct Lineage {
    limits: LineageLimits,
    pub log: BatchLog,
    /// The last complete snapshot, or why the session cannot be restored.
    pub base: Result<SessionSnapshot, String>,
    /// The snapshot that is being taken.
    pub pending: Option<SessionSnapshot>,
    /// The first batch that is not planned entirely.
    planned: u64,
    /// The batch that was planned last, perhaps in part.
    begun: Option<u64>,
    /// The number of the last snapshot.
    last: u64,
    pace: Pace,
    /// Whether a snapshot is needed soon, because values of the base exist in one place only.
    pub lacks_second_copy: bool,
    /// Why the last snapshot failed; empty once another is complete.
    pub failure: String,
    /// The slots whose values are being transferred to their workers.
    pub handovers: BTreeMap<SlotId, HandOver>,
    /// The slots whose values are being copied to a second worker, and that worker.
    pub copying: BTreeMap<SlotId, WorkerId>,
    /// The number of the last snapshot when workers were found to host several slots while others
    /// host fewer; slots move after the next snapshot.
    rebalance_since: Option<u64>,
    /// Workers, and those that they cannot reach.
    pub unreachable: BTreeSet<(WorkerId, WorkerId)>,
    /// Workers that the session has left because they could not reach others.
    pub abandoned_workers: BTreeSet<WorkerId>,
    /// Shared memory of the client that the log refers to, and since when.
    blocks: Vec<u128>,
    blocks_since: Duration,
    /// The end of the log when it was rewound last.
    pub rewound_to: u64,
    /// How often the session was restored.
    pub recoveries: u64,
    pub suspicion: Suspicion,
}

impl Lineage {
    /// Creates the lineage of a new session.
    pub fn new(limits: LineageLimits) -> Lineage {
        Lineage {
            limits,
            log: BatchLog::default(),
            base: Ok(SessionSnapshot::default()),
            pending: None,
            planned: 0,
            begun: None,
            last: 0,
            pace: Pace::default(),
            lacks_second_copy: false,
            failure: String::new(),
            handovers: BTreeMap::new(),
            copying: BTreeMap::new(),
            rebalance_since: None,
            unreachable: BTreeSet::new(),
            abandoned_workers: BTreeSet::new(),
            blocks: Vec::new(),
            blocks_since: Duration::ZERO,
            rewound_to: 0,
            recoveries: 0,
            suspicion: Suspicion::default(),
        }
    }

    /// Sets the limit on the bytes of the stored stream.
    pub fn set_byte_limit(&mut self, bytes: u64) {
        self.limits.bytes = bytes;
    }

    /// Returns the number of the last snapshot that was begun.
    pub fn last_snapshot(&self) -> u64 {
        self.last
    }

    /// Returns whether a snapshot is to be taken, of a session that has used this device time.
    pub fn is_due(&self, now: Duration, device: u64) -> bool {
        if !self.is_quiescent() || !self.pace.allows(now) {
            return false;
        }
        if self.lacks_second_copy
            || self.rebalance_since.is_some()
            || !self.blocks.is_empty() && now >= self.blocks_since + HOLD
        {
            return true;
        }
        self.pace.is_due(device, self.limits.time * 4 / 5)
            || self.log.bytes() >= self.limits.bytes / 4
    }

    /// Returns whether no snapshot is pending, nothing is being replayed, and nothing is on trial.
    fn is_quiescent(&self) -> bool {
        self.pending.is_none() && !self.log.is_replaying() && !self.suspicion.is_open()
    }

    /// Returns when a snapshot is due because of shared memory, a rebalancing or values in one
    /// place.
    pub fn deadline(&self) -> Option<Duration> {
        let is_due = self.lacks_second_copy || self.rebalance_since.is_some();
        let waits = self.is_quiescent() && (!self.blocks.is_empty() || is_due);
        let since = if is_due { Duration::ZERO } else { self.blocks_since + HOLD };
        waits.then(|| self.pace.next(since)).flatten()
    }

    /// Notes an attempt to take a snapshot.
    pub fn try_at(&mut self, now: Duration) {
        self.pace.try_at(now);
    }

    /// Begins a snapshot of this state; returns its number.
    pub fn begin(&mut self, device: u64, state: Arc<SnapshotState>) -> u64 {
        self.last += 1;
        let planned = self.planned;
        self.pace.begin(device);
        // Batches that are being replayed may need blocks that were mapped before.
        let is_past = planned >= self.rewound_to;
        let blocks = if is_past { std::mem::take(&mut self.blocks) } else { Vec::new() };
        self.pending = Some(SessionSnapshot {
            number: self.last,
            state,
            planned,
            blocks,
            ..SessionSnapshot::default()
        });
        self.last
    }

    /// Returns whether all values of the pending snapshot are stored, and all requests before it
    /// are answered.
    pub fn is_pending_stored(&self) -> bool {
        let is_pending_stored = |pending: &SessionSnapshot| {
            pending.open.is_empty() && self.log.is_answered_before(pending.planned)
        };
        self.pending.as_ref().is_some_and(is_pending_stored)
    }

    /// Makes the pending snapshot the base. Returns the client's shared memory that is not needed
    /// any more, and the previous base.
    pub fn complete(&mut self) -> (Vec<u128>, Option<SessionSnapshot>) {
        let Some(mut done) = self.pending.take() else { return (Vec::new(), None) };
        let bytes: u64 = done.copies.values().map(|copy| copy.bytes).max().unwrap_or(0);
        self.pace.complete(bytes);
        self.log.forget_before(done.planned);
        self.suspicion.forget_before(done.planned);
        self.lacks_second_copy = false;
        self.failure.clear();
        self.copying.clear();
        // The slots have taken the snapshot after what was handed over to them.
        self.handovers.clear();
        let blocks = std::mem::take(&mut done.blocks);
        let before = std::mem::replace(&mut self.base, Ok(done)).ok();
        (blocks, before)
    }

    /// Abandons the pending snapshot; another is taken later. Returns whether the session cannot be
    /// restored from now on, because its log has exceeded its limit.
    pub fn abandon(&mut self, reason: &str) -> bool {
        let Some(failed) = self.pending.take() else { return false };
        self.pace.fail();
        self.failure = reason.to_string();
        self.blocks.extend(failed.blocks);
        if self.base.is_ok() && self.log.bytes() <= self.limits.bytes {
            return false;
        }
        let was_protected = self.base.is_ok();
        self.base = Err(reason.to_string());
        self.log.forget_before(self.planned);
        was_protected
    }

    /// Returns whether more may be planned: a log over its limit waits for the pending snapshot.
    pub fn has_room(&self) -> bool {
        self.pending.is_none() || self.log.bytes() <= self.limits.bytes
    }

    /// Handles a worker that has dropped a slot's values of the base for lack of memory: the next
    /// snapshot is delayed. Returns whether the base is lost.
    pub fn lose_copy(
        &mut self,
        now: Duration,
        slot: SlotId,
        worker: WorkerId,
        is_connected: impl Fn(WorkerId) -> bool,
    ) -> bool {
        self.pace.rest(now);
        self.lacks_second_copy = true;
        self.base.as_mut().is_ok_and(|base| base.lose_copy(slot, worker, is_connected))
    }

    /// Returns the worker that holds the second copy of a slot's values.
    pub fn keeper(&self, slot: SlotId) -> Option<WorkerId> {
        self.base.as_ref().ok()?.copies.get(&slot)?.keeper
    }

    /// Returns whether a batch is planned in part.
    pub fn is_begun(&self, batch: u64) -> bool {
        self.begun == Some(batch)
    }

    /// Returns the most bytes of a slot's values that the dispatcher stores.
    pub fn max_kept_bytes(&self) -> u64 {
        self.limits.kept
    }

    /// Notes that a batch is planned, perhaps in part, with this number of slots; `queued` is the
    /// next batch in the queue.
    pub fn planned(&mut self, batch: u64, queued: Option<u64>, slots: usize) {
        self.begun = Some(batch);
        let next = queued.unwrap_or_else(|| self.log.next());
        if next > self.planned {
            (self.planned..next).for_each(|number| self.log.mark_planned(number, slots));
            self.planned = next;
        }
        if batch >= next {
            self.log.mark_planned(batch, slots);
        }
        if self.base.is_err() && self.pending.is_none() {
            self.log.forget_before(next);
        }
    }

    /// Gives up restoring the session, for this reason. Returns its shared memory.
    pub fn give_up(&mut self, reason: String) -> Vec<u128> {
        self.base = Err(reason);
        self.suspicion.acquit();
        let pending = self.pending.take().map(|pending| pending.blocks);
        self.log.forget_before(self.planned);
        self.blocks.extend(pending.into_iter().flatten());
        // Batches that are being replayed may need the blocks.
        let is_past = self.planned >= self.rewound_to;
        if is_past { std::mem::take(&mut self.blocks) } else { Vec::new() }
    }

    /// Holds a block of the client's shared memory, which a worker has mapped, until the next
    /// snapshot. Returns false if the session takes none.
    pub fn hold(&mut self, now: Duration, token: u128) -> bool {
        if self.base.is_err() {
            return false;
        }
        if self.blocks.is_empty() {
            self.blocks_since = now;
        }
        if !self.blocks.contains(&token) {
            self.blocks.push(token);
        }
        true
    }

    /// Returns the message that workers retain the base of this session, and later snapshots.
    pub fn retain(&self, session: SessionId) -> ServerToWorker {
        // A session without a base has none to retain, but may have one again.
        let snapshot = self.base.as_ref().map_or(0, |base| base.number);
        ServerToWorker::Retain { session, snapshot: Some(snapshot), next: self.last + 1 }
    }

    /// Returns the base, if the session can be restored from it on the connected workers.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn base_on(
        &self,
        is_connected: impl Fn(WorkerId) -> bool,
    ) -> Result<&SessionSnapshot, String> {
        let base = self.base.as_ref().map_err(Clone::clone)?;
        if let Some(slot) = base.lost(is_connected) {
            return Err(format!("the second copy of slot {slot}'s tensors was lost as well"));
        }
        Ok(base)
    }

    /// Goes back to the base: returns its state, from which the log is replayed.
    ///
    /// # Errors
    /// As [`Lineage::base_on`].
    pub fn rewind(
        &mut self,
        is_connected: impl Fn(WorkerId) -> bool,
    ) -> Result<SnapshotState, String> {
        let base = self.base_on(is_connected)?;
        let (state, planned) = ((*base.state).clone(), base.planned);
        if let Some(pending) = self.pending.take() {
            self.blocks.extend(pending.blocks);
        }
        (self.planned, self.begun, self.rewound_to) = (planned, None, self.log.end());
        self.log.rewind();
        self.recoveries += 1;
        Ok(state)
    }
}

#[cfg(test)]
mod tests {
    use super::pace::OFTEN;
    use super::*;

    fn lineage() -> Lineage {
        Lineage::new(LineageLimits { bytes: 4000, kept: 1000, ..LineageLimits::default() })
    }

    /// Takes a complete snapshot.
    fn snapshot(lineage: &mut Lineage, device: Duration) {
        lineage.begin(device.as_nanos() as u64, Arc::default());
        lineage.complete();
    }

    #[test]
    fn snapshots_are_due_by_device_time_by_length_and_after_a_loss() {
        let second = Duration::from_secs(1);
        let mut lineage = lineage();
        let due =
            |lineage: &Lineage, used: Duration| lineage.is_due(second, used.as_nanos() as u64);
        assert!(!due(&lineage, OFTEN / 2) && due(&lineage, OFTEN));
        snapshot(&mut lineage, OFTEN);
        assert!(!due(&lineage, OFTEN * 3 / 2) && due(&lineage, OFTEN * 2));
        lineage.log.add(vec![vec![0; 1000].into()], 0, 1, Vec::new());
        assert!(due(&lineage, OFTEN), "a quarter of the bytes is used");
        lineage.planned(0, None, 1);
        snapshot(&mut lineage, OFTEN);
        assert_eq!((lineage.log.len(), due(&lineage, OFTEN)), (0, false));
        lineage.lacks_second_copy = true;
        assert!(due(&lineage, OFTEN));
        lineage.try_at(second);
        assert!(!due(&lineage, OFTEN), "it was tried just now");
    }

    #[test]
    fn a_log_over_its_limit_waits_for_a_snapshot_and_is_given_up_if_it_fails() {
        let mut lineage = lineage();
        let number = lineage.log.add(vec![vec![0; 500].into()], 4500, 1, Vec::new());
        lineage.planned(number, None, 1);
        assert!(lineage.has_room(), "no snapshot is pending");
        lineage.begin(0, Arc::default());
        assert!(!lineage.has_room());
        assert!(lineage.abandon("the disk is full"));
        assert_eq!(
            (lineage.log.len(), lineage.base.as_ref().err().unwrap().as_str()),
            (0, "the disk is full")
        );
        assert!(lineage.rewind(|_| true).is_err() && !lineage.hold(Duration::ZERO, 1));
        snapshot(&mut lineage, OFTEN);
        assert!(lineage.rewind(|_| true).is_ok(), "it can be restored again");
    }
}
