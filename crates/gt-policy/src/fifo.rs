//! First come, first served.

use gt_ir::entitlement::Entitlement;
use rustc_hash::FxHashMap;

use crate::Policy;

/// Serves the session whose work arrived first until it has none left.
#[derive(Debug, Default)]
pub struct Fifo {
    /// The arrival number of each session's work.
    arrivals: FxHashMap<u32, u64>,
    count: u64,
}

impl Policy for Fifo {
    fn admit(&mut self, session: u32, _standing: &Entitlement) {
        self.arrivals.entry(session).or_insert(u64::MAX);
    }

    fn retire(&mut self, session: u32) {
        self.arrivals.remove(&session);
    }

    fn wake(&mut self, session: u32) {
        self.count += 1;
        self.arrivals.insert(session, self.count);
    }

    fn next(&mut self, ready: &[u32]) -> Option<usize> {
        let arrival = |session: &u32| self.arrivals.get(session).copied().unwrap_or(u64::MAX);
        (0..ready.len()).min_by_key(|index| (arrival(&ready[*index]), ready[*index]))
    }

    fn charge(&mut self, _session: u32, _cost: u64) {}
}
