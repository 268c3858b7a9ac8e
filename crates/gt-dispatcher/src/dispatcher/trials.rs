//! Finds out which command killed a worker. After a death, the sessions that had commands in flight
//! to the worker are put on trial, one after the other: each runs one command at a time, while
//! sessions that share workers with it are held back.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use gt_ir::message::{Failure, ServerToClient};
use gt_ir::{ClientCommand, Incarnation, Operand, SourceId, WorkerCommand, WorkerId};

use super::Dispatcher;
use crate::lineage::{CommandKey, TrialVerdict, TriedCommand};
use crate::observability::log::LineKind;
use crate::peer::PeerId;
use crate::planner::Catalogue;
use crate::queue::UnplannedBatch;
use crate::sessions::ClientSession;
use crate::workers::RegisteredWorker;

/// How long after a death a trial is delayed while other sessions' values exist on the same workers
/// only, or while sessions there wait for memory.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long after a death the last trial of a command waits for a spare worker.
const SPARE: Duration = Duration::from_secs(5);

/// Which session is on trial.
#[derive(Default)]
pub(super) struct Trials {
    /// Whether any session is suspected.
    is_on: bool,
    tried: Option<PeerId>,
    /// The placement of the session on trial when its workers were probed: only deaths after the
    /// probe can be due to the command on trial.
    probed: Option<PlacementVersion>,
    /// When the last worker died.
    since: Duration,
    /// When the next trial begins at the latest, if it waits.
    begins: Option<Duration>,
}

impl Trials {
    /// Notes that a session has another client.
    pub fn hand_over(&mut self, from: PeerId, to: PeerId) {
        if self.tried == Some(from) {
            self.tried = Some(to);
        }
    }

    /// Returns whether a session is on trial now.
    pub fn is_running(&self) -> bool {
        self.tried.is_some()
    }
}

/// The incarnation of a session, and the version of its slots' hosts.
type PlacementVersion = (Incarnation, u64);

/// Returns the workers that host a session.
fn hosts(session: &ClientSession) -> Vec<WorkerId> {
    session.planning.catalogue.slots.hosts()
}

fn placement(session: &ClientSession) -> PlacementVersion {
    (session.identity.incarnation, session.planning.catalogue.slots.hosts_version())
}

/// Returns whether a session has commands in flight to a worker that do not wait for memory.
fn runs_on(session: &ClientSession, worker: WorkerId) -> bool {
    let slots = session.planning.catalogue.slots.on(worker).into_iter();
    let mut slots = slots.filter(|slot| !session.account.shortages.contains_key(slot));
    slots.any(|slot| session.flow.in_flight(slot).0 > 0)
}

/// Returns whether a session has commands in flight to a worker that a trial waits for.
fn holds_up(session: &ClientSession, worker: WorkerId) -> bool {
    runs_on(session, worker) && !session.account.is_stuck()
}

impl Dispatcher {
    /// Returns the session on trial, if no other session had commands in flight to the lost worker.
    pub(super) fn alone_on(&self, lost: WorkerId) -> Option<PeerId> {
        let tried = self.trials.tried?;
        let mut others =
            self.peers.sessions.iter().filter(|session| session.identity.peer != tried);
        (!others.any(|other| runs_on(other, lost))).then_some(tried)
    }

    /// Suspects these batches of a session, which were in flight to a lost worker. Returns whether
    /// the session continues.
    pub(super) fn suspect(
        &mut self,
        now: Duration,
        peer: PeerId,
        batches: Option<Range<u64>>,
        lost: &RegisteredWorker,
        is_alone: bool,
    ) -> bool {
        let Some(ClientSession { lineage: Some(lineage), .. }) = self.peers.sessions.get_mut(peer)
        else {
            return true;
        };
        let verdict = lineage.suspicion.worker_died(batches, &lost.name, is_alone);
        self.trials.is_on |= lineage.suspicion.is_open();
        self.trials.since = now;
        self.apply_verdict(now, peer, verdict)
    }

