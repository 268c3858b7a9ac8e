//! Credit: the weight that a session has in flight to each of its lanes, and the batches that it
//! belongs to.
//!
//! A batch is planned into parts for several lanes; the client gets its weight back when all of
//! them are done. Each lane has its own window, so a stalled lane holds up only its own session.

use std::collections::VecDeque;
use std::ops::Range;

use gt_ir::SlotId;
use rustc_hash::FxHashMap;

/// The credit of one session.
#[derive(Default)]
pub(crate) struct Flow {
    lanes: Vec<LaneCredit>,
    batches: FxHashMap<u64, BatchCredit>,
    next: u64,
    /// The lanes of the last batch.
    busy: Vec<SlotId>,
    /// Whether batches are sent although the window is full, because the client waits for an
    /// answer.
    ignores_window: bool,
    /// The weight that the client has sent and not got back.
    pub open: u64,
    /// Whether the client waits for credit, and so has sent every command that it has issued.
    pub awaits_credit: bool,
}

#[derive(Default)]
struct LaneCredit {
    /// The weight of the commands that the lane has not reported done.
    in_flight: u64,
    /// The batches that these commands belong to, oldest first, each with its remaining weight.
    owners: VecDeque<(u64, u64)>,
    /// [`Slots::hosts_version`](crate::planner::Slots::hosts_version) when the lane last received
    /// the slots' hosts.
    hosts_sent: Option<u64>,
}

struct BatchCredit {
    /// The weight returned to the client when all parts are done.
    weight: u64,
    /// The number of the client's batch in the session's lineage.
    of: Option<u64>,
    /// The number of lanes that have not completed their part.
    open: usize,
}

impl Flow {
    /// Notes that the client gets this weight back.
    pub fn return_credit(&mut self, weight: u64) {
        debug_assert!(weight <= self.open, "gives back {weight} of {}", self.open);
        self.open = self.open.saturating_sub(weight);
    }

    /// Has the client get back nothing of what it has sent.
    pub fn disown(&mut self) {
        self.batches.values_mut().for_each(|batch| batch.weight = 0);
        (self.open, self.awaits_credit) = (0, false);
    }

    /// Forgets what is in flight: the lanes start anew.
    pub fn restart(&mut self) {
        let Flow { open, awaits_credit, .. } = *self;
        *self = Flow { open, awaits_credit, ..Flow::default() };
    }

    fn lane(&mut self, slot: SlotId) -> &mut LaneCredit {
        let index = slot.0 as usize;
        if index >= self.lanes.len() {
            self.lanes.resize_with(index + 1, LaneCredit::default);
        }
        &mut self.lanes[index]
    }

    /// Returns whether the lanes of the last batch, and `home`, have room for another batch.
    pub fn has_room(&self, home: SlotId, window: u64) -> bool {
        if self.ignores_window {
            return true;
        }
        let has_room = |slot: &SlotId| {
            self.lanes.get(slot.0 as usize).is_none_or(|lane| lane.in_flight < window)
        };
        self.busy.iter().chain([&home]).all(has_room)
    }

    /// Lets queued batches pass a full window: workers then see the frees among them, and skip
    /// unwanted work.
    pub fn ignore_window(&mut self) {
        self.ignores_window = true;
    }

    /// Enforces the window again, once the queue is empty.
    pub fn enforce_window(&mut self) {
        self.ignores_window = false;
    }

    /// Registers a batch with parts of these weights, `of` a client's batch. Returns the weight
    /// that the client gets back at once: all of it if there are no parts.
    pub fn send(
        &mut self,
        weight: u64,
        of: Option<u64>,
        parts: impl Iterator<Item = (SlotId, u64)>,
    ) -> u64 {
        let batch = self.next;
        self.next += 1;
        self.busy.clear();
        for (slot, weight) in parts {
            let lane = self.lane(slot);
            lane.in_flight += weight;
            lane.owners.push_back((batch, weight));
            self.busy.push(slot);
        }
        if self.busy.is_empty() {
            return weight;
        }
        self.batches.insert(batch, BatchCredit { weight, of, open: self.busy.len() });
        0
    }

    /// Registers weight that a lane has completed. Returns the weight that the client gets back.
    pub fn done(&mut self, slot: SlotId, mut weight: u64) -> u64 {
        let lane = self.lane(slot);
        lane.in_flight = lane.in_flight.saturating_sub(weight);
        let mut finished = 0;
        while weight > 0 {
            let Some((batch, open)) = self.lanes[slot.0 as usize].owners.front_mut() else { break };
            let part = weight.min(*open);
            *open -= part;
            weight -= part;
            if *open == 0 {
                let batch = *batch;
                self.lanes[slot.0 as usize].owners.pop_front();
                finished += self.finish(batch);
            }
        }
        finished
    }

    /// Drops everything in flight to a lost lane. Returns the weight that the client gets back.
    pub fn lose(&mut self, slot: SlotId) -> u64 {
        let lane = std::mem::take(self.lane(slot));
        lane.owners.into_iter().map(|(batch, _)| self.finish(batch)).sum()
    }

