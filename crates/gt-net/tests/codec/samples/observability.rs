//! Messages to watchers: explanations, events, reports and the status.

use std::time::Duration;

use gt_ir::event::{Activity, Event, EventKind, Mix, Track, What};
use gt_ir::exchange::Collective;
use gt_ir::explain::{Explanation, PlacedTensor, PlannedRedistribution, PlannedStep, SlowLink};
use gt_ir::gpu::{GpuMemory, GpuReading, GpuStatus};
use gt_ir::layout::Placement;
use gt_ir::publication::{Audience, PublicationStatus};
use gt_ir::statistics::{CompilationStats, Sequence};
use gt_ir::status::cluster_event::{ClusterEvent, ClusterEventKind, MoveReason, SessionLabel};
use gt_ir::status::counters::ClusterCounters;
use gt_ir::status::inspection::{
    ExplainedSteps, HeldTensor, HeldTensors, HotPathStatus, Inspection, InstructionCount,
};
use gt_ir::status::{
    AwaitedTensor, HotPathReport, LastError, MinuteStatus, NamedSession, Report, SessionStatus,
    Status, TeamStatus, UserStatus, WINDOWS, Waits, WindowUse, WorkerStatus,
};
use gt_ir::{SessionId, SlotId, SourceId, TensorId, TransferId, WorkerId, ops};

use smallvec::smallvec;

use super::meta;

pub fn explanation() -> Explanation {
    let placements = smallvec![Placement::balanced(0, 4, 2), Placement::Replicate];
    let placed = || PlacedTensor {
        meta: meta(),
        dims: smallvec![2, 1],
        placements: placements.clone(),
        workers: vec![0, 7],
    };
    let moved = PlannedRedistribution {
        collective: Collective::AllGather,
        bytes: 1 << 33,
        from: placed(),
        to: placed(),
        reason: "it is needed".into(),
    };
    let step = PlannedStep {
        operation: "add".into(),
        line: SourceId(3),
        operands: vec![placed(), placed()],
        output: placed(),
        redistributions: vec![moved],
        data_dependent: true,
    };
    let (memory, slots) = (vec![(3, 1 << 40)], vec![(3, "w1".into())]);
    let (one, other) = ("node7".into(), "node8".into());
    let slow_links = vec![SlowLink { one, other, bytes_per_second: 1 << 20 }];
    let machines = vec!["node7".into(), String::new()];
    Explanation { steps: vec![step], memory, slots, machines, slow_links }
}

/// An event of each kind, about each thing.
pub fn events() -> Vec<Event> {
    let mix = Mix::new([(Activity::Matmul, 3), (Activity::Read, 1)]);
    let (transfer, slot) = (TransferId(1 << 40), SlotId(7));
    let whats = [
        What::Batch { mix: Mix::default() },
        What::Operation(ops::ALL[3]),
        What::Create,
        What::Fetch,
        What::Free,
        What::HotPath { number: 5, mix },
        What::Send { collective: Collective::AllReduce, transfer, to: slot },
        What::Receive { transfer, from: slot },
        What::Control,
    ];
    let tracks = [Track::Client, Track::Dispatcher, Track::Worker(WorkerId(u32::MAX))];
    let event = |(index, (kind, what)): (usize, (EventKind, What))| Event {
        // Events have no order.
        begin: Duration::from_nanos(1_000_000_000_000 - 77 * index as u64),
        end: Duration::from_nanos(1_000_000_000_000 + 123 * index as u64),
        kind,
        track: tracks[index % 3],
        session: SessionId(9),
        signal: index as u32,
        what,
        count: 128,
        failed: index as u32,
        tensor: TensorId((1 << 44) - 1),
        bytes: 1 << 33,
    };
    EventKind::ALL.into_iter().zip(whats).enumerate().map(event).collect()
}

