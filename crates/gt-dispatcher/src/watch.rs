//! Who watches, and what they are told.
//!
//! As long as somebody watches, or there is a log, clients and workers are asked to note events.
//! A watcher asks for what there is; what it is too slow for is dropped, and counted.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use gt_ir::event::{Event, Kind, Lane, What};
use gt_ir::message::{Message, Named, Role};
use gt_ir::status::Report;
use gt_ir::{Command, TensorId, WorkerId};
use rustc_hash::FxHashMap;

use crate::clocks::Clocks;
use crate::dispatcher::{Dispatcher, PeerId};
use crate::log::word;
use crate::session::Session;

/// How many events wait for a watcher at most.
const MOST: usize = 1 << 16;

/// Gives the time within a message's handling; without it, all of it takes no time.
pub type Clock = Box<dyn Fn() -> Duration + Send>;

/// All watchers, and what is known for them.
#[derive(Default)]
pub(crate) struct Watch {
    pub clock: Option<Clock>,
    watchers: BTreeMap<PeerId, Watcher>,
    pub reports: FxHashMap<WorkerId, Report>,
    pub clocks: Clocks,
    pub dropped: u64,
}

#[derive(Default)]
struct Watcher {
    /// Whether it has asked for events; some look at the status alone.
    wants_events: bool,
    events: VecDeque<Event>,
    dropped: u64,
    /// Whom it was told the names of.
    told: BTreeSet<Named>,
}

impl Watch {
    /// The time, if it is known within a message's handling.
    pub fn time(&self, now: Duration) -> Duration {
        self.clock.as_ref().map_or(now, |clock| clock())
    }

    pub fn has_watchers(&self) -> bool {
        !self.watchers.is_empty()
    }

    /// So many events were lost before they came here.
    fn lose(&mut self, count: u64) {
        self.dropped = self.dropped.saturating_add(count);
        for watcher in self.watchers.values_mut().filter(|watcher| watcher.wants_events) {
            watcher.dropped = watcher.dropped.saturating_add(count);
        }
    }

    pub fn wants_events(&self) -> bool {
        self.watchers.values().any(|watcher| watcher.wants_events)
    }

    /// Keeps an event for all who want events.
    pub fn add(&mut self, event: Event) {
        for watcher in self.watchers.values_mut().filter(|watcher| watcher.wants_events) {
            if watcher.events.len() < MOST {
                watcher.events.push_back(event);
            } else {
                watcher.dropped += 1;
                self.dropped += 1;
            }
        }
    }
}

impl Dispatcher {
    /// Whether events are noted.
    pub(crate) fn is_watched(&self) -> bool {
        self.log.is_some() || self.watch.has_watchers()
    }

    /// Has the time told by a clock while messages are handled, for events.
    pub fn set_clock(&mut self, clock: Clock) {
        self.watch.clock = Some(clock);
    }

    pub(crate) fn add_watcher(&mut self, now: Duration, peer: PeerId) {
        let was_watched = self.is_watched();
        self.watch.watchers.insert(peer, Watcher::default());
        if !was_watched {
            self.observe_all(now, true);
        }
    }

    pub(crate) fn remove_watcher(&mut self, now: Duration, peer: PeerId) {
        self.watch.clocks.forget(peer);
        if self.watch.watchers.remove(&peer).is_some() && !self.is_watched() {
            self.watch.reports.clear();
            self.observe_all(now, false);
        }
    }

    fn observe_all(&mut self, now: Duration, on: bool) {
        self.watch.clocks.clear();
        let workers = self.pool.iter().map(|worker| worker.peer);
        let peers: Vec<PeerId> = self.sessions.keys().copied().chain(workers).collect();
        peers.into_iter().for_each(|peer| self.observe(now, peer, on));
    }

    /// Asks a client or worker to note events, or to stop.
    pub(crate) fn observe(&mut self, now: Duration, peer: PeerId, on: bool) {
        let sent = self.watch.time(now);
        self.watch.clocks.ask(now, peer);
        self.outbox.push((peer, Message::Observe { on, sent }));
    }

    /// A peer has answered what was sent at some time: then its own clock showed `here`.
    pub(crate) fn measure(&mut self, now: Duration, peer: PeerId, sent: Duration, here: Duration) {
        let now = self.watch.time(now);
        if self.watch.clocks.answer(now, peer, sent, here) && self.is_watched() {
            self.observe(now, peer, true);
        }
    }

    /// Gives a watcher the events that it has not got yet.
    pub(crate) fn give_events(&mut self, peer: PeerId, limit: u32) {
        let Some(watcher) = self.watch.watchers.get_mut(&peer) else { return };
        watcher.wants_events = true;
        let count = watcher.events.len().min(limit as usize);
        let events: Vec<Event> = watcher.events.drain(..count).collect();
        let dropped = std::mem::take(&mut watcher.dropped);
        let mut named: BTreeSet<Named> = BTreeSet::new();
        for event in &events {
            named.extend(names(event).into_iter().flatten());
        }
        named.retain(|named| watcher.told.insert(*named));
        let names: Vec<(Named, String)> =
            named.into_iter().filter_map(|named| Some((named, self.name(named)?))).collect();
        if !names.is_empty() {
            self.outbox.push((peer, Message::Names(names)));
        }
        self.outbox.push((peer, Message::Events { events, dropped }));
    }

