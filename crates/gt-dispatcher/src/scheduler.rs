//! Chooses the session whose batch is planned next: by turns of teams, of users in a team, and of a
//! user's sessions.

use std::cmp::Reverse;

use gt_ir::entitlement::{Entitlement, PolicyKind};
use rustc_hash::FxHashMap;

use crate::peer::PeerId;
use crate::sessions::{ClientSession, Sessions};

/// How many instructions a team or user that had no work may catch up on.
const QUANTUM: u64 = 4096;
/// The scale of [`Account::used`], so that dividing by a weight loses little.
const SCALE: u64 = 1 << 8;

/// The work planned so far: for teams, for users in each, and which session of a user was served
/// last.
#[derive(Default)]
pub(crate) struct Scheduler {
    teams: AccountLevel<AccountLevel<Option<PeerId>>>,
}

/// The accounts of all teams, or of the users in one.
#[derive(Default)]
struct AccountLevel<T> {
    accounts: FxHashMap<String, Account<T>>,
    /// [`Account::used`] of the account that was served last.
    reached: u64,
}

#[derive(Default)]
struct Account<T> {
    /// The instructions that were planned, divided by the weight.
    used: u64,
    children: T,
}

impl<T: Default> AccountLevel<T> {
    /// Returns an account's use. An account without work does not save up the turns that it misses,
    /// except for one quantum.
    fn used(&self, name: &str) -> u64 {
        let least = self.reached.saturating_sub(QUANTUM * SCALE);
        self.accounts.get(name).map_or(least, |account| account.used.max(least))
    }

    fn charge(&mut self, name: &str, cost: u64, weight: u32) -> &mut T {
        self.reached = self.used(name);
        let used = self.reached.saturating_add(cost * SCALE / u64::from(weight.max(1)));
        if !self.accounts.contains_key(name) {
            self.accounts.insert(name.into(), Account::default());
        }
        let account = self.accounts.get_mut(name).expect("inserted above");
        account.used = used;
        &mut account.children
    }
}

impl Scheduler {
    /// Returns the next session that has a batch, room for it, and the consent of `may`.
    pub fn next(
        &self,
        sessions: &Sessions,
        window: u64,
        policy_kind: PolicyKind,
        may: impl Fn(&ClientSession) -> bool,
    ) -> Option<PeerId> {
        let ready = sessions.iter().filter(|session| session.is_ready(window) && may(session));
        self.choose(
            ready.map(|session| (session.identity.peer, &session.identity.entitlement)),
            policy_kind,
        )
    }

    /// Returns the session that is served next. With [`PolicyKind::Fair`], the sessions of a user
    /// are served in turn.
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
            let users = self.teams.accounts.get(&entitlement.team).map(|team| &team.children);
            let user = users.map_or(0, |users| users.used(&entitlement.user));
            let last = users.and_then(|users| users.accounts.get(&entitlement.user)?.children);
            let turn = (last.is_some_and(|last| *peer <= last), *peer);
            (Reverse(priority), self.teams.used(&entitlement.team), user, turn)
        };
        let mut ready = ready;
        let first = ready.next()?;
        // Usually one session is ready, and there is nothing to compare.
        let Some(second) = ready.next() else { return Some(first.0) };
        [first, second].into_iter().chain(ready).min_by_key(rank).map(|(peer, _)| peer)
    }

    /// Charges a planned batch of this weight to the session's user and team.
    pub fn charge(&mut self, peer: PeerId, entitlement: &Entitlement, weight: u64) {
        let Entitlement { team, user, team_weight, user_weight, .. } = entitlement;
        let users = self.teams.charge(team, weight.max(1), *team_weight);
        *users.charge(user, weight.max(1), *user_weight) = Some(peer);
    }

    /// Forgets teams and users without sessions.
    pub fn forget(&mut self, sessions: &Sessions) {
        let entitlements = || sessions.iter().map(|session| &session.identity.entitlement);
        for (name, team) in &mut self.teams.accounts {
            let has_sessions =
                |user: &str| entitlements().any(|of| of.team == *name && of.user == user);
            team.children.accounts.retain(|user, _| has_sessions(user));
        }
        self.teams.accounts.retain(|_, team| !team.children.accounts.is_empty());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entitlement(team: &str, user: &str, user_weight: u32) -> Entitlement {
        Entitlement { team: team.into(), user: user.into(), user_weight, ..Entitlement::default() }
    }

    /// Returns how often each of these sessions, which always have batches, is served in 1,200
    /// turns.
    fn served(all: &[Entitlement], policy_kind: PolicyKind) -> Vec<usize> {
        let mut scheduler = Scheduler::default();
        let mut counts = vec![0; all.len()];
        for _ in 0..1200 {
            let ready = all.iter().enumerate().map(|(at, of)| (PeerId::client(at as u64), of));
            let peer = scheduler.choose(ready, policy_kind).unwrap();
            scheduler.charge(peer, &all[peer.number as usize], 10);
            counts[peer.number as usize] += 1;
        }
        counts
    }

    #[test]
    fn users_get_equal_turns_regardless_of_their_number_of_sessions() {
        let mut all = vec![entitlement("", "ada", 1); 5];
        all.push(entitlement("", "eve", 1));
        assert_eq!(served(&all, PolicyKind::Fair), [120, 120, 120, 120, 120, 600]);
        // Sessions without a user count as one user's.
        assert_eq!(served(&vec![Entitlement::default(); 3], PolicyKind::Fair), [400; 3]);
    }

    #[test]
    fn teams_share_before_users_and_by_weight() {
        let all = [entitlement("a", "x", 1), entitlement("a", "y", 3), entitlement("b", "z", 1)];
        let counts = served(&all, PolicyKind::Fair);
        assert_eq!(counts[2], 600);
        assert!(counts[1].abs_diff(450) < 5 && counts[0].abs_diff(150) < 5, "{counts:?}");
    }

    #[test]
    fn priority_and_fifo_serve_one_rank_alone() {
        let first = Entitlement { priority: 1, ..Entitlement::default() };
        let second = Entitlement { priority: 2, ..Entitlement::default() };
        let all = [first, second.clone(), second];
        assert_eq!(served(&all, PolicyKind::Priority), [0, 600, 600]);
        assert_eq!(served(&all, PolicyKind::Fifo), [1200, 0, 0]);
    }

    #[test]
    fn idle_users_do_not_save_up_turns() {
        let (ada, eve) = (entitlement("", "ada", 1), entitlement("", "eve", 1));
        let mut scheduler = Scheduler::default();
        (0..1_000).for_each(|_| scheduler.charge(PeerId::client(1), &ada, 1_000));
        let mut alone = 0;
        loop {
            let ready = [(PeerId::client(1), &ada), (PeerId::client(2), &eve)].into_iter();
            if scheduler.choose(ready, PolicyKind::Fair) == Some(PeerId::client(1)) {
                break;
            }
            scheduler.charge(PeerId::client(2), &eve, 1_000);
            alone += 1;
        }
        assert!((3..=6).contains(&alone), "{alone}");
    }
}
