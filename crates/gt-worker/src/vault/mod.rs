//! The snapshots that a worker keeps: of its own lanes, and copies of other workers'.
//!
//! A tensor's name never means another value, so snapshots share what they have in common, and a
//! copy needs only what is new since the one before.
//!
//! - [`turn`]: taking a snapshot of a lane, and taking its values back. [`room`]: their memory.

mod room;
mod turn;

use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};

use gt_ir::message::Failure;
use gt_ir::snapshot::{Backup, Owner, SavedValue, Unkept};
use gt_ir::{Content, TensorData, TensorId, WorkerId};
use rustc_hash::{FxHashMap, FxHashSet};

/// The values in one message, beyond which others follow in another one.
const MESSAGE: usize = 4 << 20;
/// The most values in one message.
const VALUES: usize = 1 << 10;

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
}

/// What is kept of a slot.
#[derive(Default)]
struct Kept {
    values: FxHashMap<TensorId, Value>,
    /// The tensors of each snapshot that is complete here.
    snapshots: BTreeMap<u64, Vec<TensorId>>,
    /// Who has a copy, the tensors that it has, and the snapshots that it was given.
    copy: Option<(Option<WorkerId>, FxHashSet<TensorId>, Vec<u64>)>,
}

/// A value, and where it is.
#[derive(Clone)]
struct Value {
    saved: SavedValue,
    place: ValuePlace,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum ValuePlace {
    Memory,
    /// On its way to the disk.
    Moving,
    /// Mapped.
    Disk,
}

/// The bytes of values.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(crate) struct Amounts {
    /// In memory, on their way to the disk or not.
    pub memory: u64,
    pub moving: u64,
    pub disk: u64,
}

impl Amounts {
    /// The amounts that a value counts for.
    fn of(&mut self, value: &Value) -> impl Iterator<Item = &mut u64> {
        let places = [
            (&mut self.memory, value.place != ValuePlace::Disk),
            (&mut self.moving, value.place == ValuePlace::Moving),
            (&mut self.disk, value.place == ValuePlace::Disk),
        ];
        places.into_iter().filter_map(|(amount, counts)| counts.then_some(amount))
    }

    fn add(&mut self, value: &Value) {
        self.of(value).for_each(|amount| *amount += bytes_of(&value.saved));
    }

    fn remove(&mut self, value: &Value) {
        self.of(value).for_each(|amount| *amount -= bytes_of(&value.saved));
    }
}

impl Value {
    /// One that is in memory.
    fn new(saved: SavedValue) -> Value {
        Value { saved, place: ValuePlace::Memory }
    }
}

/// The bytes of a value.
fn bytes_of(value: &SavedValue) -> u64 {
    match &value.result {
        Ok(content) => content.meta().bytes() as u64,
        Err(_) => 0,
    }
}

impl Vault {
    /// The bytes of all values.
    pub fn amounts(&self) -> Amounts {
        self.amounts
    }

    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// Whether a tensor's value is kept.
    fn has(&self, owner: Owner, tensor: TensorId) -> bool {
        self.owners.get(&owner).is_some_and(|kept| kept.values.contains_key(&tensor))
    }

    fn add(&mut self, owner: Owner, values: impl IntoIterator<Item = Value>) {
        let kept = self.owners.entry(owner).or_default();
        self.may_move = true;
        for value in values {
            self.amounts.add(&value);
            if let Some(before) = kept.values.insert(value.saved.tensor, value) {
                self.amounts.remove(&before);
            }
        }
    }

    /// Keeps a snapshot, of which `values` are new here.
    fn keep(&mut self, owner: Owner, number: u64, names: Vec<TensorId>, values: Vec<Value>) {
        self.add(owner, values);
        let kept = self.owners.entry(owner).or_default();
        kept.snapshots.insert(number, names);
    }

