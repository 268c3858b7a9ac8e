//! One iteration that was planned: what its slots are sent, and where tensors lie afterwards.

use std::sync::Arc;

use gt_ir::layout::Layout;
use gt_ir::template::{IterationPart, Name, Start, Values};
use gt_ir::{
    Bindings, Definition, Invocation, Meta, Scalar, SlotId, TensorId, TransferId, WorkerCommand,
};

use super::catalogue::{Catalogue, Placed, Provenance, TensorCopy};
use super::plans::{Iteration, Unfold};
use super::streams::Streams;
use super::touches::Span;

/// An iteration that was planned.
pub(super) struct IterationPlan {
    pub key: Key,
    /// What it began with, in the order of what it touches.
    pub before: Vec<Before>,
    /// For each name that it touches, which of these tensors it is: some may be the same.
    pub same: Vec<usize>,
    /// Numbers that decide how it is planned, by slot of the client's template.
    pub fixed: Vec<(u32, i64)>,
    /// Names of the planner's own, and transfers, that it uses.
    pub made: u64,
    pub transfers: u64,
    pub number: u32,
    pub definitions: Vec<(SlotId, Definition)>,
    /// Whether the workers have their templates.
    pub is_told: bool,
    /// The steps of the longest of its templates.
    pub weight: u32,
    pub bindings: Bindings,
    /// The first exchange of its last iteration, and what of that was not as predicted.
    pub transfer: TransferId,
    pub changed_tensors: Vec<(u32, TensorId)>,
    pub changed_numbers: Vec<(u32, Scalar)>,
    /// Which copy of which touched tensor each slot is.
    pub slots: Vec<(usize, usize)>,
    /// The client's number that each number is.
    pub numbers: std::ops::Range<u32>,
    /// Where touched tensors lie afterwards, if otherwise than before; `None` if they are freed.
    pub after: Vec<(Name, Option<After>)>,
    /// And what it makes, by its place.
    pub results: Vec<(u32, After)>,
    pub used: u64,
    /// How many changes the catalogue had after its last iteration,
    pub changes: u64,
    /// and whether that followed on one of the same plan, with nothing that differed.
    pub is_steady: bool,
}

/// Which steps of which template, and all else that planning depends on.
#[derive(Clone, PartialEq)]
pub(super) struct Key {
    pub span: Span,
    pub slots: u64,
    pub strict: Option<u64>,
    pub signals: u64,
}

/// A tensor as an iteration finds it.
#[derive(PartialEq)]
pub(super) struct Before {
    meta: Meta,
    provenance: Provenance,
    layouts: Vec<Arc<Layout>>,
}

impl Before {
    pub fn of(placed: &Placed) -> Before {
        let layouts = placed.copies.iter().map(|copy| Arc::clone(&copy.layout)).collect();
        Before { meta: placed.meta, provenance: placed.provenance, layouts }
    }

    /// What a slot has of each copy.
    pub fn parts(&self, slot: SlotId) -> impl Iterator<Item = Option<Meta>> + '_ {
        self.layouts.iter().map(move |layout| {
            let block = layout.block(self.meta.shape, layout.mesh.rank_of(slot)?);
            Some(Meta::new(self.meta.dtype, block.shape))
        })
    }

    pub fn fits(&self, placed: &Placed) -> bool {
        let same = |(layout, copy): (&Arc<Layout>, &TensorCopy)| {
            Arc::ptr_eq(layout, &copy.layout) || **layout == *copy.layout
        };
        self.meta == placed.meta
            && self.provenance == placed.provenance
            && self.layouts.len() == placed.copies.len()
            && self.layouts.iter().zip(&placed.copies).all(same)
    }
}

/// A tensor as an iteration leaves it.
pub(super) struct After {
    pub meta: Meta,
    pub provenance: Provenance,
    pub copies: Vec<CopyAfter>,
}

pub(super) struct CopyAfter {
    pub layout: Arc<Layout>,
    pub name: NameAfter,
    /// Whether it was made for an instruction, and may be dropped for want of memory.
    pub moved: bool,
}

/// What a copy is called afterwards.
#[derive(Clone, Copy)]
pub(super) enum NameAfter {
    /// As the tensor's copy of this number before.
    Kept(usize),
    Named(Name),
}

impl IterationPlan {
    /// Whether the numbers are those that decide how it is planned.
    pub fn fixed_fits(&self, iteration: &Iteration) -> bool {
        let bindings = &iteration.instance.bindings;
        self.fixed.iter().all(|(slot, value)| bindings.number(*slot).as_i64() == *value)
    }

    /// Another iteration begins, as predicted.
    pub fn begin(&mut self, catalogue: &mut Catalogue, iteration: &Iteration) {
        if !self.is_told {
            // Workers begin with what the last iteration was bound to, and nothing else.
            let widths = self.definitions.first().map_or([0, 0], |(_, of)| of.template.widths);
            self.bindings = Bindings::new(widths, &self.bindings.start());
            for (_, definition) in &mut self.definitions {
                definition.start = self.bindings.start();
            }
        }
        let base = iteration.instance.bindings.bases()[0];
        let (made, transfer) = catalogue.skip(self.made, self.transfers);
        self.bindings.begin([base, made]);
        self.transfer = transfer;
        self.changed_tensors.clear();
        self.changed_numbers.clear();
    }

