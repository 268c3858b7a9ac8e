//! Messages of all kinds, with every variant of what they hold.

mod commands;
mod exchanges;
mod observability;
mod operators;
mod templates;

use std::fmt::Debug;
use std::time::Duration;

use bytes::Bytes;
use gt_ir::entitlement::{
    Anticipation, Entitlement, Holding, MemoryQuota, MemoryWait, Other, PolicyKind, Usage,
};
use gt_ir::event::EmitLevel;
use gt_ir::message::FoundPublication;
use gt_ir::message::{
    Acknowledge, Answer, Badge, ClientHello, ClientToServer, ClientWelcome, Failure, Goodbye,
    Hello, LinkRate, Message, Named, OperatorHello, Process, Reply, Resume, ServerToClient,
    ServerToWatcher, ServerToWorker, WatcherHello, WatcherToServer, Welcome, WorkerHello,
    WorkerToServer, WorkerToWorker, WorkerWelcome,
};
use gt_ir::publication::FIRST_PUBLICATION;
use gt_ir::snapshot::{Backup, Inventory, Owner, SavedValue, Unkept};
use gt_ir::statistics::{Compilation, WorkerStats};
use gt_ir::{
    Attach, Content, DType, Incarnation, LaneId, Meta, Piece, RequestId, SessionId, SessionOrigin,
    Shape, SlotId, SourceId, StreamNumbers, TensorData, TensorId, TransferId, WorkerId,
};
use gt_net::codec::{decode, encode};

pub use commands::{client_commands, worker_commands};
use commands::{kept, written};
use exchanges::fabric;
use observability::{events, explanation, held, inspection, report, status};
use operators::{operator_to_server, server_to_operator};

/// A message as frames.
pub struct Sample {
    /// Its kind and variant, such as `worker_to_server-lane_done`.
    pub name: String,
    pub frames: Vec<Bytes>,
}

/// A message of each variant, and of some several.
pub fn samples() -> Vec<Sample> {
    let mut all = Samples::default();
    all.add(hellos());
    all.add(welcomes());
    all.add(vec![Acknowledge { received: 300 }]);
    all.add(vec![Goodbye { reason: "bye".into() }]);
    all.add(client_to_server());
    all.add(server_to_client());
    all.add(worker_to_server());
    all.add(server_to_worker());
    all.add(worker_to_worker());
    all.add(watcher_to_server());
    all.add(server_to_watcher());
    all.add(operator_to_server());
    all.add(server_to_operator());
    all.0
}

#[derive(Default)]
struct Samples(Vec<Sample>);

impl Samples {
    /// Adds messages of one type, each of which is read back from its frames.
    fn add<M: Message + PartialEq + Debug>(&mut self, messages: Vec<M>) {
        for message in messages {
            let frames = encode(&message);
            assert_eq!(decode::<M>(&frames).unwrap(), message);
            let words = format!("{message:?}");
            let is_end = |letter: char| !letter.is_alphanumeric();
            let variant = words.split(is_end).next().unwrap_or_default();
            let kind = format!("{:?}", M::KIND);
            let mut name = snake(&kind);
            if variant != kind {
                name = format!("{name}-{}", snake(variant));
            }
            let same = self
                .0
                .iter()
                .filter(|other| other.name == name || other.name.starts_with(&format!("{name}.")));
            let name = match same.count() {
                0 => name,
                count => format!("{name}.{}", count + 1),
            };
            self.0.push(Sample { name, frames });
        }
    }
}

/// Returns `LaneDone` as `lane_done`.
fn snake(name: &str) -> String {
    let mut snake = String::new();
    for letter in name.chars() {
        if letter.is_uppercase() && !snake.is_empty() {
            snake.push('_');
        }
        snake.extend(letter.to_lowercase());
    }
    snake
}

pub const LANE: LaneId = LaneId { incarnation: Incarnation(9), slot: SlotId(2) };
const REQUEST: RequestId = RequestId(1);
const TRANSFER: TransferId = TransferId(7);

