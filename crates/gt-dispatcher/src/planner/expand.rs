//! Expands composite operations and plans their steps.

use gt_ir::instruction::{Instruction, Operands};
use gt_ir::operation::Graph;
use gt_ir::ops::shape;
use gt_ir::{Attribute, Attributes, Meta, Operand, Operation, TensorId, Var};
use smallvec::{SmallVec, smallvec};

use super::Planner;
use super::catalogue::{Catalogue, Metas};
use super::streams::Streams;

impl Planner {
    /// Plans the steps of a composite in its place.
    pub(super) fn expand(
        &mut self,
        catalogue: &mut Catalogue,
        streams: &mut Streams,
        instruction: &Instruction,
        body: fn(&mut dyn Graph, &[Operand<Var>], &Attributes) -> Var,
    ) -> Result<(), String> {
        let mut expansion = Expansion {
            planner: self,
            catalogue,
            streams,
            instruction,
            values: Vec::new(),
            error: None,
        };
        let operands: SmallVec<[Operand<Var>; 3]> = instruction
            .operands
            .iter()
            .map(|operand| {
                operand.map(|id| {
                    let meta = expansion.catalogue.placed(*id).meta;
                    expansion.push(*id, meta)
                })
            })
            .collect();
        let given = expansion.values.len();
        let mut result = body(&mut expansion, &operands, &instruction.attributes);
        if (result.0 as usize) < given {
            // The result is one of the operands: it needs a name of its own.
            let dims = Attribute::dims(&expansion.meta(result).shape);
            result = expansion.emit(&shape::RESHAPE, &[Operand::Tensor(result)], smallvec![dims]);
        }
        if let Some(error) = expansion.error {
            return Err(error);
        }
        let values = expansion.values;
        let (result, _) = values[result.0 as usize];
        for (value, _) in values[given..].iter().filter(|(value, _)| *value != result) {
            catalogue.free(*value, streams);
        }
        catalogue.rename(result, instruction.output);
        Ok(())
    }
}

/// Plans each step of a composite as its body emits it.
struct Expansion<'a> {
    planner: &'a mut Planner,
    catalogue: &'a mut Catalogue,
    streams: &'a mut Streams,
    instruction: &'a Instruction,
    /// The operands and results of the steps. A failed step has a shape all the same.
    values: Vec<(TensorId, Meta)>,
    error: Option<String>,
}

impl Expansion<'_> {
    fn push(&mut self, id: TensorId, meta: Meta) -> Var {
        self.values.push((id, meta));
        Var(self.values.len() as u32 - 1)
    }
}

impl Graph for Expansion<'_> {
    fn emit(
        &mut self,
        operation: &'static Operation,
        operands: &[Operand<Var>],
        attributes: Attributes,
    ) -> Var {
        let output = self.catalogue.name();
        let value = |var: &Var| self.values[var.0 as usize];
        let metas: Metas = operands.iter().map(|operand| operand.map(|var| value(var).1)).collect();
        let results = operation.results(&metas, &attributes);
        let results = results.expect("composites build valid operations");
        let operands: Operands =
            operands.iter().map(|operand| operand.map(|var| value(var).0)).collect();
        let (source, signal) = (self.instruction.source, self.instruction.signal);
        for _ in 1..results.len() {
            self.catalogue.name();
        }
        let made = results.clone();
        let step = Instruction { operation, output, results, operands, attributes, source, signal };
        if let Err(error) = self.planner.run(self.catalogue, self.streams, step) {
            self.error = Some(error);
        }
        let first = Var(self.values.len() as u32);
        for (index, meta) in made.into_iter().enumerate() {
            self.push(output.after(index as u64), meta);
        }
        first
    }

    fn meta(&self, var: Var) -> Meta {
        self.values[var.0 as usize].1
    }
}
