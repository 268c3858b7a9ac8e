//! Templates on a worker: sequences of operations that are made ready once and run many times.
//!
//! A pass is run as one plan. How a template is used decides the plan: which steps, which of its
//! tensors are freed, and the shapes of what it is given. Where a plan cannot be run, or fails, the
//! pass is run operation by operation from the same inputs: that gives the same numbers, and every
//! failure at its operation.

use gt_ir::ops::create::FULL;
use gt_ir::template::{Freed, Pass, Place, Step, expand};
use gt_ir::{Bindings, Command, Definition, Invocation, Meta, Operand, Scalar, Template, TensorId};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::engine::Engine;
use crate::executor::{Slot, Worker};
use crate::plan::{Input, Plan};
use crate::programs::GivenTensor;

/// The most ways of using one template that are kept ready.
const VARIANTS: usize = 8;

/// The templates of all sessions, by session and number.
#[derive(Default)]
pub(crate) struct Templates(FxHashMap<(u32, u32), Box<Known>>);

impl Templates {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn end_session(&mut self, session: u32) {
        self.0.retain(|(owner, _), _| *owner != session);
    }

    /// The tensors from outside that an invocation needs.
    pub fn needs(&self, invocation: &Invocation) -> Vec<TensorId> {
        let Some(known) = self.0.get(&name(invocation)) else { return Vec::new() };
        let mut bindings = known.bindings.clone();
        if bindings.take(&known.template, invocation).is_err() {
            return Vec::new();
        }
        let (first, last) = (invocation.first as usize, invocation.last as usize);
        let places = given_tensors(&known.template, first, last);
        places.iter().map(|place| bindings.tensor_at(*place)).collect()
    }
}

fn name(invocation: &Invocation) -> (u32, u32) {
    (invocation.base.split().0, invocation.template)
}

struct Known {
    template: Template,
    bindings: Bindings,
    /// Whether somebody asked for it to be compiled.
    compile: bool,
    /// The numbers that are part of a plan for as long as they stay as they are, by slot.
    structure: Vec<(u32, Scalar)>,
    variants: Vec<Variant>,
    /// Ways of use that have come once; most of them do not come again.
    seen: Vec<Key>,
    /// How many of the frees of the current pass are done.
    freed: u32,
}

impl Known {
    fn new(template: Template, bindings: Bindings, compile: bool) -> Known {
        let structure = structure(&template, &bindings);
        let (variants, seen) = (Vec::new(), Vec::new());
        Known { template, bindings, compile, structure, variants, seen, freed: 0 }
    }
}

/// Which steps of a template are run, and which of its frees are done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Key {
    first: u32,
    last: u32,
    freed: u32,
    frees: u32,
}

/// One way of using a template.
struct Variant {
    key: Key,
    /// How many operations it is; what was made from data is none.
    operations: u64,
    /// How many numbers were part of the plan.
    structure: usize,
    /// The tensors that the plan is given.
    tensors: Vec<Needed>,
    /// The steps whose results are kept, in the order of the plan's outputs.
    kept: Vec<(u32, Meta)>,
    /// The kinds of the numbers that it is given after the tensors.
    numbers: Vec<Scalar>,
    /// What is freed after it, beside tensors that die in it and results that are not kept.
    freed: Vec<u32>,
    /// Its program's number.
    program: u64,
}

#[derive(Clone, Copy)]
struct Needed {
    place: Place,
    meta: Meta,
    dies: bool,
}

/// The numbers of a pass that engines gain by knowing: the places of slices, and what tensors are
/// filled with.
fn structure(template: &Template, bindings: &Bindings) -> Vec<(u32, Scalar)> {
    let mut slots = Vec::new();
    for step in template.steps.iter().flatten() {
        slots.extend((0..varying_count(step)).map(|offset| step.varying + offset));
        if step.operation.id == FULL.id {
            slots.extend(step.operands.iter().filter_map(|place| match place {
                Place::Number(slot) => Some(*slot),
                _ => None,
            }));
        }
    }
    slots.into_iter().map(|slot| (slot, bindings.number(slot as usize))).collect()
}

