//! A cache of plans for iterations of client templates.
//!
//! An iteration is planned instruction by instruction once, and stored as a plan: each slot's
//! commands, as a template, and the tensors' layouts afterwards. A later iteration of the same
//! steps, on tensors with the same layouts, invokes the slots' templates, and takes the layouts
//! from the plan.
//!
//! An iteration that follows directly on one of the same plan needs no comparison: its cost depends
//! only on the tensors that change, and on the bindings that differ from the prediction.

use std::sync::Arc;

use gt_ir::cache::{Cache, CacheLimits};
use gt_ir::{SlotId, TensorId, WorkerCommand};

use super::Planner;
use super::catalogue::Catalogue;
use super::iteration::{InvocationObserver, IterationSpan, TemplateIteration};
use super::plan::{IterationPlan, PlanKey, StateBefore, TensorBefore};
use super::streams::Streams;
use super::touches::TouchedNames;
use super::write::write;

/// The most plans cached for a session: a loop may have one for each part in which it is sent.
const MOST: usize = 256;

/// The plans of a session's iterations. They are found by comparison, not by a key.
pub struct PlanCache {
    plans: Vec<IterationPlan>,
    /// The names that each span touches, cached.
    touches: Cache<IterationSpan, Arc<TouchedNames>>,
    clock: u64,
}

impl Default for PlanCache {
    fn default() -> PlanCache {
        PlanCache { plans: Vec::new(), touches: Cache::new(CacheLimits::entries(MOST)), clock: 0 }
    }
}

impl Planner {
    /// Sends an iteration by a cached plan, without the frees that are particular to it.
    ///
    /// # Errors
    /// No plan fits: the state to write one from; `None` if the iteration cannot be stored as a
    /// plan.
    pub fn repeat(
        &mut self,
        plans: &mut PlanCache,
        catalogue: &mut Catalogue,
        streams: &mut Streams,
        iteration: &TemplateIteration,
        observer: Option<InvocationObserver>,
    ) -> Result<(), Option<StateBefore>> {
        if catalogue.recorder.is_some() {
            return Err(None);
        }
        let key = PlanKey {
            span: iteration.span,
            slots: catalogue.slots.version(),
            strict: catalogue.strict,
            signals: catalogue.signals_version(),
        };
        plans.clock += 1;
        let fits_key = |plan: &IterationPlan| plan.key == key && plan.fixed_fits(iteration);
        let continues = |plan: &IterationPlan| {
            let is_steady = plan.is_steady && plan.changes == catalogue.changes();
            is_steady
                && plan.is_defined
                && plan.precedes(iteration)
                && iteration.invocation.tensors.is_empty()
                && fits_key(plan)
        };
        let index = match plans.plans.iter().position(continues) {
            Some(index) => {
                let plan = &mut plans.plans[index];
                plan.begin(catalogue, iteration);
                plan.bind_changed(iteration);
                debug_assert!(plans.agrees(index, catalogue, iteration), "a plan went stale");
                index
            }
            None => {
                let touches = plans.touches(iteration);
                let (touched, same) = touches.tensors(iteration);
                let mut placed = Vec::with_capacity(touched.len());
                for (_, id) in &touched {
                    placed.push(catalogue.get(*id).map_err(|_| None)?);
                }
                let fits = |plan: &IterationPlan| {
                    fits_key(plan)
                        && plan.same == same
                        && plan.before.iter().zip(&placed).all(|(before, now)| before.fits(now))
                };
                let Some(index) = plans.plans.iter().position(fits) else {
                    let before = placed.iter().map(|placed| TensorBefore::of(placed)).collect();
                    let copies = placed
                        .iter()
                        .map(|placed| placed.copies.iter().map(|copy| copy.id).collect())
                        .collect();
                    let (made, transfer) = catalogue.next();
                    catalogue.varying.clear();
                    let beginning =
                        StateBefore { key, touched, before, same, copies, made, transfer };
                    return Err(Some(beginning));
                };
                let plan = &mut plans.plans[index];
                let copies: Vec<TensorId> = plan
                    .slots
                    .iter()
                    .map(|&(tensor, copy)| placed[tensor].copies[copy].id)
                    .collect();
                let follows = plan.changes == catalogue.changes() && plan.precedes(iteration);
                plan.begin(catalogue, iteration);
                let differs = plan.bind(iteration, &copies);
                plan.is_steady = follows && !differs && iteration.invocation.tensors.is_empty();
                index
            }
        };
        let plan = &mut plans.plans[index];
        plan.used = plans.clock;
        plan.send(streams, observer);
        plan.apply(catalogue, iteration);
        plan.changes = catalogue.changes();
        catalogue.limit_copies(streams);
        Ok(())
    }

