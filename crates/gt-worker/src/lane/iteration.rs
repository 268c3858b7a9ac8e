//! Iterations of templates in a lane: their bindings, and the parts in which they run.
//!
//! A template is split at its exchanges and at the planner's cuts; each part in between runs as one
//! plan. Between parts a lane may yield, or wait for an exchange.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::Arc;

use gt_ir::liveness::Effects;
use gt_ir::template::{Name, Start, Step, Values};
use gt_ir::{
    Definition, Instance, Invocation, Meta, Scalar, SourceId, Template, TemplateError, TensorId,
    TransferId, WorkerCommand,
};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::memory::Peak;

/// The bindings of one iteration.
#[derive(Clone, Debug)]
pub(crate) struct Bound {
    bases: [TensorId; 2],
    tensors: Box<[TensorId]>,
    numbers: Box<[Scalar]>,
    /// Its first transfer.
    pub transfer: TransferId,
}

impl Bound {
    pub fn new(start: Start, transfer: TransferId) -> Bound {
        let Start { bases, tensors, numbers } = start;
        Bound { bases, tensors: tensors.into(), numbers: numbers.into(), transfer }
    }
}

impl Values for Bound {
    #[inline]
    fn tensor(&self, name: Name) -> TensorId {
        match name {
            Name::Own(place) => self.bases[0].after(u64::from(place)),
            Name::Made(place) => self.bases[1].after(u64::from(place)),
            Name::Outside(slot) => self.tensors[slot as usize],
        }
    }

    #[inline]
    fn number(&self, slot: u32) -> Scalar {
        self.numbers[slot as usize]
    }
}

/// A queued iteration.
pub(crate) struct Iteration {
    /// What to run, or why it cannot be run.
    pub work: Result<(Bound, Arc<Template>), TemplateError>,
    pub number: u32,
    /// The serial number of its template's definition, as a number may be redefined.
    pub generation: u64,
}

impl Iteration {
    /// Its effects on tensors, for liveness.
    pub fn effects(&self) -> Effects {
        let Ok((bound, template)) = &self.work else {
            return Effects { is_needed: true, ..Effects::default() };
        };
        let mut effects = Effects::default();
        let mut made: FxHashSet<Name> = FxHashSet::default();
        let mut freed: FxHashSet<Name> = FxHashSet::default();
        for step in &template.steps {
            let outside = step.reads().filter(|name| !made.contains(name));
            effects.reads.extend(outside.map(|name| bound.tensor(name)));
            if let Some(commit) = step.commit() {
                let outside = commit.news().filter(|name| !made.contains(name));
                effects.changes.extend(outside.map(|name| bound.tensor(name)));
            }
            made.extend(step.makes().into_iter().map(|(name, _)| name));
            match step {
                // Other slots depend on it.
                Step::Exchange(_) => effects.is_needed = true,
                Step::Free(name) => {
                    freed.insert(*name);
                }
                Step::Run(_) | Step::Data { .. } => {}
            }
        }
        // Effects are looked up by tensor: their order does not matter.
        let kept = made.difference(&freed).map(|name| bound.tensor(*name));
        effects.makes.extend(kept);
        effects.frees.extend(freed.difference(&made).map(|name| bound.tensor(*name)));
        effects
    }
}

/// The iteration that a lane is running.
pub(crate) struct RunningIteration {
    pub bound: Bound,
    pub template: Arc<Template>,
    pub generation: u64,
    /// The index of the next part, and the number of parts.
    pub part: usize,
    pub parts: usize,
    /// The steps of this part, if they are run one by one.
    pub steps: Option<PartSteps>,
}

/// Steps of a part as commands.
pub(crate) struct PartSteps {
    pub commands: Vec<WorkerCommand>,
    /// The index of the next.
    pub next: usize,
}

/// A template that was defined in a lane.
pub(crate) struct KnownTemplate {
    pub number: u32,
    pub compile: bool,
    pub parts: Vec<TemplatePart>,
}

