//! First come, first served.

use gt_ir::entitlement::Entitlement;
use rustc_hash::FxHashMap;

use crate::{Policy, SessionKey};

/// Serves the session whose work arrived first until it has none left.
#[derive(Debug)]
pub struct Fifo<K> {
    /// The arrival number of each session's work.
    arrivals: FxHashMap<K, u64>,
    count: u64,
}

impl<K> Default for Fifo<K> {
    fn default() -> Fifo<K> {
        Fifo { arrivals: FxHashMap::default(), count: 0 }
    }
}

impl<K: SessionKey> Policy<K> for Fifo<K> {
    fn admit(&mut self, session: K, _standing: &Entitlement) {
        self.arrivals.entry(session).or_insert(u64::MAX);
    }

    fn retire(&mut self, session: K) {
        self.arrivals.remove(&session);
    }

    fn wake(&mut self, session: K) {
        self.count += 1;
        self.arrivals.insert(session, self.count);
    }

    fn peek(&self, ready: &[K]) -> Option<usize> {
        let arrival = |session: &K| self.arrivals.get(session).copied().unwrap_or(u64::MAX);
        (0..ready.len()).min_by_key(|index| (arrival(&ready[*index]), ready[*index]))
    }

    fn charge(&mut self, _session: K, _cost: u64) {}
}
