//! Templates: defined once in a lane, and run again with other tensors and numbers.

use crate::common::*;
use gt_ir::{Definition, Invocation};

/// `x * number + the previous iteration's result`; two names per iteration.
fn accumulate(number: u32) -> Definition {
    let ops = [&gt_ir::ops::binary::MUL, &gt_ir::ops::binary::ADD];
    let scaled = instruction(ops[0], 20, 2, &[tensor(1), crate::common::number(10.0)]);
    let sum = instruction(ops[1], 21, 2, &[tensor(20), tensor(19)]);
    template(number, 20, 2, &[Of::Run(scaled), Of::Run(sum), Of::Free(20)])
}

/// Gives a lane x = (1, 2), a first sum of zeros, and the template.
fn begin(bench: &mut Bench, to: gt_ir::LaneId, definition: &Definition) {
    let commands = vec![create(1, &[1.0, 2.0]), create(19, &[0.0, 0.0]), define(definition)];
    bench.work(to, commands);
}

#[test]
fn iterations_use_the_bindings_of_their_invocations() {
    let mut bench = Bench::default();
    let (to, definition) = (lane(1, 0), accumulate(3));
    begin(&mut bench, to, &definition);
    let mut sender = Invoker::new(&definition);
    // As predicted: the sum of the iteration before, and the same number.
    bench.work(to, vec![invoke(sender.next(22, &[(1, 19)], &[]))]);
    assert_eq!(bench.value(to, 23), Ok(vec![10.0, 20.0]));
    bench.work(to, vec![invoke(sender.next(24, &[(1, 23)], &[]))]);
    assert_eq!(bench.value(to, 25), Ok(vec![20.0, 40.0]));
    bench.work(to, vec![invoke(sender.next(26, &[], &[]))]);
    assert_eq!(bench.value(to, 27), Ok(vec![30.0, 60.0]));
    // The number and x change.
    bench.work(to, vec![create(2, &[0.0, 1.0]), invoke(sender.next(30, &[(0, 2)], &[(0, 5.0)]))]);
    assert_eq!(bench.value(to, 31), Ok(vec![30.0, 65.0]));
    bench.work(to, vec![invoke(sender.next(32, &[], &[]))]);
    assert_eq!(bench.value(to, 33), Ok(vec![30.0, 70.0]));
    // A tensor that the iteration frees does not exist.
    bench.value(to, 32).unwrap_err();
    let stats = bench.stats();
    assert_eq!((stats.hot_instructions, stats.operations_total), (10, 10));
    assert_eq!((stats.unique_sequences, stats.hot_sequences), (1, 1));
    // All iterations used one plan.
    assert_eq!(stats.compilation.cache_misses, 1);
}

#[test]
fn an_error_in_an_iteration_names_its_operation() {
    let mut bench = Bench::default();
    let to = lane(1, 0);
    let steps = [
        Of::Run(instruction(&gt_ir::ops::unary::LOG, 20, 2, &[tensor(1)])),
        Of::Run(add(21, 2, number(1.0))),
    ];
    let definition = template(0, 20, 2, &steps);
    let mut sender = Invoker::new(&definition);
    let commands = vec![create(1, &[-1.0, 1.0]), create(2, &[1.0, 1.0]), define(&definition)];
    bench.work(to, commands);
    bench.work(to, vec![invoke(sender.next(22, &[], &[]))]);
    let error = bench.value(to, 22).unwrap_err();
    assert!(error.contains("log") && error.contains("logarithm of -1"), "{error}");
    assert_eq!(bench.value(to, 23), Ok(vec![2.0, 2.0]));
    // The next iteration has valid input, and succeeds.
    bench.work(to, vec![create(3, &[1.0, 1.0]), invoke(sender.next(24, &[(0, 3)], &[]))]);
    assert_eq!(bench.value(to, 24), Ok(vec![0.0, 0.0]));
}

#[test]
fn a_wrong_result_in_a_template_fails_only_its_instruction() {
    let mut bench = Bench::default();
    let to = lane(1, 0);
    let mut lies = add(20, 1, number(1.0));
    lies.results = [meta(5)].into_iter().collect();
    let definition = template(0, 20, 2, &[Of::Run(lies), Of::Run(add(21, 1, number(2.0)))]);
    let mut sender = Invoker::new(&definition);
    let commands =
        vec![create(1, &[1.0, 2.0]), define(&definition), invoke(sender.next(22, &[], &[]))];
    bench.work(to, commands);
    let error = bench.value(to, 22).unwrap_err();
    assert!(error.contains("declared as float64 (5,), but is float64 (2,)"), "{error}");
    assert_eq!(bench.value(to, 23), Ok(vec![3.0, 4.0]));
}

