//! Scripts on a worker: its part of a pass that is planned for several workers.
//!
//! What lies between two exchanges is run as one plan. A pass waits where an exchange has not come
//! to its end, and goes on from there.

use std::ops::Range;

use gt_ir::script::{Name, ScriptOperand, ScriptStep};
use gt_ir::{Bindings, Command, Meta, Operand, Play, Scalar, Script, TensorId};
use rustc_hash::{FxHashMap, FxHashSet};
use smallvec::SmallVec;

use crate::engine::Engine;
use crate::executor::{Out, Slot, Worker};
use crate::plan::{Input, Plan};
use crate::programs::GivenTensor;

/// The most shapes of what it is given for which a part is kept ready.
const VARIANTS: usize = 4;

/// The scripts of all sessions, by session and number.
#[derive(Default)]
pub(crate) struct Scripts(FxHashMap<(u32, u32), Box<Known>>);

struct Known {
    script: Script,
    bindings: Bindings,
    parts: Vec<Part>,
    /// The part at which the pass under way waits.
    waits_at: Option<usize>,
}

/// Steps between two exchanges, or an exchange.
struct Part {
    steps: Range<usize>,
    is_exchange: bool,
    /// How many operations these are; frees are none.
    operations: u64,
    /// The tensors that it needs from elsewhere, in the order of their first use.
    needs: Vec<Name>,
    /// Of these, those that nobody needs after it.
    dying: FxHashSet<Name>,
    /// What it makes that is needed elsewhere.
    kept: Vec<Name>,
    /// What is freed after it, beside what dies in it and what is not kept.
    freed: Vec<Name>,
    variants: Vec<Variant>,
}

struct Variant {
    metas: Vec<Meta>,
    kept: Vec<Meta>,
    /// The numbers that the plan is given after the tensors, by slot.
    numbers: Vec<u32>,
    kinds: Vec<Scalar>,
    program: u64,
}

impl Scripts {
    pub fn len(&self) -> usize {
        self.0.len()
    }

    pub fn end_session(&mut self, session: u32) {
        self.0.retain(|(owner, _), _| *owner != session);
    }

    /// The tensors that a pass needs to go on.
    pub fn needs(&self, play: &Play) -> Vec<TensorId> {
        let Some(known) = self.0.get(&(play.session, play.script)) else { return Vec::new() };
        let at = match known.waits_at {
            Some(at) => at,
            // A pass that has not begun: its bindings are still to be taken.
            None => return Vec::new(),
        };
        let part = &known.parts[at];
        part.needs.iter().map(|name| known.bindings.named(*name)).collect()
    }
}

fn operand_name(operand: &ScriptOperand) -> Option<Name> {
    match operand {
        ScriptOperand::Tensor(name) => Some(*name),
        _ => None,
    }
}

