//! The operator's policy: how many sessions and workers users have, and for how long.

use std::time::Duration;

use gt_ir::entitlement::{Entitlement, PolicyKind};
use gt_ir::message::{Hello, Message};

use super::{Dispatcher, PeerId};
use crate::observability::log::LineKind;
use crate::planner::Host;
use crate::rules::Rules;
use crate::sessions::Session;

/// The longest time before a session's end at which it is warned, and the part of the limit.
const WARNING: (Duration, u32) = (Duration::from_secs(300), 10);

/// A limit on a session's time.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Limit {
    /// How long it lasts.
    Wall,
    /// How long it has had nothing to do.
    Idle,
}

/// A session was warned that it ends.
#[derive(Clone, Copy)]
pub(crate) struct Warned {
    limit: Limit,
    at: Duration,
}

impl Warned {
    /// Whether the warning holds only until the session does something.
    pub fn is_of_idleness(&self) -> bool {
        self.limit == Limit::Idle
    }
}

/// When a session is warned and ended, and why.
struct End {
    limit: Limit,
    allowed: Duration,
    warn: Duration,
    /// Not before it was warned for as long as others are.
    at: Duration,
    is_warned: bool,
    /// Whom the limit is for.
    holder: String,
}

impl End {
    /// How long before its end a session is warned at least.
    fn lead(allowed: Duration) -> Duration {
        WARNING.0.min(allowed / WARNING.1)
    }

    fn warning(&self, label: &str, now: Duration) -> String {
        let end = self.at.max(now.saturating_add(End::lead(self.allowed)));
        let left = in_words(end.saturating_sub(now));
        let (holder, allowed) = (&self.holder, in_words(self.allowed));
        match self.limit {
            Limit::Wall => format!(
                "the session {label} ends in {left}: {holder} may keep one for {allowed}; save what is needed"
            ),
            Limit::Idle => format!(
                "the session {label} has nothing to do and ends in {left}: {holder} may keep one idle for {allowed}"
            ),
        }
    }

    fn reason(&self) -> String {
        let (holder, allowed) = (&self.holder, in_words(self.allowed));
        match self.limit {
            Limit::Wall => {
                format!("it has lasted {allowed}, as long as {holder} may keep a session")
            }
            Limit::Idle => format!(
                "it has had nothing to do for {allowed}, as long as {holder} may keep a session idle"
            ),
        }
    }
}

/// A time as people say it.
fn in_words(time: Duration) -> String {
    match time.as_secs() {
        seconds @ 7200.. if seconds % 3600 == 0 => format!("{} h", seconds / 3600),
        seconds @ 120.. => format!("{} min", (seconds + 30) / 60),
        1.. => format!("{:.0} s", time.as_secs_f64()),
        0 => format!("{} ms", time.as_millis()),
    }
}

impl Dispatcher {
    /// A client has lost its connection, or has come back.
    pub fn set_away(&mut self, peer: PeerId, is_away: bool) {
        let Some(session) = self.sessions.get_mut(peer) else { return };
        session.entitlement.is_away = is_away;
        let (session, entitlement) = (session.run, session.entitlement.clone());
        for worker in self.workers.iter() {
            let admission = Message::Admit { session, entitlement: entitlement.clone() };
            self.outbox.push(worker.peer, admission);
        }
    }

    /// Divides what lineages may take up among all sessions.
    pub(super) fn divide_lineage(&mut self) {
        let Some(limits) = self.limits.lineage else { return };
        let most = limits.bytes.min(limits.total / (self.sessions.len() as u64).max(1));
        let lineages = self.sessions.iter_mut().filter_map(|session| session.lineage.as_mut());
        lineages.for_each(|lineage| lineage.limit_to(most));
    }

