//! Weighted fair shares of device time: between teams, between the users of a team, and between the
//! sessions of a user.

use gt_ir::entitlement::Entitlement;
use rustc_hash::FxHashMap;

use crate::{Policy, SessionKey};

/// The device time, in nanoseconds, that a session may catch up on after it was idle.
pub const QUANTUM: u64 = 30_000_000;
/// How far, in nanoseconds of device time, a session may get ahead before another is served by a device.
/// Switching less often reuses the warm caches of the device. Less than the quantum, so that a session that was idle is
/// served at once.
pub const SLICE: u64 = 10_000_000;

/// Deficit round robin with the smallest turns there are (start-time fair queueing: Goyal, Vin and
/// Cheng, SIGCOMM 1996), on a tree of teams, users and sessions.
///
/// Each node counts the device time that it has used, divided by its weight (its virtual time). At each
/// level the node with the smallest virtual time is next; the session that was served last continues
/// until it is a slice ahead. A node that was idle is set forward to the virtual time of its siblings minus
/// one quantum: it is served at once, and has no claim to the time that it left unused. If it was further
/// behind when it was last served, it still is: a session that thinks for a moment keeps its claim (lag:
/// Stoica and Abdel-Wahab, Earliest Eligible Virtual Deadline First, 1995).
///
/// A session that computes on several devices is boosted where its lanes on other devices wait for it,
/// as long as it is not a slice ahead. So its lanes run at the same time, without messages between
/// schedulers (implicit coscheduling: Dusseau, Arpaci and Culler, SIGMETRICS 1996).
#[derive(Debug)]
pub struct Fair<K> {
    /// How far a session may get ahead before another is served.
    slice: u64,
    nodes: Vec<ShareNode>,
    free: Vec<usize>,
    teams: FxHashMap<String, usize>,
    users: FxHashMap<(usize, String), usize>,
    /// For each session its nodes: team, user, session.
    sessions: FxHashMap<K, [usize; 3]>,
    /// The virtual time of the team that was served last.
    reached: u64,
    /// The session that was served last.
    last: Option<K>,
    /// The sessions whose lanes on other devices wait, in the order in which they were boosted.
    boosted: Vec<K>,
}

#[derive(Debug, Default, Clone)]
struct ShareNode {
    /// The device time used, divided by the weight.
    used: u64,
    weight: u64,
    /// How far it was behind the virtual time of its siblings when it was last served.
    lag: u64,
    /// The virtual time of the child that was served last.
    reached: u64,
    /// The number of sessions below.
    sessions: u32,
}

/// The scale of [`ShareNode::used`], so that a division by a weight loses little precision.
const SCALE: u64 = 1 << 6;

impl<K> Default for Fair<K> {
    fn default() -> Fair<K> {
        Fair::new(SLICE)
    }
}

impl<K> Fair<K> {
    /// Returns a policy by which a session may get ahead by `slice` nanoseconds before another is
    /// served.
    pub fn new(slice: u64) -> Fair<K> {
        Fair {
            slice,
            nodes: Vec::new(),
            free: Vec::new(),
            teams: FxHashMap::default(),
            users: FxHashMap::default(),
            sessions: FxHashMap::default(),
            reached: 0,
            last: None,
            boosted: Vec::new(),
        }
    }
}

impl<K: SessionKey> Fair<K> {
    /// Whether all nodes of retired sessions were removed.
    pub fn is_empty(&self) -> bool {
        self.sessions.is_empty()
            && self.teams.is_empty()
            && self.users.is_empty()
            && self.free.len() == self.nodes.len()
    }

