//! Limits of a lane's memory, and what happens when they are reached.

use crate::common::*;
use gt_ir::entitlement::{Entitlement, MemoryQuota, MemoryWait};
use gt_ir::message::{Failure, ServerToWorker, WorkerToServer};
use gt_ir::snapshot::Snapshot;
use gt_ir::stored::OnDisk;
use gt_ir::{
    Content, Incarnation, LaneId, SessionId, SourceId, TensorData, TensorId, WorkerCommand, ops,
};
use gt_worker::{FileJob, FileResult, Options, Out, Work};

/// The bytes of a vector of a hundred numbers.
const VECTOR: u64 = 800;

fn admit(bench: &mut Bench, session: u32, quotas: &[(&str, u64)]) {
    let quota =
        |(holder, bytes): &(&str, u64)| MemoryQuota { holder: (*holder).into(), bytes: *bytes };
    let memory = quotas.iter().map(quota).collect();
    bench.hand(ServerToWorker::Admit {
        incarnation: Incarnation(session),
        entitlement: Entitlement { memory, ..Entitlement::default() },
    });
}

/// A vector of a hundred numbers.
fn vector(id: u64) -> WorkerCommand {
    create(id, &[id as f64; 100])
}

/// The negative of a vector.
fn negative(output: u64, input: u64) -> WorkerCommand {
    run(instruction(&ops::unary::NEG, output, 100, &[tensor(input)]))
}

/// Returns the waits for memory that the worker has reported.
fn waits(bench: &mut Bench) -> Vec<(LaneId, Option<MemoryWait>)> {
    let mut waits = Vec::new();
    bench.out.retain(|out| match out {
        Out::Server(WorkerToServer::MemoryWait { lane, wait }) => {
            waits.push((*lane, wait.clone()));
            false
        }
        _ => true,
    });
    waits
}

/// The dispatcher reports that all commands were sent, and perhaps that the wait is over.
fn time_out(bench: &mut Bench, lane: LaneId, number: u64, has_waited: bool) {
    bench.hand(ServerToWorker::MemoryTimeout { lane, number, has_waited });
    bench.run();
}

fn failure(bench: &mut Bench, lane: LaneId, tensor: u64) -> Failure {
    bench.work(lane, vec![fetch(77, tensor)]);
    let found = bench.out.iter().rev().find_map(|out| match out {
        Out::Server(WorkerToServer::Value { result: Err(failure), .. }) => Some(failure.clone()),
        _ => None,
    });
    found.expect("it has failed")
}

#[test]
fn exceeding_a_quota_fails_one_command_and_names_the_largest_tensors() {
    let mut bench = Bench::default();
    admit(&mut bench, 1, &[("user ada", 3 * VECTOR)]);
    let of = lane(1, 0);
    bench.work(of, vec![vector(0), negative(1, 0), negative(2, 0), negative(3, 0), fetch(5, 1)]);
    let [(lane, Some(wait))] = &waits(&mut bench)[..] else { panic!("it waits") };
    assert_eq!((*lane, wait.bytes, wait.holder.as_str()), (of, VECTOR, "user ada"));
    assert!(bench.values().is_empty(), "what comes after it waits, too");
    time_out(&mut bench, of, wait.number, false);
    assert_eq!(bench.values().len(), 1, "and then goes on");
    let failed = failure(&mut bench, of, 3);
    assert!(
        failed.reason.starts_with(
            "out of memory: it needs 800 bytes, and user ada holds 2.4 KB of 2.4 KB on this worker\n  hint:"
        ),
        "{}",
        failed.reason
    );
    assert_eq!(failed.line, SourceId(3));
    let lines: Vec<u32> = failed.largest.iter().map(|holding| holding.line.0).collect();
    assert_eq!(lines, [0, 1, 2]);
    // With something freed, there is room.
    bench.work(of, vec![free(1), negative(4, 0)]);
    assert_eq!(bench.value(of, 4).unwrap().len(), 100);
}

