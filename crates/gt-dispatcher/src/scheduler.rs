//! Chooses the session whose batch is planned next: by turns of teams, of users in a team, and of the
//! sessions of a user.

use std::cmp::Reverse;

use gt_ir::entitlement::{Entitlement, PolicyKind};
use rustc_hash::FxHashMap;

use crate::dispatcher::PeerId;
use crate::sessions::{Session, Sessions};

/// How many instructions a team or user that had nothing to do may catch up on.
const QUANTUM: u64 = 4096;
/// The scale of [`Account::used`], so that dividing by a weight loses little.
const SCALE: u64 = 1 << 8;

/// What was planned so far: for teams, for users in each, and which session of a user was served last.
#[derive(Default)]
pub(crate) struct Scheduler {
    teams: Level<Level<Option<PeerId>>>,
}

/// Teams, or the users in one.
#[derive(Default)]
struct Level<T> {
    members: FxHashMap<String, Member<T>>,
    /// How far the member that was served last had come.
    reached: u64,
}

#[derive(Default)]
struct Member<T> {
    /// The instructions that were planned, divided by the weight.
    used: u64,
    below: T,
}

impl<T: Default> Level<T> {
    /// What a member has used. Whoever had nothing to do has no claim to what it let pass, but for a
    /// quantum.
    fn used(&self, name: &str) -> u64 {
        let least = self.reached.saturating_sub(QUANTUM * SCALE);
        self.members.get(name).map_or(least, |member| member.used.max(least))
    }

    fn charge(&mut self, name: &str, cost: u64, weight: u32) -> &mut T {
        self.reached = self.used(name);
        let used = self.reached.saturating_add(cost * SCALE / u64::from(weight.max(1)));
        if !self.members.contains_key(name) {
            self.members.insert(name.into(), Member::default());
        }
        let member = self.members.get_mut(name).expect("it is there");
        member.used = used;
        &mut member.below
    }
}

impl Scheduler {
    /// The next session with a batch and room that `may` go on.
    pub fn next(
        &self,
        sessions: &Sessions,
        window: u64,
        policy_kind: PolicyKind,
        may: impl Fn(&Session) -> bool,
    ) -> Option<PeerId> {
        let ready = sessions.iter().filter(|session| session.is_ready(window) && may(session));
        self.choose(ready.map(|session| (session.peer, &session.entitlement)), policy_kind)
    }

    /// The one of these that is served next. With [`PolicyKind::Fair`], the sessions of a user are
    /// served in turn.
    fn choose<'a>(
        &self,
        ready: impl Iterator<Item = (PeerId, &'a Entitlement)>,
        policy_kind: PolicyKind,
    ) -> Option<PeerId> {
        let rank = |(peer, entitlement): &(PeerId, &Entitlement)| {
            let priority = match policy_kind {
                PolicyKind::Fifo => return (Reverse(0), 0, 0, (false, *peer)),
                PolicyKind::Priority => entitlement.priority,
                PolicyKind::Fair => 0,
            };
            let users = self.teams.members.get(&entitlement.team).map(|team| &team.below);
            let user = users.map_or(0, |users| users.used(&entitlement.user));
            let last = users.and_then(|users| users.members.get(&entitlement.user)?.below);
            let turn = (last.is_some_and(|last| *peer <= last), *peer);
            (Reverse(priority), self.teams.used(&entitlement.team), user, turn)
        };
        let mut ready = ready;
        let first = ready.next()?;
        // Most often there is one, which has nobody to be compared with.
        let Some(second) = ready.next() else { return Some(first.0) };
        [first, second].into_iter().chain(ready).min_by_key(rank).map(|(peer, _)| peer)
    }

    /// A session's batch of this weight is planned.
    pub fn charge(&mut self, peer: PeerId, entitlement: &Entitlement, weight: u64) {
        let Entitlement { team, user, team_weight, user_weight, .. } = entitlement;
        let users = self.teams.charge(team, weight.max(1), *team_weight);
        *users.charge(user, weight.max(1), *user_weight) = Some(peer);
    }

    /// Forgets teams and users without sessions.
    pub fn forget(&mut self, sessions: &Sessions) {
        let entitlements = || sessions.iter().map(|session| &session.entitlement);
        for (name, team) in &mut self.teams.members {
            let is_there =
                |user: &str| entitlements().any(|of| of.team == *name && of.user == user);
            team.below.members.retain(|user, _| is_there(user));
        }
        self.teams.members.retain(|_, team| !team.below.members.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entitlement(team: &str, user: &str, user_weight: u32) -> Entitlement {
        Entitlement { team: team.into(), user: user.into(), user_weight, ..Entitlement::default() }
    }

    /// How often each of some sessions, which always have batches, is served in 1,200 turns.
    fn served(all: &[Entitlement], policy_kind: PolicyKind) -> Vec<usize> {
        let mut scheduler = Scheduler::default();
        let mut counts = vec![0; all.len()];
        for _ in 0..1200 {
            let ready = all.iter().enumerate().map(|(at, of)| (PeerId(at as u64), of));
            let peer = scheduler.choose(ready, policy_kind).unwrap();
            scheduler.charge(peer, &all[peer.0 as usize], 10);
            counts[peer.0 as usize] += 1;
        }
        counts
    }

    #[test]
    fn users_have_equal_turns_whatever_number_of_sessions_they_have() {
        let mut all = vec![entitlement("", "ada", 1); 5];
        all.push(entitlement("", "eve", 1));
        assert_eq!(served(&all, PolicyKind::Fair), [120, 120, 120, 120, 120, 600]);
        // Those without a user are one.
        assert_eq!(served(&vec![Entitlement::default(); 3], PolicyKind::Fair), [400; 3]);
    }

    #[test]
    fn teams_come_before_users_and_weights_count() {
        let all = [entitlement("a", "x", 1), entitlement("a", "y", 3), entitlement("b", "z", 1)];
        let counts = served(&all, PolicyKind::Fair);
        assert_eq!(counts[2], 600);
        assert!(counts[1].abs_diff(450) < 5 && counts[0].abs_diff(150) < 5, "{counts:?}");
    }

    #[test]
    fn the_highest_priority_and_the_first_are_served_alone() {
        let first = Entitlement { priority: 1, ..Entitlement::default() };
        let second = Entitlement { priority: 2, ..Entitlement::default() };
        let all = [first, second.clone(), second];
        assert_eq!(served(&all, PolicyKind::Priority), [0, 600, 600]);
        assert_eq!(served(&all, PolicyKind::Fifo), [1200, 0, 0]);
    }

    #[test]
    fn whoever_had_nothing_to_do_has_no_claim_to_what_it_let_pass() {
        let (ada, eve) = (entitlement("", "ada", 1), entitlement("", "eve", 1));
        let mut scheduler = Scheduler::default();
        (0..1_000).for_each(|_| scheduler.charge(PeerId(1), &ada, 1_000));
        let mut alone = 0;
        loop {
            let ready = [(PeerId(1), &ada), (PeerId(2), &eve)].into_iter();
            if scheduler.choose(ready, PolicyKind::Fair) == Some(PeerId(1)) {
                break;
            }
            scheduler.charge(PeerId(2), &eve, 1_000);
            alone += 1;
        }
        assert!((3..=6).contains(&alone), "{alone}");
    }
}
