//! Compiled code is taken after a number of runs, whenever the compiler is done.

use std::sync::atomic::Ordering;

use crate::common::*;
use gt_ir::message::{WorkerToServer, WorkerToWorker};
use gt_ir::snapshot::Snapshot;
use gt_ir::{Incarnation, SessionId, WorkerCommand};
use gt_worker::{Out, Work};

/// A lane with `x` and a template that negates it, which is invoked `count` times.
fn negations(bench: &mut Bench, to: gt_ir::LaneId, count: u64) {
    let step = instruction(&gt_ir::ops::unary::NEG, 20, 2, &[tensor(1)]);
    let definition = template(0, 20, 1, &[Of::Run(step)]);
    let mut sender = Invoker::new(&definition);
    let mut commands = vec![create(1, &[1.0, 2.0]), define(&definition)];
    commands.extend((0..count).map(|index| invoke(sender.next(21 + index, &[], &[]))));
    bench.queue(to, commands);
}

fn steps(bench: &mut Bench, count: usize) {
    for _ in 0..count {
        bench.worker.step(&mut bench.out);
    }
}

#[test]
fn a_lane_uses_compiled_code_after_its_own_warmup() {
    let mut bench = Bench::default();
    bench.compiler.warmup.store(2, Ordering::Relaxed);
    negations(&mut bench, lane(1, 0), 4);
    bench.run();
    assert_eq!(bench.computed(), ["neg", "neg", "compiled", "neg", "compiled", "neg"]);
    // Another session has the same plan, and counts anew.
    negations(&mut bench, lane(2, 0), 3);
    bench.run();
    assert_eq!(bench.computed(), ["neg", "neg", "compiled", "neg"]);
    assert_eq!(bench.stats().compilation.cache_misses, 1);
}

#[test]
fn a_lane_waiting_for_its_compiler_blocks_no_other() {
    let mut bench = Bench::default();
    bench.compiler.warmup.store(1, Ordering::Relaxed);
    bench.compiler.is_busy.store(true, Ordering::Relaxed);
    let (to, other) = (lane(1, 0), lane(2, 0));
    negations(&mut bench, to, 3);
    steps(&mut bench, 20);
    assert_eq!(bench.computed(), ["neg"]);
    bench.queue(other, vec![create(1, &[1.0, 2.0]), neg(2, 1), fetch(5, 2)]);
    steps(&mut bench, 20);
    assert_eq!(bench.values(), [(5, Ok(vec![-1.0, -2.0]))]);
    assert_eq!(bench.done(to), 0);
    bench.compiler.is_busy.store(false, Ordering::Relaxed);
    bench.computed();
    bench.run();
    assert_eq!(bench.computed(), ["compiled", "neg", "compiled", "neg"]);
    assert_eq!(bench.value(to, 23), Ok(vec![-1.0, -2.0]));
}

#[test]
fn the_end_of_a_session_ends_its_compiler_wait() {
    let mut bench = Bench::default();
    bench.compiler.warmup.store(1, Ordering::Relaxed);
    bench.compiler.is_busy.store(true, Ordering::Relaxed);
    negations(&mut bench, lane(1, 0), 3);
    steps(&mut bench, 5);
    bench.hand(gt_ir::message::ServerToWorker::EndSession { incarnation: Incarnation(1) });
    bench.run();
    assert_eq!(bench.stats().tensors, 0);
}

#[test]
fn a_restored_lane_runs_the_same_code() {
    let (mut before, mut after) = (Bench::default(), Bench::default());
    for bench in [&before, &after] {
        bench.compiler.warmup.store(2, Ordering::Relaxed);
    }
    negations(&mut before, lane(1, 0), 1);
    let snapshot = Snapshot {
        session: SessionId(1),
        number: 1,
        keeper: None,
        most: u64::MAX,
        published: None,
    };
    before.work(lane(1, 0), vec![WorkerCommand::Snapshot(Box::new(snapshot))]);
    for out in before.out {
        if let Out::Server(WorkerToServer::Backup(backup)) = out {
            after.hand(WorkerToWorker::Backup(backup));
        }
    }
    let again = lane(7, 0);
    let restore = WorkerCommand::Restore { session: SessionId(1), snapshot: 1, is_here: false };
    after.work(again, vec![restore, free(1), free(21)]);
    negations(&mut after, again, 3);
    after.run();
    assert_eq!(after.computed(), ["neg", "compiled", "neg", "compiled", "neg"]);
}
