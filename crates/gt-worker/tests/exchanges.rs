//! Exchanges: tensors assembled from pieces of other slots.

use crate::common::*;
use gt_ir::message::{Failure, ServerToWorker, WorkerToWorker};
use gt_ir::{LaneId, Piece, SlotId, SourceId, TransferId, WorkerId, ops};
use gt_worker::{Out, Work};

const HALVES: [(u32, usize); 2] = [(1, 0), (2, 2)];

fn halves() -> gt_ir::Exchange {
    let from = HALVES.map(|(slot, start)| (slot, block(start, 2)));
    gather(1, 9, 4, &from)
}

#[test]
fn blocks_may_arrive_before_and_after_the_exchange_command() {
    let (early, late) = ((1, [1.0, 2.0]), (2, [3.0, 4.0]));
    // How many of them come before the exchange.
    for before in 0..=2 {
        for pieces in [[early, late], [late, early]] {
            let mut bench = Bench::default();
            let to = lane(1, 0);
            for (from, numbers) in &pieces[..before] {
                bench.piece(1, *from, to, numbers);
            }
            bench.work(to, vec![slots(3), exchange(halves()), fetch(5, 9), fetch(6, 9)]);
            for (from, numbers) in &pieces[before..] {
                assert_eq!(bench.values(), [], "it waits for slot {from}");
                bench.piece(1, *from, to, numbers);
            }
            let whole = Ok(vec![1.0, 2.0, 3.0, 4.0]);
            assert_eq!(bench.values(), [(5, whole.clone()), (6, whole)]);
            assert_eq!(bench.done(to), 4);
        }
    }
}

#[test]
fn own_blocks_are_sent_at_once_and_added() {
    let mut bench = Bench::default();
    let to = lane(1, 0);
    let commands =
        vec![slots(2), create(1, &[1.0, 2.0]), exchange(sum_with(4, 1, 1, 2)), neg(3, 2)];
    bench.work(to, commands);
    let sent: Vec<&Out> = bench.out.iter().filter(|out| matches!(out, Out::Worker(..))).collect();
    let [Out::Worker(WorkerId(1), piece)] = sent.as_slice() else { panic!("{sent:?}") };
    assert_eq!((piece.transfer, piece.from, piece.to), (TransferId(4), SlotId(0), lane(1, 1)));
    assert_eq!(numbers(piece.result.as_ref().unwrap()), [1.0, 2.0]);
    bench.piece(4, 1, to, &[10.0, 20.0]);
    assert_eq!(bench.value(to, 3), Ok(vec![-11.0, -22.0]));
    // The same piece once more is too late, and changes nothing.
    bench.piece(4, 1, to, &[7.0, 7.0]);
    assert_eq!(bench.value(to, 2), Ok(vec![11.0, 22.0]));
    assert_eq!(bench.stats().tensors, 3);
}

/// A message that others wait for is not held back by what is computed after it.
#[test]
fn a_piece_is_sent_before_the_next_operation_is_computed() {
    let mut bench = Bench::default();
    let to = lane(1, 0);
    // The other piece has arrived, so that the lane continues at once.
    bench.work(to, vec![slots(2), create(1, &[1.0, 2.0]), create(5, &[1.0; 100])]);
    // Its turns are long.
    let long = |name| run(instruction(&ops::unary::SQRT, name, 100, &[tensor(5)]));
    bench.work(to, (50..100).map(long).collect());
    bench.piece(4, 1, to, &[10.0, 20.0]);
    let commands =
        vec![exchange(sum_with(4, 1, 1, 2)), free(1), fetch(7, 2), neg(3, 2), fetch(8, 3)];
    bench.queue(to, commands);
    assert!(bench.worker.step(&mut bench.out));
    assert!(bench.out.iter().any(|out| matches!(out, Out::Worker(WorkerId(1), _))));
    assert_eq!(bench.values(), [(7, Ok(vec![11.0, 22.0]))]);
    assert!(!bench.computed().contains(&"neg"));
    bench.run();
    assert_eq!(bench.values(), [(8, Ok(vec![-11.0, -22.0]))]);
}

