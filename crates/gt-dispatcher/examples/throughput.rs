//! Benchmark: instructions per second that the dispatcher plans on one core, for one worker and
//! sharded over several.

#![allow(clippy::disallowed_methods, reason = "a benchmark reads the clock")]

use std::time::{Duration, Instant};

use gt_dispatcher::{Dispatcher, Limits, PeerId, ToPeer};
use gt_ir::entitlement::Usage;
use gt_ir::message::{
    ClientHello, ClientToServer, Hello, ServerToWorker, WorkerHello, WorkerToServer,
};
use gt_ir::signal::{MeshAxis, Shard};
use gt_ir::{
    Attribute, ClientCommand, DType, Instruction, Meta, Operand, Scalar, SessionOrigin, Shape,
    SourceId, TensorId, WorkerCommand, ops,
};

const BATCH: u64 = 128;
/// The elements of each tensor: divisible by every worker count below.
const ELEMENTS: usize = 144;

/// A chain of additions, each of which frees the result before the last.
fn batch(number: u64, signal: u32) -> Vec<ClientCommand> {
    let mut commands = Vec::with_capacity(2 * BATCH as usize);
    for output in number * BATCH + 1..=(number + 1) * BATCH {
        let before = Operand::Tensor(TensorId(output - 1));
        commands.push(ClientCommand::Run(Instruction {
            operation: if output == 1 { &ops::create::FULL } else { &ops::binary::ADD },
            output: TensorId(output),
            results: [Meta::new(DType::F32, Shape::new(&[ELEMENTS]).expect("small"))]
                .into_iter()
                .collect(),
            operands: if output == 1 {
                [Operand::Scalar(Scalar::Int(1))].into_iter().collect()
            } else {
                [before, before].into_iter().collect()
            },
            attributes: if output == 1 {
                [Attribute::dims(&[ELEMENTS]), Attribute::DType(DType::F32)].into_iter().collect()
            } else {
                Default::default()
            },
            source: SourceId(0),
            signal,
        }));
        if output > 1 {
            commands.push(ClientCommand::Free(TensorId(output - 1)));
        }
    }
    commands
}

fn main() {
    println!("| workers | million instructions a second (and as many frees) |\n| --- | --- |");
    for (workers, batches) in [(1, 4_000), (2, 2_000), (72, 100)] {
        let mut rates: Vec<f64> = (0..7).map(|_| round(workers, batches)).collect();
        rates.sort_by(f64::total_cmp);
        println!("| {workers} | {:.2} |", rates[3] / 1e6);
    }
}

fn round(workers: u64, batches: u64) -> f64 {
    let client = PeerId::client(1000);
    let mut dispatcher = Dispatcher::new(String::new(), Limits::default(), None);
    for worker in 1..=workers {
        let hello = WorkerHello { rate: 1 << 34, ..WorkerHello::new("worker") };
        dispatcher.handle(Duration::ZERO, PeerId::worker(worker), Hello::Worker(hello));
    }
    dispatcher.handle(
        Duration::ZERO,
        client,
        Hello::Client(ClientHello::new(SessionOrigin::new("client"))),
    );
    let signal = u32::from(workers > 1);
    if signal > 0 {
        let mesh = vec![MeshAxis { axis: Some(0), ..MeshAxis::default() }];
        let shard = Some(Shard { workers: None, mesh });
        let signal = ClientCommand::Signal { number: signal, name: "cut".into(), shard };
        dispatcher.handle(Duration::ZERO, client, ClientToServer::Stream(vec![signal]));
    }
    let mut out = Vec::new();
    dispatcher.take_outbox(&mut out);
    let (count, mut runs, mut spent) = (batches * BATCH, 0, Duration::ZERO);
    for number in 0..batches {
        // Built outside the timed section, as the client or the decoder would.
        let commands = batch(number, signal);
        let start = Instant::now();
        dispatcher.handle(Duration::ZERO, client, ClientToServer::Stream(commands));
        out.clear();
        dispatcher.take_outbox(&mut out);
        spent += start.elapsed();
        for (worker, message) in out.drain(..) {
            let ToPeer::Worker(ServerToWorker::Work { lane, commands }) = message else {
                continue;
            };
            let is_run = |command: &&WorkerCommand| matches!(command, WorkerCommand::Run(_));
            runs += commands.iter().filter(is_run).count() as u64;
            let weight = commands.iter().map(WorkerCommand::weight).sum();
            let done = WorkerToServer::LaneDone { lane, weight, usage: Usage::default() };
            let start = Instant::now();
            dispatcher.handle(Duration::ZERO, worker, done);
            spent += start.elapsed();
        }
    }
    assert_eq!(runs, count * workers, "everything was passed on");
    count as f64 / spent.as_secs_f64()
}