    /// The messages that give a snapshot to another: all its values, or those that it has not got
    /// from here yet.
    fn pack(&mut self, owner: Owner, number: u64, to: Option<WorkerId>) -> Vec<Backup> {
        let Some(kept) = self.owners.get_mut(&owner) else { return Vec::new() };
        let Some(names) = kept.snapshots.get(&number).cloned() else { return Vec::new() };
        if kept.copy.as_ref().is_none_or(|(keeper, ..)| *keeper != to) {
            kept.copy = Some((to, FxHashSet::default(), Vec::new()));
        }
        let Kept { values, copy, .. } = kept;
        let Some((_, known, given)) = copy else { return Vec::new() };
        given.push(number);
        let fresh = names.iter().filter(|name| known.insert(**name));
        let fresh = fresh.filter_map(|name| values.get(name)).map(|value| value.saved.clone());
        divide(owner, number, fresh, names.clone())
    }

    /// The messages that give all values of a snapshot to a worker that restores it; none if it is
    /// not here.
    pub fn hand_over(&self, owner: Owner, number: u64) -> Option<Vec<Backup>> {
        let names = self.owners.get(&owner)?.snapshots.get(&number)?;
        Some(divide(owner, number, self.values(owner, number)?.into_iter(), names.clone()))
    }

    /// Drops snapshots until so many bytes of memory are free, but for those of some `pinned`
    /// sessions. Returns the snapshots that are dropped.
    pub fn give_way(&mut self, bytes: u64, pinned: &[u32]) -> Vec<(Owner, u64)> {
        let memory = |kept: &Kept| {
            let in_memory = kept.values.values().filter(|value| value.place != ValuePlace::Disk);
            in_memory.map(|value| bytes_of(&value.saved)).sum::<u64>()
        };
        let is_pinned =
            |session: u32| pinned.contains(&session) || self.unclaimed.contains(&session);
        let free = self.owners.iter().filter(|(owner, _)| !is_pinned(owner.session));
        let mut largest: Vec<(u64, Owner)> =
            free.map(|(owner, kept)| (memory(kept), *owner)).collect();
        largest.sort_unstable_by_key(|(bytes, owner)| (Reverse(*bytes), *owner));
        let (mut freed, mut dropped) = (0, Vec::new());
        for (memory, owner) in largest {
            if freed >= bytes || memory == 0 {
                break;
            }
            let Some(kept) = self.owners.remove(&owner) else { continue };
            freed += memory;
            // The order does not matter for sums.
            #[allow(clippy::iter_over_hash_type, reason = "sums are the same in any order")]
            for value in kept.values.values() {
                self.amounts.remove(value);
            }
            dropped.extend(kept.snapshots.into_keys().map(|number| (owner, number)));
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
                value.place == ValuePlace::Memory && bytes_of(&value.saved) >= least.max(1)
            };
            let free = kept.values.values().filter(is_free);
            let mut largest: Vec<(u64, TensorId)> =
                free.map(|value| (bytes_of(&value.saved), value.saved.tensor)).collect();
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
        let Backup { owner, snapshot, values, names, .. } = backup;
        let (oldest, known) = &self.known;
        if self.ended.contains(&owner.session)
            || owner.session < *oldest && !known.contains(&owner.session)
            || self.is_unwanted(owner.session, snapshot)
        {
            return None;
        }
        let size: u64 = values.iter().map(bytes_of).sum();
        if size > room {
            let reason = "the worker that was to keep a copy has no memory left for it";
            return Some(Err(Unkept::Refused(reason.into())));
        }
        self.add(owner, values.into_iter().map(Value::new));
        let names = names?;
        let kept = self.owners.entry(owner).or_default();
        let mut bytes = 0;
        for name in &names {
            match kept.values.get(name) {
                Some(value) => bytes += bytes_of(&value.saved),
                None => return Some(Err(Unkept::Incomplete)),
            }
        }
        kept.snapshots.insert(snapshot, names);
        Some(Ok(bytes))
    }

    /// The values of a snapshot, if all of it is here.
    fn values(&self, owner: Owner, number: u64) -> Option<Vec<SavedValue>> {
        let kept = self.owners.get(&owner)?;
        let names = kept.snapshots.get(&number)?;
        let value = |name| kept.values.get(name).map(|value: &Value| value.saved.clone());
        names.iter().map(value).collect()
    }

