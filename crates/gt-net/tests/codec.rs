//! Messages survive the way through frames; anything else is an error, never a panic.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gt_ir::data::SharedBlock;
use gt_ir::event::{Activity, Event, EventKind, Mix, Track, What};
use gt_ir::exchange::{Collective, Exchange, Parts, Receive, Sender};
use gt_ir::explain::{Explanation, PlacedTensor, PlannedMove, PlannedStep};
use gt_ir::fabric::{Fabric, Joint, Member, Way};
use gt_ir::layout::{Layout, Mesh, Placement};
use gt_ir::message::{Failure, Hello, Message, Named, Role, Welcome, WorkerStats};
use gt_ir::operation::SampleOperand;
use gt_ir::sharding::{Block, Reduction};
use gt_ir::signal::{MeshAxis, Shard};
use gt_ir::status::{Report, SessionStatus, Share, Status, Waits, WorkerStatus};
use gt_ir::template::{
    Argument, ExchangeStep, IterationPart, MovingSlice, Name, RunStep, Start, Step, Varying,
};
use gt_ir::wire::Record;
use gt_ir::{
    Attribute, ClientCommand, Content, Create, DType, Definition, Instruction, Invocation, LaneId,
    Meta, Operand, Piece, RequestId, Scalar, Shape, SlotId, SourceId, Template, TensorData,
    TensorId, TransferId, WorkerCommand, WorkerId, ops,
};
use gt_net::codec::{DATA_FRAME, decode, encode};
use proptest::prelude::*;

/// Every operation with every one of its samples' attributes.
fn instructions() -> Vec<Instruction> {
    let mut instructions = Vec::new();
    for operation in ops::ALL {
        for sample in (operation.samples)() {
            let operands =
                sample.operands.iter().enumerate().map(|(index, operand)| match operand {
                    SampleOperand::Tensor { .. } => Operand::Tensor(TensorId(index as u64 + 7)),
                    SampleOperand::Scalar(scalar) => Operand::Scalar(*scalar),
                });
            instructions.push(Instruction {
                operation,
                output: TensorId(99),
                results: [meta(), Meta::new(DType::I64, Shape::SCALAR)].into_iter().collect(),
                operands: operands.collect(),
                attributes: sample.attributes.clone(),
                source: SourceId(3),
                signal: 1,
            });
        }
    }
    instructions
}

fn meta() -> Meta {
    Meta::new(DType::F32, Shape::new(&[2, 3]).unwrap())
}

fn data(numel: usize) -> Content {
    let shape = Shape::new(&[numel]).unwrap();
    let bytes = Bytes::from(vec![5u8; numel]);
    Content::Data(TensorData::new(DType::U8, shape, bytes).unwrap())
}

fn grid() -> Shard {
    let mesh = vec![
        MeshAxis { name: "data".into(), length: 2, axis: Some(-1) },
        MeshAxis { name: "model".into(), length: 0, axis: None },
    ];
    Shard { workers: Some(vec![3, 1, 2, 0]), mesh }
}

fn exchange() -> Exchange {
    let block = Block::whole(Shape::new(&[2, 3]).unwrap());
    let from_own = Receive { from: Sender::Own(block), at: block };
    let from_other = Receive { from: Sender::Slot(SlotId(4)), at: block };
    Exchange {
        transfer: TransferId(1 << 60),
        collective: Collective::ReduceScatter,
        input: Some(TensorId(8)),
        output: Some((TensorId(9), Meta::new(DType::F16, Shape::new(&[2, 3]).unwrap()))),
        parts: Parts { sends: vec![(SlotId(4), block)], receives: vec![from_own, from_other] },
        reduction: Some(Reduction::Max),
        joint: None,
        line: SourceId(5),
    }
}

