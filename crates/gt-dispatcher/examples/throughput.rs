//! How many instructions a second the dispatcher alone passes on, on one core.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::time::{Duration, Instant};

use gt_dispatcher::{Dispatcher, Limits, PeerId};
use gt_ir::message::{Hello, Message, PROTOCOL_VERSION, Role, schema};
use gt_ir::{Attribute, Command, DType, Instruction, Operand, Scalar, SourceId, TensorId, ops};

const BATCH: u64 = 128;
const BATCHES: u64 = 4_000;

fn hello(role: Role) -> Message {
    let (version, schema) = (PROTOCOL_VERSION, schema());
    Message::Hello(Hello {
        version,
        schema,
        role,
        name: role.name().into(),
        machine: String::new(),
        endpoint: String::new(),
        fabric: None,
    })
}

/// A chain of additions, each of which frees the result before the last.
fn batch(number: u64) -> Vec<Command> {
    let mut commands = Vec::with_capacity(2 * BATCH as usize);
    for output in number * BATCH + 1..=(number + 1) * BATCH {
        let before = Operand::Tensor(TensorId(output - 1));
        commands.push(Command::Run(Instruction {
            operation: if output == 1 { &ops::create::FULL } else { &ops::binary::ADD },
            output: TensorId(output),
            operands: if output == 1 {
                [Operand::Scalar(Scalar::Int(1))].into_iter().collect()
            } else {
                [before, before].into_iter().collect()
            },
            attributes: if output == 1 {
                [Attribute::dims(&[8]), Attribute::DType(DType::F32)].into_iter().collect()
            } else {
                Default::default()
            },
            source: SourceId(0),
            signal: 0,
        }));
        if output > 1 {
            commands.push(Command::Free(TensorId(output - 1)));
        }
    }
    commands
}

fn main() {
    let mut rates: Vec<f64> = (0..7).map(|_| round()).collect();
    rates.sort_by(f64::total_cmp);
    println!("{:.1} million instructions a second (and as many frees)", rates[3] / 1e6);
}

fn round() -> f64 {
    let (client, worker) = (PeerId(1), PeerId(2));
    let mut dispatcher = Dispatcher::new(String::new(), Limits::default(), None);
    dispatcher.handle(Duration::ZERO, worker, Role::Worker, hello(Role::Worker));
    dispatcher.handle(Duration::ZERO, client, Role::Client, hello(Role::Client));
    let mut out = Vec::new();
    dispatcher.take_outbox(&mut out);
    let batches: Vec<Vec<Command>> = (0..BATCHES).map(batch).collect();
    let (mut received, mut spent) = (0, Duration::ZERO);
    for commands in batches {
        let start = Instant::now();
        dispatcher.handle(Duration::ZERO, client, Role::Client, Message::Stream(commands));
        out.clear();
        dispatcher.take_outbox(&mut out);
        spent += start.elapsed();
        for (_, message) in &out {
            if let Message::Stream(commands) = message {
                received += commands.len() as u64;
                let done = Message::Done(commands.len() as u64);
                let start = Instant::now();
                dispatcher.handle(Duration::ZERO, worker, Role::Worker, done);
                spent += start.elapsed();
            }
        }
    }
    assert_eq!(received, BATCHES * BATCH * 2 - 1, "everything was passed on");
    (BATCHES * BATCH) as f64 / spent.as_secs_f64()
}