/// The tensors that steps are given: from outside the pass, of an earlier part of it, or made from
/// data.
fn given_tensors(template: &Template, first: usize, last: usize) -> Vec<Place> {
    let mut known = FxHashSet::default();
    let mut places = Vec::new();
    for step in template.steps[first..last].iter().flatten() {
        for &place in &step.operands {
            let given = match place {
                Place::Own(own) => (own as usize) < first || template.steps[own as usize].is_none(),
                Place::Outside(_) => true,
                Place::Number(_) => false,
            };
            if given && known.insert(place) {
                places.push(place);
            }
        }
    }
    places
}

impl<E: Engine> Worker<E> {
    /// Learns a template, or forgets one.
    pub(crate) fn define(&mut self, definition: &Definition) {
        let name = (definition.base.split().0, definition.number);
        if definition.steps.is_empty() {
            self.templates.0.remove(&name);
            return;
        }
        // The dispatcher has checked it.
        if let Ok((template, bindings)) = Template::new(definition) {
            let compile = definition.compile;
            let known = Known::new(template, bindings, compile);
            self.templates.0.insert(name, Box::new(known));
            self.stats.unique_sequences += 1;
        }
    }

    /// Runs a pass of a template, or a part of one.
    pub(crate) fn invoke(&mut self, invocation: &Invocation) {
        let name = name(invocation);
        let Some(mut known) = self.templates.0.remove(&name) else { return };
        if known.bindings.take(&known.template, invocation).is_ok() {
            let Invocation { first, last, frees, .. } = *invocation;
            let freed = if first == 0 { 0 } else { known.freed };
            known.freed = frees;
            self.stats.hot_instructions += u64::from(last.saturating_sub(first));
            let key = Key { first, last, freed, frees };
            let is_run = first < last
                && !self.options.check_nan
                && self.run_plan(Some(name.1), &mut known, key);
            if !is_run {
                self.run_steps(&known, key, &invocation.others);
            } else {
                invocation.others.iter().for_each(|id| self.free(*id));
            }
        }
        self.templates.0.insert(name, known);
    }

    /// Runs the instructions at the beginning of a list as one plan, as many as a batch takes; gives
    /// how many commands that were.
    pub(crate) fn run_batch(&mut self, commands: &[Command]) -> usize {
        let (mut steps, mut frees) = (Vec::new(), Vec::new());
        let mut base = TensorId(0);
        let mut count = 0;
        for command in commands {
            match command {
                Command::Run(instruction) => {
                    if steps.is_empty() {
                        base = instruction.output;
                    }
                    let follows = instruction.output.0 == base.0 + steps.len() as u64;
                    if steps.len() == self.options.batch_size || !follows {
                        break;
                    }
                    steps.push(Some(instruction.clone()));
                }
                Command::Free(id) => frees.push(*id),
                _ => break,
            }
            count += 1;
        }
        let definition = Definition { number: 0, base, steps, frees, compile: false };
        let Ok((template, bindings)) = Template::new(&definition) else {
            self.run_from_plainly(&commands[..count]);
            return count;
        };
        let (first, last) = (0, template.len() as u32);
        let key = Key { first, last, freed: 0, frees: template.frees.len() as u32 };
        let others: Vec<TensorId> = definition
            .frees
            .iter()
            .filter(|id| !(0..template.frees.len()).any(|at| template.freed(at, &bindings) == **id))
            .copied()
            .collect();
        let mut known = Known::new(template, bindings, false);
        if !self.options.check_nan && self.run_plan(None, &mut known, key) {
            others.iter().for_each(|id| self.free(*id));
        } else {
            self.run_steps(&known, key, &others);
        }
        count
    }

