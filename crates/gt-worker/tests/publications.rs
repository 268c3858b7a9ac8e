//! Published tensors, which lanes read without copies.

use std::sync::atomic::Ordering;

use crate::common::*;
use gt_ir::message::ServerToWorker;
use gt_ir::snapshot::{Backup, ToPublish};
use gt_ir::{LaneId, SessionId, TensorId, WorkerCommand, ops};
use gt_worker::{Options, Work};

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
    bench.backup(Backup { inventory: None, ..whole.clone() });
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

/// The lane that publishes may come to the command long after the end.
#[test]
fn nothing_is_stored_of_a_publication_that_has_ended() {
    let mut bench = Bench::default();
    let of = lane(1, 0);
    bench.work(of, vec![create(1, &[1.0, 2.0])]);
    bench.queue(of, vec![publish(0, 1, 2)]);
    bench.drop_snapshots(publication(0));
    assert_eq!(bench.stored(), [Err("the publication has ended".to_string())]);
    assert_eq!(bench.stats().snapshot_bytes, 0);
    // Another one has a number of its own.
    bench.work(of, vec![publish(1, 1, 2)]);
    assert_eq!((bench.stored().pop(), bench.stats().snapshot_bytes), (Some(Ok(16)), 16));
}

#[test]
fn a_publication_that_ends_while_it_is_stored_in_parts_leaves_nothing() {
    let mut bench = Bench::default();
    let of = lane(1, 0);
    bench.work(of, vec![create(1, &[1.0])]);
    let part = |index| ToPublish { tensor: TensorId(1), index, block: block(0, 1) };
    bench.queue(of, vec![publish_all(0, (0..2000).map(TensorId).map(part).collect())]);
    // Another lane has turns in between.
    bench.queue(lane(2, 0), vec![create(1, &[1.0, 2.0])]);
    bench.queue(lane(2, 0), (0..1000).map(|id| neg(id + 2, 1)).collect());
    while bench.stats().snapshot_bytes == 0 {
        assert!(bench.worker.step(&mut bench.out));
    }
    assert!(bench.stats().snapshot_bytes < 16_000);
    bench.drop_snapshots(publication(0));
    assert_eq!(bench.stats().snapshot_bytes, 0);
    assert!(matches!(&bench.stored()[..], [Err(_)]));
}

#[test]
fn the_end_of_a_session_wakes_no_reader_of_publications() {
    let mut bench = Bench::default();
    let of = lane(1, 0);
    bench.work(of, vec![create(1, &[1.0, 2.0]), publish(0, 1, 2)]);
    let end = |session| ServerToWorker::Retain { session, snapshot: None, next: 0 };
    bench.hand(end(SessionId(7)));
    assert!(!bench.worker.step(&mut bench.out));
    bench.hand(end(publication(0)));
    assert!(bench.worker.step(&mut bench.out));
}

/// A bench whose lane has published a vector as publication 0, of which others may be views.
fn with_views(options: Options) -> (Bench, LaneId) {
    let mut bench = Bench::new(options);
    bench.compiler.makes_views.store(true, Ordering::Relaxed);
    let of = lane(1, 0);
    bench.work(of, vec![create(1, &[1.0, 2.0]), publish(0, 1, 2)]);
    assert_eq!(bench.stats().bytes, 16);
    (bench, of)
}

/// `output` is a view of all of `input`, two numbers.
fn view(output: u64, input: u64) -> WorkerCommand {
    let mut view = instruction(&ops::slice::SLICE, output, 2, &[tensor(input)]);
    view.attributes = block(0, 2).region();
    run(view)
}

fn has_ended(bench: &mut Bench, of: LaneId, id: u64) -> bool {
    let value = bench.value(of, id);
    value.is_err_and(|reason| reason.contains("the tensor was shared from has ended"))
}

