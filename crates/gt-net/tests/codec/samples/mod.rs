//! Messages of all kinds, with every variant of what they hold.

mod commands;
mod exchanges;
mod observability;
mod templates;

use std::time::Duration;

use bytes::Bytes;
use gt_ir::entitlement::{Entitlement, Holding, MemoryQuota, MemoryWait, Other, PolicyKind, Usage};
use gt_ir::message::{Badge, Failure, Hello, Message, Named, Process, Resume, Role, Welcome};
use gt_ir::snapshot::{Backup, Inventory, Owner, SavedValue, Unkept};
use gt_ir::statistics::{Compilation, WorkerStats};
use gt_ir::stored::OnDisk;
use gt_ir::{
    Content, DType, LaneId, Meta, Piece, RequestId, Shape, SlotId, SourceId, TensorData, TensorId,
    TransferId, WorkerId,
};

use commands::written;
pub use commands::{client_commands, worker_commands};
use exchanges::fabric;
use observability::{events, explanation, report, status};

/// One message of each kind, and of some several.
pub fn messages() -> Vec<Message> {
    let line = SourceId(2);
    let largest = vec![Holding { session: 9, line, meta: meta(), bytes: 1 << 33 }];
    let others = vec![Other { session: 3, label: "ada#1".into(), bytes: 1 << 20 }];
    let failure = Failure { largest, others, ..Failure::new("add", "no", "w", line) };
    let lane = LaneId { session: 9, slot: SlotId(2) };
    let (request, transfer) = (RequestId(1), TransferId(7));
    let file = OnDisk { checksum: u32::MAX, mapped: Some(data(3)) };
    let backed = |unkept| {
        let (slot, result) = (SlotId(2), Err(unkept));
        Message::Backed { session: 9, slot, snapshot: 7, result }
    };
    let piece = |result| Piece { transfer, from: SlotId(2), to: lane, result };
    vec![
        Message::Hello(Hello {
            version: 1,
            schema: 2,
            role: Role::Watcher,
            name: "n".into(),
            machine: "m".into(),
            endpoint: "tcp://h:1".into(),
            fabric: Some(Box::new(fabric())),
            rate: 1 << 40,
            is_exact: true,
            arithmetic: "native 1".into(),
            is_durable: true,
            badge: Some(Box::new(Badge {
                user: "ada".into(),
                team: "vision".into(),
                proof: [7; 32],
            })),
            process: Some(Process { pid: 300, start: 1 << 40 }),
            resume: Some(Box::new(Resume {
                token: u128::MAX,
                received: 300,
                sent: 400,
                acknowledged: 200,
                recorded: 190,
                waits: vec![RequestId(7)],
            })),
        }),
        Message::Welcome(Welcome {
            session: 1,
            name: "w".into(),
            window: 2,
            machine: "m".into(),
            data_roots: vec!["/data".into()],
            resume: None,
            grace: Duration::from_secs(600),
            is_kept: true,
            is_renewed: false,
        }),
        Message::RetainSessions { sessions: vec![3, 9], oldest: 1010 },
        Message::Confirm { snapshot: 3 },
        Message::Confirmed { snapshot: 3 },
        Message::Acknowledge { received: 300 },
        Message::Goodbye { reason: "bye".into() },
        Message::Stream(client_commands()),
        Message::Work { lane, commands: worker_commands() },
        Message::Done(3),
        Message::LaneDone {
            lane,
            weight: 300,
            usage: Usage { device: 1 << 33, bytes: 4096, spilled: 7 },
        },
        Message::Divide(PolicyKind::Priority),
        Message::Notice { text: "soon".into() },
        Message::StepUndone { lane, failure: Box::new(failure.clone()) },
        Message::LaneBroken { lane, reason: "why".into() },
        Message::MemoryWait { lane, wait: None },
        Message::MemoryWait {
            lane,
            wait: Some(MemoryWait { number: 300, bytes: 1 << 33, holder: "user ada".into() }),
        },
        Message::MemoryTimeout { lane, number: 300, has_waited: true },
        Message::Spilled { lane, tensor: TensorId(4), number: 9, result: Ok(file) },
        Message::Spilled { lane, tensor: TensorId(4), number: 9, result: Err(failure.clone()) },
        Message::Shelved {
            owner: Owner { session: 9, slot: SlotId(2) },
            tensor: TensorId(4),
            result: Ok(data(3)),
        },
        Message::Admit { session: 9, entitlement: entitlement() },
        Message::EndSession { session: 9 },
        Message::Value { request, result: Ok(data(10)) },
        Message::Value { request, result: Err(failure.clone()) },
        Message::Saved { request, result: Ok(vec![written()]) },
        Message::Saved { request, result: Err(failure.clone()) },
        Message::Loaded { lane, tensor: TensorId(4), result: Ok(data(10)) },
        Message::Release { token: u128::MAX },
        Message::Received { request },
        Message::Awaited { lane },
        Message::Statistics { request, workers: vec![statistics()] },
        Message::Cancel { lane, request },
        Message::Explained { request, explanation: explanation() },
        Message::Located { request, result: Err(failure.clone()) },
        Message::Status { request: RequestId(8), status: Box::new(status()) },
        Message::Piece { sender: WorkerId(2), piece: piece(Ok(data(9))) },
        Message::Piece { sender: WorkerId(2), piece: piece(Err(failure.clone())) },
        Message::Neighbour {
            worker: WorkerId(2),
            name: "w2".into(),
            endpoint: "tcp://10.0.0.7:4444".into(),
            machine: "m".into(),
        },
        Message::Backup(Box::new(backup(failure.clone()))),
        Message::Backed { session: 9, slot: SlotId(2), snapshot: 7, result: Ok(1 << 33) },
        backed(Unkept::Unreachable("gone".into())),
        backed(Unkept::Incomplete),
        backed(Unkept::Dropped("full".into())),
        backed(Unkept::Refused("full".into())),
        Message::Retain { session: 9, snapshot: Some(7), next: 9 },
        Message::HandOver { session: 9, slot: SlotId(2), snapshot: 7, to: Some(WorkerId(3)) },
        Message::Undelivered { transfer, to: lane, reason: "far".into() },
        Message::WorkerLost { worker: WorkerId(3), name: "w3".into() },
        Message::Ready { lane, transfer, members: vec![SlotId(2), SlotId(3)], result: Ok(4) },
        Message::Join { lane, transfer, sequence: 77, result: Err(failure) },
        Message::Observe { on: true, sent: Duration::from_nanos(1_000_000_007) },
        Message::Observed { sent: Duration::from_nanos(7), here: Duration::from_nanos(1 << 40) },
        Message::Report(Box::new(report())),
        Message::Events { events: events(), dropped: 3 },
        Message::Watch { limit: 1 << 16 },
        Message::Names(vec![
            (Named::Session(3), "1f#3".into()),
            (Named::Worker(WorkerId(2)), "gpu2".into()),
            (Named::Signal { session: 3, number: 1 }, "forward".into()),
            (Named::Slot { session: 3, slot: SlotId(1) }, "gpu2".into()),
        ]),
        Message::Waiting,
    ]
}

