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

impl<K: SessionKey> Priority<K> {
    fn priority(&self, session: K) -> u32 {
        self.priorities.get(&session).copied().unwrap_or(0)
    }

    /// Returns the sessions with the highest priority: their indices, and themselves.
    fn highest(&self, ready: &[K]) -> (Vec<usize>, Vec<K>) {
        let highest = ready.iter().map(|session| self.priority(*session)).max();
        let has_highest = |session: K| Some(self.priority(session)) == highest;
        let found = ready.iter().copied().enumerate().filter(|(_, session)| has_highest(*session));
        found.unzip()
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

    fn peek(&self, ready: &[K]) -> Option<usize> {
        let (first, sessions) = self.highest(ready);
        self.fair.peek(&sessions).map(|index| first[index])
    }

    fn next(&mut self, ready: &[K]) -> Option<usize> {
        let (first, sessions) = self.highest(ready);
        self.fair.next(&sessions).map(|index| first[index])
    }

    fn reserves(&self, session: K, ready: &[K]) -> bool {
        let own = self.priority(session);
        let is_equal = |other: &K| self.priority(*other) == own;
        let equals: Vec<K> = ready.iter().copied().filter(is_equal).collect();
        ready.iter().all(|other| self.priority(*other) <= own)
            && self.fair.reserves(session, &equals)
    }

    fn charge(&mut self, session: K, cost: u64) {
        self.fair.charge(session, cost);
    }
}
