//! Matches a stream against a template, and collects the differences from its prediction.

use gt_ir::template::{Argument, IterationPart, Name, RunStep, Step, Values, varying_numbers};
use gt_ir::{
    Attributes, ClientCommand, Definition, Instance, Instruction, Invocation, Meta, Operand,
    Operation, Scalar, SourceId, TensorId, TransferId,
};
use smallvec::SmallVec;

/// Iterations are sent in parts if the program has waited for a value in one of the last 16.
const RECENT_ITERATIONS: u64 = 16;
/// The number of steps of the first part of an iteration that is sent in parts.
const FIRST_PART_STEPS: usize = 64;

/// An instruction before its results are inferred.
pub struct UninferredInstruction<'a> {
    pub operation: &'static Operation,
    pub output: TensorId,
    pub operands: &'a [Operand<TensorId>],
    pub attributes: &'a Attributes,
    pub source: SourceId,
    pub signal: u32,
}

/// The operands from which a step's results were inferred.
struct Inferred {
    inputs: SmallVec<[Operand<Meta>; 2]>,
    /// Its cost, as [`Driver::submit`](crate::Driver::submit) takes it.
    work: u64,
}

/// A template of the session.
pub struct SessionTemplate {
    pub number: u32,
    pub instance: Instance,
    pub tokens: Vec<u64>,
    /// By step, once the step was matched.
    inferred: Vec<Option<Box<Inferred>>>,
    /// The number of slots for outside tensors, and for numbers, that are bound before each step.
    slots_before: Vec<(u32, u32)>,
    /// The number of slots for outside tensors that its steps bind.
    slots: u32,
    /// The number of its frees, the first ones, of tensors that its steps make or read.
    used_frees: usize,
    /// Whether it is a run of a section, in which tensors of varying shape are freed that it cannot
    /// name.
    pub of_section: bool,
    /// When it was used last, in tokens of the stream.
    pub used: u64,
    /// The number of consecutive incomplete iterations.
    pub broken: u32,
    /// The number of consecutive iterations that freed other tensors than the template.
    pub odd: u32,
}

impl SessionTemplate {
    pub fn new(
        definition: Definition,
        tokens: Vec<u64>,
        of_section: bool,
        used: u64,
    ) -> SessionTemplate {
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
        let slots = known;
        let is_used = |name: &&Name| !matches!(name, Name::Outside(slot) if *slot >= slots);
        let used_frees = instance.template.frees.iter().take_while(is_used).count();
        let (broken, odd) = (0, 0);
        let inferred = (0..tokens.len()).map(|_| None).collect();
        SessionTemplate {
            number,
            instance,
            tokens,
            inferred,
            slots_before,
            slots,
            used_frees,
            of_section,
            used,
            broken,
            odd,
        }
    }

    pub fn len(&self) -> usize {
        self.instance.template.len()
    }

    /// Returns whether `tokens` tokens are at most a few iterations.
    pub fn is_recent(&self, tokens: u64) -> bool {
        tokens <= RECENT_ITERATIONS * self.len() as u64
    }
}

/// An iteration in progress. Steps that have matched but were not sent yet are pending.
pub struct IterationInProgress {
    pub number: u32,
    /// The number of matched steps.
    position: usize,
    /// The number of matched steps that were sent.
    sent: usize,
    /// The number of matched steps at the last flush.
    flushed: usize,
    /// The bytes of data among the unsent steps, and the position after the last of it.
    data: (u64, usize),
    /// The number of matched frees of tensors that the template's steps use.
    freed: usize,
    /// The number of matched frees of tensors that no step uses.
    dropped: usize,
    /// Matched frees of unused tensors, held back until all used frees have matched: then they are
    /// part of the template's frees.
    deferred_frees: Vec<TensorId>,
    /// Whether such frees were sent earlier, as others.
    frees_separate: bool,
    /// The number of its frees that were sent.
    freed_sent: usize,
    /// Outside tensors by slot, where they differ from the prediction; not sent yet.
    tensors: Vec<(u32, TensorId)>,
    /// Numbers by slot, where they differ from the prediction; not sent yet.
    numbers: Vec<(u32, Scalar)>,
    /// Frees that are not among the template's; not sent yet.
    others: Vec<TensorId>,
    /// Whether there was such a free in this iteration.
    odd: bool,
}

