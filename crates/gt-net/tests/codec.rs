//! Messages survive the way through frames; anything else is an error, never a panic.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use gt_ir::data::SharedBlock;
use gt_ir::event::{Activity, Event, Kind, Lane, Mix, What};
use gt_ir::exchange::{Collective, Exchange, Origin, Source};
use gt_ir::fabric::{Fabric, Joint, Member, Way};
use gt_ir::message::{Failure, Hello, Message, Named, Role, Welcome, WorkerStats};
use gt_ir::operation::SampleOperand;
use gt_ir::script::{Name, Play, Script, ScriptOperand, ScriptStep};
use gt_ir::sharding::{Block, Reduction};
use gt_ir::signal::{MeshAxis, Shard};
use gt_ir::status::{Report, SessionStatus, Share, Status, Waits, WorkerStatus};
use gt_ir::{
    Attribute, Command, Content, DType, Definition, Instruction, Invocation, Meta, Operand, Piece,
    RequestId, Scalar, Shape, SourceId, TensorData, TensorId, TransferId, WorkerId, ops,
};
use gt_net::codec::{DATA_FRAME, decode, encode};
use proptest::prelude::*;

/// Every operation with every one of its samples' attributes.
fn instructions() -> Vec<Command> {
    let mut commands = Vec::new();
    for operation in ops::ALL {
        for sample in (operation.samples)() {
            let operands =
                sample.operands.iter().enumerate().map(|(index, operand)| match operand {
                    SampleOperand::Tensor { .. } => Operand::Tensor(TensorId(index as u64 + 7)),
                    SampleOperand::Scalar(scalar) => Operand::Scalar(*scalar),
                });
            commands.push(Command::Run(Instruction {
                operation,
                output: TensorId(99),
                operands: operands.collect(),
                attributes: sample.attributes.clone(),
                source: SourceId(3),
                signal: 1,
            }));
        }
    }
    commands
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
    let from_own = Source { from: Origin::Own(block), at: block };
    let from_other = Source { from: Origin::Worker(WorkerId(4)), at: block };
    Exchange {
        transfer: TransferId(1 << 60),
        worker: WorkerId(3),
        collective: Collective::ReduceScatter,
        input: Some(TensorId(8)),
        sends: vec![(WorkerId(4), block)],
        output: Some((TensorId(9), Meta::new(DType::F16, Shape::new(&[2, 3]).unwrap()))),
        sources: vec![from_own, from_other],
        reduction: Some(Reduction::Max),
        joint: None,
        line: SourceId(5),
    }
}

fn joint_exchange(way: Way) -> Exchange {
    let member = |worker: u32| Member { worker: WorkerId(worker), name: format!("w{worker}") };
    let (kind, store) = ("gloo/2.15".into(), "127.0.0.1:4444".into());
    let joint = Joint { kind, store, members: vec![member(3), member(4)], way };
    Exchange { joint: Some(Arc::new(joint)), ..exchange() }
}

fn fabric() -> Fabric {
    let (kind, store) = ("nccl/2.15".into(), "10.0.0.7:4444".into());
    Fabric { kind, local: false, store, device: "GPU-7".into() }
}

fn commands() -> Vec<Command> {
    let meta = Meta::new(DType::F32, Shape::new(&[2, 3]).unwrap());
    let block = SharedBlock { pid: 1, fd: 2, length: 24, token: 3 };
    let mut commands = instructions();
    commands.extend([
        Command::Create { output: TensorId(1), content: data(3), signal: 0 },
        Command::Create { output: TensorId(1), content: data(5000), signal: 300 },
        Command::Create {
            output: TensorId(1),
            content: Content::Shared { meta, block },
            signal: 0,
        },
        Command::Fetch {
            request: RequestId(4),
            tensor: TensorId(5),
            shared: true,
            line: SourceId(0),
        },
        Command::Free(TensorId(6)),
        Command::EndSession { session: 7 },
        Command::Signal { number: 8, name: "läyer".into(), shard: None },
        Command::Signal { number: 9, name: "grid".into(), shard: Some(grid()) },
        Command::Exchange(Box::new(exchange())),
        Command::Exchange(Box::new(joint_exchange(Way::Broadcast { root: 1 }))),
        Command::Exchange(Box::new(joint_exchange(Way::AllToAll))),
        Command::Status { request: RequestId(6) },
        Command::Stats { request: RequestId(9) },
        Command::Describe { session: 3 },
        Command::Define(Box::new(definition())),
        Command::Invoke(Box::new(invocation())),
        Command::Script(Box::new(script())),
        Command::Play(Arc::new(play())),
    ]);
    commands
}

