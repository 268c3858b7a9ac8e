//! Who killed a worker? After a death, the sessions that had commands in flight to the worker are
//! tried, one after the other: one command at a time, while what shares workers with it is held back.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use gt_ir::message::{Failure, Message};
use gt_ir::{ClientCommand, Operand, SourceId, WorkerCommand, WorkerId};

use super::{Dispatcher, PeerId};
use crate::lineage::{Key, Tried, Verdict};
use crate::observability::log::LineKind;
use crate::planner::Catalogue;
use crate::queue::Queued;
use crate::sessions::Session;
use crate::workers::WorkerState;

/// How long after a death a trial waits while others' values are on the same workers alone, and for
/// sessions there that wait for memory.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long after a death the last trial of a command waits for a worker to spare.
const SPARE: Duration = Duration::from_secs(5);

/// Which session is tried.
#[derive(Default)]
pub(super) struct Trials {
    /// Whether any session is suspected.
    is_on: bool,
    tried: Option<PeerId>,
    /// The placement of the session that is tried, once its workers were asked for a sign of life: only
    /// deaths after it can be of what is tried.
    probed: Option<Placement>,
    /// When the last worker died.
    since: Duration,
    /// When the next trial begins at the latest, if it waits.
    begins: Option<Duration>,
}

impl Trials {
    /// Whether a session is tried now.
    pub fn is_under_way(&self) -> bool {
        self.tried.is_some()
    }
}

/// The run of a session, and how often its slots have moved.
type Placement = (u32, u64);

/// The workers that a session is on.
fn hosts(session: &Session) -> Vec<WorkerId> {
    session.catalogue.slots.hosts()
}

fn placement(session: &Session) -> Placement {
    (session.run, session.catalogue.slots.moves())
}

/// Whether a session has commands in flight to a worker that do not wait for memory.
fn runs_on(session: &Session, worker: WorkerId) -> bool {
    let slots = session.catalogue.slots.on(worker).into_iter();
    let mut slots = slots.filter(|slot| !session.shortages.contains_key(slot));
    slots.any(|slot| session.flow.under_way(slot).0 > 0)
}

/// Whether a session has commands in flight to a worker that a trial waits for.
fn holds_up(session: &Session, worker: WorkerId) -> bool {
    runs_on(session, worker) && !session.is_stuck()
}

impl Dispatcher {
    /// The session that is tried, if nothing of others was in flight to a worker that is lost.
    pub(super) fn alone_on(&self, lost: WorkerId) -> Option<PeerId> {
        let tried = self.trials.tried?;
        let mut others = self.sessions.iter().filter(|session| session.peer != tried);
        (!others.any(|other| runs_on(other, lost))).then_some(tried)
    }

    /// A worker is lost to which these batches of a session were in flight: they are tried. Returns
    /// whether the session goes on.
    pub(super) fn suspect(
        &mut self,
        now: Duration,
        peer: PeerId,
        batches: Option<Range<u64>>,
        lost: &WorkerState,
        is_alone: bool,
    ) -> bool {
        let Some(Session { lineage: Some(lineage), .. }) = self.sessions.get_mut(peer) else {
            return true;
        };
        let verdict = lineage.suspicion.hit(batches, &lost.name, is_alone);
        self.trials.is_on |= lineage.suspicion.is_open();
        self.trials.since = now;
        self.judge(now, peer, verdict)
    }

    /// Tells a session's user what is given up. Returns whether the session goes on.
    fn judge(&mut self, now: Duration, peer: PeerId, verdict: Verdict) -> bool {
        let Some(Session { label, .. }) = self.sessions.get(peer) else { return true };
        let (failure, goes_on) = match verdict {
            Verdict::Try => return true,
            Verdict::GiveUp(failure) => (failure, true),
            Verdict::End(failure) => (failure, false),
        };
        let text = failure.to_string();
        let details = format_args!("{text}");
        self.observability.write(now, LineKind::Error, label, "WorkerLost", 0, details);
        if goes_on {
            self.outbox.push(peer, Message::Notice { text });
        } else {
            self.refuse(now, peer, format!("its commands end workers: {text}"));
        }
        goes_on
    }

