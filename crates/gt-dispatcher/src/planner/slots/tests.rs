use super::*;

fn host(worker: u32) -> Host {
    Host { worker: WorkerId(worker), number: worker, arithmetic: 0 }
}

fn slots(workers: u32) -> Slots {
    let mut slots = Slots::default();
    (0..workers).for_each(|worker| {
        slots.add(host(worker), |_| true);
    });
    slots
}

#[test]
fn slots_of_a_lost_worker_move_and_plans_stay_valid() {
    let mut slots = slots(3);
    let version = slots.version();
    assert_eq!(slots.remove(WorkerId(1), &[host(0), host(2)], |_| None), [SlotId(1)]);
    assert_eq!(slots.hosts(), [0, 0, 2].map(WorkerId));
    assert_eq!(slots.remove(WorkerId(0), &[host(2)], |_| None), [SlotId(0), SlotId(1)]);
    assert_eq!(slots.hosts(), [2, 2, 2].map(WorkerId));
    assert_eq!(slots.version(), version);
    // The slot keeps its number.
    assert_eq!(slots.number(SlotId(1)), Some(1));
}

#[test]
fn slots_prefer_workers_with_the_same_arithmetic() {
    let other = |worker| Host { arithmetic: 1, ..host(worker) };
    let mut slots = slots(2);
    slots.add(other(2), |_| true);
    // The preferred worker has another arithmetic.
    slots.remove(WorkerId(1), &[host(0), other(2)], |_| Some(WorkerId(2)));
    assert_eq!(slots.host(SlotId(1)), Some(WorkerId(0)));
    let arithmetics = |slots: &Slots| [0, 1, 2].map(|slot| slots.arithmetic(SlotId(slot)));
    assert_eq!(arithmetics(&slots), [0, 0, 1]);
    assert!(slots.rebalanced(&[host(0), other(2), other(3)]).is_empty());
    assert_eq!(slots.rebalanced(&[host(0), other(2), host(4)]), [(SlotId(1), host(4))]);
    slots.remove(WorkerId(0), &[other(2)], |_| None);
    assert_eq!(arithmetics(&slots), [1, 1, 1]);
}

#[test]
fn a_joining_worker_takes_over_an_empty_slot_from_a_substitute() {
    let mut slots = slots(2);
    slots.remove(WorkerId(1), &[host(0)], |_| None);
    slots.add(Host { number: 5, ..host(7) }, |_| true);
    assert_eq!((slots.host(SlotId(1)), slots.number(SlotId(1))), (Some(WorkerId(7)), Some(1)));
    slots.remove(WorkerId(7), &[host(0)], |_| None);
    // A slot on a substitute that holds a tensor stays where it is.
    slots.add(host(8), |_| false);
    assert_eq!((slots.count(), slots.host(SlotId(2))), (3, Some(WorkerId(8))));
}

#[test]
fn slots_without_any_worker_go_to_the_next_that_joins() {
    let mut slots = slots(2);
    slots.remove(WorkerId(0), &[host(1)], |_| None);
    slots.remove(WorkerId(1), &[], |_| None);
    assert_eq!((slots.hosts(), slots.host(SlotId(0))), (vec![], None));
    slots.add(host(3), |_| true);
    assert_eq!(slots.hosts(), [3, 3].map(WorkerId));
    slots.add(host(4), |_| true);
    assert_eq!(slots.hosts(), [3, 4].map(WorkerId));
}
