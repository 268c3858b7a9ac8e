//! The numbers of instructions: their positions in the stream, from 1 on, those of invocations
//! included.

use gt_ir::ClientCommand;
use gt_ir::template::Step;
use rustc_hash::FxHashMap;

/// Counts the instructions of a stream.
#[derive(Default)]
pub struct InstructionCounter {
    total: u64,
    /// For each template, the number of instructions before each of its steps, and in all.
    templates: FxHashMap<u32, Vec<u32>>,
}

impl InstructionCounter {
    /// Returns a counter of a stream that has ended.
    pub fn at(total: u64) -> InstructionCounter {
        InstructionCounter { total, ..InstructionCounter::default() }
    }

    /// Returns the number of instructions so far.
    pub fn total(&self) -> u64 {
        self.total
    }

    /// Counts the instructions that a command stands for.
    pub fn count(&mut self, command: &ClientCommand) {
        match command {
            ClientCommand::Run(_) => self.total += 1,
            ClientCommand::Define(definition) => {
                let mut before = vec![0];
                for step in &definition.template.steps {
                    let count = u32::from(matches!(step, Step::Run(_)));
                    before.push(before[before.len() - 1] + count);
                }
                self.templates.insert(definition.number, before);
            }
            ClientCommand::Invoke(invocation) => {
                let before = self.templates.get(&invocation.template);
                let at = |step: u32| before?.get(step as usize).copied();
                if let (Some(first), Some(last)) =
                    (at(invocation.part.first), at(invocation.part.last))
                {
                    self.total += u64::from(last.saturating_sub(first));
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use gt_ir::ids::TransferId;
    use gt_ir::template::{Invocation, IterationPart, TemplateBuilder};
    use gt_ir::{DType, Instruction, Meta, Operand, Scalar, Shape, SourceId, TensorId, ops};

    use super::*;

    #[test]
    fn instructions_of_iterations_have_numbers() {
        let meta = Meta::new(DType::F32, Shape::SCALAR);
        let add = |output: u64| Instruction {
            operation: &ops::binary::ADD,
            output: TensorId(output),
            results: [meta].into_iter().collect(),
            operands: [Operand::Tensor(TensorId(1)), Operand::Scalar(Scalar::Int(1))]
                .into_iter()
                .collect(),
            attributes: Default::default(),
            source: SourceId(0),
            signal: 0,
        };
        let bases = [TensorId(10), TensorId::PLANNED];
        let mut builder = TemplateBuilder::new(bases, [3, 0], TransferId(0));
        for step in [builder.step(&add(10)), builder.step(&add(11))] {
            builder.push(Step::Run(step.unwrap()));
        }
        builder.data(TensorId(12), meta).unwrap();
        let mut counter = InstructionCounter::default();
        counter.count(&ClientCommand::Define(Box::new(builder.finish(7, false))));
        assert_eq!(counter.total(), 0);
        let part = |first, last| Invocation {
            template: 7,
            bases,
            transfer: TransferId(0),
            part: IterationPart { first, last, frees: 0 },
            tensors: Vec::new(),
            numbers: Vec::new(),
            others: Vec::new(),
            digest: 0,
        };
        counter.count(&ClientCommand::Invoke(Box::new(part(0, 3))));
        counter.count(&ClientCommand::Run(add(1)));
        assert_eq!(counter.total(), 3);
        counter.count(&ClientCommand::Invoke(Box::new(part(1, 2))));
        assert_eq!(counter.total(), 4);
    }
}
