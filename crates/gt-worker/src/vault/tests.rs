use gt_ir::{DType, Shape, SlotId, SourceId};

use super::part::VALUES;
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

/// Keeps a snapshot, of which `values` are new.
fn keep(
    vault: &mut Vault,
    owner: Owner,
    number: u64,
    names: Names,
    values: impl IntoIterator<Item = Value>,
) {
    vault.add(owner, values);
    vault.complete(owner, number, inventory(names)).unwrap();
}

fn inventory(names: Names) -> Inventory {
    let runs = vec![(names.len() as u64, 2)];
    Inventory { names, runs }
}

fn names(names: &[u64]) -> Names {
    names.iter().copied().map(TensorId).collect()
}

#[test]
fn a_copy_gets_what_is_new_and_has_all() {
    let (mut here, mut there) = (Vault::default(), Vault::default());
    keep(&mut here, OWNER, 1, names(&[1, 2]), vec![kept(1), kept(2)]);
    let first = here.pack(OWNER, 1, Some(WorkerId(9))).unwrap();
    assert_eq!(first.values.len(), 2);
    assert_eq!(there.receive(first, 100), Some(Ok(80)));
    keep(&mut here, OWNER, 2, names(&[2, 3]), vec![kept(3)]);
    let second = here.pack(OWNER, 2, Some(WorkerId(9))).unwrap();
    assert_eq!(second.values, [value(3)]);
    assert_eq!(there.receive(second, 100), Some(Ok(80)));
    for vault in [&mut here, &mut there] {
        assert_eq!(vault.amounts().memory, 120);
        vault.retain(OWNER.session, Some(2), 3);
        assert_eq!(vault.amounts().memory, 80);
        assert_eq!(vault.values(OWNER, 2), Some(vec![value(2), value(3)]));
        assert_eq!((vault.runs(OWNER, 2), vault.runs(OWNER, 1)), (&[(2, 2)][..], &[][..]));
        assert_eq!(vault.values(OWNER, 1), None);
    }
    // Another keeper has nothing yet.
    assert_eq!(here.pack(OWNER, 2, None).unwrap().values.len(), 2);
    here.retain(OWNER.session, None, 0);
    assert!(here.is_empty() && here.amounts().memory == 0);
}

#[test]
fn copies_that_may_not_be_there_are_given_anew() {
    let mut vault = Vault::default();
    keep(&mut vault, OWNER, 1, names(&[1]), vec![kept(1)]);
    let packed =
        |vault: &mut Vault, number, to| vault.pack(OWNER, number, to).unwrap().values.len();
    assert_eq!((packed(&mut vault, 1, None), packed(&mut vault, 1, None)), (1, 0));
    // The server is another one.
    vault.renew();
    assert_eq!(packed(&mut vault, 1, None), 1);
    let keeper = Some(WorkerId(9));
    assert_eq!((packed(&mut vault, 1, keeper), packed(&mut vault, 1, keeper)), (1, 0));
    vault.renew();
    assert_eq!(packed(&mut vault, 1, keeper), 0, "the other worker has it still");
    // A snapshot that is given up may not have arrived.
    keep(&mut vault, OWNER, 2, names(&[1, 2]), vec![kept(2)]);
    assert_eq!(packed(&mut vault, 2, keeper), 1);
    vault.retain(OWNER.session, Some(1), 5);
    keep(&mut vault, OWNER, 5, names(&[1, 2]), vec![kept(2)]);
    assert_eq!(packed(&mut vault, 5, keeper), 2);
}

#[test]
fn a_copy_with_a_gap_is_none() {
    let mut vault = Vault::default();
    let inventory = Some(inventory(names(&[1, 2])));
    let values = vec![value(1)];
    let backup = Backup { owner: OWNER, snapshot: 1, sender: None, values, inventory };
    assert!(vault.receive(backup, 100).is_some_and(|kept| kept.is_err()));
    assert_eq!(vault.values(OWNER, 1), None);
}