#[test]
fn views_of_published_tensors_end_with_the_publication_and_results_stay() {
    for batch_size in [1, 8] {
        let (mut bench, _) = with_views(Options { batch_size, ..Options::default() });
        let (of, whole) = (lane(2, 0), [(0, block(0, 2))]);
        bench.work(of, vec![shared(1, 0, &whole), view(2, 1), view(3, 2), neg(4, 3)]);
        // One of which only a view is left, made before and in its last use.
        bench.work(of, vec![shared(5, 0, &whole), view(6, 5)]);
        bench.work(of, vec![free(5), shared(7, 0, &whole)]);
        bench.work(of, vec![view(8, 7), free(7)]);
        assert_eq!(bench.stats().bytes, 16 + 16, "the publisher's and the result");
        bench.drop_snapshots(publication(0));
        for id in [1, 2, 3, 6, 8] {
            assert!(has_ended(&mut bench, of, id), "{id} of batches of {batch_size}");
        }
        assert_eq!(bench.value(of, 4), Ok(vec![-1.0, -2.0]));
        bench.work(of, [1, 2, 3, 4, 6, 8].map(free).into());
        assert_eq!(bench.stats().bytes, 16);
    }
}

#[test]
fn views_in_iterations_end_with_the_publication() {
    let (mut bench, _) = with_views(Options::default());
    let (of, whole) = (lane(2, 0), [(0, block(0, 2))]);
    let WorkerCommand::Run(view) = view(20, 1) else { panic!("it is an instruction") };
    let definition = template(0, 20, 1, &[Of::Run((*view).clone()), Of::Free(1)]);
    let mut sender = Invoker::new(&definition);
    bench.work(of, vec![define(&definition)]);
    let first = definition.start.tensors[0];
    for base in [21, 22] {
        bench.work(of, vec![shared(first.0, 0, &whole)]);
        bench.work(of, vec![invoke(sender.next(base, &[], &[]))]);
        assert_eq!(bench.value(of, base), Ok(vec![1.0, 2.0]));
        assert_eq!(bench.stats().bytes, 16, "the publisher's");
    }
    bench.drop_snapshots(publication(0));
    assert!(has_ended(&mut bench, of, 21) && has_ended(&mut bench, of, 22));
}

/// The lane that publishes may read the publication: it has the same memory twice.
#[test]
fn views_of_what_a_lane_has_published_stay() {
    let (mut bench, of) = with_views(Options::default());
    bench.work(of, vec![shared(2, 0, &[(0, block(0, 2))]), view(3, 1), view(4, 2)]);
    assert_eq!(bench.stats().bytes, 16);
    bench.drop_snapshots(publication(0));
    assert!(has_ended(&mut bench, of, 2) && has_ended(&mut bench, of, 4));
    for id in [1, 3] {
        assert_eq!(bench.value(of, id), Ok(vec![1.0, 2.0]));
    }
    bench.work(of, vec![free(1)]);
    assert_eq!(bench.stats().bytes, 16, "a view has it still");
    bench.work(of, vec![free(3)]);
    assert_eq!(bench.stats().bytes, 0);
}

#[test]
fn what_a_long_call_reads_fails_after_the_call() {
    let mut bench = Bench::new(Options { pauses: true, ..Options::default() });
    bench.compiler.makes_views.store(true, Ordering::Relaxed);
    let (publisher, of) = (lane(1, 0), lane(2, 0));
    bench.work(publisher, vec![create(1, &[4.0; 100]), publish(0, 1, 100)]);
    let mut view = instruction(&ops::slice::SLICE, 2, 100, &[tensor(1)]);
    view.attributes = block(0, 100).region();
    bench.work(of, vec![shared(1, 0, &[(0, block(0, 100))]), run(view)]);
    bench.compiler.is_slow.store(true, Ordering::Relaxed);
    let root = instruction(&ops::unary::SQRT, 3, 100, &[tensor(1)]);
    bench.queue(of, vec![run(root), fetch(3, 3)]);
    (0..3).for_each(|_| assert!(bench.worker.step(&mut bench.out)));
    let end = ServerToWorker::Retain { session: publication(0), snapshot: None, next: 0 };
    bench.hand(end);
    (0..3).for_each(|_| assert!(bench.worker.step(&mut bench.out)));
    assert_eq!(bench.values().len(), 0, "it computes");
    bench.compiler.is_complete.store(true, Ordering::Relaxed);
    bench.run();
    assert_eq!(bench.values(), [(3, Ok(vec![2.0; 100]))]);
    assert!(has_ended(&mut bench, of, 1) && has_ended(&mut bench, of, 2));
    assert_eq!(bench.value(of, 3), Ok(vec![2.0; 100]));
}