fn joint_exchange(way: Way) -> Exchange {
    let member = |slot: u32| {
        let (worker, name) = (WorkerId(slot + 7), format!("w{slot}"));
        Member { slot: SlotId(slot), worker, name }
    };
    let (kind, store) = ("gloo/2.15".into(), "127.0.0.1:4444".into());
    let joint = Joint { kind, store, members: vec![member(3), member(4)], way };
    Exchange { joint: Some(Arc::new(joint)), ..exchange() }
}

fn fabric() -> Fabric {
    let (kind, store) = ("nccl/2.15".into(), "10.0.0.7:4444".into());
    Fabric { kind, local: false, store, device: "GPU-7".into() }
}

fn creates() -> Vec<Create> {
    let block = SharedBlock { pid: 1, fd: -2, length: 24, token: 3 };
    let create = |content, signal| Create { output: TensorId(1), content, signal };
    let shared = Content::Shared { meta: meta(), block };
    vec![create(data(3), 0), create(data(5000), 300), create(shared, 0)]
}

fn client_commands() -> Vec<ClientCommand> {
    let request = RequestId(4);
    let mut commands: Vec<_> = instructions().into_iter().map(ClientCommand::Run).collect();
    commands.extend(creates().into_iter().map(ClientCommand::Create));
    commands.extend([
        ClientCommand::Fetch { request, tensor: TensorId(5), line: SourceId(0) },
        ClientCommand::Free(TensorId(6)),
        ClientCommand::Cancel { request },
        ClientCommand::Signal { number: 8, name: "läyer".into(), shard: None },
        ClientCommand::Signal { number: 9, name: "grid".into(), shard: Some(grid()) },
        ClientCommand::Statistics { request },
        ClientCommand::Explain { request, begin: true },
        ClientCommand::Locate { request, tensor: TensorId(7) },
        ClientCommand::Status { request },
        ClientCommand::Strict { limit: Some(1 << 40) },
        ClientCommand::Define(Box::new(definition())),
        ClientCommand::Forget { template: 3 },
        ClientCommand::Invoke(Box::new(invocation())),
    ]);
    commands
}

fn worker_commands() -> Vec<WorkerCommand> {
    let request = RequestId(4);
    let mut commands: Vec<_> =
        instructions().into_iter().map(|one| WorkerCommand::Run(Arc::new(one))).collect();
    commands.extend(creates().into_iter().map(|one| WorkerCommand::Create(Box::new(one))));
    commands.extend([
        WorkerCommand::Free(TensorId(6)),
        WorkerCommand::Fetch { request, tensor: TensorId(5), shared: true, line: SourceId(0) },
        WorkerCommand::Statistics { request },
        WorkerCommand::Exchange(Box::new(exchange())),
        WorkerCommand::Exchange(Box::new(joint_exchange(Way::Broadcast { root: 1 }))),
        WorkerCommand::Exchange(Box::new(joint_exchange(Way::AllToAll))),
        WorkerCommand::Slots(vec![WorkerId(3), WorkerId(9)]),
        WorkerCommand::Define(Box::new(definition())),
        WorkerCommand::Invoke(Arc::new(invocation())),
    ]);
    commands
}