/// A part of a template: steps that are run together, or one exchange.
pub(crate) struct TemplatePart {
    pub steps: Range<usize>,
    /// The number of instructions among the steps.
    pub operations: u64,
    /// The tensors that it uses but does not make, in the order of their first use.
    pub needs: Vec<Name>,
    /// Those among `needs` that it frees, with no later use.
    pub dying: FxHashSet<Name>,
    /// The tensors that it makes and does not free.
    pub kept: Vec<(Name, Meta, SourceId)>,
    /// Other tensors that it frees.
    pub freed: Vec<Name>,
    /// Numbers that are constants of the plan for as long as they do not change: the positions of
    /// slices, and fill values.
    pub structure: Option<Vec<(u32, Scalar)>>,
    pub ready: Option<PreparedPart>,
    /// The most additional bytes that it needs, once computed.
    pub peak: Option<Peak>,
    /// Whether it is never run as a plan.
    pub is_plain: bool,
}

/// A prepared part.
pub(crate) struct PreparedPart {
    pub program: u64,
    /// A hash of its plan.
    pub plan: u64,
    /// Of the part's `needs`.
    pub metas: Vec<Meta>,
    /// The number inputs, after the tensors: a slot, and the offset added to its value.
    pub numbers: Vec<(u32, i64)>,
    pub kinds: Vec<Scalar>,
    /// The number of numbers that are constants of the plan.
    pub structure: usize,
}

/// The templates of a lane.
#[derive(Default)]
pub(crate) struct Templates {
    /// The current definitions with their bindings, by number; ahead of what has been run.
    instances: FxHashMap<u32, (u64, Instance)>,
    /// The definitions that queued iterations may still use, by generation.
    known: FxHashMap<u64, KnownTemplate>,
    /// The generations of queued definitions, by number.
    coming: FxHashMap<u32, VecDeque<u64>>,
    told: u64,
}

impl Templates {
    pub fn len(&self) -> usize {
        self.instances.len()
    }

    /// Adds or replaces a template, on receipt of its definition.
    pub fn define(&mut self, definition: &Definition) {
        let (number, compile) = (definition.number, definition.compile);
        let instance = Instance::new(definition.clone());
        self.told += 1;
        let parts = parts(&instance.template);
        self.known.insert(self.told, KnownTemplate { number, compile, parts });
        self.coming.entry(number).or_default().push_back(self.told);
        self.instances.insert(number, (self.told, instance));
    }

    /// Advances the bindings by an invocation and returns the iteration to run.
    pub fn take(&mut self, invocation: &Invocation) -> Iteration {
        let number = invocation.template;
        let Some((generation, instance)) = self.instances.get_mut(&number) else {
            let work = Err(TemplateError::Unknown { number });
            return Iteration { work, number, generation: 0 };
        };
        let work = instance.bindings.take(invocation, true).map(|()| {
            let bound = Bound::new(instance.bindings.start(), invocation.transfer);
            (bound, Arc::clone(&instance.template))
        });
        Iteration { work, number, generation: *generation }
    }

    /// Called when a queued definition is run: drops its predecessors, as no iteration uses them.
    pub fn retire(&mut self, number: u32) {
        let current = self.coming.get_mut(&number).and_then(VecDeque::pop_front);
        let is_old = |generation: u64| current.is_some_and(|current| generation < current);
        self.known.retain(|generation, known| known.number != number || !is_old(*generation));
    }

    /// Returns the number of a template's parts.
    pub fn count(&self, generation: u64) -> usize {
        self.known.get(&generation).map_or(0, |known| known.parts.len())
    }

    /// A part of a template.
    pub fn part(&self, generation: u64, part: usize) -> Option<&TemplatePart> {
        self.known.get(&generation)?.parts.get(part)
    }

    /// Takes a template out while one of its parts is run.
    pub fn take_known(&mut self, generation: u64) -> Option<KnownTemplate> {
        self.known.remove(&generation)
    }

    pub fn put_known(&mut self, generation: u64, known: KnownTemplate) {
        self.known.insert(generation, known);
    }
}

