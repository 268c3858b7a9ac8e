//! A snapshot, and where the values of its slots are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gt_ir::snapshot::{Backup, SavedValue, Unkept};
use gt_ir::{SlotId, TensorId, WorkerId, record};
use rustc_hash::FxHashMap;

use crate::planner::Catalogue;
use crate::templates::Templates;

/// The state of a session at a snapshot.
#[derive(Clone, Default)]
pub(crate) struct State {
    pub catalogue: Catalogue,
    pub templates: Templates,
}

record!(struct State { catalogue, templates });

/// A snapshot of a session; by default that of its beginning.
#[derive(Default)]
pub(crate) struct Snapshot {
    pub number: u64,
    pub state: Arc<State>,
    /// The first batch of the log that is not in it.
    pub planned: u64,
    /// The slots that have tensors, and where their values are.
    pub copies: BTreeMap<SlotId, Copy>,
    /// The slots that have not kept all.
    pub open: BTreeSet<SlotId>,
    /// The client's shared memory that the log before it refers to.
    pub blocks: Vec<u128>,
    /// How far it is on its way to be the base.
    pub stage: Stage,
}

/// How far a snapshot is that waits to be the base.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum Stage {
    /// Workers keep its values, and answers to what was asked before it come.
    #[default]
    Taken,
    /// The client is asked whether it has got all of them.
    Asked,
    /// It is written to the journal.
    Written,
}

/// Where a slot's values are.
pub(crate) struct Copy {
    /// The worker that the slot is on.
    pub host: WorkerId,
    /// The worker that has a copy; the dispatcher if there is none.
    pub keeper: Option<WorkerId>,
    pub bytes: u64,
    /// The values, if the dispatcher has the copy.
    pub values: Vec<Backup>,
}

impl Copy {
    /// All values that the dispatcher has.
    pub fn all(&self) -> Vec<SavedValue> {
        self.values.iter().flat_map(|backup| backup.values.iter().cloned()).collect()
    }

    /// The one worker that has the values, if there is only one, and the dispatcher has none.
    pub fn only_holder(&self, is_there: impl Fn(WorkerId) -> bool) -> Option<WorkerId> {
        let mut there = [Some(self.host), self.keeper].into_iter().flatten();
        let first = there.by_ref().find(|worker| is_there(*worker))?;
        let is_alone = self.values.is_empty() && !there.any(is_there);
        is_alone.then_some(first)
    }

    /// The last values have come, beside those that were `known`. Returns their bytes.
    ///
    /// # Errors
    /// A value is missing, or they take up more than `limit`.
    pub fn complete(&mut self, known: Vec<SavedValue>, limit: u64) -> Result<u64, Unkept> {
        let parts = std::mem::take(&mut self.values);
        let Some((owner, snapshot)) = parts.last().map(|part| (part.owner, part.snapshot)) else {
            return Err(Unkept::Incomplete);
        };
        let mut all: FxHashMap<TensorId, SavedValue> = FxHashMap::default();
        let mut names = Vec::new();
        all.extend(known.into_iter().map(|value| (value.tensor, value)));
        for part in parts {
            all.extend(part.values.into_iter().map(|value| (value.tensor, value)));
            names = part.names.unwrap_or(names);
        }
        let values: Option<Vec<SavedValue>> = names.iter().map(|name| all.remove(name)).collect();
        let values = values.ok_or(Unkept::Incomplete)?;
        let contents = values.iter().filter_map(|value| value.result.as_ref().ok());
        let bytes = contents.map(|content| content.meta().bytes() as u64).sum();
        if bytes > limit {
            return Err(Unkept::Refused(format!(
                "there is one worker only, and its tensors take up more than the {limit} bytes that the server keeps of them"
            )));
        }
        let (sender, names) = (None, Some(names));
        self.values = vec![Backup { owner, snapshot, sender, values, names }];
        Ok(bytes)
    }
}

impl Snapshot {
    /// The slots whose values are gone when only these workers are there.
    pub fn lost(&self, is_there: impl Fn(WorkerId) -> bool) -> Option<SlotId> {
        let is_lost = |copy: &Copy| match copy.keeper {
            Some(keeper) => !is_there(copy.host) && !is_there(keeper),
            // A server that was started again has none of what it kept.
            None => copy.values.is_empty() && !is_there(copy.host),
        };
        self.copies.iter().find(|(_, copy)| is_lost(copy)).map(|(slot, _)| *slot)
    }

    /// A worker has got a slot's values, instead of one that is not there any more. Returns whether
    /// that is new.
    pub fn has_copy(
        &mut self,
        slot: SlotId,
        worker: WorkerId,
        is_there: impl Fn(WorkerId) -> bool,
    ) -> bool {
        let Some(Copy { host, keeper, values, .. }) = self.copies.get_mut(&slot) else {
            return false;
        };
        if *host == worker || *keeper == Some(worker) {
            return false;
        }
        if !is_there(*host) {
            *host = worker;
        } else if keeper.map_or(values.is_empty(), |keeper| !is_there(keeper)) {
            *keeper = Some(worker);
        } else {
            return false;
        }
        true
    }

    /// A worker has dropped a slot's values. Returns whether nobody has them.
    pub fn lose_copy(
        &mut self,
        slot: SlotId,
        worker: WorkerId,
        is_there: impl Fn(WorkerId) -> bool,
    ) -> bool {
        let Some(Copy { host, keeper, values, .. }) = self.copies.get_mut(&slot) else {
            return false;
        };
        match *keeper {
            Some(other) if worker == *host => {
                (*host, *keeper) = (other, None);
                !is_there(other)
            }
            Some(other) if worker == other => {
                *keeper = None;
                !is_there(*host)
            }
            None if worker == *host => values.is_empty(),
            _ => false,
        }
    }

    /// Whether a worker has any of its values.
    pub fn involves(&self, worker: WorkerId) -> bool {
        let has = |copy: &Copy| copy.host == worker || copy.keeper == Some(worker);
        self.copies.values().any(has)
    }

    /// The workers that have its values.
    pub fn workers(&self) -> BTreeSet<WorkerId> {
        let of = |copy: &Copy| [Some(copy.host), copy.keeper];
        self.copies.values().flat_map(of).flatten().collect()
    }
}