    /// Stores the plan of an iteration, of which `lists` are the slots' commands. A complete
    /// iteration is sent as its template at once; a part of one may not be repeated, and is sent as
    /// plain commands the first time.
    pub fn keep_plan(
        &self,
        plans: &mut PlanCache,
        catalogue: &mut Catalogue,
        (iteration, beginning): (&TemplateIteration, StateBefore),
        lists: Vec<(SlotId, Vec<WorkerCommand>)>,
        streams: &mut Streams,
        observer: Option<InvocationObserver>,
    ) {
        let number = plans.free_number();
        let made = beginning.made;
        let quantum = self.quantum(catalogue);
        let plan = write(number, catalogue, iteration, beginning, &lists, quantum);
        if let Some(mut plan) = plan {
            plans.clock += 1;
            plan.used = plans.clock;
            plans.plans.retain(|other| other.number != number);
            let is_sent = iteration.is_whole();
            if is_sent {
                plan.send_first(streams, made, observer);
            }
            plans.plans.push(plan);
            if is_sent {
                return;
            }
        }
        for (slot, commands) in lists {
            commands.into_iter().for_each(|command| streams.push(slot, command));
        }
    }
}

impl PlanCache {
    /// Returns the names that an iteration touches.
    fn touches(&mut self, iteration: &TemplateIteration) -> Arc<TouchedNames> {
        if let Some(touches) = self.touches.get(&iteration.span) {
            return Arc::clone(touches);
        }
        let touches = Arc::new(TouchedNames::of(iteration));
        self.touches.insert(iteration.span, Arc::clone(&touches), 1);
        touches
    }

    /// Returns a free number for a plan, or else that of the least recently used plan.
    fn free_number(&self) -> u32 {
        if self.plans.len() < MOST {
            let taken = |number: &u32| self.plans.iter().any(|plan| plan.number == *number);
            return (0..MOST as u32).find(|number| !taken(number)).unwrap_or(0);
        }
        self.plans.iter().min_by_key(|plan| plan.used).map_or(0, |plan| plan.number)
    }

    /// Returns the part of a template that a plan is of, by the number that workers know.
    pub fn span(&self, number: u32) -> Option<IterationSpan> {
        self.plans.iter().find(|plan| plan.number == number).map(|plan| plan.key.span)
    }

    /// Drops the plans of a template that is redefined or forgotten.
    pub fn forget(&mut self, template: u32) {
        self.plans.retain(|plan| plan.key.span.template != template);
        self.touches.retain(|span, _| span.template != template);
    }

    /// Has the plans' templates sent again: slots are on other workers, which lack them.
    pub fn hosts_changed(&mut self) {
        self.plans.iter_mut().for_each(|plan| plan.is_defined = false);
    }

    /// Returns whether a steady plan binds an iteration as a comparison of everything would.
    fn agrees(
        &mut self,
        index: usize,
        catalogue: &Catalogue,
        iteration: &TemplateIteration,
    ) -> bool {
        let (touched, same) = self.touches(iteration).tensors(iteration);
        let placed: Result<Vec<_>, _> = touched.iter().map(|(_, id)| catalogue.get(*id)).collect();
        placed.is_ok_and(|placed| self.plans[index].agrees(iteration, &same, &placed))
    }
}
