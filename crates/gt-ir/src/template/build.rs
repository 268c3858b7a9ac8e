//! From one pass of a sequence to its template.

use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::bindings::Bindings;
use super::{Definition, Freed, MAX_STEPS, Place, Step, Template, TemplateError, varying_numbers};
use crate::instruction::{Instruction, Operand, TensorId};
use crate::scalar::Scalar;

impl Template {
    /// The template that a pass follows, and its bindings in that pass.
    ///
    /// # Errors
    /// The definition is not one that a client of GT's would send.
    pub fn new(definition: &Definition) -> Result<(Template, Bindings), TemplateError> {
        let count = definition.steps.len();
        if count == 0 || count > MAX_STEPS {
            return Err(TemplateError::Length { steps: count });
        }
        let base = definition.base.0;
        let mut builder =
            Builder { base, tensors: Vec::new(), slots: FxHashMap::default(), numbers: Vec::new() };
        let mut steps = Vec::with_capacity(count);
        let (mut tensors_before, mut numbers_before) = (vec![0], vec![0]);
        for (index, instruction) in definition.steps.iter().enumerate() {
            steps.push(match instruction {
                Some(instruction) if instruction.output.0 != base.wrapping_add(index as u64) => {
                    return Err(TemplateError::Order { step: index });
                }
                Some(instruction) => Some(builder.step(instruction, index)?),
                None => None,
            });
            tensors_before.push(builder.tensors.len() as u32);
            numbers_before.push(builder.numbers.len() as u32);
        }
        let previous = base.wrapping_sub(count as u64);
        let frees = definition.frees.iter().filter_map(|id| {
            let back = id.0.wrapping_sub(base);
            if back < count as u64 {
                return Some(Freed::Own(back as u32));
            }
            if let Some(&slot) = builder.slots.get(id) {
                return Some(Freed::Outside(slot));
            }
            let back = id.0.wrapping_sub(previous);
            (back < count as u64).then_some(Freed::Previous(back as u32))
        });
        let template = Template { frees: frees.collect(), steps, tensors_before, numbers_before };
        let bindings = Bindings::new(definition.base, count, &builder.tensors, &builder.numbers);
        Ok((template, bindings))
    }
}

/// Finds out what the operands of a pass are.
struct Builder {
    base: u64,
    tensors: Vec<TensorId>,
    slots: FxHashMap<TensorId, u32>,
    numbers: Vec<Scalar>,
}

impl Builder {
    fn step(&mut self, instruction: &Instruction, index: usize) -> Result<Step, TemplateError> {
        let mut operands = SmallVec::new();
        for operand in &instruction.operands {
            operands.push(match operand {
                Operand::Tensor(id) if id.0 >= self.base => {
                    let step = id.0 - self.base;
                    if step >= index as u64 {
                        return Err(TemplateError::Order { step: index });
                    }
                    Place::Own(step as u32)
                }
                Operand::Tensor(id) => {
                    let tensors = &mut self.tensors;
                    let slot = *self.slots.entry(*id).or_insert_with(|| {
                        tensors.push(*id);
                        tensors.len() as u32 - 1
                    });
                    Place::Outside(slot)
                }
                Operand::Scalar(scalar) => Place::Number(self.number(*scalar)),
            });
        }
        let varying = self.numbers.len() as u32;
        for &value in varying_numbers(instruction.operation, &instruction.attributes) {
            self.number(Scalar::Int(value));
        }
        Ok(Step {
            operation: instruction.operation,
            operands,
            attributes: instruction.attributes.clone(),
            varying,
            source: instruction.source,
            signal: instruction.signal,
        })
    }

    fn number(&mut self, value: Scalar) -> u32 {
        self.numbers.push(value);
        self.numbers.len() as u32 - 1
    }
}
