//! What a session uses: device time, bytes, and waits for memory.

use std::collections::BTreeMap;
use std::time::Duration;

use gt_ir::SlotId;
use gt_ir::entitlement::{Anticipation, MemoryWait, Usage};

/// What one session has used and holds, and what its user was notified of.
#[derive(Default)]
pub(crate) struct SessionAccount {
    /// How many instructions it has received.
    pub instructions: u64,
    /// How many of those are parts of iterations of hot paths.
    pub hot_instructions: u64,
    /// The device time that it has used, in nanoseconds.
    pub device: u64,
    /// How devices were kept idle for it, which is a part of that.
    pub anticipation: Anticipation,
    /// The bytes that it holds in each slot, by number: in memory, and spilled.
    bytes: Vec<(u64, u64)>,
    /// The slots that wait for memory.
    pub shortages: BTreeMap<SlotId, SlotShortage>,
    /// When it last sent a command, or had one completed.
    pub active: Duration,
    /// The time limits that its client was warned of.
    pub warned: Vec<DeadlineWarning>,
    /// Whether its user was notified that there are workers beyond its slots.
    pub spare_reported: bool,
}

/// A slot's wait for memory.
pub(crate) struct SlotShortage {
    pub wait: MemoryWait,
    pub since: Duration,
    /// When the wait began, and whether it has lasted long.
    pub begun: Duration,
    pub is_long: bool,
    /// Whether the lane was notified that it has received all commands of its session.
    pub has_all: bool,
}

/// A limit on a session's time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum TimeLimit {
    /// The time since it began.
    Wall,
    /// The time since it was last active.
    Idle,
}

/// A warning that a session will end, and when it was sent.
#[derive(Clone, Copy)]
pub(crate) struct DeadlineWarning {
    pub limit: TimeLimit,
    pub at: Duration,
}

impl SessionAccount {
    /// Returns the account of a session that begins.
    pub fn new(now: Duration) -> SessionAccount {
        SessionAccount { active: now, ..SessionAccount::default() }
    }

    /// Notes that the session sends a command, or had one completed.
    pub fn note_activity(&mut self, now: Duration) {
        self.active = now;
        self.warned.retain(|warned| warned.limit != TimeLimit::Idle);
    }

    /// Records a worker's report of what the session uses in a slot.
    pub fn record_usage(&mut self, slot: SlotId, usage: Usage) {
        self.device = self.device.saturating_add(usage.device);
        self.anticipation += usage.anticipation;
        let slot = slot.0 as usize;
        if slot >= self.bytes.len() {
            self.bytes.resize(slot + 1, (0, 0));
        }
        self.bytes[slot] = (usage.bytes, usage.spilled);
    }

    /// Returns the bytes that it holds on all workers: in memory, and spilled.
    pub fn bytes(&self) -> (u64, u64) {
        let add = |all: (u64, u64), own: &(u64, u64)| (all.0 + own.0, all.1 + own.1);
        self.bytes.iter().fold((0, 0), add)
    }

    /// Returns the bytes that it holds in a slot, in memory or spilled.
    pub fn bytes_in(&self, slot: SlotId) -> u64 {
        self.bytes.get(slot.0 as usize).map_or(0, |(memory, elsewhere)| memory + elsewhere)
    }

    /// Forgets what it holds: its lanes start anew.
    pub fn forget_bytes(&mut self) {
        self.bytes.clear();
        self.shortages.clear();
    }

    /// Forgets what it holds in a slot whose worker is lost.
    pub fn lose_slot(&mut self, slot: SlotId) {
        self.record_usage(slot, Usage::default());
        self.shortages.remove(&slot);
    }

    /// Returns whether it has waited for memory for long. It may wait until its client sends more:
    /// its other lanes wait for the short one.
    pub fn is_stuck(&self) -> bool {
        self.shortages.values().any(|shortage| shortage.is_long)
    }
}
