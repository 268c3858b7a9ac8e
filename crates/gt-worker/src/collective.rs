//! Collectives: exchanges that the members' engines carry out as one collective call.
//!
//! A collective call blocks until all members enter it, and cannot be interrupted. So a lane that
//! reaches a collective prepares its blocks and sends the dispatcher `CollectiveReady`; once all members are
//! ready, each receives `StartCollective`. A worker starts its collectives in the order of their sequence
//! numbers, which is the same on all workers. If a member fails or is lost before that, the
//! exchange fails on all members, and no engine is called.
//!
//! If a member is lost during the call, the engines fail, at the latest by their timeout. The next
//! exchange then needs a new group: members report how often theirs has failed (the *epoch*), and
//! all use the highest.

use std::collections::BTreeMap;
use std::sync::Arc;

use gt_ir::fabric::CollectiveCall;
use gt_ir::message::Failure;
use gt_ir::{EngineCollective, Exchange, Incarnation, LaneId, TransferId, WorkerId};
use rustc_hash::FxHashMap;

/// The collectives of a worker.
pub(crate) struct Collectives<T> {
    /// Those for which a lane has sent `CollectiveReady`.
    pub announced: FxHashMap<(LaneId, TransferId), CollectiveMember<T>>,
    /// Those that are ready to start, by sequence number, with their epochs.
    pub due: BTreeMap<u64, (LaneId, CollectiveMember<T>, u64)>,
    /// The number of failures of each group, if any.
    pub epochs: FxHashMap<Vec<WorkerId>, u64>,
}

/// A slot's part of a collective.
pub(crate) struct CollectiveMember<T> {
    pub exchange: Box<Exchange>,
    pub engine_collective: Arc<EngineCollective>,
    /// This slot's rank.
    pub rank: usize,
    pub blocks: Option<CollectiveBlocks<T>>,
}

/// A slot's own blocks in a collective.
pub(crate) struct CollectiveBlocks<T> {
    pub call: CollectiveCall,
    /// See [`CollectivePart::gives`].
    pub gives: Vec<(usize, T)>,
    /// The parts of the output, in the order of the receives; `None` if from another member.
    pub parts: Vec<Option<T>>,
}

impl<T> Default for Collectives<T> {
    fn default() -> Self {
        let (announced, epochs) = (FxHashMap::default(), FxHashMap::default());
        Collectives { announced, due: BTreeMap::new(), epochs }
    }
}

impl<T> Collectives<T> {
    /// Returns the next collective to start, see [`crate::work::Work::due`].
    pub fn due(&self) -> Option<&EngineCollective> {
        self.due.first_key_value().map(|(_, (_, part, _))| &*part.engine_collective)
    }

    /// Removes and returns the next collective.
    pub fn take_due(&mut self) -> Option<(LaneId, CollectiveMember<T>, u64)> {
        self.due.pop_first().map(|(_, due)| due)
    }

    /// Marks an exchange as ready to start. If it was cancelled, returns it with the failure.
    pub fn resolve(
        &mut self,
        lane: LaneId,
        transfer: TransferId,
        sequence: u64,
        result: Result<u64, Failure>,
    ) -> Option<(CollectiveMember<T>, Failure)> {
        let part = self.announced.remove(&(lane, transfer))?;
        match result {
            Ok(epoch) => {
                self.due.insert(sequence, (lane, part, epoch));
                None
            }
            Err(failure) => Some((part, failure)),
        }
    }

    /// Returns whether a lane waits for the other members of a collective.
    pub fn has(&self, lane: LaneId) -> bool {
        self.announced.keys().any(|(of, _)| *of == lane)
    }

    /// Returns the number of collectives that are announced or ready to start.
    pub fn len(&self) -> usize {
        self.announced.len() + self.due.len()
    }

    /// Drops a session's collectives, except those that are ready to start: other members will
    /// enter these.
    pub fn end_session(&mut self, incarnation: Incarnation) {
        self.announced.retain(|(lane, _), _| lane.incarnation != incarnation);
    }

    /// Forgets the groups of a lost worker.
    pub fn lose(&mut self, worker: WorkerId) {
        self.epochs.retain(|members, _| !members.contains(&worker));
    }

    pub fn epoch(&self, engine_collective: &EngineCollective) -> u64 {
        self.epochs.get(&workers(engine_collective)).copied().unwrap_or_default()
    }
}

pub(crate) fn workers(engine_collective: &EngineCollective) -> Vec<WorkerId> {
    engine_collective.members.iter().map(|member| member.worker).collect()
}
