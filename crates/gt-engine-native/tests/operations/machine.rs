//! A worker with the native engine, and tensors in several memory layouts.

use std::sync::Arc;

use gt_engine_native::NativeEngine;
use gt_ir::instruction::Results;
use gt_ir::message::{Failure, ServerToWorker, WorkerToServer};
use gt_ir::{
    Attribute, Attributes, Content, Create, DType, Incarnation, Instruction, LaneId, Meta, Operand,
    Operation, RequestId, Shape, SlotId, SourceId, TensorData, TensorId, WorkerCommand, ops,
};
use gt_worker::{Out, Work, Worker};
use rustc_hash::FxHashMap;

const LANE: LaneId = LaneId { incarnation: Incarnation(1), slot: SlotId(0) };

/// The memory layout of a tensor.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Layout {
    Contiguous,
    /// With the axes reversed.
    Permuted,
    /// Every second element of a larger tensor.
    Sliced,
    /// Reversed along every axis.
    Flipped,
    /// The first slice of the first axis, repeated.
    Expanded,
}

impl Layout {
    /// The layouts that any values can have.
    pub const ALL: [Layout; 4] =
        [Layout::Contiguous, Layout::Permuted, Layout::Sliced, Layout::Flipped];
}

pub struct Machine {
    worker: Worker<NativeEngine>,
    metas: FxHashMap<TensorId, Meta>,
    next: u64,
}

impl Machine {
    pub fn new(threads: usize) -> Machine {
        let worker = Worker::new("test".into(), NativeEngine::new(threads));
        Machine { worker, metas: FxHashMap::default(), next: 0 }
    }

    fn id(&mut self) -> TensorId {
        self.next += 1;
        TensorId(self.next)
    }

    fn handle(&mut self, command: WorkerCommand) -> Vec<WorkerToServer> {
        self.send(ServerToWorker::Work { lane: LANE, commands: vec![command] })
    }

    fn send(&mut self, message: ServerToWorker) -> Vec<WorkerToServer> {
        let mut out = Vec::new();
        self.worker.handle(message.into(), &mut out);
        while self.worker.step(&mut out) {}
        out.into_iter()
            .map(|out| match out {
                Out::Server(message) => message,
                Out::Worker(to, _) => panic!("a piece for worker {to}"),
                Out::Backup(..) | Out::Files(_) => panic!("unexpected backup or file message"),
            })
            .collect()
    }

    pub fn create(&mut self, data: TensorData) -> TensorId {
        let output = self.id();
        self.metas.insert(output, Meta::new(data.dtype, data.shape));
        let content = Content::Data(data);
        self.handle(WorkerCommand::Create(Box::new(Create {
            output,
            content,
            signal: 0,
            source: SourceId(0),
        })));
        output
    }

    /// Runs an operation and returns its first result.
    pub fn run(
        &mut self,
        operation: &'static Operation,
        operands: &[Operand<TensorId>],
        attributes: &Attributes,
    ) -> TensorId {
        self.run_all(operation, operands, attributes)[0]
    }

    pub fn run_all(
        &mut self,
        operation: &'static Operation,
        operands: &[Operand<TensorId>],
        attributes: &Attributes,
    ) -> Vec<TensorId> {
        let output = self.id();
        let metas: Vec<Operand<Meta>> =
            operands.iter().map(|operand| operand.map(|id| self.metas[id])).collect();
        // An invalid operation is declared with an arbitrary result.
        let results = operation.results(&metas, attributes);
        let anything = || [Meta::new(DType::F32, Shape::SCALAR)].into_iter().collect();
        let results: Results = results.unwrap_or_else(|_| anything());
        self.metas.insert(output, results[0]);
        let mut outputs = vec![output];
        for meta in &results[1..] {
            let further = self.id();
            self.metas.insert(further, *meta);
            outputs.push(further);
        }
        self.handle(WorkerCommand::Run(Arc::new(Instruction {
            operation,
            output,
            results,
            operands: operands.iter().copied().collect(),
            attributes: attributes.clone(),
            source: SourceId::default(),
            signal: 0,
        })));
        outputs
    }

