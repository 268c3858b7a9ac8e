//! A snapshot, and where the values of its slots are.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gt_ir::names::Names;
use gt_ir::snapshot::{Backup, Inventory, Owner, SavedValue, Unkept};
use gt_ir::{SlotId, WorkerId, record};

use crate::pages::Pages;
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
    pub kept: Option<KeptValues>,
}

/// The values of a slot that the dispatcher keeps. Copies share what has not changed.
#[derive(Clone, Default)]
pub(crate) struct KeptValues {
    values: Pages<Arc<SavedValue>>,
    names: Names,
    runs: Vec<(u64, u32)>,
    bytes: u64,
}

impl KeptValues {
    /// Adds values, in the place of others of the same tensors.
    pub fn add(&mut self, values: Vec<SavedValue>) {
        for value in values {
            self.names.insert(value.tensor);
            self.bytes += value.bytes();
            if let Some(before) = self.values.insert(value.tensor.0, Arc::new(value)) {
                self.bytes -= before.bytes();
            }
        }
    }

    /// The last values have come: of all these tensors. Returns the bytes of all.
    ///
    /// # Errors
    /// A value is missing, or they take up more than `limit`.
    pub fn complete(&mut self, inventory: Inventory, limit: u64) -> Result<u64, Unkept> {
        let Inventory { names, runs } = inventory;
        for name in self.names.without(&names).iter() {
            if let Some(value) = self.values.remove(name.0) {
                self.bytes -= value.bytes();
            }
        }
        if !names.without(&self.names).is_empty() {
            return Err(Unkept::Incomplete);
        }
        (self.names, self.runs) = (names, runs);
        if self.bytes > limit {
            return Err(Unkept::Refused(format!(
                "there is one worker only, and its tensors take up more than the {limit} bytes that the server keeps of them"
            )));
        }
        Ok(self.bytes)
    }

    /// All of them, for a worker.
    pub fn backup(&self, owner: Owner, snapshot: u64) -> Backup {
        let values = self.values.iter().map(|(_, value)| (**value).clone()).collect();
        let inventory = Inventory { names: self.names.clone(), runs: self.runs.clone() };
        Backup { owner, snapshot, sender: None, values, inventory: Some(inventory) }
    }
}

impl Copy {
    /// The one worker that has the values, if there is only one, and the dispatcher has none.
    pub fn only_holder(&self, is_there: impl Fn(WorkerId) -> bool) -> Option<WorkerId> {
        let mut there = [Some(self.host), self.keeper].into_iter().flatten();
        let first = there.by_ref().find(|worker| is_there(*worker))?;
        let is_alone = self.kept.is_none() && !there.any(is_there);
        is_alone.then_some(first)
    }
}

impl Snapshot {
    /// The slots whose values are gone when only these workers are there.
    pub fn lost(&self, is_there: impl Fn(WorkerId) -> bool) -> Option<SlotId> {
        let is_lost = |copy: &Copy| match copy.keeper {
            Some(keeper) => !is_there(copy.host) && !is_there(keeper),
            // A server that was started again has none of what it kept.
            None => copy.kept.is_none() && !is_there(copy.host),
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
        let Some(Copy { host, keeper, kept, .. }) = self.copies.get_mut(&slot) else {
            return false;
        };
        if *host == worker || *keeper == Some(worker) {
            return false;
        }
        if !is_there(*host) {
            *host = worker;
        } else if keeper.map_or(kept.is_none(), |keeper| !is_there(keeper)) {
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
        let Some(Copy { host, keeper, kept, .. }) = self.copies.get_mut(&slot) else {
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
            None if worker == *host => kept.is_none(),
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