    /// Notifies a session's user of commands that are given up, or ends the session. Returns
    /// whether it continues.
    fn apply_verdict(&mut self, now: Duration, peer: PeerId, verdict: TrialVerdict) -> bool {
        let Some(session) = self.peers.sessions.get(peer) else { return true };
        let label = &session.identity.label;
        let (failure, continues) = match verdict {
            TrialVerdict::Try => return true,
            TrialVerdict::GiveUp(failure) => (failure, true),
            TrialVerdict::End(failure) => (failure, false),
        };
        let text = failure.to_string();
        let details = format_args!("{text}");
        self.observability.write(now, LineKind::Error, label, "WorkerLost", 0, details);
        if continues {
            self.note_given_up(now, peer, &text);
            self.outbox.push(peer, ServerToClient::Notice { text });
        } else {
            self.refuse(now, peer, format!("its commands end workers: {text}"));
        }
        continues
    }

    /// Chooses the session to try next, once the previous trial is done or cannot continue.
    /// Sessions that have killed workers in trials come last.
    pub(super) fn choose_trial(&mut self, now: Duration) {
        if !self.trials.is_on {
            return;
        }
        self.peers.sessions.iter_mut().for_each(ClientSession::acquit_if_done);
        self.trials.is_on = self.peers.sessions.iter().any(ClientSession::is_suspected);
        let window = self.limits.lane_window;
        let is_due = |session: &ClientSession| session.is_tried_next() && session.is_ready(window);
        let continues = |session: &&ClientSession| {
            session.is_suspected() && (is_due(session) || !session.flow.is_idle())
        };
        let tried = self.trials.tried.and_then(|tried| self.peers.sessions.get(tried));
        self.trials.begins = None;
        let tried = tried.filter(continues);
        let mut next = tried.filter(|session| !session.account.is_stuck());
        if next.is_none() {
            let idle = self.peers.sessions.iter().filter(|it| is_due(it) && it.flow.is_idle());
            let has_killed = |session: &&ClientSession| {
                session.lineage.as_ref().is_some_and(|lineage| lineage.suspicion.has_killed())
            };
            next = idle.min_by_key(has_killed);
            // A stuck session continues if no other can be tried.
            next = next.or(tried);
        }
        let idle = next.filter(|next| next.flow.is_idle());
        let begins = idle.filter(|_| now < self.trials.since + PATIENCE);
        self.trials.begins = begins.and_then(|next| self.begins(next));
        if let Some(exposed) = idle.filter(|it| self.lacks_spare(it)) {
            let begins = self.trials.since + SPARE;
            if now >= begins {
                let peer = exposed.identity.peer;
                self.give_up_last_chance(now, peer);
                return self.choose_trial(now);
            }
            self.trials.begins = Some(begins);
        }
        let next = next.filter(|_| self.trials.begins.is_none());
        let unprobed =
            next.filter(|it| it.flow.is_idle() && self.trials.probed != Some(placement(it)));
        let unprobed = unprobed.map(|session| (session.identity.peer, placement(session)));
        self.trials.tried = next.map(|next| next.identity.peer);
        if let Some((peer, placement)) = unprobed {
            self.trials.probed = Some(placement);
            self.probe(now, peer);
        }
    }

    /// Probes all workers of the session on trial, with a command that does nothing.
    fn probe(&mut self, now: Duration, peer: PeerId) {
        let Some(session) = self.peers.sessions.get(peer) else { return };
        let slots = &session.planning.catalogue.slots;
        for slot in slots.all().filter(|slot| slots.host(*slot).is_some()) {
            self.streams.push(slot, WorkerCommand::Slots(slots.hosts()));
        }
        self.deliver(now, peer, 0, None);
    }

    /// Returns when a session's trial may begin, if its workers hold the only copies of other
    /// sessions' values, as after other deaths just before.
    fn begins(&self, tried: &ClientSession) -> Option<Duration> {
        let (hosts, is_connected) =
            (hosts(tried), |worker| self.peers.workers.by_id(worker).is_some());
        let mut others = self
            .peers
            .sessions
            .iter()
            .filter(|session| session.identity.peer != tried.identity.peer);
        let is_exposed = others.any(|other| {
            other.lineage.as_ref().is_some_and(|lineage| lineage.is_exposed(&hosts, is_connected))
        });
        is_exposed.then_some(self.trials.since + PATIENCE)
    }

