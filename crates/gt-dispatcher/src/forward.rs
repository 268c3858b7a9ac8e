//! Plans a client's batch: each command is planned for the workers, or answered directly.
//!
//! - [`publishing`]: commands that publish tensors, and that read publications.

mod publishing;

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use gt_ir::explain::Explanation;
use gt_ir::message::{Answer, Failure, Reply};
use gt_ir::stored::Save;
use gt_ir::template::{Step, expand};
use gt_ir::{
    Bindings, ClientCommand, Content, Create, Definition, Invocation, LaneId, RequestId, Rescale,
    SlotId, SourceId, TensorId, TransferId, WorkerCommand,
};

use crate::answers::{PendingAnswers, PendingFetch};
use crate::library::Publications;
use crate::observability::Observability;
use crate::peer::{PeerId, PeerOutbox};
use crate::planner::{
    Catalogue, InvocationObserver, PlanRecorder, Planner, SignalScope, Streams, TemplateIteration,
};
use crate::queue::UnplannedBatch;
use crate::rules::Rules;
use crate::sessions::{ClientSession, Planning};
use crate::workers::Workers;

/// The dispatcher state that a session's commands touch.
pub(crate) struct Forward<'a> {
    pub now: Duration,
    pub session: &'a mut ClientSession,
    pub workers: &'a Workers,
    pub planner: &'a mut Planner,
    pub streams: &'a mut Streams,
    pub answers: &'a mut PendingAnswers,
    pub observability: &'a mut Observability,
    pub library: &'a mut Publications,
    pub rules: &'a Rules,
    pub outbox: &'a mut PeerOutbox,
}

