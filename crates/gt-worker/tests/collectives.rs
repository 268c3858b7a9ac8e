//! Collectives of engines.

use std::sync::Arc;

use crate::common::*;
use gt_ir::fabric::{CollectiveCall, EngineCollective, Member};
use gt_ir::message::{Failure, ServerToWorker, WorkerToServer};
use gt_ir::{Exchange, Incarnation, LaneId, SlotId, SourceId, TransferId, WorkerCommand, WorkerId};
use gt_worker::{Options, Out, Work};

/// The sum of a tensor over slots 0 and 1, as a collective.
fn collective_sum(transfer: u64, input: u64, output: u64) -> WorkerCommand {
    let member = |slot: u32| Member {
        slot: SlotId(slot),
        worker: WorkerId(slot),
        name: format!("worker-{slot}"),
    };
    let members = vec![member(0), member(1)];
    let (kind, store) = ("hub/1".into(), "hub".into());
    let engine_collective =
        Some(Arc::new(EngineCollective { kind, store, members, call: CollectiveCall::AllReduce }));
    exchange(Exchange { engine_collective, ..sum_with(transfer, 1, input, output) })
}

impl Bench {
    /// Takes the `CollectiveReady` messages: lane, transfer, and epoch or failure.
    fn ready(&mut self) -> Vec<(LaneId, u64, Result<u64, String>)> {
        let mut ready = Vec::new();
        self.out.retain(|out| match out {
            Out::Server(WorkerToServer::CollectiveReady { lane, transfer, result, .. }) => {
                let result = result.clone().map_err(|failure| failure.to_string());
                ready.push((*lane, transfer.0, result));
                false
            }
            _ => true,
        });
        ready
    }

    fn tell(&mut self, lane: LaneId, transfer: u64, sequence: u64, result: Result<u64, Failure>) {
        self.hand(ServerToWorker::StartCollective {
            lane,
            transfer: TransferId(transfer),
            sequence,
            result,
        });
        self.run();
    }

    fn join(&mut self) {
        self.worker.join(&mut self.out);
        self.run();
    }
}

#[test]
fn no_collective_begins_before_all_members_are_ready() {
    let mut bench = Bench::default();
    let to = lane(1, 0);
    let commands = vec![slots(2), create(1, &[1.0, 2.0]), collective_sum(1, 1, 2), fetch(1, 2)];
    bench.work(to, commands);
    assert_eq!(bench.ready(), [(to, 1, Ok(0))]);
    assert!(bench.worker.due().is_none() && bench.computed().is_empty());
    // Without a due exchange, the engine is not called.
    bench.join();
    assert!(bench.computed().is_empty());
    bench.tell(to, 1, 1, Ok(0));
    assert_eq!(
        bench.worker.due().map(|engine_collective| engine_collective.members.len()),
        Some(2)
    );
    assert_eq!(bench.values(), []);
    bench.join();
    assert_eq!(bench.computed(), ["join"]);
    assert_eq!(bench.values(), [(1, Ok(vec![2.0, 4.0]))]);
}

/// The order is the dispatcher's, which is the same on every worker, not the order in which this
/// worker's lanes reached their exchanges.
#[test]
fn collectives_begin_in_the_order_of_their_start_messages() {
    let mut bench = Bench::default();
    let (one, two) = (lane(1, 0), lane(2, 0));
    for to in [one, two] {
        let numbers = [f64::from(to.incarnation.0); 2];
        let sums =
            vec![slots(2), create(1, &numbers), collective_sum(1, 1, 2), collective_sum(2, 1, 3)];
        bench.work(to, [sums, vec![fetch(2, 2), fetch(3, 3)]].concat());
    }
    let ready: Vec<(u32, u64)> =
        bench.ready().iter().map(|(lane, transfer, _)| (lane.incarnation.0, *transfer)).collect();
    assert_eq!(ready, [(1, 1), (1, 2), (2, 1), (2, 2)]);
    for (sequence, (to, transfer)) in (1..).zip([(two, 2), (one, 1), (two, 1), (one, 2)]) {
        bench.tell(to, transfer, sequence, Ok(0));
    }
    // The fetches answered after each show which one it was.
    let mut seen = Vec::new();
    while bench.worker.due().is_some() {
        bench.join();
        seen.push(bench.values().into_iter().map(|(request, _)| request).collect::<Vec<_>>());
    }
    // Session 2 waits for its first before it answers with its second.
    assert_eq!(seen, [vec![], vec![2], vec![2, 3], vec![3]]);
}

