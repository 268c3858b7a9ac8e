//! The run queue: the lanes that may have work, and which of them is next.

use std::collections::VecDeque;
use std::time::Duration;

use gt_ir::entitlement::{Entitlement, PolicyKind};
use gt_ir::{Incarnation, LaneId};
use gt_policy::{Policy, SLICE, ThinkTimes, policy};
use rustc_hash::FxHashMap;

/// The longest turn that is recorded, in nanoseconds: a session with long turns waits for others'
/// calls for a part of it.
const LONGEST_TURN: u64 = 100_000_000;

/// The run queue: a policy chooses among the sessions with ready lanes; the lanes of one session
/// alternate.
pub(super) struct RunQueue {
    policy: Box<dyn Policy<Incarnation>>,
    /// All sessions that may have lanes here.
    known: FxHashMap<Incarnation, Entitlement>,
    /// The sessions that are ready, in no order, each with its lanes.
    sessions: Vec<Incarnation>,
    lanes: Vec<VecDeque<LaneId>>,
    /// The lanes that wait for a compiler: they are tried again after another lane's turn.
    aside: Vec<LaneId>,
    count: usize,
    /// The nanoseconds of each session's longest recent turn, or call in several turns.
    turns: FxHashMap<Incarnation, u64>,
    pub think_times: ThinkTimes<Incarnation>,
}

impl Default for RunQueue {
    fn default() -> RunQueue {
        RunQueue {
            policy: policy(PolicyKind::default(), SLICE),
            known: FxHashMap::default(),
            sessions: Vec::new(),
            lanes: Vec::new(),
            aside: Vec::new(),
            count: 0,
            turns: FxHashMap::default(),
            think_times: ThinkTimes::default(),
        }
    }
}

impl RunQueue {
    /// Sets the scheduling policy. Usage so far is forgotten.
    pub fn divide(&mut self, policy_kind: PolicyKind) {
        self.policy = policy(policy_kind, SLICE);
        let mut known: Vec<_> = self.known.iter().collect();
        known.sort_unstable_by_key(|(incarnation, _)| **incarnation);
        for (incarnation, entitlement) in known {
            self.policy.admit(*incarnation, entitlement);
        }
        for incarnation in &self.sessions {
            self.policy.wake(*incarnation);
        }
    }

    /// Sets a session's entitlement.
    pub fn admit(&mut self, incarnation: Incarnation, entitlement: &Entitlement) {
        self.policy.admit(incarnation, entitlement);
        self.known.insert(incarnation, entitlement.clone());
    }

    /// Removes a session.
    pub fn retire(&mut self, incarnation: Incarnation) {
        if let Some(place) = self.sessions.iter().position(|other| *other == incarnation) {
            self.sessions.swap_remove(place);
            self.count -= self.lanes.swap_remove(place).len();
        }
        self.aside.retain(|lane| lane.incarnation != incarnation);
        self.known.remove(&incarnation);
        self.turns.remove(&incarnation);
        self.think_times.retire(incarnation);
        self.policy.retire(incarnation);
    }

    /// Removes all sessions.
    pub fn forget(&mut self) {
        let mut known: Vec<Incarnation> = self.known.keys().copied().collect();
        known.sort_unstable();
        known.into_iter().for_each(|incarnation| self.retire(incarnation));
    }

    /// Returns a session's share of the device, by the weights.
    pub fn share(&self, incarnation: Incarnation) -> f64 {
        let mut known: Vec<_> = self.known.iter().collect();
        known.sort_unstable_by_key(|(incarnation, _)| **incarnation);
        let all = known.into_iter().map(|(_, entitlement)| entitlement);
        self.known.get(&incarnation).map_or(0.0, |entitlement| entitlement.share(all))
    }

    /// Whether a session's client has lost its connection.
    pub fn is_away(&self, incarnation: Incarnation) -> bool {
        self.known.get(&incarnation).is_some_and(|entitlement| entitlement.is_away)
    }

    /// Returns whether several sessions have lanes here, so that one may have to wait.
    pub fn is_shared(&self) -> bool {
        self.known.len() > 1
    }

    /// Returns the number of lanes that may have work.
    pub fn len(&self) -> usize {
        self.count + self.aside.len()
    }

    /// Whether a session has lanes that are ready.
    pub fn has(&self, incarnation: Incarnation) -> bool {
        self.sessions.contains(&incarnation)
    }

    /// Returns whether the device is reserved for a session that is not ready, although others are.
    pub fn reserves(&self, incarnation: Incarnation) -> bool {
        self.count > 0
            && !self.has(incarnation)
            && self.policy.reserves(incarnation, &self.sessions)
    }

    /// Returns whether a lane is ready that does not wait for a compiler.
    pub fn has_next(&self) -> bool {
        self.count > 0
    }

    /// Makes a lane ready.
    pub fn wake(&mut self, lane: LaneId) {
        if !self.known.contains_key(&lane.incarnation) {
            self.admit(lane.incarnation, &Entitlement::default());
        }
        if !self.sessions.contains(&lane.incarnation) {
            self.policy.wake(lane.incarnation);
        }
        self.aside.retain(|other| *other != lane);
        self.again(lane);
    }

    /// Requeues a lane after its turn, as it has work left.
    pub fn again(&mut self, lane: LaneId) {
        let place = self.sessions.iter().position(|other| *other == lane.incarnation);
        let lanes = match place {
            Some(place) => &mut self.lanes[place],
            None => {
                self.sessions.push(lane.incarnation);
                self.lanes.push(VecDeque::new());
                self.lanes.last_mut().expect("it was pushed")
            }
        };
        if !lanes.contains(&lane) {
            lanes.push_back(lane);
            self.count += 1;
        }
    }

