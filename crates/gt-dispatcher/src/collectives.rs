//! The total order of collectives over all sessions.
//!
//! A collective call of an engine blocks until all members enter it, and cannot be interrupted. So
//! no member enters before all are ready: workers report when a lane is ready (`CollectiveReady`), and once
//! all members are, each receives `StartCollective` with the next sequence number. Every worker runs its
//! collectives in that order, so a member blocked in a call waits only for workers that reach the
//! same call next, and no cycle of waits can form. A collective that is not ready has no place in
//! the order, and so delays no other session.

use std::collections::BTreeMap;

use gt_ir::message::{Failure, ServerToWorker};
use gt_ir::{Incarnation, LaneId, SlotId, TransferId};

/// A member's report: ready, with its group's epoch, or failed.
type Readiness = Result<u64, Failure>;

/// Incarnation, transfer, and the group's first member: several groups may share one transfer.
type CollectiveKey = (Incarnation, TransferId, SlotId);

/// A collective that some members have not reported on.
struct PendingCollective {
    members: Vec<SlotId>,
    ready: BTreeMap<SlotId, u64>,
    /// Set if the collective is cancelled.
    failure: Option<Failure>,
}

/// The collectives of all sessions that have not started.
#[derive(Default)]
pub(crate) struct PendingCollectives {
    open: BTreeMap<CollectiveKey, PendingCollective>,
    /// Lost lanes: they will not report on transfers planned before this one.
    lost: BTreeMap<LaneId, (TransferId, Failure)>,
    sequence: u64,
}

impl PendingCollectives {
    /// Handles a lane's report that it is ready, or has failed. Returns the messages for members:
    /// `StartCollective` once all are ready, or the failure.
    pub fn ready(
        &mut self,
        lane: LaneId,
        transfer: TransferId,
        members: Vec<SlotId>,
        readiness: Readiness,
    ) -> Vec<(SlotId, ServerToWorker)> {
        let Some(first) = members.first() else { return Vec::new() };
        let key = (lane.incarnation, transfer, *first);
        let lost = &self.lost;
        let new = || {
            let gone = |slot: &SlotId| {
                let lost = lost.get(&LaneId { slot: *slot, ..lane });
                lost.filter(|(next, _)| transfer < *next).map(|(_, failure)| failure)
            };
            let ready = members.iter().filter(|slot| gone(slot).is_some()).map(|slot| (*slot, 0));
            let (ready, failure) = (ready.collect(), members.iter().find_map(gone).cloned());
            PendingCollective { members, ready, failure }
        };
        let open = self.open.entry(key).or_insert_with(new);
        if !open.members.contains(&lane.slot) || open.ready.contains_key(&lane.slot) {
            return Vec::new();
        }
        let epoch = readiness.as_ref().copied().unwrap_or_default();
        open.ready.insert(lane.slot, epoch);
        match (readiness, open.failure.clone()) {
            (_, Some(failure)) => {
                self.remove_if_complete(key);
                vec![self.member_message(key, lane.slot, Err(failure))]
            }
            (Err(failure), None) => self.fail(key, failure),
            (Ok(_), None) if open.ready.len() == open.members.len() => {
                let epoch = open.ready.values().copied().max().unwrap_or_default();
                let members = open.members.clone();
                self.open.remove(&key);
                self.sequence += 1;
                members.into_iter().map(|slot| self.member_message(key, slot, Ok(epoch))).collect()
            }
            // The first member to be ready: the others are notified that it waits for them.
            (Ok(_), None) if open.ready.len() == 1 => {
                let awaited = open.members.iter().filter(|slot| **slot != lane.slot);
                let message = |slot: &SlotId| {
                    let lane = LaneId { slot: *slot, ..lane };
                    (*slot, ServerToWorker::CollectiveWaits { lane })
                };
                awaited.map(message).collect()
            }
            (Ok(_), None) => Vec::new(),
        }
    }

    /// Handles the loss of a lane, which will not report on transfers planned before `next`.
    pub fn lose(
        &mut self,
        lane: LaneId,
        next: TransferId,
        failure: &Failure,
    ) -> Vec<(SlotId, ServerToWorker)> {
        // Reports of other members may still arrive.
        self.lost.insert(lane, (next, failure.clone()));
        let is_member = |(key, open): &(&CollectiveKey, &PendingCollective)| {
            key.0 == lane.incarnation && open.members.contains(&lane.slot)
        };
        let keys: Vec<_> = self.open.iter().filter(is_member).map(|(key, _)| *key).collect();
        let mut messages = Vec::new();
        for key in keys {
            if let Some(open) = self.open.get_mut(&key) {
                open.ready.insert(lane.slot, 0);
            }
            messages.extend(self.fail(key, failure.clone()));
        }
        messages.retain(|(slot, _)| *slot != lane.slot);
        messages
    }

    /// Cancels a collective: returns the failure for all members that have reported.
    fn fail(&mut self, key: CollectiveKey, failure: Failure) -> Vec<(SlotId, ServerToWorker)> {
        let Some(open) = self.open.get_mut(&key).filter(|open| open.failure.is_none()) else {
            return Vec::new();
        };
        open.failure = Some(failure.clone());
        let reported: Vec<SlotId> = open.ready.keys().copied().collect();
        self.remove_if_complete(key);
        reported
            .into_iter()
            .map(|slot| self.member_message(key, slot, Err(failure.clone())))
            .collect()
    }

