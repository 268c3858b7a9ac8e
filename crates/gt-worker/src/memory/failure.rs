//! Failures for lack of memory.

use gt_ir::SourceId;
use gt_ir::entitlement::{Holding, Other};
use gt_ir::failure::OUT_OF_MEMORY;
use gt_ir::message::Failure;

/// A limit that a lane would exceed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct ExceededLimit {
    /// Whose quota it is, as `user ada`; empty for the worker's memory.
    pub holder: String,
    pub allowed: u64,
    /// The bytes held.
    pub held: u64,
    /// Of these, the bytes of tensors' records.
    pub records: u64,
    /// The bytes of the records of the command's results.
    pub more: u64,
}

/// Why a lane's next command does not fit in memory.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct NoRoom {
    exceeded: ExceededLimit,
    largest: Vec<Holding>,
    others: Vec<Other>,
}

impl NoRoom {
    pub fn new(exceeded: ExceededLimit, largest: Vec<Holding>, others: Vec<Other>) -> NoRoom {
        NoRoom { exceeded, largest, others }
    }

    /// Whether a holder's quota is exhausted.
    pub fn is_of(&self, holder: &str) -> bool {
        self.exceeded.holder == holder
    }

    /// Returns the same for a limit that is exceeded again.
    pub fn with(&self, exceeded: ExceededLimit) -> NoRoom {
        NoRoom { exceeded, ..self.clone() }
    }

    /// Returns the failure of an operation that needs `bytes` bytes.
    pub fn failure(&self, operation: String, need: u64, worker: &str, line: SourceId) -> Failure {
        let ExceededLimit { holder, allowed, held, records, more } = &self.exceeded;
        let (needs, allowed, held) = (bytes(need + more), bytes(*allowed), bytes(*held));
        let held = match holder.as_str() {
            "" => format!("{held} of the worker's {allowed} are held"),
            _ => format!("{holder} holds {held} of {allowed} on this worker"),
        };
        let mut reason = format!("{OUT_OF_MEMORY}: it needs {needs}, and {held}");
        if *records > 0 {
            let records = bytes(*records);
            reason
                .push_str(&format!(", {records} of it for the records of tensors, which are many"));
        }
        reason.push_str(match holder.as_str() {
            "" => "\n  hint: free tensors, spread the session over more workers, or start workers with --spill-dir",
            _ => "\n  hint: free tensors, spread the session over more workers, or ask the operator for more",
        });
        let (largest, others) = (self.largest.clone(), self.others.clone());
        Failure { largest, others, ..Failure::new(operation, reason, worker, line) }
    }
}

/// Returns a number of bytes with its unit.
pub(crate) fn bytes(count: u64) -> String {
    let units = ["KB", "MB", "GB", "TB"];
    let mut value = count as f64;
    if count < 1000 {
        return format!("{count} bytes");
    }
    let mut unit = 0;
    value /= 1000.0;
    while value >= 1000.0 && unit + 1 < units.len() {
        (value, unit) = (value / 1000.0, unit + 1);
    }
    format!("{value:.1} {}", units[unit])
}