    /// Runs a pass, of the template of a number if it has one, as a plan; says whether that was possible.
    fn run_plan(&mut self, number: Option<u32>, known: &mut Known, key: Key) -> bool {
        if self.notes.is_on {
            self.note_pass(known.bindings.base(), number);
        }
        let Some(index) = self.variant(known, key) else { return false };
        let Known { template, bindings, variants, .. } = known;
        let variant = &variants[index];
        let (first, last) = (key.first as usize, key.last as usize);
        let given = variant.tensors.iter().map(|given| {
            let Needed { place, meta, dies } = *given;
            GivenTensor { id: bindings.tensor_at(place), meta, dies }
        });
        let given: Vec<GivenTensor> = given.collect();
        let numbers = template.new_numbers(first, last).map(|slot| bindings.number(slot));
        let base = bindings.base().0;
        let kept = variant.kept.iter();
        let kept = kept.map(|&(step, meta)| (TensorId(base + u64::from(step)), meta));
        if !self.launch(variant.program, variant.operations, &given, numbers, kept) {
            return false;
        }
        for &free in &variant.freed {
            self.free(template.freed(free as usize, bindings));
        }
        true
    }

    /// The way of using a template that fits the tensors there are; made ready if there is none.
    fn variant(&mut self, known: &mut Known, key: Key) -> Option<usize> {
        let Known { template, bindings, compile, structure, variants, seen, .. } = known;
        structure.retain(|(slot, value)| bindings.number(*slot as usize).same_bits(*value));
        let (first, last) = (key.first as usize, key.last as usize);
        let numbers = template.new_numbers(first, last);
        let there = |place: Place| match self.tensors.get(&bindings.tensor_at(place)) {
            Some(Slot::Ready { meta, .. }) => Some(*meta),
            _ => None,
        };
        let fits = |variant: &Variant| {
            variant.key == key
                && variant.structure == structure.len()
                && variant.tensors.iter().all(|given| there(given.place) == Some(given.meta))
                && numbers.clone().zip(&variant.numbers).all(|(slot, kind)| {
                    std::mem::discriminant(&bindings.number(slot)) == std::mem::discriminant(kind)
                })
        };
        if let Some(index) = variants.iter().position(fits) {
            if self.programs.has(variants[index].program) {
                return Some(index);
            }
            variants.remove(index);
        }
        // A part of a pass may be of this size but once.
        let is_whole = first == 0 && last == template.len();
        if !is_whole && !seen.contains(&key) {
            if seen.len() >= VARIANTS {
                seen.remove(0);
            }
            seen.push(key);
            return None;
        }
        let places = given_tensors(template, first, last);
        let metas: Option<Vec<Meta>> = places.iter().map(|place| there(*place)).collect();
        let tensors = places.into_iter().zip(metas?).map(|(place, meta)| {
            let dies = (key.freed..key.frees).any(|free| match template.frees[free as usize] {
                Freed::Own(step) => place == Place::Own(step),
                Freed::Outside(slot) => place == Place::Outside(slot),
                Freed::Previous(_) => false,
            });
            Needed { place, meta, dies }
        });
        let tensors: Vec<Needed> = tensors.collect();
        let (mut variant, mut plan) =
            plan(&self.engine, template, bindings, structure, key, tensors)?;
        plan.compile = *compile;
        variant.program = self.prepare(plan)?;
        if variants.len() >= VARIANTS {
            variants.remove(0);
        }
        variants.push(variant);
        Some(variants.len() - 1)
    }

    /// Runs a pass operation by operation.
    fn run_steps(&mut self, known: &Known, key: Key, others: &[TensorId]) {
        let Key { first, last, freed, frees } = key;
        let (first, last) = (first as usize, last as usize);
        let pass = Pass { first, last, freed: freed as usize, frees: frees as usize, others };
        let commands = expand(&known.template, &known.bindings, pass);
        self.run_from_plainly(&commands);
    }

