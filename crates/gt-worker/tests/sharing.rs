//! How a worker divides its device between sessions.

use crate::common::*;
use gt_ir::entitlement::Entitlement;
use gt_ir::message::{ServerToWorker, WorkerToServer, WorkerToWorker};
use gt_ir::ops;
use gt_ir::snapshot::Snapshot;
use gt_ir::{Incarnation, SessionId, TensorId, WorkerCommand};
use gt_worker::{Out, Work};

/// Queues `count` operations on a vector of this length in a session.
fn queue(
    bench: &mut Bench,
    session: u32,
    operation: &'static gt_ir::Operation,
    work: (u64, usize),
) {
    let (count, length) = work;
    let mut commands = vec![create(0, &vec![1.0; length])];
    commands
        .extend((1..=count).map(|name| run(instruction(operation, name, length, &[tensor(0)]))));
    bench.queue(lane(session, 0), commands);
}

/// Returns the number of computed operations by name.
fn counts(computed: &[&str]) -> [usize; 2] {
    ["neg", "sqrt"].map(|name| computed.iter().filter(|other| **other == name).count())
}

fn admit(bench: &mut Bench, session: u32, weight: u32) {
    let entitlement = Entitlement { weight, ..Entitlement::default() };
    bench.hand(ServerToWorker::Admit { incarnation: Incarnation(session), entitlement });
}

/// How many operations of one session are done while 20,000 of another are, each of which takes a
/// hundredth of the time.
fn long_beside_short(bench: &mut Bench) -> usize {
    queue(bench, 1, &ops::unary::NEG, (20_000, 1));
    queue(bench, 2, &ops::unary::SQRT, (1_000, 100));
    let mut computed = Vec::new();
    while counts(&computed)[0] < 20_000 {
        assert!(bench.worker.step(&mut bench.out));
        computed.extend(bench.computed());
    }
    counts(&computed)[1]
}

/// Operations of one session take a hundred times as long as those of another.
#[test]
fn sessions_get_equal_device_time_not_equal_turns() {
    let mut bench = Bench::default();
    let long = long_beside_short(&mut bench);
    // 20,000 of one are 200 of the other, which does 128 in a turn.
    assert!((128..=384).contains(&long), "{long}");
}

#[test]
fn device_time_is_shared_by_weight() {
    let mut bench = Bench::default();
    admit(&mut bench, 1, 3);
    queue(&mut bench, 1, &ops::unary::NEG, (12_000, 1));
    queue(&mut bench, 2, &ops::unary::SQRT, (12_000, 1));
    let mut computed = Vec::new();
    while counts(&computed)[0] < 12_000 {
        assert!(bench.worker.step(&mut bench.out));
        computed.extend(bench.computed());
    }
    let [_, light] = counts(&computed);
    assert!(light.abs_diff(4_000) <= 256, "{light}");
}

/// A session with occasional requests has the next turn, whatever other sessions have queued.
#[test]
fn a_session_that_was_idle_runs_next() {
    let mut bench = Bench::default();
    for session in 2..6 {
        queue(&mut bench, session, &ops::unary::SQRT, (4_000, 100));
    }
    (0..4).for_each(|_| assert!(bench.worker.step(&mut bench.out)));
    bench.computed();
    for name in 1..10 {
        queue(&mut bench, 1, &ops::unary::NEG, (1, name));
        assert!(bench.worker.step(&mut bench.out));
        let [short, _] = counts(&bench.computed());
        assert_eq!(short, 1, "question {name}");
        // Others go on in between.
        assert!(bench.turn());
        assert_eq!(counts(&bench.computed()), [0, 128]);
    }
}

/// A turn ends after a time although no lane waits, as a message may have arrived.
#[test]
fn a_long_turn_ends_by_itself() {
    let mut bench = Bench::default();
    // Each is worth a whole turn by the estimate, and takes ten seconds.
    queue(&mut bench, 1, &ops::unary::NEG, (100, 100_000));
    assert!(bench.worker.step(&mut bench.out));
    let [count, _] = counts(&bench.computed());
    assert!((1..10).contains(&count), "{count}");
}

