//! Unwanted work is skipped.

use crate::common::*;
use gt_ir::message::ServerToWorker;
use gt_ir::{RequestId, WorkerCommand};

/// A lane with a tensor.
fn begin(bench: &mut Bench) -> gt_ir::LaneId {
    let to = lane(1, 0);
    bench.work(to, vec![create(1, &[1.0, 2.0])]);
    to
}

#[test]
fn instructions_whose_results_are_freed_first_are_skipped_and_counted() {
    let mut bench = Bench::default();
    let to = begin(&mut bench);
    // 2, 3 and 4, which reads 3, are freed; 5 is fetched.
    let commands = vec![neg(2, 1), neg(3, 1), neg(4, 3), run(add(5, 1, number(1.0)))];
    bench.queue(to, commands);
    bench.queue(to, vec![free(2), free(3), free(4), fetch(1, 5)]);
    bench.run();
    assert_eq!(bench.values(), [(1, Ok(vec![2.0, 3.0]))]);
    assert_eq!(bench.computed(), ["add"]);
    let stats = bench.stats();
    assert_eq!((stats.operations_skipped, stats.operations_total, stats.tensors), (3, 1, 2));
    // Skipped commands count as done.
    assert_eq!(bench.done(to), 1 + 4 + 4);
}

#[test]
fn instructions_with_a_used_result_are_not_skipped() {
    let mut bench = Bench::default();
    let to = begin(&mut bench);
    // 2 is freed, but 4, made from it, is fetched; 3 is fetched before it is freed.
    let commands = vec![neg(2, 1), run(add(4, 2, tensor(1))), neg(3, 1), fetch(1, 3)];
    bench.queue(to, commands);
    bench.queue(to, vec![free(2), free(3), fetch(2, 4)]);
    bench.run();
    assert_eq!(bench.values(), [(1, Ok(vec![-1.0, -2.0])), (2, Ok(vec![0.0, 0.0]))]);
    assert_eq!(bench.stats().operations_skipped, 0);
    // A reused name is another tensor.
    bench.queue(to, vec![neg(6, 1), free(6), neg(6, 4), run(add(7, 6, number(1.0)))]);
    bench.queue(to, vec![free(6), fetch(3, 7)]);
    bench.run();
    assert_eq!(bench.values(), [(3, Ok(vec![1.0, 1.0]))]);
    assert_eq!(bench.stats().operations_skipped, 1);
}

/// Other slots depend on an exchange, so it is done even if its result is freed.
#[test]
fn an_exchange_is_not_skipped() {
    let mut bench = Bench::default();
    let to = begin(&mut bench);
    bench.queue(to, vec![slots(2), neg(2, 1), exchange(sum_with(1, 1, 2, 3))]);
    bench.queue(to, vec![free(2), free(3), fetch(1, 1)]);
    bench.run();
    let sent = bench.out.iter().any(|out| matches!(out, gt_worker::Out::Worker(..)));
    assert!(sent, "slot 1 waits for its piece");
    assert_eq!((bench.stats().operations_skipped, bench.computed()), (0, vec!["neg"]));
}

#[test]
fn frees_are_applied_early() {
    let mut bench = Bench::default();
    let to = begin(&mut bench);
    bench.work(to, vec![create(8, &[0.0; 1000]), create(9, &[0.0; 10])]);
    bench
        .queue(to, vec![neg(2, 1), run(instruction(&gt_ir::ops::unary::NEG, 3, 10, &[tensor(9)]))]);
    bench.queue(to, vec![free(8), free(9), fetch(1, 2), fetch(2, 3)]);
    // Nothing is computed yet, but 8 is freed; 9 is still read.
    assert_eq!((bench.stats().tensors, bench.stats().bytes), (2, 12 * 8));
    assert!(bench.computed().is_empty());
    bench.run();
    assert_eq!(bench.values()[1], (2, Ok(vec![-0.0; 10])));
    assert_eq!(bench.stats().tensors, 3);
}

#[test]
fn a_long_queue_is_analyzed_without_a_memory_wait() {
    let mut bench = Bench::default();
    let to = begin(&mut bench);
    let loops = |from: u64| -> Vec<WorkerCommand> {
        (from..from + 100).flat_map(|id| [neg(id, 1), free(id)]).collect()
    };
    bench.queue(to, loops(100));
    bench.queue(to, loops(300));
    bench.run();
    assert_eq!(bench.computed(), Vec::<&str>::new());
    assert_eq!(bench.stats().operations_skipped, 200);
}

#[test]
fn iterations_with_unused_results_are_skipped_and_freed() {
    let mut bench = Bench::default();
    let to = begin(&mut bench);
    // Each iteration frees the previous one's result.
    let steps = [Of::Run(add(20, 19, number(1.0))), Of::Free(19)];
    let definition = template(0, 20, 1, &steps);
    let mut sender = Invoker::new(&definition);
    bench.work(to, vec![create(19, &[0.0, 0.0]), define(&definition)]);
    bench.computed();
    bench.queue(to, vec![invoke(sender.next(21, &[(0, 19)], &[]))]);
    bench.queue(to, vec![invoke(sender.next(22, &[(0, 21)], &[]))]);
    bench.queue(to, vec![invoke(sender.next(23, &[], &[])), free(23), fetch(1, 1)]);
    bench.run();
    assert_eq!(bench.computed(), Vec::<&str>::new());
    let stats = bench.stats();
    // No tensor of the loop is left, and its bindings have advanced.
    assert_eq!((stats.tensors, stats.hot_instructions), (1, 0));
    assert!(stats.operations_skipped >= 3, "{}", stats.operations_skipped);
    bench.work(to, vec![create(24, &[5.0, 5.0]), invoke(sender.next(30, &[(0, 24)], &[]))]);
    assert_eq!(bench.value(to, 30), Ok(vec![6.0, 6.0]));
    assert_eq!(bench.broken(), []);
}

#[test]
fn cancelled_fetches_are_neither_computed_nor_answered() {
    let mut bench = Bench::default();
    let to = begin(&mut bench);
    bench.queue(to, vec![neg(2, 1), fetch(7, 2), free(2), fetch(8, 1)]);
    bench.hand(ServerToWorker::Cancel { lane: to, request: RequestId(7) });
    // Unknown requests and lanes are ignored.
    bench.hand(ServerToWorker::Cancel { lane: to, request: RequestId(99) });
    bench.hand(ServerToWorker::Cancel { lane: lane(5, 0), request: RequestId(8) });
    bench.run();
    assert_eq!(bench.values(), [(8, Ok(vec![1.0, 2.0]))]);
    assert_eq!((bench.computed(), bench.stats().operations_skipped), (vec![], 1));
    assert_eq!(bench.done(to), 5);
}

/// A fetch that waits for a piece no longer blocks its lane once it is cancelled.
#[test]
fn a_lane_resumes_when_the_fetch_it_waits_for_is_cancelled() {
    let mut bench = Bench::default();
    let to = begin(&mut bench);
    let pending = exchange(gather(1, 9, 2, &[(1, block(0, 2))]));
    bench.work(to, vec![slots(2), pending, fetch(7, 9), fetch(8, 1)]);
    assert_eq!(bench.values(), []);
    bench.hand(ServerToWorker::Cancel { lane: to, request: RequestId(7) });
    bench.run();
    assert_eq!(bench.values(), [(8, Ok(vec![1.0, 2.0]))]);
}