fn backup(failure: Failure) -> Backup {
    let value = |tensor, result| SavedValue { tensor: TensorId(tensor), line: SourceId(2), result };
    Backup {
        owner: Owner { session: 9, slot: SlotId(2) },
        snapshot: 7,
        sender: Some(WorkerId(2)),
        values: vec![value(4, Ok(data(9))), value(5, Err(failure))],
        inventory: Some(Inventory {
            names: [TensorId(4), TensorId(5)].into_iter().collect(),
            runs: vec![(1 << 50, 2)],
        }),
    }
}

fn entitlement() -> Entitlement {
    let (team, user) = ("vision".into(), "ada".into());
    let memory = vec![MemoryQuota { holder: "team vision".into(), bytes: 1 << 34 }];
    Entitlement {
        team,
        team_weight: 3,
        user,
        user_weight: 1,
        weight: 1 << 20,
        priority: 7,
        memory,
        is_away: true,
    }
}

fn statistics() -> WorkerStats {
    let time = Duration::from_millis(1500);
    let compilation = Compilation { operations: "add".into(), reason: "asked for".into(), time };
    WorkerStats { compilations: vec![compilation], ..WorkerStats::default() }
}

pub fn meta() -> Meta {
    Meta::new(DType::F32, Shape::new(&[2, 3]).unwrap())
}

/// Bytes, as many as wanted.
pub fn data(numel: usize) -> Content {
    let shape = Shape::new(&[numel]).unwrap();
    let bytes = Bytes::from(vec![5u8; numel]);
    Content::Data(TensorData::new(DType::U8, shape, bytes).unwrap())
}
