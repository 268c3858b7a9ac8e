//! The snapshots that a worker keeps: of its own lanes, and copies of other workers'.
//!
//! A tensor's name never means another value, so snapshots share what they have in common, and a
//! copy needs only what is new since the one before.
//!
//! - [`turn`]: taking a snapshot of a lane, and taking its values back.

mod turn;

use std::collections::{BTreeMap, VecDeque};

use gt_ir::message::Failure;
use gt_ir::snapshot::{Backup, Owner, SavedValue};
use gt_ir::{Content, TensorData, TensorId, WorkerId};
use rustc_hash::{FxHashMap, FxHashSet};

/// The values in one message, beyond which others follow in another one.
const MESSAGE: usize = 4 << 20;
/// The most values in one message.
const VALUES: usize = 1 << 10;

/// How many ended sessions are remembered.
const ENDED: usize = 1 << 10;

/// All snapshots on a worker, by whose they are.
#[derive(Default)]
pub(crate) struct Vault {
    owners: BTreeMap<Owner, Kept>,
    /// The bytes of all values.
    bytes: u64,
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
    values: FxHashMap<TensorId, SavedValue>,
    /// The tensors of each snapshot that is complete here.
    snapshots: BTreeMap<u64, Vec<TensorId>>,
    /// Who has a copy, the tensors that it has, and the snapshots that it was given.
    copy: Option<(Option<WorkerId>, FxHashSet<TensorId>, Vec<u64>)>,
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
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn is_empty(&self) -> bool {
        self.owners.is_empty()
    }

    /// Whether a tensor's value is kept.
    fn has(&self, owner: Owner, tensor: TensorId) -> bool {
        self.owners.get(&owner).is_some_and(|kept| kept.values.contains_key(&tensor))
    }

    fn add(&mut self, owner: Owner, values: Vec<SavedValue>) {
        let kept = self.owners.entry(owner).or_default();
        for value in values {
            self.bytes += bytes_of(&value);
            if let Some(before) = kept.values.insert(value.tensor, value) {
                self.bytes -= bytes_of(&before);
            }
        }
    }

    /// Keeps a snapshot, of which `values` are new here.
    fn keep(&mut self, owner: Owner, number: u64, names: Vec<TensorId>, values: Vec<SavedValue>) {
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
        let fresh = fresh.filter_map(|name| values.get(name)).cloned();
        divide(owner, number, fresh, names.clone())
    }

    /// The messages that give all values of a snapshot to a worker that restores it.
    pub fn hand_over(&self, owner: Owner, number: u64) -> Vec<Backup> {
        let Some(kept) = self.owners.get(&owner) else { return Vec::new() };
        let Some(names) = kept.snapshots.get(&number) else { return Vec::new() };
        let values = names.iter().filter_map(|name| kept.values.get(name)).cloned();
        divide(owner, number, values, names.clone())
    }

    /// Takes values of another worker's lane. With the last of a snapshot, the bytes of all of it.
    pub fn receive(&mut self, backup: Backup) -> Option<Result<u64, String>> {
        let Backup { owner, snapshot, values, names, .. } = backup;
        let is_late = |(kept, next): &(u64, u64)| snapshot != *kept && snapshot < *next;
        let (oldest, known) = &self.known;
        if self.ended.contains(&owner.session)
            || owner.session < *oldest && !known.contains(&owner.session)
            || self.wanted.get(&owner.session).is_some_and(is_late)
        {
            return None;
        }
        self.add(owner, values);
        let names = names?;
        let kept = self.owners.entry(owner).or_default();
        let mut bytes = 0;
        for name in &names {
            match kept.values.get(name) {
                Some(value) => bytes += bytes_of(value),
                None => return Some(Err(format!("a value of snapshot {snapshot} is missing"))),
            }
        }
        kept.snapshots.insert(snapshot, names);
        Some(Ok(bytes))
    }

    /// The values of a snapshot, if all of it is here.
    fn values(&self, owner: Owner, number: u64) -> Option<Vec<SavedValue>> {
        let kept = self.owners.get(&owner)?;
        let names = kept.snapshots.get(&number)?;
        names.iter().map(|name| kept.values.get(name).cloned()).collect()
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
        match snapshot {
            Some(snapshot) => drop(self.wanted.insert(session, (snapshot, next))),
            None => {
                self.wanted.remove(&session);
                self.ended.push_back(session);
                if self.ended.len() > ENDED {
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
                self.bytes -= if stays { 0 } else { bytes_of(value) };
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

    fn names(names: &[u64]) -> Vec<TensorId> {
        names.iter().copied().map(TensorId).collect()
    }

    #[test]
    fn a_copy_gets_what_is_new_and_has_all() {
        let (mut here, mut there) = (Vault::default(), Vault::default());
        here.keep(OWNER, 1, names(&[1, 2]), vec![value(1), value(2)]);
        let first = here.pack(OWNER, 1, Some(WorkerId(9)));
        assert_eq!((first.len(), first[0].values.len()), (1, 2));
        assert_eq!(there.receive(first[0].clone()), Some(Ok(80)));
        here.keep(OWNER, 2, names(&[2, 3]), vec![value(3)]);
        let second = here.pack(OWNER, 2, Some(WorkerId(9)));
        assert_eq!(second[0].values, [value(3)]);
        assert_eq!(there.receive(second[0].clone()), Some(Ok(80)));
        for vault in [&mut here, &mut there] {
            assert_eq!(vault.bytes(), 120);
            vault.retain(OWNER.session, Some(2), 3);
            assert_eq!(vault.bytes(), 80);
            assert_eq!(vault.values(OWNER, 2), Some(vec![value(2), value(3)]));
            assert_eq!(vault.values(OWNER, 1), None);
        }
        // Another keeper has nothing yet.
        assert_eq!(here.pack(OWNER, 2, None)[0].values.len(), 2);
        here.retain(OWNER.session, None, 0);
        assert!(here.is_empty() && here.bytes() == 0);
    }

    #[test]
    fn a_copy_with_a_gap_is_none() {
        let mut vault = Vault::default();
        let names = Some(names(&[1, 2]));
        let values = vec![value(1)];
        let backup = Backup { owner: OWNER, snapshot: 1, sender: None, values, names };
        assert!(vault.receive(backup).is_some_and(|kept| kept.is_err()));
        assert_eq!(vault.values(OWNER, 1), None);
    }

    #[test]
    fn what_comes_late_is_dropped() {
        let mut vault = Vault::default();
        let backup = |snapshot, name| {
            let (values, names) = (vec![value(name)], Some(names(&[name])));
            Backup { owner: OWNER, snapshot, sender: None, values, names }
        };
        assert_eq!(vault.receive(backup(1, 1)), Some(Ok(40)));
        vault.retain(OWNER.session, Some(1), 4);
        assert_eq!(vault.receive(backup(3, 2)), None);
        assert_eq!((vault.receive(backup(4, 3)), vault.bytes()), (Some(Ok(40)), 80));
        vault.retain(OWNER.session, None, 0);
        assert_eq!((vault.receive(backup(9, 4)), vault.bytes()), (None, 0));
    }

    #[test]
    fn many_values_take_several_messages() {
        let mut vault = Vault::default();
        let all: Vec<u64> = (0..VALUES as u64 + 1).collect();
        vault.keep(OWNER, 1, names(&all), all.iter().map(|name| value(*name)).collect());
        let messages = vault.hand_over(OWNER, 1);
        assert_eq!(messages.len(), 2);
        assert!(messages[0].names.is_none() && messages[1].names.is_some());
    }
}