#[test]
fn a_quota_is_exact_to_the_byte() {
    for (bytes, fits) in [(2 * VECTOR, true), (2 * VECTOR - 1, false)] {
        let mut bench = Bench::default();
        admit(&mut bench, 1, &[("user ada", bytes)]);
        bench.work(lane(1, 0), vec![vector(0), negative(1, 0)]);
        assert_eq!(waits(&mut bench).is_empty(), fits);
    }
}

#[test]
fn queued_frees_and_reused_operands_make_room() {
    let mut bench = Bench::default();
    admit(&mut bench, 1, &[("user ada", 2 * VECTOR)]);
    let of = lane(1, 0);
    // Vector 1 is used by nothing before its free; vector 2 is written over vector 0.
    bench.work(of, vec![vector(0), negative(1, 0)]);
    bench.work(of, vec![negative(2, 0), free(1), negative(3, 2), free(2)]);
    assert!(waits(&mut bench).is_empty());
    assert_eq!(bench.value(of, 3).unwrap()[0], 0.0);
}

#[test]
fn only_sessions_of_the_same_user_wait_for_a_users_quota() {
    let mut bench = Bench::default();
    (1..=2).for_each(|session| admit(&mut bench, session, &[("user ada", 3 * VECTOR)]));
    let (first, second, other) = (lane(1, 0), lane(2, 0), lane(3, 0));
    bench.work(first, vec![vector(0), negative(1, 0)]);
    bench.work(second, vec![vector(0), negative(1, 0)]);
    let [(waiting, Some(wait))] = &waits(&mut bench)[..] else { panic!("it waits") };
    assert_eq!(*waiting, second);
    bench.work(other, vec![vector(0), negative(1, 0), negative(2, 0), negative(3, 0)]);
    assert_eq!(bench.value(other, 3).unwrap().len(), 100, "another user is not held up");
    bench.work(first, vec![free(1)]);
    assert_eq!(waits(&mut bench), [(second, None)]);
    assert_eq!(bench.value(second, 1).unwrap()[0], 0.0);
    // The end of a wait need not be reported.
    time_out(&mut bench, second, wait.number, true);
    assert_eq!(bench.value(second, 1).unwrap()[0], 0.0);
}

#[test]
fn the_end_of_a_session_ends_memory_waits() {
    let mut bench = Bench::default();
    (1..=2).for_each(|session| admit(&mut bench, session, &[("team vision", 2 * VECTOR)]));
    bench.work(lane(1, 0), vec![vector(0), negative(1, 0)]);
    bench.work(lane(2, 0), vec![vector(0)]);
    assert_eq!(waits(&mut bench).len(), 1);
    bench.hand(ServerToWorker::EndSession { incarnation: Incarnation(1) });
    bench.run();
    assert_eq!(bench.value(lane(2, 0), 0).unwrap().len(), 100);
    bench.hand(ServerToWorker::EndSession { incarnation: Incarnation(2) });
    assert_eq!(bench.worker.leftovers(), None);
}

#[test]
fn programs_that_exceed_memory_run_step_by_step() {
    let mut bench = Bench::default();
    let of = lane(1, 0);
    let negate = |output, input| instruction(&ops::unary::NEG, output, 100, &[tensor(input)]);
    let sum = instruction(&ops::binary::ADD, 12, 100, &[tensor(10), tensor(11)]);
    let steps =
        [Of::Run(negate(10, 0)), Of::Run(negate(11, 0)), Of::Run(sum), Of::Free(10), Of::Free(11)];
    let definition = template(1, 10, 3, &steps);
    let mut invoker = Invoker::new(&definition);
    // Two vectors beside the first and one result are needed at once: the sum goes over one of them.
    admit(&mut bench, 1, &[("user ada", 3 * VECTOR)]);
    bench.work(of, vec![vector(0), define(&definition), invoke(invoker.next(10, &[], &[]))]);
    assert!(waits(&mut bench).is_empty());
    assert_eq!(bench.value(of, 12).unwrap()[0], 0.0);
    // With the sum of before held, there is no room for another.
    bench.work(of, vec![invoke(invoker.next(20, &[], &[]))]);
    let [(_, Some(wait))] = &waits(&mut bench)[..] else { panic!("it waits") };
    assert_eq!(wait.bytes, VECTOR, "it is run step by step");
    time_out(&mut bench, of, wait.number, true);
    assert!(failure(&mut bench, of, 22).reason.contains("it needs 800 bytes"));
    assert_eq!(bench.value(of, 12).unwrap()[0], 0.0, "what was there is there");
}