/// An invocation that does not fit the lane's state breaks the lane, and no other.
#[test]
fn an_invalid_invocation_breaks_only_its_lane() {
    let disagrees = |sender: &mut Invoker| {
        // One iteration does not arrive.
        sender.next(22, &[(1, 19)], &[]);
        sender.next(24, &[], &[])
    };
    let unknown =
        |sender: &mut Invoker| Invocation { template: 4, ..sender.next(22, &[(1, 19)], &[]) };
    let no_slot = |sender: &mut Invoker| Invocation {
        tensors: vec![(9, gt_ir::TensorId(1))],
        ..sender.next(22, &[], &[])
    };
    let cases: [(&dyn Fn(&mut Invoker) -> Invocation, &str); 3] = [
        (&disagrees, "hot path 3: an invocation of template 3 binds other tensors or numbers"),
        (&unknown, "hot path 4: template 4 is not among"),
        (&no_slot, "hot path 3: template 3 has no such slot"),
    ];
    for (wrong, said) in cases {
        let mut bench = Bench::default();
        let (breaks, other, definition) = (lane(1, 0), lane(2, 0), accumulate(3));
        begin(&mut bench, breaks, &definition);
        begin(&mut bench, other, &definition);
        let (mut one, mut two) = (Invoker::new(&definition), Invoker::new(&definition));
        bench.queue(breaks, vec![invoke(wrong(&mut one)), fetch(1, 25), fetch(2, 1)]);
        bench.queue(other, vec![invoke(two.next(22, &[(1, 19)], &[]))]);
        bench.run();
        let broken = bench.broken();
        let [(lane, reason)] = broken.as_slice() else { panic!("{broken:?}") };
        assert_eq!(*lane, breaks);
        assert!(reason.starts_with(said), "{reason}");
        // The iteration was not run; the commands after it are answered.
        let values = bench.values();
        assert!(values[0].1.is_err() && values[1].1 == Ok(vec![1.0, 2.0]), "{values:?}");
        assert_eq!(bench.value(other, 23), Ok(vec![10.0, 20.0]));
        bench.work(other, vec![invoke(two.next(24, &[(1, 23)], &[]))]);
        assert_eq!(bench.value(other, 25), Ok(vec![20.0, 40.0]));
    }
}

/// `-x`, then `x + 7` under the same number: an iteration uses the latest definition before it.
#[test]
fn a_template_number_may_be_redefined_while_iterations_wait() {
    let mut bench = Bench::default();
    let to = lane(1, 0);
    let negated = instruction(&gt_ir::ops::unary::NEG, 20, 2, &[tensor(1)]);
    let first = template(3, 20, 1, &[Of::Run(negated)]);
    let second = template(3, 30, 1, &[Of::Run(add(30, 1, number(7.0)))]);
    let (mut one, mut two) = (Invoker::new(&first), Invoker::new(&second));
    let mut commands = vec![create(1, &[1.0, 2.0]), define(&first), invoke(one.next(21, &[], &[]))];
    commands.extend([define(&second), invoke(two.next(31, &[], &[])), fetch(1, 21), fetch(2, 31)]);
    bench.work(to, commands);
    assert_eq!(bench.values(), [(1, Ok(vec![-1.0, -2.0])), (2, Ok(vec![8.0, 9.0]))]);
    let stats = bench.stats();
    assert_eq!((stats.unique_sequences, stats.hot_sequences), (2, 1));
}

/// An iteration waits for a missing piece, while other lanes have their turns.
#[test]
fn an_iteration_waiting_for_blocks_blocks_no_other_lane() {
    let mut bench = Bench::default();
    let (to, other) = (lane(1, 0), lane(2, 0));
    let steps = [
        Of::Run(add(20, 1, number(1.0))),
        Of::Exchange(sum_with(0, 1, 20, 21)),
        Of::Run(add(22, 20, number(2.0))),
        Of::Run(add(23, 21, tensor(22))),
        Of::Free(20),
    ];
    let definition = template(0, 20, 4, &steps);
    let mut sender = Invoker::new(&definition);
    let commands = vec![
        slots(2),
        create(1, &[1.0, 2.0]),
        define(&definition),
        invoke(sender.next(24, &[], &[])),
    ];
    bench.work(to, commands);
    assert_eq!(bench.done(to), 0);
    bench.work(other, vec![create(1, &[1.0, 2.0]), neg(2, 1)]);
    assert_eq!(bench.value(other, 2), Ok(vec![-1.0, -2.0]));
    // The iteration's exchange is transfer 1, as its invocation says.
    bench.piece(1, 1, to, &[100.0, 200.0]);
    assert_eq!(bench.value(to, 27), Ok(vec![106.0, 208.0]));
    // A piece may also come before its iteration.
    let next = Invocation { transfer: gt_ir::TransferId(2), ..sender.next(28, &[], &[(0, 2.0)]) };
    bench.piece(2, 1, to, &[0.0, 0.0]);
    bench.work(to, vec![invoke(next)]);
    assert_eq!(bench.value(to, 31), Ok(vec![8.0, 10.0]));
}