/// Cuts a script at its exchanges, and works out what each part needs and leaves.
fn parts(script: &Script) -> Vec<Part> {
    let mut ranges: Vec<(Range<usize>, bool)> = Vec::new();
    for (index, step) in script.steps.iter().enumerate() {
        let is_exchange = matches!(step, ScriptStep::Exchange { .. });
        match ranges.last_mut() {
            Some((range, false)) if !is_exchange => range.end = index + 1,
            _ => ranges.push((index..index + 1, is_exchange)),
        }
    }
    // Where each name is used last, by part, and whether it is freed.
    let mut last_part: FxHashMap<Name, usize> = FxHashMap::default();
    let mut freed: FxHashSet<Name> = FxHashSet::default();
    for (part, (range, _)) in ranges.iter().enumerate() {
        for step in &script.steps[range.clone()] {
            match step {
                ScriptStep::Run { operands, .. } => {
                    for name in operands.iter().filter_map(operand_name) {
                        last_part.insert(name, part);
                    }
                }
                ScriptStep::Exchange { input, .. } => {
                    last_part.extend(input.iter().map(|name| (*name, part)));
                }
                ScriptStep::Free(name) => {
                    freed.insert(*name);
                }
            }
        }
    }
    let make = |(part, (steps, is_exchange)): (usize, (Range<usize>, bool))| {
        let (mut needs, mut known) = (Vec::new(), FxHashSet::default());
        let (mut made, mut frees) = (Vec::new(), Vec::new());
        for step in &script.steps[steps.clone()] {
            match step {
                ScriptStep::Run { operands, output, .. } => {
                    for name in operands.iter().filter_map(operand_name) {
                        if known.insert(name) {
                            needs.push(name);
                        }
                    }
                    known.insert(*output);
                    made.push(*output);
                }
                ScriptStep::Exchange { input, .. } => needs.extend(input),
                ScriptStep::Free(name) => frees.push(*name),
            }
        }
        let gone = |name: &Name| {
            freed.contains(name) && last_part.get(name).is_none_or(|&last| last <= part)
        };
        let is_new: FxHashSet<Name> = made.iter().copied().collect();
        let dies = |name: &&Name| gone(name) && frees.contains(name);
        let dying: FxHashSet<Name> = needs.iter().filter(dies).copied().collect();
        let kept = made.iter().filter(|name| !(gone(name) && frees.contains(name))).copied();
        let freed = frees.iter().filter(|name| !dying.contains(name) && !is_new.contains(name));
        let (kept, freed) = (kept.collect(), freed.copied().collect());
        let operations = made.len() as u64;
        Part { steps, is_exchange, operations, needs, dying, kept, freed, variants: Vec::new() }
    };
    ranges.into_iter().enumerate().map(make).collect()
}

impl<E: Engine> Worker<E> {
    /// Learns a script.
    pub(crate) fn learn_script(&mut self, script: &Script) {
        let parts = parts(script);
        let bindings = script.bindings();
        let known = Known { script: script.clone(), bindings, parts, waits_at: None };
        self.scripts.0.insert((script.session, script.number), Box::new(known));
        self.stats.unique_sequences += 1;
    }

    /// Plays a script, or goes on with it; false if it has to wait.
    pub(crate) fn play(&mut self, play: &Play, out: &mut Vec<Out>) -> bool {
        let name = (play.session, play.script);
        let Some(mut known) = self.scripts.0.remove(&name) else { return true };
        let start = match known.waits_at.take() {
            Some(part) => part,
            None if known.bindings.play(play).is_ok() => {
                let operations = known.parts.iter().map(|part| part.operations);
                self.stats.hot_instructions += operations.sum::<u64>();
                0
            }
            None => known.parts.len(),
        };
        let mut is_done = true;
        for at in start..known.parts.len() {
            let Known { script, bindings, parts, .. } = &mut *known;
            let part = &mut parts[at];
            let waits = !self.exchanges.is_idle()
                && part.needs.iter().any(|name| {
                    matches!(self.tensors.get(&bindings.named(*name)), Some(Slot::Pending))
                });
            if waits {
                known.waits_at = Some(at);
                is_done = false;
                break;
            }
            let plainly = part.is_exchange || self.options.check_nan;
            if plainly || !self.play_part(script, bindings, part) {
                let steps = &script.steps[part.steps.clone()];
                let commands: Vec<Command> =
                    steps.iter().map(|step| step.command(bindings, play.transfer)).collect();
                self.run_from(0, &commands, out);
            }
        }
        self.scripts.0.insert(name, known);
        is_done
    }

    /// Runs a part as a plan; says whether that was possible.
    fn play_part(&mut self, script: &Script, bindings: &Bindings, part: &mut Part) -> bool {
        if self.notes.is_on {
            let first = part.kept.iter().chain(&part.needs).next();
            let first = first.map_or(TensorId(0), |name| bindings.named(*name));
            self.note_pass(first, Some(script.number));
        }
        let Some(index) = self.script_variant(script, bindings, part) else { return false };
        let variant = &part.variants[index];
        let given = part.needs.iter().zip(&variant.metas).map(|(name, meta)| GivenTensor {
            id: bindings.named(*name),
            meta: *meta,
            dies: part.dying.contains(name),
        });
        let given: Vec<GivenTensor> = given.collect();
        let numbers = variant.numbers.iter().map(|slot| bindings.number(*slot as usize));
        let kept = part.kept.iter().zip(&variant.kept);
        let kept = kept.map(|(name, meta)| (bindings.named(*name), *meta));
        if !self.launch(variant.program, part.operations, &given, numbers, kept) {
            return false;
        }
        for name in &part.freed {
            self.free(bindings.named(*name));
        }
        true
    }

