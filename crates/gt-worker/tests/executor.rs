//! A lane runs its commands in order; a failed command fails what depends on it, and nothing else.

use crate::common::*;
use gt_ir::{DType, Incarnation, Meta, Shape, ops};
use gt_worker::Options;

/// Workers that run commands one by one, and in batches: the results must be the same.
fn benches() -> [Bench; 2] {
    [1, 8].map(|batch_size| Bench::new(Options { batch_size, ..Options::default() }))
}

#[test]
fn commands_run_in_order() {
    for mut bench in benches() {
        let one = lane(1, 0);
        let commands = vec![
            create(1, &[1.0, 2.0]),
            run(add(2, 1, number(10.0))),
            fetch(7, 2),
            // The name is reused: the earlier fetch got the earlier value.
            run(add(2, 2, tensor(1))),
            free(1),
            fetch(8, 2),
            fetch(9, 1),
        ];
        bench.work(one, commands);
        assert_eq!(bench.computed(), ["add", "add"]);
        let values = bench.values();
        assert_eq!(values[0], (7, Ok(vec![11.0, 12.0])));
        assert_eq!(values[1], (8, Ok(vec![12.0, 14.0])));
        let gone = values[2].1.clone().unwrap_err();
        assert!(gone.contains("tensor 1 does not exist"), "{gone}");
        assert_eq!((bench.done(one), bench.stats().tensors), (7, 1));
    }
}

/// Commands are computed in turns, not on arrival.
#[test]
fn commands_run_in_turns() {
    let mut bench = Bench::default();
    for session in [1, 2] {
        let commands = (0..200).map(|index| create(index, &[0.0]));
        bench.queue(lane(session, 0), commands.collect());
    }
    assert_eq!(bench.stats().tensors, 0);
    gt_worker::Work::step(&mut bench.worker, &mut bench.out);
    // A turn is less than what either has to do.
    assert_eq!((bench.done(lane(1, 0)), bench.done(lane(2, 0))), (0, 0));
    assert!((1..200).contains(&bench.stats().tensors), "{}", bench.stats().tensors);
    bench.run();
    assert_eq!((bench.done(lane(1, 0)), bench.done(lane(2, 0))), (200, 200));
}

#[test]
fn an_error_fails_only_its_dependents() {
    let bad = [&ops::unary::LOG, &ops::unary::SQRT];
    for (operation, said) in bad.into_iter().zip(["logarithm of -1", "panicked: root of -1"]) {
        for mut bench in benches() {
            let one = lane(1, 0);
            let commands = vec![
                create(1, &[-1.0, 4.0]),
                create(2, &[4.0, 4.0]),
                run(instruction(operation, 3, 2, &[tensor(1)])),
                run(add(4, 2, number(1.0))),
                run(add(5, 3, tensor(4))),
                run(add(6, 4, tensor(2))),
            ];
            bench.work(one, commands);
            let error = bench.value(one, 5).unwrap_err();
            assert!(error.contains(operation.name) && error.contains(said), "{error}");
            assert_eq!(bench.value(one, 3).unwrap_err(), error);
            assert_eq!(bench.value(one, 4), Ok(vec![5.0, 5.0]));
            assert_eq!(bench.value(one, 6), Ok(vec![9.0, 9.0]));
            // The operand is unchanged, and other sessions are not affected.
            assert_eq!(bench.value(one, 1), Ok(vec![-1.0, 4.0]));
            bench.work(lane(2, 0), vec![create(1, &[1.0, 1.0]), neg(3, 1)]);
            assert_eq!(bench.value(lane(2, 0), 3), Ok(vec![-1.0, -1.0]));
            assert_eq!(bench.stats().operations_failed, 2);
        }
    }
}

#[test]
fn a_wrong_declared_result_fails_the_instruction() {
    let wrong = [
        (vec![meta(3)], "is declared as float64 (3,), but is float64 (2,)"),
        (vec![Meta::new(DType::F32, shape(2))], "is declared as float32 (2,)"),
        (vec![Meta::new(DType::F64, Shape::SCALAR)], "is declared as float64 ()"),
        (vec![], "0 results are declared, and it has 1"),
        (vec![meta(2), meta(2)], "2 results are declared, and it has 1"),
    ];
    for (results, said) in wrong {
        for mut bench in benches() {
            let one = lane(1, 0);
            let mut lies = add(2, 1, number(1.0));
            lies.results = results.iter().copied().collect();
            let honest = add(8, 1, number(2.0));
            let commands = vec![create(1, &[1.0, 2.0]), run(lies), neg(7, 2), run(honest)];
            bench.work(one, commands);
            assert_eq!(bench.value(one, 8), Ok(vec![3.0, 4.0]));
            if !results.is_empty() {
                let error = bench.value(one, 2).unwrap_err();
                assert!(error.contains(said), "{error}");
                // Further declared results have failed, too.
                assert!(results.len() == 1 || bench.value(one, 3).unwrap_err() == error);
            }
            bench.value(one, 7).unwrap_err();
            assert_eq!(bench.computed(), ["add"], "{said}");
        }
    }
}

#[test]
fn missing_or_mismatched_operands_are_reported() {
    for mut bench in benches() {
        let one = lane(1, 0);
        bench.work(one, vec![create(1, &[1.0, 2.0]), create(2, &[1.0, 2.0, 3.0])]);
        bench.work(one, vec![run(add(3, 1, tensor(2))), run(add(4, 1, tensor(77)))]);
        let error = bench.value(one, 3).unwrap_err();
        assert!(error.contains("(2,)") && error.contains("(3,)"), "{error}");
        let error = bench.value(one, 4).unwrap_err();
        assert!(error.contains("tensor 77 does not exist on this worker"), "{error}");
        assert!(bench.computed().is_empty());
    }
}

#[test]
fn the_end_of_a_session_frees_only_its_memory() {
    let mut bench = Bench::default();
    let (goes, stays) = (lane(1, 0), lane(2, 0));
    bench.work(goes, vec![create(1, &[1.0; 100]), create(2, &[1.0; 50])]);
    // Another slot of the session is on this worker, and waits for a piece.
    let waits = exchange(gather(1, 4, 2, &[(0, block(0, 2))]));
    bench.work(lane(1, 1), vec![create(1, &[1.0; 10]), slots(2), waits, neg(5, 4)]);
    bench.work(stays, vec![create(1, &[3.0, 4.0])]);
    bench.queue(goes, vec![run(add(3, 1, number(1.0)))]);
    assert_eq!(
        (bench.stats().tensors, bench.stats().bytes),
        (4, 164 * 8),
        "room is kept for the piece"
    );
    bench.hand(gt_ir::message::ServerToWorker::EndSession { incarnation: Incarnation(1) });
    assert_eq!((bench.stats().tensors, bench.stats().bytes), (1, 16));
    // Queued commands are not run, and late messages create no lane.
    bench.piece(1, 0, lane(1, 1), &[1.0, 1.0]);
    bench.work(goes, vec![create(9, &[1.0]), fetch(9, 9)]);
    assert_eq!((bench.values(), bench.computed()), (vec![], vec![]));
    assert_eq!((bench.stats().tensors, bench.stats().bytes), (1, 16));
    assert_eq!(bench.value(stays, 1), Ok(vec![3.0, 4.0]));
}
