//! The plan of one iteration: a template for each slot, and the tensors' layouts afterwards.

use std::sync::Arc;

use gt_ir::layout::Layout;
use gt_ir::template::{IterationPart, Name, Start, Values};
use gt_ir::{
    Bindings, Definition, Instance, Invocation, Meta, Scalar, SlotId, TensorId, TransferId,
    WorkerCommand,
};

use smallvec::SmallVec;

use super::catalogue::{Catalogue, Placed, Provenance, TensorCopy};
use super::iteration::{InvocationObserver, IterationSpan, TemplateIteration};
use super::streams::Streams;

/// A plan of an iteration, to be reused.
pub(super) struct IterationPlan {
    pub key: PlanKey,
    /// The tensors that it touches, as they were before it, in the order of [`TouchedNames`].
    ///
    /// [`TouchedNames`]: super::touches::TouchedNames
    pub before: Vec<TensorBefore>,
    /// For each name that it touches, the index of its tensor in `before`: names may coincide.
    pub same: Vec<usize>,
    /// Numbers that the plan depends on, by number slot of the client's template.
    pub fixed: Vec<(u32, Scalar)>,
    /// How many planner-made names, and transfers, it uses.
    pub made: u64,
    pub transfers: u64,
    pub number: u32,
    pub definitions: Vec<(SlotId, Definition)>,
    /// Whether the workers have the templates.
    pub is_defined: bool,
    /// The number of steps of its longest template.
    pub weight: u32,
    pub bindings: Bindings,
    /// The first transfer of its last iteration.
    pub transfer: TransferId,
    /// The bindings of its last iteration that were not as predicted.
    pub changed_tensors: Vec<(u32, TensorId)>,
    pub changed_numbers: Vec<(u32, Scalar)>,
    /// For each tensor slot, the touched tensor and its copy.
    pub slots: Vec<(usize, usize)>,
    /// The number slots of the client's template that its own number slots correspond to.
    pub numbers: std::ops::Range<u32>,
    /// The touched tensors that it changes, as they are afterwards; `None` if freed.
    pub after: Vec<(Name, Option<TensorAfter>)>,
    /// The tensors that it makes, by their place in the template.
    pub results: Vec<(u32, TensorAfter)>,
    pub used: u64,
    /// [`Catalogue::changes`] after its last iteration.
    pub changes: u64,
    /// Whether that iteration followed directly on one of the same plan, with all tensors as
    /// predicted: then the next one need not be compared.
    pub is_steady: bool,
}

/// The steps, and everything else besides tensors that planning depends on.
#[derive(Clone, PartialEq)]
pub(super) struct PlanKey {
    pub span: IterationSpan,
    pub slots: u64,
    pub strict: Option<u64>,
    pub signals: u64,
}

/// A tensor before an iteration.
#[derive(PartialEq)]
pub(super) struct TensorBefore {
    meta: Meta,
    provenance: Provenance,
    layouts: Vec<Arc<Layout>>,
}

/// The state before an iteration, from which its plan is written.
pub struct StateBefore {
    pub(super) key: PlanKey,
    pub(super) touched: Vec<(Name, TensorId)>,
    pub(super) before: Vec<TensorBefore>,
    pub(super) same: Vec<usize>,
    /// The names of the tensors' copies on workers.
    pub(super) copies: Vec<Vec<TensorId>>,
    pub(super) made: TensorId,
    pub(super) transfer: TransferId,
}

impl TensorBefore {
    /// Records a tensor's state.
    pub fn of(placed: &Placed) -> TensorBefore {
        let layouts = placed.copies.iter().map(|copy| Arc::clone(&copy.layout)).collect();
        TensorBefore { meta: placed.meta, provenance: placed.provenance, layouts }
    }

    /// Returns a slot's part of each copy.
    pub fn parts(&self, slot: SlotId) -> impl Iterator<Item = Option<Meta>> + '_ {
        self.layouts.iter().map(move |layout| {
            let block = layout.block(self.meta.shape, layout.mesh.rank_of(slot)?);
            Some(Meta::new(self.meta.dtype, block.shape))
        })
    }

    /// Returns whether a tensor is placed like the recorded one.
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

/// A tensor after an iteration.
pub(super) struct TensorAfter {
    pub meta: Meta,
    pub provenance: Provenance,
    pub copies: Vec<CopyAfter>,
}

impl TensorAfter {
    /// Returns the indices of the previous copies that it keeps.
    fn kept(&self) -> impl Iterator<Item = usize> + '_ {
        self.copies.iter().filter_map(|copy| match copy.name {
            NameAfter::Kept(index) => Some(index),
            NameAfter::Named(_) => None,
        })
    }
}

/// A copy of a tensor after an iteration.
pub(super) struct CopyAfter {
    pub layout: Arc<Layout>,
    pub name: NameAfter,
    /// Whether it is an extra copy, which may be freed to save memory.
    pub is_extra: bool,
}

/// The name of a copy afterwards.
#[derive(Clone, Copy)]
pub(super) enum NameAfter {
    /// The name of the tensor's previous copy of this index.
    Kept(usize),
    Named(Name),
}

impl IterationPlan {
    /// Returns whether the numbers that the plan depends on have the same values.
    pub fn fixed_fits(&self, iteration: &TemplateIteration) -> bool {
        let bindings = &iteration.instance.bindings;
        self.fixed.iter().all(|(slot, value)| bindings.number(*slot).same_bits(*value))
    }