    /// Binds the numbers that the client says are others than predicted: all else is as predicted
    /// here, too.
    pub fn bind_told(&mut self, iteration: &Iteration) {
        let told = iteration.invocation.numbers.iter();
        for (slot, value) in told.filter(|(slot, _)| self.numbers.contains(slot)) {
            let slot = slot - self.numbers.start;
            self.bindings.bind_number(slot, *value);
            self.changed_numbers.push((slot, *value));
        }
    }

    /// Binds the copies that the slots are, and all numbers. Says whether any is another than
    /// predicted that the client has not told so.
    pub fn bind(&mut self, iteration: &Iteration, copies: &[TensorId]) -> bool {
        for (slot, &id) in (0..).zip(copies) {
            if self.bindings.tensor(Name::Outside(slot)) != id {
                self.bindings.bind_tensor(slot, id);
                self.changed_tensors.push((slot, id));
            }
        }
        let mut differs = !self.changed_tensors.is_empty();
        let mut told = iteration.invocation.numbers.iter().peekable();
        for (slot, number) in (0..).zip(self.numbers.clone()) {
            while told.next_if(|(told, _)| *told < number).is_some() {}
            let value = iteration.instance.bindings.number(number);
            if !value.same_bits(self.bindings.number(slot)) {
                differs |= told.peek().is_none_or(|(told, _)| *told != number);
                self.bindings.bind_number(slot, value);
                self.changed_numbers.push((slot, value));
            }
        }
        differs
    }

    /// Sends the workers the iteration that it was written from, which has given names of the
    /// planner's own from `made` on.
    pub fn send_first(&mut self, streams: &mut Streams, made: TensorId, unfold: Option<Unfold>) {
        let start = self.bindings.start();
        // As if it had followed on another one: what differs from that is told.
        let widths = self.definitions.first().map_or([0, 0], |(_, of)| of.template.widths);
        let back =
            |index: usize| TensorId(start.bases[index].0.wrapping_sub(u64::from(widths[index])));
        let before = Start { bases: [back(0), back(1)], ..start.clone() };
        self.bindings = Bindings::new(widths, &before);
        for (_, definition) in &mut self.definitions {
            definition.start = before.clone();
        }
        self.bindings.begin([start.bases[0], made]);
        for (slot, &id) in (0..).zip(&start.tensors) {
            if self.bindings.tensor(Name::Outside(slot)) != id {
                self.bindings.bind_tensor(slot, id);
                self.changed_tensors.push((slot, id));
            }
        }
        self.send(streams, unfold);
    }

    /// Sends the workers the iteration.
    pub fn send(&mut self, streams: &mut Streams, mut unfold: Option<Unfold>) {
        let invocation = Arc::new(Invocation {
            template: self.number,
            bases: self.bindings.bases(),
            transfer: self.transfer,
            part: IterationPart { first: 0, last: self.weight, frees: 0 },
            tensors: self.changed_tensors.clone(),
            numbers: self.changed_numbers.clone(),
            others: Vec::new(),
            digest: self.bindings.digest(),
        });
        for (slot, definition) in &self.definitions {
            if !self.is_told {
                streams.push(*slot, WorkerCommand::Define(Box::new(definition.clone())));
            }
            if let Some(unfold) = &mut unfold {
                unfold(*slot, definition, &self.bindings, self.transfer);
            }
            streams.push(*slot, WorkerCommand::Invoke(Arc::clone(&invocation)));
        }
        self.is_told = true;
    }

    /// Lets the tensors lie as they do after the iteration.
    pub fn apply(&self, catalogue: &mut Catalogue, iteration: &Iteration) {
        let names = &iteration.instance.bindings;
        for (name, after) in &self.after {
            let id = names.tensor(*name);
            let before = catalogue.take(id);
            if let Some(after) = after {
                self.put(catalogue, id, after, before);
            }
        }
        for (place, after) in &self.results {
            self.put(catalogue, names.tensor(Name::Own(*place)), after, None);
        }
    }

    fn put(&self, catalogue: &mut Catalogue, id: TensorId, after: &After, before: Option<Placed>) {
        let copy = |copy: &CopyAfter| {
            let (id, made) = match copy.name {
                NameAfter::Named(name) => (self.bindings.tensor(name), 0),
                NameAfter::Kept(index) => {
                    let was = before.as_ref().map(|before| &before.copies[index]);
                    was.map_or((TensorId(0), 0), |was| (was.id, was.made))
                }
            };
            let is_new = matches!(copy.name, NameAfter::Named(_));
            let layout = Arc::clone(&copy.layout);
            (TensorCopy { layout, id, made }, copy.moved && is_new)
        };
        catalogue.lay(id, after.meta, after.provenance, after.copies.iter().map(copy).collect());
    }
}
