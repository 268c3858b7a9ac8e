//! Chooses the session whose batch is planned next, by the policy that also divides the time of
//! devices.

use gt_ir::entitlement::{Entitlement, PolicyKind};
use gt_policy::{Policy, policy};

use crate::peer::PeerId;
use crate::sessions::Sessions;

/// What the planning of a command counts as, in nanoseconds: a session that was idle may catch up on
/// 4,000 commands.
const COST: u64 = 5_000;
/// Sessions take turns with every batch: the planner has no caches that a longer turn keeps warm.
const SLICE: u64 = 0;

/// The order in which sessions are planned.
pub(crate) struct Scheduler {
    policy_kind: PolicyKind,
    policy: Box<dyn Policy<PeerId>>,
}

impl Default for Scheduler {
    fn default() -> Scheduler {
        let policy_kind = PolicyKind::default();
        Scheduler { policy_kind, policy: policy(policy_kind, SLICE) }
    }
}

impl Scheduler {
    /// Sets the scheduling policy. Usage so far is forgotten if it is another one.
    pub fn set_policy(&mut self, policy_kind: PolicyKind, sessions: &Sessions) {
        if policy_kind == self.policy_kind {
            return;
        }
        (self.policy_kind, self.policy) = (policy_kind, policy(policy_kind, SLICE));
        for session in sessions.iter() {
            self.policy.admit(session.identity.peer, &session.identity.entitlement);
            if !session.queue.batches.is_empty() {
                self.policy.wake(session.identity.peer);
            }
        }
    }

    /// Adds a session, or updates its weights.
    pub fn admit(&mut self, peer: PeerId, entitlement: &Entitlement) {
        self.policy.admit(peer, entitlement);
    }

    /// Removes a session.
    pub fn retire(&mut self, peer: PeerId) {
        self.policy.retire(peer);
    }

    /// A session whose queue was empty receives a batch.
    pub fn wake(&mut self, peer: PeerId) {
        self.policy.wake(peer);
    }

    /// Returns the session that is planned next, of those that are `ready`.
    pub fn next(&mut self, ready: &[PeerId]) -> Option<PeerId> {
        self.policy.next(ready).map(|index| ready[index])
    }

    /// Charges a session for a planned batch of this weight.
    pub fn charge(&mut self, peer: PeerId, weight: u64) {
        self.policy.charge(peer, weight.max(1) * COST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entitlement(user: &str, priority: u32) -> Entitlement {
        Entitlement { user: user.into(), priority, ..Entitlement::default() }
    }

    /// Returns how often each of these sessions, which always have batches, is served in 1,200
    /// turns.
    fn served(all: &[Entitlement], policy_kind: PolicyKind) -> Vec<usize> {
        let mut scheduler = Scheduler::default();
        scheduler.set_policy(policy_kind, &Sessions::default());
        let peers: Vec<PeerId> = (0..all.len() as u64).map(PeerId::client).collect();
        for (peer, entitlement) in peers.iter().zip(all) {
            scheduler.admit(*peer, entitlement);
            scheduler.wake(*peer);
        }
        let mut counts = vec![0; all.len()];
        for _ in 0..1200 {
            let next = scheduler.policy.next(&peers).unwrap();
            scheduler.charge(peers[next], 10);
            counts[next] += 1;
        }
        counts
    }

    #[test]
    fn users_get_equal_turns_regardless_of_their_number_of_sessions() {
        let mut all = vec![entitlement("ada", 0); 5];
        all.push(entitlement("eve", 0));
        assert_eq!(served(&all, PolicyKind::Fair), [120, 120, 120, 120, 120, 600]);
        // Sessions without a user count as one user's.
        assert_eq!(served(&vec![Entitlement::default(); 3], PolicyKind::Fair), [400; 3]);
    }

    #[test]
    fn priority_and_fifo_serve_one_rank_alone() {
        let all = [entitlement("ada", 1), entitlement("eve", 2), entitlement("eve", 2)];
        assert_eq!(served(&all, PolicyKind::Priority), [0, 600, 600]);
        assert_eq!(served(&all, PolicyKind::Fifo), [1200, 0, 0]);
    }

    #[test]
    fn an_idle_user_catches_up_on_a_quantum_only() {
        let (ada, eve) = (PeerId::client(1), PeerId::client(2));
        let mut scheduler = Scheduler::default();
        scheduler.admit(ada, &entitlement("ada", 0));
        scheduler.admit(eve, &entitlement("eve", 0));
        for _ in 0..1_000 {
            assert_eq!(scheduler.policy.next(&[ada]), Some(0));
            scheduler.charge(ada, 1_000);
        }
        scheduler.wake(eve);
        let mut alone = 0;
        while scheduler.policy.next(&[ada, eve]) == Some(1) {
            scheduler.charge(eve, 1_000);
            alone += 1;
        }
        assert!((5..=9).contains(&alone), "{alone}");
    }
}
