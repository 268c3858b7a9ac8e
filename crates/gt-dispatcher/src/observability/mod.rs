//! Observability: the instruction log, events for watchers, and the status.
//!
//! While there is a watcher, workers are asked to emit reports; while there is a log or a watcher
//! that polls for events, they and clients are asked to emit events, too. Their timestamps are of the
//! emitter's clock, and are translated to the dispatcher's.
//!
//! - [`cluster_events`]: losses, recoveries and moves; [`hour`]: the last hour.
//! - [`log`]: the instruction log; [`watchers`]: event queues of watchers; [`status`]: the state of the
//!   cluster; [`clocks`]: clock offsets; [`batches`]: the dispatcher's own events.

mod batches;
mod clocks;
mod cluster_events;
mod hour;
pub mod log;
mod status;
mod watchers;

use std::collections::VecDeque;
use std::time::Duration;

use gt_ir::event::{EmitLevel, Event, EventKind, Subject, Track, What};
use gt_ir::message::Role;
use gt_ir::status::Report;
use gt_ir::wire::Record;
use gt_ir::{ClientCommand, Incarnation, SessionId, WorkerCommand, WorkerId};
use rustc_hash::FxHashMap;

use crate::peer::{PeerId, PeerOutbox, printable};
use crate::peers::Peers;
use clocks::PeerClocks;
use cluster_events::ClusterEvents;
use hour::LastHour;
use log::{LineKind, Log};
use watchers::{Watchers, summarize};

pub(crate) use hour::HourCounters;
pub(crate) use status::Cluster;
use watchers::of_batch;

/// Reads the time while a message is being handled. Without one, handling takes no time.
pub type Clock = Box<dyn Fn() -> Duration + Send>;

/// The log, the watchers, and the state needed to serve them.
#[derive(Default)]
pub(crate) struct Observability {
    pub log: Option<Log>,
    pub clock: Option<Clock>,
    watchers: Watchers,
    /// The latest report of each worker.
    pub reports: FxHashMap<WorkerId, Report>,
    clocks: PeerClocks,
    pub cluster_events: ClusterEvents,
    pub hour: LastHour,
    /// Events dropped because a queue was full, here or at the emitter.
    pub dropped: u64,
    /// The commands of each invocation that is about to be sent, for the log.
    pub expansions: VecDeque<(WorkerId, Vec<WorkerCommand>)>,
}

impl Observability {
    pub fn new(log: Option<Log>) -> Observability {
        Observability { log, ..Observability::default() }
    }

    /// Returns the current time, or `now` without a clock.
    pub fn time(&self, now: Duration) -> Duration {
        self.clock.as_ref().map_or(now, |clock| clock())
    }

    /// Returns whether there is a log or a watcher.
    pub fn is_on(&self) -> bool {
        self.log.is_some() || !self.watchers.is_empty()
    }

    /// Returns whether any watcher has polled for events.
    pub fn wants_events(&self) -> bool {
        self.watchers.want_events()
    }

    /// Returns whether there is a log, or a watcher that has polled for events.
    pub fn takes_events(&self) -> bool {
        self.log.is_some() || self.wants_events()
    }

    /// Returns what clients and workers are to emit.
    fn level(&self) -> EmitLevel {
        if self.takes_events() {
            EmitLevel::Events
        } else if self.is_on() {
            EmitLevel::Reports
        } else {
            EmitLevel::Nothing
        }
    }

    /// Writes a line about a link to the log.
    pub fn write(
        &mut self,
        now: Duration,
        kind: LineKind,
        party: &str,
        command: &str,
        bytes: usize,
        details: std::fmt::Arguments,
    ) {
        if let Some(log) = &mut self.log {
            log.write(now, kind, party, command, bytes, details);
        }
    }

    /// Adds a watcher; the first has workers emit reports.
    pub fn add_watcher(
        &mut self,
        now: Duration,
        outbox: &mut PeerOutbox,
        peer: PeerId,
        user: Option<String>,
        peers: &Peers,
    ) {
        let before = self.level();
        self.watchers.add(peer, user);
        self.leave_level(now, outbox, before, peers);
    }