/// The failure goes to the dispatcher, and the engine is not called.
#[test]
fn a_member_without_input_reports_it() {
    let mut bench = Bench::default();
    let to = lane(1, 0);
    bench.work(to, vec![slots(2), collective_sum(1, 77, 2), fetch(1, 2)]);
    let ready = bench.ready();
    let [(_, 1, Err(reason))] = ready.as_slice() else { panic!("{ready:?}") };
    assert!(reason.contains("tensor 77 does not exist"), "{reason}");
    let failure = Failure::new("all_reduce", reason.clone(), "w", SourceId(0));
    bench.tell(to, 1, 0, Err(failure));
    assert!(bench.worker.due().is_none());
    let values = bench.values();
    assert!(values[0].1.as_ref().is_err_and(|error| error.contains("tensor 77")), "{values:?}");
    assert!(bench.computed().is_empty());
}

/// An exchange that is due is carried out even if its session has ended: other members enter it.
#[test]
fn the_end_of_a_session_cancels_its_collectives_on_all_members() {
    let mut bench = Bench::default();
    let to = lane(1, 0);
    let sums =
        vec![slots(2), create(1, &[1.0, 2.0]), collective_sum(1, 1, 2), collective_sum(2, 1, 3)];
    bench.work(to, sums);
    bench.tell(to, 1, 1, Ok(0));
    bench.hand(ServerToWorker::EndSession { incarnation: Incarnation(1) });
    // The `StartCollective` of the second comes after the end, and is ignored.
    bench.tell(to, 2, 2, Ok(0));
    assert!(bench.worker.due().is_some());
    bench.join();
    assert!(bench.worker.due().is_none());
    assert_eq!((bench.computed(), bench.stats().tensors), (vec!["join"], 0));
}

#[test]
fn pending_collective_results_block_no_other_session() {
    let mut bench = Bench::default();
    let to = lane(1, 0);
    bench.work(to, vec![slots(2), create(1, &[1.0, 2.0]), collective_sum(1, 1, 2), neg(3, 2)]);
    let other = lane(2, 0);
    bench.work(other, vec![create(1, &[3.0, 4.0]), neg(2, 1)]);
    assert_eq!(bench.value(other, 2), Ok(vec![-3.0, -4.0]));
    bench.tell(to, 1, 1, Ok(0));
    bench.join();
    assert_eq!(bench.value(to, 3), Ok(vec![-2.0, -4.0]));
}

/// A session is charged for the device time of its collectives.
#[test]
fn collective_exchanges_count_as_device_time() {
    let options = Options { is_timed: false, ..Options::default() };
    let used = |exchanges: u64| {
        let mut bench = Bench::new(options);
        let to = lane(1, 0);
        let sums = (0..exchanges).map(|count| collective_sum(1 + count, 1, 2 + count));
        let first = vec![slots(2), create(1, &[1.0; 1000])];
        bench.work(to, first.into_iter().chain(sums).collect());
        for count in 0..exchanges {
            bench.tell(to, 1 + count, 1 + count, Ok(0));
            bench.join();
        }
        bench.work(to, vec![fetch(1, 1)]);
        let device = |out: &Out| match out {
            Out::Server(WorkerToServer::LaneDone { lane, usage, .. }) if *lane == to => {
                usage.device
            }
            _ => 0,
        };
        bench.out.iter().map(device).sum::<u64>()
    };
    assert!(used(3) > used(0), "{} with exchanges, {} without", used(3), used(0));
}