impl IterationInProgress {
    /// Starts an iteration with a command; `None` if it does not match the first step.
    pub fn begin(
        known: &mut SessionTemplate,
        command: &ClientCommand,
    ) -> Option<IterationInProgress> {
        let base = command.made()?;
        let mut iteration = IterationInProgress {
            number: known.number,
            position: 0,
            sent: 0,
            flushed: 0,
            data: (0, 0),
            freed: 0,
            dropped: 0,
            deferred_frees: Vec::new(),
            frees_separate: false,
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

    /// Processes the next command that makes a tensor; returns whether it matches the template's
    /// next step.
    #[inline]
    pub fn step(&mut self, known: &mut SessionTemplate, command: &ClientCommand) -> bool {
        let SessionTemplate { instance, slots_before, .. } = known;
        let Instance { template, bindings, .. } = instance;
        let fits = match (template.steps.get(self.position), command) {
            (Some(Step::Run(step)), ClientCommand::Run(instruction)) => {
                let known = slots_before[self.position];
                let varying = || varying_numbers(instruction.operation, &instruction.attributes);
                bindings.tensor(step.output) == instruction.output
                    && alike(step, instruction)
                    && self.bind(bindings, known, step, &instruction.operands, varying())
            }
            (Some(Step::Data { output, meta }), ClientCommand::Create(create)) => {
                bindings.tensor(*output) == create.output && *meta == create.content.meta()
            }
            _ => false,
        };
        self.position += usize::from(fits);
        if fits && let ClientCommand::Create(create) = command {
            self.data = (self.data.0 + create.content.meta().bytes() as u64, self.position);
        }
        fits
    }

    /// Records the operands from which the results of the last matched step were inferred.
    #[inline]
    pub fn note(&self, known: &mut SessionTemplate, inputs: &[Operand<Meta>], work: u64) {
        if let Some(at) = self.position.checked_sub(1)
            && known.inferred[at].is_none()
        {
            known.inferred[at] = Some(Box::new(Inferred { inputs: inputs.into(), work }));
        }
    }

    /// Like [`IterationInProgress::step`], for an instruction whose results need not be inferred,
    /// because it equals the step of the previous iteration up to numbers. Never the first or last
    /// step of an iteration. Returns the result and the cost.
    #[inline]
    pub fn repeat_step(
        &mut self,
        known: &mut SessionTemplate,
        issue: &UninferredInstruction,
        inputs: impl Iterator<Item = Option<Meta>>,
    ) -> Option<(Meta, u64)> {
        let SessionTemplate { instance, slots_before, inferred, .. } = known;
        let Instance { template, bindings, .. } = instance;
        let at = self.position;
        if at == 0 || at + 1 >= template.len() {
            return None;
        }
        let (Step::Run(step), Some(inferred)) = (&template.steps[at], &inferred[at]) else {
            return None;
        };
        let is_same = step.operation.id == issue.operation.id
            && step.source == issue.source
            && step.signal == issue.signal
            && step.varying.is_none()
            && step.results.len() == 1
            && step.operands.len() == issue.operands.len()
            && step.attributes == *issue.attributes
            && bindings.tensor(step.output) == issue.output
            && inferred.inputs.iter().zip(inputs).all(|(known, given)| match (known, given) {
                (Operand::Tensor(known), Some(given)) => *known == given,
                (Operand::Scalar(_), None) => true,
                _ => false,
            });
        // Inference may depend on a number's value.
        let is_same_number =
            |(argument, operand): (&Argument, &Operand<TensorId>)| match (argument, operand) {
                (Argument::Number(slot), Operand::Scalar(scalar)) => {
                    scalar.same_bits(bindings.number(*slot))
                }
                _ => true,
            };
        if !is_same || !step.operands.iter().zip(issue.operands).all(is_same_number) {
            return None;
        }
        let (meta, work) = (step.results[0], inferred.work);
        if !self.bind(bindings, slots_before[at], step, issue.operands, &[]) {
            return None;
        }
        self.position += 1;
        Some((meta, work))
    }

    /// Binds the slots of a step to an instruction's operands and varying numbers; false if the
    /// template does not allow these operands.
    #[inline]
    fn bind(
        &mut self,
        bindings: &mut gt_ir::Bindings,
        (known, first_number): (u32, u32),
        step: &RunStep,
        operands: &[Operand<TensorId>],
        varying: &[i64],
    ) -> bool {
        let base = bindings.bases()[0];
        // Slots are numbered by first use, so this step's new ones are consecutive.
        let mut new: SmallVec<[TensorId; 3]> = SmallVec::new();
        for (argument, operand) in step.operands.iter().zip(operands) {
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
        let scalars = operands.iter().filter_map(Operand::scalar);
        let values = scalars.chain(varying.iter().map(|&value| Scalar::Int(value)));
        for (slot, value) in (first_number..).zip(values) {
            if !value.same_bits(bindings.number(slot)) {
                self.numbers.push((slot, value));
                bindings.bind_number(slot, value);
            }
        }
        true
    }

    /// Processes a free. It takes effect after the pending steps, wherever it was issued among
    /// them.
    #[inline]
    pub fn free(&mut self, known: &SessionTemplate, id: TensorId) {
        let Instance { template, bindings, .. } = &known.instance;
        // A slot that a later step binds may then be another tensor.
        let is_bound = |name: &Name| match (name, known.slots_before.get(self.position)) {
            (Name::Outside(slot), Some((bound, _))) => *slot < *bound || *slot >= known.slots,
            _ => true,
        };
        let is_next = |index: usize| {
            template.frees.get(index).is_some_and(is_bound) && template.freed(index, bindings) == id
        };
        if self.freed < known.used_frees && is_next(self.freed) {
            self.freed += 1;
        } else if is_next(known.used_frees + self.dropped) {
            self.dropped += 1;
            if self.frees_separate { self.others.push(id) } else { self.deferred_frees.push(id) }
        } else {
            self.odd = true;
            self.others.push(id);
        }
    }

    /// Returns the number of the template's frees, from the first on, that are complete.
    fn frees(&self, known: &SessionTemplate) -> usize {
        let counts = self.freed == known.used_frees && !self.frees_separate;
        self.freed + if counts { self.dropped } else { 0 }
    }

    pub fn is_complete(&self, known: &SessionTemplate) -> bool {
        self.position == known.len()
    }

    /// Returns whether the iteration has freed exactly the tensors that its template frees.
    pub fn is_usual(&self, known: &SessionTemplate) -> bool {
        let dropped = known.instance.template.frees.len() - known.used_frees;
        !self.odd && self.freed == known.used_frees && self.dropped == dropped
    }

    /// Returns whether unsent steps follow this many bytes of data, which was sent.
    pub fn is_behind_data(&self, bytes: u64) -> bool {
        let (data, after) = self.data;
        data >= bytes && self.position > after
    }

    pub fn position(&self) -> usize {
        self.position
    }

    /// Returns whether the held-back steps are sent before the rest: after 64, 128, 256, ... steps
    /// since the last flush, if at least 32 remain.
    pub fn is_part(&self, known: &SessionTemplate) -> bool {
        let steps = self.position - self.flushed;
        steps >= FIRST_PART_STEPS
            && steps.is_power_of_two()
            && known.len() - self.position >= FIRST_PART_STEPS / 2
    }

    /// Returns whether the next step may be the last of a part.
    pub fn ends_part(&self) -> bool {
        let steps = self.position + 1 - self.flushed;
        steps >= FIRST_PART_STEPS && steps.is_power_of_two()
    }

    /// Like [`IterationInProgress::send`], when the program waits for what it has issued.
    pub fn flush(&mut self, known: &SessionTemplate, out: &mut Vec<ClientCommand>) {
        self.flushed = self.position;
        self.send(known, out);
    }

    /// Returns whether anything is pending.
    pub fn is_pending(&self, known: &SessionTemplate) -> bool {
        self.position > self.sent
            || self.frees(known) > self.freed_sent
            || !self.deferred_frees.is_empty()
            || !self.others.is_empty()
    }

    /// Sends what is pending.
    pub fn send(&mut self, known: &SessionTemplate, out: &mut Vec<ClientCommand>) {
        if !self.is_pending(known) {
            return;
        }
        if self.freed == known.used_frees {
            self.deferred_frees.clear();
        } else if !self.deferred_frees.is_empty() {
            // The used frees may be late, or never happen.
            self.frees_separate = true;
            self.others.append(&mut self.deferred_frees);
        }
        let bindings = &known.instance.bindings;
        let frees = self.frees(known);
        let (first, last) = (self.sent as u32, self.position as u32);
        let invocation = Invocation {
            template: known.number,
            bases: bindings.bases(),
            transfer: TransferId(0),
            part: IterationPart { first, last, frees: frees as u32 },
            tensors: std::mem::take(&mut self.tensors),
            numbers: std::mem::take(&mut self.numbers),
            others: std::mem::take(&mut self.others),
            digest: bindings.digest(),
        };
        out.push(ClientCommand::Invoke(Box::new(invocation)));
        (self.sent, self.freed_sent) = (self.position, frees);
        self.data = (0, 0);
    }
}

/// Returns whether an instruction matches a step, except for its operands and numbers.
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
    let varies = step.operation.varying_attribute();
    step.attributes.iter().zip(&instruction.attributes).enumerate().all(|(index, (step, given))| {
        // A varying attribute may differ: its length follows from the shapes, which are equal.
        varies == Some(index) || step == given
    })
}
