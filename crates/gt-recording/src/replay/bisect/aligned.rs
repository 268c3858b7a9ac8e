//! The search where results are compared within tolerances: each instruction is computed from the
//! reference's values. Otherwise small differences, which are allowed, would add up over the stream until
//! some correct instruction exceeds the tolerances.

use gt_ir::{
    ClientCommand, Content, Create, Instruction, RequestId, SourceId, TensorData, TensorId,
};

use super::pass::Pass;
use super::{DifferingInstruction, FoundDifference};
use crate::error::RecordingError;
use crate::replay::compare::Received;

impl Pass<'_> {
    /// Runs an instruction on both drivers, and compares its results. The driver that was asked for
    /// computes it under other names, and gets the reference's results then.
    pub(super) fn aligned(
        &mut self,
        instruction: &Instruction,
    ) -> Result<Option<FoundDifference>, RecordingError> {
        let count = instruction.results.len() as u64;
        let renamed = Instruction { output: TensorId(self.next_tensor), ..instruction.clone() };
        self.next_tensor += count;
        let first = self.next_request;
        self.next_request += count;
        for (driver, instruction) in self.drivers.iter().zip([instruction, &renamed]) {
            if driver.is_full() {
                driver.wait_for_room(self.interrupt)?;
            }
            driver.submit(&mut vec![ClientCommand::Run(instruction.clone())], 0);
            for index in 0..count {
                let (request, tensor) = (RequestId(first + index), instruction.output.after(index));
                let line = SourceId::default();
                driver.submit(&mut vec![ClientCommand::Fetch { request, tensor, line }], 0);
            }
        }
        let mut values = Vec::new();
        for index in 0..count {
            let (reference, asked) = self.both(RequestId(first + index))?;
            let agrees = reference.agrees(&asked, &self.options.tolerances);
            if !agrees {
                let found = DifferingInstruction {
                    number: self.number,
                    operands: self.metas_of(instruction),
                    instruction: instruction.clone(),
                    tensor: instruction.output.after(index),
                    reference,
                    asked,
                };
                return Ok(Some(FoundDifference::Instruction(Box::new(found))));
            }
            if let Received::Value(data) = reference {
                values.push(data);
            }
        }
        self.replace(instruction, &renamed, values);
        Ok(None)
    }

    /// Gives the driver that was asked for the reference's results, or the same failures.
    fn replace(&self, instruction: &Instruction, renamed: &Instruction, values: Vec<TensorData>) {
        let mut batch: Vec<ClientCommand> =
            renamed.outputs().map(|(tensor, _)| ClientCommand::Free(tensor)).collect();
        if values.len() < instruction.results.len() {
            batch.push(ClientCommand::Run(instruction.clone()));
        } else {
            let create = |(data, (output, _)): (TensorData, (TensorId, _))| {
                let (content, signal) = (Content::Data(data), instruction.signal);
                let source = instruction.source;
                ClientCommand::Create(Create { output, content, signal, source })
            };
            batch.extend(values.into_iter().zip(instruction.outputs()).map(create));
        }
        self.drivers[1].submit(&mut batch, 0);
    }
}
