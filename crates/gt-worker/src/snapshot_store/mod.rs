//! The snapshot store: the snapshots that a worker keeps, of its own lanes and copies of other
//! workers'.
//!
//! A tensor has one value, unless a step is undone. So snapshots share the values that they have in
//! common, and a copy needs only the values that are new since the previous one.
//!
//! - [`slot_snapshots`]: the snapshots of one slot; [`values`]: their values, and where they are.
//! - [`moving`]: moving values to disk. [`part`]: values in messages of moderate size.
//! - [`records`]: the journal records from which a restarted worker has its snapshots.

mod moving;
mod part;
mod records;
mod slot_snapshots;
mod values;

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use gt_ir::message::Failure;
use gt_ir::names::Names;
use gt_ir::publication::PUBLISHED;
use gt_ir::snapshot::{Backup, Inventory, Owner, SavedValue, Unkept};
use gt_ir::{Content, SessionId, TensorData, TensorId, WorkerId};
use rustc_hash::{FxHashMap, FxHashSet};

pub(crate) use part::{MESSAGE, VALUES};
use part::{ValuesPart, divide};
pub use records::SnapshotRecord;
use slot_snapshots::{SlotSnapshots, SnapshotContents};
pub(crate) use values::{Amounts, Medium, StoredValue, ValuePlace};

/// The number of ended sessions, and of evicted snapshots, that are remembered.
const REMEMBERED: usize = 1 << 10;

/// All snapshots on a worker, by owner.
#[derive(Default)]
pub(crate) struct SnapshotStore {
    owners: BTreeMap<Owner, SlotSnapshots>,
    amounts: Amounts,
    /// Sessions of a lost server that are not restored yet: this worker may have their only copies.
    unclaimed: FxHashSet<SessionId>,
    /// Whether values in memory may be large enough to be moved to disk.
    may_move: bool,
    /// The last snapshots that were evicted in favour of tensors.
    dropped: VecDeque<(Owner, u64)>,
    /// The snapshots of each session that may still arrive: the retained one, and those from a
    /// number on. Others are late.
    wanted: FxHashMap<SessionId, (u64, u64)>,
    /// Sessions that have ended, as late values of them may arrive.
    ended: VecDeque<SessionId>,
    /// Of the sessions before a number, those that still exist: others belonged to a previous
    /// dispatcher.
    known: (SessionId, Vec<SessionId>),
    /// The changes to be written; `None` if they are not recorded.
    records: Option<Vec<SnapshotRecord>>,
}

impl SnapshotStore {
    /// The bytes of all values.
    pub fn amounts(&self) -> Amounts {
        self.amounts
    }

    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// Returns the tensors among these that have no value, or an outdated one.
    pub fn missing(&self, owner: Owner, names: &Names) -> Names {
        let Some(kept) = self.owners.get(&owner) else { return names.clone() };
        let nothing = SnapshotContents::default();
        let before = kept.snapshots.values().next_back().unwrap_or(&nothing);
        let fresh = names.without(&before.inventory.names);
        let mut missing: Names =
            fresh.iter().filter(|name| !kept.values.contains_key(name)).collect();
        // The order in which a set is filled does not matter.
        #[allow(clippy::iter_over_hash_type, reason = "a set is the same in any order")]
        for name in kept.outdated.iter().filter(|name| names.contains(**name)) {
            missing.insert(*name);
        }
        missing
    }

    /// Marks the values of these tensors as outdated, as an undone step has assigned others: the
    /// next snapshot replaces them. If the previous one is restored, the step is undone again.
    pub fn outdate(&mut self, owner: Owner, tensors: impl Iterator<Item = TensorId>) {
        let Some(kept) = self.owners.get_mut(&owner) else { return };
        for tensor in tensors.filter(|tensor| kept.values.contains_key(tensor)) {
            kept.outdated.insert(tensor);
            if let Some((_, known, _)) = &mut kept.copy {
                known.remove(tensor);
            }
        }
    }