fn definition() -> Definition {
    let lists = [vec![1i64], vec![2], vec![1]];
    let run = RunStep {
        operation: &ops::slice::SLICE,
        output: Name::Own(300),
        results: [meta()].into_iter().collect(),
        operands: [
            Argument::Tensor(Name::Outside(3)),
            Argument::Number(2),
            Argument::Constant(Scalar::Float(0.5)),
        ]
        .into_iter()
        .collect(),
        attributes: lists.iter().map(|list| Attribute::ints(list)).collect(),
        varying: Some(Varying { first: 3, added: [-5].into_iter().collect() }),
        source: SourceId(7),
        signal: 300,
    };
    let placements = [Placement::balanced(0, 9, 2)].into_iter().collect();
    let slots = vec![SlotId(1), SlotId(0)];
    let mesh = Arc::new(Mesh { number: 0, dims: [2].into_iter().collect(), slots });
    let layout = Layout { mesh, placements };
    let shape = Shape::new(&[9, 3]).unwrap();
    let moving = MovingSlice {
        whole: shape,
        from: layout.clone(),
        size: shape,
        starts: Varying { first: 1, added: [0, 7].into_iter().collect() },
        to: layout,
    };
    let exchange = ExchangeStep {
        exchange: Box::new(joint_exchange(Way::AllReduce)),
        transfer: 9,
        input: Some(Name::Made(4)),
        output: None,
        moving: Some(Box::new(moving)),
    };
    let template = Template {
        steps: vec![
            Step::Run(run),
            Step::Exchange(exchange),
            Step::Data { output: Name::Own(2), meta: meta() },
            Step::Free(Name::Own(1)),
        ],
        frees: vec![Name::Outside(0), Name::Own(3)],
        widths: [10, 200],
        tensors: 2,
        numbers: 2,
        cuts: vec![1, 3],
    };
    let start = Start {
        bases: [TensorId(1 << 40), TensorId::PLANNED],
        tensors: vec![TensorId(1), TensorId(1 << 50)],
        numbers: vec![Scalar::Int(3), Scalar::Bool(false)],
    };
    Definition { number: 63, template, start, compile: true }
}

fn invocation() -> Invocation {
    let numbers = vec![(0, Scalar::Float(0.5)), (1, Scalar::Int(-7)), (300, Scalar::Bool(true))];
    Invocation {
        template: 63,
        bases: [TensorId(1 << 40), TensorId::PLANNED],
        transfer: TransferId(77),
        part: IterationPart { first: 2, last: 200, frees: 5 },
        tensors: vec![(0, TensorId(4)), (9000, TensorId(1 << 46))],
        numbers,
        others: vec![TensorId(0), TensorId(1 << 44)],
        digest: 0xdead_beef,
    }
}

fn explanation() -> Explanation {
    let placed =
        || PlacedTensor { meta: meta(), placement: "Shard(0)".into(), workers: vec![0, 7] };
    let moved = PlannedMove {
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
        moves: vec![moved],
    };
    Explanation { steps: vec![step], memory: vec![(3, 1 << 40)] }
}

/// An event of each kind, about each thing.
fn events() -> Vec<Event> {
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
        // Events come in no order.
        begin: Duration::from_nanos(1_000_000_000_000 - 77 * index as u64),
        end: Duration::from_nanos(1_000_000_000_000 + 123 * index as u64),
        kind,
        track: tracks[index % 3],
        session: 9,
        signal: index as u32,
        what,
        count: 128,
        failed: index as u32,
        tensor: TensorId((1 << 44) - 1),
        bytes: 1 << 33,
    };
    EventKind::ALL.into_iter().zip(whats).enumerate().map(event).collect()
}

fn report() -> Report {
    Report {
        since: Duration::from_nanos(77),
        at: Duration::from_millis(1500),
        engine: "native".into(),
        operations: 10,
        failed: 1,
        tensors: 3,
        bytes: 1 << 40,
        bytes_peak: 1 << 41,
        busy: Activity::ALL.map(|activity| Duration::from_nanos(activity as u64 * 1000)),
        sessions: vec![Share { session: 3, bytes: 12, busy: Duration::from_micros(5) }],
    }
}

fn status() -> Status {
    let session = |number, waits| SessionStatus {
        number,
        name: format!("1f#{number}"),
        since: Duration::from_secs(1),
        instructions: 1 << 20,
        open: 12,
        queued: 3,
        bytes: 4096,
        busy: Duration::from_millis(7),
        waits,
    };
    let (tensor, since) = (TensorId(77), Duration::from_secs(2));
    let waits = [
        Waits::Nothing,
        Waits::Workers,
        Waits::Room,
        Waits::Work,
        Waits::Value { tensor, worker: "w".into(), since },
    ];
    Status {
        asker: Some(3),
        now: Duration::from_secs(3),
        workers: [None, Some(since)]
            .map(|busy_since| WorkerStatus {
                id: WorkerId(1),
                number: 0,
                name: "w".into(),
                homes: 2,
                in_flight: 100,
                batches: 4,
                busy_since,
                busy: Duration::from_nanos(1 << 33),
                report: report(),
            })
            .into(),
        sessions: (1..).zip(waits).map(|(number, waits)| session(number, waits)).collect(),
        dropped: 5,
    }
}