fn failure() -> Failure {
    let line = SourceId(2);
    let largest = vec![Holding { incarnation: Incarnation(9), line, meta: meta(), bytes: 1 << 33 }];
    let others =
        vec![Other { incarnation: Incarnation(3), label: "a ada@box #1".into(), bytes: 1 << 20 }];
    Failure { largest, others, ..Failure::new("add", "no", "w", line) }
}

fn piece(result: Result<Content, Failure>) -> Piece {
    Piece { transfer: TRANSFER, number: 3, from: SlotId(2), to: LANE, result }
}

fn hellos() -> Vec<Hello> {
    let badge =
        || Some(Box::new(Badge { user: "ada".into(), team: "vision".into(), proof: [7; 32] }));
    let resume = Resume {
        token: u128::MAX,
        received: 300,
        sent: 400,
        acknowledged: 200,
        recorded: 190,
        waits: vec![RequestId(7)],
    };
    vec![
        Hello::Client(ClientHello {
            origin: origin(),
            machine: "m".into(),
            badge: badge(),
            process: Some(Process { pid: 300, start: 1 << 40 }),
            resume: Some(Box::new(resume)),
            attach: Some(Box::new(Attach {
                name: "run-12".into(),
                or_create: true,
                take_over: false,
                token: Some(u128::MAX),
            })),
        }),
        Hello::Worker(WorkerHello {
            name: "n".into(),
            machine: "m".into(),
            host: "node7".into(),
            rack: "r1".into(),
            endpoint: "tcp://h:1".into(),
            fabric: Some(Box::new(fabric())),
            rate: 1 << 40,
            is_exact: true,
            arithmetic: "native 1".into(),
            is_durable: true,
            token: Some(7),
        }),
        Hello::Watcher(WatcherHello { name: "n".into(), badge: badge() }),
        Hello::Operator(OperatorHello { name: "n".into(), badge: badge() }),
    ]
}

fn origin() -> SessionOrigin {
    SessionOrigin { program: "train.py".into(), user: "ada".into(), host: "box".into() }
}

fn welcomes() -> Vec<Welcome> {
    let grace = Duration::from_secs(600);
    vec![
        Welcome::Client(ClientWelcome {
            window: 2,
            name: "train.py ada@box #3".into(),
            machine: "m".into(),
            data_roots: vec!["/data".into()],
            token: Some(u128::MAX),
            received: 300,
            grace,
            is_kept: true,
            is_renewed: false,
            is_attached: true,
            numbers: StreamNumbers { tensor: 300, request: 7 },
        }),
        Welcome::Worker(WorkerWelcome {
            worker: WorkerId(3),
            name: "w".into(),
            token: None,
            grace,
            is_renewed: true,
        }),
        Welcome::Watcher,
        Welcome::Operator,
    ]
}

pub fn client_to_server() -> Vec<ClientToServer> {
    vec![
        ClientToServer::Stream(client_commands()),
        ClientToServer::AwaitCredit,
        ClientToServer::Received { request: REQUEST },
        ClientToServer::Confirmed { snapshot: 3 },
        ClientToServer::Release { token: u128::MAX },
        ClientToServer::Observed {
            sent: Duration::from_nanos(7),
            here: Duration::from_nanos(1 << 40),
        },
        ClientToServer::Events { events: events(), dropped: 3 },
        ClientToServer::Lines { lines: vec![(SourceId(2), "train.py:12".into())] },
        ClientToServer::End,
        ClientToServer::Held(Box::new(held())),
    ]
}