    fn node(&mut self, weight: u32) -> usize {
        let node = ShareNode { weight: u64::from(weight.max(1)), ..ShareNode::default() };
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

    /// Sets the weights of a session whose team and user have not changed, keeping its virtual time.
    /// Returns whether that is the case.
    fn reweigh(&mut self, session: K, entitlement: &Entitlement) -> bool {
        let Some(&[team, user, node]) = self.sessions.get(&session) else { return false };
        let unchanged = self.teams.get(&entitlement.team) == Some(&team)
            && self.users.get(&(team, entitlement.user.clone())) == Some(&user);
        if unchanged {
            let Entitlement { team_weight, user_weight, weight, .. } = entitlement;
            for (node, weight) in [(team, team_weight), (user, user_weight), (node, weight)] {
                self.nodes[node].weight = u64::from((*weight).max(1));
            }
        }
        unchanged
    }

    /// The virtual time that each level has reached, along a session's path.
    fn reached(&self, [team, user, _]: [usize; 3]) -> [u64; 3] {
        [self.reached, self.nodes[team].reached, self.nodes[user].reached]
    }

    /// Sets the virtual time of each level back to that of the only session, if there is only one:
    /// what others have used before they left is no measure for those that come.
    fn restart_if_alone(&mut self) {
        if self.sessions.len() != 1 {
            return;
        }
        let Some(&[team, user, session]) = self.sessions.values().next() else { return };
        self.reached = self.nodes[team].used;
        self.nodes[team].reached = self.nodes[user].used;
        self.nodes[user].reached = self.nodes[session].used;
        [team, user, session].into_iter().for_each(|node| self.nodes[node].lag = 0);
    }

    /// Whether a session, or its user or team, is more than a slice ahead of another's.
    fn is_ahead(&self, session: K, other: K) -> bool {
        let (Some(own), Some(others)) = (self.sessions.get(&session), self.sessions.get(&other))
        else {
            return true;
        };
        let apart = own.iter().zip(others).find(|(own, other)| own != other);
        apart.is_some_and(|(&own, &other)| {
            let (own, other) = (&self.nodes[own], &self.nodes[other]);
            own.used > other.used.saturating_add(self.slice * SCALE / own.weight)
        })
    }

    /// The sort key of a session: the virtual times of its team, its user and itself.
    fn rank(&self, session: K) -> [(u64, usize); 3] {
        match self.sessions.get(&session) {
            Some(path) => path.map(|node| (self.nodes[node].used, node)),
            None => [(0, 0); 3],
        }
    }
}

impl<K: SessionKey> Policy<K> for Fair<K> {
    fn admit(&mut self, session: K, entitlement: &Entitlement) {
        if self.reweigh(session, entitlement) {
            return;
        }
        self.retire(session);
        let Entitlement { team, team_weight, user, user_weight, weight, .. } = entitlement;
        let found = self.teams.get(team).copied();
        let team_node = found.unwrap_or_else(|| self.node(*team_weight));
        self.teams.entry(team.clone()).or_insert(team_node);
        let key = (team_node, user.clone());
        let found = self.users.get(&key).copied();
        let user_node = found.unwrap_or_else(|| self.node(*user_weight));
        self.users.entry(key).or_insert(user_node);
        let node = self.node(*weight);
        for (node, weight) in [(team_node, team_weight), (user_node, user_weight)] {
            self.nodes[node].weight = u64::from((*weight).max(1));
            self.nodes[node].sessions += 1;
        }
        self.sessions.insert(session, [team_node, user_node, node]);
        self.restart_if_alone();
    }

    fn retire(&mut self, session: K) {
        self.boosted.retain(|other| *other != session);
        let Some([team, user, node]) = self.sessions.remove(&session) else { return };
        self.free.push(node);
        for above in [team, user] {
            self.nodes[above].sessions -= 1;
        }
        if self.nodes[user].sessions == 0 {
            self.users.retain(|_, node| *node != user);
            self.free.push(user);
        }
        if self.nodes[team].sessions == 0 {
            self.teams.retain(|_, node| *node != team);
            self.free.push(team);
        }
        self.restart_if_alone();
    }

    fn wake(&mut self, session: K) {
        // The only session is never behind the virtual time of its levels.
        if self.sessions.len() == 1 {
            return;
        }
        let Some(path) = self.sessions.get(&session).copied() else { return };
        for (node, reached) in path.into_iter().zip(self.reached(path)) {
            let node = &mut self.nodes[node];
            let earliest = reached.saturating_sub(node.lag.max(QUANTUM * SCALE / node.weight));
            node.used = node.used.max(earliest);
        }
    }

    fn boost(&mut self, session: K) {
        if self.sessions.contains_key(&session) && !self.boosted.contains(&session) {
            self.boosted.push(session);
        }
    }

    fn peek(&self, ready: &[K]) -> Option<usize> {
        if ready.len() == 1 {
            return Some(0);
        }
        let (index, session) =
            ready.iter().copied().enumerate().min_by_key(|(_, session)| self.rank(*session))?;
        // Boosted sessions precede the one that was served last.
        for other in self.boosted.iter().copied().chain(self.last) {
            let place = ready.iter().position(|session| *session == other);
            if place.is_some() && !self.is_ahead(other, session) {
                return place;
            }
        }
        Some(index)
    }

    fn next(&mut self, ready: &[K]) -> Option<usize> {
        let index = self.peek(ready)?;
        let session = ready[index];
        self.last = Some(session);
        self.boosted.retain(|other| *other != session);
        if let Some(&[team, user, node]) = self.sessions.get(&session) {
            let used = [team, user, node].map(|node| self.nodes[node].used);
            self.reached = self.reached.max(used[0]);
            self.nodes[team].reached = self.nodes[team].reached.max(used[1]);
            self.nodes[user].reached = self.nodes[user].reached.max(used[2]);
        }
        Some(index)
    }

    fn reserves(&self, session: K, ready: &[K]) -> bool {
        let first = ready.iter().copied().min_by_key(|session| self.rank(*session));
        let goes_before = |other: &K| *other < session && ready.contains(other);
        self.sessions.contains_key(&session)
            && !self.boosted.iter().any(goes_before)
            && first.is_none_or(|first| !self.is_ahead(session, first))
    }

    fn is_behind(&self, session: K, ready: &[K]) -> bool {
        let first = ready.iter().map(|other| self.rank(*other)).min();
        self.sessions.contains_key(&session) && first.is_none_or(|first| self.rank(session) < first)
    }

    fn charge(&mut self, session: K, cost: u64) {
        let Some(path) = self.sessions.get(&session).copied() else { return };
        let mut reached = self.reached;
        for node in path {
            let node = &mut self.nodes[node];
            // A cost of years saturates.
            let share = cost.saturating_mul(SCALE) / node.weight;
            node.used = node.used.saturating_add(share);
            node.lag = reached.saturating_sub(node.used);
            reached = node.reached;
        }
    }
}
