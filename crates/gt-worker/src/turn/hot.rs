//! Iterations of templates, part by part.

use gt_ir::message::WorkerToServer;
use gt_ir::template::{Name, Step, Values};
use gt_ir::{Meta, Template, WorkerCommand};
use rustc_hash::FxHashSet;

use super::Turn;
use crate::device::iterate::AtHand;
use crate::device::launch::PartRun;
use crate::engine::Engine;
use crate::lane::iteration::{Bound, Iteration, PartSteps, RunningIteration, TemplatePart};
use crate::memory::{self, Peak};
use crate::work::Out;

impl<E: Engine> Turn<'_, E> {
    /// Begins an iteration.
    pub(super) fn begin(&mut self, iteration: Option<Iteration>) {
        let Some(Iteration { work, number, generation }) = iteration else { return };
        match work {
            Ok((bound, template)) => {
                let parts = self.lane.templates.count(generation);
                self.lane.running = Some(RunningIteration::new(bound, template, generation, parts));
            }
            Err(error) => {
                // Dispatcher and worker disagree on the bindings: the lane's state cannot be
                // trusted.
                let reason = format!("hot path {number}: {error}");
                let lane = self.lane.id;
                self.out.push(Out::Server(WorkerToServer::LaneBroken { lane, reason }));
            }
        }
    }

    /// Skips an unwanted iteration: does its frees only.
    pub(super) fn skip(&mut self, iteration: Option<Iteration>) {
        let Some(iteration) = iteration else { return };
        for id in iteration.effects().frees {
            self.device.free(self.lane, id);
        }
    }

    /// Runs the next part of the running iteration as a plan; a part that cannot run as one, or
    /// does not fit in memory, runs step by step. Returns false if it waits for an exchange or a
    /// compiler.
    pub(super) fn run_part(&mut self) -> bool {
        let Some(running) = self.lane.running.take() else { return false };
        let Some(mut known) = self.lane.templates.take_known(running.generation) else {
            return true;
        };
        let (mut waits, mut ended) = (false, None);
        if let Some(part) = known.parts.get_mut(running.part) {
            let bound = &running.bound;
            let (waits_for_others, is_away) = self.absent(part, bound);
            (waits, self.is_pending) = (waits_for_others, waits_for_others);
            if !waits {
                let at_hand = AtHand {
                    template: &running.template,
                    bound,
                    number: Some(known.number),
                    compile: known.compile,
                    patience: self.patience,
                };
                // The planner splits parts at a quantum: one part ends the turn if another lane is
                // ready.
                self.spent = self.spent.max(self.device.turn_work()) + 1;
                let Peak { bytes, tensors } = self.peak(&running.template, bound, part);
                if !is_away && !self.lane.has_room(bytes, tensors) {
                    // Tensors that the iteration only drops are freed at its end.
                    let free = running.rest(&part.steps).free_at_once(FxHashSet::default());
                    self.lane.store.free_all(&mut self.device.held, &free);
                }
                let fits = !is_away && self.lane.has_room(bytes, tensors);
                let run = match fits {
                    true => self.device.run_part(self.lane, &at_hand, part),
                    false => PartRun::Refused,
                };
                self.compiles = run == PartRun::Compiling;
                waits = self.compiles;
                ended = Some(run);
            }
        }
        let is_done = running.part >= known.parts.len();
        self.lane.templates.put_known(running.generation, known);
        if !is_done {
            self.lane.running = Some(running);
        }
        ended.into_iter().for_each(|run| self.end_part(run));
        !waits
    }

    /// Goes on to the next part, or to the steps of this one if it cannot be run as a plan.
    pub(super) fn end_part(&mut self, run: PartRun) {
        let Some(mut running) = self.lane.running.take() else { return };
        let part = self.lane.templates.part(running.generation, running.part);
        match (run, part) {
            (PartRun::Done, part) => {
                self.device.stats.hot_instructions += part.map_or(0, |part| part.operations);
                running.part += 1;
            }
            (PartRun::Refused, Some(part)) => {
                let (bound, slot) = (&running.bound, self.lane.id.slot);
                let steps = &running.template.steps[part.steps.clone()];
                let command = |step: &Step| step.command(bound, bound.transfer, slot);
                let commands = steps.iter().filter_map(command).collect();
                running.steps = Some(PartSteps { commands, next: 0 });
            }
            // It waits for a compiler, or for its call.
            (PartRun::Compiling | PartRun::Begun | PartRun::Refused, _) => {}
        }
        if running.part < running.parts {
            self.lane.running = Some(running);
        }
    }

    /// Returns whether a part needs a pending tensor, and whether it needs a spilled one.
    pub(super) fn absent(&self, part: &TemplatePart, bound: &Bound) -> (bool, bool) {
        let store = &self.lane.store;
        if !store.has_absent() {
            return (false, false);
        }
        let needs = || part.needs.iter().map(|name| bound.tensor(*name));
        (needs().any(|id| store.is_pending(id)), needs().any(|id| store.away(id).is_some()))
    }

    /// Puts back the steps of a part, some of which are complete.
    pub(super) fn end_steps(&mut self, commands: Vec<WorkerCommand>, next: usize) {
        let Some(mut running) = self.lane.running.take() else { return };
        if next < commands.len() {
            running.steps = Some(PartSteps { commands, next });
            self.lane.running = Some(running);
            return;
        }
        running.steps = None;
        let part = self.lane.templates.part(running.generation, running.part);
        self.device.stats.hot_instructions += part.map_or(0, |part| part.operations);
        running.part += 1;
        if running.part < running.parts {
            self.lane.running = Some(running);
        }
    }

    /// Returns the most additional memory that a part needs.
    fn peak(&self, template: &Template, bound: &Bound, part: &mut TemplatePart) -> Peak {
        if let Some(peak) = part.peak {
            return peak;
        }
        let steps = &template.steps[part.steps.clone()];
        if let [Step::Exchange(_)] = steps {
            // It is a single step.
            return Peak { bytes: 0, tensors: 0 };
        }
        let meta = |name: &Name| Some((*name, self.lane.store.meta(bound.tensor(*name))?));
        let given: Vec<(Name, Meta)> = part.needs.iter().filter_map(meta).collect();
        let freed = part.dying.iter().chain(&part.freed).copied().collect();
        *part.peak.insert(memory::peak(steps, &given, &freed, self.device.engine.makes_views()))
    }
}
