//! Sequences of instructions that a stream repeats: told once, then invoked.
//!
//! A [`Definition`] is one pass of the sequence as it was issued. From it every part of GT makes
//! the same [`Template`]: the steps without the names of their tensors. An [`Invocation`] is
//! another pass: it says only what differs from what [`Bindings`] predict from the passes so far.
//! In a training loop these predict everything: parameters are outputs of the pass before, and
//! the numbers of a pass follow from those of the last.
//!
//! - [`build`]: from a definition to its template; [`bindings`]: what is predicted;
//!   [`expand`]: a pass as ordinary commands.

mod bindings;
mod build;
mod expand;

use smallvec::SmallVec;

use crate::instruction::{Attribute, Attributes, Instruction, SourceId, TensorId};
use crate::operation::Operation;
use crate::scalar::Scalar;

pub use bindings::Bindings;
pub use expand::{Pass, expand};

/// The most steps a template may have.
pub const MAX_STEPS: usize = 1 << 14;
/// How many templates a session may have at once,
pub const MAX_TEMPLATES: u32 = 64;
/// and how many steps in all of them.
pub const MAX_ALL_STEPS: usize = 1 << 16;

/// One pass of a sequence, as it was issued: what a template is made from.
#[derive(Clone, PartialEq, Debug)]
pub struct Definition {
    /// The template's number in its session; it replaces another one with that number.
    pub number: u32,
    /// The tensors of the pass are named from here on, one for each step.
    pub base: TensorId,
    /// `None` stands for a tensor that was made from data. Without steps, the template of that
    /// number is forgotten.
    pub steps: Vec<Option<Instruction>>,
    /// What was freed in the meantime, in order.
    pub frees: Vec<TensorId>,
    /// Whether somebody asked for it to be compiled.
    pub compile: bool,
}

impl Definition {
    /// What has a template forgotten.
    pub fn forgetting(number: u32) -> Definition {
        let base = TensorId(0);
        Definition { number, base, steps: Vec::new(), frees: Vec::new(), compile: false }
    }
}

/// Another pass of a template, or a part of one.
#[derive(Clone, PartialEq, Debug)]
pub struct Invocation {
    pub template: u32,
    /// The tensors of the pass are named from here on.
    pub base: TensorId,
    /// These steps are run; a pass goes on where its last part ended.
    pub first: u32,
    pub last: u32,
    /// Tensors from outside that are others than predicted, by slot.
    pub tensors: Vec<(u32, TensorId)>,
    /// Numbers that are others than predicted, by slot.
    pub numbers: Vec<(u32, Scalar)>,
    /// How many of the template's frees the pass has come to; they are done after the steps.
    pub frees: u32,
    /// What else is freed after the steps.
    pub others: Vec<TensorId>,
}

/// Where a step finds an operand.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Place {
    /// The result of a step of the same pass.
    Own(u32),
    /// A tensor from outside, by slot.
    Outside(u32),
    /// A number, by slot.
    Number(u32),
}

/// An instruction without names and numbers.
#[derive(Clone, Debug)]
pub struct Step {
    pub operation: &'static Operation,
    pub operands: SmallVec<[Place; 3]>,
    /// Of an attribute that varies, the numbers stand in slots.
    pub attributes: Attributes,
    /// The first of the slots for the attribute that varies.
    pub varying: u32,
    pub source: SourceId,
    pub signal: u32,
}

/// What is freed in a pass.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Freed {
    Own(u32),
    Outside(u32),
    /// The result of this step of the pass before.
    Previous(u32),
}

/// A sequence of steps. One step makes one tensor, named by the pass's base and the step's place.
#[derive(Clone, Debug)]
pub struct Template {
    /// `None` stands for a tensor made from data, which comes by itself.
    pub steps: Vec<Option<Step>>,
    /// For each step, and the end: how many tensors from outside are known before it,
    tensors_before: Vec<u32>,
    /// and how many numbers.
    numbers_before: Vec<u32>,
    pub frees: Vec<Freed>,
}

