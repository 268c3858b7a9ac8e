//! Failures for lack of memory.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use gt_ir::entitlement::{Holding, Other};
use gt_ir::message::Failure;
use gt_ir::{Incarnation, LaneId, SourceId};

use crate::engine::Engine;
use crate::lane::Lane;
use crate::memory::limits::Passed;
use crate::worker::Worker;

/// The number of tensors, and of other sessions, that a failure names.
const NAMED: usize = 5;

/// Why a lane's next command does not fit in memory.
#[derive(Clone, PartialEq, Debug)]
pub(crate) struct NoRoom {
    passed: Passed,
    largest: Vec<Holding>,
    others: Vec<Other>,
}

impl NoRoom {
    /// Whether a holder's quota is exhausted.
    pub fn is_of(&self, holder: &str) -> bool {
        self.passed.holder == holder
    }

    /// Returns the same for a limit that is exceeded again.
    pub fn with(&self, passed: Passed) -> NoRoom {
        NoRoom { passed, ..self.clone() }
    }

    /// Returns the failure of an operation that needs `bytes` bytes.
    pub fn failure(&self, operation: String, need: u64, worker: &str, line: SourceId) -> Failure {
        let Passed { holder, allowed, held, records, more } = &self.passed;
        let (needs, allowed, held) = (bytes(need + more), bytes(*allowed), bytes(*held));
        let mut reason = match holder.as_str() {
            "" => format!("it needs {needs}, and {held} of the worker's {allowed} are held"),
            _ => format!("it needs {needs}, and {holder} holds {held} of {allowed} on this worker"),
        };
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

impl<E: Engine> Worker<E> {
    /// Returns why a lane cannot exceed a limit.
    pub(super) fn no_room(&self, id: LaneId, passed: &Passed) -> NoRoom {
        let holder = passed.holder.as_str();
        let counts =
            |incarnation: Incarnation| holder.is_empty() || self.limits.is_of(incarnation, holder);
        let mut sessions: BTreeMap<Incarnation, u64> = BTreeMap::new();
        for lane in self.lanes.values().filter(|lane| counts(lane.id.incarnation)) {
            let bytes = if holder.is_empty() { lane.store.bytes() } else { lane.counted() };
            *sessions.entry(lane.id.incarnation).or_default() += bytes;
        }
        sessions.remove(&id.incarnation);
        let sessions = sessions.into_iter().filter(|(_, held)| *held > 0);
        let other = |(incarnation, bytes)| Other { incarnation, label: String::new(), bytes };
        let mut others: Vec<Other> = sessions.map(other).collect();
        others.sort_by_key(|other| (Reverse(other.bytes), other.incarnation));
        others.truncate(NAMED);
        let own = self.lanes.values().filter(|lane| lane.id.incarnation == id.incarnation);
        NoRoom { passed: passed.clone(), largest: largest(own), others }
    }
}

/// Returns the largest tensors of a session's lanes.
pub(crate) fn largest<'a, T: 'a>(lanes: impl Iterator<Item = &'a Lane<T>>) -> Vec<Holding> {
    let holding = |lane: &Lane<T>| {
        let incarnation = lane.id.incarnation;
        let list = lane.store.list().into_iter();
        list.map(move |listed| {
            let holding =
                Holding { incarnation, line: listed.line, meta: listed.meta, bytes: listed.bytes };
            (listed.id, holding)
        })
    };
    let mut all: Vec<_> = lanes.flat_map(holding).collect();
    all.sort_by_key(|(id, holding)| (Reverse(holding.bytes), *id));
    all.into_iter().take(NAMED).map(|(_, holding)| holding).collect()
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
