//! The lanes that may have something to do, and which of them is next.

use std::collections::VecDeque;

use gt_ir::LaneId;
use gt_ir::standing::Standing;
use gt_policy::Fair;
use rustc_hash::FxHashSet;

/// The run queue: sessions with ready lanes, of which a policy chooses; the lanes of one session
/// take turns.
#[derive(Default)]
pub(crate) struct Ready {
    policy: Fair,
    /// All sessions that may have lanes here.
    known: FxHashSet<u32>,
    /// The sessions that are ready, in no order, each with its lanes.
    sessions: Vec<u32>,
    lanes: Vec<VecDeque<LaneId>>,
    count: usize,
}

impl Ready {
    /// Sets a session's standing.
    pub fn admit(&mut self, session: u32, standing: &Standing) {
        self.policy.admit(session, standing);
        self.known.insert(session);
    }

    /// A session has ended.
    pub fn retire(&mut self, session: u32) {
        if let Some(place) = self.sessions.iter().position(|other| *other == session) {
            self.sessions.swap_remove(place);
            self.count -= self.lanes.swap_remove(place).len();
        }
        self.known.remove(&session);
        self.policy.retire(session);
    }

    /// Whether several sessions have lanes here, so that somebody may have to wait.
    pub fn is_shared(&self) -> bool {
        self.known.len() > 1
    }

    /// The number of ready lanes.
    pub fn len(&self) -> usize {
        self.count
    }

    /// Makes a lane ready.
    pub fn wake(&mut self, lane: LaneId) {
        if !self.known.contains(&lane.session) {
            self.admit(lane.session, &Standing::default());
        }
        if !self.sessions.contains(&lane.session) {
            self.policy.wake(lane.session);
        }
        self.again(lane);
    }

    /// A lane's turn is over, and it has something left to do.
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

    /// Takes out the lane that is next.
    pub fn next(&mut self) -> Option<LaneId> {
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

    /// A session has used the device for so many nanoseconds.
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
        let mut ready = Ready::default();
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
}
