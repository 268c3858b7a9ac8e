//! Published tensors, which lanes read without copies.

use crate::common::*;
use gt_worker::Options;

/// The parts of a tensor of four numbers in two slots.
fn halves() -> [(u32, gt_ir::sharding::Block); 2] {
    [(0, block(0, 2)), (1, block(2, 2))]
}

#[test]
fn a_reader_whose_values_cannot_be_stored_fails_and_a_later_one_requests_them_again() {
    let mut bench = Bench::new(Options { memory: Some(100), ..Options::default() });
    let (of, whole) = (lane(1, 0), [(3, block(0, 4))]);
    bench.work(of, vec![create(1, &[1.0; 11]), shared(2, 0, &whole)]);
    assert_eq!(bench.needs(), [3]);
    bench.backup(values_of(0, 3, &[1.0, 2.0, 3.0, 4.0]));
    let reason = bench.value(of, 2).unwrap_err();
    assert!(
        reason.contains("its values could not be stored: the worker that was to keep a copy has"),
        "{reason}"
    );
    assert_eq!(bench.stats().snapshot_bytes, 0);
    bench.work(of, vec![free(1), free(2), shared(3, 0, &whole)]);
    assert_eq!(bench.needs(), [3]);
    bench.backup(values_of(0, 3, &[1.0, 2.0, 3.0, 4.0]));
    assert_eq!(bench.value(of, 3), Ok(vec![1.0, 2.0, 3.0, 4.0]));
}

#[test]
fn what_arrived_before_a_refusal_takes_no_memory() {
    let mut bench = Bench::new(Options { memory: Some(40), ..Options::default() });
    let of = lane(1, 0);
    bench.work(of, vec![shared(1, 0, &[(3, block(0, 4))])]);
    let whole = values_of(0, 3, &[1.0, 2.0, 3.0, 4.0]);
    bench.backup(gt_ir::snapshot::Backup { inventory: None, ..whole.clone() });
    assert_eq!(bench.stats().snapshot_bytes, 32);
    bench.backup(whole);
    assert_eq!(bench.stats().snapshot_bytes, 0);
    assert!(bench.value(of, 1).is_err());
}

#[test]
fn readers_of_several_slots_request_each_once() {
    let mut bench = Bench::default();
    let (one, other) = (lane(1, 0), lane(2, 0));
    bench.work(one, vec![shared(1, 0, &halves())]);
    assert_eq!(bench.needs(), [0, 1]);
    bench.backup(values_of(0, 0, &[1.0, 2.0]));
    // The rest is in flight.
    bench.work(other, vec![shared(1, 0, &halves())]);
    assert_eq!(bench.needs(), [0; 0]);
    bench.backup(values_of(0, 1, &[3.0, 4.0]));
    for lane in [one, other] {
        assert_eq!(bench.value(lane, 1), Ok(vec![1.0, 2.0, 3.0, 4.0]));
    }
    assert_eq!(bench.needs(), [0; 0]);
}

#[test]
fn a_refusal_fails_only_those_that_read_the_slot() {
    let mut bench = Bench::new(Options { memory: Some(32), ..Options::default() });
    let of = lane(1, 0);
    bench.work(of, vec![shared(1, 0, &[(0, block(0, 6))]), shared(2, 0, &[(1, block(0, 2))])]);
    assert_eq!(bench.needs(), [0, 1]);
    bench.backup(values_of(0, 0, &[1.0; 6]));
    bench.backup(values_of(0, 1, &[3.0, 4.0]));
    assert!(bench.value(of, 1).is_err());
    assert_eq!(bench.value(of, 2), Ok(vec![3.0, 4.0]));
}