    /// The variant of a part that fits the tensors there are; made ready if there is none.
    fn script_variant(
        &mut self,
        script: &Script,
        bindings: &Bindings,
        part: &mut Part,
    ) -> Option<usize> {
        let there = |name: &Name| match self.tensors.get(&bindings.named(*name)) {
            Some(Slot::Ready { meta, .. }) => Some(*meta),
            _ => None,
        };
        let metas: Option<Vec<Meta>> = part.needs.iter().map(there).collect();
        let metas = metas?;
        let fits = |variant: &Variant| {
            variant.metas == metas
                && variant.numbers.iter().zip(&variant.kinds).all(|(slot, kind)| {
                    let number = bindings.number(*slot as usize);
                    std::mem::discriminant(&number) == std::mem::discriminant(kind)
                })
        };
        if let Some(index) = part.variants.iter().position(fits) {
            if self.programs.has(part.variants[index].program) {
                return Some(index);
            }
            part.variants.remove(index);
        }
        let (mut variant, mut plan) = plan(&self.engine, script, bindings, part, metas)?;
        plan.compile = script.compile;
        variant.program = self.prepare(plan)?;
        if part.variants.len() >= VARIANTS {
            part.variants.remove(0);
        }
        part.variants.push(variant);
        Some(part.variants.len() - 1)
    }
}

/// The plan of a part; `None` if it cannot be run as one.
fn plan<E: Engine>(
    engine: &E,
    script: &Script,
    bindings: &Bindings,
    part: &Part,
    metas: Vec<Meta>,
) -> Option<(Variant, Plan)> {
    let steps = || script.steps[part.steps.clone()].iter();
    let mut numbers: Vec<u32> = Vec::new();
    for step in steps() {
        let ScriptStep::Run { operands, .. } = step else { continue };
        numbers.extend(operands.iter().filter_map(|operand| match operand {
            ScriptOperand::Number(slot) => Some(*slot),
            _ => None,
        }));
    }
    if !steps().any(|step| matches!(step, ScriptStep::Run { .. })) {
        return None;
    }
    let kinds: Vec<Scalar> = numbers.iter().map(|slot| bindings.number(*slot as usize)).collect();
    let given = part.needs.iter().zip(&metas);
    let given =
        given.map(|(name, meta)| Input::Tensor { meta: *meta, dies: part.dying.contains(name) });
    let inputs = given.chain(kinds.iter().map(|kind| Input::Number(*kind))).collect();
    let mut plan = Plan::new(inputs);
    let mut values: FxHashMap<Name, u32> = FxHashMap::default();
    for (value, name) in part.needs.iter().enumerate() {
        values.insert(*name, value as u32);
    }
    let mut number = part.needs.len() as u32;
    for step in steps() {
        let ScriptStep::Run { operation, output, operands, attributes, .. } = step else {
            continue;
        };
        let mut sources = SmallVec::new();
        for operand in operands {
            sources.push(match operand {
                ScriptOperand::Tensor(name) => Operand::Tensor(*values.get(name)?),
                ScriptOperand::Constant(scalar) => Operand::Scalar(*scalar),
                ScriptOperand::Number(_) => {
                    number += 1;
                    Operand::Tensor(number - 1)
                }
            });
        }
        let lowers = |operation| engine.lowers(operation);
        let value =
            plan.push(&lowers, operation, sources, attributes.clone(), SmallVec::new()).ok()?;
        values.insert(*output, value);
    }
    let mut kept = Vec::with_capacity(part.kept.len());
    for name in &part.kept {
        let value = values[name];
        plan.outputs.push(value);
        kept.push(*plan.meta(value).tensor()?);
    }
    Some((Variant { metas, kept, numbers, kinds, program: 0 }, plan))
}