/// A template frees what it only drops after all of its steps: where there is no room, that goes first.
#[test]
fn tensors_dropped_by_an_iteration_make_room_for_its_steps() {
    let mut bench = Bench::default();
    let of = lane(1, 0);
    let negate = |output, input| instruction(&ops::unary::NEG, output, 100, &[tensor(input)]);
    let steps = [Of::Run(negate(10, 0)), Of::Run(negate(11, 10)), Of::Free(1), Of::Free(2)];
    let definition = template(1, 10, 2, &steps);
    let mut invoker = Invoker::new(&definition);
    admit(&mut bench, 1, &[("user ada", 3 * VECTOR)]);
    bench.work(of, vec![vector(0), vector(1), vector(2), define(&definition)]);
    bench.work(of, vec![invoke(invoker.next(10, &[], &[])), fetch(1, 11)]);
    assert!(waits(&mut bench).is_empty());
    assert_eq!(bench.stats().tensors, 3);
    // The same where the first of them is read, under another name.
    bench.work(of, vec![free(10), invoke(invoker.next(20, &[(0, 11), (1, 0), (2, 11)], &[]))]);
    assert!(waits(&mut bench).is_empty());
    assert_eq!(bench.value(of, 21).unwrap()[0], 0.0);
    assert_eq!(bench.stats().tensors, 2);
}

/// What the dispatcher knows of a worker's lanes is of one moment: their sum is within the quota.
#[test]
fn reported_holdings_are_of_one_moment() {
    let mut bench = Bench::default();
    (1..=2).for_each(|session| admit(&mut bench, session, &[("user ada", 3 * VECTOR)]));
    let (first, second) = (lane(1, 0), lane(2, 0));
    bench.work(first, vec![vector(0), vector(1)]);
    // The first frees its tensors within a batch that is not done, as it waits for a piece.
    let waits = exchange(gather(1, 5, 2, &[(1, block(0, 2))]));
    bench.work(first, vec![slots(2), free(0), free(1), waits, fetch(1, 5)]);
    bench.work(second, vec![vector(0), vector(1)]);
    let mut known: Vec<(LaneId, u64)> = Vec::new();
    for out in &bench.out {
        let Out::Server(WorkerToServer::LaneDone { lane, usage, .. }) = out else { continue };
        known.retain(|(other, _)| other != lane);
        known.push((*lane, usage.bytes));
    }
    assert_eq!(known.iter().map(|(_, bytes)| bytes).sum::<u64>(), 2 * VECTOR + 16, "{known:?}");
}

fn spilling(memory: u64) -> Options {
    let memory = Some(memory);
    Options { memory, spill: 100 * VECTOR, spill_from: 0, ..Options::default() }
}