pub fn report() -> Report {
    Report {
        since: Duration::from_nanos(77),
        at: Duration::from_millis(1500),
        engine: "native".into(),
        version: "1.2.3".into(),
        memory_limit: Some(1 << 36),
        operations: 10,
        failed: 1,
        tensors: 3,
        bytes: 1 << 40,
        bytes_peak: 1 << 41,
        spilled_tensors: 2,
        spilled_bytes: 1 << 33,
        snapshot_bytes: 1 << 20,
        snapshot_disk_bytes: 1 << 34,
        busy: Activity::ALL.map(|activity| Duration::from_nanos(activity as u64 * 1000)),
        gpu: Some(gpu()),
        hot_paths: HotPathReport {
            instructions: 7,
            sequences: 2,
            compilation: CompilationStats { cache_hits: 5, ..CompilationStats::default() },
            top: vec![Sequence { operations: "add mul".into(), length: 2, ..Sequence::default() }],
        },
    }
}

/// The details of a session.
pub fn inspection() -> Inspection {
    let stream = vec![InstructionCount {
        operation: "matmul".into(),
        line: "train.py:12".into(),
        signal: "forward".into(),
        count: 300,
        hot: 200,
        bytes: 1 << 33,
    }];
    let hot_paths = vec![HotPathStatus {
        number: 3,
        steps: 63,
        operations: "matmul,relu,+61".into(),
        lines: "train.py:12".into(),
        instructions: 1 << 40,
    }];
    let explained = ExplainedSteps {
        at: Duration::from_secs(4),
        explanation: explanation(),
        lines: vec![(SourceId(3), "train.py:12".into())],
        is_cut: true,
    };
    Inspection {
        session: SessionId(9),
        since: Duration::from_secs(3),
        stream,
        unlisted: 7,
        hot_paths,
        unlisted_hot_paths: 1,
        held: Some(held()),
        explained: Some(explained),
    }
}

/// The tensors that a program holds.
pub fn held() -> HeldTensors {
    let tensor = HeldTensor {
        variable: "model.fc1.weight".into(),
        line: "train.py:7".into(),
        meta: meta(),
        purpose: "for the gradient of matmul".into(),
    };
    HeldTensors {
        at: Duration::from_secs(2),
        largest: vec![tensor],
        others: 3,
        other_bytes: 1 << 33,
    }
}

pub fn gpu() -> GpuStatus {
    let memory = Some(GpuMemory { used: 1 << 33, total: 1 << 37 });
    GpuStatus {
        name: "NVIDIA H200".into(),
        index: Some(7),
        uuid: "GPU-ffc79498-8ff3-c2dc-3b0d-fafd804516ae".into(),
        reading: Some(GpuReading { percent: Some(87), memory }),
    }
}

fn windows() -> [WindowUse; WINDOWS.len()] {
    WINDOWS.map(|(_, length)| WindowUse { entitled: length / 2, used: length / 3 })
}

/// A cluster event of each kind.
fn cluster_events() -> Vec<ClusterEvent> {
    use ClusterEventKind::*;
    let worker = || "w0".to_string();
    let session = || SessionLabel { number: SessionId(3), name: "train.py ada@box #3".into() };
    let reason = || "its link is lost".to_string();
    let moved = |reason| SlotsMoved {
        session: session(),
        from: worker(),
        to: "w1".into(),
        slots: 2,
        bytes: 1 << 33,
        reason,
    };
    let kinds = [
        WorkerJoined { worker: worker(), is_back: true },
        WorkerDrains { worker: worker(), within: Duration::from_secs(60) },
        DrainEnded { worker: worker(), reason: reason() },
        WorkerLeft { worker: worker(), reason: reason() },
        WorkerLost { worker: worker(), reason: reason() },
        SessionEnded { session: session(), reason: reason() },
        RecoveryBegun { session: session(), cause: reason(), batches: 1 << 20, bytes: 1 << 33 },
        Recovered { session: session(), cause: reason(), took: Duration::from_millis(1300) },
        TensorsLost { session: session(), reason: reason() },
        CommandGivenUp { session: session(), reason: reason() },
        moved(MoveReason::Loss),
        moved(MoveReason::Drain),
        moved(MoveReason::Balance),
        moved(MoveReason::Link),
    ];
    let at = Duration::from_secs(2);
    (1..).zip(kinds).map(|(number, kind)| ClusterEvent { number, at, kind }).collect()
}

