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

    /// Returns the ready sessions of a session's priority; `None` if one has a higher one.
    fn equals(&self, session: K, ready: &[K]) -> Option<Vec<K>> {
        let own = self.priority(session);
        let is_highest = ready.iter().all(|other| self.priority(*other) <= own);
        let equals = ready.iter().copied().filter(|other| self.priority(*other) == own);
        is_highest.then(|| equals.collect())
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
        self.equals(session, ready).is_some_and(|equals| self.fair.reserves(session, &equals))
    }

    fn is_behind(&self, session: K, ready: &[K]) -> bool {
        self.equals(session, ready).is_some_and(|equals| self.fair.is_behind(session, &equals))
    }

    fn charge(&mut self, session: K, cost: u64) {
        self.fair.charge(session, cost);
    }
}
