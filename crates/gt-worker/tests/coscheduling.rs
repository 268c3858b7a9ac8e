//! Coscheduling: the device is reserved for a session that waits for a piece.

use std::sync::atomic::Ordering;

use crate::common::*;
use gt_ir::message::{WorkerToServer, WorkerToWorker};
use gt_ir::{Content, LaneId, Piece, SlotId, TransferId, WorkerId, ops};
use gt_worker::{Out, Work};

/// A session that adds up with slot 1, again and again, and one with long operations beside it.
fn beside_long_turns(sharded: u32) -> (Bench, LaneId) {
    let mut bench = Bench::default();
    let (to, other) = (lane(sharded, 0), lane(5, 0));
    bench.queue(other, vec![create(0, &[1.0; 100])]);
    let long = |name| run(instruction(&ops::unary::SQRT, name, 100, &[tensor(0)]));
    bench.queue(other, (1..1000).map(long).collect());
    bench.queue(to, vec![slots(2), create(1, &[1.0, 2.0])]);
    // It is known how long these take once they have had a turn beside others.
    (0..2).for_each(|_| assert!(bench.worker.step(&mut bench.out)));
    assert!(count(&bench, "sqrt") > 100);
    let steps = (1..10).flat_map(|step| {
        let (sum, next) = (100 + step, 1 + step);
        [exchange(sum_with(step, 1, step, sum)), neg(next, sum)]
    });
    bench.queue(to, steps.collect());
    assert!(bench.worker.step(&mut bench.out));
    (bench, to)
}

/// Slot 1 sends its piece of a step.
fn send(bench: &mut Bench, to: LaneId, step: u64) {
    let result = Ok(Content::Data(data(&[1.0, 1.0])));
    let piece = Piece { transfer: TransferId(step), number: 0, from: SlotId(1), to, result };
    bench.hand(WorkerToWorker::Piece { sender: WorkerId(1), piece });
}

fn count(bench: &Bench, name: &str) -> usize {
    bench.computed().iter().filter(|computed| **computed == name).count()
}

#[test]
fn the_device_is_held_until_a_sessions_block_arrives() {
    let (mut bench, to) = beside_long_turns(1);
    for step in 1..5 {
        for _ in 0..3 {
            assert!(bench.worker.step(&mut bench.out) && bench.worker.held_for().is_some());
        }
        assert_eq!(count(&bench, "sqrt"), 0, "nobody else is served");
        send(&mut bench, to, step);
        assert!(bench.worker.step(&mut bench.out));
        assert_eq!(count(&bench, "neg"), 1, "it goes on at once");
    }
}

/// Not for a piece that does not come.
#[test]
fn the_device_is_held_for_a_limited_time() {
    let (mut bench, to) = beside_long_turns(1);
    // Their turns take a second, of which a tenth is waited for.
    bench.compiler.idle.fetch_add(90_000, Ordering::Relaxed);
    assert!(bench.worker.step(&mut bench.out) && bench.worker.held_for().is_some());
    // More commands of the session do not begin the time anew.
    bench.queue(to, vec![neg(50, 1)]);
    assert!(bench.worker.step(&mut bench.out) && bench.worker.held_for().is_some());
    bench.compiler.idle.fetch_add(20_000, Ordering::Relaxed);
    assert!(bench.worker.step(&mut bench.out) && bench.worker.held_for().is_none());
    assert_eq!(count(&bench, "sqrt"), 128);
    send(&mut bench, to, 1);
    assert!(bench.worker.step(&mut bench.out));
    assert_eq!(count(&bench, "neg"), 1, "it is served again");
}

/// Of two sessions with reservations, the one with the lower number has priority on every worker.
#[test]
fn a_session_with_a_lower_number_goes_first() {
    for (number, is_kept) in [(2, false), (4, true)] {
        let (mut bench, _) = beside_long_turns(3);
        let boosted = lane(number, 0);
        bench.queue(boosted, vec![slots(2), create(1, &[1.0, 2.0]), neg(2, 1)]);
        assert!(bench.worker.step(&mut bench.out) && bench.worker.held_for().is_some());
        send(&mut bench, boosted, 1);
        assert!(bench.worker.step(&mut bench.out));
        assert_eq!(bench.worker.held_for().is_some(), is_kept, "session {number}");
        assert_eq!(count(&bench, "neg"), usize::from(!is_kept));
    }
}

/// The session pays for that time, once.
#[test]
fn held_device_time_is_charged_to_the_session() {
    let used = |waits: bool| {
        let (mut bench, to) = beside_long_turns(1);
        if waits {
            assert!(bench.worker.step(&mut bench.out) && bench.worker.held_for().is_some());
            bench.compiler.idle.fetch_add(1_000, Ordering::Relaxed);
        }
        send(&mut bench, to, 1);
        assert!(bench.worker.held_for().is_none(), "it is there");
        bench.out.clear();
        bench.worker.report(false, &mut bench.out);
        bench.out.iter().fold(0, |sum, out| match out {
            Out::Server(WorkerToServer::LaneDone { lane, usage, .. }) if *lane == to => {
                sum + usage.device
            }
            _ => sum,
        })
    };
    assert_eq!(used(true) - used(false), 1_000_000, "the device was kept for a millisecond");
}

/// Sessions with short turns run during the reservation: the device is not idle.
#[test]
fn short_turns_run_while_the_device_is_held() {
    let mut bench = Bench::default();
    let (to, other) = (lane(1, 0), lane(5, 0));
    bench.queue(to, vec![slots(2)]);
    bench.queue(other, vec![create(0, &[1.0, 2.0]), neg(1, 0)]);
    (0..2).for_each(|_| assert!(bench.worker.step(&mut bench.out)));
    // What came first of it is served first, and it is ready when the other waits.
    bench.queue(other, vec![neg(2, 0)]);
    send(&mut bench, to, 7);
    bench.queue(to, vec![create(1, &[1.0, 2.0]), exchange(sum_with(1, 1, 1, 2)), neg(3, 2)]);
    bench.computed();
    while bench.worker.step(&mut bench.out) {
        assert!(bench.worker.held_for().is_none());
    }
    assert_eq!(count(&bench, "neg"), 1, "the other's");
}
