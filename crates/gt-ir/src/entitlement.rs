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
        let mut teams: BTreeMap<&str, u64> = BTreeMap::new();
        let mut users: BTreeMap<&str, u64> = BTreeMap::new();
        let mut weights = 0u64;
        for other in all {
            teams.insert(&other.team, u64::from(other.team_weight));
            if other.team == self.team {
                users.insert(&other.user, u64::from(other.user_weight));
                weights += if other.user == self.user { u64::from(other.weight) } else { 0 };
            }
        }
        let part = |weight: u32, all: u64| f64::from(weight) / all.max(1) as f64;
        part(self.team_weight, teams.into_values().sum())
            * part(self.user_weight, users.into_values().sum())
            * part(self.weight, weights)
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