    /// The server is gone: its sessions may be made again by another.
    pub fn renew(&mut self) {
        self.unclaimed = self.owners.keys().map(|owner| owner.session).collect();
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
            kept.snapshots.retain(|number, _| is_wanted(*number));
            let needed: FxHashSet<TensorId> = kept.snapshots.values().flatten().copied().collect();
            kept.values.retain(|name, value| {
                let stays = needed.contains(name);
                if !stays {
                    self.amounts.remove(value);
                }
                stays
            });
            // Who was not given what is left has dropped all.
            let has_it = |given: &[u64]| snapshot.is_some_and(|number| given.contains(&number));
            kept.copy = kept.copy.take().filter(|(_, _, given)| has_it(given));
            if let Some((_, known, given)) = &mut kept.copy {
                known.retain(|name| needed.contains(name));
                given.retain(|number| is_wanted(*number));
            }
            !kept.snapshots.is_empty()
        });
    }
}

/// Divides values into messages of a moderate size; the last has the names.
fn divide(
    owner: Owner,
    snapshot: u64,
    values: impl Iterator<Item = SavedValue>,
    names: Vec<TensorId>,
) -> Vec<Backup> {
    let sender = None;
    let new = || Backup { owner, snapshot, sender, values: Vec::new(), names: None };
    let (mut all, mut bytes) = (vec![new()], 0);
    for value in values {
        let size = bytes_of(&value) as usize;
        let last = all.last().expect("there is one");
        if !last.values.is_empty() && (bytes + size > MESSAGE || last.values.len() >= VALUES) {
            all.push(new());
            bytes = 0;
        }
        bytes += size;
        all.last_mut().expect("there is one").values.push(value);
    }
    all.last_mut().expect("there is one").names = Some(names);
    all
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
mod tests {
    use gt_ir::{DType, Shape, SlotId, SourceId};

    use super::*;

    const OWNER: Owner = Owner { session: 3, slot: SlotId(1) };

    fn value(name: u64) -> SavedValue {
        let shape = Shape::new(&[10]).unwrap();
        let data = TensorData::new(DType::F32, shape, vec![name as u8; 40].into()).unwrap();
        saved(TensorId(name), SourceId(7), Ok(data))
    }

    fn kept(name: u64) -> Value {
        Value::new(value(name))
    }

    fn names(names: &[u64]) -> Vec<TensorId> {
        names.iter().copied().map(TensorId).collect()
    }

    #[test]
    fn a_copy_gets_what_is_new_and_has_all() {
        let (mut here, mut there) = (Vault::default(), Vault::default());
        here.keep(OWNER, 1, names(&[1, 2]), vec![kept(1), kept(2)]);
        let first = here.pack(OWNER, 1, Some(WorkerId(9)));
        assert_eq!((first.len(), first[0].values.len()), (1, 2));
        assert_eq!(there.receive(first[0].clone(), 100), Some(Ok(80)));
        here.keep(OWNER, 2, names(&[2, 3]), vec![kept(3)]);
        let second = here.pack(OWNER, 2, Some(WorkerId(9)));
        assert_eq!(second[0].values, [value(3)]);
        assert_eq!(there.receive(second[0].clone(), 100), Some(Ok(80)));
        for vault in [&mut here, &mut there] {
            assert_eq!(vault.amounts().memory, 120);
            vault.retain(OWNER.session, Some(2), 3);
            assert_eq!(vault.amounts().memory, 80);
            assert_eq!(vault.values(OWNER, 2), Some(vec![value(2), value(3)]));
            assert_eq!(vault.values(OWNER, 1), None);
        }
        // Another keeper has nothing yet.
        assert_eq!(here.pack(OWNER, 2, None)[0].values.len(), 2);
        here.retain(OWNER.session, None, 0);
        assert!(here.is_empty() && here.amounts().memory == 0);
    }

    #[test]
    fn a_copy_with_a_gap_is_none() {
        let mut vault = Vault::default();
        let names = Some(names(&[1, 2]));
        let values = vec![value(1)];
        let backup = Backup { owner: OWNER, snapshot: 1, sender: None, values, names };
        assert!(vault.receive(backup, 100).is_some_and(|kept| kept.is_err()));
        assert_eq!(vault.values(OWNER, 1), None);
    }

    #[test]
    fn what_comes_late_is_dropped() {
        let mut vault = Vault::default();
        let backup = |snapshot, name| {
            let (values, names) = (vec![value(name)], Some(names(&[name])));
            Backup { owner: OWNER, snapshot, sender: None, values, names }
        };
        assert_eq!(vault.receive(backup(1, 1), 100), Some(Ok(40)));
        vault.retain(OWNER.session, Some(1), 4);
        assert_eq!(vault.receive(backup(3, 2), 100), None);
        assert_eq!((vault.receive(backup(4, 3), 100), vault.amounts().memory), (Some(Ok(40)), 80));
        vault.retain(OWNER.session, None, 0);
        assert_eq!((vault.receive(backup(9, 4), 100), vault.amounts().memory), (None, 0));
    }

    #[test]
    fn many_values_take_several_messages() {
        let mut vault = Vault::default();
        let all: Vec<u64> = (0..VALUES as u64 + 1).collect();
        vault.keep(OWNER, 1, names(&all), all.iter().map(|name| kept(*name)).collect());
        let messages = vault.hand_over(OWNER, 1).unwrap();
        assert_eq!(messages.len(), 2);
        assert!(messages[0].names.is_none() && messages[1].names.is_some());
    }

    #[test]
    fn the_largest_gives_way_but_for_what_is_pinned() {
        let mut vault = Vault::default();
        let other = Owner { session: 4, slot: SlotId(0) };
        let third = Owner { session: 5, slot: SlotId(0) };
        vault.keep(OWNER, 1, names(&[1, 2]), vec![kept(1), kept(2)]);
        vault.keep(other, 7, names(&[1]), vec![kept(1)]);
        // What is on disk takes up no memory.
        vault.keep(third, 1, names(&[1]), vec![Value { place: ValuePlace::Disk, ..kept(1) }]);
        assert_eq!((vault.amounts().memory, vault.give_way(1, &[3, 4])), (120, vec![]));
        assert_eq!((vault.give_way(1, &[3]), vault.amounts().memory), (vec![(other, 7)], 80));
        assert!(vault.has_dropped(other, 7) && !vault.has_dropped(OWNER, 1));
        assert!(vault.hand_over(other, 7).is_none() && vault.hand_over(third, 1).is_some());
        assert_eq!((vault.give_way(1 << 30, &[]), vault.amounts().memory), (vec![(OWNER, 1)], 0));
        let (values, names) = (vec![value(1)], Some(names(&[1])));
        let backup = Backup { owner: other, snapshot: 9, sender: None, values, names };
        assert!(vault.receive(backup, 39).is_some_and(|kept| kept.is_err()));
    }

    #[test]
    fn values_go_to_the_disk_and_are_the_same() {
        let mut vault = Vault::default();
        vault.keep(OWNER, 1, names(&[1, 2, 3]), vec![kept(1), kept(2), kept(3)]);
        let moving = vault.move_away(41, 40);
        assert_eq!(moving.len(), 2);
        assert_eq!(vault.amounts(), Amounts { memory: 120, moving: 80, disk: 0 });
        for (at, (owner, tensor, data)) in moving.into_iter().enumerate() {
            vault.moved(owner, tensor, (at == 0).then_some(Content::Data(data)));
        }
        assert_eq!(vault.amounts(), Amounts { memory: 80, moving: 0, disk: 40 });
        assert_eq!(vault.values(OWNER, 1).unwrap(), [value(1), value(2), value(3)]);
        vault.move_away(1, 40);
        vault.retain(OWNER.session, None, 0);
        assert_eq!(vault.amounts(), Amounts::default());
        vault.moved(OWNER, TensorId(2), None);
        assert_eq!(vault.amounts(), Amounts::default(), "it was dropped meanwhile");
        vault.keep(OWNER, 2, names(&[1]), vec![kept(1)]);
        assert!(vault.move_away(100, 41).is_empty(), "it is too small");
    }
}