fn definition() -> Definition {
    let add = instructions().into_iter().find_map(|command| match command {
        Command::Run(instruction) => Some(instruction),
        _ => None,
    });
    let (base, frees) = (TensorId(1 << 45), vec![TensorId(3), TensorId(1 << 45)]);
    Definition { number: 63, base, steps: vec![add, None], frees, compile: true }
}

fn script() -> Script {
    let operation = &ops::shape::SLICE;
    let lists = [vec![1i64], vec![2], vec![1]];
    let attributes = lists.iter().map(|list| Attribute::ints(list)).collect();
    let operands = vec![
        ScriptOperand::Tensor(Name::Outside(3)),
        ScriptOperand::Number(2),
        ScriptOperand::Constant(Scalar::Float(0.5)),
    ];
    let (output, source, signal) = (Name::Own(300), SourceId(7), 300);
    let run = ScriptStep::Run { operation, output, operands, attributes, source, signal };
    let exchange = ScriptStep::Exchange {
        exchange: Box::new(joint_exchange(Way::AllReduce)),
        transfer: 9,
        input: Some(Name::Made(4)),
        output: None,
    };
    Script {
        session: 5,
        number: 6,
        widths: [10, 200],
        tensors: vec![TensorId(1), TensorId(1 << 50)],
        numbers: vec![Scalar::Int(3), Scalar::Bool(false)],
        bases: [TensorId(1 << 45), TensorId(1 << 46)],
        steps: vec![run, exchange, ScriptStep::Free(Name::Own(1))],
        compile: true,
    }
}

fn play() -> Play {
    Play {
        session: 5,
        script: 6,
        bases: [TensorId(1 << 45), TensorId(1 << 46)],
        transfer: TransferId(77),
        tensors: vec![(3, TensorId(4))],
        numbers: vec![(1, Scalar::Float(2.0))],
        weight: 1000,
    }
}

fn invocation() -> Invocation {
    let numbers = vec![(0, Scalar::Float(0.5)), (1, Scalar::Int(-7)), (300, Scalar::Bool(true))];
    Invocation {
        template: 63,
        base: TensorId(1 << 45),
        first: 2,
        last: 200,
        tensors: vec![(0, TensorId(4)), (9000, TensorId(1 << 46))],
        numbers,
        frees: 5,
        others: vec![TensorId(0), TensorId(1 << 44)],
    }
}

