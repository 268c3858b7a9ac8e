//! Gang scheduling: sessions on several workers take turns on all of their workers at the same time.
//!
//! Workers divide their time by themselves, and each by what sessions have used there. Of several
//! sessions on the same workers they would serve different ones, each of which waits for the other
//! workers. So the dispatcher sets an order of these sessions, the same on all workers, after each time
//! slice: the one that is next by the policy is first, and then those that do not share workers with
//! it, so that they are served beside it (the rows of a matrix of workers and time slices: Ousterhout,
//! Scheduling Techniques for Concurrent Systems, ICDCS 1982).

use std::collections::{BTreeMap, BTreeSet};

use gt_ir::entitlement::{Entitlement, PolicyKind};
use gt_ir::{Incarnation, SessionId, WorkerId};
use gt_policy::{GANG_SLICE, Policy, policy};

/// The sessions on several workers.
#[derive(Default)]
pub(crate) struct Gangs {
    /// Which session is next.
    policy: Option<(PolicyKind, Box<dyn Policy<SessionId>>)>,
    /// The sessions of the last order.
    members: BTreeSet<SessionId>,
    /// What sessions have used on which workers in this time slice, in nanoseconds.
    used: BTreeMap<SessionId, BTreeMap<WorkerId, u64>>,
    /// The orders that workers have.
    orders: BTreeMap<WorkerId, Vec<Incarnation>>,
}

/// A session that may share several workers with others.
pub(crate) struct Gang<'a> {
    pub session: SessionId,
    pub incarnation: Incarnation,
    pub entitlement: &'a Entitlement,
    /// The workers on which it has commands in flight.
    pub workers: BTreeSet<WorkerId>,
}

impl Gangs {
    /// Adds device time that a session has used on a worker. Returns whether the time slice is over:
    /// the session has used it on all of its workers on average, which are several.
    pub fn charge(&mut self, session: SessionId, worker: WorkerId, time: u64) -> bool {
        let used = self.used.entry(session).or_default();
        *used.entry(worker).or_default() += time;
        used.len() > 1 && used.values().sum::<u64>() >= GANG_SLICE * used.len() as u64
    }

