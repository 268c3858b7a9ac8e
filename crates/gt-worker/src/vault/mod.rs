//! The snapshots that a worker keeps: of its own lanes, and copies of other workers'.
//!
//! A tensor's name means one value, but where a step is undone, so snapshots share what they have in common, and a
//! copy needs only what is new since the one before.
//!
//! - [`turn`]: taking a snapshot of a lane, and taking its values back. [`room`]: their memory.
//! - [`kept`]: what is kept of a slot; [`values`]: the values, and where they are; [`part`]: those of a
//!   message. [`exchange`]: what a worker is told of them.
//! - [`records`]: what is written of them for a worker that is started again.

mod exchange;
mod kept;
mod part;
mod records;
mod room;
mod turn;
mod values;

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use gt_ir::message::Failure;
use gt_ir::names::Names;
use gt_ir::snapshot::{Backup, Inventory, Owner, SavedValue, Unkept};
use gt_ir::{Content, TensorData, TensorId, WorkerId};
use rustc_hash::{FxHashMap, FxHashSet};

use kept::{Contents, Kept};
use part::{Part, divide};
pub use records::SnapshotRecord;
pub(crate) use turn::Keeping;
pub(crate) use values::{Amounts, Medium};
use values::{Value, ValuePlace};

/// How many ended sessions are remembered, and how many snapshots that gave way.
const REMEMBERED: usize = 1 << 10;

/// All snapshots on a worker, by whose they are.
#[derive(Default)]
pub(crate) struct Vault {
    owners: BTreeMap<Owner, Kept>,
    amounts: Amounts,
    /// Sessions of a server that is gone, which are not made again yet: all that there is of them may
    /// be here.
    unclaimed: FxHashSet<u32>,
    /// Whether there may be values in memory that are large enough to go to the disk.
    may_move: bool,
    /// The last snapshots that gave way to tensors.
    dropped: VecDeque<(Owner, u64)>,
    /// The snapshots of each session that may still arrive: the one that is kept, and those from a
    /// number on. Others come late.
    wanted: FxHashMap<u32, (u64, u64)>,
    /// Sessions that have ended, as late values of them may arrive.
    ended: VecDeque<u32>,
    /// Of the sessions before a number, those that are still there: others were those of a
    /// dispatcher that is gone.
    known: (u32, Vec<u32>),
    /// What has changed and is to be written; none where nothing is.
    records: Option<Vec<SnapshotRecord>>,
}

