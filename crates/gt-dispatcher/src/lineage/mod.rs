//! What a session's tensors are made again from when a worker is lost: a snapshot of the session,
//! and all that its client has sent since.
//!
//! A snapshot is a point in the session's stream. Its state there (tensors, layouts, templates) is
//! kept here, the tensors' values by the workers. After a loss the session goes back to the last
//! snapshot that is complete, on the workers that are there, and its stream is planned anew from
//! there. Plans depend on slots, not on workers, and random numbers on counters, so all values are
//! the same again.
//!
//! - [`limits`]: how much is kept.
//! - [`log`]: what the client has sent, and the answers that it has got.
//! - [`moves`]: slots that move to other workers, and copies that are made good.
//! - [`pace`]: how often snapshots are taken.
//! - [`records`]: a lineage in a journal.
//! - [`snapshots`]: where the values of a snapshot are.
//! - [`suspicion`]: what of the session workers may have died of.

mod limits;
pub(crate) mod log;
mod moves;
mod pace;
mod records;
mod snapshots;
mod suspicion;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use gt_ir::message::Message;
use gt_ir::{SlotId, WorkerId};

use pace::Pace;

pub use limits::LineageLimits;
pub(crate) use log::{Digest, Log};
pub(crate) use snapshots::{Copy, Snapshot, Stage, State};
pub(crate) use suspicion::{Key, Suspicion, Tried, Verdict};

/// How long shared memory of a client waits for a snapshot.
const HOLD: Duration = Duration::from_millis(100);

/// A slot's values are on their way to its worker.
#[derive(Clone, Copy)]
pub(crate) struct HandOver {
    /// The worker that has them.
    pub holder: WorkerId,
    /// Whether it has failed to send them to the other itself: they go by way of the dispatcher.
    pub is_indirect: bool,
}

/// A session's lineage.
pub(crate) struct Lineage {
    limits: LineageLimits,
    pub log: Log,
    /// The last snapshot that is complete. None if the session is unprotected, for this reason.
    pub base: Result<Snapshot, String>,
    /// The snapshot that is being taken.
    pub pending: Option<Snapshot>,
    /// The first batch that is not planned entirely.
    planned: u64,
    /// The batch that was planned last, perhaps in part.
    begun: Option<u64>,
    /// Whether its slots are to get the values of its base once there is a worker.
    pub is_waiting: bool,
    /// The last number of a snapshot.
    last: u64,
    pace: Pace,
    /// Whether another is needed soon: values are kept in one place only.
    pub is_thin: bool,
    /// The slots whose values are on their way to their workers.
    pub handing: BTreeMap<SlotId, HandOver>,
    /// The slots of whose values another copy is on its way, and to whom.
    pub copying: BTreeMap<SlotId, WorkerId>,
    /// Since which snapshot workers carry several slots while others carry fewer.
    crowded: Option<u64>,
    /// Workers, and those that they cannot reach.
    pub unreachable: BTreeSet<(WorkerId, WorkerId)>,
    /// Workers that the session has left, as they could not reach others.
    pub left: BTreeSet<WorkerId>,
    /// Shared memory of the client that the log refers to, and since when.
    blocks: Vec<u128>,
    blocks_since: Duration,
    /// The end of the log when it was rewound last.
    redone: u64,
    /// How often the session was made again.
    pub recoveries: u64,
    pub suspicion: Suspicion,
}

impl Lineage {
    /// That of a new session.
    pub fn new(limits: LineageLimits) -> Lineage {
        Lineage {
            limits,
            log: Log::default(),
            base: Ok(Snapshot::default()),
            pending: None,
            planned: 0,
            begun: None,
            is_waiting: false,
            last: 0,
            pace: Pace::default(),
            is_thin: false,
            handing: BTreeMap::new(),
            copying: BTreeMap::new(),
            crowded: None,
            unreachable: BTreeSet::new(),
            left: BTreeSet::new(),
            blocks: Vec::new(),
            blocks_since: Duration::ZERO,
            redone: 0,
            recoveries: 0,
            suspicion: Suspicion::default(),
        }
    }

    /// The stream may take up so many bytes from now on.
    pub fn limit_to(&mut self, bytes: u64) {
        self.limits.bytes = bytes;
    }

