//! The operator's policy: how many sessions and workers users may have, and for how long.

use std::time::Duration;

use gt_ir::entitlement::{Entitlement, PolicyKind};
use gt_ir::message::{ClientHello, ServerToClient, ServerToWorker};

use super::Dispatcher;
use crate::observability::log::LineKind;
use crate::peer::PeerId;
use crate::peers::Peers;
use crate::planner::Host;
use crate::rules::Rules;
use crate::sessions::{ClientSession, DeadlineWarning, Identity, TimeLimit};

/// How long before its end a session is warned: at most this time, and at most this fraction of the
/// limit.
const WARNING: (Duration, u32) = (Duration::from_secs(300), 10);

/// When a session is warned and ended, and why.
struct SessionDeadline {
    limit: TimeLimit,
    allowed: Duration,
    warn: Duration,
    /// When the session ends: not before the warning has stood for its full lead time.
    at: Duration,
    is_warned: bool,
    /// The team, user or key that the limit applies to.
    holder: String,
}

impl SessionDeadline {
    /// Returns how long before its end a session is warned at least.
    fn lead(allowed: Duration) -> Duration {
        WARNING.0.min(allowed / WARNING.1)
    }

    fn warning(&self, label: &str, now: Duration) -> String {
        let end = self.at.max(now.saturating_add(SessionDeadline::lead(self.allowed)));
        let left = in_words(end.saturating_sub(now));
        let (holder, allowed) = (&self.holder, in_words(self.allowed));
        match self.limit {
            TimeLimit::Wall => format!(
                "the session {label} ends in {left}: {holder} may keep one for {allowed}; save what is needed"
            ),
            TimeLimit::Idle => format!(
                "the session {label} has nothing to do and ends in {left}: {holder} may keep one idle for {allowed}"
            ),
        }
    }

    fn reason(&self) -> String {
        let (holder, allowed) = (&self.holder, in_words(self.allowed));
        match self.limit {
            TimeLimit::Wall => {
                format!("it has lasted {allowed}, as long as {holder} may keep a session")
            }
            TimeLimit::Idle => format!(
                "it has had nothing to do for {allowed}, as long as {holder} may keep a session idle"
            ),
        }
    }
}

/// Formats a duration for users.
fn in_words(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 7200.. if seconds % 3600 == 0 => format!("{} h", seconds / 3600),
        seconds @ 120.. => format!("{} min", (seconds + 30) / 60),
        1.. => format!("{:.0} s", time.as_secs_f64()),
        0 => format!("{} ms", time.as_millis()),
    }
}

impl Dispatcher {
    /// Marks a session's client as disconnected, or as back, on all workers.
    pub fn set_away(&mut self, now: Duration, peer: PeerId, is_away: bool) {
        self.mark_away(peer, is_away);
        if is_away {
            self.admit_waiting(now);
        }
    }

    /// As [`Dispatcher::set_away`], without effect on clients that wait for a session.
    pub(super) fn mark_away(&mut self, peer: PeerId, is_away: bool) {
        let Some(session) = self.peers.sessions.get_mut(peer) else { return };
        session.identity.entitlement.is_away = is_away;
        self.admit_everywhere(peer);
    }

    /// Tells all workers what a session is entitled to.
    pub(super) fn admit_everywhere(&mut self, peer: PeerId) {
        let Some(session) = self.peers.sessions.get(peer) else { return };
        for worker in self.peers.workers.iter() {
            self.outbox.push(worker.peer, session.identity.admit());
        }
    }

    /// Divides the device time from now on by what the sessions are entitled to.
    pub(super) fn divide_device_time(&mut self, now: Duration) {
        let Peers { sessions, shares, .. } = &mut self.peers;
        let all = sessions.iter().map(|session| &session.identity);
        let weights = all.map(|identity| (identity.number, &identity.entitlement));
        shares.set_policy(now, self.rules.policy_kind, weights);
    }

    /// Divides the total limit on lineages among all sessions.
    pub(super) fn divide_lineage_limit(&mut self) {
        let Some(limits) = self.limits.lineage else { return };
        let most = limits.bytes.min(limits.total / (self.peers.sessions.len() as u64).max(1));
        let lineages =
            self.peers.sessions.iter_mut().filter_map(|session| session.lineage.as_mut());
        lineages.for_each(|lineage| lineage.set_byte_limit(most));
    }