    /// Returns whether an iteration is the next after the plan's last one: nothing was named
    /// between them.
    pub fn precedes(&self, iteration: &TemplateIteration) -> bool {
        let Instance { template, bindings, .. } = iteration.instance;
        bindings.bases()[0] == self.bindings.bases()[0].after(u64::from(template.widths[0]))
    }

    /// Returns whether the tensors are placed as before the plan's iterations, and all slots are
    /// bound to them and to the client's numbers.
    pub fn agrees(
        &self,
        iteration: &TemplateIteration,
        same: &[usize],
        placed: &[&Placed],
    ) -> bool {
        let are_placed = || self.before.iter().zip(placed).all(|(before, now)| before.fits(now));
        let tensors_agree = || {
            let copies = self.slots.iter().map(|&(tensor, copy)| placed[tensor].copies[copy].id);
            (0..).zip(copies).all(|(slot, id)| self.bindings.tensor(Name::Outside(slot)) == id)
        };
        let client = &iteration.instance.bindings;
        let mut numbers = (0..).zip(self.numbers.clone());
        let numbers_agree =
            |(slot, number)| client.number(number).same_bits(self.bindings.number(slot));
        self.same == same && are_placed() && tensors_agree() && numbers.all(numbers_agree)
    }

    /// Advances the bindings to another iteration, as predicted.
    pub fn begin(&mut self, catalogue: &mut Catalogue, iteration: &TemplateIteration) {
        if !self.is_defined {
            // Workers that receive the templates again start from the last iteration's bindings.
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

    /// Binds the numbers that the client's invocation lists as different from the prediction: all
    /// others are as predicted here, too.
    pub fn bind_changed(&mut self, iteration: &TemplateIteration) {
        let changed = iteration.invocation.numbers.iter();
        for (slot, value) in changed.filter(|(slot, _)| self.numbers.contains(slot)) {
            let slot = slot - self.numbers.start;
            self.bindings.bind_number(slot, *value);
            self.changed_numbers.push((slot, *value));
        }
    }

    /// Binds all tensor slots and numbers. Returns whether any differs from the prediction that the
    /// client's invocation does not list.
    pub fn bind(&mut self, iteration: &TemplateIteration, copies: &[TensorId]) -> bool {
        for (slot, &id) in (0..).zip(copies) {
            if self.bindings.tensor(Name::Outside(slot)) != id {
                self.bindings.bind_tensor(slot, id);
                self.changed_tensors.push((slot, id));
            }
        }
        let mut differs = !self.changed_tensors.is_empty();
        let mut changed = iteration.invocation.numbers.iter().peekable();
        for (slot, number) in (0..).zip(self.numbers.clone()) {
            while changed.next_if(|(changed, _)| *changed < number).is_some() {}
            let value = iteration.instance.bindings.number(number);
            if !value.same_bits(self.bindings.number(slot)) {
                differs |= changed.peek().is_none_or(|(changed, _)| *changed != number);
                self.bindings.bind_number(slot, value);
                self.changed_numbers.push((slot, value));
            }
        }
        differs
    }

    /// Sends the iteration that the plan was written from, whose planner-made names begin at
    /// `made`.
    pub fn send_first(
        &mut self,
        streams: &mut Streams,
        made: TensorId,
        observer: Option<InvocationObserver>,
    ) {
        let start = self.bindings.start();
        // As if it followed on a previous iteration: the invocation lists the differences from
        // that.
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
        self.send(streams, observer);
    }

    /// Sends the iteration: an invocation for each slot, after its definition if that is new.
    pub fn send(&mut self, streams: &mut Streams, mut observer: Option<InvocationObserver>) {
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
            if !self.is_defined {
                streams.push(*slot, WorkerCommand::Define(Box::new(definition.clone())));
            }
            if let Some(observer) = &mut observer {
                observer(*slot, definition, &self.bindings, self.transfer);
            }
            streams.push(*slot, WorkerCommand::Invoke(Arc::clone(&invocation)));
        }
        self.is_defined = true;
    }

    /// Updates the catalogue to the state after the iteration.
    pub fn apply(&self, catalogue: &mut Catalogue, iteration: &TemplateIteration) {
        let names = &iteration.instance.bindings;
        for (name, after) in &self.after {
            let id = names.tensor(*name);
            let before = catalogue.take(id);
            let kept: SmallVec<[usize; 2]> = after.iter().flat_map(TensorAfter::kept).collect();
            for (index, copy) in before.iter().flat_map(|before| before.copies.iter().enumerate()) {
                if !kept.contains(&index) {
                    catalogue.forget_extra(copy);
                }
            }
            if let Some(after) = after {
                self.put(catalogue, id, after, before);
            }
        }
        for (place, after) in &self.results {
            self.put(catalogue, names.tensor(Name::Own(*place)), after, None);
        }
    }

    fn put(
        &self,
        catalogue: &mut Catalogue,
        id: TensorId,
        after: &TensorAfter,
        before: Option<Placed>,
    ) {
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
            (TensorCopy { layout, id, made }, copy.is_extra && is_new)
        };
        catalogue.put_placed(
            id,
            after.meta,
            after.provenance,
            after.copies.iter().map(copy).collect(),
        );
    }
}