#[test]
fn a_waiting_lane_blocks_no_other() {
    let mut bench = Bench::default();
    let waits = lane(1, 0);
    bench.work(waits, vec![slots(3), exchange(halves()), fetch(5, 9)]);
    // Another session of that worker, and another slot of the same session.
    for other in [lane(2, 0), lane(1, 1)] {
        bench.work(other, vec![create(1, &[1.0, 2.0]), neg(2, 1)]);
        assert_eq!(bench.value(other, 2), Ok(vec![-1.0, -2.0]));
        assert_eq!(bench.done(other), 3);
    }
    assert_eq!(bench.done(waits), 0);
    // Commands that need no pending tensor go on in the same lane.
    let mut bench = Bench::default();
    let rest = vec![create(1, &[1.0, 2.0]), neg(2, 1), fetch(6, 2)];
    bench.work(waits, [vec![slots(3), exchange(halves())], rest].concat());
    assert_eq!(bench.values(), [(6, Ok(vec![-1.0, -2.0]))]);
}

/// Two sessions have exchanges with the same transfer number: their pieces are not mixed up.
#[test]
fn blocks_belong_to_one_session() {
    let mut bench = Bench::default();
    let lanes: [LaneId; 2] = [lane(1, 0), lane(2, 0)];
    for to in lanes {
        bench.work(to, vec![slots(3), exchange(halves()), fetch(u64::from(to.incarnation.0), 9)]);
    }
    for (slot, number) in [(1, 1.0), (2, 3.0)] {
        for to in lanes {
            let number = number * f64::from(to.incarnation.0);
            bench.piece(1, slot, to, &[number, number]);
        }
    }
    let of = |session: f64| Ok([1.0, 1.0, 3.0, 3.0].map(|x| x * session).to_vec());
    assert_eq!(bench.values(), [(1, of(1.0)), (2, of(2.0))]);
}

#[test]
fn a_failed_or_wrong_block_fails_only_its_tensor() {
    let failure = Failure::new("log", "no", "v", SourceId(3));
    let failed = Err(failure);
    let wrong = Ok(gt_ir::Content::Data(data(&[1.0, 2.0, 3.0])));
    for (result, said) in [(failed, "log: no"), (wrong, "a piece is float64 (3,), expected (2,)")] {
        let mut bench = Bench::default();
        let to = lane(1, 0);
        bench.work(to, vec![slots(3), create(1, &[5.0, 6.0]), exchange(halves())]);
        bench.piece(1, 1, to, &[1.0, 2.0]);
        let piece = Piece { transfer: TransferId(1), number: 0, from: SlotId(2), to, result };
        bench.hand(WorkerToWorker::Piece { sender: WorkerId(2), piece });
        let error = bench.value(to, 9).unwrap_err();
        assert!(error.contains(said), "{error}");
        assert_eq!(bench.value(to, 1), Ok(vec![5.0, 6.0]));
    }
}

#[test]
fn exchanges_with_a_lost_worker_fail() {
    let mut bench = Bench::default();
    let (one, two) = (lane(1, 0), lane(2, 0));
    for to in [one, two] {
        bench.work(to, vec![slots(3), exchange(halves()), fetch(u64::from(to.incarnation.0), 9)]);
    }
    // Session 2 has already received the lost worker's piece.
    bench.piece(1, 2, two, &[3.0, 4.0]);
    bench.hand(ServerToWorker::WorkerLost { worker: WorkerId(2), name: "gone".into() });
    bench.run();
    assert_eq!(bench.values(), []);
    bench.piece(1, 1, one, &[1.0, 2.0]);
    bench.piece(1, 1, two, &[1.0, 2.0]);
    let values = bench.values();
    let error = values[0].1.clone().unwrap_err();
    assert!(error.contains("all_gather") && error.contains("'gone'"), "{error}");
    assert_eq!(values[1], (2, Ok(vec![1.0, 2.0, 3.0, 4.0])));
}

/// A tensor that is freed while it is pending takes no memory when its pieces come.
#[test]
fn a_tensor_freed_while_its_exchange_is_pending_is_dropped() {
    let mut bench = Bench::default();
    let to = lane(1, 0);
    bench.work(to, vec![slots(3), exchange(halves()), free(9)]);
    bench.piece(1, 1, to, &[1.0, 2.0]);
    bench.piece(1, 2, to, &[3.0, 4.0]);
    assert_eq!((bench.stats().tensors, bench.done(to)), (0, 3));
    let error = bench.value(to, 9).unwrap_err();
    assert!(error.contains("does not exist"), "{error}");
}