    /// Begins a time slice of these sessions. Returns the new orders of workers.
    pub fn begin_slice<'a>(
        &mut self,
        policy_kind: PolicyKind,
        sessions: impl Iterator<Item = Gang<'a>>,
    ) -> Vec<(WorkerId, Vec<Incarnation>)> {
        let used = std::mem::take(&mut self.used);
        let mut gangs: Vec<Gang> = Vec::new();
        for mut gang in sessions {
            // A session that waits for each answer may have no commands in flight at the moment.
            let recent = used.get(&gang.session).into_iter().flat_map(BTreeMap::keys);
            gang.workers.extend(recent);
            if gang.workers.len() > 1 {
                gangs.push(gang);
            }
        }
        let order = self.order(policy_kind, &gangs, &used);
        let mut orders: BTreeMap<WorkerId, Vec<Incarnation>> = BTreeMap::new();
        for gang in order {
            for worker in &gang.workers {
                orders.entry(*worker).or_default().push(gang.incarnation);
            }
        }
        orders.retain(|_, order| order.len() > 1);
        let gone = self.orders.keys().filter(|worker| !orders.contains_key(worker));
        let mut changed: Vec<_> = gone.map(|worker| (*worker, Vec::new())).collect();
        let is_new = |(worker, order): &(&WorkerId, &Vec<Incarnation>)| {
            self.orders.get(worker) != Some(*order)
        };
        changed
            .extend(orders.iter().filter(is_new).map(|(worker, order)| (*worker, order.clone())));
        self.orders = orders;
        changed
    }

    /// Returns the gangs in the order in which they are served.
    fn order<'a, 'b>(
        &mut self,
        policy_kind: PolicyKind,
        gangs: &'b [Gang<'a>],
        used: &BTreeMap<SessionId, BTreeMap<WorkerId, u64>>,
    ) -> Vec<&'b Gang<'a>> {
        if self.policy.as_ref().is_none_or(|(kind, _)| *kind != policy_kind) {
            self.policy = Some((policy_kind, policy(policy_kind, 0)));
            self.members.clear();
            self.orders.clear();
        }
        let Some((_, policy)) = &mut self.policy else { return Vec::new() };
        let members: BTreeSet<SessionId> = gangs.iter().map(|gang| gang.session).collect();
        for gone in self.members.difference(&members) {
            policy.retire(*gone);
        }
        for gang in gangs {
            policy.admit(gang.session, gang.entitlement);
            if !self.members.contains(&gang.session) {
                policy.wake(gang.session);
            }
            let used = used.get(&gang.session).into_iter().flat_map(BTreeMap::values);
            policy.charge(gang.session, used.sum::<u64>() / gang.workers.len() as u64);
        }
        self.members = members;
        let mut left: Vec<&Gang> = gangs.iter().collect();
        let (mut first, mut others): (Vec<&Gang>, Vec<&Gang>) = Default::default();
        while !left.is_empty() {
            let names: Vec<SessionId> = left.iter().map(|gang| gang.session).collect();
            let next =
                if left.len() == gangs.len() { policy.next(&names) } else { policy.peek(&names) };
            let gang = left.remove(next.unwrap_or(0));
            let is_free = first.iter().all(|other| other.workers.is_disjoint(&gang.workers));
            if is_free { first.push(gang) } else { others.push(gang) }
        }
        first.append(&mut others);
        first
    }

    /// Removes a session that has ended.
    pub fn end(&mut self, session: SessionId) {
        self.used.remove(&session);
        if self.members.remove(&session)
            && let Some((_, policy)) = &mut self.policy
        {
            policy.retire(session);
        }
    }

    /// Returns the number of sessions of which something is kept.
    pub fn len(&self) -> usize {
        self.used.len().max(self.members.len())
    }

    /// Forgets what a worker was told, as it is lost.
    pub fn lose_worker(&mut self, worker: WorkerId) {
        self.orders.remove(&worker);
        for used in self.used.values_mut() {
            used.remove(&worker);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Begins a time slice of sessions on these workers, which have used as much there before.
    fn slice(gangs: &mut Gangs, sessions: &[(u32, &[u32], u64)]) -> BTreeMap<u32, Vec<u32>> {
        let entitlement = Entitlement::default();
        for (session, workers, used) in sessions {
            for worker in *workers {
                gangs.charge(SessionId(*session), WorkerId(*worker), *used);
            }
        }
        let all = sessions.iter().map(|(session, workers, _)| Gang {
            session: SessionId(*session),
            incarnation: Incarnation(*session),
            entitlement: &entitlement,
            workers: workers.iter().map(|worker| WorkerId(*worker)).collect(),
        });
        let changed = gangs.begin_slice(PolicyKind::Fair, all);
        let names = |order: Vec<Incarnation>| order.into_iter().map(|session| session.0).collect();
        changed.into_iter().map(|(worker, order)| (worker.0, names(order))).collect()
    }

    fn orders<const N: usize>(orders: [(u32, &[u32]); N]) -> BTreeMap<u32, Vec<u32>> {
        orders.into_iter().map(|(worker, order)| (worker, order.to_vec())).collect()
    }

    #[test]
    fn a_time_slice_is_over_when_a_session_has_used_it_on_all_of_its_workers() {
        let mut gangs = Gangs::default();
        let (one, both) = (SessionId(1), SessionId(2));
        assert!(!gangs.charge(one, WorkerId(0), 9 * GANG_SLICE), "it is on one worker");
        assert!(!gangs.charge(both, WorkerId(0), GANG_SLICE));
        assert!(!gangs.charge(both, WorkerId(1), GANG_SLICE / 2));
        assert!(gangs.charge(both, WorkerId(1), GANG_SLICE / 2));
        gangs.end(one);
        gangs.end(both);
        assert_eq!(gangs.len(), 0);
    }

    #[test]
    fn sessions_on_the_same_workers_take_turns() {
        let mut gangs = Gangs::default();
        let both: &[u32] = &[0, 1];
        let told = slice(&mut gangs, &[(1, both, 50), (2, both, 0), (3, &[0], 70)]);
        assert_eq!(told, orders([(0, &[2, 1]), (1, &[2, 1])]));
        let told = slice(&mut gangs, &[(1, both, 0), (2, both, 20)]);
        assert_eq!(told, orders([]), "it is still behind");
        let told = slice(&mut gangs, &[(1, both, 0), (2, both, 60)]);
        assert_eq!(told, orders([(0, &[1, 2]), (1, &[1, 2])]));
        // One that is alone needs no order.
        let told = slice(&mut gangs, &[(2, both, 60), (1, &[1], 60)]);
        assert_eq!(told, orders([(0, &[]), (1, &[])]));
    }

    #[test]
    fn sessions_on_other_workers_are_served_beside_the_first() {
        let mut gangs = Gangs::default();
        let sessions: [(u32, &[u32], u64); 3] =
            [(1, &[0, 1], 10), (2, &[1, 2], 20), (3, &[2, 3], 30)];
        let told = slice(&mut gangs, &sessions);
        assert_eq!(told, orders([(1, &[1, 2]), (2, &[3, 2])]));
        let told = slice(&mut gangs, &[(1, &[0, 1], 50), (2, &[1, 2], 0), (3, &[2, 3], 50)]);
        assert_eq!(told, orders([(1, &[2, 1]), (2, &[2, 3])]));
        // A worker that comes back is told again.
        gangs.lose_worker(WorkerId(1));
        let told = slice(&mut gangs, &[(1, &[0, 1], 0), (2, &[1, 2], 0), (3, &[2, 3], 0)]);
        assert_eq!(told, orders([(1, &[2, 1])]));
    }

    #[test]
    fn another_policy_decides_anew() {
        let mut gangs = Gangs::default();
        let low = Entitlement::default();
        let high = Entitlement { priority: 5, ..Entitlement::default() };
        for (kind, expected) in [(PolicyKind::Fair, [1, 2]), (PolicyKind::Priority, [2, 1])] {
            let all = [(1, &low), (2, &high)].map(|(session, entitlement)| Gang {
                session: SessionId(session),
                incarnation: Incarnation(session),
                entitlement,
                workers: [0, 1].map(WorkerId).into(),
            });
            let expected = expected.map(Incarnation).to_vec();
            let told = gangs.begin_slice(kind, all.into_iter());
            assert_eq!(told, [0, 1].map(|worker| (WorkerId(worker), expected.clone())));
        }
    }
}
