//! The device time of one worker to which sessions are entitled.
//!
//! It is what an ideal scheduler gives that divides the time among the active sessions at every
//! moment, in exact proportion to their weights: generalized processor sharing. A team's part is
//! divided among its active users, and a user's part among the active sessions. A change of a
//! session costs a few additions, however many sessions there are: each group has a virtual time,
//! which is the time that a member has received per unit of its weight.

use std::collections::BTreeMap;

use gt_ir::SessionId;
use gt_ir::entitlement::Entitlement;

/// A session, or a group of these: all of a rank, a team, or a user.
struct Node {
    parent: Option<usize>,
    weight: u64,
    /// The weights of the active members; 1 for an active session.
    active: u64,
    /// The nanoseconds per unit of weight that a member has received; for a session, the
    /// nanoseconds that it has received itself and that were not collected.
    virtual_time: f64,
    /// The parent's virtual time up to which the own one is settled.
    settled: f64,
    /// The number of members, active or not.
    members: usize,
}

/// The division of one worker's time. Times are nanoseconds since the dispatcher started.
#[derive(Default)]
pub(super) struct FluidShares {
    /// The session that has been active since a time without any other beside it: it gets all of
    /// the time, and the groups are idle.
    alone: Option<(SessionId, u64)>,
    /// The time up to which the groups' time is divided.
    time: u64,
    nodes: Vec<Node>,
    free: Vec<usize>,
    /// The first rank with an active session gets all of the time.
    ranks: BTreeMap<u64, usize>,
    /// Teams by rank, and users by team.
    groups: BTreeMap<(usize, String), usize>,
    sessions: BTreeMap<SessionId, usize>,
}

impl FluidShares {
    /// Returns whether a session is active.
    pub fn is_active(&self, session: SessionId) -> bool {
        match self.alone {
            Some((alone, _)) => alone == session,
            None => self.sessions.get(&session).is_some_and(|node| self.nodes[*node].active > 0),
        }
    }

    /// Returns the number of admitted sessions.
    pub fn len(&self) -> usize {
        self.sessions.len()
    }

    /// Returns whether a session is admitted.
    pub fn knows(&self, session: SessionId) -> bool {
        self.sessions.contains_key(&session)
    }

    /// Adds a session, of this rank among others. It replaces an inactive one of the same number.
    pub fn admit(&mut self, session: SessionId, rank: u64, entitlement: &Entitlement) {
        self.retire(session);
        let Entitlement { team, team_weight, user, user_weight, weight, .. } = entitlement;
        let root = match self.ranks.get(&rank) {
            Some(root) => *root,
            None => {
                let root = self.add(None, 1);
                self.ranks.insert(rank, root);
                root
            }
        };
        let team = self.group(root, team, *team_weight);
        let user = self.group(team, user, *user_weight);
        let node = self.add(Some(user), *weight);
        self.sessions.insert(session, node);
    }

    /// Makes an admitted session active.
    pub fn begin(&mut self, now: u64, session: SessionId) {
        match self.alone {
            None if self.served().is_none() => self.alone = Some((session, now)),
            Some((alone, _)) if alone == session => {}
            alone => {
                if let Some((alone, since)) = alone {
                    self.alone = None;
                    self.time = since;
                    self.set_active(alone, true);
                }
                self.advance(now);
                self.set_active(session, true);
            }
        }
    }

    /// Makes a session inactive. Returns the time that it has received and that is not collected.
    pub fn end(&mut self, now: u64, session: SessionId) -> u64 {
        match self.alone {
            Some((alone, since)) if alone == session => {
                self.alone = None;
                now.saturating_sub(since)
            }
            Some(_) => 0,
            None => {
                self.advance(now);
                self.set_active(session, false);
                self.take(session)
            }
        }
    }