    /// Forgets a peer; peers stop emitting what no other watcher wants.
    pub fn remove_peer(
        &mut self,
        now: Duration,
        outbox: &mut PeerOutbox,
        peer: PeerId,
        peers: &Peers,
    ) {
        let before = self.level();
        self.clocks.forget(peer);
        self.watchers.remove(peer);
        self.leave_level(now, outbox, before, peers);
    }

    /// Asks all peers for what they are to emit, if that is no longer what it was `before`.
    fn leave_level(
        &mut self,
        now: Duration,
        outbox: &mut PeerOutbox,
        before: EmitLevel,
        peers: &Peers,
    ) {
        let level = self.level();
        if level == before {
            return;
        }
        if level == EmitLevel::Nothing {
            self.reports.clear();
        }
        if level == EmitLevel::Nothing || before == EmitLevel::Nothing {
            self.clocks.clear();
        }
        peers.all().into_iter().for_each(|peer| self.observe(now, outbox, peer));
    }

    /// Asks a peer for what it is to emit; also probes its clock if it emits anything with times.
    pub fn observe(&mut self, now: Duration, outbox: &mut PeerOutbox, peer: PeerId) {
        let (sent, level) = (self.time(now), self.level());
        match level {
            EmitLevel::Events => self.clocks.ask(now, peer),
            EmitLevel::Reports if peer.role == Role::Worker => self.clocks.ask(now, peer),
            EmitLevel::Reports | EmitLevel::Nothing => self.clocks.forget(peer),
        }
        outbox.observe(peer, level, sent);
    }

    /// Probes the clocks that are due.
    pub fn tick(&mut self, now: Duration, outbox: &mut PeerOutbox) {
        if self.is_on() {
            let due = self.clocks.due(now);
            due.into_iter().for_each(|peer| self.observe(now, outbox, peer));
        }
    }

    /// Handles a peer's answer to the probe of time `sent`; its own clock showed `here`.
    pub fn measure(
        &mut self,
        now: Duration,
        outbox: &mut PeerOutbox,
        peer: PeerId,
        sent: Duration,
        here: Duration,
    ) {
        let at = self.time(now);
        if self.clocks.answer(at, peer, sent, here) && self.is_on() {
            self.observe(now, outbox, peer);
        }
    }

    /// Sends watchers the names of a session's hot paths again: their lines have become known.
    pub fn forget_hot_paths(&mut self, session: SessionId) {
        self.watchers.forget_hot_paths(session);
    }

    /// Returns the user by whose key a watcher watches; `None` if it watches all users.
    pub fn watching_user(&self, peer: PeerId) -> Option<&str> {
        self.watchers.user(peer)
    }

    /// Returns the watchers who watch by a user's key, with the user.
    pub fn watching_users(&self) -> Vec<(PeerId, String)> {
        self.watchers.users()
    }

    /// Sends a watcher its queued events; the first that polls has all peers emit them.
    pub fn send_events(
        &mut self,
        now: Duration,
        outbox: &mut PeerOutbox,
        peer: PeerId,
        limit: u32,
        peers: &Peers,
    ) {
        let sessions = |user: &str| {
            let own = peers.sessions.iter().map(|session| &session.identity);
            let own = own.filter(|identity| identity.entitlement.user == user);
            own.map(|identity| identity.number).collect()
        };
        let before = self.level();
        let messages = self.watchers.poll(peer, limit, sessions, |named| peers.name(named));
        messages.into_iter().for_each(|message| outbox.push(peer, message));
        self.leave_level(now, outbox, before, peers);
    }

    /// Receives a client's events, and stamps them with its session.
    pub fn take_client_events(
        &mut self,
        now: Duration,
        peer: PeerId,
        events: Vec<Event>,
        dropped: u64,
        peers: &Peers,
    ) {
        let Some(session) = peers.sessions.get(peer) else { return };
        self.count_dropped(dropped);
        for event in events {
            let event = Event { track: Track::Client, session: session.identity.number, ..event };
            self.emit_translated(now, peer, event, peers);
        }
    }

    /// Receives a worker's events, and stamps them with the worker and the sessions of its lanes.
    pub fn take_worker_events(
        &mut self,
        now: Duration,
        peer: PeerId,
        events: Vec<(Incarnation, Event)>,
        dropped: u64,
        peers: &Peers,
    ) {
        let Some(worker) = peers.workers.get(peer) else { return };
        self.count_dropped(dropped);
        for (incarnation, event) in events {
            let session = peers.sessions.session_of(incarnation);
            let event = Event { track: Track::Worker(worker.id), session, ..event };
            self.emit_translated(now, peer, event, peers);
        }
    }

