//! The status: the state of the dispatcher, its workers and its sessions at one time.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use gt_ir::entitlement::{Entitlement, ShareWeights};
use gt_ir::publication::PublicationStatus;
use gt_ir::status::{
    AwaitedTensor, SessionStatus, Status, TeamStatus, UserStatus, WINDOWS, Waits, WindowUse,
    WorkerStatus,
};
use gt_ir::{SessionId, WorkerId};

use super::Observability;
use crate::answers::{PendingAnswers, PendingFetch};
use crate::library::{Publication, Publications};
use crate::peer::PeerId;
use crate::rules::Rules;
use crate::sessions::{ClientSession, Sessions};
use crate::shares::DeviceShares;
use crate::workers::Workers;

/// The state that a status describes.
pub(crate) struct Cluster<'a> {
    pub now: Duration,
    pub sessions: &'a Sessions,
    pub workers: &'a Workers,
    pub shares: &'a DeviceShares,
    pub answers: &'a PendingAnswers,
    pub observability: &'a Observability,
    pub rules: &'a Rules,
    pub library: &'a Publications,
}

/// What is in flight to workers.
#[derive(Default)]
struct InFlight {
    /// The workers that have work of each session.
    workers: BTreeMap<SessionId, BTreeSet<WorkerId>>,
    /// The number of batches of all sessions that have parts in flight to each worker.
    batches: BTreeMap<WorkerId, u64>,
}