    pub fn add(&mut self, owner: Owner, values: impl IntoIterator<Item = StoredValue>) {
        let kept = self.owners.entry(owner).or_default();
        self.may_move = true;
        let mut written = self.records.as_ref().map(|_| Vec::new());
        for value in values {
            written.iter_mut().for_each(|all| all.push(value.saved.clone()));
            self.amounts.add(&value);
            if let Some(before) = kept.add(value) {
                self.amounts.remove(&before);
            }
        }
        if let Some(values) = written {
            self.record(|| SnapshotRecord::Values { owner, values });
        }
    }

    /// Completes a snapshot whose values are all stored; returns their bytes.
    ///
    /// # Errors
    /// A value is missing.
    pub fn complete(
        &mut self,
        owner: Owner,
        number: u64,
        inventory: Inventory,
    ) -> Result<u64, Unkept> {
        let written = self.records.as_ref().map(|_| inventory.clone());
        let bytes = self.owners.entry(owner).or_default().complete(number, inventory)?;
        if let Some(inventory) = written {
            self.record(|| SnapshotRecord::Complete { owner, snapshot: number, inventory });
        }
        Ok(bytes)
    }

    /// Drops all snapshots of a slot; returns their numbers.
    fn drop_owner(&mut self, owner: Owner) -> Vec<u64> {
        let Some(kept) = self.owners.remove(&owner) else { return Vec::new() };
        // The order does not matter for sums.
        #[allow(clippy::iter_over_hash_type, reason = "sums are the same in any order")]
        for value in kept.values.values() {
            self.amounts.remove(value);
        }
        self.record(|| SnapshotRecord::Dropped { owner });
        kept.snapshots.into_keys().collect()
    }

    /// Drops everything: the server will not return.
    pub fn clear(&mut self) {
        let owners: Vec<Owner> = self.owners.keys().copied().collect();
        owners.into_iter().for_each(|owner| drop(self.drop_owner(owner)));
        *self = SnapshotStore { records: self.records.take(), ..SnapshotStore::default() };
    }

    /// Returns the next message that copies a snapshot to another keeper: values that were not sent
    /// to it yet. The last one has the inventory. `None` if the snapshot is not stored here.
    pub fn pack(&mut self, owner: Owner, number: u64, to: Option<WorkerId>) -> Option<Backup> {
        let SlotSnapshots { values, snapshots, copy, .. } = self.owners.get_mut(&owner)?;
        let SnapshotContents { inventory, .. } = snapshots.get(&number)?;
        if copy.as_ref().is_none_or(|(keeper, ..)| *keeper != to) {
            *copy = Some((to, Names::default(), Vec::new()));
        }
        let (_, known, given) = copy.as_mut()?;
        if given.last() != Some(&number) {
            given.push(number);
        }
        let mut part = ValuesPart::default();
        for name in inventory.names.without(known).iter() {
            let Some(value) = values.get(&name) else { continue };
            if !part.has_room(&value.saved) {
                return Some(part.backup(owner, number, None));
            }
            part.add(value.saved.clone());
            known.insert(name);
        }
        Some(part.backup(owner, number, Some(inventory.clone())))
    }

    /// Returns the messages with all values of a snapshot, for a worker that restores it; none if
    /// it is not stored here.
    pub fn hand_over(&self, owner: Owner, number: u64) -> Option<Vec<Backup>> {
        let SnapshotContents { inventory, .. } = self.owners.get(&owner)?.snapshots.get(&number)?;
        Some(divide(owner, number, self.values(owner, number)?.into_iter(), inventory.clone()))
    }

