//! The run queue: the lanes that may have work, and which of them is next.

use std::collections::VecDeque;
use std::time::Duration;

use gt_ir::LaneId;
use gt_ir::entitlement::{Entitlement, PolicyKind};
use gt_policy::{Policy, policy};
use rustc_hash::FxHashMap;

/// The run queue: a policy chooses among the sessions with ready lanes; the lanes of one session
/// alternate.
pub(crate) struct RunQueue {
    policy: Box<dyn Policy>,
    /// All sessions that may have lanes here.
    known: FxHashMap<u32, Entitlement>,
    /// The sessions that are ready, in no order, each with its lanes.
    sessions: Vec<u32>,
    lanes: Vec<VecDeque<LaneId>>,
    /// The lanes that wait for a compiler: they are tried again after another lane's turn.
    aside: Vec<LaneId>,
    count: usize,
    /// The nanoseconds of each session's longest recent turn.
    turns: FxHashMap<u32, u64>,
}

impl Default for RunQueue {
    fn default() -> RunQueue {
        RunQueue {
            policy: policy(PolicyKind::default()),
            known: FxHashMap::default(),
            sessions: Vec::new(),
            lanes: Vec::new(),
            aside: Vec::new(),
            count: 0,
            turns: FxHashMap::default(),
        }
    }
}

impl RunQueue {
    /// Sets the scheduling policy. Usage so far is forgotten.
    pub fn divide(&mut self, policy_kind: PolicyKind) {
        self.policy = policy(policy_kind);
        let mut known: Vec<_> = self.known.iter().collect();
        known.sort_unstable_by_key(|(session, _)| **session);
        for (session, entitlement) in known {
            self.policy.admit(*session, entitlement);
        }
        for session in &self.sessions {
            self.policy.wake(*session);
        }
    }

    /// Sets a session's entitlement.
    pub fn admit(&mut self, session: u32, entitlement: &Entitlement) {
        self.policy.admit(session, entitlement);
        self.known.insert(session, entitlement.clone());
    }

    /// Removes a session.
    pub fn retire(&mut self, session: u32) {
        if let Some(place) = self.sessions.iter().position(|other| *other == session) {
            self.sessions.swap_remove(place);
            self.count -= self.lanes.swap_remove(place).len();
        }
        self.aside.retain(|lane| lane.session != session);
        self.known.remove(&session);
        self.turns.remove(&session);
        self.policy.retire(session);
    }

    /// Removes all sessions.
    pub fn forget(&mut self) {
        let mut known: Vec<u32> = self.known.keys().copied().collect();
        known.sort_unstable();
        known.into_iter().for_each(|session| self.retire(session));
    }

    /// Returns a session's share of the device, by the weights.
    pub fn share(&self, session: u32) -> f64 {
        let mut known: Vec<_> = self.known.iter().collect();
        known.sort_unstable_by_key(|(session, _)| **session);
        let all = known.into_iter().map(|(_, entitlement)| entitlement);
        self.known.get(&session).map_or(0.0, |entitlement| entitlement.share(all))
    }

    /// Whether a session's client has lost its connection.
    pub fn is_away(&self, session: u32) -> bool {
        self.known.get(&session).is_some_and(|entitlement| entitlement.is_away)
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
    pub fn has(&self, session: u32) -> bool {
        self.sessions.contains(&session)
    }

    /// Returns whether the device is reserved for a session that is not ready, although others are.
    pub fn reserves(&self, session: u32) -> bool {
        self.count > 0 && !self.has(session) && self.policy.reserves(session, &self.sessions)
    }

    /// Returns whether a lane is ready that does not wait for a compiler.
    pub fn has_next(&self) -> bool {
        self.count > 0
    }

    /// Makes a lane ready.
    pub fn wake(&mut self, lane: LaneId) {
        if !self.known.contains_key(&lane.session) {
            self.admit(lane.session, &Entitlement::default());
        }
        if !self.sessions.contains(&lane.session) {
            self.policy.wake(lane.session);
        }
        self.aside.retain(|other| *other != lane);
        self.again(lane);
    }

    /// Requeues a lane after its turn, as it has work left.
    pub fn again(&mut self, lane: LaneId) {
        let place = self.sessions.iter().position(|other| *other == lane.session);
        let lanes = match place {
            Some(place) => &mut self.lanes[place],
            None => {
                self.sessions.push(lane.session);
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
    pub fn boost(&mut self, session: u32) {
        if self.is_shared() {
            self.policy.boost(session);
        }
    }

    /// Records the nanoseconds of a session's turn.
    pub fn charge_turn(&mut self, session: u32, cost: u64) {
        // The session may have ended since.
        if !self.known.contains_key(&session) {
            return;
        }
        let longest = self.turns.entry(session).or_default();
        *longest = cost.max(*longest - *longest / 16);
        self.charge(session, cost);
    }

    /// Returns the longest recent turn of the ready sessions.
    pub fn longest_turn(&self) -> Duration {
        let turns = self.sessions.iter().filter_map(|session| self.turns.get(session));
        Duration::from_nanos(turns.copied().max().unwrap_or(0))
    }

    /// Charges a session for nanoseconds of device time.
    pub fn charge(&mut self, session: u32, cost: u64) {
        self.policy.charge(session, cost);
    }
}

#[cfg(test)]
mod tests {
    use gt_ir::SlotId;

    use super::*;

    fn lane(session: u32, slot: u32) -> LaneId {
        LaneId { session, slot: SlotId(slot) }
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
            ready.charge(next.session, 2 * gt_policy::SLICE);
            turns.push(next);
            ready.again(next);
        }
        let count = |of: LaneId| turns.iter().filter(|turn| **turn == of).count();
        assert_eq!(all.map(count), [2, 2, 4]);
        ready.retire(1);
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
        ready.retire(1);
        assert_eq!((ready.len(), ready.next()), (0, None));
    }
}