    /// Sets the policy, for the sessions that are there too. Returns what it finds exceeded: nothing
    /// is taken from anybody, but those who have too much get no more.
    pub fn set_rules(&mut self, now: Duration, rules: Rules) -> Vec<String> {
        let divided = (self.rules.policy_kind != rules.policy_kind).then_some(rules.policy_kind);
        self.ends_sessions = rules.end_sessions();
        self.rules = rules;
        for worker in self.workers.iter() {
            self.outbox
                .0
                .extend(divided.map(|policy_kind| (worker.peer, Message::Divide(policy_kind))));
        }
        for session in self.sessions.iter_mut() {
            // What it was told of its end holds no more.
            session.warned.clear();
            let Entitlement { user, team, .. } = &session.entitlement;
            let is_away = session.entitlement.is_away;
            let entitlement = Entitlement { is_away, ..self.rules.entitlement(user, team) };
            if session.entitlement != entitlement {
                session.entitlement = entitlement.clone();
                let admission = Message::Admit { session: session.run, entitlement };
                for worker in self.workers.iter() {
                    self.outbox.push(worker.peer, admission.clone());
                }
            }
        }
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

    /// What the sessions have beyond the policy.
    fn exceeded(&self) -> Vec<String> {
        let mut all = Vec::new();
        let mut told = Vec::new();
        for session in self.sessions.iter() {
            let Entitlement { user, team, .. } = &session.entitlement;
            for (holder, said) in self.rules.of(user, team) {
                if told.contains(&holder) {
                    continue;
                }
                let own: Vec<&Session> =
                    self.sessions.iter().filter(|other| holder.has(&other.entitlement)).collect();
                if let Some(most) = said.sessions.filter(|most| own.len() > *most as usize) {
                    all.push(format!("{holder} has {} sessions, and may have {most}", own.len()));
                }
                if let Some(most) = said.workers {
                    let is_used = |host| own.iter().any(|of| !of.slots().on(host).is_empty());
                    let used = self.workers.iter().filter(|worker| is_used(worker.id)).count();
                    if used > most as usize {
                        all.push(format!("{holder} is on {used} workers, and may be on {most}"));
                    }
                }
                if let Some(most) = said.memory {
                    for worker in self.workers.iter() {
                        let on = |session: &&Session| {
                            let slots = session.catalogue.slots.on(worker.id);
                            slots.into_iter().map(|slot| session.bytes_in(slot)).sum::<u64>()
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
                told.push(holder);
            }
        }
        all
    }

    /// What a new session is entitled to.
    ///
    /// # Errors
    /// The user, the team or the key has as many sessions as it may have.
    pub(super) fn entitle(&self, hello: &Hello) -> Result<Entitlement, String> {
        let user = hello.badge.as_ref().map(|badge| (&*badge.user, &*badge.team));
        let (user, team) = user.unwrap_or_default();
        for (holder, said) in self.rules.of(user, team) {
            let Some(most) = said.sessions else { continue };
            let own = self.sessions.iter().filter(|other| holder.has(&other.entitlement));
            let own: Vec<&Session> = own.collect();
            if own.len() >= most as usize {
                let label = |session: &&Session| match session.entitlement.is_away {
                    true => format!("{} (whose client is away)", session.label),
                    false => session.label.clone(),
                };
                let labels = own.iter().map(label).collect::<Vec<_>>().join(", ");
                let hint = match own.iter().any(|session| session.entitlement.is_away) {
                    true => ", or wait until the server gives up the one that is away (--grace)",
                    false => "",
                };
                return Err(format!(
                    "{holder} may have {most} sessions at a time, and has them: {labels}\n  hint: close one of them{hint}, or ask the operator for more"
                ));
            }
        }
        Ok(self.rules.entitlement(user, team))
    }

    /// The workers that sessions of a user may be on: those that its sessions are on, and as many of
    /// the others as it may have besides, those with the fewest sessions first.
    pub(super) fn allowed_hosts(&self, entitlement: &Entitlement) -> Vec<Host> {
        let mut allowed: Vec<_> = self.workers.iter().collect();
        for (holder, said) in self.rules.of(&entitlement.user, &entitlement.team) {
            let Some(most) = said.workers else { continue };
            let is_used = |host| {
                let mut own = self.sessions.iter().filter(|other| holder.has(&other.entitlement));
                own.any(|session| !session.slots().on(host).is_empty())
            };
            allowed.sort_by_key(|worker| (!is_used(worker.id), worker.sessions, worker.id));
            allowed.truncate(most as usize);
        }
        // A session that begins after a worker was replaced is cut as one that began before.
        allowed.sort_by_key(|worker| worker.number);
        allowed.into_iter().map(|worker| worker.host()).collect()
    }

    /// Warns and ends the sessions whose time is over.
    pub(super) fn end_overdue(&mut self, now: Duration) {
        if !self.ends_sessions {
            return;
        }
        let mut over: Vec<(PeerId, String)> = Vec::new();
        for session in self.sessions.iter_mut() {
            for end in ends(&self.rules, session) {
                if end.is_warned && now >= end.at {
                    over.push((session.peer, end.reason()));
                    break;
                }
                if now >= end.warn && !end.is_warned {
                    session.warned.push(Warned { limit: end.limit, at: now });
                    let text = end.warning(&session.label, now);
                    let (kind, details) = (LineKind::Send, format_args!("{text}"));
                    self.observability.write(now, kind, &session.label, "Notice", 0, details);
                    self.outbox.push(session.peer, Message::Notice { text });
                }
            }
        }
        for (peer, reason) in over {
            self.refuse(now, peer, reason);
        }
    }

    /// When [`Dispatcher::end_overdue`] is due next.
    pub(super) fn next_end(&self) -> Option<Duration> {
        if !self.ends_sessions {
            return None;
        }
        let next = |session: &Session| {
            let ends = ends(&self.rules, session);
            let at = |end: End| if end.is_warned { end.at } else { end.warn };
            ends.into_iter().map(at).min()
        };
        self.sessions.iter().filter_map(next).min()
    }

    /// How time is divided, for a new worker: nothing, if as by default.
    pub(super) fn policy_kind(&self) -> Option<Message> {
        let policy_kind = self.rules.policy_kind;
        (policy_kind != PolicyKind::default()).then_some(Message::Divide(policy_kind))
    }
}

/// When a session ends, by each limit.
fn ends(rules: &Rules, session: &Session) -> Vec<End> {
    let Entitlement { user, team, .. } = &session.entitlement;
    let mut ends = Vec::new();
    for (holder, said) in rules.of(user, team) {
        let mut add = |limit, since: Duration, allowed: Duration| {
            let (over, lead) = (since.saturating_add(allowed), End::lead(allowed));
            let warned = session.warned.iter().find(|warned| warned.limit == limit);
            let at = warned.map_or(over, |warned| over.max(warned.at.saturating_add(lead)));
            let (warn, is_warned) = (over.saturating_sub(lead), warned.is_some());
            ends.push(End { limit, allowed, warn, at, is_warned, holder: holder.to_string() });
        };
        if let Some(wall) = said.wall {
            add(Limit::Wall, session.since, wall);
        }
        if let Some(idle) = said.idle
            && session.open == 0
        {
            add(Limit::Idle, session.active, idle);
        }
    }
    ends
}
