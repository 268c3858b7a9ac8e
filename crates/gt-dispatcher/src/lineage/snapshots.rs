//! Snapshots of a session, and which workers hold the values of its slots.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gt_ir::names::Names;
use gt_ir::snapshot::{Backup, Inventory, Owner, SavedValue, Unkept};
use gt_ir::{SlotId, WorkerId};

use crate::journal::SnapshotState;
use crate::pages::Pages;

/// A snapshot of a session; the default is its beginning.
#[derive(Default)]
pub(crate) struct SessionSnapshot {
    pub number: u64,
    pub state: Arc<SnapshotState>,
    /// The first batch of the log that is not in the snapshot.
    pub planned: u64,
    /// The slots that hold tensors, and where their values are.
    pub copies: BTreeMap<SlotId, SlotCopy>,
    /// The slots whose values are not stored yet.
    pub open: BTreeSet<SlotId>,
    /// The client's shared memory that the log before the snapshot refers to.
    pub blocks: Vec<u128>,
    /// What is left to do before it can be the base.
    pub stage: SnapshotStage,
}

/// The stages of a pending snapshot.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) enum SnapshotStage {
    /// Workers store its values, and requests before it are being answered.
    #[default]
    Collecting,
    /// The client is asked to confirm that it has received the answers.
    Confirming,
    /// It is being written to the journal.
    Writing,
}

/// Where a slot's values are.
pub(crate) struct SlotCopy {
    /// The worker that hosted the slot.
    pub host: WorkerId,
    /// The worker that holds a second copy; `None` if the dispatcher does.
    pub keeper: Option<WorkerId>,
    pub bytes: u64,
    /// The values, if the dispatcher holds the second copy.
    pub kept: Option<KeptValues>,
}

/// A slot's values that the dispatcher stores. Clones share unchanged values.
#[derive(Clone, Default)]
pub(crate) struct KeptValues {
    values: Pages<Arc<SavedValue>>,
    names: Names,
    runs: Vec<(u64, u32)>,
    bytes: u64,
}

impl KeptValues {
    /// Adds values, replacing earlier ones of the same tensors.
    pub fn add(&mut self, values: Vec<SavedValue>) {
        for value in values {
            self.names.insert(value.tensor);
            self.bytes += value.bytes();
            if let Some(before) = self.values.insert(value.tensor.0, Arc::new(value)) {
                self.bytes -= before.bytes();
            }
        }
    }

    /// Completes the values: drops those of tensors that are not in the inventory. Returns the
    /// bytes of the others.
    ///
    /// # Errors
    /// A value is missing, or they occupy more than `limit` bytes.
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
                "there is only one worker, and its tensors occupy more than the {limit} bytes that the server stores"
            )));
        }
        Ok(self.bytes)
    }

    /// Returns all values, as a message for a worker.
    pub fn backup(&self, owner: Owner, snapshot: u64) -> Backup {
        let values = self.values.iter().map(|(_, value)| (**value).clone()).collect();
        let inventory = Inventory { names: self.names.clone(), runs: self.runs.clone() };
        Backup { owner, snapshot, sender: None, values, inventory: Some(inventory) }
    }
}

impl SlotCopy {
    /// Returns the worker that holds the only copy; `None` if there are several, or the dispatcher
    /// has one.
    pub fn only_holder(&self, is_connected: impl Fn(WorkerId) -> bool) -> Option<WorkerId> {
        let mut holders = [Some(self.host), self.keeper].into_iter().flatten();
        let first = holders.by_ref().find(|worker| is_connected(*worker))?;
        let is_alone = self.kept.is_none() && !holders.any(is_connected);
        is_alone.then_some(first)
    }

    /// Returns a worker that holds a copy, if all that do are to end.
    pub fn leaving_holder(
        &self,
        is_connected: impl Fn(WorkerId) -> bool,
        stays: impl Fn(WorkerId) -> bool,
    ) -> Option<WorkerId> {
        let mut holders = [Some(self.host), self.keeper].into_iter().flatten();
        let is_safe = self.kept.is_some() || holders.clone().any(stays);
        if is_safe { None } else { holders.find(|worker| is_connected(*worker)) }
    }
}

impl SessionSnapshot {
    /// Returns a slot whose values no connected worker holds, if there is one.
    pub fn lost(&self, is_connected: impl Fn(WorkerId) -> bool) -> Option<SlotId> {
        let is_lost = |copy: &SlotCopy| match copy.keeper {
            Some(keeper) => !is_connected(copy.host) && !is_connected(keeper),
            // A restarted server has lost the values that it stored itself.
            None => copy.kept.is_none() && !is_connected(copy.host),
        };
        self.copies.iter().find(|(_, copy)| is_lost(copy)).map(|(slot, _)| *slot)
    }

    /// Registers a worker's copy of a slot's values, in place of one on a disconnected worker.
    /// Returns whether it was added.
    pub fn has_copy(
        &mut self,
        slot: SlotId,
        worker: WorkerId,
        is_connected: impl Fn(WorkerId) -> bool,
    ) -> bool {
        let Some(SlotCopy { host, keeper, kept, .. }) = self.copies.get_mut(&slot) else {
            return false;
        };
        if *host == worker || *keeper == Some(worker) {
            return false;
        }
        if !is_connected(*host) {
            *host = worker;
        } else if keeper.map_or(kept.is_none(), |keeper| !is_connected(keeper)) {
            *keeper = Some(worker);
        } else {
            return false;
        }
        true
    }

    /// Removes a worker's copy of a slot's values. Returns whether it was the last.
    pub fn lose_copy(
        &mut self,
        slot: SlotId,
        worker: WorkerId,
        is_connected: impl Fn(WorkerId) -> bool,
    ) -> bool {
        let Some(SlotCopy { host, keeper, kept, .. }) = self.copies.get_mut(&slot) else {
            return false;
        };
        match *keeper {
            Some(other) if worker == *host => {
                (*host, *keeper) = (other, None);
                !is_connected(other)
            }
            Some(other) if worker == other => {
                *keeper = None;
                !is_connected(*host)
            }
            None if worker == *host => kept.is_none(),
            _ => false,
        }
    }

    /// Returns whether a worker holds any of its values.
    pub fn involves(&self, worker: WorkerId) -> bool {
        let has = |copy: &SlotCopy| copy.host == worker || copy.keeper == Some(worker);
        self.copies.values().any(has)
    }

    /// Returns the workers that hold its values.
    pub fn workers(&self) -> BTreeSet<WorkerId> {
        let of = |copy: &SlotCopy| [Some(copy.host), copy.keeper];
        self.copies.values().flat_map(of).flatten().collect()
    }
}
