//! Fixtures of the worker's tests: a small engine, and a worker whose messages are recorded.

mod commands;
mod compiler;
mod engine;
mod publications;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

use gt_ir::message::{ServerToWorker, WorkerToServer, WorkerToWorker};
use gt_ir::statistics::WorkerStats;
use gt_ir::{
    Content, Incarnation, LaneId, Piece, RequestId, SlotId, TensorData, TransferId, WorkerCommand,
    WorkerId,
};
use gt_worker::{Options, Out, Work, Worker, WorkerInput};

pub use commands::*;
pub use compiler::Compiler;
pub use engine::{DeviceClock, Vectors};
pub use publications::*;

/// A worker, its messages, and its engine's operations.
pub struct Bench {
    pub worker: Worker<Vectors>,
    pub out: Vec<Out>,
    pub compiler: Arc<Compiler>,
    pub device: Arc<Mutex<Option<DeviceClock>>>,
    computed: Arc<Mutex<Vec<&'static str>>>,
}

/// A lane of a session.
pub fn lane(session: u32, slot: u32) -> LaneId {
    LaneId { incarnation: Incarnation(session), slot: SlotId(slot) }
}

impl Default for Bench {
    fn default() -> Bench {
        Bench::new(Options::default())
    }
}

impl Bench {
    pub fn new(options: Options) -> Bench {
        let computed: Arc<Mutex<Vec<&'static str>>> = Arc::default();
        let compiler: Arc<Compiler> = Arc::default();
        let device: Arc<Mutex<Option<DeviceClock>>> = Arc::default();
        let engine =
            Vectors::new(Arc::clone(&computed), Arc::clone(&compiler), Arc::clone(&device));
        let worker = Worker::new("w".into(), engine).with_options(options);
        Bench { worker, out: Vec::new(), compiler, device, computed }
    }

    /// Delivers a message; nothing is computed.
    pub fn hand(&mut self, input: impl Into<WorkerInput>) {
        self.worker.handle(input.into(), &mut self.out);
    }

    /// Delivers commands; nothing is computed.
    pub fn queue(&mut self, lane: LaneId, commands: Vec<WorkerCommand>) {
        self.hand(ServerToWorker::Work { lane, commands });
    }

    /// Delivers commands, and runs the worker until it is idle.
    pub fn work(&mut self, lane: LaneId, commands: Vec<WorkerCommand>) {
        self.queue(lane, commands);
        self.run();
    }

    /// Runs the worker until it is idle; time passes while its device is kept.
    pub fn run(&mut self) {
        while self.turn() {}
    }

    /// Runs a turn, after the time for which the device is kept; returns whether there was one.
    pub fn turn(&mut self) -> bool {
        while self.worker.step(&mut self.out) {
            let Some(held) = self.worker.held_for() else { return true };
            self.compiler.idle.fetch_add(held.as_micros() as u64 + 1, Ordering::Relaxed);
        }
        false
    }

    /// Delivers a piece, and runs the worker until it is idle.
    pub fn piece(&mut self, transfer: u64, from: u32, to: LaneId, numbers: &[f64]) {
        let result = Ok(Content::Data(data(numbers)));
        let piece =
            Piece { transfer: TransferId(transfer), number: 0, from: SlotId(from), to, result };
        self.hand(WorkerToWorker::Piece { sender: WorkerId(from), piece });
        self.run();
    }

    /// Takes the answers to fetches so far, by request.
    pub fn values(&mut self) -> Vec<(u64, Result<Vec<f64>, String>)> {
        let mut values = Vec::new();
        self.out.retain(|out| match out {
            Out::Server(WorkerToServer::Value { request: RequestId(request), result }) => {
                let result = result.clone().map(|content| numbers(&content));
                values.push((*request, result.map_err(|failure| failure.to_string())));
                false
            }
            _ => true,
        });
        values
    }

    /// Fetches a tensor's numbers, or its failure.
    pub fn value(&mut self, lane: LaneId, tensor: u64) -> Result<Vec<f64>, String> {
        self.work(lane, vec![fetch(1_000_000, tensor)]);
        let values = self.values();
        let found = values.into_iter().find(|(request, _)| *request == 1_000_000);
        found.expect("the lane waits for something").1
    }

    /// The `LaneBroken` messages sent.
    pub fn broken(&self) -> Vec<(LaneId, String)> {
        let broken = self.out.iter().filter_map(|out| match out {
            Out::Server(WorkerToServer::LaneBroken { lane, reason }) => {
                Some((*lane, reason.clone()))
            }
            _ => None,
        });
        broken.collect()
    }

    /// The weight that a lane has completed.
    pub fn done(&self, of: LaneId) -> u64 {
        let done = self.out.iter().filter_map(|out| match out {
            Out::Server(WorkerToServer::LaneDone { lane, weight, .. }) if *lane == of => {
                Some(*weight)
            }
            _ => None,
        });
        done.sum()
    }

    /// The nanoseconds of device time that were reported for a lane.
    pub fn used(&self, of: LaneId) -> u64 {
        let used = self.out.iter().filter_map(|out| match out {
            Out::Server(WorkerToServer::LaneDone { lane, usage, .. }) if *lane == of => {
                Some(usage.device)
            }
            _ => None,
        });
        used.sum()
    }

    /// The operations that the engine has computed since the last call.
    pub fn computed(&self) -> Vec<&'static str> {
        std::mem::take(&mut self.computed.lock().unwrap())
    }

    pub fn stats(&self) -> WorkerStats {
        self.worker.stats()
    }
}

/// The numbers of a value.
pub fn numbers(content: &Content) -> Vec<f64> {
    let Content::Data(data) = content else { panic!("shared memory") };
    (0..data.shape.numel()).map(|index| data.element(index).as_f64()).collect()
}

/// Numbers as tensor data.
pub fn data(numbers: &[f64]) -> TensorData {
    let bytes: Vec<u8> = numbers.iter().flat_map(|number| number.to_le_bytes()).collect();
    TensorData::new(gt_ir::DType::F64, shape(numbers.len()), bytes.into()).unwrap()
}