fn server_to_client() -> Vec<ServerToClient> {
    let answer = |reply| ServerToClient::Answer(Answer::new(REQUEST, reply));
    vec![
        ServerToClient::Credit(3),
        answer(Reply::Value(data(10))),
        answer(Reply::Saved(vec![written()])),
        answer(Reply::Statistics(vec![statistics()])),
        answer(Reply::Explained(explanation())),
        answer(Reply::Located(vec![])),
        answer(Reply::Status(Box::new(status()))),
        answer(Reply::Kept(vec![kept()])),
        answer(Reply::Detached),
        answer(Reply::Published { name: "ada/model@2".into() }),
        answer(Reply::Found(Box::new(FoundPublication {
            publication: SessionId(FIRST_PUBLICATION + 1),
            name: "ada/model@2".into(),
            structure: Bytes::from_static(b"{}"),
            tensors: vec![meta()],
        }))),
        answer(Reply::Withdrawn { versions: 3 }),
        ServerToClient::Answer(Answer { request: REQUEST, result: Err(failure()) }),
        ServerToClient::StepUndone(Box::new(failure())),
        ServerToClient::Notice { text: "soon".into() },
        ServerToClient::Confirm { snapshot: 3 },
        ServerToClient::Release { token: u128::MAX },
        ServerToClient::Lines { lines: vec![SourceId(2), SourceId(5)] },
        ServerToClient::ListHeld,
        ServerToClient::Observe {
            level: EmitLevel::Events,
            sent: Duration::from_nanos(1_000_000_007),
        },
    ]
}

fn worker_to_server() -> Vec<WorkerToServer> {
    let (lane, request, slot) = (LANE, REQUEST, SlotId(2));
    let stored =
        |result| WorkerToServer::BackupStored { session: SessionId(9), slot, snapshot: 7, result };
    let anticipation = Anticipation { time: 400_000, count: 3 };
    let usage = Usage { device: 1 << 33, bytes: 4096, spilled: 7, anticipation };
    let link = LinkRate { to: WorkerId(3), bytes_per_second: 1 << 30 };
    let wait = MemoryWait { number: 300, bytes: 1 << 33, holder: "user ada".into() };
    vec![
        WorkerToServer::LaneDone { lane, weight: 300, usage },
        WorkerToServer::LaneBroken { lane, reason: "why".into() },
        WorkerToServer::StepUndone { lane, failure: Box::new(failure()) },
        WorkerToServer::MemoryWait { lane, wait: None },
        WorkerToServer::MemoryWait { lane, wait: Some(wait) },
        WorkerToServer::Value { request, result: Ok(data(10)) },
        WorkerToServer::Value { request, result: Err(failure()) },
        WorkerToServer::Saved { request, result: Ok(vec![written()]) },
        WorkerToServer::Saved { request, result: Err(failure()) },
        WorkerToServer::Statistics { request, statistics: Box::new(statistics()) },
        WorkerToServer::CollectiveReady {
            lane,
            transfer: TRANSFER,
            members: vec![SlotId(2), SlotId(3)],
            result: Ok(4),
        },
        WorkerToServer::Undelivered { transfer: TRANSFER, to: lane, reason: "far".into() },
        WorkerToServer::Relay { to: WorkerId(3), piece: piece(Ok(data(9))) },
        WorkerToServer::Backup(Box::new(backup(failure()))),
        stored(Ok(1 << 33)),
        stored(Err(Unkept::Unreachable("gone".into()))),
        stored(Err(Unkept::Incomplete)),
        stored(Err(Unkept::Dropped("full".into()))),
        stored(Err(Unkept::Refused("full".into()))),
        WorkerToServer::Release { token: u128::MAX },
        WorkerToServer::Observed {
            sent: Duration::from_nanos(7),
            here: Duration::from_nanos(1 << 40),
        },
        WorkerToServer::Report(Box::new(report())),
        WorkerToServer::Needs { publication: SessionId(FIRST_PUBLICATION + 1), slot },
        WorkerToServer::Events {
            events: events().into_iter().map(|event| (Incarnation(9), event)).collect(),
            dropped: 3,
        },
        WorkerToServer::Drain { within: Duration::from_secs(25) },
        WorkerToServer::Links(vec![link]),
    ]
}

