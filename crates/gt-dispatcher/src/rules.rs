//! What users, teams and keys may have: the operator's policy.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use gt_ir::entitlement::{Entitlement, MemoryQuota, PolicyKind};

/// The policy of a cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    pub policy_kind: PolicyKind,
    /// For each user who is not named, and for all without a user's key together.
    pub default: PolicyRule,
    pub teams: BTreeMap<String, PolicyRule>,
    pub users: BTreeMap<String, PolicyRule>,
    /// For a user within a team: `ada@vision`.
    pub keys: BTreeMap<String, PolicyRule>,
}

/// What a user, a team or a key may have; `None` is no limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyRule {
    /// The weight among others, 1 if not given.
    pub share: Option<u32>,
    /// With [`PolicyKind::Priority`], the highest is served first.
    pub priority: Option<u32>,
    /// Sessions at a time.
    pub sessions: Option<u32>,
    /// Workers that its sessions are on.
    pub workers: Option<u32>,
    /// The slots that each of its sessions begins with.
    pub slots: Option<u32>,
    /// Bytes that its sessions may hold together on each worker.
    pub memory: Option<u64>,
    /// How long a session may last.
    pub wall: Option<Duration>,
    /// How long a session may have nothing to do.
    pub idle: Option<Duration>,
}

/// Whom an rule is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Holder {
    Team(String),
    User(String),
    Key { user: String, team: String },
}

impl Holder {
    /// Whether a session's user is, or belongs to, the holder.
    pub fn has(&self, entitlement: &Entitlement) -> bool {
        match self {
            Holder::Team(team) => entitlement.team == *team,
            Holder::User(user) => entitlement.user == *user,
            Holder::Key { user, team } => entitlement.user == *user && entitlement.team == *team,
        }
    }
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Holder::Team(team) => write!(f, "team {team}"),
            Holder::User(user) if user.is_empty() => f.write_str("all without a user's key"),
            Holder::User(user) => write!(f, "user {user}"),
            Holder::Key { user, team } => write!(f, "key {user}@{team}"),
        }
    }
}

impl Rules {
    /// All that is said of a user in a team: of the team, the user and the key.
    pub(crate) fn of(&self, user: &str, team: &str) -> Vec<(Holder, &PolicyRule)> {
        let mut all = Vec::new();
        if let Some(said) = self.teams.get(team) {
            all.push((Holder::Team(team.into()), said));
        }
        let said = self.users.get(user).filter(|_| !user.is_empty());
        all.push((Holder::User(user.into()), said.unwrap_or(&self.default)));
        if let Some(said) = self.keys.get(&format!("{user}@{team}")) {
            all.push((Holder::Key { user: user.into(), team: team.into() }, said));
        }
        all
    }

    /// The slots that a session of a user in a team begins with, if that is said.
    pub(crate) fn slots(&self, user: &str, team: &str) -> Option<u32> {
        self.of(user, team).iter().rev().find_map(|(_, said)| said.slots)
    }

    /// Whether anybody's time is limited.
    pub(crate) fn end_sessions(&self) -> bool {
        let named = [&self.teams, &self.users, &self.keys].into_iter().flat_map(BTreeMap::values);
        let mut all = named.chain([&self.default]);
        all.any(|said| said.wall.is_some() || said.idle.is_some())
    }

    /// What a user in a team is entitled to on a worker.
    pub fn entitlement(&self, user: &str, team: &str) -> Entitlement {
        let all = self.of(user, team);
        // What is said of a key comes before what is said of its user, and that before its team's.
        let latest =
            |of: fn(&PolicyRule) -> Option<u32>| all.iter().rev().find_map(|(_, said)| of(said));
        let of_user = all.iter().filter(|(holder, _)| !matches!(holder, Holder::Team(_)));
        let share = of_user.rev().find_map(|(_, said)| said.share);
        let quota = |(holder, said): &(Holder, &PolicyRule)| {
            Some(MemoryQuota { holder: holder.to_string(), bytes: said.memory? })
        };
        let memory = all.iter().filter_map(quota).collect();
        Entitlement {
            team: team.into(),
            team_weight: self.teams.get(team).and_then(|said| said.share).unwrap_or(1),
            user: user.into(),
            user_weight: share.unwrap_or(1),
            weight: 1,
            priority: latest(|said| said.priority).unwrap_or(0),
            memory,
            is_away: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_nearer_to_the_session_counts() {
        let said = |share, priority| PolicyRule { share, priority, ..PolicyRule::default() };
        let rules = Rules {
            default: said(Some(2), None),
            teams: [("vision".into(), said(Some(5), Some(7)))].into(),
            users: [("ada".into(), said(Some(3), None))].into(),
            keys: [("ada@vision".into(), said(Some(4), None))].into(),
            ..Rules::default()
        };
        let ada = rules.entitlement("ada", "vision");
        assert_eq!((ada.team_weight, ada.user_weight, ada.priority), (5, 4, 7));
        let ada = rules.entitlement("ada", "");
        assert_eq!((ada.team_weight, ada.user_weight, ada.priority), (1, 3, 0));
        let eve = rules.entitlement("eve", "vision");
        assert_eq!((eve.team_weight, eve.user_weight), (5, 2));
        assert_eq!(Rules::default().entitlement("", ""), Entitlement::default());
        let memory = |bytes| PolicyRule { memory: Some(bytes), ..PolicyRule::default() };
        let rules = Rules {
            default: memory(7),
            teams: [("vision".into(), memory(9))].into(),
            ..Rules::default()
        };
        let quota = |holder: &str, bytes| MemoryQuota { holder: holder.into(), bytes };
        let quotas = rules.entitlement("ada", "vision").memory;
        assert_eq!(quotas, [quota("team vision", 9), quota("user ada", 7)]);
    }
}
