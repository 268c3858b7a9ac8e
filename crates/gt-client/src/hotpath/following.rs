//! Follows a stream through a template, and says what differs.

use gt_ir::template::{Argument, IterationPart, Name, RunStep, Step, Values, varying_numbers};
use gt_ir::{
    ClientCommand, Definition, Instance, Instruction, Invocation, Operand, Scalar, TensorId,
    TransferId,
};
use smallvec::SmallVec;

/// A template of the session.
pub struct Known {
    pub number: u32,
    pub instance: Instance,
    pub tokens: Vec<u64>,
    /// How many tensors from outside, and numbers, are known before each step.
    slots_before: Vec<(u32, u32)>,
    /// When it was used last, counted.
    pub used: u64,
    /// Iterations in a row that were not completed,
    pub broken: u32,
    /// or in which other tensors were freed than usually.
    pub odd: u32,
}

impl Known {
    pub fn new(definition: Definition, tokens: Vec<u64>, used: u64) -> Known {
        let (number, mut known, mut numbers) = (definition.number, 0, 0);
        let mut slots_before = Vec::with_capacity(definition.template.len());
        for step in &definition.template.steps {
            slots_before.push((known, numbers));
            let Step::Run(step) = step else { continue };
            for argument in &step.operands {
                match argument {
                    Argument::Tensor(Name::Outside(slot)) => known = known.max(slot + 1),
                    Argument::Number(_) => numbers += 1,
                    _ => {}
                }
            }
            numbers += step.varying.as_ref().map_or(0, |varying| varying.added.len() as u32);
        }
        let instance = Instance::new(definition);
        Known { number, instance, tokens, slots_before, used, broken: 0, odd: 0 }
    }

    pub fn len(&self) -> usize {
        self.instance.template.len()
    }
}

/// An iteration under way. What has matched but is not sent yet is pending.
pub struct Following {
    pub number: u32,
    /// How many steps have matched, and are sent.
    position: usize,
    sent: usize,
    /// How many of the template's frees have come, and are sent.
    freed: usize,
    freed_sent: usize,
    tensors: Vec<(u32, TensorId)>,
    numbers: Vec<(u32, Scalar)>,
    others: Vec<TensorId>,
    /// Whether a free came in this iteration that is not among the template's.
    odd: bool,
}

impl Following {
    /// Begins an iteration with the command that is to be its first; `None` if it is not.
    pub fn begin(known: &mut Known, command: &ClientCommand) -> Option<Following> {
        let base = command.made()?;
        let mut iteration = Following {
            number: known.number,
            position: 0,
            sent: 0,
            freed: 0,
            freed_sent: 0,
            tensors: Vec::new(),
            numbers: Vec::new(),
            others: Vec::new(),
            odd: false,
        };
        let before = known.instance.bindings.begin([base, base]);
        if iteration.step(known, command) {
            return Some(iteration);
        }
        known.instance.bindings.take_back(before);
        None
    }

    /// Takes the next command that makes a tensor; false if it is not the template's next.
    #[inline]
    pub fn step(&mut self, known: &mut Known, command: &ClientCommand) -> bool {
        let Known { instance, slots_before, .. } = known;
        let Instance { template, bindings, .. } = instance;
        let fits = match (template.steps.get(self.position), command) {
            (Some(Step::Run(step)), ClientCommand::Run(instruction)) => {
                let known = slots_before[self.position];
                bindings.tensor(step.output) == instruction.output
                    && alike(step, instruction)
                    && self.bind(bindings, known, step, instruction)
            }
            (Some(Step::Data { output, meta }), ClientCommand::Create(create)) => {
                bindings.tensor(*output) == create.output && *meta == create.content.meta()
            }
            _ => false,
        };
        self.position += usize::from(fits);
        fits
    }