    /// Whether a snapshot is to be taken, of a session that has used this device time.
    pub fn is_due(&self, now: Duration, device: u64) -> bool {
        if !self.is_calm() || !self.pace.allows(now) {
            return false;
        }
        if self.is_thin
            || self.crowded.is_some()
            || !self.blocks.is_empty() && now >= self.blocks_since + HOLD
        {
            return true;
        }
        self.pace.is_due(device, self.limits.time * 4 / 5)
            || self.log.bytes() >= self.limits.bytes / 4
    }

    /// Whether no snapshot is taken, nothing is planned anew, and nothing is tried.
    fn is_calm(&self) -> bool {
        self.pending.is_none() && !self.log.is_replayed() && !self.suspicion.is_open()
    }

    /// When a snapshot is due for the sake of shared memory.
    pub fn deadline(&self) -> Option<Duration> {
        let is_due = self.is_thin || self.crowded.is_some();
        let waits = self.is_calm() && (!self.blocks.is_empty() || is_due);
        let since = if is_due { Duration::ZERO } else { self.blocks_since + HOLD };
        waits.then(|| self.pace.next(since)).flatten()
    }

    /// A snapshot is tried.
    pub fn try_at(&mut self, now: Duration) {
        self.pace.try_at(now);
    }

    /// Begins a snapshot of this state; returns its number.
    pub fn begin(&mut self, device: u64, state: Arc<State>) -> u64 {
        self.last += 1;
        let planned = self.planned;
        self.pace.begin(device);
        // Batches that are planned anew may need blocks that were mapped before.
        let is_past = planned >= self.redone;
        let blocks = if is_past { std::mem::take(&mut self.blocks) } else { Vec::new() };
        self.pending =
            Some(Snapshot { number: self.last, state, planned, blocks, ..Snapshot::default() });
        self.last
    }

    /// Whether all of the pending snapshot is kept, and all that was asked before it is answered.
    pub fn is_taken(&self) -> bool {
        let is_taken = |pending: &Snapshot| {
            pending.open.is_empty() && self.log.is_answered_before(pending.planned)
        };
        self.pending.as_ref().is_some_and(is_taken)
    }

    /// The pending snapshot is complete, and becomes the base. Returns the client's shared memory
    /// that is needed no longer, and the base before.
    pub fn complete(&mut self) -> (Vec<u128>, Option<Snapshot>) {
        let Some(mut done) = self.pending.take() else { return (Vec::new(), None) };
        let bytes: u64 = done.copies.values().map(|copy| copy.bytes).max().unwrap_or(0);
        self.pace.complete(bytes);
        self.log.forget_before(done.planned);
        self.suspicion.forget_before(done.planned);
        self.is_thin = false;
        self.copying.clear();
        let blocks = std::mem::take(&mut done.blocks);
        let before = std::mem::replace(&mut self.base, Ok(done)).ok();
        (blocks, before)
    }

    /// The pending snapshot fails, and another is taken later. Whether the session is unprotected
    /// from now on, as too much was sent since the last.
    pub fn abandon(&mut self, reason: &str) -> bool {
        let Some(failed) = self.pending.take() else { return false };
        self.pace.fail();
        self.blocks.extend(failed.blocks);
        if self.base.is_ok() && self.log.bytes() <= self.limits.bytes {
            return false;
        }
        let was_protected = self.base.is_ok();
        self.base = Err(reason.to_string());
        self.log.forget_before(self.planned);
        was_protected
    }

    /// Whether more may be planned: if too much was sent since the base, a snapshot comes first.
    pub fn has_room(&self) -> bool {
        self.pending.is_none() || self.log.bytes() <= self.limits.bytes
    }

    /// Whether its lanes wait for the values of its base.
    pub fn is_restored(&self) -> bool {
        self.is_waiting || !self.handing.is_empty()
    }

    /// A worker has dropped a slot's values of the base, as it needed the memory: no snapshot is taken
    /// for a time. Returns whether the base is lost.
    pub fn lose_copy(
        &mut self,
        now: Duration,
        slot: SlotId,
        worker: WorkerId,
        is_there: impl Fn(WorkerId) -> bool,
    ) -> bool {
        self.pace.rest(now);
        self.is_thin = true;
        self.base.as_mut().is_ok_and(|base| base.lose_copy(slot, worker, is_there))
    }

    /// The worker that has a copy of a slot's values.
    pub fn keeper(&self, slot: SlotId) -> Option<WorkerId> {
        self.base.as_ref().ok()?.copies.get(&slot)?.keeper
    }

