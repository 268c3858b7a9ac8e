//! A bounded event queue for each watcher.
//!
//! Watchers poll. Events that exceed a slow watcher's queue are dropped and counted.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use gt_ir::event::{Event, EventKind, Subject, Track, What};
use gt_ir::message::{Named, ServerToWatcher};
use gt_ir::{SessionId, TensorId};

use crate::peer::PeerId;
use crate::sessions::ClientSession;

/// The capacity of a watcher's queue.
const MOST: usize = 1 << 16;

/// All watchers.
#[derive(Default)]
pub(crate) struct Watchers(BTreeMap<PeerId, WatcherQueue>);

#[derive(Default)]
struct WatcherQueue {
    /// The user by whose key it watches, if any: then it sees the events of that user alone.
    user: Option<String>,
    /// The sessions of that user, as of the last poll. Numbers are not used again.
    sessions: BTreeSet<SessionId>,
    /// Whether it has polled for events; some watchers use the status alone.
    wants_events: bool,
    events: VecDeque<Event>,
    dropped: u64,
    /// The entities whose names it has received.
    named_before: BTreeSet<Named>,
}

impl WatcherQueue {
    fn may_see(&self, event: &Event) -> bool {
        self.user.is_none() || self.sessions.contains(&event.session)
    }
}

impl Watchers {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn add(&mut self, peer: PeerId, user: Option<String>) {
        self.0.insert(peer, WatcherQueue { user, ..WatcherQueue::default() });
    }

    /// Returns the user by whose key a watcher watches.
    pub fn user(&self, peer: PeerId) -> Option<&str> {
        self.0.get(&peer)?.user.as_deref()
    }

    /// Returns the watchers with a user's key, with the user.
    pub fn users(&self) -> Vec<(PeerId, String)> {
        let users = self.0.iter().filter_map(|(peer, of)| Some((*peer, of.user.clone()?)));
        users.collect()
    }

    pub fn remove(&mut self, peer: PeerId) {
        self.0.remove(&peer);
    }

    /// Returns whether any watcher has polled for events.
    pub fn want_events(&self) -> bool {
        self.0.values().any(|watcher| watcher.wants_events)
    }

    /// Counts events that were dropped at the emitter.
    pub fn count_dropped(&mut self, count: u64) {
        for watcher in self.0.values_mut().filter(|watcher| watcher.wants_events) {
            watcher.dropped = watcher.dropped.saturating_add(count);
        }
    }

    /// Queues an event for all watchers of events that may see it. Returns how many queues were
    /// full.
    pub fn enqueue(&mut self, event: Event) -> u64 {
        let mut dropped = 0;
        let is_for = |watcher: &&mut WatcherQueue| watcher.wants_events && watcher.may_see(&event);
        for watcher in self.0.values_mut().filter(is_for) {
            if watcher.events.len() < MOST {
                watcher.events.push_back(event);
            } else {
                watcher.dropped += 1;
                dropped += 1;
            }
        }
        dropped
    }

    /// Sends the names of a session's hot paths again with the next events of them.
    pub fn forget_hot_paths(&mut self, of: SessionId) {
        let is_of = |named: &Named| matches!(named, Named::Template { session, .. } | Named::Plan { session, .. } if *session == of);
        for watcher in self.0.values_mut() {
            watcher.named_before.retain(|named| !is_of(named));
        }
    }

    /// Takes up to `limit` queued events, preceded by the names they need that are new to the
    /// watcher. `sessions` returns those of a user.
    pub fn poll(
        &mut self,
        peer: PeerId,
        limit: u32,
        sessions: impl Fn(&str) -> BTreeSet<SessionId>,
        name: impl Fn(Named) -> Option<String>,
    ) -> Vec<ServerToWatcher> {
        let Some(watcher) = self.0.get_mut(&peer) else { return Vec::new() };
        watcher.wants_events = true;
        if let Some(user) = &watcher.user {
            watcher.sessions = sessions(user);
        }
        let count = watcher.events.len().min(limit as usize);
        let events: Vec<Event> = watcher.events.drain(..count).collect();
        let dropped = std::mem::take(&mut watcher.dropped);
        let mut named: BTreeSet<Named> = BTreeSet::new();
        for event in &events {
            named.extend(names(event).into_iter().flatten());
        }
        named.retain(|named| watcher.named_before.insert(*named));
        let names: Vec<(Named, String)> =
            named.into_iter().filter_map(|named| Some((named, name(named)?))).collect();
        let names = (!names.is_empty()).then_some(ServerToWatcher::Names(names));
        names.into_iter().chain([ServerToWatcher::Events { events, dropped }]).collect()
    }
}

/// Returns the entities whose names are needed to show an event.
fn names(event: &Event) -> [Option<Named>; 4] {
    let session = (event.session != SessionId::NONE).then_some(Named::Session(event.session));
    let worker = match event.track {
        Track::Worker(worker) => Some(Named::Worker(worker)),
        Track::Client | Track::Dispatcher => None,
    };
    let other = match event.what {
        What::Send { to: slot, .. } | What::Receive { from: slot, .. } => {
            Some(Named::Slot { session: event.session, slot })
        }
        What::HotPath { number, .. } => Some(hot_path(event, number)),
        _ => None,
    };
    let signal = Named::Signal { session: event.session, number: event.signal };
    [session, worker, other, (event.signal != 0).then_some(signal)]
}

/// Returns the name of an event's hot path: clients and workers number them differently.
pub(super) fn hot_path(event: &Event, number: u32) -> Named {
    let session = event.session;
    match (event.track, event.kind) {
        (Track::Worker(_), _) | (_, EventKind::Dispatch) => Named::Plan { session, number },
        _ => Named::Template { session, number },
    }
}

/// Summarizes commands in transit as events: one for each run of one kind and signal. Frees are
/// interspersed everywhere, so all of them become one event at the end.
pub(super) fn summarize(
    at: Duration,
    kind: EventKind,
    track: Track,
    session: SessionId,
    commands: impl Iterator<Item = (Subject, u64, u64)>,
    mut add: impl FnMut(Event),
) {
    let event = |what, signal, tensor: TensorId| {
        let (count, failed, bytes) = (0, 0, 0);
        Event {
            begin: at,
            end: at,
            kind,
            track,
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
    for (Subject { what, signal, tensor }, count, bytes) in commands {
        if what == What::Free {
            frees.tensor = if frees.count == 0 { tensor } else { frees.tensor };
            frees.count += 1;
            frees.bytes += bytes;
            continue;
        }
        let continues = open.is_some_and(|open| (open.what, open.signal) == (what, signal));
        if !continues && let Some(done) = open.replace(event(what, signal, tensor)) {
            add(done);
        }
        let open = open.as_mut().expect("set above");
        let count = u32::try_from(count).unwrap_or(u32::MAX);
        open.count = open.count.saturating_add(count);
        open.bytes += bytes;
    }
    open.into_iter().for_each(&mut add);
    if frees.count > 0 {
        add(frees);
    }
}

/// Returns an event of the dispatcher about a session's batch.
pub(crate) fn of_batch(
    kind: EventKind,
    session: &ClientSession,
    count: u64,
    begin: Duration,
    end: Duration,
) -> Event {
    Event::of_batch(kind, Track::Dispatcher, session.identity.number, count, (begin, end))
}