/// A session whose other slots have come to an exchange is next: they wait for it.
#[test]
fn a_session_that_other_workers_wait_for_runs_next() {
    let mut bench = Bench::default();
    for session in 2..5 {
        queue(&mut bench, session, &ops::unary::SQRT, (4_000, 1));
    }
    let of = lane(1, 0);
    queue(&mut bench, 1, &ops::unary::NEG, (4_000, 1));
    // After a turn of each, all have used the same, and it would be the last again.
    (0..4).for_each(|_| assert!(bench.worker.step(&mut bench.out)));
    assert_eq!(counts(&bench.computed())[0], 127);
    let piece = gt_ir::Piece {
        transfer: gt_ir::TransferId(3),
        number: 0,
        from: gt_ir::SlotId(1),
        to: of,
        result: Ok(gt_ir::Content::Data(data(&[1.0, 2.0]))),
    };
    bench.hand(WorkerToWorker::Piece { sender: gt_ir::WorkerId(1), piece });
    assert!(bench.worker.step(&mut bench.out));
    let [own, others] = counts(&bench.computed());
    assert!(own > 0 && others == 0, "{own} and {others}");
}

/// An asynchronous device: sessions are charged for the device's time, not for the time to issue,
/// and few turns are in flight.
#[test]
fn turns_cost_the_time_that_the_device_reports() {
    let mut bench = Bench::default();
    *bench.device.lock().unwrap() = Some(DeviceClock::default());
    let long = long_beside_short(&mut bench);
    assert!((128..=512).contains(&long), "{long}");
    assert_eq!(bench.device.lock().unwrap().as_ref().unwrap().most, 1);
}

/// An idle worker reports the device time of turns that have completed since its last report.
#[test]
fn device_time_that_is_measured_late_is_reported() {
    let mut bench = Bench::default();
    *bench.device.lock().unwrap() = Some(DeviceClock::default());
    queue(&mut bench, 1, &ops::unary::NEG, (100, 10));
    bench.run();
    let told = |bench: &Bench| -> u64 {
        let usage = bench.out.iter().filter_map(|out| match out {
            Out::Server(WorkerToServer::LaneDone { usage, .. }) => Some(usage.device),
            _ => None,
        });
        usage.sum()
    };
    assert_eq!(told(&bench), 0);
    bench.device.lock().unwrap().as_mut().unwrap().is_done = true;
    bench.worker.report(false, &mut bench.out);
    assert_eq!(told(&bench), 100_000_000);
}

/// The messages with values of a snapshot, and whether the last has been sent.
fn kept(bench: &Bench) -> (Vec<u64>, bool) {
    let (mut names, mut is_whole) = (Vec::new(), false);
    for out in &bench.out {
        if let Out::Server(WorkerToServer::Backup(backup)) = out {
            names.extend(backup.values.iter().map(|value| value.tensor.0));
            is_whole = backup
                .inventory
                .as_ref()
                .is_some_and(|all| all.names.iter().eq(names.iter().copied().map(TensorId)));
        }
    }
    (names, is_whole)
}

#[test]
fn a_large_snapshot_is_taken_in_parts_between_turns_of_others() {
    let mut bench = Bench::default();
    let count = 5000;
    bench.work(lane(1, 0), (0..count).map(|name| create(name, &[1.0])).collect());
    let snapshot = Snapshot {
        session: SessionId(1),
        number: 1,
        keeper: None,
        most: u64::MAX,
        published: None,
    };
    bench.queue(lane(1, 0), vec![WorkerCommand::Snapshot(Box::new(snapshot)), free(0)]);
    queue(&mut bench, 2, &ops::unary::NEG, (20_000, 1));
    let mut sent = Vec::new();
    while bench.worker.step(&mut bench.out) {
        sent.push(kept(&bench).0.len());
    }
    sent.retain(|sent| (1..count as usize).contains(sent));
    sent.dedup();
    assert_eq!(sent, [1024, 2048, 3072, 4096]);
    // What comes after it waits for its end.
    assert_eq!(kept(&bench), ((0..count).collect(), true));
}