/// An event of each kind, about each thing.
fn events() -> Vec<Event> {
    let mix = Mix::new([(Activity::Matmul, 3), (Activity::Read, 1)]);
    let (transfer, worker) = (TransferId(1 << 40), WorkerId(7));
    let whats = [
        What::Batch { mix: Mix::default() },
        What::Operation(ops::ALL[3]),
        What::Create,
        What::Fetch,
        What::Free,
        What::HotPath { number: 5, mix },
        What::Send { collective: Collective::AllReduce, transfer, to: worker },
        What::Receive { transfer, from: worker },
        What::Control,
    ];
    let lanes = [Lane::Client, Lane::Dispatcher, Lane::Worker(WorkerId(u32::MAX))];
    let event = |(index, (kind, what)): (usize, (Kind, What))| Event {
        // Events come in no order.
        begin: Duration::from_nanos(1_000_000_000_000 - 77 * index as u64),
        end: Duration::from_nanos(1_000_000_000_000 + 123 * index as u64),
        kind,
        lane: lanes[index % 3],
        session: 9,
        signal: index as u32,
        what,
        count: 128,
        failed: index as u32,
        tensor: TensorId((1 << 44) - 1),
        bytes: 1 << 33,
    };
    Kind::ALL.into_iter().zip(whats).enumerate().map(event).collect()
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
    vec![
        Message::Hello(Hello {
            version: 1,
            schema: 2,
            role: Role::Watcher,
            name: "n".into(),
            machine: "m".into(),
            endpoint: "tcp://h:1".into(),
            fabric: Some(fabric()),
        }),
        Message::Welcome(Welcome { session: 1, name: "w".into(), window: 2, machine: "m".into() }),
        Message::Stream(commands()),
        Message::Done(3),
        Message::Value { request: RequestId(1), result: Ok(data(10)) },
        Message::Value { request: RequestId(1), result: Err(failure.clone()) },
        Message::Release { token: u128::MAX },
        Message::Statistics { request: RequestId(1), workers: vec![WorkerStats::default()] },
        Message::Piece(Piece { transfer: TransferId(7), from: WorkerId(2), result: Ok(data(9)) }),
        Message::Described {
            session: 4,
            tensors: vec![
                (TensorId(1), Ok(Meta::new(DType::F16, Shape::new(&[2, 3]).unwrap()))),
                (TensorId(2), Err(failure)),
            ],
        },
        Message::Status { request: RequestId(8), status: Box::new(status()) },
        Message::Observe { on: true, sent: Duration::from_nanos(1_000_000_007) },
        Message::Observed { sent: Duration::from_nanos(7), here: Duration::from_nanos(1 << 40) },
        Message::Report(Box::new(report())),
        Message::Events { events: events(), dropped: 3 },
        Message::Watch { limit: 1 << 16 },
        Message::Names(vec![
            (Named::Session(3), "1f#3".into()),
            (Named::Worker(WorkerId(2)), "gpu2".into()),
            (Named::Signal { session: 3, number: 1 }, "forward".into()),
        ]),
        Message::Neighbour {
            worker: WorkerId(2),
            name: "w2".into(),
            endpoint: "tcp://10.0.0.7:4444".into(),
            machine: "m".into(),
        },
        Message::Undelivered { transfer: TransferId(5), to: WorkerId(6), reason: "far".into() },
        Message::WorkerLost { worker: WorkerId(3), name: "w3".into() },
        Message::Goodbye { reason: "bye".into() },
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
    for command in commands() {
        let length = encode(&Message::Stream(vec![command.clone()])).concat().len() - empty;
        assert_eq!(command.wire_bytes(), length, "{command:?}");
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
    for field in 0..12 {
        let mut head = encode(&Message::Stream(vec![Command::Create {
            output: TensorId(1),
            content: data(5000),
            signal: 0,
        }]))[0]
            .to_vec();
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
        for kind in 1..10u8 {
            let framed = [b"GT\x01", &[kind][..], &head].concat();
            let _ = decode(&[Bytes::from(framed)]);
        }
    }

    #[test]
    fn damaged_messages_give_a_message_or_an_error(
        which in 0usize..10, at in any::<prop::sample::Index>(), value in any::<u8>()
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
            let command = Command::Run(Instruction {
                operation: &ops::binary::ADD,
                output: TensorId(1),
                operands: [Operand::Scalar(scalar), Operand::Tensor(TensorId(2))].into_iter().collect(),
                attributes: Default::default(),
                source: SourceId(0),
                signal: 0,
            });
            let frames = encode(&Message::Stream(vec![command]));
            let Ok(Message::Stream(back)) = decode(&frames) else { panic!("a stream") };
            let Command::Run(instruction) = &back[0] else { panic!("an instruction") };
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