/// Splits a template into parts at its exchanges and cuts, and determines the tensors that each
/// part needs, keeps and frees.
pub(crate) fn parts(template: &Template) -> Vec<TemplatePart> {
    let cuts: FxHashSet<u32> = template.cuts.iter().copied().collect();
    let mut ranges: Vec<(Range<usize>, bool)> = Vec::new();
    for (index, step) in template.steps.iter().enumerate() {
        let is_exchange = matches!(step, Step::Exchange(_));
        let is_cut = cuts.contains(&(index as u32));
        match ranges.last_mut() {
            Some((range, false)) if !is_exchange && !is_cut => range.end = index + 1,
            _ => ranges.push((index..index + 1, is_exchange)),
        }
    }
    // The last part that uses each name, and the names that are freed.
    let mut last_part: FxHashMap<Name, usize> = FxHashMap::default();
    let mut freed: FxHashSet<Name> = FxHashSet::default();
    for (part, (range, _)) in ranges.iter().enumerate() {
        for step in &template.steps[range.clone()] {
            last_part.extend(step.reads().map(|name| (name, part)));
            if let Step::Free(name) = step {
                freed.insert(*name);
            }
        }
    }
    let make = |(part, (steps, is_exchange)): (usize, (Range<usize>, bool))| {
        let (mut needs, mut known) = (Vec::new(), FxHashSet::default());
        let mut made: Vec<(Name, Meta, SourceId)> = Vec::new();
        let mut frees: Vec<Name> = Vec::new();
        let mut operations = 0;
        for step in &template.steps[steps.clone()] {
            needs.extend(step.reads().filter(|name| known.insert(*name)));
            match step {
                Step::Run(run) => {
                    operations += 1;
                    known.extend(step.makes().into_iter().map(|(name, _)| name));
                    let lined = |(name, meta)| (name, meta, run.source);
                    made.extend(step.makes().into_iter().map(lined));
                }
                Step::Free(name) => frees.push(*name),
                Step::Exchange(_) | Step::Data { .. } => {}
            }
        }
        let goes = |name: &Name| {
            let is_last = last_part.get(name).is_none_or(|&last| last <= part);
            freed.contains(name) && is_last && frees.contains(name)
        };
        let is_new: FxHashSet<Name> = made.iter().map(|(name, ..)| *name).collect();
        let dying: FxHashSet<Name> = needs.iter().filter(|name| goes(name)).copied().collect();
        let kept = made.into_iter().filter(|(name, ..)| !goes(name)).collect();
        frees.retain(|name| !dying.contains(name) && !is_new.contains(name));
        let freed = frees;
        let (structure, ready, is_plain) = (None, None, is_exchange || operations == 0);
        let peak = None;
        TemplatePart {
            steps,
            operations,
            needs,
            dying,
            kept,
            freed,
            structure,
            ready,
            peak,
            is_plain,
        }
    };
    ranges.into_iter().enumerate().map(make).collect()
}

/// The effects of the rest of a running iteration on tensors.
#[derive(Default)]
pub(crate) struct Rest {
    /// The tensors that its steps read or make.
    uses: FxHashSet<TensorId>,
    frees: FxHashSet<TensorId>,
}

impl Rest {
    fn add(&mut self, step: &Step, bound: &Bound) {
        let tensor = |name: Name| bound.tensor(name);
        self.uses.extend(step.reads().map(tensor));
        self.uses.extend(step.makes().into_iter().map(|(name, _)| tensor(name)));
        if let Step::Free(name) = step {
            self.frees.insert(tensor(*name));
        }
    }

    /// Returns the tensors that may be freed at once, given those that no queued command behind it
    /// uses before their free.
    pub fn free_at_once(self, mut unread: FxHashSet<TensorId>) -> FxHashSet<TensorId> {
        unread.extend(self.frees);
        unread.retain(|id| !self.uses.contains(id));
        unread
    }
}

impl RunningIteration {
    /// Returns the effects of the rest of the iteration, whose next part has these steps.
    pub fn rest(&self, part: &Range<usize>) -> Rest {
        let mut rest = Rest::default();
        // Some steps of a part that runs step by step may be complete.
        let from = match &self.steps {
            Some(steps) => {
                for command in &steps.commands[steps.next..] {
                    let effects = Effects::of_worker(command).unwrap_or_default();
                    rest.uses.extend(effects.reads.into_iter().chain(effects.makes));
                    rest.frees.extend(effects.frees);
                }
                part.end
            }
            None => part.start,
        };
        self.template.steps[from..].iter().for_each(|step| rest.add(step, &self.bound));
        rest
    }

    pub fn new(
        bound: Bound,
        template: Arc<Template>,
        generation: u64,
        parts: usize,
    ) -> RunningIteration {
        RunningIteration { bound, template, generation, part: 0, parts, steps: None }
    }
}
