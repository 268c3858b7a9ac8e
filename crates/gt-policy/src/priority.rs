//! The highest priority first.

use gt_ir::entitlement::Entitlement;
use rustc_hash::FxHashMap;

use crate::{Fair, Policy};

/// Serves only the sessions with the highest priority; sessions of equal priority get fair shares.
#[derive(Debug, Default)]
pub struct Priority {
    fair: Fair,
    priorities: FxHashMap<u32, u32>,
}

impl Policy for Priority {
    fn admit(&mut self, session: u32, entitlement: &Entitlement) {
        self.priorities.insert(session, entitlement.priority);
        self.fair.admit(session, entitlement);
    }

    fn retire(&mut self, session: u32) {
        self.priorities.remove(&session);
        self.fair.retire(session);
    }

    fn wake(&mut self, session: u32) {
        self.fair.wake(session);
    }

    fn boost(&mut self, session: u32) {
        self.fair.boost(session);
    }

    fn next(&mut self, ready: &[u32]) -> Option<usize> {
        let priority = |session: &u32| self.priorities.get(session).copied().unwrap_or(0);
        let highest = ready.iter().map(priority).max()?;
        let first: Vec<usize> =
            (0..ready.len()).filter(|index| priority(&ready[*index]) == highest).collect();
        let sessions: Vec<u32> = first.iter().map(|index| ready[*index]).collect();
        self.fair.next(&sessions).map(|index| first[index])
    }

    fn reserves(&self, session: u32, ready: &[u32]) -> bool {
        let priority = |session: &u32| self.priorities.get(session).copied().unwrap_or(0);
        let own = priority(&session);
        let equals: Vec<u32> =
            ready.iter().copied().filter(|other| priority(other) == own).collect();
        ready.iter().all(|other| priority(other) <= own) && self.fair.reserves(session, &equals)
    }

    fn charge(&mut self, session: u32, cost: u64) {
        self.fair.charge(session, cost);
    }
}