    /// Chooses the session that is tried next, once the one before is done or cannot go on. Those that
    /// workers died of come last.
    pub(super) fn choose_tried(&mut self, now: Duration) {
        if !self.trials.is_on {
            return;
        }
        self.sessions.iter_mut().for_each(Session::acquit_if_done);
        self.trials.is_on = self.sessions.iter().any(Session::is_suspected);
        let window = self.limits.lane_window;
        let is_due = |session: &Session| session.is_tried_next() && session.is_ready(window);
        let goes_on = |session: &&Session| {
            session.is_suspected() && (is_due(session) || !session.flow.is_idle())
        };
        let tried = self.trials.tried.and_then(|tried| self.sessions.get(tried));
        self.trials.begins = None;
        let tried = tried.filter(goes_on);
        let mut next = tried.filter(|session| !session.is_stuck());
        if next.is_none() {
            let idle = self.sessions.iter().filter(|it| is_due(it) && it.flow.is_idle());
            let has_killed = |session: &&Session| {
                session.lineage.as_ref().is_some_and(|lineage| lineage.suspicion.has_killed())
            };
            next = idle.min_by_key(has_killed);
            // One that is stuck goes on if there is no other.
            next = next.or(tried);
        }
        let idle = next.filter(|next| next.flow.is_idle());
        let begins = idle.filter(|_| now < self.trials.since + PATIENCE);
        self.trials.begins = begins.and_then(|next| self.begins(next));
        if let Some(doubted) = idle.filter(|it| self.lacks_spare(it)) {
            let begins = self.trials.since + SPARE;
            if now >= begins {
                let peer = doubted.peer;
                self.give_up_doubted(now, peer);
                return self.choose_tried(now);
            }
            self.trials.begins = Some(begins);
        }
        let next = next.filter(|_| self.trials.begins.is_none());
        let unprobed =
            next.filter(|it| it.flow.is_idle() && self.trials.probed != Some(placement(it)));
        let unprobed = unprobed.map(|session| (session.peer, placement(session)));
        self.trials.tried = next.map(|next| next.peer);
        if let Some((peer, placement)) = unprobed {
            self.trials.probed = Some(placement);
            self.probe(now, peer);
        }
    }

    /// Has all workers of a session that is tried say that they live, with a command that does
    /// nothing.
    fn probe(&mut self, now: Duration, peer: PeerId) {
        let Some(session) = self.sessions.get(peer) else { return };
        let slots = &session.catalogue.slots;
        for slot in slots.every().filter(|slot| slots.host(*slot).is_some()) {
            self.streams.push(slot, WorkerCommand::Slots(slots.hosts()));
        }
        self.deliver(now, peer, 0, None);
    }

    /// When a session may be tried, if its trial may cost others their values: they are on its workers
    /// alone, as others died just now.
    fn begins(&self, tried: &Session) -> Option<Duration> {
        let (hosts, there) = (hosts(tried), |worker| self.workers.by_id(worker).is_some());
        let mut others = self.sessions.iter().filter(|session| session.peer != tried.peer);
        let is_exposed = others.any(|other| {
            other.lineage.as_ref().is_some_and(|lineage| lineage.is_exposed(&hosts, there))
        });
        is_exposed.then_some(self.trials.since + PATIENCE)
    }

    /// Whether a session would try on the last worker, which others are on as well, what workers have
    /// died of.
    fn lacks_spare(&self, tried: &Session) -> bool {
        let lineage = tried.lineage.as_ref();
        self.workers.len() < 2
            && self.sessions.len() > 1
            && lineage.is_some_and(|lineage| lineage.suspicion.is_doubted())
    }

    /// Gives up what workers have died of, as there is none to spare.
    fn give_up_doubted(&mut self, now: Duration, peer: PeerId) {
        let Some(Session { lineage: Some(lineage), .. }) = self.sessions.get_mut(peer) else {
            return;
        };
        let verdict = lineage.suspicion.give_up_doubted();
        self.judge(now, peer, verdict);
    }

    /// When a trial that waits begins at the latest.
    pub(super) fn next_trial(&self) -> Option<Duration> {
        let begins = self.trials.begins;
        let shortages = self.sessions.iter().flat_map(|session| session.shortages.values());
        let short = shortages.filter(|it| self.trials.is_on && !it.is_long);
        begins.into_iter().chain(short.map(|it| it.begun + PATIENCE)).min()
    }

    /// Begins a trial that has waited.
    pub(super) fn begin_trials(&mut self, now: Duration) {
        if self.next_trial().is_none_or(|due| now < due) {
            return;
        }
        for shortage in self.sessions.iter_mut().flat_map(|it| it.shortages.values_mut()) {
            shortage.is_long |= now >= shortage.begun + PATIENCE;
        }
        self.pump(now);
    }

