//! Entitlements of sessions: their shares of device time and their memory quotas on a worker.

use std::collections::BTreeMap;

use crate::ids::Incarnation;
use crate::instruction::SourceId;
use crate::operation::Meta;
use crate::record;

/// How a device's time is divided between sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum PolicyKind {
    /// Equal shares, by weights.
    #[default]
    Fair,
    /// Sessions are served in the order of arrival, each until it has no work left.
    Fifo,
    /// Only sessions of the highest priority are served; equals get fair shares.
    Priority,
}

record!(enum PolicyKind { 0 => Fair, 1 => Fifo, 2 => Priority });

impl PolicyKind {
    pub const ALL: [PolicyKind; 3] = [PolicyKind::Fair, PolicyKind::Fifo, PolicyKind::Priority];

    /// Returns its name in a policy file.
    pub const fn name(self) -> &'static str {
        match self {
            PolicyKind::Fair => "fair",
            PolicyKind::Fifo => "fifo",
            PolicyKind::Priority => "priority",
        }
    }
}

/// The entitlement of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Entitlement {
    pub team: String,
    /// The weight of the team among teams.
    pub team_weight: u32,
    pub user: String,
    /// The weight of the user within the team.
    pub user_weight: u32,
    /// The weight of the session among those of its user.
    pub weight: u32,
    /// With [`PolicyKind::Priority`], the highest is served first.
    pub priority: u32,
    /// The quotas that limit its bytes; each counts the bytes of all sessions of its holder.
    pub memory: Vec<MemoryQuota>,
    /// Whether its client is disconnected: its tensors are spilled first.
    pub is_away: bool,
}

record!(struct Entitlement { team, team_weight, user, user_weight, weight, priority, memory, is_away });

impl Entitlement {
    /// Returns a session's share of a worker's time and memory beside `all` sessions there, itself
    /// included, by the weights: between 0 and 1.
    pub fn share<'a>(&self, all: impl Iterator<Item = &'a Entitlement>) -> f64 {
        ShareWeights::of(all).share(self)
    }
}

/// The weights of sessions, of which each one's share follows without a look at all others.
#[derive(Clone, Debug, Default)]
pub struct ShareWeights<'a> {
    teams: BTreeMap<&'a str, TeamWeights<'a>>,
    /// The sum of the teams' weights.
    sum: u64,
}

/// The weights within a team.
#[derive(Clone, Debug, Default)]
struct TeamWeights<'a> {
    weight: u32,
    /// Each user's weight, and the sum of those of the user's sessions.
    users: BTreeMap<&'a str, (u32, u64)>,
    /// The sum of the users' weights.
    sum: u64,
}

impl<'a> ShareWeights<'a> {
    /// Returns the weights of sessions.
    pub fn of(all: impl Iterator<Item = &'a Entitlement>) -> ShareWeights<'a> {
        let mut teams: BTreeMap<&str, TeamWeights> = BTreeMap::new();
        for one in all {
            let team = teams.entry(&one.team).or_default();
            team.weight = one.team_weight;
            let (weight, sessions) = team.users.entry(&one.user).or_default();
            *weight = one.user_weight;
            *sessions += u64::from(one.weight);
        }
        for team in teams.values_mut() {
            team.sum = team.users.values().map(|(weight, _)| u64::from(*weight)).sum();
        }
        let sum = teams.values().map(|team| u64::from(team.weight)).sum();
        ShareWeights { teams, sum }
    }

    /// Returns the share of one of the sessions, as [`Entitlement::share`].
    pub fn share(&self, of: &Entitlement) -> f64 {
        let team = self.teams.get(of.team.as_str());
        let user = team.and_then(|team| team.users.get(of.user.as_str()));
        let part = |weight: u32, all: u64| f64::from(weight) / all.max(1) as f64;
        part(of.team_weight, self.sum)
            * part(of.user_weight, team.map_or(0, |team| team.sum))
            * part(of.weight, user.map_or(0, |(_, sessions)| *sessions))
    }
}

impl Default for Entitlement {
    /// The entitlement of users without a key of their own.
    fn default() -> Entitlement {
        Entitlement {
            team: String::new(),
            team_weight: 1,
            user: String::new(),
            user_weight: 1,
            weight: 1,
            priority: 0,
            memory: Vec::new(),
            is_away: false,
        }
    }
}

/// A session's usage of a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Device time, in nanoseconds.
    pub device: u64,
    /// The bytes held in the worker's memory.
    pub bytes: u64,
    /// The spilled bytes.
    pub spilled: u64,
    pub anticipation: Anticipation,
}

record!(struct Usage { device, bytes, spilled, anticipation });

/// How a worker's device was kept idle for a session that was about to ask again. The time is a part of
/// the session's device time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Anticipation {
    /// Nanoseconds.
    pub time: u64,
    /// How often it was.
    pub count: u64,
}

record!(struct Anticipation { time, count });

impl std::ops::AddAssign for Anticipation {
    fn add_assign(&mut self, other: Anticipation) {
        self.time = self.time.saturating_add(other.time);
        self.count = self.count.saturating_add(other.count);
    }
}

/// The bytes that a team, a user or a key may hold on each worker, in all sessions together.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryQuota {
    /// The holder of the quota, such as `user ada`.
    pub holder: String,
    pub bytes: u64,
}

record!(struct MemoryQuota { holder, bytes });

/// A tensor that uses memory.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Holding {
    pub incarnation: Incarnation,
    /// The line that created it; only its client can resolve it.
    pub line: SourceId,
    pub meta: Meta,
    /// The bytes of its buffer, which may be longer than the tensor.
    pub bytes: u64,
}

record!(struct Holding { incarnation, line, meta, bytes });

/// The memory that another session holds, for out-of-memory errors.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Other {
    /// The worker knows no names.
    pub incarnation: Incarnation,
    /// Its name, such as `train.py ada@box #1`, filled in by the dispatcher.
    pub label: String,
    pub bytes: u64,
}

record!(struct Other { incarnation, label, bytes });

/// A lane's wait for memory.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MemoryWait {
    /// Distinguishes the waits of a lane.
    pub number: u64,
    /// The bytes that it needs.
    pub bytes: u64,
    /// The holder of the exhausted quota, such as `user ada`; empty if the worker's memory is
    /// exhausted.
    pub holder: String,
}

record!(struct MemoryWait { number, bytes, holder });