    fn remove_if_complete(&mut self, key: CollectiveKey) {
        if self.open.get(&key).is_some_and(|open| open.ready.len() == open.members.len()) {
            self.open.remove(&key);
        }
    }

    fn member_message(
        &self,
        (incarnation, transfer, _): CollectiveKey,
        slot: SlotId,
        result: Readiness,
    ) -> (SlotId, ServerToWorker) {
        let (lane, sequence) = (LaneId { incarnation, slot }, self.sequence);
        (slot, ServerToWorker::StartCollective { lane, transfer, sequence, result })
    }

    /// Returns whether a lane is a member of an open collective, reported or not.
    pub fn involves_lane(&self, lane: LaneId) -> bool {
        let is_member = |(key, open): (&CollectiveKey, &PendingCollective)| {
            key.0 == lane.incarnation && open.members.contains(&lane.slot)
        };
        self.open.iter().any(is_member)
    }

    /// Returns the number of open collectives.
    pub fn len(&self) -> usize {
        self.open.len()
    }

    /// Drops the collectives of a session that has ended.
    pub fn end_session(&mut self, incarnation: Incarnation) {
        self.open.retain(|(owner, _, _), _| *owner != incarnation);
        self.lost.retain(|lane, _| lane.incarnation != incarnation);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use gt_ir::SourceId;

    fn lane(slot: u32) -> LaneId {
        LaneId { incarnation: Incarnation(7), slot: SlotId(slot) }
    }

    fn ready(
        collectives: &mut PendingCollectives,
        transfer: u64,
        slot: u32,
        readiness: Readiness,
    ) -> Vec<(u32, u64, Readiness)> {
        let members = vec![SlotId(0), SlotId(2)];
        let messages = collectives.ready(lane(slot), TransferId(transfer), members, readiness);
        let joins = messages.into_iter().filter_map(|(slot, message)| match message {
            ServerToWorker::StartCollective { sequence, result, .. } => {
                Some((slot.0, sequence, result))
            }
            ServerToWorker::CollectiveWaits { lane } if lane.slot == slot => None,
            other => panic!("{other:?}"),
        });
        joins.collect()
    }

    fn failure(reason: &str) -> Failure {
        Failure::new("all_reduce", reason, "w", SourceId(0))
    }

    #[test]
    fn collectives_start_in_the_order_in_which_they_are_ready() {
        let mut collectives = PendingCollectives::default();
        assert_eq!(ready(&mut collectives, 1, 0, Ok(0)), []);
        assert_eq!(ready(&mut collectives, 2, 0, Ok(0)), []);
        assert_eq!(ready(&mut collectives, 2, 2, Ok(3)), [(0, 1, Ok(3)), (2, 1, Ok(3))]);
        // A report of a lane that is no member is ignored.
        assert_eq!(ready(&mut collectives, 1, 1, Ok(9)), []);
        assert_eq!(ready(&mut collectives, 1, 2, Ok(0)), [(0, 2, Ok(0)), (2, 2, Ok(0))]);
    }

    #[test]
    fn the_first_ready_member_notifies_the_others() {
        let mut collectives = PendingCollectives::default();
        let members = || vec![SlotId(0), SlotId(1), SlotId(2)];
        let messages = collectives.ready(lane(1), TransferId(1), members(), Ok(0));
        let awaited = |slot| (SlotId(slot), ServerToWorker::CollectiveWaits { lane: lane(slot) });
        assert_eq!(messages, [awaited(0), awaited(2)]);
        assert_eq!(collectives.ready(lane(0), TransferId(1), members(), Ok(0)), []);
    }

    #[test]
    fn one_failure_reaches_all_members() {
        let mut collectives = PendingCollectives::default();
        ready(&mut collectives, 1, 0, Ok(0));
        let messages = collectives.lose(lane(2), TransferId(2), &failure("lost"));
        assert_eq!(messages.iter().map(|(slot, _)| slot.0).collect::<Vec<_>>(), [0]);
        // A loss before the first report fails the members that report later.
        let mut late = PendingCollectives::default();
        assert_eq!(late.lose(lane(2), TransferId(2), &failure("lost")), []);
        assert_eq!(ready(&mut late, 1, 0, Ok(0)), [(0, 0, Err(failure("lost")))]);
        assert!(late.open.is_empty());
        // A transfer planned after the loss involves the lane that replaced the lost one.
        assert_eq!(ready(&mut late, 2, 0, Ok(0)), []);
        assert_eq!(ready(&mut late, 2, 2, Ok(0)).len(), 2);
        // A member that reports after the failure receives it at once.
        let readiness = Err(failure("no input"));
        assert_eq!(ready(&mut collectives, 2, 2, readiness.clone()), [(2, 0, readiness.clone())]);
        assert_eq!(ready(&mut collectives, 2, 0, Ok(0)), [(0, 0, readiness)]);
        assert!(collectives.open.is_empty());
        ready(&mut collectives, 3, 0, Ok(0));
        assert!(
            collectives.involves_lane(lane(0))
                && collectives.involves_lane(lane(2))
                && !collectives.involves_lane(lane(1))
        );
        collectives.end_session(Incarnation(7));
        assert!(collectives.open.is_empty());
    }
}