    /// Whether a session may go on beside the one that is tried. That one does when nothing else is
    /// in flight; if it waits for memory, its own commands and others' may free some.
    pub(super) fn may_plan(&self, session: &Session) -> bool {
        if !self.trials.is_on {
            return true;
        }
        let Some(tried) = self.trials.tried.and_then(|tried| self.sessions.get(tried)) else {
            return !session.is_tried_next();
        };
        let (hosts, is_short) = (hosts(tried), !tried.shortages.is_empty());
        if session.peer == tried.peer {
            let mut others = self.sessions.iter().filter(|other| other.peer != tried.peer);
            let runs = |other: &Session| hosts.iter().any(|host| holds_up(other, *host));
            let is_probed = self.trials.probed == Some(placement(tried));
            return is_short || is_probed && tried.flow.is_idle() && !others.any(runs);
        }
        let shares = || self::hosts(session).iter().any(|host| hosts.contains(host));
        !session.is_tried_next() && (is_short || !shares())
    }
}

impl Session {
    /// Whether batches of it are to be tried.
    fn is_suspected(&self) -> bool {
        self.lineage.as_ref().is_some_and(|lineage| lineage.suspicion.is_open())
    }

    /// Whether it has waited for memory for long, and so may do until its client goes on: its other lanes
    /// wait for that one.
    fn is_stuck(&self) -> bool {
        self.shortages.values().any(|shortage| shortage.is_long)
    }

    /// Nothing is tried any more once all batches that were to be are done.
    fn acquit_if_done(&mut self) {
        let Some(lineage) = &mut self.lineage else { return };
        let next = self.queue.front().map_or_else(|| lineage.log.next(), |next| next.batch);
        let is_done = next >= lineage.suspicion.end() && self.flow.is_idle();
        if lineage.suspicion.is_open() && is_done && !lineage.is_restored() {
            lineage.suspicion.acquit();
        }
    }
}

/// Takes apart a batch of which one command at a time is planned: all but the first, with the frees
/// before it, goes back to the queue. Returns the failure of that command, if it is given up.
///
/// # Errors
/// A command is not valid.
pub(super) fn single_out(
    session: &mut Session,
    batch: &mut Queued,
) -> Result<Option<Arc<Failure>>, String> {
    let Some(lineage) = &mut session.lineage else { return Ok(None) };
    let suspicion = &mut lineage.suspicion;
    let is_free = |command: &&ClientCommand| matches!(command, ClientCommand::Free(_));
    let mut place = batch.commands.iter().take_while(is_free).count();
    while let Some(ClientCommand::Invoke(invocation)) = batch.commands.get(place) {
        let first = (invocation.bases[0], invocation.part.first);
        let key = Key::Iteration(first.0, first.1);
        if batch.skipped.contains(&first) || !suspicion.is_expanded(batch.batch, key) {
            break;
        }
        let mut steps = vec![batch.commands.remove(place)];
        let expanded = session.templates.expand_all(&mut steps, &mut session.plans);
        expanded.map_err(|error| error.to_string())?;
        batch.commands.splice(place..place, steps);
        place += batch.commands[place..].iter().take_while(is_free).count();
    }
    let rest = batch.commands.split_off((place + 1).min(batch.commands.len()));
    if !rest.is_empty() {
        let weight = std::mem::take(&mut batch.weight);
        let (skipped, slots) = (batch.skipped.clone(), batch.slots);
        let rest =
            Queued { batch: batch.batch, slots, skipped, ..Queued::new(batch.since, rest, weight) };
        session.queue.push_front(rest);
    }
    let Some(command) = batch.commands.last() else { return Ok(None) };
    let key = Key::of(command);
    let given_up = key.and_then(|key| suspicion.failure(key));
    let is_alone = suspicion.covers(batch.batch) && session.flow.is_idle();
    let tried = key.filter(|_| is_alone && given_up.is_none()).map(|key| {
        let failure = describe(&session.catalogue, command);
        Tried { key, batch: batch.batch, failure }
    });
    suspicion.begin(tried);
    Ok(given_up)
}

/// What is told of a command if workers die of it: what it is of, and the bytes.
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
                format!("its results take up {made} bytes, its operands {}", read.sum::<usize>());
            let (operation, line) = (instruction.describe(&metas), instruction.source);
            let place = Some(instruction.output.0);
            Failure { place, ..Failure::new(operation, bytes, "", line) }
        }
        ClientCommand::Create(create) => {
            let meta = create.content.meta();
            let (operation, bytes) =
                (format!("data of {} {}", meta.dtype, meta.shape), meta.bytes());
            Failure::new(operation, format!("it takes up {bytes} bytes"), "", create.source)
        }
        ClientCommand::Fetch { tensor, line, .. } => match meta(*tensor) {
            Some(meta) => {
                let operation = format!("fetch of {} {}", meta.dtype, meta.shape);
                Failure::new(operation, format!("it takes up {} bytes", meta.bytes()), "", *line)
            }
            None => Failure::new("fetch", "of a failure", "", *line),
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
