//! Preemption: long calls are paused for other sessions.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::common::*;
use gt_ir::message::WorkerToWorker;
use gt_ir::{Content, LaneId, Piece, SlotId, TransferId, WorkerId, ops};
use gt_worker::{Options, Work};

/// A session in the middle of a long call, beside one that is idle.
fn in_a_long_call(options: Options) -> (Bench, LaneId, LaneId) {
    let mut bench = Bench::new(Options { pauses: true, ..options });
    let (long, short) = (lane(1, 0), lane(2, 0));
    bench.work(long, vec![create(0, &[4.0; 100])]);
    bench.work(short, vec![create(0, &[1.0, 2.0])]);
    bench.compiler.is_slow.store(true, Ordering::Relaxed);
    let root = run(instruction(&ops::unary::SQRT, 1, 100, &[tensor(0)]));
    bench.queue(long, vec![root, fetch(1, 1), free(1)]);
    (0..3).for_each(|_| assert!(bench.worker.step(&mut bench.out)));
    assert!(bench.values().is_empty());
    (bench, long, short)
}

#[test]
fn a_short_question_is_answered_while_a_long_call_is_paused() {
    let (mut bench, _, short) = in_a_long_call(Options::default());
    bench.queue(short, vec![neg(1, 0), fetch(2, 1)]);
    (0..3).for_each(|_| assert!(bench.worker.step(&mut bench.out)));
    assert_eq!(bench.values(), [(2, Ok(vec![-1.0, -2.0]))]);
    let counted = |counter: &std::sync::atomic::AtomicU32| counter.load(Ordering::Relaxed);
    assert_eq!((counted(&bench.compiler.pauses), counted(&bench.compiler.resumptions)), (1, 1));
    bench.compiler.is_complete.store(true, Ordering::Relaxed);
    bench.run();
    assert_eq!(bench.values(), [(1, Ok(vec![2.0; 100]))]);
    assert_eq!(counted(&bench.compiler.pauses), 1, "nobody else waits");
}

#[test]
fn each_session_pays_for_its_slices_of_time() {
    let (mut bench, long, short) = in_a_long_call(Options::default());
    // A third session is interactive.
    bench.queue(lane(3, 0), vec![create(0, &[1.0])]);
    (0..3).for_each(|_| assert!(bench.worker.step(&mut bench.out)));
    // Two long calls at the same time take turns, of 25 ms.
    bench.queue(short, vec![create(5, &[9.0; 100])]);
    bench
        .queue(short, vec![run(instruction(&ops::unary::SQRT, 6, 100, &[tensor(5)])), fetch(3, 6)]);
    (0..400).for_each(|_| assert!(bench.worker.step(&mut bench.out)));
    assert!(bench.compiler.pauses.load(Ordering::Relaxed) >= 4);
    bench.compiler.is_complete.store(true, Ordering::Relaxed);
    bench.run();
    let values = bench.values();
    assert!(values.contains(&(1, Ok(vec![2.0; 100]))) && values.contains(&(3, Ok(vec![3.0; 100]))));
    bench.worker.report(false, &mut bench.out);
    let used = [long, short].map(|lane| bench.used(lane) as f64);
    assert!((0.6..1.7).contains(&(used[0] / used[1])), "{used:?}");
}

