//! What sessions are entitled to on a worker.

use crate::record;

/// How a device's time is divided between sessions.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Division {
    /// Equal shares, by weights.
    #[default]
    Fair,
    /// Whoever came first is served until nothing is left to do.
    Fifo,
    /// Those of the highest priority are served alone; equals get fair shares.
    Priority,
}

record!(enum Division { 0 => Fair, 1 => Fifo, 2 => Priority });

impl Division {
    pub const ALL: [Division; 3] = [Division::Fair, Division::Fifo, Division::Priority];

    /// Its name in a policy file.
    pub const fn name(self) -> &'static str {
        match self {
            Division::Fair => "fair",
            Division::Fifo => "fifo",
            Division::Priority => "priority",
        }
    }
}

/// What a session is entitled to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Standing {
    pub team: String,
    /// The weight of the team among teams.
    pub team_weight: u32,
    pub user: String,
    /// The weight of the user within the team.
    pub user_weight: u32,
    /// The weight of the session among those of its user.
    pub weight: u32,
    /// With [`Division::Priority`], the highest is served first.
    pub priority: u32,
}

record!(struct Standing { team, team_weight, user, user_weight, weight, priority });

impl Default for Standing {
    /// That of whoever has no user's key.
    fn default() -> Standing {
        Standing {
            team: String::new(),
            team_weight: 1,
            user: String::new(),
            user_weight: 1,
            weight: 1,
            priority: 0,
        }
    }
}

/// What a session has used of a worker.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Usage {
    /// Device time, in nanoseconds.
    pub device: u64,
    /// The bytes held.
    pub bytes: u64,
}

record!(struct Usage { device, bytes });