    /// Drops snapshots until `bytes` bytes of memory or disk are free, except publications, and those
    /// of the `pinned` sessions. Returns the dropped snapshots.
    pub fn give_way(
        &mut self,
        medium: Medium,
        bytes: u64,
        pinned: &[SessionId],
    ) -> Vec<(Owner, u64)> {
        let size = |kept: &SlotSnapshots| {
            let there = kept.values.values().filter(|value| medium.has(value.place));
            there.map(|value| value.saved.bytes()).sum::<u64>()
        };
        let is_pinned =
            |session: SessionId| pinned.contains(&session) || self.unclaimed.contains(&session);
        let is_free = |(owner, kept): &(&Owner, &SlotSnapshots)| {
            !is_pinned(owner.session) && !kept.snapshots.contains_key(&PUBLISHED)
        };
        let free = self.owners.iter().filter(is_free);
        let mut largest: Vec<(u64, Owner)> =
            free.map(|(owner, kept)| (size(kept), *owner)).collect();
        largest.sort_unstable_by_key(|(bytes, owner)| (Reverse(*bytes), *owner));
        let (mut freed, mut dropped) = (0, Vec::new());
        for (size, owner) in largest {
            if freed >= bytes || size == 0 {
                break;
            }
            freed += size;
            dropped.extend(self.drop_owner(owner).into_iter().map(|number| (owner, number)));
        }
        self.dropped.extend(&dropped);
        let excess = self.dropped.len().saturating_sub(REMEMBERED);
        self.dropped.drain(..excess);
        dropped
    }

    /// Returns whether a snapshot was evicted in favour of tensors.
    pub fn has_dropped(&self, owner: Owner, number: u64) -> bool {
        self.dropped.contains(&(owner, number))
    }

    /// Stores values of another worker's lane. After the last of a snapshot, returns the bytes of
    /// all of it.
    ///
    /// # Errors
    /// Values of it are missing, or exceed `room`.
    pub fn receive(&mut self, backup: Backup, room: u64) -> Option<Result<u64, Unkept>> {
        let Backup { owner, snapshot, values, inventory, .. } = backup;
        let (since, known) = &self.known;
        if self.has_ended(owner.session)
            || owner.session < *since && !known.contains(&owner.session)
            || self.is_unwanted(owner.session, snapshot)
        {
            return None;
        }
        // What is published never changes, and the engine may use the values that are here.
        if snapshot == PUBLISHED
            && let Some(bytes) = self.bytes(owner, snapshot)
        {
            return inventory.map(|_| Ok(bytes));
        }
        let size: u64 = values.iter().map(SavedValue::bytes).sum();
        if size > room {
            let reason = "the worker that was to keep a copy has no memory left for it";
            return Some(Err(Unkept::Refused(reason.into())));
        }
        self.add(owner, values.into_iter().map(StoredValue::new));
        inventory.map(|inventory| self.complete(owner, snapshot, inventory))
    }

    /// Returns the values of a snapshot, if it is complete here.
    pub fn values(&self, owner: Owner, number: u64) -> Option<Vec<SavedValue>> {
        let kept = self.owners.get(&owner)?;
        let SnapshotContents { inventory, .. } = kept.snapshots.get(&number)?;
        let value = |name| kept.values.get(&name).map(|value: &StoredValue| value.saved.clone());
        inventory.names.iter().map(value).collect()
    }

    /// Returns whether a snapshot is complete here.
    pub fn has(&self, owner: Owner, number: u64) -> bool {
        self.bytes(owner, number).is_some()
    }

    /// Returns the bytes of a snapshot, if it is complete here.
    fn bytes(&self, owner: Owner, number: u64) -> Option<u64> {
        Some(self.owners.get(&owner)?.snapshots.get(&number)?.bytes)
    }

    /// Returns a value of a snapshot that is complete here.
    pub fn value(&self, owner: Owner, number: u64, name: TensorId) -> Option<&Content> {
        let kept = self.owners.get(&owner)?;
        kept.snapshots.get(&number)?;
        kept.values.get(&name)?.saved.result.as_ref().ok()
    }

    /// Returns the run counts of plans at a snapshot.
    pub fn runs(&self, owner: Owner, number: u64) -> &[(u64, u32)] {
        let kept = self.owners.get(&owner);
        let contents = kept.and_then(|kept| kept.snapshots.get(&number));
        contents.map_or(&[], |contents| &contents.inventory.runs)
    }