/// A driver that waits for messages itself asks how long, and the session pays for that time.
#[test]
fn a_driver_may_wait_while_a_call_computes() {
    let (mut bench, long, short) = in_a_long_call(Options::default());
    bench.worker.allow_pauses(Arc::new(|| {}));
    assert!(bench.worker.step(&mut bench.out));
    bench.worker.report(false, &mut bench.out);
    let before = bench.used(long);
    for _ in 0..3 {
        let held = bench.worker.held_for().expect("nothing else is to be done");
        bench.compiler.idle.fetch_add(held.as_micros() as u64, Ordering::Relaxed);
        assert!(bench.worker.step(&mut bench.out));
    }
    bench.worker.report(false, &mut bench.out);
    let used = bench.used(long) - before;
    assert!((30_000_000..33_000_000).contains(&used), "{used} ns");
    // Its pause is charged as well.
    bench.compiler.idle.fetch_add(5000, Ordering::Relaxed);
    bench.queue(short, vec![neg(1, 0), fetch(2, 1)]);
    (0..2).for_each(|_| assert!(bench.worker.step(&mut bench.out)));
    assert_eq!(bench.values(), [(2, Ok(vec![-1.0, -2.0]))]);
    bench.worker.report(false, &mut bench.out);
    let used = bench.used(long) - before;
    assert!((35_000_000..38_000_000).contains(&used), "{used} ns");
    bench.compiler.is_complete.store(true, Ordering::Relaxed);
    bench.run();
    assert_eq!(bench.values(), [(1, Ok(vec![2.0; 100]))]);
}

/// What a paused call has allocated is not there for others.
#[test]
fn the_memory_of_a_paused_call_counts() {
    let (mut bench, _, short) =
        in_a_long_call(Options { memory: Some(2400), ..Options::default() });
    // 816 bytes are held by tensors, 800 by the call and 800 by its result.
    bench.queue(short, vec![create(5, &[9.0; 100]), fetch(3, 5)]);
    (0..5).for_each(|_| assert!(bench.worker.step(&mut bench.out)));
    assert!(bench.values().is_empty(), "it waits for memory");
    bench.compiler.is_complete.store(true, Ordering::Relaxed);
    bench.run();
    assert_eq!(bench.values(), [(1, Ok(vec![2.0; 100])), (3, Ok(vec![9.0; 100]))]);
}

#[test]
fn a_paused_call_ends_with_its_session() {
    let (mut bench, long, short) = in_a_long_call(Options::default());
    bench.queue(short, vec![neg(1, 0)]);
    (0..2).for_each(|_| assert!(bench.worker.step(&mut bench.out)));
    for lane in [long, short] {
        bench.hand(gt_ir::message::ServerToWorker::EndSession { incarnation: lane.incarnation });
    }
    bench.run();
    assert_eq!(bench.worker.leftovers(), None);
}

/// The session for which it was to pause ends before the call reaches a cut point.
#[test]
fn a_call_that_was_told_to_pause_in_vain_continues() {
    let (mut bench, long, short) = in_a_long_call(Options::default());
    bench.compiler.is_uncut.store(true, Ordering::Relaxed);
    bench.queue(short, vec![neg(1, 0), fetch(2, 1)]);
    (0..2).for_each(|_| assert!(bench.worker.step(&mut bench.out)));
    assert!(bench.values().is_empty());
    let incarnation = short.incarnation;
    bench.hand(gt_ir::message::ServerToWorker::EndSession { incarnation });
    assert!(bench.worker.step(&mut bench.out));
    bench.compiler.is_complete.store(true, Ordering::Relaxed);
    bench.run();
    assert_eq!(bench.values(), [(1, Ok(vec![2.0; 100]))]);
    assert_eq!(bench.worker.stats().tensors, 1, "of {long:?}");
}

/// What is queued behind a call is skipped if it is not wanted any more.
#[test]
fn unwanted_work_behind_a_call_is_skipped() {
    let (mut bench, long, _) = in_a_long_call(Options::default());
    bench.queue(long, vec![neg(7, 0)]);
    bench.queue(long, vec![free(7), fetch(4, 0)]);
    bench.compiler.is_complete.store(true, Ordering::Relaxed);
    bench.computed();
    bench.run();
    assert_eq!(bench.computed(), Vec::<&str>::new());
    assert_eq!(bench.values().len(), 2);
}