    /// Returns whether a session would repeat a command that killed workers on the last worker,
    /// which other sessions use too.
    fn lacks_spare(&self, tried: &ClientSession) -> bool {
        let lineage = tried.lineage.as_ref();
        self.peers.workers.len() < 2
            && self.peers.sessions.len() > 1
            && lineage.is_some_and(|lineage| lineage.suspicion.has_last_chance())
    }

    /// Gives up a command that killed workers, as there is no spare worker to try it on.
    fn give_up_last_chance(&mut self, now: Duration, peer: PeerId) {
        let Some(ClientSession { lineage: Some(lineage), .. }) = self.peers.sessions.get_mut(peer)
        else {
            return;
        };
        let verdict = lineage.suspicion.give_up_last_chance();
        self.apply_verdict(now, peer, verdict);
    }

    /// Returns when a trial that waits begins at the latest.
    pub(super) fn next_trial(&self) -> Option<Duration> {
        let begins = self.trials.begins;
        let shortages =
            self.peers.sessions.iter().flat_map(|session| session.account.shortages.values());
        let short = shortages.filter(|it| self.trials.is_on && !it.is_long);
        begins.into_iter().chain(short.map(|it| it.begun + PATIENCE)).min()
    }

    /// Begins a trial that has waited.
    pub(super) fn begin_trials(&mut self, now: Duration) {
        if self.next_trial().is_none_or(|due| now < due) {
            return;
        }
        for shortage in
            self.peers.sessions.iter_mut().flat_map(|it| it.account.shortages.values_mut())
        {
            shortage.is_long |= now >= shortage.begun + PATIENCE;
        }
        self.pump(now);
    }

    /// Returns whether a session may be planned beside the one on trial. The session on trial is
    /// planned only while nothing else is in flight, except while it waits for memory, which its
    /// own commands and others' may free.
    pub(super) fn may_plan(&self, session: &ClientSession) -> bool {
        if !self.trials.is_on {
            return true;
        }
        let Some(tried) = self.trials.tried.and_then(|tried| self.peers.sessions.get(tried)) else {
            return !session.is_tried_next();
        };
        let (hosts, is_short) = (hosts(tried), !tried.account.shortages.is_empty());
        if session.identity.peer == tried.identity.peer {
            let mut others = self
                .peers
                .sessions
                .iter()
                .filter(|other| other.identity.peer != tried.identity.peer);
            let runs = |other: &ClientSession| hosts.iter().any(|host| holds_up(other, *host));
            let is_probed = self.trials.probed == Some(placement(tried));
            return is_short || is_probed && tried.flow.is_idle() && !others.any(runs);
        }
        let shares = || self::hosts(session).iter().any(|host| hosts.contains(host));
        !session.is_tried_next() && (is_short || !shares())
    }
}

impl ClientSession {
    /// Returns whether batches of it are to be tried.
    fn is_suspected(&self) -> bool {
        self.lineage.as_ref().is_some_and(|lineage| lineage.suspicion.is_open())
    }

    /// Clears the suspicion once all suspected batches are done.
    fn acquit_if_done(&mut self) {
        let is_restoring = self.is_restoring();
        let Some(lineage) = &mut self.lineage else { return };
        let next = self.queue.batches.front().map_or_else(|| lineage.log.next(), |next| next.batch);
        let is_done = next >= lineage.suspicion.end() && self.flow.is_idle();
        if lineage.suspicion.is_open() && is_done && !is_restoring {
            lineage.suspicion.acquit();
        }
    }
}

