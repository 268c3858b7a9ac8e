//! What a lane has used and holds, as reported to the dispatcher.

use gt_ir::entitlement::Usage;
use gt_ir::message::WorkerToServer;

use super::Lane;
use crate::work::Out;

impl<T> Lane<T> {
    pub fn tell_usage(&mut self, out: &mut Vec<Out>) {
        let usage = self.usage(0);
        out.push(Out::Server(WorkerToServer::LaneDone { lane: self.id, weight: 0, usage }));
    }

    /// Returns what it has used and holds, with `more` nanoseconds of device time, for the
    /// dispatcher.
    pub fn usage(&mut self, more: u64) -> Usage {
        let device = std::mem::take(&mut self.untold) + more;
        self.reported = self.holds();
        let anticipation = std::mem::take(&mut self.anticipation);
        Usage { device, bytes: self.reported.0, spilled: self.reported.1, anticipation }
    }

    /// Returns whether its holdings differ from the last report to the dispatcher.
    pub fn holds_otherwise(&self) -> bool {
        self.reported != self.holds()
    }

    /// Returns the bytes that it holds in memory, its tensors' records included, and elsewhere.
    fn holds(&self) -> (u64, u64) {
        let records = if self.memory.quota.is_some() { self.records() } else { 0 };
        (self.store.bytes() + records, self.store.spilled())
    }
}