/// Why a definition or an invocation is not valid; no client of GT's sends such a one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TemplateError {
    #[error("a template of {steps} steps: at most {MAX_STEPS} are allowed, and one needed")]
    Length { steps: usize },
    #[error("step {step} of a template is out of order")]
    Order { step: usize },
    #[error("template {number} is not among the {MAX_TEMPLATES} of a session")]
    Unknown { number: u32 },
    #[error("template {number} has {steps} steps, and steps {first} to {last} were asked for")]
    Range { number: u32, steps: usize, first: u32, last: u32 },
    #[error("template {number} has no such slot or free")]
    Slot { number: u32 },
}

/// Which attribute of an operation holds numbers that vary from pass to pass, as the place of a
/// slice does; all others are part of the structure.
pub fn varying_attribute(operation: &Operation) -> Option<usize> {
    operation.attributes.iter().position(|attribute| attribute.varies)
}

/// The numbers of the attribute that varies.
pub fn varying_numbers<'a>(operation: &Operation, attributes: &'a Attributes) -> &'a [i64] {
    match varying_attribute(operation).and_then(|index| attributes.get(index)) {
        Some(Attribute::Ints(values)) => values,
        _ => &[],
    }
}

impl Template {
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// A template has a step at least.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// The slots of tensors from outside that are used first by these steps.
    pub fn new_tensors(&self, first: usize, last: usize) -> std::ops::Range<usize> {
        self.tensors_before[first] as usize..self.tensors_before[last] as usize
    }

    /// The slots of the numbers of these steps.
    pub fn new_numbers(&self, first: usize, last: usize) -> std::ops::Range<usize> {
        self.numbers_before[first] as usize..self.numbers_before[last] as usize
    }

    /// The instruction that a step is with these bindings; `None` for a tensor made from data.
    pub fn instruction(&self, step: usize, bindings: &Bindings) -> Option<Instruction> {
        let output = TensorId(bindings.base().0 + step as u64);
        let step = self.steps[step].as_ref()?;
        Some(Instruction {
            operation: step.operation,
            output,
            operands: step.operands.iter().map(|place| bindings.operand(*place)).collect(),
            attributes: bindings.attributes(step),
            source: step.source,
            signal: step.signal,
        })
    }