    fn name(&self, named: Named) -> Option<String> {
        let session = |number: u32| self.sessions.values().find(|s| s.number == number);
        match named {
            Named::Session(number) => session(number).map(|session| session.label.clone()),
            Named::Worker(id) => {
                self.pool.iter().find(|worker| worker.id == id).map(|worker| worker.name.clone())
            }
            Named::Signal { session: owner, number } => {
                let scope = session(owner)?.tensors.signals.get(&number)?;
                Some(word(scope.name()))
            }
        }
    }

    /// Takes events of a client or worker, which can only tell of itself.
    pub(crate) fn take_events(
        &mut self,
        now: Duration,
        peer: PeerId,
        role: Role,
        events: Vec<Event>,
        dropped: u64,
    ) {
        self.watch.lose(dropped);
        let (lane, session) = match role {
            Role::Worker => match self.pool.get(peer) {
                Some(worker) => (Lane::Worker(worker.id), None),
                None => return,
            },
            _ => match self.sessions.get(&peer) {
                Some(session) => (Lane::Client, Some(session.number)),
                None => return,
            },
        };
        for event in events {
            let session = session.unwrap_or(event.session);
            let begin = self.watch.clocks.translate(peer, event.begin);
            let end = self.watch.clocks.translate(peer, event.end);
            self.tell(now, Event { lane, session, begin, end, ..event });
        }
    }

    /// Takes what a worker tells of itself.
    pub(crate) fn take_report(&mut self, peer: PeerId, mut report: Report) {
        // One that was still on its way when the last watcher went counts from another beginning.
        let Some(worker) = self.pool.get(peer).filter(|_| self.is_watched()) else { return };
        for time in [&mut report.at, &mut report.since] {
            *time = self.watch.clocks.translate(peer, *time);
        }
        self.watch.reports.insert(worker.id, report);
    }

    /// Tells everybody of an event.
    pub(crate) fn tell(&mut self, now: Duration, event: Event) {
        if self.log.is_some() {
            self.log_event(now, &event);
        }
        self.watch.add(event);
    }

    fn log_event(&mut self, now: Duration, event: &Event) {
        if event.what == What::Control {
            return;
        }
        let mut log = self.log.take();
        if let Some(log) = &mut log {
            log.event(now, event, &|named| self.name(named));
        }
        self.log = log;
    }

    /// Tells watchers of commands that pass: those of one kind that follow one another as one. The
    /// log has each for itself.
    pub(crate) fn tell_commands(
        &mut self,
        now: Duration,
        kind: Kind,
        lane: Lane,
        session: u32,
        commands: &[Command],
    ) {
        if self.watch.wants_events() {
            let at = self.watch.time(now);
            summarize(at, kind, lane, session, commands, |event| self.watch.add(event));
        }
    }
}

/// Whose names are needed to show an event.
fn names(event: &Event) -> [Option<Named>; 4] {
    let session = (event.session != 0).then_some(Named::Session(event.session));
    let worker = match event.lane {
        Lane::Worker(worker) => Some(Named::Worker(worker)),
        Lane::Client | Lane::Dispatcher => None,
    };
    let other = match event.what {
        What::Send { to, .. } => Some(Named::Worker(to)),
        What::Receive { from, .. } => Some(Named::Worker(from)),
        _ => None,
    };
    let signal = Named::Signal { session: event.session, number: event.signal };
    [session, worker, other, (event.signal != 0).then_some(signal)]
}

/// The events that commands are on their way: a run of one kind is one. Frees, which stand between
/// all others, are one at the end.
fn summarize(
    at: Duration,
    kind: Kind,
    lane: Lane,
    session: u32,
    commands: &[Command],
    mut add: impl FnMut(Event),
) {
    let event = |what, signal, tensor: TensorId| {
        let tensor = tensor.split().1;
        let (count, failed, bytes) = (0, 0, 0);
        Event {
            begin: at,
            end: at,
            kind,
            lane,
            session,
            signal,
            what,
            count,
            failed,
            tensor,
            bytes,
        }
    };
    let mut frees = event(What::Free, 0, TensorId(0));
    let mut open: Option<Event> = None;
    for command in commands {
        let bytes = command.wire_bytes() as u64;
        let (what, signal, tensor) = What::of(command);
        if what == What::Free {
            frees.tensor = if frees.count == 0 { tensor.split().1 } else { frees.tensor };
            frees.count += 1;
            frees.bytes += bytes;
            continue;
        }
        let goes_on = open.is_some_and(|open| (open.what, open.signal) == (what, signal));
        if !goes_on && let Some(done) = open.replace(event(what, signal, tensor)) {
            add(done);
        }
        let open = open.as_mut().expect("it was there, or was put there");
        let count = match command {
            Command::Invoke(_) | Command::Play(_) => {
                u32::try_from(command.weight()).unwrap_or(u32::MAX)
            }
            _ => 1,
        };
        open.count = open.count.saturating_add(count);
        open.bytes += bytes;
    }
    open.into_iter().for_each(&mut add);
    if frees.count > 0 {
        add(frees);
    }
}

/// An event of the dispatcher's own about a session's batch.
pub(crate) fn of_batch(
    kind: Kind,
    session: &Session,
    count: u64,
    begin: Duration,
    end: Duration,
) -> Event {
    Event::of_batch(kind, Lane::Dispatcher, session.number, count, (begin, end))
}
