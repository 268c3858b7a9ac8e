//! Shorthands for commands.

use std::sync::Arc;

use gt_ir::exchange::{Collective, Parts, Receive, Sender};
use gt_ir::sharding::{Block, Reduction};
use gt_ir::template::{Bindings, IterationPart, Start, Step, TemplateBuilder};
use gt_ir::{
    Attributes, Content, Create, DType, Definition, Exchange, Instruction, Invocation, Meta,
    Operand, Operation, RequestId, Shape, SlotId, SourceId, TensorId, TransferId, WorkerCommand,
    WorkerId, ops,
};

use super::data;
pub use super::engine::number;

pub fn shape(length: usize) -> Shape {
    Shape::new(&[length]).unwrap()
}

pub fn meta(length: usize) -> Meta {
    Meta::new(DType::F64, shape(length))
}

pub fn tensor(id: u64) -> Operand {
    Operand::Tensor(TensorId(id))
}

pub fn create(id: u64, numbers: &[f64]) -> WorkerCommand {
    let (output, content) = (TensorId(id), Content::Data(data(numbers)));
    WorkerCommand::Create(Box::new(Create { output, content, signal: 0, source: SourceId(0) }))
}

/// An operation whose result is a vector of this length.
pub fn instruction(
    operation: &'static Operation,
    output: u64,
    length: usize,
    operands: &[Operand],
) -> Instruction {
    Instruction {
        operation,
        output: TensorId(output),
        results: [meta(length)].into_iter().collect(),
        operands: operands.iter().copied().collect(),
        attributes: Attributes::new(),
        source: SourceId(output as u32),
        signal: 0,
    }
}

/// `output := left + right`, of vectors of two numbers.
pub fn add(output: u64, left: u64, right: Operand) -> Instruction {
    instruction(&ops::binary::ADD, output, 2, &[tensor(left), right])
}

pub fn run(instruction: Instruction) -> WorkerCommand {
    WorkerCommand::Run(Arc::new(instruction))
}

pub fn neg(output: u64, input: u64) -> WorkerCommand {
    run(instruction(&ops::unary::NEG, output, 2, &[tensor(input)]))
}

pub fn free(id: u64) -> WorkerCommand {
    WorkerCommand::Free(TensorId(id))
}

pub fn fetch(request: u64, id: u64) -> WorkerCommand {
    let (request, tensor, line) = (RequestId(request), TensorId(id), SourceId(0));
    WorkerCommand::Fetch { request, tensor, shared: false, line }
}

/// Slot `n` of the session is on worker `n`.
pub fn slots(count: u32) -> WorkerCommand {
    WorkerCommand::Slots((0..count).map(WorkerId).collect())
}

/// `length` elements from `start` on.
pub fn block(start: usize, length: usize) -> Block {
    let mut block = Block::whole(shape(length));
    block.starts[0] = start;
    block
}

/// Makes `output` from the pieces of other slots, and sends none.
pub fn gather(transfer: u64, output: u64, length: usize, from: &[(u32, Block)]) -> Exchange {
    let receive = |&(slot, at): &(u32, Block)| Receive { from: Sender::Slot(SlotId(slot)), at };
    Exchange {
        transfer: TransferId(transfer),
        collective: Collective::AllGather,
        input: None,
        output: Some((TensorId(output), meta(length))),
        parts: Parts { sends: vec![], receives: from.iter().map(receive).collect() },
        hops: Vec::new(),
        reduction: None,
        engine_collective: None,
        line: SourceId(0),
    }
}

/// Sends `input`, two numbers, to a slot, and makes `output`, its sum with that slot's piece.
pub fn sum_with(transfer: u64, slot: u32, input: u64, output: u64) -> Exchange {
    let whole = block(0, 2);
    let from = [Sender::Own(whole), Sender::Slot(SlotId(slot))];
    let receives = from.into_iter().map(|from| Receive { from, at: whole }).collect();
    Exchange {
        collective: Collective::AllReduce,
        input: Some(TensorId(input)),
        parts: Parts { sends: vec![(SlotId(slot), whole)], receives },
        hops: Vec::new(),
        reduction: Some(Reduction::Sum),
        ..gather(transfer, output, 2, &[])
    }
}

pub fn exchange(exchange: Exchange) -> WorkerCommand {
    WorkerCommand::Exchange(Box::new(exchange))
}

/// A step of a template: an instruction whose numbers have slots, an exchange or a free.
pub enum Of {
    Run(Instruction),
    Exchange(Exchange),
    Free(u64),
}

/// A template from its first iteration, whose names begin with `base`.
pub fn template(number: u32, base: u64, width: u32, steps: &[Of]) -> Definition {
    let base = TensorId(base);
    let mut builder = TemplateBuilder::new([base, TensorId::PLANNED], [width, 0], TransferId(0));
    for step in steps {
        let step = match step {
            Of::Run(instruction) => Step::Run(builder.step_with_slots(instruction).unwrap()),
            Of::Exchange(exchange) => Step::Exchange(builder.exchange(exchange).unwrap()),
            Of::Free(id) => Step::Free(builder.name(TensorId(*id))),
        };
        builder.push(step);
    }
    builder.finish(number, false)
}

/// The sender of a template's invocations.
pub struct Invoker {
    number: u32,
    steps: u32,
    bindings: Bindings,
}

impl Invoker {
    pub fn new(definition: &Definition) -> Invoker {
        let template = &definition.template;
        let start: &Start = &definition.start;
        let bindings = Bindings::new(template.widths, start);
        Invoker { number: definition.number, steps: template.len() as u32, bindings }
    }

    /// Another iteration, with the tensors and numbers that differ from the prediction.
    pub fn next(
        &mut self,
        base: u64,
        tensors: &[(u32, u64)],
        numbers: &[(u32, f64)],
    ) -> Invocation {
        let bases = [TensorId(base), TensorId::PLANNED];
        self.bindings.begin(bases);
        let tensors: Vec<_> = tensors.iter().map(|(slot, id)| (*slot, TensorId(*id))).collect();
        let scalar = |&(slot, value): &(u32, f64)| (slot, gt_ir::Scalar::Float(value));
        let numbers: Vec<_> = numbers.iter().map(scalar).collect();
        tensors.iter().for_each(|(slot, id)| self.bindings.bind_tensor(*slot, *id));
        numbers.iter().for_each(|(slot, value)| self.bindings.bind_number(*slot, *value));
        Invocation {
            template: self.number,
            bases,
            transfer: TransferId(1),
            part: IterationPart { first: 0, last: self.steps, frees: 0 },
            tensors,
            numbers,
            others: vec![],
            digest: self.bindings.digest(),
        }
    }
}

pub fn define(definition: &Definition) -> WorkerCommand {
    WorkerCommand::Define(Box::new(definition.clone()))
}

pub fn invoke(invocation: Invocation) -> WorkerCommand {
    WorkerCommand::Invoke(Arc::new(invocation))
}