    /// Returns what each active session has received up to `now` and that is not collected.
    pub fn collect(&mut self, now: u64) -> Vec<(SessionId, u64)> {
        if let Some((session, since)) = &mut self.alone {
            let received = now.saturating_sub(*since);
            *since = now.max(*since);
            return vec![(*session, received)];
        }
        self.advance(now);
        let active = self.sessions.iter().filter(|(_, node)| self.nodes[**node].active > 0);
        let active: Vec<SessionId> = active.map(|(session, _)| *session).collect();
        active.into_iter().map(|session| (session, self.take(session))).collect()
    }

    /// Removes a session, which is inactive.
    pub fn retire(&mut self, session: SessionId) {
        let Some(node) = self.sessions.remove(&session) else { return };
        debug_assert_eq!(self.nodes[node].active, 0, "an active session is removed");
        let mut next = Some(node);
        while let Some(node) = next.filter(|node| self.nodes[*node].members == 0) {
            next = self.nodes[node].parent;
            if let Some(parent) = next {
                self.nodes[parent].members -= 1;
            }
            self.free.push(node);
        }
        let nodes = &self.nodes;
        self.groups.retain(|_, node| nodes[*node].members > 0);
        self.ranks.retain(|_, node| nodes[*node].members > 0);
    }

    /// Returns the first rank with an active session.
    fn served(&self) -> Option<usize> {
        self.ranks.values().copied().find(|root| self.nodes[*root].active > 0)
    }

    fn add(&mut self, parent: Option<usize>, weight: u32) -> usize {
        // No weight is 0, but a division by 0 would spread to all sessions.
        let weight = u64::from(weight.max(1));
        let (active, virtual_time, settled, members) = (0, 0.0, 0.0, 0);
        let node = Node { parent, weight, active, virtual_time, settled, members };
        if let Some(parent) = parent {
            self.nodes[parent].members += 1;
        }
        match self.free.pop() {
            Some(index) => {
                self.nodes[index] = node;
                index
            }
            None => {
                self.nodes.push(node);
                self.nodes.len() - 1
            }
        }
    }

    fn group(&mut self, parent: usize, name: &str, weight: u32) -> usize {
        let key = (parent, name.to_string());
        if let Some(node) = self.groups.get(&key) {
            return *node;
        }
        let node = self.add(Some(parent), weight);
        self.groups.insert(key, node);
        node
    }

    /// Divides the time up to `now` among the sessions that have been active since the last change.
    fn advance(&mut self, now: u64) {
        let passed = now.saturating_sub(self.time);
        self.time = self.time.max(now);
        if let Some(root) = self.served() {
            let root = &mut self.nodes[root];
            root.virtual_time += passed as f64 / root.active as f64;
        }
    }

    /// Brings the virtual times of a node and of the groups above it up to date.
    fn settle(&mut self, index: usize) {
        let Some(parent) = self.nodes[index].parent else { return };
        self.settle(parent);
        let time = self.nodes[parent].virtual_time;
        let node = &mut self.nodes[index];
        if node.active > 0 {
            let received = node.weight as f64 * (time - node.settled);
            node.virtual_time += received / node.active as f64;
        }
        node.settled = time;
    }

    /// Makes an admitted session active in its groups or inactive, at the time up to which time is
    /// divided.
    fn set_active(&mut self, session: SessionId, is_active: bool) {
        let Some(&node) = self.sessions.get(&session) else { return };
        if (self.nodes[node].active > 0) == is_active {
            return;
        }
        self.settle(node);
        self.nodes[node].active = u64::from(is_active);
        let mut child = node;
        while let Some(parent) = self.nodes[child].parent {
            let weight = self.nodes[child].weight;
            let active = &mut self.nodes[parent].active;
            let was_active = *active > 0;
            *active = if is_active { *active + weight } else { *active - weight };
            if was_active && *active > 0 {
                break;
            }
            child = parent;
        }
    }