fn messages() -> Vec<Message> {
    let failure = Failure {
        operation: "add".into(),
        reason: "no".into(),
        worker: "w".into(),
        line: SourceId(2),
    };
    let lane = LaneId { session: 9, slot: SlotId(2) };
    let (request, transfer) = (RequestId(1), TransferId(7));
    let piece = |result| Piece { transfer, from: SlotId(2), to: lane, result };
    vec![
        Message::Hello(Hello {
            version: 1,
            schema: 2,
            role: Role::Watcher,
            name: "n".into(),
            machine: "m".into(),
            endpoint: "tcp://h:1".into(),
            fabric: Some(fabric()),
            rate: 1 << 40,
        }),
        Message::Welcome(Welcome { session: 1, name: "w".into(), window: 2, machine: "m".into() }),
        Message::Goodbye { reason: "bye".into() },
        Message::Stream(client_commands()),
        Message::Work { lane, commands: worker_commands() },
        Message::Done(3),
        Message::LaneDone { lane, weight: 300 },
        Message::LaneBroken { lane, reason: "why".into() },
        Message::EndSession { session: 9 },
        Message::Value { request, result: Ok(data(10)) },
        Message::Value { request, result: Err(failure.clone()) },
        Message::Release { token: u128::MAX },
        Message::Statistics { request, workers: vec![WorkerStats::default()] },
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
    ]
}

#[test]
fn every_message_is_read_back() {
    // Data that is cut into frames, too.
    let large = Message::Value { request: RequestId(1), result: Ok(data(2 * DATA_FRAME + 5)) };
    for message in messages().into_iter().chain([large]) {
        assert_eq!(decode(&encode(&message)).unwrap(), message);
    }
}

#[test]
fn the_log_knows_the_length_on_the_wire() {
    let empty = encode(&Message::Stream(Vec::new())).concat().len();
    for command in client_commands() {
        let length = encode(&Message::Stream(vec![command.clone()])).concat().len() - empty;
        assert_eq!(command.length(), length, "{command:?}");
    }
    let lane = LaneId { session: 1, slot: SlotId(0) };
    let work = |commands| encode(&Message::Work { lane, commands }).concat().len();
    for command in worker_commands() {
        let length = work(vec![command.clone()]) - work(Vec::new());
        assert_eq!(command.length(), length, "{command:?}");
    }
}

/// A frame cut off anywhere is an error, and so is one with something added.
#[test]
fn cut_frames_are_errors() {
    for message in messages() {
        let frames = encode(&message);
        let head = &frames[0];
        for length in (0..head.len()).step_by(head.len().div_ceil(2000)) {
            let mut cut = frames.clone();
            cut[0] = head.slice(..length);
            assert!(decode(&cut).is_err(), "{length} of {}", head.len());
        }
        let longer = [&head[..], &[0]].concat();
        assert!(decode(&[&[Bytes::from(longer)], &frames[1..]].concat()).is_err());
        assert!(decode(&[&frames[..], &[Bytes::from_static(b"x")]].concat()).is_err());
    }
}