pub fn server_to_worker() -> Vec<ServerToWorker> {
    let (lane, request, slot) = (LANE, REQUEST, SlotId(2));
    vec![
        ServerToWorker::Work { lane, commands: worker_commands() },
        ServerToWorker::Cancel { lane, request },
        ServerToWorker::EndSession { incarnation: Incarnation(9) },
        ServerToWorker::Admit { incarnation: Incarnation(9), entitlement: entitlement() },
        ServerToWorker::SetPolicy(PolicyKind::Priority),
        ServerToWorker::MemoryTimeout { lane, number: 300, has_waited: true },
        ServerToWorker::CollectiveWaits { lane },
        ServerToWorker::StartCollective {
            lane,
            transfer: TRANSFER,
            sequence: 77,
            result: Err(failure()),
        },
        ServerToWorker::Piece(piece(Err(failure()))),
        ServerToWorker::Backup(Box::new(backup(failure()))),
        ServerToWorker::Retain { session: SessionId(9), snapshot: Some(7), next: 9 },
        ServerToWorker::RetainSessions {
            sessions: vec![SessionId(3), SessionId(9)],
            since: SessionId(1009),
            oldest: Incarnation(1010),
        },
        ServerToWorker::HandOver {
            session: SessionId(9),
            slot,
            snapshot: 7,
            to: Some(WorkerId(3)),
        },
        ServerToWorker::Neighbour {
            worker: WorkerId(2),
            name: "w2".into(),
            endpoint: "tcp://10.0.0.7:4444".into(),
            machine: "m".into(),
        },
        ServerToWorker::WorkerLost { worker: WorkerId(3), name: "w3".into() },
        ServerToWorker::Release { token: u128::MAX },
        ServerToWorker::Observe {
            level: EmitLevel::Events,
            sent: Duration::from_nanos(1_000_000_007),
        },
        ServerToWorker::DrainEnded { refused: Some("it is the last".into()) },
    ]
}

fn worker_to_worker() -> Vec<WorkerToWorker> {
    let sender = WorkerId(2);
    vec![
        WorkerToWorker::Piece { sender, piece: piece(Ok(data(9))) },
        WorkerToWorker::Piece { sender, piece: piece(Err(failure())) },
        WorkerToWorker::Backup(Box::new(backup(failure()))),
        WorkerToWorker::Release { token: u128::MAX },
    ]
}

fn watcher_to_server() -> Vec<WatcherToServer> {
    vec![
        WatcherToServer::Status { request: REQUEST, since: 1 << 40 },
        WatcherToServer::Poll { limit: 1 << 16 },
        WatcherToServer::Inspect { request: REQUEST, session: SessionId(9), explain: true },
    ]
}

fn server_to_watcher() -> Vec<ServerToWatcher> {
    vec![
        ServerToWatcher::Status { request: RequestId(8), status: Box::new(status()) },
        ServerToWatcher::Names(vec![
            (Named::Session(SessionId(3)), "train.py ada@box #3".into()),
            (Named::Worker(WorkerId(2)), "gpu2".into()),
            (Named::Signal { session: SessionId(3), number: 1 }, "forward".into()),
            (Named::Slot { session: SessionId(3), slot: SlotId(1) }, "gpu2".into()),
            (Named::Template { session: SessionId(3), number: 7 }, "steps=mul".into()),
            (Named::Plan { session: SessionId(3), number: 300 }, "steps=mul".into()),
        ]),
        ServerToWatcher::Events { events: events(), dropped: 3 },
        ServerToWatcher::Inspected { request: REQUEST, result: Ok(Box::new(inspection())) },
        ServerToWatcher::Inspected { request: REQUEST, result: Err("it has ended".into()) },
    ]
}

fn backup(failure: Failure) -> Backup {
    let value = |tensor, result| SavedValue { tensor: TensorId(tensor), line: SourceId(2), result };
    Backup {
        owner: Owner { session: SessionId(9), slot: SlotId(2) },
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
    let gpu = Some(observability::gpu());
    WorkerStats { compilations: vec![compilation], gpu, ..WorkerStats::default() }
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