/// Does what is asked with files; `disk` are those that there are.
fn serve(bench: &mut Bench, disk: &mut Vec<(u64, TensorData)>, is_full: bool) -> usize {
    let mut count = 0;
    loop {
        let mut jobs = Vec::new();
        bench.out.retain(|out| match out {
            Out::Files(job) => {
                jobs.push(job.clone());
                false
            }
            _ => true,
        });
        if jobs.is_empty() {
            return count;
        }
        for job in jobs {
            count += 1;
            match job {
                FileJob::Spill { lane, tensor, number, data } => {
                    let full = Failure::new("spill", "full", "w", SourceId(0));
                    let file = OnDisk { checksum: number as u32, mapped: None };
                    let result = if is_full { Err(full) } else { Ok(file) };
                    if !is_full {
                        disk.push((number, data));
                    }
                    bench.hand(FileResult::Spilled { lane, tensor, number, result });
                }
                FileJob::Restore { lane, tensor, number, checksum, .. } => {
                    assert_eq!(checksum, number as u32);
                    let found = disk.iter().find(|(of, _)| *of == number).unwrap().1.clone();
                    let result = Ok(Content::Data(found));
                    bench.hand(FileResult::Loaded { lane, tensor, result });
                }
                FileJob::Discard { number } => disk.retain(|(of, _)| *of != number),
                FileJob::SpillSnapshot { owner, tensor, data } => {
                    let full = Failure::new("spill", "full", "w", SourceId(0));
                    let result = if is_full { Err(full) } else { Ok(Content::Data(data)) };
                    bench.hand(FileResult::SnapshotSpilled { owner, tensor, result });
                }
                other => panic!("{other:?}"),
            }
            bench.run();
        }
    }
}

#[test]
fn the_least_recently_used_tensor_spills_and_is_read_back_when_used() {
    let mut bench = Bench::new(spilling(3 * VECTOR));
    let (of, mut disk) = (lane(1, 0), Vec::new());
    bench.work(of, vec![vector(1), vector(2)]);
    bench.work(of, vec![negative(3, 1)]);
    bench.work(of, vec![vector(4)]);
    serve(&mut bench, &mut disk, false);
    assert_eq!(disk.len(), 1, "there is no room for a fourth");
    assert_eq!(disk[0].1, data(&[2.0; 100]), "vector 2 was used before the others");
    let stats = bench.stats();
    assert_eq!((stats.bytes, stats.spilled_bytes, stats.spilled_tensors), (3 * VECTOR, VECTOR, 1));
    bench.queue(of, vec![fetch(1, 1), fetch(2, 2), fetch(3, 3), fetch(4, 4)]);
    bench.run();
    serve(&mut bench, &mut disk, false);
    let firsts: Vec<f64> = bench.values().into_iter().map(|(_, value)| value.unwrap()[0]).collect();
    assert_eq!(firsts, [1.0, 2.0, -1.0, 4.0]);
    let all = [1, 2, 3, 4].map(free);
    bench.work(of, all.to_vec());
    serve(&mut bench, &mut disk, false);
    assert!(disk.is_empty(), "files go with their tensors");
    assert_eq!((bench.stats().tensors, bench.stats().spilled_bytes), (0, 0));
}

#[test]
fn a_session_over_its_share_spills_for_one_below() {
    let mut bench = Bench::new(spilling(4 * VECTOR));
    let (large, small, mut disk) = (lane(1, 0), lane(2, 0), Vec::new());
    bench.work(small, vec![vector(1)]);
    bench.work(large, vec![vector(1), vector(2), vector(3)]);
    bench.work(small, vec![vector(2)]);
    serve(&mut bench, &mut disk, false);
    assert_eq!(bench.value(small, 2).unwrap()[0], 2.0);
    assert_eq!(disk.len(), 1);
    assert_eq!(bench.value(small, 1).unwrap()[0], 1.0);
    assert_eq!(serve(&mut bench, &mut disk, false), 0, "the small one's are where they were");
}

/// A session whose client is away makes room for all others, however little it has.
#[test]
fn disconnected_sessions_spill_first() {
    for is_away in [false, true] {
        let mut bench = Bench::new(spilling(4 * VECTOR));
        let (large, small, mut disk) = (lane(1, 0), lane(2, 0), Vec::new());
        let entitlement = Entitlement { is_away, ..Entitlement::default() };
        bench.hand(ServerToWorker::Admit { incarnation: Incarnation(2), entitlement });
        bench.work(small, vec![vector(7)]);
        bench.work(large, vec![vector(1), vector(2), vector(3)]);
        bench.work(large, vec![vector(4)]);
        serve(&mut bench, &mut disk, false);
        let first = if is_away { 7.0 } else { 1.0 };
        assert_eq!(disk.iter().map(|(_, data)| data.element(0).as_f64()).next(), Some(first));
    }
}

