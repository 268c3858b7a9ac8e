//! The highest priority first.

use gt_ir::entitlement::Entitlement;
use rustc_hash::FxHashMap;

use crate::{Fair, Policy, SessionKey};

/// Serves only the sessions with the highest priority; sessions of equal priority get fair shares.
#[derive(Debug)]
pub struct Priority<K> {
    fair: Fair<K>,
    priorities: FxHashMap<K, u32>,
}

impl<K> Priority<K> {
    /// Returns a policy that serves sessions of equal priority by `fair` shares.
    pub fn new(fair: Fair<K>) -> Priority<K> {
        Priority { fair, priorities: FxHashMap::default() }
    }
}

impl<K: SessionKey> Policy<K> for Priority<K> {
    fn admit(&mut self, session: K, entitlement: &Entitlement) {
        self.priorities.insert(session, entitlement.priority);
        self.fair.admit(session, entitlement);
    }

    fn retire(&mut self, session: K) {
        self.priorities.remove(&session);
        self.fair.retire(session);
    }

    fn wake(&mut self, session: K) {
        self.fair.wake(session);
    }

    fn boost(&mut self, session: K) {
        self.fair.boost(session);
    }

    fn next(&mut self, ready: &[K]) -> Option<usize> {
        let priority = |session: &K| self.priorities.get(session).copied().unwrap_or(0);
        let highest = ready.iter().map(priority).max()?;
        let first: Vec<usize> =
            (0..ready.len()).filter(|index| priority(&ready[*index]) == highest).collect();
        let sessions: Vec<K> = first.iter().map(|index| ready[*index]).collect();
        self.fair.next(&sessions).map(|index| first[index])
    }

    fn reserves(&self, session: K, ready: &[K]) -> bool {
        let priority = |session: &K| self.priorities.get(session).copied().unwrap_or(0);
        let own = priority(&session);
        let equals: Vec<K> = ready.iter().copied().filter(|other| priority(other) == own).collect();
        ready.iter().all(|other| priority(other) <= own) && self.fair.reserves(session, &equals)
    }

    fn charge(&mut self, session: K, cost: u64) {
        self.fair.charge(session, cost);
    }
}
