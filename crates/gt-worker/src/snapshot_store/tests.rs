use gt_ir::{DType, SessionId, Shape, SlotId, SourceId};

use super::part::VALUES;
use super::*;

const OWNER: Owner = Owner { session: SessionId(3), slot: SlotId(1) };

fn value(name: u64) -> SavedValue {
    let shape = Shape::new(&[10]).unwrap();
    let data = TensorData::new(DType::F32, shape, vec![name as u8; 40].into()).unwrap();
    saved(TensorId(name), SourceId(7), Ok(data))
}

fn kept(name: u64) -> StoredValue {
    StoredValue::new(value(name))
}

/// Stores a snapshot, of which `values` are new.
fn keep(
    snapshots: &mut SnapshotStore,
    owner: Owner,
    number: u64,
    names: Names,
    values: impl IntoIterator<Item = StoredValue>,
) {
    snapshots.add(owner, values);
    snapshots.complete(owner, number, inventory(names)).unwrap();
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
    let (mut here, mut there) = (SnapshotStore::default(), SnapshotStore::default());
    keep(&mut here, OWNER, 1, names(&[1, 2]), vec![kept(1), kept(2)]);
    let first = here.pack(OWNER, 1, Some(WorkerId(9))).unwrap();
    assert_eq!(first.values.len(), 2);
    assert_eq!(there.receive(first, 100), Some(Ok(80)));
    keep(&mut here, OWNER, 2, names(&[2, 3]), vec![kept(3)]);
    let second = here.pack(OWNER, 2, Some(WorkerId(9))).unwrap();
    assert_eq!(second.values, [value(3)]);
    assert_eq!(there.receive(second, 100), Some(Ok(80)));
    for snapshots in [&mut here, &mut there] {
        assert_eq!(snapshots.amounts().memory, 120);
        snapshots.retain(OWNER.session, Some(2), 3, &[]);
        assert_eq!(snapshots.amounts().memory, 80);
        assert_eq!(snapshots.values(OWNER, 2), Some(vec![value(2), value(3)]));
        assert_eq!((snapshots.runs(OWNER, 2), snapshots.runs(OWNER, 1)), (&[(2, 2)][..], &[][..]));
        assert_eq!(snapshots.values(OWNER, 1), None);
    }
    // Another keeper has no copies yet.
    assert_eq!(here.pack(OWNER, 2, None).unwrap().values.len(), 2);
    here.retain(OWNER.session, None, 0, &[]);
    assert!(here.is_empty() && here.amounts().memory == 0);
}

#[test]
fn copies_that_may_not_be_there_are_given_anew() {
    let mut snapshots = SnapshotStore::default();
    keep(&mut snapshots, OWNER, 1, names(&[1]), vec![kept(1)]);
    let packed = |snapshots: &mut SnapshotStore, number, to| {
        snapshots.pack(OWNER, number, to).unwrap().values.len()
    };
    assert_eq!((packed(&mut snapshots, 1, None), packed(&mut snapshots, 1, None)), (1, 0));
    // The server has changed.
    snapshots.renew();
    assert_eq!(packed(&mut snapshots, 1, None), 1);
    let keeper = Some(WorkerId(9));
    assert_eq!((packed(&mut snapshots, 1, keeper), packed(&mut snapshots, 1, keeper)), (1, 0));
    snapshots.renew();
    assert_eq!(packed(&mut snapshots, 1, keeper), 0, "the other worker has it still");
    // A snapshot that is given up may not have arrived.
    keep(&mut snapshots, OWNER, 2, names(&[1, 2]), vec![kept(2)]);
    assert_eq!(packed(&mut snapshots, 2, keeper), 1);
    snapshots.retain(OWNER.session, Some(1), 5, &[]);
    keep(&mut snapshots, OWNER, 5, names(&[1, 2]), vec![kept(2)]);
    assert_eq!(packed(&mut snapshots, 5, keeper), 2);
}

#[test]
fn a_copy_with_a_gap_is_none() {
    let mut snapshots = SnapshotStore::default();
    let inventory = Some(inventory(names(&[1, 2])));
    let values = vec![value(1)];
    let backup = Backup { owner: OWNER, snapshot: 1, sender: None, values, inventory };
    assert!(snapshots.receive(backup, 100).is_some_and(|kept| kept.is_err()));
    assert_eq!(snapshots.values(OWNER, 1), None);
}

#[test]
fn a_snapshot_that_a_lane_restores_stays_until_it_has() {
    let mut snapshots = SnapshotStore::default();
    keep(&mut snapshots, OWNER, 1, names(&[1, 2]), [kept(1), kept(2)]);
    snapshots.retain(OWNER.session, Some(0), 3, &[1]);
    assert!(snapshots.values(OWNER, 1).is_some());
    snapshots.release(OWNER, 1);
    assert!(snapshots.values(OWNER, 1).is_none());
    assert_eq!(snapshots.amounts().memory, 0);
    // One that is retained stays.
    keep(&mut snapshots, OWNER, 3, names(&[3]), [kept(3)]);
    snapshots.retain(OWNER.session, Some(3), 4, &[]);
    snapshots.release(OWNER, 3);
    assert!(snapshots.values(OWNER, 3).is_some());
}