    /// Runs instructions and frees, each by itself.
    fn run_from_plainly(&mut self, commands: &[Command]) {
        let batch_size = std::mem::replace(&mut self.options.batch_size, 1);
        self.run_from(0, commands, &mut Vec::new());
        self.options.batch_size = batch_size;
    }
}

/// The plan of some steps, and how it is used; `None` if they cannot be run as one.
fn plan<E: Engine>(
    engine: &E,
    template: &Template,
    bindings: &Bindings,
    structure: &[(u32, Scalar)],
    key: Key,
    tensors: Vec<Needed>,
) -> Option<(Variant, Plan)> {
    let (first, last) = (key.first as usize, key.last as usize);
    let given = tensors.iter().map(|given| Input::Tensor { meta: given.meta, dies: given.dies });
    let slots = template.new_numbers(first, last);
    let numbers: Vec<Scalar> = slots.clone().map(|slot| bindings.number(slot)).collect();
    let mut plan = Plan::new(given.chain(numbers.iter().map(|&n| Input::Number(n))).collect());
    let mut values: FxHashMap<Place, u32> = FxHashMap::default();
    for (value, given) in tensors.iter().enumerate() {
        values.insert(given.place, value as u32);
    }
    let number = |slot: u32| (tensors.len() + (slot as usize - slots.start)) as u32;
    let fixed: FxHashMap<u32, Scalar> = structure.iter().copied().collect();
    for (index, step) in template.steps[first..last].iter().enumerate() {
        let Some(step) = step else { continue };
        let operands = step.operands.iter().map(|place| match place {
            Place::Number(slot) => match fixed.get(slot) {
                Some(value) => Operand::Scalar(*value),
                None => Operand::Tensor(number(*slot)),
            },
            place => Operand::Tensor(values[place]),
        });
        // An attribute varies as a whole or not at all.
        let slots = step.varying..step.varying + varying_count(step);
        let is_fixed = slots.clone().all(|slot| fixed.contains_key(&slot));
        let varying = slots.filter(|_| !is_fixed).map(&number);
        let attributes = bindings.attributes(step);
        let lowers = |operation| engine.lowers(operation);
        let (operands, varying) = (operands.collect(), varying.collect());
        let value = plan.push(&lowers, step.operation, operands, attributes, varying).ok()?;
        values.insert(Place::Own((first + index) as u32), value);
    }
    let mut gone: FxHashSet<u32> = FxHashSet::default();
    let mut freed = Vec::new();
    for free in key.freed..key.frees {
        match template.frees[free as usize] {
            Freed::Own(step) if (first..last).contains(&(step as usize)) => {
                gone.insert(step);
                // What was made from data is there all the same.
                if template.steps[step as usize].is_none() && !dies(&tensors, Place::Own(step)) {
                    freed.push(free);
                }
            }
            Freed::Own(step) if !dies(&tensors, Place::Own(step)) => freed.push(free),
            Freed::Outside(slot) if !dies(&tensors, Place::Outside(slot)) => freed.push(free),
            Freed::Previous(_) => freed.push(free),
            _ => {}
        }
    }
    let mut kept = Vec::new();
    for index in first..last {
        let step = index as u32;
        if template.steps[index].is_some() && !gone.contains(&step) {
            let value = values[&Place::Own(step)];
            plan.outputs.push(value);
            kept.push((step, *plan.meta(value).tensor()?));
        }
    }
    let structure = structure.len();
    let operations = template.steps[first..last].iter().flatten().count() as u64;
    Some((Variant { key, operations, structure, tensors, kept, numbers, freed, program: 0 }, plan))
}

fn dies(tensors: &[Needed], place: Place) -> bool {
    tensors.iter().any(|given| given.dies && given.place == place)
}

fn varying_count(step: &Step) -> u32 {
    gt_ir::template::varying_numbers(step.operation, &step.attributes).len() as u32
}