impl Cluster<'_> {
    /// Returns the status, for the peer `asker`.
    pub fn status(&self, asker: PeerId) -> Status {
        let now = self.now;
        let weights = self.sessions.weights();
        let users = self.users(&weights);
        let reports = &self.observability.reports;
        let in_flight = self.in_flight();
        let viewer = self.viewer(asker);
        let workers = self.workers.iter().map(|worker| WorkerStatus {
            id: worker.id,
            number: worker.number,
            name: worker.name.clone(),
            host: worker.host.clone(),
            rack: worker.rack.clone(),
            is_draining: worker.drain.is_some(),
            homes: worker.sessions,
            in_flight: worker.in_flight,
            batches: in_flight.batches.get(&worker.id).copied().unwrap_or(0),
            busy_since: worker.busy_since,
            busy: worker.busy
                + worker.busy_since.map_or(Duration::ZERO, |since| now.saturating_sub(since)),
            report: reports.get(&worker.id).cloned().unwrap_or_default(),
        });
        Status {
            now,
            asker: self.sessions.get(asker).map(|session| session.identity.number),
            workers: workers.collect(),
            sessions: self
                .sessions
                .iter()
                .map(|one| self.session(one, &weights, &in_flight, viewer))
                .collect(),
            teams: teams(&users),
            users,
            publications: self.publications(asker),
            cluster_events: Vec::new(),
            hour: Vec::new(),
            counters: Box::default(),
            dropped: self.observability.dropped,
        }
    }

    /// Returns the publications that a client may read; all, for a watcher.
    fn publications(&self, asker: PeerId) -> Vec<PublicationStatus> {
        let mut readers: BTreeMap<SessionId, u32> = BTreeMap::new();
        if !self.library.is_empty() {
            let read = self.sessions.iter().flat_map(ClientSession::reads);
            read.for_each(|id| *readers.entry(id).or_default() += 1);
        }
        let of = self.sessions.get(asker).map(|session| &session.identity.entitlement);
        let may_read = |it: &&Publication| of.is_none_or(|of| it.is_for(&of.user, &of.team));
        let readers = |it: &Publication| readers.get(&it.id).copied().unwrap_or(0);
        let mut all: Vec<PublicationStatus> =
            self.library.iter().filter(may_read).map(|it| it.status(readers(it))).collect();
        all.sort_by(|one, other| (&one.name, one.version).cmp(&(&other.name, other.version)));
        all
    }

    /// Returns all users that have, or had, sessions.
    fn users(&self, weights: &ShareWeights) -> Vec<UserStatus> {
        let mut users: BTreeMap<(&str, &str), UserStatus> = BTreeMap::new();
        for ((team, user), device) in self.sessions.past() {
            let entitlement = self.rules.entitlement(user, team);
            let busy = Duration::from_nanos(*device);
            let status = UserStatus { entitlement, busy, ..UserStatus::default() };
            users.insert((team, user), status);
        }
        for ((team, user), windows) in self.shares.past(self.now) {
            add(&mut users.entry((team, user)).or_default().windows, windows);
        }
        for session in self.sessions.iter() {
            let Entitlement { team, user, .. } = &session.identity.entitlement;
            let (bytes, spilled) = session.account.bytes();
            let status = users.entry((team, user)).or_default();
            status.entitlement =
                Entitlement { is_away: false, ..session.identity.entitlement.clone() };
            status.sessions += 1;
            status.share += weights.share(&session.identity.entitlement);
            status.bytes += bytes;
            status.spilled += spilled;
            status.busy += Duration::from_nanos(session.account.device);
            add(&mut status.windows, self.shares.windows(self.now, session.identity.number));
        }
        users.into_values().collect()
    }

    /// Returns what is in flight, in one pass over the slots of all sessions.
    fn in_flight(&self) -> InFlight {
        let mut found = InFlight::default();
        for session in self.sessions.iter() {
            let slots = &session.planning.catalogue.slots;
            for slot in slots.all() {
                let (weight, batches) = session.flow.in_flight(slot);
                let Some(host) = slots.host(slot).filter(|_| weight > 0 || batches > 0) else {
                    continue;
                };
                *found.batches.entry(host).or_default() += batches;
                if weight > 0 {
                    found.workers.entry(session.identity.number).or_default().insert(host);
                }
            }
        }
        found
    }

    /// Returns the user whose errors a peer may read, which quote values and paths; `None` for all
    /// users'.
    fn viewer(&self, asker: PeerId) -> Option<&str> {
        match self.sessions.get(asker) {
            Some(session) => Some(&session.identity.entitlement.user),
            None => self.observability.watching_user(asker),
        }
    }

    fn session(
        &self,
        session: &ClientSession,
        weights: &ShareWeights,
        in_flight: &InFlight,
        viewer: Option<&str>,
    ) -> SessionStatus {
        let waits = self.waits(session);
        let behind = match &waits {
            Waits::Work | Waits::Room | Waits::Value { .. } => self.behind(session, in_flight),
            Waits::Memory { worker, holder, .. } => self.holders(session, worker, holder),
            Waits::Nothing | Waits::Workers | Waits::Reader | Waits::Copies | Waits::Operator => {
                Vec::new()
            }
        };
        let may_read = viewer.is_none_or(|user| user == session.identity.entitlement.user);
        let (bytes, spilled) = session.account.bytes();
        SessionStatus {
            number: session.identity.number,
            name: session.identity.label.clone(),
            origin: session.identity.hello.origin.clone(),
            slots: self.workers.workers_by_slot(session.slots()),
            entitlement: session.identity.entitlement.clone(),
            share: weights.share(&session.identity.entitlement),
            since: session.identity.since,
            instructions: session.account.instructions,
            hot_instructions: session.account.hot_instructions,
            open: session.flow.open,
            queued: session.queue.batches.iter().map(|batch| batch.weight).sum(),
            bytes,
            spilled,
            busy: Duration::from_nanos(session.account.device),
            anticipated: Duration::from_nanos(session.account.anticipation.time),
            anticipations: session.account.anticipation.count,
            windows: self.shares.windows(self.now, session.identity.number),
            recoveries: session.lineage.as_ref().map_or(0, |lineage| lineage.recoveries),
            unkept: session.unprotected_reason(),
            tensors: session.planning.catalogue.tensors().count() as u64,
            named: session.named(),
            waits,
            last_error: session.last_error().filter(|_| may_read),
            behind,
        }
    }

    /// Returns the other sessions with work on the workers that a session has work on; those that
    /// have used the most device time first.
    fn behind(&self, session: &ClientSession, in_flight: &InFlight) -> Vec<String> {
        let of = |session: &ClientSession| in_flight.workers.get(&session.identity.number);
        let Some(own) = of(session) else { return Vec::new() };
        let mut others: Vec<&ClientSession> = self
            .sessions
            .iter()
            .filter(|other| other.identity.number != session.identity.number)
            .filter(|other| of(other).is_some_and(|theirs| !own.is_disjoint(theirs)))
            .collect();
        others
            .sort_by_key(|other| (std::cmp::Reverse(other.account.device), other.identity.number));
        others.into_iter().map(|other| other.identity.label.clone()).collect()
    }

    /// Returns the other sessions that hold memory on a worker, of a holder's quota if one is
    /// named; those that hold the most first.
    fn holders(&self, session: &ClientSession, worker: &str, holder: &str) -> Vec<String> {
        let host = self.workers.iter().find(|found| found.name == worker).map(|found| found.id);
        let held = |other: &ClientSession| -> u64 {
            let slots =
                host.map(|host| other.planning.catalogue.slots.on(host)).unwrap_or_default();
            slots.into_iter().map(|slot| other.account.bytes_in(slot)).sum()
        };
        let is_of = |other: &&ClientSession| {
            let mut quotas = other.identity.entitlement.memory.iter();
            holder.is_empty() || quotas.any(|quota| quota.holder == holder)
        };
        let others =
            self.sessions.iter().filter(|other| other.identity.number != session.identity.number);
        let mut others: Vec<(u64, &ClientSession)> =
            others.filter(is_of).map(|other| (held(other), other)).collect();
        others.retain(|(held, _)| *held > 0);
        others.sort_by_key(|(held, other)| (std::cmp::Reverse(*held), other.identity.number));
        others.into_iter().map(|(_, other)| other.identity.label.clone()).collect()
    }

    fn waits(&self, session: &ClientSession) -> Waits {
        if let Some((slot, shortage)) = session.account.shortages.first_key_value() {
            let host = session.planning.catalogue.slots.host(*slot);
            let worker = host.and_then(|worker| self.workers.by_id(worker));
            let worker = worker.map_or_else(String::new, |worker| worker.name.clone());
            let (bytes, holder) = (shortage.wait.bytes, shortage.wait.holder.clone());
            return Waits::Memory { worker, bytes, holder, since: shortage.since };
        }
        if !session.queue.batches.is_empty() {
            let has_copies = session.lineage.as_ref().is_none_or(|lineage| lineage.has_room());
            return match session.has_worker() && !session.phase.is_rewound() {
                false => Waits::Workers,
                true if session.identity.paused.is_some() => Waits::Operator,
                true if !session.unread.has_room() => Waits::Reader,
                true if !has_copies => Waits::Copies,
                true => Waits::Room,
            };
        }
        if let Some(request) = self.answers.oldest(session.identity.peer) {
            let worker = request
                .worker
                .and_then(|worker| self.workers.get(worker))
                .map(|worker| worker.name.clone());
            return Waits::Value {
                tensor: awaited(session, request),
                worker: worker.unwrap_or_default(),
                since: request.since,
            };
        }
        let works = session.flow.open > 0 && session.flow.is_busy();
        if works { Waits::Work } else { Waits::Nothing }
    }
}