pub fn status() -> Status {
    let session = |number, waits| SessionStatus {
        number,
        name: format!("train.py ada@box #{number}"),
        origin: super::origin(),
        slots: vec![(0, "w0".into()), (1, String::new())],
        entitlement: super::entitlement(),
        share: 0.25,
        since: Duration::from_secs(1),
        instructions: 1 << 20,
        hot_instructions: 1 << 19,
        open: 12,
        queued: 3,
        bytes: 4096,
        spilled: 1 << 34,
        busy: Duration::from_millis(7),
        anticipated: Duration::from_micros(400),
        anticipations: 1 << 33,
        windows: windows(),
        recoveries: 2,
        unkept: "no".into(),
        tensors: 300,
        named: Some(NamedSession {
            name: "run-12".into(),
            is_private: true,
            is_detached: true,
            since: Duration::from_secs(3),
            kept: 2,
        }),
        waits,
        last_error: Some(LastError {
            at: Duration::from_secs(2),
            operation: "gather of int64 (2,)".into(),
            reason: "index 7 is out of range for an axis of length 3".into(),
            worker: "w0".into(),
            line: "train.py:31".into(),
        }),
        behind: vec!["run-12 eve@box #9".into()],
    };
    let awaited =
        AwaitedTensor { id: TensorId(77), operation: "mean".into(), line: "train.py:31".into() };
    let since = Duration::from_secs(2);
    let waits = [
        Waits::Nothing,
        Waits::Workers,
        Waits::Room,
        Waits::Reader,
        Waits::Copies,
        Waits::Operator,
        Waits::Work,
        Waits::Value { tensor: awaited, worker: "w".into(), since },
        Waits::Memory { worker: "w".into(), bytes: 1 << 33, holder: "user ada".into(), since },
    ];
    Status {
        asker: Some(SessionId(3)),
        now: Duration::from_secs(3),
        workers: [None, Some(since)]
            .map(|busy_since| WorkerStatus {
                id: WorkerId(1),
                number: 0,
                name: "w".into(),
                host: "node7".into(),
                rack: "r1".into(),
                is_draining: busy_since.is_some(),
                homes: 2,
                in_flight: 100,
                batches: 4,
                busy_since,
                busy: Duration::from_nanos(1 << 33),
                report: report(),
            })
            .into(),
        sessions: (1..)
            .zip(waits)
            .map(|(number, waits)| session(SessionId(number), waits))
            .collect(),
        users: vec![UserStatus {
            entitlement: super::entitlement(),
            sessions: 2,
            share: 0.5,
            bytes: 1 << 34,
            spilled: 1 << 33,
            busy: Duration::from_secs(70),
            windows: windows(),
        }],
        teams: vec![TeamStatus {
            name: "vision".into(),
            weight: 3,
            sessions: 2,
            share: 0.5,
            bytes: 1 << 34,
            spilled: 1 << 33,
            busy: Duration::from_secs(70),
            windows: windows(),
        }],
        publications: vec![PublicationStatus {
            name: "ada/model".into(),
            version: 2,
            audience: Audience::All,
            description: "a base model".into(),
            at: 1 << 31,
            tensors: 300,
            bytes: 1 << 34,
            readers: 10,
            is_visible: true,
            is_withdrawn: false,
        }],
        cluster_events: cluster_events(),
        counters: Box::new(ClusterCounters { moves: 1 << 40, ..ClusterCounters::default() }),
        hour: vec![MinuteStatus {
            begin: -60,
            used: Duration::from_secs(70),
            workers: 2,
            sessions: 9,
            bytes: 1 << 34,
            spilled: 1 << 33,
            moves: 3,
            recoveries: 2,
            losses: 1,
        }],
        dropped: 5,
    }
}