#[test]
fn a_full_disk_fails_new_tensors_and_loses_none() {
    let mut bench = Bench::new(spilling(2 * VECTOR));
    let (of, mut disk) = (lane(1, 0), Vec::new());
    bench.work(of, vec![vector(1), vector(2), vector(3)]);
    serve(&mut bench, &mut disk, true);
    let told = waits(&mut bench);
    let Some((_, Some(wait))) = told.last() else { panic!("{told:?}") };
    assert_eq!(wait.holder, "", "it is the worker that has no more");
    time_out(&mut bench, of, wait.number, false);
    let reason = failure(&mut bench, of, 3).reason;
    let wants = "out of memory: it needs 800 bytes, and 1.6 KB of the worker's 1.6 KB are held";
    assert!(reason.starts_with(wants), "{reason}");
    assert_eq!(bench.value(of, 1).unwrap()[0], 1.0);
    assert_eq!(bench.value(of, 2).unwrap()[0], 2.0);
}

#[test]
fn a_tensor_that_does_not_fit_back_fails_with_its_size() {
    for (command, needs) in [(fetch(77, 1), "800 bytes"), (negative(8, 1), "1.6 KB")] {
        let mut bench = Bench::new(spilling(2 * VECTOR));
        let (of, mut disk) = (lane(1, 0), Vec::new());
        bench.work(of, (1..=5).map(vector).collect());
        serve(&mut bench, &mut disk, false);
        assert_eq!(disk.len(), 3, "of five vectors there is room for two");
        waits(&mut bench);
        // The disk takes no more.
        bench.work(of, vec![command.clone()]);
        serve(&mut bench, &mut disk, true);
        let Some((_, Some(wait))) = waits(&mut bench).pop() else { panic!("it waits") };
        time_out(&mut bench, of, wait.number, true);
        let failed = match command {
            WorkerCommand::Fetch { .. } => bench.values().pop().expect("it is answered").1,
            _ => bench.value(of, 8),
        };
        let failed = failed.unwrap_err();
        assert!(failed.contains(&format!("it needs {needs}, and")), "{failed}");
    }
}

#[test]
fn tensors_freed_or_used_while_spilling_are_dropped_or_kept() {
    let mut bench = Bench::new(spilling(2 * VECTOR));
    let (of, mut disk) = (lane(1, 0), Vec::new());
    bench.work(of, vec![vector(1), vector(2), vector(3), free(1)]);
    serve(&mut bench, &mut disk, false);
    assert_eq!(bench.value(of, 3).unwrap()[0], 3.0);
    assert_eq!(bench.value(of, 2).unwrap()[0], 2.0);
    bench.hand(ServerToWorker::EndSession { incarnation: Incarnation(1) });
    serve(&mut bench, &mut disk, false);
    assert!(disk.is_empty());
    assert_eq!(bench.worker.leftovers(), None);
}

#[test]
fn an_unreadable_spill_file_fails_its_tensor() {
    let mut bench = Bench::new(spilling(2 * VECTOR));
    let (of, mut disk) = (lane(1, 0), Vec::new());
    bench.work(of, vec![vector(1), vector(2), vector(3)]);
    serve(&mut bench, &mut disk, false);
    bench.work(of, vec![free(3), fetch(9, 1)]);
    let tensor = TensorId(1);
    let result = Err(Failure::new("restore", "the file is damaged", "w", SourceId(0)));
    bench.out.retain(|out| !matches!(out, Out::Files(_)));
    bench.hand(FileResult::Loaded { lane: of, tensor, result });
    bench.run();
    let values = bench.values();
    let [(9, Err(said))] = &values[..] else { panic!("{values:?}") };
    assert!(said.contains("are lost: the file is damaged"), "{said}");
}

/// Why snapshots were dropped.
fn dropped(bench: &Bench) -> Vec<String> {
    let reason = |out: &Out| match out {
        Out::Server(WorkerToServer::BackupStored { result: Err(unkept), .. }) => {
            Some(unkept.to_string())
        }
        _ => None,
    };
    bench.out.iter().filter_map(reason).collect()
}

