//! How the memory of published tensors on a device is counted.

use std::sync::atomic::Ordering;

use crate::common::*;
use gt_ir::message::ServerToWorker;
use gt_ir::{LaneId, ops};
use gt_worker::{FileJob, Options, Out};

/// A bench whose engine has the memory of a device, with 800 bytes published by its lane.
fn on_a_device(options: Options) -> (Bench, LaneId) {
    let mut bench = Bench::new(Options { spill_from: 1, ..options });
    bench.compiler.is_device.store(true, Ordering::Relaxed);
    bench.compiler.makes_views.store(true, Ordering::Relaxed);
    let of = lane(1, 0);
    bench.work(of, vec![create(1, &[1.0; 100]), publish(0, 1, 100)]);
    assert_eq!(bench.stored(), [Ok(800)]);
    (bench, of)
}

fn on_a_large_device() -> (Bench, LaneId) {
    on_a_device(Options { host_memory: 1 << 20, ..Options::default() })
}

#[test]
fn what_a_lane_shares_with_publications_on_a_device_is_counted_once() {
    // The publications that end, in an order with the free of the lane's tensor.
    let (free_it, first, second) = (None, Some(0), Some(1));
    for order in [[free_it, first, second], [first, free_it, second], [second, first, free_it]] {
        let (mut bench, of) = on_a_large_device();
        bench.work(of, vec![publish(1, 1, 100)]);
        for number in 0..2 {
            bench.work(lane(2, number), vec![shared(1, number, &[(0, block(0, 100))])]);
        }
        for ended in order {
            assert_eq!(bench.stats().bytes, 800, "before {ended:?} of {order:?}");
            match ended {
                Some(number) => bench.drop_snapshots(publication(number)),
                None => bench.work(of, vec![free(1)]),
            }
        }
        assert_eq!(bench.stats().bytes, 0, "{order:?}");
    }
}

#[test]
fn memory_of_a_publication_is_counted_after_the_last_view_and_after_the_session() {
    for frees in [[1, 2], [2, 1]] {
        let (mut bench, of) = on_a_large_device();
        let mut view = instruction(&ops::slice::SLICE, 2, 100, &[tensor(1)]);
        view.attributes = block(0, 100).region();
        bench.work(of, vec![run(view)]);
        for id in frees {
            assert_eq!(bench.stats().bytes, 800);
            bench.work(of, vec![free(id)]);
        }
        assert_eq!(bench.stats().bytes, 800);
        bench.drop_snapshots(publication(0));
        assert_eq!(bench.stats().bytes, 0);
    }
    let (mut bench, of) = on_a_large_device();
    bench.hand(ServerToWorker::EndSession { incarnation: of.incarnation });
    assert_eq!((bench.stats().bytes, bench.stats().tensors), (800, 0));
    let negative = run(instruction(&ops::unary::NEG, 2, 100, &[tensor(1)]));
    bench.work(lane(2, 0), vec![shared(1, 0, &[(0, block(0, 100))]), negative]);
    assert_eq!(bench.stats().bytes, 1600);
    bench.drop_snapshots(publication(0));
    assert_eq!(bench.stats().bytes, 800);
}

#[test]
fn a_tensor_that_a_publication_has_on_a_device_is_not_spilled() {
    let options = Options { memory: Some(1600), host_memory: 1 << 20, ..Options::default() };
    let (mut bench, of) = on_a_device(options);
    bench.work(of, vec![create(2, &[2.0; 100]), create(3, &[3.0; 100])]);
    assert_eq!((bench.stats().bytes, bench.stats().spilled_bytes), (1600, 800));
    bench.work(of, vec![free(3)]);
    assert_eq!(bench.value(of, 2), Ok(vec![2.0; 100]));
}

#[test]
fn values_of_a_publication_on_a_device_are_moved_to_disk() {
    let options = Options { host_memory: 100, spill: 1 << 20, ..Options::default() };
    let (bench, _) = on_a_device(options);
    let moved = |out: &&Out| matches!(out, Out::Files(FileJob::SpillSnapshot { .. }));
    assert_eq!(bench.out.iter().filter(moved).count(), 1);
    // On a host they are in use.
    let mut bench =
        Bench::new(Options { memory: Some(1600), spill: 1 << 20, spill_from: 1, ..options });
    bench.work(lane(1, 0), vec![create(1, &[1.0; 100]), publish(0, 1, 100)]);
    bench.work(lane(1, 0), vec![create(2, &[1.0; 50])]);
    assert_eq!(bench.out.iter().filter(moved).count(), 0);
}
