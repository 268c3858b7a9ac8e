//! Definitions and invocations: how templates and their iterations are sent.

use super::{Bindings, Start, Template, TemplateError};
use crate::ids::TransferId;
use crate::instruction::TensorId;
use crate::record;
use crate::scalar::Scalar;
use crate::wire::{Decoded, MadeTensor, Record, Sink, Source};

/// A template with its initial bindings.
#[derive(Clone, PartialEq, Debug)]
pub struct Definition {
    /// The template's number in its session; replaces any other with that number.
    pub number: u32,
    pub template: Template,
    pub start: Start,
    /// Whether the user requested its compilation.
    pub compile: bool,
}

record!(struct Definition { number, template, start, compile });

impl Definition {
    pub fn weight(&self) -> u64 {
        self.template.len().max(1) as u64
    }

    /// Checks that a client may send it.
    ///
    /// # Errors
    /// See [`Template::check_client`].
    pub fn check_client(&self) -> Result<(), TemplateError> {
        let number = self.number;
        self.template.check_client(number)?;
        let Template { tensors, numbers, .. } = self.template;
        let counts = (self.start.tensors.len(), self.start.numbers.len());
        let fits = counts == (tensors as usize, numbers as usize);
        if fits { Ok(()) } else { Err(TemplateError::Slot { number }) }
    }
}

/// A part of an iteration: a range of steps, and how many of the template's frees are done after
/// it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct IterationPart {
    pub first: u32,
    pub last: u32,
    /// The number of frees done by the end of the part: those not done before are done after the
    /// steps.
    pub frees: u32,
}

record!(struct IterationPart { first, last, frees });

/// Another iteration of a template, or a part of one.
#[derive(Clone, PartialEq, Debug)]
pub struct Invocation {
    pub template: u32,
    /// The bases of the iteration's names.
    pub bases: [TensorId; 2],
    /// Its first transfer.
    pub transfer: TransferId,
    /// The part to run, which begins where the iteration's last part ended.
    pub part: IterationPart,
    /// Outside tensors that differ from the prediction, by slot.
    pub tensors: Vec<(u32, TensorId)>,
    /// Numbers that differ from the prediction, by slot.
    pub numbers: Vec<(u32, Scalar)>,
    /// Other tensors to free after the steps.
    pub others: Vec<TensorId>,
    /// See [`Bindings::digest`].
    pub digest: u32,
}

impl Record for Invocation {
    fn write<S: Sink>(&self, to: &mut S) {
        self.template.write(to);
        MadeTensor(self.bases[0]).write(to);
        self.bases[1].write(to);
        self.transfer.write(to);
        self.part.write(to);
        self.tensors.write(to);
        self.numbers.write(to);
        self.others.write(to);
        to.bytes(&self.digest.to_le_bytes());
    }

    fn read(from: &mut Source) -> Decoded<Invocation> {
        let template = Record::read(from)?;
        let bases = [MadeTensor::read(from)?.0, TensorId::read(from)?];
        Ok(Invocation {
            template,
            bases,
            transfer: Record::read(from)?,
            part: Record::read(from)?,
            tensors: Record::read(from)?,
            numbers: Record::read(from)?,
            others: Record::read(from)?,
            digest: u32::from_le_bytes(from.array()?),
        })
    }
}

impl Invocation {
    /// Returns the weight of the steps that it stands for.
    pub fn weight(&self) -> u64 {
        u64::from(self.part.last.saturating_sub(self.part.first)).max(1)
    }
}

/// A template in use, with the bindings of its current iteration.
#[derive(Clone, Debug)]
pub struct Instance {
    pub template: std::sync::Arc<Template>,
    pub bindings: Bindings,
    /// Whether the user requested its compilation.
    pub compile: bool,
    /// How many of the template's frees the iteration has done.
    pub freed: u32,
}

record!(struct Instance { template, bindings, compile, freed });

impl Instance {
    pub fn new(definition: Definition) -> Instance {
        let Definition { template, start, compile, .. } = definition;
        let bindings = Bindings::new(template.widths, &start);
        Instance { template: std::sync::Arc::new(template), bindings, compile, freed: 0 }
    }

    /// Applies an invocation, and returns how many frees of the iteration were done before.
    ///
    /// # Errors
    /// It does not match the template, or the sender's bindings differ.
    pub fn take(&mut self, invocation: &Invocation) -> Result<u32, TemplateError> {
        let Invocation { template: number, part: IterationPart { first, last, frees }, .. } =
            *invocation;
        let steps = self.template.len();
        let in_order = first < last || first == last && first > 0;
        let goes_on = first == 0 || invocation.bases == self.bindings.bases();
        if !in_order || last as usize > steps || !goes_on {
            return Err(TemplateError::Range { number, steps, first, last });
        }
        let before = if first == 0 { 0 } else { self.freed };
        if frees < before || frees as usize > self.template.frees.len() {
            return Err(TemplateError::Slot { number });
        }
        self.bindings.take(invocation, first == 0)?;
        self.freed = frees;
        Ok(before)
    }
}