    /// Binds the operands of a step, if they can be what its template says.
    #[inline]
    fn bind(
        &mut self,
        bindings: &mut gt_ir::Bindings,
        (known, first_number): (u32, u32),
        step: &RunStep,
        instruction: &Instruction,
    ) -> bool {
        let base = bindings.bases()[0];
        // Slots are numbered by first use: those of this step follow one another.
        let mut new: SmallVec<[TensorId; 3]> = SmallVec::new();
        for (argument, operand) in step.operands.iter().zip(&instruction.operands) {
            let fits = match (argument, operand) {
                (Argument::Tensor(Name::Outside(slot)), Operand::Tensor(id)) if *slot >= known => {
                    match new.get((slot - known) as usize) {
                        Some(first) => first == id,
                        None => {
                            new.push(*id);
                            *id < base
                        }
                    }
                }
                (Argument::Tensor(name), Operand::Tensor(id)) => bindings.tensor(*name) == *id,
                (Argument::Number(slot), Operand::Scalar(scalar)) => {
                    let usual = bindings.number(*slot);
                    std::mem::discriminant(&usual) == std::mem::discriminant(scalar)
                }
                _ => false,
            };
            if !fits {
                return false;
            }
        }
        for (slot, id) in (known..).zip(new) {
            if bindings.tensor(Name::Outside(slot)) != id {
                self.tensors.push((slot, id));
                bindings.bind_tensor(slot, id);
            }
        }
        let scalars = instruction.operands.iter().filter_map(Operand::scalar);
        let varying = varying_numbers(instruction.operation, &instruction.attributes);
        let values = scalars.chain(varying.iter().map(|&value| Scalar::Int(value)));
        for (slot, value) in (first_number..).zip(values) {
            if !value.same_bits(bindings.number(slot)) {
                self.numbers.push((slot, value));
                bindings.bind_number(slot, value);
            }
        }
        true
    }

    /// Takes a free: it comes after the pending steps, wherever it stood among them.
    #[inline]
    pub fn free(&mut self, known: &Known, id: TensorId) {
        let Instance { template, bindings, .. } = &known.instance;
        if self.freed < template.frees.len() && template.freed(self.freed, bindings) == id {
            self.freed += 1;
        } else {
            self.odd = true;
            self.others.push(id);
        }
    }

    pub fn is_complete(&self, known: &Known) -> bool {
        self.position == known.len()
    }

    /// Whether the iteration has freed just what its template says.
    pub fn is_usual(&self, known: &Known) -> bool {
        !self.odd && self.freed == known.instance.template.frees.len()
    }

    pub fn position(&self) -> usize {
        self.position
    }

    /// Whether anything has not been sent yet.
    pub fn is_pending(&self) -> bool {
        self.position > self.sent || self.freed > self.freed_sent || !self.others.is_empty()
    }

    /// Sends what is pending.
    pub fn send(&mut self, known: &Known, out: &mut Vec<ClientCommand>) {
        if !self.is_pending() {
            return;
        }
        let bindings = &known.instance.bindings;
        let (first, last, frees) = (self.sent as u32, self.position as u32, self.freed as u32);
        let invocation = Invocation {
            template: known.number,
            bases: bindings.bases(),
            transfer: TransferId(0),
            part: IterationPart { first, last, frees },
            tensors: std::mem::take(&mut self.tensors),
            numbers: std::mem::take(&mut self.numbers),
            others: std::mem::take(&mut self.others),
            digest: bindings.digest(),
        };
        out.push(ClientCommand::Invoke(Box::new(invocation)));
        (self.sent, self.freed_sent) = (self.position, self.freed);
    }
}

/// Whether an instruction is a step but for its operands and numbers.
#[inline]
fn alike(step: &RunStep, instruction: &Instruction) -> bool {
    if step.operation.id != instruction.operation.id
        || step.source != instruction.source
        || step.signal != instruction.signal
        || step.results != instruction.results
        || step.operands.len() != instruction.operands.len()
        || step.attributes.len() != instruction.attributes.len()
    {
        return false;
    }
    if step.attributes.is_empty() {
        return true;
    }
    let varies = gt_ir::template::varying_attribute(step.operation);
    step.attributes.iter().zip(&instruction.attributes).enumerate().all(|(index, (step, given))| {
        // Shapes fix how many numbers an attribute that varies has.
        varies == Some(index) || step == given
    })
}