    /// Sets the policy, for connected sessions too. Returns descriptions of what already exceeds
    /// it: nothing is taken from sessions that have too much, but they get no more.
    pub fn set_rules(&mut self, now: Duration, mut rules: Rules) -> Vec<String> {
        rules.weights = std::mem::take(&mut self.rules.weights);
        let divided = (self.rules.policy_kind != rules.policy_kind).then_some(rules.policy_kind);
        self.has_time_limits = rules.has_time_limits();
        self.rules = rules;
        self.scheduler.set_policy(self.rules.policy_kind, &self.peers.sessions);
        for worker in self.peers.workers.iter() {
            self.outbox.extend(worker.peer, divided.map(ServerToWorker::SetPolicy));
        }
        let mut changed = Vec::new();
        for session in self.peers.sessions.iter_mut() {
            // Warnings under the previous policy are void.
            session.account.warned.clear();
            let Entitlement { user, team, .. } = &session.identity.entitlement;
            let Entitlement { is_away, weight, .. } = session.identity.entitlement;
            let entitlement = Entitlement { is_away, weight, ..self.rules.entitlement(user, team) };
            if session.identity.entitlement != entitlement {
                self.scheduler.admit(session.identity.peer, &entitlement);
                session.identity.entitlement = entitlement;
                changed.push(session.identity.peer);
            }
        }
        changed.into_iter().for_each(|peer| self.admit_everywhere(peer));
        self.divide_device_time(now);
        self.end_revoked(now);
        let exceeded = self.exceeded();
        for text in &exceeded {
            self.observability.write(
                now,
                LineKind::Error,
                "policy",
                "Exceeded",
                0,
                format_args!("{text}"),
            );
        }
        exceeded
    }

    /// Describes what the sessions have beyond the policy.
    fn exceeded(&self) -> Vec<String> {
        let mut all = Vec::new();
        let mut checked = Vec::new();
        for session in self.peers.sessions.iter() {
            let Entitlement { user, team, .. } = &session.identity.entitlement;
            for (holder, rule) in self.rules.of(user, team) {
                if checked.contains(&holder) {
                    continue;
                }
                let own: Vec<&ClientSession> = self
                    .peers
                    .sessions
                    .iter()
                    .filter(|other| holder.has(&other.identity.entitlement))
                    .collect();
                if let Some(most) = rule.sessions.filter(|most| own.len() > *most as usize) {
                    all.push(format!("{holder} has {} sessions, and may have {most}", own.len()));
                }
                if let Some(most) = rule.workers {
                    let is_used = |host| own.iter().any(|of| !of.slots().on(host).is_empty());
                    let used =
                        self.peers.workers.iter().filter(|worker| is_used(worker.id)).count();
                    if used > most as usize {
                        all.push(format!("{holder} is on {used} workers, and may be on {most}"));
                    }
                }
                if let Some(most) = rule.memory {
                    for worker in self.peers.workers.iter() {
                        let on = |session: &&ClientSession| {
                            let slots = session.planning.catalogue.slots.on(worker.id);
                            slots
                                .into_iter()
                                .map(|slot| session.account.bytes_in(slot))
                                .sum::<u64>()
                        };
                        let held: u64 = own.iter().map(on).sum();
                        if held > most {
                            all.push(format!(
                                "{holder} holds {held} bytes on worker {}, and may hold {most}",
                                worker.name
                            ));
                        }
                    }
                }
                checked.push(holder);
            }
        }
        all
    }

    /// Returns what a new session is entitled to.
    ///
    /// # Errors
    /// The user's key is revoked; or the user, the team or the key has as many sessions as it may
    /// have.
    pub(super) fn entitle(&self, hello: &ClientHello) -> Result<Entitlement, String> {
        let user = hello.badge.as_ref().map(|badge| (&*badge.user, &*badge.team));
        let (user, team) = user.unwrap_or_default();
        if let Some(reason) = self.revoked(user) {
            return Err(reason);
        }
        for (holder, rule) in self.rules.of(user, team) {
            let Some(most) = rule.sessions else { continue };
            let own =
                self.peers.sessions.iter().filter(|other| holder.has(&other.identity.entitlement));
            let own: Vec<&ClientSession> = own.collect();
            if own.len() >= most as usize {
                let label = |session: &&ClientSession| {
                    let identity = &session.identity;
                    let state = match (identity.is_detached, identity.entitlement.is_away) {
                        (true, _) => " (detached)",
                        (false, true) => " (whose client is away)",
                        (false, false) => "",
                    };
                    format!("{}{state}", identity.label)
                };
                let labels = own.iter().map(label).collect::<Vec<_>>().join(", ");
                let has = |is_it: fn(&Identity) -> bool| own.iter().any(|of| is_it(&of.identity));
                let is_away = |of: &Identity| of.entitlement.is_away && of.name.is_none();
                let hint = match (has(|of| of.is_detached), has(is_away)) {
                    (true, _) => " (`gt sessions end NAME` ends a detached one)",
                    (false, true) => {
                        ", or wait until the server gives up the one that is away (--grace)"
                    }
                    (false, false) => "",
                };
                return Err(format!(
                    "{holder} may have {most} sessions at a time, and has them: {labels}\n  hint: close one of them{hint}, or ask the operator for more"
                ));
            }
        }
        Ok(self.rules.entitlement(user, team))
    }