/// A forged count or length must not make the reader take memory for it.
#[test]
fn forged_counts_take_no_memory() {
    for field in 0..6 {
        let create = Create { output: TensorId(1), content: data(5000), signal: 0 };
        let stream = Message::Stream(vec![ClientCommand::Create(create)]);
        let mut head = encode(&stream)[0].to_vec();
        let at = 4 + field;
        let end = (at + 4).min(head.len());
        head[at..end].fill(0xFF);
        assert!(decode(&[Bytes::from(head)]).is_err());
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_bytes_give_a_message_or_an_error(head in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = decode(&[Bytes::from(head.clone())]);
        // With a valid beginning it gets further.
        for kind in 1..29u8 {
            let framed = [b"GT\x02", &[kind][..], &head].concat();
            let _ = decode(&[Bytes::from(framed)]);
        }
    }

    #[test]
    fn damaged_messages_give_a_message_or_an_error(
        which in 0usize..30, at in any::<prop::sample::Index>(), value in any::<u8>()
    ) {
        let mut frames = encode(&messages()[which]);
        let mut head = frames[0].to_vec();
        let at = at.index(head.len());
        head[at] = value;
        frames[0] = Bytes::from(head);
        if let Ok(message) = decode(&frames) {
            // Whatever was read can be written and read again; NaN is not equal to itself.
            prop_assert!(decode(&encode(&message)).is_ok());
        }
    }

    #[test]
    fn scalars_keep_their_bits(bits in any::<u64>(), whole in any::<i64>()) {
        for scalar in [Scalar::Float(f64::from_bits(bits)), Scalar::Int(whole)] {
            let command = ClientCommand::Run(Instruction {
                operation: &ops::binary::ADD,
                output: TensorId(1),
                results: [meta()].into_iter().collect(),
                operands: [Operand::Scalar(scalar), Operand::Tensor(TensorId(2))].into_iter().collect(),
                attributes: Default::default(),
                source: SourceId(0),
                signal: 0,
            });
            let frames = encode(&Message::Stream(vec![command]));
            let Ok(Message::Stream(back)) = decode(&frames) else { panic!("a stream") };
            let ClientCommand::Run(instruction) = &back[0] else { panic!("an instruction") };
            let same = match (instruction.operands[0], scalar) {
                (Operand::Scalar(Scalar::Float(a)), Scalar::Float(b)) => a.to_bits() == b.to_bits(),
                (Operand::Scalar(a), b) => a == b,
                _ => false,
            };
            prop_assert!(same);
        }
    }
}

/// What the fuzzer has found worth keeping; the first byte says where the data frame begins.
#[test]
fn the_corpus_gives_messages_or_errors() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");
    let mut messages = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let data = std::fs::read(entry.unwrap().path()).unwrap();
        let Some((&cut, rest)) = data.split_first() else { continue };
        let (head, tail) = rest.split_at(rest.len().saturating_sub(usize::from(cut)));
        let mut frames = vec![Bytes::copy_from_slice(head)];
        if !tail.is_empty() {
            frames.push(Bytes::copy_from_slice(tail));
        }
        if let Ok(message) = decode(&frames) {
            decode(&encode(&message)).unwrap();
            messages += 1;
        }
    }
    assert!(messages >= 8, "the corpus holds valid messages, too: {messages}");
}

/// Writes a valid message of each kind into the corpus, for the fuzzer to start from.
#[test]
fn the_corpus_has_a_message_of_each_kind() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/corpus");
    for (number, message) in messages().into_iter().enumerate() {
        let message = match message {
            // All operations at once are too much for a seed.
            Message::Stream(commands) => {
                Message::Stream(commands.into_iter().rev().take(12).collect())
            }
            Message::Work { lane, commands } => {
                Message::Work { lane, commands: commands.into_iter().rev().take(12).collect() }
            }
            other => other,
        };
        let frames = encode(&message);
        if frames.len() == 1 {
            let seed = [&[0][..], &frames[0]].concat();
            let path = format!("{folder}/seed-{number}");
            if std::env::var_os("GT_WRITE_CORPUS").is_some() {
                std::fs::create_dir_all(folder).unwrap();
                std::fs::write(&path, &seed).unwrap();
            }
            assert_eq!(std::fs::read(&path).unwrap(), seed, "{path}: GT_WRITE_CORPUS=1 writes it");
        }
    }
}