    /// Returns the nanoseconds that a session has received since they were taken last.
    fn take(&mut self, session: SessionId) -> u64 {
        let Some(&node) = self.sessions.get(&session) else { return 0 };
        self.settle(node);
        let node = &mut self.nodes[node];
        let whole = node.virtual_time.floor().max(0.0);
        node.virtual_time -= whole;
        whole as u64
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn entitlement(team: u32, user: u32, weight: u32) -> Entitlement {
        Entitlement {
            team: format!("team {team}"),
            team_weight: 1 + team,
            user: format!("user {user}"),
            user_weight: 1 + user,
            weight,
            ..Entitlement::default()
        }
    }

    fn collected(fluid: &mut FluidShares, now: u64, session: SessionId) -> u64 {
        let all = fluid.collect(now);
        all.into_iter().find(|(other, _)| *other == session).map_or(0, |(_, time)| time)
    }

    #[test]
    fn time_is_divided_by_the_weights_of_those_that_are_active() {
        let mut fluid = FluidShares::default();
        let (one, three) = (SessionId(1), SessionId(2));
        fluid.admit(one, 0, &entitlement(0, 0, 1));
        fluid.admit(three, 0, &entitlement(0, 0, 3));
        fluid.begin(0, one);
        fluid.begin(100, three);
        assert_eq!(fluid.end(500, one), 200);
        assert_eq!(collected(&mut fluid, 700, three), 500);
        assert_eq!(collected(&mut fluid, 700, three), 0);
        assert_eq!(fluid.end(710, three), 10);
        assert_eq!(fluid.collect(1000), []);
        fluid.retire(one);
        fluid.retire(three);
        assert!(fluid.groups.is_empty() && fluid.ranks.is_empty());
        assert_eq!(fluid.free.len(), fluid.nodes.len());
    }

    #[test]
    fn the_first_rank_gets_all_of_the_time() {
        let mut fluid = FluidShares::default();
        let (low, high) = (SessionId(1), SessionId(2));
        fluid.admit(low, 7, &entitlement(0, 0, 1));
        fluid.admit(high, 3, &entitlement(0, 0, 1));
        fluid.begin(0, low);
        fluid.begin(10, high);
        assert_eq!(fluid.end(30, high), 20);
        assert_eq!(fluid.end(60, low), 40);
    }

    proptest! {
        /// Each step's time is divided as [`Entitlement::share`] says among the active sessions of
        /// the first rank, whatever sessions come, go, begin and pause.
        #[test]
        fn it_is_the_integral_of_the_shares(
            kinds in prop::collection::vec((0u32..3, 0u32..3, 1u32..6, 0u64..2), 1..9),
            steps in prop::collection::vec((0usize..9, any::<bool>(), 0u64..1_000_000), 1..80),
        ) {
            let all: Vec<(SessionId, u64, Entitlement)> = (1..).zip(&kinds).map(|(number, kind)| {
                let (team, user, weight, rank) = *kind;
                (SessionId(number), rank, entitlement(team, user, weight))
            }).collect();
            let mut fluid = FluidShares::default();
            let mut expected = vec![0.0; all.len()];
            let mut received = vec![0; all.len()];
            let mut now = 0;
            for (index, is_active, passed) in steps {
                let index = index % all.len();
                let (session, rank, entitlement) = &all[index];
                if !fluid.knows(*session) {
                    fluid.admit(*session, *rank, entitlement);
                }
                match is_active {
                    true => fluid.begin(now, *session),
                    false => received[index] += fluid.end(now, *session),
                }
                now += passed;
                let active: Vec<usize> =
                    (0..all.len()).filter(|index| fluid.is_active(all[*index].0)).collect();
                let first = active.iter().map(|index| all[*index].1).min();
                let served: Vec<usize> =
                    active.into_iter().filter(|index| Some(all[*index].1) == first).collect();
                for index in &served {
                    let beside = served.iter().map(|index| &all[*index].2);
                    expected[*index] += passed as f64 * all[*index].2.share(beside);
                }
            }
            for (((session, ..), expected), received) in all.iter().zip(expected).zip(received) {
                let received = (received + fluid.end(now, *session)) as f64;
                prop_assert!((received - expected).abs() < 1.5, "{session:?}: {received}, {expected}");
                fluid.retire(*session);
            }
            prop_assert_eq!(fluid.free.len(), fluid.nodes.len());
        }
    }
}
