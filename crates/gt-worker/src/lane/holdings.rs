//! The largest tensors of a session's lanes, which failures for lack of memory name.

use std::cmp::Reverse;

use gt_ir::entitlement::Holding;

use super::Lane;

/// The number of tensors, and of other sessions, that a failure names.
pub(crate) const NAMED: usize = 5;

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
