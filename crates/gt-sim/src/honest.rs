//! A valid client stream with commands of every kind.

use gt_ir::instruction::Results;
use gt_ir::signal::Shard;
use gt_ir::template::{Bindings, IterationPart, Step, TemplateBuilder};
use gt_ir::{
    Attribute, ClientCommand, Content, Create, DType, Instruction, Invocation, Kept, KeptTensor,
    Meta, Operand, Operation, RequestId, Scalar, Shape, SourceId, TensorData, TensorId, TransferId,
    ops,
};

/// A valid stream.
pub fn honest() -> Vec<ClientCommand> {
    let mut stream = Honest::default();
    for (number, axis) in [(1, 0), (2, 1)] {
        let (name, shard) = (format!("axis {axis}"), Some(Shard::row(None, Some(axis))));
        stream.commands.push(ClientCommand::Signal { number, name, shard });
    }
    let x = stream.create(1);
    let y = stream.create(2);
    let sum = [Attribute::ints(&[0]), Attribute::Bool(false)];
    let total = stream.run(&ops::reduce::SUM, &[x], &sum, 1);
    stream.run(&ops::unary::EXP, &[total], &[], 0);
    let both = stream.run(&ops::binary::ADD, &[x, y], &[], 2);
    stream.run(&ops::nn::SOFTMAX, &[both], &[Attribute::Int(0)], 1);
    stream.ask(&[total, both]);
    let request = RequestId(50);
    stream.commands.push(ClientCommand::Explain { request, begin: true });
    let region = [[1, 0], [2, 4], [1, 1]].map(|numbers| Attribute::ints(&numbers));
    // An iteration that slices, redistributes and reduces, and frees its intermediate results.
    let base = TensorId(stream.metas.len() as u64);
    let before = stream.commands.len();
    let slice = stream.run(&ops::slice::SLICE, &[x], &region, 1);
    let scaled =
        stream.run(&ops::binary::MUL, &[slice, Operand::Scalar(Scalar::Float(2.0))], &[], 1);
    let all = stream.run(&ops::reduce::SUM, &[scaled], &sum, 1);
    stream.run(&ops::binary::ADD, &[all, total], &[], 0);
    let mut builder = TemplateBuilder::new([base, TensorId::PLANNED], [4, 0], TransferId(0));
    for command in &stream.commands[before..] {
        let ClientCommand::Run(instruction) = command else { continue };
        let step = builder.step_with_slots(instruction).expect("it is of this iteration");
        builder.push(Step::Run(step));
    }
    builder.free_later(base);
    builder.free_later(base.after(1));
    let definition = builder.finish(0, false);
    let mut bindings = Bindings::new(definition.template.widths, &definition.start);
    stream.commands.push(ClientCommand::Define(Box::new(definition)));
    for round in 1..6u64 {
        let bases = [base.after(4 * round), TensorId::PLANNED];
        bindings.begin(bases);
        // The slice's position changes.
        let numbers = vec![(0, Scalar::Int((round % 3) as i64))];
        let tensors = vec![(0, TensorId(0)), (1, TensorId(2))];
        tensors.iter().for_each(|(slot, id)| bindings.bind_tensor(*slot, *id));
        numbers.iter().for_each(|(slot, value)| bindings.bind_number(*slot, *value));
        let (part, digest) = (IterationPart { first: 0, last: 4, frees: 2 }, bindings.digest());
        let (transfer, others) = (TransferId(0), vec![]);
        let invocation =
            Invocation { template: 0, bases, transfer, part, tensors, numbers, others, digest };
        stream.commands.push(ClientCommand::Invoke(Box::new(invocation)));
        stream.ask(&[Operand::Tensor(base.after(4 * round + 3))]);
    }
    stream.commands.extend([
        ClientCommand::Explain { request, begin: false },
        ClientCommand::Strict { limit: Some(8) },
        ClientCommand::Keep(Box::new(Kept {
            name: "model".into(),
            structure: "{}".into(),
            tensors: vec![KeptTensor { id: TensorId(0), meta: stream.metas[0] }],
        })),
        ClientCommand::Kept { request: RequestId(90) },
        ClientCommand::Statistics { request: RequestId(51) },
        ClientCommand::Locate { request: RequestId(52), tensor: TensorId(0) },
        ClientCommand::Cancel { request: RequestId(51) },
        ClientCommand::Forget { template: 0 },
        ClientCommand::Free(TensorId(0)),
        ClientCommand::Status { request: RequestId(53) },
    ]);
    stream.commands
}

#[derive(Default)]
struct Honest {
    commands: Vec<ClientCommand>,
    metas: Vec<Meta>,
}

impl Honest {
    fn create(&mut self, signal: u32) -> Operand {
        let (output, shape) = (TensorId(self.metas.len() as u64), Shape::new(&[6, 4]));
        let data = TensorData::new(DType::F32, shape.expect("small"), vec![0; 96].into());
        let content = Content::Data(data.expect("as many bytes"));
        self.metas.push(content.meta());
        self.commands.push(ClientCommand::Create(Create {
            output,
            content,
            signal,
            source: SourceId(0),
        }));
        Operand::Tensor(output)
    }

    fn run(
        &mut self,
        operation: &'static Operation,
        operands: &[Operand],
        attributes: &[Attribute],
        signal: u32,
    ) -> Operand {
        let (output, source) = (TensorId(self.metas.len() as u64), SourceId(0));
        let of = |operand: &Operand| operand.map(|id| self.metas[id.0 as usize]);
        let metas: Vec<Operand<Meta>> = operands.iter().map(of).collect();
        let attributes = attributes.iter().cloned().collect();
        let meta = operation.check(&metas, &attributes).expect("it is honest");
        self.metas.push(meta);
        let operands = operands.iter().copied().collect();
        let results: Results = [meta].into_iter().collect();
        self.commands.push(ClientCommand::Run(Instruction {
            operation,
            output,
            results,
            operands,
            attributes,
            source,
            signal,
        }));
        Operand::Tensor(output)
    }

    fn ask(&mut self, tensors: &[Operand]) {
        for tensor in tensors.iter().filter_map(Operand::tensor).copied() {
            let (request, line) = (RequestId(tensor.0), SourceId(0));
            self.commands.push(ClientCommand::Fetch { request, tensor, line });
        }
    }
}