    /// Drops a snapshot from which its lane has been restored, if it stayed only for that.
    pub fn release(&mut self, owner: Owner, number: u64) {
        let is_last =
            self.owners.get(&owner).is_some_and(|kept| kept.snapshots.keys().eq([&number]));
        if is_last && self.is_unwanted(owner.session, number) {
            self.drop_owner(owner);
        }
    }

    /// Handles the loss of the server: another may restore its sessions.
    pub fn renew(&mut self) {
        self.unclaimed = self.owners.keys().map(|owner| owner.session).collect();
        // The server's copies are lost with it.
        for kept in self.owners.values_mut() {
            kept.copy = kept.copy.take().filter(|(keeper, ..)| keeper.is_some());
        }
    }

    /// Returns whether a snapshot is late, and so not stored.
    pub fn is_unwanted(&self, session: SessionId, snapshot: u64) -> bool {
        self.wanted.get(&session).is_some_and(|(kept, next)| snapshot != *kept && snapshot < *next)
    }

    /// Returns whether a session or a publication has ended.
    pub fn has_ended(&self, session: SessionId) -> bool {
        self.ended.contains(&session)
    }

    /// Remembers the end of a session, once, so that repeated reports displace no others.
    fn note_end(&mut self, session: SessionId) {
        if !self.has_ended(session) {
            self.ended.push_back(session);
            let excess = self.ended.len().saturating_sub(REMEMBERED);
            self.ended.drain(..excess);
        }
    }

    /// Drops the snapshots of all other sessions, and takes none of other sessions before `since`.
    pub fn retain_sessions(&mut self, sessions: &[SessionId], since: SessionId) {
        self.known = (since, sessions.to_vec());
        let mut others: Vec<SessionId> = self.owners.keys().map(|owner| owner.session).collect();
        others.dedup();
        others.retain(|session| !sessions.contains(session));
        others.into_iter().for_each(|session| self.retain(session, None, 0, &[]));
    }

    /// Drops a session's snapshots except one, those from the number `next` on, and the `pinned`
    /// ones; all if there is none to retain.
    pub fn retain(&mut self, session: SessionId, snapshot: Option<u64>, next: u64, pinned: &[u64]) {
        self.unclaimed.remove(&session);
        self.record(|| SnapshotRecord::Retain { session, snapshot, next });
        match snapshot {
            Some(snapshot) => drop(self.wanted.insert(session, (snapshot, next))),
            None => {
                self.wanted.remove(&session);
                self.note_end(session);
            }
        }
        self.owners.retain(|owner, kept| {
            if owner.session != session {
                return true;
            }
            let is_wanted = |number| {
                let is_pinned = pinned.contains(&number);
                snapshot.is_some_and(|kept| kept == number || number >= next || is_pinned)
            };
            let mut dropped = std::mem::take(&mut kept.loose);
            kept.snapshots.retain(|number, contents| {
                if !is_wanted(*number) {
                    dropped = dropped.or(&contents.inventory.names);
                }
                is_wanted(*number)
            });
            for contents in kept.snapshots.values() {
                dropped = dropped.without(&contents.inventory.names);
            }
            kept.remove(&dropped).for_each(|value| self.amounts.remove(&value));
            // A keeper that was not sent the retained snapshot has dropped all. For an abandoned
            // one it is unknown what has arrived.
            let has_it = |given: &[u64]| {
                let is_given_up = |number: &u64| Some(*number) > snapshot && !is_wanted(*number);
                snapshot.is_some_and(|number| given.contains(&number))
                    && !given.iter().any(is_given_up)
            };
            kept.copy = kept.copy.take().filter(|(_, _, given)| has_it(given));
            if let Some((_, known, given)) = &mut kept.copy {
                *known = known.without(&dropped);
                given.retain(|number| is_wanted(*number));
            }
            !kept.snapshots.is_empty()
        });
    }
}

/// A value as data, or its failure.
pub(crate) fn saved(
    tensor: TensorId,
    line: gt_ir::SourceId,
    result: Result<TensorData, Failure>,
) -> SavedValue {
    SavedValue { tensor, line, result: result.map(Content::Data) }
}

#[cfg(test)]
mod tests;