/// Returns the teams of users, which are sorted by them.
fn teams(users: &[UserStatus]) -> Vec<TeamStatus> {
    let of_team = users.chunk_by(|one, other| one.entitlement.team == other.entitlement.team);
    let total = |users: &[UserStatus]| {
        let Entitlement { team, team_weight, .. } = &users[0].entitlement;
        let (name, weight) = (team.clone(), *team_weight);
        let mut total = TeamStatus { name, weight, ..TeamStatus::default() };
        for user in users {
            total.sessions += user.sessions;
            total.share += user.share;
            total.bytes += user.bytes;
            total.spilled += user.spilled;
            total.busy += user.busy;
            add(&mut total.windows, user.windows);
        }
        total
    };
    of_team.map(total).collect()
}

fn add(to: &mut [WindowUse; WINDOWS.len()], windows: [WindowUse; WINDOWS.len()]) {
    to.iter_mut().zip(windows).for_each(|(to, window)| *to += window);
}

/// Returns the tensor of a request, with what computes it.
fn awaited(session: &ClientSession, request: &PendingFetch) -> AwaitedTensor {
    let (operation, line) = match request.source {
        Some(source) => (source.operation.name.to_string(), session.lines.shown(source.line)),
        None => (String::new(), session.lines.shown(request.line)),
    };
    AwaitedTensor { id: request.tensor, operation, line }
}