impl Forward<'_> {
    /// Plans a batch. If its last command is given up, `given_up` is the failure.
    ///
    /// # Errors
    /// A command is not valid, or the planner panicked on one: that ends this session, not the
    /// server.
    pub fn plan(mut self, batch: UnplannedBatch, given_up: Option<&Failure>) -> Result<(), String> {
        let UnplannedBatch { mut commands, skipped, .. } = batch;
        let given_up = given_up.and_then(|failure| Some((commands.pop()?, failure)));
        let failed = "the planner failed on an instruction of the session";
        let planned = catch_unwind(AssertUnwindSafe(|| self.commands(commands, &skipped)))
            .unwrap_or_else(|_| Err(failed.into()));
        planned.inspect(|()| {
            if let Some((command, failure)) = given_up {
                self.give_up(command, failure);
            }
        })
    }

    /// Answers a command that is not run, because workers died of it, with its failure.
    fn give_up(&mut self, command: ClientCommand, failure: &Failure) {
        let ClientSession { identity, planning, unread, .. } = &mut *self.session;
        let (catalogue, peer) = (&mut planning.catalogue, identity.peer);
        match command {
            ClientCommand::Run(instruction) => {
                self.planner.give_up(catalogue, &instruction, &Arc::new(failure.clone()));
            }
            ClientCommand::Create(create) => {
                catalogue.fail(create.output, Arc::new(failure.clone()));
                if let Content::Shared { block, .. } = create.content {
                    self.release(block.token);
                }
            }
            ClientCommand::Fetch { request, .. } => {
                unread.remove(request);
                self.session.note_error(self.now, failure);
                let result = Err(failure.clone());
                self.outbox.push(peer, Answer::value(request, result));
            }
            ClientCommand::Save(save) => {
                self.session.note_error(self.now, failure);
                let (request, result) = (save.request, Err(failure.clone()));
                self.outbox.push(peer, Answer { request, result: result.map(Reply::Saved) });
            }
            ClientCommand::Statistics { request } => {
                self.outbox.push(peer, Answer::new(request, Reply::Statistics(Vec::new())));
            }
            ClientCommand::Publish(publish) => self.refuse_publication(&publish, failure.clone()),
            _ => {}
        }
    }

    fn commands(
        &mut self,
        commands: Vec<ClientCommand>,
        skipped: &[(TensorId, u32)],
    ) -> Result<(), String> {
        if let Some(home) = self.session.planning.catalogue.slots.home() {
            self.streams.reserve(home, commands.len());
        }
        for command in commands {
            match command {
                ClientCommand::Run(instruction) => {
                    self.session.planning.recent.note(&instruction);
                    let catalogue = &mut self.session.planning.catalogue;
                    self.planner.instruction(catalogue, self.streams, instruction)?;
                }
                ClientCommand::Free(id) => {
                    self.planner.free(&mut self.session.planning.catalogue, self.streams, id);
                }
                ClientCommand::Invoke(invocation) => {
                    let first = (invocation.bases[0], invocation.part.first);
                    if skipped.contains(&first) {
                        self.skip(&invocation)?;
                    } else {
                        self.iteration(&invocation)?;
                    }
                }
                other => self.rare(other)?,
            }
        }
        Ok(())
    }

    /// Handles the less frequent commands.
    fn rare(&mut self, command: ClientCommand) -> Result<(), String> {
        let (catalogue, client) =
            (&mut self.session.planning.catalogue, self.session.identity.peer);
        match command {
            ClientCommand::Create(create) => self.create(create)?,
            ClientCommand::Fetch { request, tensor, line } => self.fetch(request, tensor, line),
            ClientCommand::Save(save) => self.save(&save),
            ClientCommand::Signal { number, name, shard } => {
                catalogue.set_signal(number, SignalScope::new(name, shard));
            }
            ClientCommand::Statistics { request } => self.statistics(request),
            ClientCommand::Strict { limit } => catalogue.strict = limit,
            ClientCommand::Rescale(rescale) => rescaled(catalogue, rescale)?,
            ClientCommand::Explain { request, begin } => {
                let explanation = if begin {
                    catalogue.recorder = Some(PlanRecorder::default());
                    Explanation::default()
                } else {
                    let planned = self.planner.end_explaining(catalogue);
                    self.workers.explain(&catalogue.slots, planned)
                };
                self.outbox.push(client, Answer::new(request, Reply::Explained(explanation)));
            }
            ClientCommand::Locate { request, tensor } => {
                let result = self.planner.locate(catalogue, tensor);
                let result = result.map_err(|failure| (*failure).clone());
                self.outbox.push(client, Answer { request, result: result.map(Reply::Located) });
            }
            ClientCommand::Define(definition) => {
                self.session.planning.plans.forget(definition.number);
                let defined = self.session.planning.templates.define(*definition);
                defined.map_err(|error| error.to_string())?;
            }
            ClientCommand::Forget { template } => {
                self.session.planning.plans.forget(template);
                self.session.planning.templates.forget(template);
            }
            ClientCommand::Keep(kept) => self.session.planning.kept.keep(*kept)?,
            ClientCommand::Unkeep { name } => self.session.planning.kept.remove(&name),
            ClientCommand::Kept { request } => {
                let kept = self.session.planning.kept.all();
                self.outbox.push(client, Answer::new(request, Reply::Kept(kept)));
            }
            ClientCommand::Abandon => self.abandon(),
            ClientCommand::Publish(publish) => self.publish(&publish),
            ClientCommand::Find { request, name } => self.find(request, &name),
            ClientCommand::Withdraw { request, name } => {
                self.library.planned.withdrawals.push((request, name));
            }
            // They were handled on receipt; one that a modifier adds comes too late.
            ClientCommand::Status { .. }
            | ClientCommand::Cancel { .. }
            | ClientCommand::Detach(_) => {}
            ClientCommand::Run(_) | ClientCommand::Free(_) | ClientCommand::Invoke(_) => {}
        }
        Ok(())
    }

    /// Frees what is not kept, and forgets what only the client that is gone refers to.
    fn abandon(&mut self) {
        let Planning { catalogue, templates, plans, recent, kept, borrowed, .. } =
            &mut self.session.planning;
        borrowed.abandon();
        catalogue.abandon(&kept.tensors(), self.streams);
        (*plans, *recent) = Default::default();
        if !self.session.queue.is_expanded {
            // Otherwise they are those of the client that attached since.
            *templates = Default::default();
        }
    }

    fn create(&mut self, create: Create) -> Result<(), String> {
        let block = match &create.content {
            Content::Shared { block, .. } => Some(block.token),
            Content::Published(values) => return self.read_published(&create, values),
            Content::Data(_) | Content::Stored(_) => None,
        };
        let catalogue = &mut self.session.planning.catalogue;
        let slot = self.planner.create(catalogue, self.streams, create)?;
        let Some(token) = block else { return Ok(()) };
        let client = self.session.identity.peer;
        let host = slot.and_then(|slot| self.session.planning.catalogue.slots.host(slot));
        match host.and_then(|worker| self.workers.by_id(worker)) {
            Some(worker) => self.answers.share(token, client, worker.peer),
            None => self.release(token),
        }
        Ok(())
    }

    /// Releases a client's shared memory that no worker will map.
    fn release(&mut self, token: u128) {
        let lineage = self.session.lineage.as_mut();
        if !lineage.is_some_and(|lineage| lineage.hold(self.now, token)) {
            self.outbox.release(self.session.identity.peer, token);
        }
    }

    fn fetch(&mut self, request: RequestId, tensor: TensorId, line: SourceId) {
        let ClientSession { identity, planning, unread, lineage, .. } = &mut *self.session;
        let (catalogue, machine) = (&mut planning.catalogue, &identity.hello.machine);
        let (client, incarnation, since) = (identity.peer, identity.incarnation, self.now);
        let source = planning.recent.source(tensor).or_else(|| planning.templates.source(tensor));
        // The value of a request that was answered before is compared, not forwarded.
        let known = lineage.as_ref().and_then(|lineage| lineage.log.digest(request));
        match catalogue.get(tensor) {
            Ok(found) if known.is_none() => unread.add(request, found.meta.bytes() as u64),
            Ok(_) => {}
            Err(_) if known.is_some() => return,
            Err(failure) => {
                let result = Err((*failure).clone());
                self.session.note_error(self.now, &failure);
                return self.outbox.push(client, Answer::value(request, result));
            }
        }
        let hosts = catalogue.slots.hosts_by_slot();
        let (workers, answers) = (self.workers, &mut *self.answers);
        let fetch = |slot: SlotId, name: TensorId| {
            let worker = hosts.get(slot.0 as usize).copied().flatten();
            let worker = worker.and_then(|worker| workers.by_id(worker));
            let shared = worker
                .is_some_and(|worker| !worker.machine.is_empty() && worker.machine == *machine);
            let (original, lane) = (request, LaneId { incarnation, slot });
            let worker = worker.map(|worker| worker.peer);
            let mine = answers.open(PendingFetch {
                client,
                original,
                worker,
                lane,
                tensor,
                source,
                line,
                since,
                known,
            });
            WorkerCommand::Fetch { request: mine, tensor: name, shared, line }
        };
        self.planner.with_replica(catalogue, self.streams, tensor, line, fetch);
    }

    /// Has workers write tensors into files.
    fn save(&mut self, save: &Save) {
        let ClientSession { identity, planning, .. } = &mut *self.session;
        let (catalogue, client) = (&mut planning.catalogue, identity.peer);
        let workers = self.workers;
        let (answers, outbox) = (&mut *self.answers, &mut *self.outbox);
        let open = |catalogue: &Catalogue, slots: &[SlotId]| {
            let host = |slot: &SlotId| catalogue.slots.host(*slot);
            let peer = |slot| host(slot).and_then(|worker| workers.by_id(worker)).map(|w| w.peer);
            let writers = slots.iter().map(peer).collect();
            answers.open_save(outbox, client, save.request, writers)
        };
        if let Err(failure) = self.planner.save(catalogue, self.streams, save, open) {
            let (request, result) = (save.request, Err((*failure).clone()));
            self.session.note_error(self.now, &failure);
            self.outbox.push(client, Answer { request, result: result.map(Reply::Saved) });
        }
    }

    /// Requests statistics from all workers, in order with the session's other commands.
    fn statistics(&mut self, original: RequestId) {
        let slots = &self.session.planning.catalogue.slots;
        let mut asked: Vec<SlotId> = Vec::new();
        let mut open: BTreeSet<PeerId> = BTreeSet::new();
        for slot in slots.usable() {
            let worker = slots.host(slot).and_then(|worker| self.workers.by_id(worker));
            if worker.is_some_and(|worker| open.insert(worker.peer)) {
                asked.push(slot);
            }
        }
        let survey =
            self.answers.open_survey(self.outbox, self.session.identity.peer, original, open);
        let Some(request) = survey else { return };
        // Pushed onto one lane of each worker, after the commands already planned for it.
        for slot in asked {
            self.streams.push(slot, WorkerCommand::Statistics { request });
        }
    }

    /// Plans an iteration of a template: by a cached plan, if one fits, or else instruction by
    /// instruction.
    fn iteration(&mut self, invocation: &Invocation) -> Result<(), String> {
        let Planning { catalogue, plans, templates, .. } = &mut self.session.planning;
        let (instance, freed) = templates.take(invocation).map_err(|error| error.to_string())?;
        let (first, names) = (invocation.bases[0], u64::from(instance.template.widths[0]));
        catalogue.check_new(first)?;
        catalogue.check_new(first.after(names.saturating_sub(1)))?;
        let iteration = TemplateIteration::new(instance, invocation, freed);
        let hosts = catalogue.slots.hosts_by_slot();
        let expansions = &mut self.observability.expansions;
        let has_log = self.observability.log.is_some();
        let mut observe =
            |slot: SlotId, of: &Definition, bindings: &Bindings, first: TransferId| {
                let step = |step: &Step| step.command(bindings, first, slot);
                let commands = of.template.steps.iter().filter_map(step).collect();
                if let Some(Some(worker)) = hosts.get(slot.0 as usize) {
                    expansions.push_back((*worker, commands));
                }
            };
        let observer: Option<InvocationObserver> = if has_log { Some(&mut observe) } else { None };
        let (planner, streams) = (&mut *self.planner, &mut *self.streams);
        let repeated = planner.repeat(plans, catalogue, streams, &iteration, observer);
        if let Err(beginning) = repeated {
            // The commands of this iteration are collected separately, to be written as a plan.
            let others = std::mem::take(streams);
            let mut planned = Ok(());
            for command in expand(instance, invocation, freed) {
                planned = planned.and_then(|()| planner.compute(catalogue, streams, command));
            }
            let lists = std::mem::replace(streams, others).take();
            planned?;
            match beginning {
                Some(beginning) => {
                    let observer: Option<InvocationObserver> =
                        if has_log { Some(&mut observe) } else { None };
                    let begun = (&iteration, beginning);
                    planner.keep_plan(plans, catalogue, begun, lists, streams, observer);
                }
                None => {
                    for (slot, commands) in lists {
                        commands.into_iter().for_each(|command| streams.push(slot, command));
                    }
                }
            }
        }
        for id in &invocation.others {
            planner.free(catalogue, streams, *id);
        }
        Ok(())
    }

    /// Skips an unwanted iteration: advances its bindings and does its frees.
    fn skip(&mut self, invocation: &Invocation) -> Result<(), String> {
        let Planning { catalogue, templates, .. } = &mut self.session.planning;
        let (instance, freed) = templates.take(invocation).map_err(|error| error.to_string())?;
        let frees = freed..invocation.part.frees;
        let usual = frees.map(|index| instance.template.freed(index as usize, &instance.bindings));
        for id in usual.chain(invocation.others.iter().copied()) {
            self.planner.free(catalogue, self.streams, id);
        }
        Ok(())
    }
}

/// Sets the number of a session's slots.
///
/// # Errors
/// The number is not one that a valid client requests.
fn rescaled(catalogue: &mut Catalogue, rescale: Rescale) -> Result<(), String> {
    let Rescale { slots, elastic } = rescale;
    if let Some(count) = slots {
        if Rescale::count(count).is_none() {
            return Err(format!("a session of {count} slots, expected 1 to {}", Rescale::MOST));
        }
        catalogue.slots.rescale(count as usize);
    }
    if let Some(elastic) = elastic {
        catalogue.slots.set_elastic(elastic);
    }
    Ok(())
}