#[test]
fn what_comes_late_is_dropped() {
    let mut snapshots = SnapshotStore::default();
    let backup = |snapshot, name| {
        let (values, inventory) = (vec![value(name)], Some(inventory(names(&[name]))));
        Backup { owner: OWNER, snapshot, sender: None, values, inventory }
    };
    assert_eq!(snapshots.receive(backup(1, 1), 100), Some(Ok(40)));
    snapshots.retain(OWNER.session, Some(1), 4, &[]);
    assert_eq!(snapshots.receive(backup(3, 2), 100), None);
    assert_eq!(
        (snapshots.receive(backup(4, 3), 100), snapshots.amounts().memory),
        (Some(Ok(40)), 80)
    );
    snapshots.retain(OWNER.session, None, 0, &[]);
    assert_eq!((snapshots.receive(backup(9, 4), 100), snapshots.amounts().memory), (None, 0));
}

#[test]
fn a_publication_that_arrives_twice_is_stored_once() {
    let mut snapshots = SnapshotStore::default();
    let backup = |name| {
        let (values, inventory) = (vec![value(name)], Some(inventory(names(&[name]))));
        Backup { owner: OWNER, snapshot: PUBLISHED, sender: None, values, inventory }
    };
    assert_eq!(snapshots.receive(backup(1), 40), Some(Ok(40)));
    assert_eq!(snapshots.move_away(1, 1, |_| false).len(), 1);
    // There is no room for a second one, and it is not needed.
    assert_eq!(snapshots.receive(Backup { inventory: None, ..backup(1) }, 0), None);
    assert_eq!(snapshots.receive(backup(1), 0), Some(Ok(40)));
    assert_eq!(snapshots.amounts(), Amounts { memory: 40, moving: 40, ..Amounts::default() });
}

#[test]
fn the_ends_of_the_last_sessions_are_remembered_once_each() {
    let mut snapshots = SnapshotStore::default();
    let first = SessionId(0);
    snapshots.retain(first, None, 0, &[]);
    for _ in 0..2 * REMEMBERED {
        snapshots.retain(SessionId(1), None, 0, &[]);
    }
    assert!(snapshots.has_ended(first));
    (2..2 + REMEMBERED as u32).for_each(|of| snapshots.retain(SessionId(of), None, 0, &[]));
    assert!(!snapshots.has_ended(first) && snapshots.ended.len() == REMEMBERED);
}

#[test]
fn many_values_take_several_messages() {
    let mut snapshots = SnapshotStore::default();
    let all: Vec<u64> = (0..VALUES as u64 + 1).collect();
    keep(&mut snapshots, OWNER, 1, names(&all), all.iter().map(|name| kept(*name)));
    let messages = snapshots.hand_over(OWNER, 1).unwrap();
    assert_eq!(messages.len(), 2);
    assert!(messages[0].inventory.is_none() && messages[1].inventory.is_some());
    let packed: Vec<Backup> = (0..2).filter_map(|_| snapshots.pack(OWNER, 1, None)).collect();
    assert!(packed == messages);
    assert!(snapshots.pack(OWNER, 1, None).is_some_and(|rest| rest.values.is_empty()));
}

#[test]
fn the_largest_gives_way_but_for_what_is_pinned() {
    let mut snapshots = SnapshotStore::default();
    let other = Owner { session: SessionId(4), slot: SlotId(0) };
    let third = Owner { session: SessionId(5), slot: SlotId(0) };
    keep(&mut snapshots, OWNER, 1, names(&[1, 2]), vec![kept(1), kept(2)]);
    keep(&mut snapshots, other, 7, names(&[1]), vec![kept(1)]);
    // Values on disk take no memory, and values in memory take no disk space.
    keep(
        &mut snapshots,
        third,
        1,
        names(&[1]),
        vec![StoredValue { place: ValuePlace::Disk, ..kept(1) }],
    );
    assert_eq!(
        (
            snapshots.amounts().memory,
            snapshots.give_way(Medium::Memory, 1, &[SessionId(3), SessionId(4)])
        ),
        (120, vec![])
    );
    assert_eq!(
        (
            snapshots.amounts().on(Medium::Disk),
            snapshots.give_way(Medium::Disk, 1, &[SessionId(5)])
        ),
        (40, vec![])
    );
    assert_eq!(
        (snapshots.give_way(Medium::Memory, 1, &[SessionId(3)]), snapshots.amounts().memory),
        (vec![(other, 7)], 80)
    );
    assert!(snapshots.has_dropped(other, 7) && !snapshots.has_dropped(OWNER, 1));
    assert!(snapshots.hand_over(other, 7).is_none() && snapshots.hand_over(third, 1).is_some());
    assert_eq!(
        (snapshots.give_way(Medium::Memory, 1 << 30, &[]), snapshots.amounts().memory),
        (vec![(OWNER, 1)], 0)
    );
    let (values, inventory) = (vec![value(1)], Some(inventory(names(&[1]))));
    let backup = Backup { owner: other, snapshot: 9, sender: None, values, inventory };
    assert!(snapshots.receive(backup, 39).is_some_and(|kept| kept.is_err()));
}