    pub fn fetch(&mut self, tensor: TensorId) -> Result<TensorData, Failure> {
        let (request, line) = (RequestId(1), SourceId(0));
        let fetch = WorkerCommand::Fetch { request, tensor, shared: false, line };
        for message in self.handle(fetch) {
            if let WorkerToServer::Value { result, .. } = message {
                return result.map(|content| match content {
                    Content::Data(data) => data,
                    _ => panic!("unexpected answer"),
                });
            }
        }
        panic!("no answer");
    }

    pub fn free_all(&mut self) {
        for id in std::mem::take(&mut self.metas).into_keys() {
            self.handle(WorkerCommand::Free(id));
        }
    }

    fn apply(
        &mut self,
        operation: &'static Operation,
        data: TensorData,
        attributes: &[Attribute],
    ) -> TensorId {
        let input = self.create(data);
        self.run(operation, &[Operand::Tensor(input)], &attributes.iter().cloned().collect())
    }

    /// Creates a tensor of these values in a layout: a view of another tensor.
    pub fn lay_out(&mut self, data: &TensorData, layout: Layout) -> TensorId {
        let rank = data.shape.rank();
        let reversed: Vec<i64> = (0..rank as i64).rev().collect();
        let all: Vec<i64> = (0..rank as i64).collect();
        match layout {
            Layout::Permuted => {
                let inverse =
                    self.apply(&ops::shape::PERMUTE, data.clone(), &[Attribute::ints(&reversed)]);
                let inverse = self.fetch(inverse).unwrap();
                self.apply(&ops::shape::PERMUTE, inverse, &[Attribute::ints(&reversed)])
            }
            Layout::Flipped => {
                let inverse = self.apply(&ops::shape::FLIP, data.clone(), &[Attribute::ints(&all)]);
                let inverse = self.fetch(inverse).unwrap();
                self.apply(&ops::shape::FLIP, inverse, &[Attribute::ints(&all)])
            }
            Layout::Sliced if rank > 0 => {
                let last = data.shape[rank - 1];
                let doubled = data.shape.with(rank - 1, 2 * last);
                let size = data.dtype.size();
                // Each element twice; the view selects the second.
                let bytes: Vec<u8> =
                    data.bytes.chunks(size).flat_map(|x| [x, x].concat()).collect();
                let doubled = TensorData::new(data.dtype, doubled, bytes.into()).unwrap();
                let mut starts = vec![0i64; rank];
                let mut steps = vec![1i64; rank];
                (starts[rank - 1], steps[rank - 1]) = (i64::from(last > 0), 2);
                let sizes: Vec<i64> = data.shape.iter().map(|&n| n as i64).collect();
                let lists = [&starts, &sizes, &steps].map(|list| Attribute::ints(list));
                self.apply(&ops::slice::SLICE, doubled, &lists)
            }
            Layout::Expanded if rank > 0 && data.shape[0] > 0 => {
                let first = data.shape.with(0, 1);
                let bytes = data.bytes.slice(..first.numel() * data.dtype.size());
                let first = TensorData::new(data.dtype, first, bytes).unwrap();
                self.apply(&ops::shape::EXPAND, first, &[Attribute::dims(&data.shape)])
            }
            _ => self.create(data.clone()),
        }
    }

    /// Returns the tensor with its first slice along the first axis in place of all others.
    pub fn repeat_first(&mut self, data: &TensorData) -> TensorData {
        let expanded = self.lay_out(data, Layout::Expanded);
        let result = self.fetch(expanded).unwrap();
        self.free_all();
        result
    }
}

pub fn shape(dims: &[usize]) -> Shape {
    Shape::new(dims).unwrap()
}