/// A session that waits for its other slots is interactive: both workers pause for it at the same time.
#[test]
fn long_operations_beside_a_session_that_exchanges_are_paused() {
    let mut bench = Bench::new(Options { pauses: true, ..Options::default() });
    let (long, sharded) = (lane(2, 0), lane(1, 0));
    bench.work(long, vec![create(0, &[4.0; 100])]);
    bench.compiler.idle.fetch_add(3_000_000, Ordering::Relaxed);
    let sum = exchange(sum_with(1, 1, 1, 2));
    bench.queue(sharded, vec![slots(2), create(1, &[1.0, 2.0]), sum, neg(3, 2)]);
    assert!(bench.worker.step(&mut bench.out));
    bench.compiler.is_slow.store(true, Ordering::Relaxed);
    let root = run(instruction(&ops::unary::SQRT, 1, 100, &[tensor(0)]));
    bench.queue(long, vec![root, fetch(1, 1), free(1)]);
    (0..3).for_each(|_| assert!(bench.worker.step(&mut bench.out)));
    let result = Ok(Content::Data(data(&[1.0, 1.0])));
    let piece = Piece { transfer: TransferId(1), number: 0, from: SlotId(1), to: sharded, result };
    bench.hand(WorkerToWorker::Piece { sender: WorkerId(1), piece });
    (0..3).for_each(|_| assert!(bench.worker.step(&mut bench.out)));
    assert_eq!(bench.computed().iter().filter(|name| **name == "neg").count(), 1);
    assert_eq!(bench.compiler.pauses.load(Ordering::Relaxed), 1);
}

/// Two sessions, none of which was interactive lately.
fn at_rest() -> Bench {
    let mut bench = Bench::new(Options { pauses: true, ..Options::default() });
    bench.work(lane(1, 0), vec![create(0, &[4.0; 20]), create(1, &[4.0; 100])]);
    bench.work(lane(2, 0), vec![create(0, &[1.0, 2.0])]);
    bench.compiler.is_slow.store(true, Ordering::Relaxed);
    // Three seconds pass.
    bench.compiler.idle.fetch_add(3_000_000, Ordering::Relaxed);
    bench
}

/// Floods beside each other gain nothing from pauses.
#[test]
fn long_operations_beside_a_session_that_is_not_interactive_run_at_once() {
    let mut bench = at_rest();
    let root = run(instruction(&ops::unary::SQRT, 2, 20, &[tensor(0)]));
    bench.queue(lane(1, 0), vec![root, fetch(1, 2)]);
    // The call is complete only if it was not begun as one that can be paused.
    (0..3).for_each(|_| _ = bench.worker.step(&mut bench.out));
    assert_eq!(bench.values(), [(1, Ok(vec![2.0; 20]))]);
}

/// One who returns to a notebook does not wait for the end of what others have begun.
#[test]
fn very_long_operations_are_paused_for_a_session_that_was_at_rest() {
    let mut bench = at_rest();
    let root = run(instruction(&ops::unary::SQRT, 2, 100, &[tensor(1)]));
    bench.queue(lane(1, 0), vec![root, fetch(1, 2)]);
    (0..3).for_each(|_| assert!(bench.worker.step(&mut bench.out)));
    bench.queue(lane(2, 0), vec![neg(1, 0), fetch(2, 1)]);
    (0..3).for_each(|_| assert!(bench.worker.step(&mut bench.out)));
    assert_eq!(bench.values(), [(2, Ok(vec![-1.0, -2.0]))]);
    bench.compiler.is_complete.store(true, Ordering::Relaxed);
    bench.run();
    assert_eq!(bench.values(), [(1, Ok(vec![2.0; 100]))]);
}

/// A session that is alone is not paused, and its calls are not of that kind.
#[test]
fn a_session_that_is_alone_runs_its_operations_at_once() {
    let mut bench = Bench::new(Options { pauses: true, ..Options::default() });
    bench.compiler.is_slow.store(true, Ordering::Relaxed);
    bench.work(lane(1, 0), vec![create(0, &[4.0; 100])]);
    let root = run(instruction(&ops::unary::SQRT, 1, 100, &[tensor(0)]));
    bench.work(lane(1, 0), vec![root, fetch(1, 1)]);
    assert_eq!(bench.values(), [(1, Ok(vec![2.0; 100]))]);
}