#[test]
fn values_go_to_the_disk_and_are_the_same() {
    let mut snapshots = SnapshotStore::default();
    keep(&mut snapshots, OWNER, 1, names(&[1, 2, 3]), vec![kept(1), kept(2), kept(3)]);
    let moving = snapshots.move_away(41, 40, |_| false);
    assert_eq!(moving.len(), 2);
    assert_eq!(snapshots.amounts(), Amounts { memory: 120, moving: 80, ..Amounts::default() });
    for (at, (owner, tensor, data)) in moving.into_iter().enumerate() {
        snapshots.moved(owner, tensor, (at == 0).then_some(Content::Data(data)));
    }
    assert_eq!(snapshots.amounts(), Amounts { memory: 80, disk: 40, ..Amounts::default() });
    assert_eq!(snapshots.values(OWNER, 1).unwrap(), [value(1), value(2), value(3)]);
    snapshots.move_away(1, 40, |_| false);
    snapshots.retain(OWNER.session, None, 0, &[]);
    assert_eq!(snapshots.amounts(), Amounts::default());
    snapshots.moved(OWNER, TensorId(2), None);
    assert_eq!(snapshots.amounts(), Amounts::default(), "it was dropped meanwhile");
    keep(&mut snapshots, OWNER, 2, names(&[1]), vec![kept(1)]);
    assert!(snapshots.move_away(100, 41, |_| false).is_empty(), "it is too small");
}

/// Deterministic pseudo-random numbers.
fn numbers() -> impl FnMut(u64) -> u64 {
    let mut state = 11u64;
    move |below| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    }
}

/// All complete snapshots with their values.
fn all(snapshots: &SnapshotStore) -> Vec<(Owner, u64, Vec<SavedValue>)> {
    let numbers = |(owner, kept): (&Owner, &SlotSnapshots)| {
        let owner = *owner;
        kept.snapshots.keys().map(move |number| (owner, *number)).collect::<Vec<_>>()
    };
    let numbered = snapshots.owners.iter().flat_map(numbers);
    let whole = |(owner, number)| (owner, number, snapshots.values(owner, number).unwrap());
    numbered.map(whole).collect()
}

#[test]
fn records_lead_to_the_same_snapshots_wherever_they_end() {
    let mut chance = numbers();
    let (mut snapshots, mut records, mut next) = (SnapshotStore::default(), Vec::new(), 1);
    let mut stages: Vec<(usize, Vec<(Owner, u64, Vec<SavedValue>)>)> = Vec::new();
    for round in 0..400 {
        let owner = Owner { session: SessionId(chance(3) as u32), slot: SlotId(chance(2) as u32) };
        match chance(8) {
            0 => snapshots.retain(owner.session, None, 0, &[]),
            1 => drop(snapshots.give_way(Medium::Memory, 1, &[])),
            2..=3 => {
                let kept =
                    snapshots.owners.get(&owner).and_then(|kept| kept.snapshots.keys().next_back());
                let last = kept.copied();
                snapshots.retain(owner.session, last, next, &[]);
            }
            _ => {
                let all: Vec<u64> = (0..6).filter(|_| chance(2) == 0).collect();
                let fresh = snapshots.missing(owner, &names(&all));
                snapshots.add(owner, fresh.iter().map(|name| kept(name.0)));
                // Other snapshots may be dropped in between.
                if chance(4) > 0 {
                    snapshots.complete(owner, next, inventory(names(&all))).unwrap();
                    next += 1;
                }
            }
        }
        if round == 100 {
            records = snapshots.keep_records();
        }
        records.extend(snapshots.take_records());
        if round >= 100 {
            stages.push((records.len(), self::all(&snapshots)));
        }
    }
    for (length, expected) in stages {
        let mut other = SnapshotStore::default();
        let written = records[..length].iter().map(gt_ir::wire::encode);
        let read = written.map(|frames| gt_ir::wire::decode(&frames).unwrap());
        assert_eq!(other.adopt(read.collect()), expected.len());
        assert!(self::all(&other) == expected);
    }
}