    /// Whether a batch is planned in part.
    pub fn is_begun(&self, batch: u64) -> bool {
        self.begun == Some(batch)
    }

    /// The most bytes of a slot's values that the dispatcher keeps.
    pub fn most_kept(&self) -> u64 {
        self.limits.kept
    }

    /// A batch is planned, perhaps in part, with so many slots; `queued` is the next in the queue.
    pub fn planned(&mut self, batch: u64, queued: Option<u64>, slots: usize) {
        self.begun = Some(batch);
        let next = queued.unwrap_or_else(|| self.log.next());
        if next > self.planned {
            (self.planned..next).for_each(|number| self.log.planned(number, slots));
            self.planned = next;
        }
        if batch >= next {
            self.log.planned(batch, slots);
        }
        if self.base.is_err() && self.pending.is_none() {
            self.log.forget_before(next);
        }
    }

    /// There is nothing any more that the session could go back to. Returns its shared memory.
    pub fn give_up(&mut self, reason: String) -> Vec<u128> {
        self.base = Err(reason);
        self.suspicion.acquit();
        let pending = self.pending.take().map(|pending| pending.blocks);
        self.log.forget_before(self.planned);
        self.blocks.extend(pending.into_iter().flatten());
        // Batches that are planned anew may need them.
        let is_past = self.planned >= self.redone;
        if is_past { std::mem::take(&mut self.blocks) } else { Vec::new() }
    }

    /// Keeps a block of the client's shared memory, which a worker has mapped, for the next snapshot.
    /// False if there is none to wait for.
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

    /// What workers keep of the session of this number: its base, and snapshots to come.
    pub fn retain(&self, session: u32) -> Message {
        // An unprotected session has none to keep, but may have one again.
        let snapshot = self.base.as_ref().map_or(0, |base| base.number);
        Message::Retain { session, snapshot: Some(snapshot), next: self.last + 1 }
    }

    /// The base, if the session can go back to it on the workers that are there.
    ///
    /// # Errors
    /// Why it cannot.
    pub fn base_on(&self, is_there: impl Fn(WorkerId) -> bool) -> Result<&Snapshot, String> {
        let base = self.base.as_ref().map_err(Clone::clone)?;
        if let Some(slot) = base.lost(is_there) {
            return Err(format!("the copy of what slot {slot} had was lost as well"));
        }
        Ok(base)
    }

    /// Goes back to the base: its state, for everything after it to be planned anew.
    ///
    /// # Errors
    /// As [`Lineage::base_on`].
    pub fn rewind(&mut self, is_there: impl Fn(WorkerId) -> bool) -> Result<State, String> {
        let base = self.base_on(is_there)?;
        let (state, planned) = ((*base.state).clone(), base.planned);
        if let Some(pending) = self.pending.take() {
            self.blocks.extend(pending.blocks);
        }
        (self.planned, self.begun, self.redone) = (planned, None, self.log.end());
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

    /// Takes a snapshot of which all is kept.
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
        assert!(due(&lineage, OFTEN), "a quarter of the bytes is used up");
        lineage.planned(0, None, 1);
        snapshot(&mut lineage, OFTEN);
        assert_eq!((lineage.log.len(), due(&lineage, OFTEN)), (0, false));
        lineage.is_thin = true;
        assert!(due(&lineage, OFTEN));
        lineage.try_at(second);
        assert!(!due(&lineage, OFTEN), "it was tried just now");
    }

    #[test]
    fn a_log_that_is_too_long_waits_for_a_snapshot_and_is_given_up_without() {
        let mut lineage = lineage();
        let number = lineage.log.add(vec![vec![0; 500].into()], 4500, 1, Vec::new());
        lineage.planned(number, None, 1);
        assert!(lineage.has_room(), "nothing is waited for");
        lineage.begin(0, Arc::default());
        assert!(!lineage.has_room());
        assert!(lineage.abandon("the disk is full"));
        assert_eq!(
            (lineage.log.len(), lineage.base.as_ref().err().unwrap().as_str()),
            (0, "the disk is full")
        );
        assert!(lineage.rewind(|_| true).is_err() && !lineage.hold(Duration::ZERO, 1));
        snapshot(&mut lineage, OFTEN);
        assert!(lineage.rewind(|_| true).is_ok(), "it is kept again");
    }
}