/// A worker with room for four vectors whose snapshot, of two, went to a disk with room for three.
fn with_snapshot_on_disk(disk: &mut Vec<(u64, TensorData)>) -> Bench {
    let mut bench = Bench::new(Options { spill: 3 * VECTOR, ..spilling(4 * VECTOR) });
    let snapshot = Snapshot {
        session: SessionId(1),
        number: 1,
        keeper: None,
        most: u64::MAX,
        published: None,
    };
    let take = WorkerCommand::Snapshot(Box::new(snapshot));
    bench.work(lane(1, 0), vec![vector(1), vector(2), take]);
    bench.work(lane(1, 0), vec![vector(3), vector(4)]);
    assert_eq!(serve(&mut bench, disk, false), 2, "its values make room for tensors");
    assert!(dropped(&bench).is_empty());
    bench
}

#[test]
fn snapshots_give_way_to_spilled_tensors_on_disk() {
    let mut disk = Vec::new();
    let mut bench = with_snapshot_on_disk(&mut disk);
    let of = lane(1, 0);
    bench.work(of, vec![vector(5)]);
    serve(&mut bench, &mut disk, false);
    assert!(dropped(&bench).is_empty(), "there is room for one beside it");
    for name in 6..=7 {
        bench.work(of, vec![vector(name)]);
        serve(&mut bench, &mut disk, false);
    }
    let [reason] = &dropped(&bench)[..] else { panic!("it is dropped once") };
    assert!(reason.contains("needed the disk space of its snapshot for tensors"), "{reason}");
    assert_eq!(disk.len(), 3);
    bench.work(of, vec![free(5), free(6), free(7), fetch(9, 1)]);
    serve(&mut bench, &mut disk, false);
    assert!(matches!(&bench.values()[..], [(9, Ok(value))] if value[0] == 1.0));
}

#[test]
fn a_disk_filled_by_others_serves_tensors_first() {
    let mut disk = Vec::new();
    let mut bench = with_snapshot_on_disk(&mut disk);
    bench.work(lane(1, 0), vec![vector(5)]);
    let failing = |out: &Out| matches!(out, Out::Files(FileJob::Spill { .. }));
    let place = bench.out.iter().position(failing).expect("it is written away");
    let Out::Files(FileJob::Spill { lane, tensor, number, .. }) = bench.out.remove(place) else {
        unreachable!("it was found a line ago");
    };
    let result = Err(Failure::new("spill", "full", "w", SourceId(0)));
    bench.hand(FileResult::Spilled { lane, tensor, number, result });
    bench.run();
    assert_eq!(dropped(&bench).len(), 1);
    serve(&mut bench, &mut disk, false);
    assert_eq!(disk.len(), 1, "it was tried again");
}

/// The tensor that a granted command reads is written to disk before its turn: the room for its result
/// alone does not suffice any more, and is not kept from others while it waits again.
#[test]
fn a_lane_that_waits_again_loses_its_grant() {
    let mut bench = Bench::new(Options { spill: VECTOR, ..spilling(3 * VECTOR) });
    let [first, second, third] = [1, 2, 3].map(|session| lane(session, 0));
    [first, second, third].iter().for_each(|of| bench.work(*of, vec![vector(0)]));
    // The first session's vector begins to be moved away.
    bench.work(second, vec![negative(1, 0)]);
    let job = bench.out.iter().find_map(|out| match out {
        Out::Files(FileJob::Spill { lane, tensor, number, .. }) => Some((*lane, *tensor, *number)),
        _ => None,
    });
    let (of, tensor, number) = job.unwrap();
    assert_eq!((of, tensor), (first, TensorId(0)));
    bench.work(first, vec![negative(1, 0)]);
    bench.work(third, vec![negative(1, 0)]);
    assert_eq!(waits(&mut bench).len(), 3);
    bench.hand(ServerToWorker::EndSession { incarnation: Incarnation(2) });
    assert_eq!(waits(&mut bench), [(first, None)], "the first has its room");
    let result = Ok(OnDisk { checksum: 0, mapped: None });
    bench.hand(FileResult::Spilled { lane: of, tensor, number, result });
    assert_eq!(waits(&mut bench), [(third, None)], "and so has the third");
    bench.run();
    let again = waits(&mut bench);
    let [(lane, Some(wait))] = &again[..] else { panic!("{again:?}") };
    assert_eq!((*lane, wait.bytes), (first, 2 * VECTOR));
    bench.work(third, vec![negative(2, 0)]);
    assert!(waits(&mut bench).is_empty());
    assert_eq!(bench.value(third, 2).unwrap().len(), 100);
}