/// Isolates the next command of a batch that is planned one command at a time: all commands but the
/// first, with the frees before it, go back to the queue. Returns the failure of that command, if
/// it is given up.
///
/// # Errors
/// A command is not valid.
pub(super) fn isolate_first(
    session: &mut ClientSession,
    batch: &mut UnplannedBatch,
) -> Result<Option<Arc<Failure>>, String> {
    let Some(lineage) = &mut session.lineage else { return Ok(None) };
    let suspicion = &mut lineage.suspicion;
    let is_free = |command: &&ClientCommand| matches!(command, ClientCommand::Free(_));
    let mut place = batch.commands.iter().take_while(is_free).count();
    while let Some(ClientCommand::Invoke(invocation)) = batch.commands.get(place) {
        let first = (invocation.bases[0], invocation.part.first);
        let key = CommandKey::Iteration(first.0, first.1);
        if batch.skipped.contains(&first) || !suspicion.is_expanded(batch.batch, key) {
            break;
        }
        let mut steps = vec![batch.commands.remove(place)];
        let expanded =
            session.planning.templates.expand_all(&mut steps, &mut session.planning.plans);
        expanded.map_err(|error| error.to_string())?;
        batch.commands.splice(place..place, steps);
        place += batch.commands[place..].iter().take_while(is_free).count();
    }
    let rest = batch.commands.split_off((place + 1).min(batch.commands.len()));
    if !rest.is_empty() {
        let weight = std::mem::take(&mut batch.weight);
        let (skipped, slots) = (batch.skipped.clone(), batch.slots);
        let rest = UnplannedBatch {
            batch: batch.batch,
            slots,
            skipped,
            ..UnplannedBatch::new(batch.since, rest, weight)
        };
        session.queue.batches.push_front(rest);
    }
    let Some(command) = batch.commands.last() else { return Ok(None) };
    let key = CommandKey::of(command);
    let given_up = key.and_then(|key| suspicion.failure(key));
    let is_alone = suspicion.covers(batch.batch) && session.flow.is_idle();
    let tried = key.filter(|_| is_alone && given_up.is_none()).map(|key| {
        let failure = describe(&session.planning.catalogue, command);
        TriedCommand { key, batch: batch.batch, failure }
    });
    suspicion.begin(tried);
    Ok(given_up)
}

/// Describes a command for the failure that users see if workers die of it: its operation and its
/// bytes.
fn describe(catalogue: &Catalogue, command: &ClientCommand) -> Failure {
    let meta = |tensor| catalogue.get(tensor).map(|placed| placed.meta).ok();
    match command {
        ClientCommand::Run(instruction) => {
            let operand = |operand: &Operand<_>| match operand {
                Operand::Scalar(scalar) => Some(Operand::Scalar(*scalar)),
                Operand::Tensor(id) => meta(*id).map(Operand::Tensor),
            };
            let metas: Vec<Operand<_>> = instruction.operands.iter().filter_map(operand).collect();
            let made: usize = instruction.results.iter().map(|meta| meta.bytes()).sum();
            let read = metas.iter().filter_map(Operand::tensor).map(|meta| meta.bytes());
            let bytes =
                format!("its results occupy {made} bytes, its operands {}", read.sum::<usize>());
            let (operation, line) = (instruction.describe(&metas), instruction.source);
            let place = Some(instruction.output.0);
            Failure { place, ..Failure::new(operation, bytes, "", line) }
        }
        ClientCommand::Create(create) => {
            let meta = create.content.meta();
            let (operation, bytes) =
                (format!("data of {} {}", meta.dtype, meta.shape), meta.bytes());
            Failure::new(operation, format!("it occupies {bytes} bytes"), "", create.source)
        }
        ClientCommand::Fetch { tensor, line, .. } => match meta(*tensor) {
            Some(meta) => {
                let operation = format!("fetch of {} {}", meta.dtype, meta.shape);
                Failure::new(operation, format!("it occupies {} bytes", meta.bytes()), "", *line)
            }
            None => Failure::new("fetch", "of a failed tensor", "", *line),
        },
        other => {
            let name = match other {
                ClientCommand::Invoke(_) => "iteration",
                ClientCommand::Save(_) => "save",
                ClientCommand::Free(_) => "free",
                _ => "statistics",
            };
            Failure::new(name, "its bytes are not known", "", SourceId::default())
        }
    }
}