#[test]
fn what_comes_late_is_dropped() {
    let mut vault = Vault::default();
    let backup = |snapshot, name| {
        let (values, inventory) = (vec![value(name)], Some(inventory(names(&[name]))));
        Backup { owner: OWNER, snapshot, sender: None, values, inventory }
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
    keep(&mut vault, OWNER, 1, names(&all), all.iter().map(|name| kept(*name)));
    let messages = vault.hand_over(OWNER, 1).unwrap();
    assert_eq!(messages.len(), 2);
    assert!(messages[0].inventory.is_none() && messages[1].inventory.is_some());
    let packed: Vec<Backup> = (0..2).filter_map(|_| vault.pack(OWNER, 1, None)).collect();
    assert!(packed == messages);
    assert!(vault.pack(OWNER, 1, None).is_some_and(|rest| rest.values.is_empty()));
}

#[test]
fn the_largest_gives_way_but_for_what_is_pinned() {
    let mut vault = Vault::default();
    let other = Owner { session: 4, slot: SlotId(0) };
    let third = Owner { session: 5, slot: SlotId(0) };
    keep(&mut vault, OWNER, 1, names(&[1, 2]), vec![kept(1), kept(2)]);
    keep(&mut vault, other, 7, names(&[1]), vec![kept(1)]);
    // What is on disk takes up no memory, and the other way round.
    keep(&mut vault, third, 1, names(&[1]), vec![Value { place: ValuePlace::Disk, ..kept(1) }]);
    assert_eq!((vault.amounts().memory, vault.give_way(Medium::Memory, 1, &[3, 4])), (120, vec![]));
    assert_eq!(
        (vault.amounts().on(Medium::Disk), vault.give_way(Medium::Disk, 1, &[5])),
        (40, vec![])
    );
    assert_eq!(
        (vault.give_way(Medium::Memory, 1, &[3]), vault.amounts().memory),
        (vec![(other, 7)], 80)
    );
    assert!(vault.has_dropped(other, 7) && !vault.has_dropped(OWNER, 1));
    assert!(vault.hand_over(other, 7).is_none() && vault.hand_over(third, 1).is_some());
    assert_eq!(
        (vault.give_way(Medium::Memory, 1 << 30, &[]), vault.amounts().memory),
        (vec![(OWNER, 1)], 0)
    );
    let (values, inventory) = (vec![value(1)], Some(inventory(names(&[1]))));
    let backup = Backup { owner: other, snapshot: 9, sender: None, values, inventory };
    assert!(vault.receive(backup, 39).is_some_and(|kept| kept.is_err()));
}

#[test]
fn values_go_to_the_disk_and_are_the_same() {
    let mut vault = Vault::default();
    keep(&mut vault, OWNER, 1, names(&[1, 2, 3]), vec![kept(1), kept(2), kept(3)]);
    let moving = vault.move_away(41, 40);
    assert_eq!(moving.len(), 2);
    assert_eq!(vault.amounts(), Amounts { memory: 120, moving: 80, ..Amounts::default() });
    for (at, (owner, tensor, data)) in moving.into_iter().enumerate() {
        vault.moved(owner, tensor, (at == 0).then_some(Content::Data(data)));
    }
    assert_eq!(vault.amounts(), Amounts { memory: 80, disk: 40, ..Amounts::default() });
    assert_eq!(vault.values(OWNER, 1).unwrap(), [value(1), value(2), value(3)]);
    vault.move_away(1, 40);
    vault.retain(OWNER.session, None, 0);
    assert_eq!(vault.amounts(), Amounts::default());
    vault.moved(OWNER, TensorId(2), None);
    assert_eq!(vault.amounts(), Amounts::default(), "it was dropped meanwhile");
    keep(&mut vault, OWNER, 2, names(&[1]), vec![kept(1)]);
    assert!(vault.move_away(100, 41).is_empty(), "it is too small");
}

/// Numbers that look like chance, always the same.
fn numbers() -> impl FnMut(u64) -> u64 {
    let mut state = 11u64;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    }
}

/// All complete snapshots with their values.
fn all(vault: &Vault) -> Vec<(Owner, u64, Vec<SavedValue>)> {
    let numbers = |(owner, kept): (&Owner, &Kept)| {
        let owner = *owner;
        kept.snapshots.keys().map(move |number| (owner, *number)).collect::<Vec<_>>()
    };
    let snapshots = vault.owners.iter().flat_map(numbers);
    let whole = |(owner, number)| (owner, number, vault.values(owner, number).unwrap());
    snapshots.map(whole).collect()
}

#[test]
fn records_lead_to_the_same_snapshots_wherever_they_end() {
    let mut chance = numbers();
    let (mut vault, mut records, mut next) = (Vault::default(), Vec::new(), 1);
    let mut stages: Vec<(usize, Vec<(Owner, u64, Vec<SavedValue>)>)> = Vec::new();
    for round in 0..400 {
        let owner = Owner { session: chance(3) as u32, slot: SlotId(chance(2) as u32) };
        match chance(8) {
            0 => vault.retain(owner.session, None, 0),
            1 => drop(vault.give_way(Medium::Memory, 1, &[])),
            2..=3 => {
                let kept =
                    vault.owners.get(&owner).and_then(|kept| kept.snapshots.keys().next_back());
                let last = kept.copied();
                vault.retain(owner.session, last, next);
            }
            _ => {
                let all: Vec<u64> = (0..6).filter(|_| chance(2) == 0).collect();
                let fresh = vault.missing(owner, &names(&all));
                vault.add(owner, fresh.iter().map(|name| kept(name.0)));
                // Others may be dropped in between.
                if chance(4) > 0 {
                    vault.complete(owner, next, inventory(names(&all))).unwrap();
                    next += 1;
                }
            }
        }
        if round == 100 {
            records = vault.keep_records();
        }
        records.extend(vault.take_records());
        if round >= 100 {
            stages.push((records.len(), self::all(&vault)));
        }
    }
    for (length, expected) in stages {
        let mut other = Vault::default();
        let written = records[..length].iter().map(gt_ir::wire::encode);
        let read = written.map(|frames| gt_ir::wire::decode(&frames).unwrap());
        assert_eq!(other.adopt(read.collect()), expected.len());
        assert!(self::all(&other) == expected);
    }
}