    fn finish(&mut self, number: u64) -> u64 {
        let Some(batch) = self.batches.get_mut(&number) else { return 0 };
        batch.open -= 1;
        if batch.open > 0 {
            return 0;
        }
        self.batches.remove(&number).map_or(0, |batch| batch.weight)
    }

    /// Returns whether a lane must receive the slots' hosts of this version; marks them as sent.
    pub fn needs_slot_hosts(&mut self, slot: SlotId, hosts_version: u64) -> bool {
        self.lane(slot).hosts_sent.replace(hosts_version) != Some(hosts_version)
    }

    /// Returns whether any lane of the last batch has commands in flight.
    pub fn is_busy(&self) -> bool {
        let at_work =
            |slot: &SlotId| self.lanes.get(slot.0 as usize).is_some_and(|lane| lane.in_flight > 0);
        self.busy.iter().any(at_work)
    }

    /// Returns whether no lane has commands in flight.
    pub fn is_idle(&self) -> bool {
        self.lanes.iter().all(|lane| lane.in_flight == 0)
    }

    /// Returns whether every lane has completed what was sent before this batch of the client's.
    pub fn is_past(&self, batch: u64) -> bool {
        let number = |owner: &(u64, u64)| self.batches.get(&owner.0).and_then(|it| it.of);
        let mut oldest = self.lanes.iter().filter_map(|lane| lane.owners.front());
        oldest.all(|owner| number(owner).is_some_and(|of| of >= batch))
    }

    /// Returns the range of the client's batches that have commands in flight to these lanes.
    pub fn batches(&self, slots: &[SlotId]) -> Option<Range<u64>> {
        let lanes = slots.iter().filter_map(|slot| self.lanes.get(slot.0 as usize));
        let owners = lanes.flat_map(|lane| &lane.owners).filter(|(_, weight)| *weight > 0);
        let numbers = owners.filter_map(|(batch, _)| self.batches.get(batch)?.of);
        numbers.fold(None, |range: Option<Range<u64>>, number| {
            let Range { start, end } = range.unwrap_or(number..number);
            Some(start.min(number)..end.max(number + 1))
        })
    }

    /// Returns the weight in flight to a lane, and the number of batches that it belongs to.
    pub fn in_flight(&self, slot: SlotId) -> (u64, u64) {
        let lane = self.lanes.get(slot.0 as usize);
        lane.map_or((0, 0), |lane| (lane.in_flight, lane.owners.len() as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_done_when_all_its_lanes_are_done() {
        let mut flow = Flow::default();
        let (one, two) = (SlotId(0), SlotId(1));
        assert_eq!(flow.send(10, None, [(one, 4), (two, 6)].into_iter()), 0);
        assert_eq!(flow.send(3, None, [(one, 3)].into_iter()), 0);
        assert_eq!(flow.done(one, 5), 0);
        assert_eq!(flow.done(two, 6), 10);
        assert_eq!(flow.in_flight(one), (2, 1));
        assert_eq!(flow.done(one, 2), 3);
        assert!(!flow.is_busy());
        // A batch without parts returns its weight at once.
        assert_eq!(flow.send(7, None, [].into_iter()), 7);
    }

    #[test]
    fn a_full_lane_has_no_room_and_a_lost_lane_returns_credit() {
        let mut flow = Flow::default();
        let (one, two) = (SlotId(0), SlotId(1));
        flow.send(8, None, [(two, 8)].into_iter());
        assert!(!flow.has_room(one, 8));
        assert!(flow.has_room(one, 9));
        assert_eq!(flow.lose(two), 8);
        assert!(flow.has_room(one, 8));
    }

    #[test]
    fn slot_hosts_are_sent_to_a_lane_once() {
        let mut flow = Flow::default();
        assert!(flow.needs_slot_hosts(SlotId(3), 1));
        assert!(!flow.needs_slot_hosts(SlotId(3), 1));
        assert!(flow.needs_slot_hosts(SlotId(3), 2));
    }
    #[test]
    fn batches_in_flight_are_reported_as_a_range() {
        let mut flow = Flow::default();
        let (one, two) = (SlotId(0), SlotId(1));
        flow.send(4, Some(7), [(one, 2), (two, 2)].into_iter());
        flow.send(1, Some(9), [(one, 1)].into_iter());
        flow.send(0, None, [(two, 1)].into_iter());
        assert_eq!(flow.batches(&[one]), Some(7..10));
        assert_eq!(flow.batches(&[two]), Some(7..8));
        flow.done(one, 2);
        flow.done(two, 2);
        assert_eq!((flow.batches(&[one]), flow.batches(&[two])), (Some(9..10), None));
        assert!(!flow.is_idle());
        flow.done(one, 1);
        flow.done(two, 1);
        assert!(flow.is_idle());
    }
}
