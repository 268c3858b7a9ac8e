//! Anticipation: the device is kept for a session that has been answered and asks again soon.

use std::sync::atomic::Ordering;

use crate::common::*;
use gt_ir::entitlement::Usage;
use gt_ir::message::WorkerToServer;
use gt_ir::{LaneId, ops};
use gt_worker::{Out, Work};

/// A session that asks for ten milliseconds of work.
fn asker() -> LaneId {
    lane(1, 0)
}

fn ask(bench: &mut Bench, question: u64) {
    let work = instruction(&ops::unary::NEG, question, 100, &[tensor(0)]);
    bench.queue(asker(), vec![run(work), free(question)]);
}

/// A session with long turns beside it, which has asked twice: it may cause a moment of idle time now.
fn beside_long_turns() -> Bench {
    let mut bench = Bench::default();
    let other = lane(5, 0);
    bench.queue(other, vec![create(0, &[1.0; 100])]);
    let long = |name| run(instruction(&ops::unary::SQRT, name, 100, &[tensor(0)]));
    bench.queue(other, (1..5000).map(long).collect());
    bench.queue(asker(), vec![create(0, &[1.0; 100])]);
    (0..2).for_each(|_| assert!(bench.worker.step(&mut bench.out)));
    for question in 1..3 {
        ask(&mut bench, question);
        answer(&mut bench);
        pass(&bench, 300);
    }
    bench
}

/// Runs the worker until it has answered; returns how much of the other's work was done before.
fn answer(bench: &mut Bench) -> usize {
    let mut others = 0;
    for _ in 0..1000 {
        assert!(bench.worker.step(&mut bench.out));
        let computed = bench.computed();
        others += computed.iter().filter(|name| **name == "sqrt").count();
        if computed.contains(&"neg") {
            return others;
        }
    }
    panic!("it is not served");
}

fn pass(bench: &Bench, microseconds: u64) {
    bench.compiler.idle.fetch_add(microseconds, Ordering::Relaxed);
}

/// Whether the device is kept idle now.
fn is_kept(bench: &mut Bench) -> bool {
    assert!(bench.worker.step(&mut bench.out));
    bench.worker.held_for().is_some()
}

/// What was reported of the session's use.
fn usage(bench: &mut Bench) -> Usage {
    bench.worker.report(false, &mut bench.out);
    let mut sum = Usage::default();
    for out in bench.out.drain(..) {
        if let Out::Server(WorkerToServer::LaneDone { lane, usage, .. }) = out
            && lane == asker()
        {
            sum.device += usage.device;
            sum.anticipation += usage.anticipation;
        }
    }
    sum
}

#[test]
fn the_device_is_kept_for_who_asks_again_soon() {
    let mut bench = beside_long_turns();
    for question in 3..12 {
        assert!(is_kept(&mut bench), "question {question}");
        pass(&bench, 300);
        assert!(is_kept(&mut bench), "question {question}");
        ask(&mut bench, question);
        assert_eq!(answer(&mut bench), 0, "question {question}");
    }
}

/// Not for one that does not come, and then not at once again.
#[test]
fn the_device_is_kept_for_a_moment_only() {
    let mut bench = beside_long_turns();
    for question in 3..6 {
        assert!(is_kept(&mut bench));
        pass(&bench, 300);
        ask(&mut bench, question);
        answer(&mut bench);
    }
    assert!(is_kept(&mut bench));
    let window = bench.worker.held_for().unwrap().as_micros() as u64;
    assert!((300..1765).contains(&window), "{window}");
    pass(&bench, window + 1);
    assert!(!is_kept(&mut bench), "another's turn");
    assert_eq!(bench.computed().len(), 128);
}

#[test]
fn who_thinks_for_long_is_soon_not_waited_for() {
    let mut bench = beside_long_turns();
    let mut waits = 0;
    for question in 3..12 {
        while is_kept(&mut bench) {
            waits += 1;
            pass(&bench, 1000);
        }
        pass(&bench, 20_000);
        ask(&mut bench, question);
        answer(&mut bench);
    }
    assert!(waits <= 3, "{waits}");
}

/// The session pays for that time, and is shown what it is.
#[test]
fn idle_time_is_charged_to_the_session() {
    let mut bench = beside_long_turns();
    let before = usage(&mut bench);
    assert!(is_kept(&mut bench));
    pass(&bench, 300);
    assert!(is_kept(&mut bench));
    pass(&bench, 200);
    ask(&mut bench, 3);
    answer(&mut bench);
    let after = usage(&mut bench);
    assert_eq!(before.anticipation.time, 0);
    assert_eq!((after.anticipation.time, after.anticipation.count), (500_000, 1));
    assert_eq!(after.device, 10_500_000);
}