impl Vault {
    /// The bytes of all values.
    pub fn amounts(&self) -> Amounts {
        self.amounts
    }

    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// The tensors among these of which there is no value, or an outdated one.
    fn missing(&self, owner: Owner, names: &Names) -> Names {
        let Some(kept) = self.owners.get(&owner) else { return names.clone() };
        let nothing = Contents::default();
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

    /// Steps that were undone have given these tensors other values: those that are kept are replaced
    /// by the next snapshot. Where the one before is restored, its step is undone already.
    fn outdate(&mut self, owner: Owner, tensors: impl Iterator<Item = TensorId>) {
        let Some(kept) = self.owners.get_mut(&owner) else { return };
        for tensor in tensors.filter(|tensor| kept.values.contains_key(tensor)) {
            kept.outdated.insert(tensor);
            if let Some((_, known, _)) = &mut kept.copy {
                known.remove(tensor);
            }
        }
    }

    fn add(&mut self, owner: Owner, values: impl IntoIterator<Item = Value>) {
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

    /// Keeps a snapshot, of which all values are here; returns their bytes.
    ///
    /// # Errors
    /// A value is missing.
    fn complete(&mut self, owner: Owner, number: u64, inventory: Inventory) -> Result<u64, Unkept> {
        let written = self.records.as_ref().map(|_| inventory.clone());
        let bytes = self.owners.entry(owner).or_default().complete(number, inventory)?;
        if let Some(inventory) = written {
            self.record(|| SnapshotRecord::Complete { owner, snapshot: number, inventory });
        }
        Ok(bytes)
    }

    /// Drops all that is kept of a slot; returns the numbers of its snapshots.
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

    /// Drops everything: it is of a server that is gone for good.
    pub fn clear(&mut self) {
        let owners: Vec<Owner> = self.owners.keys().copied().collect();
        owners.into_iter().for_each(|owner| drop(self.drop_owner(owner)));
        *self = Vault { records: self.records.take(), ..Vault::default() };
    }

    /// The next message that gives a snapshot to another: values that it has not got from here yet. The
    /// last has the inventory. None if the snapshot is not here.
    fn pack(&mut self, owner: Owner, number: u64, to: Option<WorkerId>) -> Option<Backup> {
        let Kept { values, snapshots, copy, .. } = self.owners.get_mut(&owner)?;
        let Contents { inventory, .. } = snapshots.get(&number)?;
        if copy.as_ref().is_none_or(|(keeper, ..)| *keeper != to) {
            *copy = Some((to, Names::default(), Vec::new()));
        }
        let (_, known, given) = copy.as_mut()?;
        if given.last() != Some(&number) {
            given.push(number);
        }
        let mut part = Part::default();
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

    /// The messages that give all values of a snapshot to a worker that restores it; none if it is
    /// not here.
    pub fn hand_over(&self, owner: Owner, number: u64) -> Option<Vec<Backup>> {
        let Contents { inventory, .. } = self.owners.get(&owner)?.snapshots.get(&number)?;
        Some(divide(owner, number, self.values(owner, number)?.into_iter(), inventory.clone()))
    }

    /// Drops snapshots until so many bytes of memory or of the disk are free, but for those of some
    /// `pinned` sessions. Returns the snapshots that are dropped.
    pub fn give_way(&mut self, medium: Medium, bytes: u64, pinned: &[u32]) -> Vec<(Owner, u64)> {
        let size = |kept: &Kept| {
            let there = kept.values.values().filter(|value| medium.has(value.place));
            there.map(|value| value.saved.bytes()).sum::<u64>()
        };
        let is_pinned =
            |session: u32| pinned.contains(&session) || self.unclaimed.contains(&session);
        let free = self.owners.iter().filter(|(owner, _)| !is_pinned(owner.session));
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

    /// Values that are to go to the disk, the largest of each slot first: so many bytes, or more, of
    /// values that have `least` or more.
    pub fn move_away(&mut self, bytes: u64, least: u64) -> Vec<(Owner, TensorId, TensorData)> {
        let (mut moved, mut all) = (0, Vec::new());
        if !self.may_move {
            return all;
        }
        for (owner, kept) in &mut self.owners {
            let is_free = |value: &&Value| {
                value.place == ValuePlace::Memory && value.saved.bytes() >= least.max(1)
            };
            let free = kept.values.values().filter(is_free);
            let mut largest: Vec<(u64, TensorId)> =
                free.map(|value| (value.saved.bytes(), value.saved.tensor)).collect();
            largest.sort_unstable_by_key(|(bytes, tensor)| (Reverse(*bytes), *tensor));
            for (size, tensor) in largest {
                if moved >= bytes {
                    return all;
                }
                let Some(value) = kept.values.get_mut(&tensor) else { continue };
                let Ok(Content::Data(data)) = &value.saved.result else { continue };
                all.push((*owner, tensor, data.clone()));
                value.place = ValuePlace::Moving;
                self.amounts.moving += size;
                moved += size;
            }
        }
        self.may_move = moved >= bytes;
        all
    }

    /// A value is on the disk now, or stays in memory: then none is tried before others are added.
    pub fn moved(&mut self, owner: Owner, tensor: TensorId, content: Option<Content>) {
        let kept = self.owners.get_mut(&owner);
        let value = kept.and_then(|kept| kept.values.get_mut(&tensor));
        // It may have been dropped meanwhile, and kept again.
        let Some(value) = value.filter(|value| value.place == ValuePlace::Moving) else { return };
        self.may_move &= content.is_some();
        self.amounts.remove(value);
        value.place = if content.is_some() { ValuePlace::Disk } else { ValuePlace::Memory };
        if let Some(content) = content {
            value.saved.result = Ok(content);
        }
        self.amounts.add(value);
    }

    /// Whether a snapshot has given way to tensors.
    fn has_dropped(&self, owner: Owner, number: u64) -> bool {
        self.dropped.contains(&(owner, number))
    }

    /// Takes values of another worker's lane. With the last of a snapshot, the bytes of all of it.
    ///
    /// # Errors
    /// Values of it are missing, or take up more than `room`.
    pub fn receive(&mut self, backup: Backup, room: u64) -> Option<Result<u64, Unkept>> {
        let Backup { owner, snapshot, values, inventory, .. } = backup;
        let (oldest, known) = &self.known;
        if self.ended.contains(&owner.session)
            || owner.session < *oldest && !known.contains(&owner.session)
            || self.is_unwanted(owner.session, snapshot)
        {
            return None;
        }
        let size: u64 = values.iter().map(SavedValue::bytes).sum();
        if size > room {
            let reason = "the worker that was to keep a copy has no memory left for it";
            return Some(Err(Unkept::Refused(reason.into())));
        }
        self.add(owner, values.into_iter().map(Value::new));
        inventory.map(|inventory| self.complete(owner, snapshot, inventory))
    }

    /// The values of a snapshot, if all of it is here.
    fn values(&self, owner: Owner, number: u64) -> Option<Vec<SavedValue>> {
        let kept = self.owners.get(&owner)?;
        let Contents { inventory, .. } = kept.snapshots.get(&number)?;
        let value = |name| kept.values.get(&name).map(|value: &Value| value.saved.clone());
        inventory.names.iter().map(value).collect()
    }

    /// How often plans had been run at a snapshot.
    fn runs(&self, owner: Owner, number: u64) -> &[(u64, u32)] {
        let kept = self.owners.get(&owner);
        let contents = kept.and_then(|kept| kept.snapshots.get(&number));
        contents.map_or(&[], |contents| &contents.inventory.runs)
    }

    /// The server is gone: its sessions may be made again by another.
    pub fn renew(&mut self) {
        self.unclaimed = self.owners.keys().map(|owner| owner.session).collect();
        // Copies that the server had are gone with it.
        for kept in self.owners.values_mut() {
            kept.copy = kept.copy.take().filter(|(keeper, ..)| keeper.is_some());
        }
    }

    /// Whether a snapshot will not come: it is not wanted any more.
    fn is_unwanted(&self, session: u32, snapshot: u64) -> bool {
        self.wanted.get(&session).is_some_and(|(kept, next)| snapshot != *kept && snapshot < *next)
    }

    /// Drops the snapshots of all other sessions before a number.
    pub fn retain_sessions(&mut self, sessions: &[u32], oldest: u32) {
        self.known = (oldest, sessions.to_vec());
        let mut others: Vec<u32> = self.owners.keys().map(|owner| owner.session).collect();
        others.dedup();
        others.retain(|session| !sessions.contains(session));
        others.into_iter().for_each(|session| self.retain(session, None, 0));
    }

    /// Drops all but one snapshot of a session, and those from the number `next` on; all without
    /// one.
    pub fn retain(&mut self, session: u32, snapshot: Option<u64>, next: u64) {
        self.unclaimed.remove(&session);
        self.record(|| SnapshotRecord::Retain { session, snapshot, next });
        match snapshot {
            Some(snapshot) => drop(self.wanted.insert(session, (snapshot, next))),
            None => {
                self.wanted.remove(&session);
                self.ended.push_back(session);
                if self.ended.len() > REMEMBERED {
                    self.ended.pop_front();
                }
            }
        }
        self.owners.retain(|owner, kept| {
            if owner.session != session {
                return true;
            }
            let is_wanted = |number| snapshot.is_some_and(|kept| kept == number || number >= next);
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
            // Who was not given what is left has dropped all. Of one that was given up, nobody knows what
            // has arrived.
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
fn saved(
    tensor: TensorId,
    line: gt_ir::SourceId,
    result: Result<TensorData, Failure>,
) -> SavedValue {
    SavedValue { tensor, line, result: result.map(Content::Data) }
}

#[cfg(test)]
mod tests;