    /// The tensor that one of the frees is with these bindings.
    pub fn freed(&self, index: usize, bindings: &Bindings) -> TensorId {
        match self.frees[index] {
            Freed::Own(step) => TensorId(bindings.base().0 + u64::from(step)),
            Freed::Outside(slot) => bindings.tensor(slot as usize),
            Freed::Previous(step) => TensorId(bindings.previous().0.wrapping_add(u64::from(step))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::instruction::Operand;
    use crate::ops::binary;
    use smallvec::smallvec;

    fn add(output: u64, left: u64, right: Operand) -> Option<Instruction> {
        Some(Instruction {
            operation: &binary::ADD,
            output: TensorId(output),
            operands: smallvec![Operand::Tensor(TensorId(left)), right],
            attributes: smallvec![],
            source: SourceId::default(),
            signal: 0,
        })
    }

    fn tensor(id: u64) -> Operand {
        Operand::Tensor(TensorId(id))
    }

    /// Two steps: a constant plus what the last pass made, and that plus a number.
    fn definition() -> Definition {
        Definition {
            number: 3,
            base: TensorId(20),
            steps: vec![add(20, 5, tensor(19)), add(21, 20, Operand::Scalar(Scalar::Int(7)))],
            frees: vec![TensorId(20), TensorId(19), TensorId(18)],
            compile: false,
        }
    }

    fn invocation(base: u64) -> Invocation {
        Invocation {
            template: 3,
            base: TensorId(base),
            first: 0,
            last: 2,
            tensors: vec![],
            numbers: vec![],
            frees: 3,
            others: vec![],
        }
    }

    #[test]
    fn a_pass_is_predicted_from_the_last() {
        let (template, mut bindings) = Template::new(&definition()).unwrap();
        assert_eq!(template.frees, [Freed::Own(0), Freed::Outside(1), Freed::Previous(0)]);
        // Another base than the next: something else was issued in between.
        bindings.take(&template, &invocation(30)).unwrap();
        assert_eq!(template.instruction(0, &bindings), add(30, 5, tensor(21)));
        let seven = Operand::Scalar(Scalar::Int(7));
        assert_eq!(template.instruction(1, &bindings), add(31, 30, seven));
        assert_eq!(template.freed(0, &bindings), TensorId(30));
        assert_eq!(template.freed(1, &bindings), TensorId(21));
        assert_eq!(template.freed(2, &bindings), TensorId(20));
    }

    #[test]
    fn what_differs_is_said_and_remembered() {
        let (template, mut bindings) = Template::new(&definition()).unwrap();
        let mut next = invocation(22);
        next.tensors = vec![(0, TensorId(6))];
        next.numbers = vec![(0, Scalar::Int(9))];
        bindings.take(&template, &next).unwrap();
        assert_eq!(template.instruction(0, &bindings), add(22, 6, tensor(21)));
        bindings.take(&template, &invocation(24)).unwrap();
        // Whole numbers count on.
        assert_eq!(template.instruction(0, &bindings), add(24, 6, tensor(23)));
        let eleven = Operand::Scalar(Scalar::Int(11));
        assert_eq!(template.instruction(1, &bindings), add(25, 24, eleven));
    }

    #[test]
    fn what_lies_as_far_back_as_the_last_time_is_found() {
        let (template, mut bindings) = Template::new(&definition()).unwrap();
        for (base, given) in [(100, true), (200, true), (300, false), (400, false)] {
            let mut next = invocation(base);
            next.tensors = if given { vec![(0, TensorId(base - 50))] } else { vec![] };
            next.tensors.push((1, TensorId(1)));
            if base >= 300 {
                next.tensors.pop();
            }
            bindings.take(&template, &next).unwrap();
            assert_eq!(bindings.tensor(0), TensorId(base - 50), "{base}");
        }
    }

    #[test]
    fn a_pass_may_come_in_parts() {
        let (template, mut bindings) = Template::new(&definition()).unwrap();
        bindings.take(&template, &Invocation { last: 1, ..invocation(22) }).unwrap();
        bindings.take(&template, &Invocation { first: 1, ..invocation(22) }).unwrap();
        assert_eq!(bindings.tensor(1), TensorId(21));
        // What is left of frees may follow.
        bindings.take(&template, &Invocation { first: 2, ..invocation(22) }).unwrap();
    }

    #[test]
    fn what_no_client_sends_is_refused() {
        let bad = |definition: Definition| Template::new(&definition).unwrap_err();
        assert_eq!(
            bad(Definition { steps: vec![], ..definition() }),
            TemplateError::Length { steps: 0 }
        );
        let steps = vec![add(20, 20, tensor(1))];
        assert_eq!(bad(Definition { steps, ..definition() }), TemplateError::Order { step: 0 });
        let steps = vec![add(23, 5, tensor(1))];
        assert_eq!(bad(Definition { steps, ..definition() }), TemplateError::Order { step: 0 });
        let (template, mut bindings) = Template::new(&definition()).unwrap();
        for bad in [
            Invocation { last: 3, ..invocation(22) },
            Invocation { first: 1, ..invocation(22) },
            Invocation { last: 0, ..invocation(22) },
            Invocation { frees: 4, ..invocation(22) },
            Invocation { tensors: vec![(2, TensorId(1))], ..invocation(22) },
            Invocation { numbers: vec![(1, Scalar::Int(1))], ..invocation(22) },
        ] {
            assert!(bindings.take(&template, &bad).is_err(), "{bad:?}");
        }
    }
}