    /// Sets aside a lane whose turn has ended because it waits for a compiler.
    pub fn set_aside(&mut self, lane: LaneId) {
        self.aside.push(lane);
    }

    /// Makes the lanes that were set aside ready.
    pub fn take_back(&mut self) {
        while let Some(lane) = self.aside.pop() {
            self.again(lane);
        }
    }

    /// Removes and returns the next lane.
    pub fn next(&mut self) -> Option<LaneId> {
        if self.count == 0 {
            self.take_back();
        }
        let place = match self.sessions.len() {
            0 => return None,
            1 if !self.is_shared() => 0,
            _ => self.policy.next(&self.sessions)?,
        };
        let lane = self.lanes[place].pop_front()?;
        self.count -= 1;
        if self.lanes[place].is_empty() {
            self.sessions.swap_remove(place);
            self.lanes.swap_remove(place);
        }
        Some(lane)
    }

    /// Boosts a session that other workers wait for.
    pub fn boost(&mut self, incarnation: Incarnation) {
        if self.is_shared() {
            self.policy.boost(incarnation);
        }
    }

    /// Records the nanoseconds of a session's turn, and of the call that it is a part of, if it is
    /// one in several turns.
    pub fn charge_turn(&mut self, incarnation: Incarnation, cost: u64, call: Option<Duration>) {
        // The session may have ended since.
        if !self.known.contains_key(&incarnation) {
            return;
        }
        let longest = self.turns.entry(incarnation).or_default();
        let length = call.map_or(cost, |call| cost.max(call.as_nanos() as u64)).min(LONGEST_TURN);
        *longest = length.max(*longest - *longest / 16);
        self.think_times.charge(incarnation, cost);
        self.charge(incarnation, cost);
    }

    /// Returns a session's longest recent turn, or call in several turns.
    pub fn turn(&self, incarnation: Incarnation) -> Duration {
        Duration::from_nanos(self.turns.get(&incarnation).copied().unwrap_or(0))
    }

    /// Returns the longest recent turn of the ready sessions.
    pub fn longest_turn(&self) -> Duration {
        let turns = self.sessions.iter().map(|incarnation| self.turn(*incarnation));
        turns.max().unwrap_or_default()
    }

    /// Returns the shortest of the longest recent turns of the ready sessions.
    pub fn shortest_turn(&self) -> Duration {
        let turns = self.sessions.iter().map(|incarnation| self.turn(*incarnation));
        turns.min().unwrap_or_default()
    }

    /// Returns a session that is worth waiting for, and until when, if what would be begun instead
    /// takes at least `least` ([`ThinkTimes::awaited`]).
    pub fn awaited(&mut self, now: Duration, least: Duration) -> Option<(Incarnation, Duration)> {
        let next = self.sessions[self.policy.peek(&self.sessions)?];
        let length = self.turn(next);
        if length < least {
            return None;
        }
        let length = length.as_nanos() as u64;
        let RunQueue { policy, sessions, think_times, .. } = self;
        let behind = |session| policy.is_behind(session, sessions);
        let (session, until) = think_times.awaited(now.as_nanos() as u64, length, behind)?;
        Some((session, Duration::from_nanos(until)))
    }

    /// Charges a session for nanoseconds of device time.
    pub fn charge(&mut self, incarnation: Incarnation, cost: u64) {
        self.policy.charge(incarnation, cost);
    }
}

#[cfg(test)]
mod tests {
    use gt_ir::SlotId;

    use super::*;

    fn lane(session: u32, slot: u32) -> LaneId {
        LaneId { incarnation: Incarnation(session), slot: SlotId(slot) }
    }

    #[test]
    fn lanes_of_a_session_take_turns_and_count_as_one() {
        let mut ready = RunQueue::default();
        let all = [lane(1, 0), lane(1, 1), lane(2, 0)];
        all.iter().chain(&all).for_each(|lane| ready.wake(*lane));
        assert_eq!(ready.len(), 3);
        let mut turns = Vec::new();
        for _ in 0..8 {
            let next = ready.next().unwrap();
            ready.charge(next.incarnation, 2 * gt_policy::SLICE);
            turns.push(next);
            ready.again(next);
        }
        let count = |of: LaneId| turns.iter().filter(|turn| **turn == of).count();
        assert_eq!(all.map(count), [2, 2, 4]);
        ready.retire(Incarnation(1));
        assert_eq!((ready.next(), ready.next()), (Some(lane(2, 0)), None));
    }

    #[test]
    fn a_lane_set_aside_comes_after_a_turn_of_another() {
        let mut ready = RunQueue::default();
        ready.wake(lane(1, 0));
        assert_eq!(ready.next(), Some(lane(1, 0)));
        ready.set_aside(lane(1, 0));
        ready.wake(lane(2, 0));
        assert_eq!((ready.len(), ready.has_next()), (2, true));
        assert_eq!(ready.next(), Some(lane(2, 0)));
        // A lane that is alone is polled.
        assert_eq!(ready.next(), Some(lane(1, 0)));
        ready.set_aside(lane(1, 0));
        ready.take_back();
        ready.set_aside(lane(1, 1));
        ready.retire(Incarnation(1));
        assert_eq!((ready.len(), ready.next()), (0, None));
    }
}
