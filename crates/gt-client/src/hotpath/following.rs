//! Follows a stream through a template, and says what differs.

use gt_ir::template::{Place, Step, varying_attribute, varying_numbers};
use gt_ir::{
    Bindings, Command, Instruction, Invocation, Meta, Operand, Scalar, Template, TensorId,
};
use smallvec::SmallVec;

use super::token::made_by;

/// A template of the session.
pub struct Known {
    pub number: u32,
    pub template: Template,
    pub bindings: Bindings,
    pub tokens: Vec<u64>,
    /// Of the tensors that its steps make.
    pub metas: Vec<Meta>,
    /// When it was used last, counted.
    pub used: u64,
    /// Passes in a row that were not completed,
    pub broken: u32,
    /// or in which other tensors were freed than usually.
    pub odd: u32,
    pub passes: u64,
}

/// A pass under way. What has matched but is not sent yet is pending.
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
    /// Whether a free came in this pass that is not among the template's.
    odd: bool,
}

impl Following {
    /// Begins a pass with the command that is to be its first; `None` if it is not.
    pub fn begin(known: &mut Known, command: &Command, meta: Meta) -> Option<Following> {
        let base = made_by(command)?;
        let mut pass = Following {
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
        let before = (known.bindings.base(), known.bindings.previous());
        known.bindings.begin(base);
        if pass.step(known, command, meta) {
            return Some(pass);
        }
        known.bindings.take_back(before.0, before.1);
        None
    }

    /// Takes the next command that makes a tensor; false if it is not the template's next.
    #[inline]
    pub fn step(&mut self, known: &mut Known, command: &Command, meta: Meta) -> bool {
        let Known { template, bindings, metas, .. } = known;
        if self.position == template.len() || metas[self.position] != meta {
            return false;
        }
        let fits = match (&template.steps[self.position], command) {
            (Some(step), Command::Run(instruction)) => {
                alike(step, instruction) && self.bind(template, bindings, step, instruction)
            }
            (None, Command::Create { output, .. }) => {
                output.0 == bindings.base().0 + self.position as u64
            }
            _ => false,
        };
        self.position += usize::from(fits);
        fits
    }

    /// Binds the operands of a step, if they can be what its template says.
    fn bind(
        &mut self,
        template: &Template,
        bindings: &mut Bindings,
        step: &Step,
        instruction: &Instruction,
    ) -> bool {
        let base = bindings.base().0;
        let known = template.new_tensors(0, self.position).end;
        // Slots are numbered by first use: those of this step follow one another.
        let mut new: SmallVec<[TensorId; 3]> = SmallVec::new();
        for (place, operand) in step.operands.iter().zip(&instruction.operands) {
            let fits = match (place, operand) {
                (Place::Own(own), Operand::Tensor(id)) => id.0 == base + u64::from(*own),
                (Place::Outside(slot), Operand::Tensor(id)) => {
                    let slot = *slot as usize;
                    if slot < known {
                        bindings.tensor(slot) == *id
                    } else if let Some(first) = new.get(slot - known) {
                        first == id
                    } else {
                        new.push(*id);
                        id.0 < base
                    }
                }
                (Place::Number(slot), Operand::Scalar(scalar)) => {
                    let usual = bindings.number(*slot as usize);
                    std::mem::discriminant(&usual) == std::mem::discriminant(scalar)
                }
                _ => false,
            };
            if !fits {
                return false;
            }
        }
        for (slot, id) in (known..).zip(new) {
            if bindings.predict_tensor(slot) != id {
                self.tensors.push((slot as u32, id));
            }
            bindings.bind_tensor(slot, id);
        }
        let scalars = instruction.operands.iter().filter_map(Operand::scalar);
        let varying = varying_numbers(instruction.operation, &instruction.attributes);
        let values = scalars.chain(varying.iter().map(|&value| Scalar::Int(value)));
        for (slot, value) in (template.new_numbers(0, self.position).end..).zip(values) {
            if !value.same_bits(bindings.predict_number(slot)) {
                self.numbers.push((slot as u32, value));
            }
            bindings.bind_number(slot, value);
        }
        true
    }

    /// Takes a free: it comes after the pending steps, wherever it stood among them.
    #[inline]
    pub fn free(&mut self, known: &Known, id: TensorId) {
        let Known { template, bindings, .. } = known;
        if self.freed < template.frees.len() && template.freed(self.freed, bindings) == id {
            self.freed += 1;
        } else {
            self.odd = true;
            self.others.push(id);
        }
    }

    pub fn is_complete(&self, known: &Known) -> bool {
        self.position == known.template.len()
    }

    /// Whether the pass has freed just what its template says.
    pub fn is_usual(&self, known: &Known) -> bool {
        !self.odd && self.freed == known.template.frees.len()
    }

    pub fn position(&self) -> usize {
        self.position
    }

    /// Whether anything has not been sent yet.
    pub fn is_pending(&self) -> bool {
        self.position > self.sent || self.freed > self.freed_sent || !self.others.is_empty()
    }

    /// Sends what is pending.
    pub fn send(&mut self, known: &Known, out: &mut Vec<Command>) {
        if !self.is_pending() {
            return;
        }
        let invocation = Invocation {
            template: known.number,
            base: known.bindings.base(),
            first: self.sent as u32,
            last: self.position as u32,
            tensors: std::mem::take(&mut self.tensors),
            numbers: std::mem::take(&mut self.numbers),
            frees: self.freed as u32,
            others: std::mem::take(&mut self.others),
        };
        out.push(Command::Invoke(Box::new(invocation)));
        (self.sent, self.freed_sent) = (self.position, self.freed);
    }
}

/// Whether an instruction is a step but for its operands and numbers.
#[inline]
fn alike(step: &Step, instruction: &Instruction) -> bool {
    if step.operation.id != instruction.operation.id
        || step.source != instruction.source
        || step.signal != instruction.signal
        || step.operands.len() != instruction.operands.len()
        || step.attributes.len() != instruction.attributes.len()
    {
        return false;
    }
    if step.attributes.is_empty() {
        return true;
    }
    let varies = varying_attribute(step.operation);
    step.attributes.iter().zip(&instruction.attributes).enumerate().all(|(index, (step, given))| {
        // Shapes fix how many numbers an attribute that varies has.
        varies == Some(index) || step == given
    })
}