/// The records of tensors count for quotas, once there are many: also of those that need no memory.
#[test]
fn records_of_many_tensors_count_for_a_quota() {
    let mut bench = Bench::default();
    admit(&mut bench, 1, &[("user ada", 1_000_000)]);
    let (of, other) = (lane(1, 0), lane(2, 0));
    // The last for which 8 n + 400 (n - 4096) <= 1,000,000.
    let most = 6466;
    bench.work(of, (1..=most).map(|id| create(id, &[1.0])).collect());
    assert!(waits(&mut bench).is_empty());
    for command in
        [create(most + 1, &[1.0]), run(instruction(&ops::unary::NEG, most + 1, 1, &[tensor(1)]))]
    {
        let is_over = matches!(command, WorkerCommand::Run(_));
        let mut commands = vec![command];
        // Its result is written over the operand: no more bytes, but a tensor more for a moment.
        commands.extend(is_over.then(|| free(1)));
        bench.work(of, commands);
        let [(_, Some(wait))] = &waits(&mut bench)[..] else { panic!("it waits") };
        assert_eq!(
            (wait.bytes, wait.holder.as_str()),
            (if is_over { 400 } else { 408 }, "user ada")
        );
        time_out(&mut bench, of, wait.number, true);
        let reason = failure(&mut bench, of, most + 1).reason;
        let held = "user ada holds 999.7 KB of 1.0 MB on this worker, 948.0 KB of it for the records of tensors";
        assert!(reason.contains(held), "{reason}");
        bench.work(of, vec![free(most + 1)]);
        waits(&mut bench);
    }
    // One has been freed meanwhile.
    bench.work(of, vec![create(most + 2, &[1.0])]);
    // Who has no quota may have any number.
    bench.work(other, (1..=10_000).map(|id| create(id, &[1.0])).collect());
    assert!(waits(&mut bench).is_empty());
    let done = |out: &Out| match out {
        Out::Server(WorkerToServer::LaneDone { lane, usage, .. }) => Some((*lane, usage.bytes)),
        _ => None,
    };
    let told: Vec<(LaneId, u64)> = bench.out.iter().filter_map(done).collect();
    let last = |of| told.iter().rev().find(|(lane, _)| *lane == of).map(|(_, bytes)| *bytes);
    assert_eq!((last(of), last(other)), (Some(999_728), Some(80_000)));
}

/// What is queued behind a command that gives up has waited for others' frees with it.
#[test]
fn commands_queued_with_a_refused_one_fail_without_a_second_wait() {
    let mut bench = Bench::default();
    admit(&mut bench, 1, &[("user ada", VECTOR)]);
    let of = lane(1, 0);
    bench.work(of, vec![vector(0), vector(1), vector(2), vector(3), fetch(5, 0)]);
    let [(_, Some(wait))] = &waits(&mut bench)[..] else { panic!("it waits") };
    time_out(&mut bench, of, wait.number, true);
    assert!(waits(&mut bench).iter().all(|(_, wait)| wait.is_none()), "once for all of them");
    assert_eq!(bench.values().len(), 1);
    for id in 1..4 {
        assert!(failure(&mut bench, of, id).reason.contains("user ada holds 800 bytes of 800"));
    }
    // What comes later may wait for frees that are under way.
    bench.work(of, vec![vector(4)]);
    assert!(matches!(&waits(&mut bench)[..], [(_, Some(_))]));
}
