//! The operator's policy: limits on users, teams and keys.

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use gt_ir::entitlement::{Entitlement, MemoryQuota, PolicyKind};

/// The policy of a cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rules {
    pub policy_kind: PolicyKind,
    /// For each user who is not named, and for all sessions without a user's key together.
    pub default: PolicyRule,
    pub teams: BTreeMap<String, PolicyRule>,
    pub users: BTreeMap<String, PolicyRule>,
    /// For a user within a team: `ada@vision`.
    pub keys: BTreeMap<String, PolicyRule>,
    /// Users whose keys are not good any more, each with the user who inherits what it has
    /// published, if one does.
    pub revoked: BTreeMap<String, Option<String>>,
    /// The weights of users that operators have set, in place of their shares.
    pub weights: BTreeMap<String, u32>,
}

/// The limits of a user, a team or a key; `None` is no limit.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PolicyRule {
    /// The weight among others, 1 if absent.
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
    /// How long a session may be idle.
    pub idle: Option<Duration>,
}

/// The team, user or key that a rule applies to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Holder {
    Team(String),
    User(String),
    Key { user: String, team: String },
}

impl Holder {
    /// Returns whether a session's user is, or belongs to, the holder.
    pub fn has(&self, Entitlement { user, team, .. }: &Entitlement) -> bool {
        self.is(user, team)
    }

    /// Returns whether a user in a team is, or belongs to, the holder.
    pub fn is(&self, user: &str, team: &str) -> bool {
        match self {
            Holder::Team(name) => name == team,
            Holder::User(name) => name == user,
            Holder::Key { user: name, team: of } => name == user && of == team,
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
    /// Returns all rules that apply to a user in a team: the team's, the user's and the key's.
    pub(crate) fn of(&self, user: &str, team: &str) -> Vec<(Holder, &PolicyRule)> {
        let mut all = Vec::new();
        if let Some(rule) = self.teams.get(team) {
            all.push((Holder::Team(team.into()), rule));
        }
        let rule = self.users.get(user).filter(|_| !user.is_empty());
        all.push((Holder::User(user.into()), rule.unwrap_or(&self.default)));
        if let Some(rule) = self.keys.get(&format!("{user}@{team}")) {
            all.push((Holder::Key { user: user.into(), team: team.into() }, rule));
        }
        all
    }

    /// Returns whether a user's key is not good any more.
    pub(crate) fn is_revoked(&self, user: &str) -> bool {
        !user.is_empty() && self.revoked.contains_key(user)
    }

    /// Returns the user who inherits what a revoked user has published: if the heir is revoked as
    /// well, the heir's heir.
    pub(crate) fn heir<'a>(&'a self, user: &str) -> Option<&'a str> {
        let next = |user: &str| self.revoked.get(user)?.as_deref();
        // Users who are each other's heirs have none.
        let heirs = std::iter::successors(next(user), |heir| next(heir)).take(self.revoked.len());
        heirs.into_iter().find(|heir| !self.is_revoked(heir))
    }

    /// Returns the number of slots that a session of a user in a team begins with, if a rule sets
    /// it.
    pub(crate) fn slots(&self, user: &str, team: &str) -> Option<u32> {
        self.of(user, team).iter().rev().find_map(|(_, rule)| rule.slots)
    }

    /// Returns whether any session's wall or idle time is limited.
    pub(crate) fn has_time_limits(&self) -> bool {
        let named = [&self.teams, &self.users, &self.keys].into_iter().flat_map(BTreeMap::values);
        let mut all = named.chain([&self.default]);
        all.any(|rule| rule.wall.is_some() || rule.idle.is_some())
    }

    /// Returns what a user in a team is entitled to on a worker.
    pub fn entitlement(&self, user: &str, team: &str) -> Entitlement {
        let all = self.of(user, team);
        // A key's rule overrides its user's, and that overrides its team's.
        let latest =
            |of: fn(&PolicyRule) -> Option<u32>| all.iter().rev().find_map(|(_, rule)| of(rule));
        let of_user = all.iter().filter(|(holder, _)| !matches!(holder, Holder::Team(_)));
        let share = of_user.rev().find_map(|(_, rule)| rule.share);
        let quota = |(holder, rule): &(Holder, &PolicyRule)| {
            Some(MemoryQuota { holder: holder.to_string(), bytes: rule.memory? })
        };
        let memory = all.iter().filter_map(quota).collect();
        Entitlement {
            team: team.into(),
            team_weight: self.teams.get(team).and_then(|rule| rule.share).unwrap_or(1),
            user: user.into(),
            user_weight: self.weights.get(user).copied().or(share).unwrap_or(1),
            weight: 1,
            priority: latest(|rule| rule.priority).unwrap_or(0),
            memory,
            is_away: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_specific_rule_applies() {
        let rule = |share, priority| PolicyRule { share, priority, ..PolicyRule::default() };
        let rules = Rules {
            default: rule(Some(2), None),
            teams: [("vision".into(), rule(Some(5), Some(7)))].into(),
            users: [("ada".into(), rule(Some(3), None))].into(),
            keys: [("ada@vision".into(), rule(Some(4), None))].into(),
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
        let heirs = [
            ("ada", Some("bob")),
            ("bob", Some("eve")),
            ("dan", None),
            ("fay", Some("gus")),
            ("gus", Some("fay")),
        ];
        let revoked = heirs.map(|(user, heir)| (user.to_string(), heir.map(str::to_string)));
        let with_heirs = Rules { revoked: revoked.into(), ..Rules::default() };
        let found = ["ada", "bob", "dan", "fay", "eve"].map(|user| with_heirs.heir(user));
        assert_eq!(found, [Some("eve"), Some("eve"), None, None, None]);
        let quota = |holder: &str, bytes| MemoryQuota { holder: holder.into(), bytes };
        let quotas = rules.entitlement("ada", "vision").memory;
        assert_eq!(quotas, [quota("team vision", 9), quota("user ada", 7)]);
    }
}
