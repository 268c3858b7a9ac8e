//! Large values on their way to a client that may not read them.
//!
//! Beyond a limit, no more of the session's batches are planned until the client has received some
//! values, so a client that reads nothing holds bounded memory.

use gt_ir::RequestId;
use gt_ir::message::LARGE_VALUE;
use rustc_hash::FxHashMap;

/// The large values that a client has requested and not received.
pub(crate) struct UnreadValues {
    bytes: FxHashMap<RequestId, u64>,
    total: u64,
    limit: u64,
}

impl UnreadValues {
    /// Allows `limit` bytes on their way; with [`u64::MAX`] nothing is counted.
    pub fn new(limit: u64) -> UnreadValues {
        UnreadValues { bytes: FxHashMap::default(), total: 0, limit }
    }

    /// Counts a value that is sent, if it is large.
    pub fn add(&mut self, request: RequestId, bytes: u64) {
        if bytes >= LARGE_VALUE && self.limit < u64::MAX {
            self.total += bytes;
            self.total -= self.bytes.insert(request, bytes).unwrap_or(0);
        }
    }

    /// Removes a value that was received, or will not be sent.
    pub fn remove(&mut self, request: RequestId) {
        self.total -= self.bytes.remove(&request).unwrap_or(0);
    }

    /// Forgets all values, as their client is gone.
    pub fn clear(&mut self) {
        self.bytes.clear();
        self.total = 0;
    }

    /// Returns whether more values may be sent.
    pub fn has_room(&self) -> bool {
        self.total < self.limit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_values_count_until_they_are_received() {
        let mut unread = UnreadValues::new(4 * LARGE_VALUE);
        unread.add(RequestId(1), LARGE_VALUE - 1);
        (2..6).for_each(|request| unread.add(RequestId(request), LARGE_VALUE));
        assert!(!unread.has_room());
        unread.remove(RequestId(1));
        assert!(!unread.has_room(), "a small one was not counted");
        unread.remove(RequestId(3));
        unread.remove(RequestId(3));
        assert!(unread.has_room());
        assert_eq!(unread.total, 3 * LARGE_VALUE);
    }
}