    /// Counts events that were dropped at their emitter.
    fn count_dropped(&mut self, dropped: u64) {
        self.dropped = self.dropped.saturating_add(dropped);
        self.watchers.count_dropped(dropped);
    }

    /// Emits an event in times of a peer's clock.
    fn emit_translated(&mut self, now: Duration, peer: PeerId, event: Event, peers: &Peers) {
        let begin = self.clocks.translate(peer, event.begin);
        let end = self.clocks.translate(peer, event.end);
        self.emit(now, Event { begin, end, ..event }, peers);
    }

    /// Stores a worker's report.
    pub fn take_report(&mut self, worker: WorkerId, peer: PeerId, mut report: Report) {
        // A report in flight when the last watcher left counts from another start: drop it.
        if self.is_on() {
            for time in [&mut report.at, &mut report.since] {
                *time = self.clocks.translate(peer, *time);
            }
            if let Some(gpu) = &mut report.gpu {
                (gpu.name, gpu.uuid) = (printable(&gpu.name), printable(&gpu.uuid));
            }
            self.reports.insert(worker, report);
        }
    }

    /// Logs an event, and queues it for watchers.
    pub fn emit(&mut self, now: Duration, event: Event, peers: &Peers) {
        if let Some(log) = &mut self.log
            && event.what != What::Control
        {
            log.event(now, &event, &|named| peers.name(named));
        }
        self.enqueue(event);
    }

    /// Queues an event for watchers only.
    pub fn enqueue(&mut self, event: Event) {
        self.dropped += self.watchers.enqueue(event);
    }

    /// Logs and emits that a client's batch was received. The log gets a line for each command;
    /// watchers get one event for each run of commands of one kind.
    pub fn received(
        &mut self,
        now: Duration,
        label: &str,
        session: SessionId,
        batch: &[ClientCommand],
    ) {
        if let Some(log) = &mut self.log {
            batch.iter().for_each(|command| log.client_command(now, label, command));
        }
        if self.wants_events() {
            let at = self.time(now);
            let subjects = batch.iter().map(|command| {
                (
                    Subject::of_client(command),
                    count(command.weight(), is_invoked(command)),
                    command.length() as u64,
                )
            });
            let mut events = Vec::new();
            summarize(at, EventKind::Receive, Track::Client, session, subjects, |event| {
                events.push(event);
            });
            events.into_iter().for_each(|event| self.enqueue(event));
        }
    }

    /// Logs and emits that commands are sent to a worker.
    pub fn dispatched(
        &mut self,
        now: Duration,
        (worker, name): (WorkerId, &str),
        session: SessionId,
        commands: &[WorkerCommand],
    ) {
        if let Some(log) = &mut self.log {
            for command in commands {
                let mut expansion = Vec::new();
                if let WorkerCommand::Invoke(_) = command {
                    let place = self.expansions.iter().position(|(of, _)| *of == worker);
                    let found = place.and_then(|place| self.expansions.remove(place));
                    expansion = found.map_or_else(Vec::new, |(_, commands)| commands);
                }
                log.worker_command(now, name, command, &expansion);
            }
        }
        if self.wants_events() {
            let at = self.time(now);
            let subjects = commands.iter().map(|command| {
                let is_invoked = matches!(command, WorkerCommand::Invoke(_));
                (
                    Subject::of_worker(command),
                    count(command.weight(), is_invoked),
                    command.length() as u64,
                )
            });
            let (kind, track) = (EventKind::Dispatch, Track::Worker(worker));
            let mut events = Vec::new();
            summarize(at, kind, track, session, subjects, |event| events.push(event));
            events.into_iter().for_each(|event| self.enqueue(event));
        }
    }
}

fn is_invoked(command: &ClientCommand) -> bool {
    matches!(command, ClientCommand::Invoke(_))
}

/// Returns how many instructions a command stands for.
fn count(weight: u64, is_invoked: bool) -> u64 {
    if is_invoked { weight } else { 1 }
}