    /// Returns the workers that sessions of a user may be on: those that the user's sessions are on
    /// already, then the others with the fewest sessions, up to the policy's number. Workers that are
    /// to end are not among them, unless all are.
    pub(super) fn allowed_hosts(&self, entitlement: &Entitlement) -> Vec<Host> {
        let mut allowed: Vec<_> = self.peers.workers.iter().collect();
        if allowed.iter().any(|worker| worker.drain.is_none()) {
            allowed.retain(|worker| worker.drain.is_none());
        }
        for (holder, rule) in self.rules.of(&entitlement.user, &entitlement.team) {
            let Some(most) = rule.workers else { continue };
            let is_used = |host| {
                let mut own = self
                    .peers
                    .sessions
                    .iter()
                    .filter(|other| holder.has(&other.identity.entitlement));
                own.any(|session| !session.slots().on(host).is_empty())
            };
            allowed.sort_by_key(|worker| (!is_used(worker.id), worker.sessions, worker.id));
            allowed.truncate(most as usize);
        }
        // In the order of their numbers: a session that begins after a worker was replaced is
        // sharded like one that began before.
        allowed.sort_by_key(|worker| worker.number);
        allowed.into_iter().map(|worker| worker.host()).collect()
    }

    /// Warns and ends the sessions whose time is over.
    pub(super) fn end_overdue(&mut self, now: Duration) {
        if !self.has_time_limits {
            return;
        }
        let mut over: Vec<(PeerId, String)> = Vec::new();
        for session in self.peers.sessions.iter_mut() {
            for end in ends(&self.rules, session) {
                if end.is_warned && now >= end.at {
                    over.push((session.identity.peer, end.reason()));
                    break;
                }
                if now >= end.warn && !end.is_warned {
                    session.account.warned.push(DeadlineWarning { limit: end.limit, at: now });
                    let text = end.warning(&session.identity.label, now);
                    let (kind, details) = (LineKind::Send, format_args!("{text}"));
                    self.observability.write(
                        now,
                        kind,
                        &session.identity.label,
                        "Notice",
                        0,
                        details,
                    );
                    self.outbox.push(session.identity.peer, ServerToClient::Notice { text });
                }
            }
        }
        for (peer, reason) in over {
            self.refuse(now, peer, reason);
        }
    }

    /// Returns when [`Dispatcher::end_overdue`] is due next.
    pub(super) fn next_end(&self) -> Option<Duration> {
        if !self.has_time_limits {
            return None;
        }
        let next = |session: &ClientSession| {
            let ends = ends(&self.rules, session);
            let at = |end: SessionDeadline| if end.is_warned { end.at } else { end.warn };
            ends.into_iter().map(at).min()
        };
        self.peers.sessions.iter().filter_map(next).min()
    }

    /// Returns the message that sets a new worker's sharing policy; `None` for the default.
    pub(super) fn policy_kind(&self) -> Option<ServerToWorker> {
        let policy_kind = self.rules.policy_kind;
        (policy_kind != PolicyKind::default()).then_some(ServerToWorker::SetPolicy(policy_kind))
    }
}

/// Returns when a session ends, by each limit that applies to it.
fn ends(rules: &Rules, session: &ClientSession) -> Vec<SessionDeadline> {
    let Entitlement { user, team, .. } = &session.identity.entitlement;
    let mut ends = Vec::new();
    for (holder, rule) in rules.of(user, team) {
        let mut add = |limit, since: Duration, allowed: Duration| {
            let (over, lead) = (since.saturating_add(allowed), SessionDeadline::lead(allowed));
            let warned = session.account.warned.iter().find(|warned| warned.limit == limit);
            let at = warned.map_or(over, |warned| over.max(warned.at.saturating_add(lead)));
            let (warn, is_warned) = (over.saturating_sub(lead), warned.is_some());
            ends.push(SessionDeadline {
                limit,
                allowed,
                warn,
                at,
                is_warned,
                holder: holder.to_string(),
            });
        };
        if let Some(wall) = rule.wall {
            add(TimeLimit::Wall, session.identity.since, wall);
        }
        if let Some(idle) = rule.idle
            && session.flow.open == 0
        {
            add(TimeLimit::Idle, session.account.active, idle);
        }
    }
    ends
}
