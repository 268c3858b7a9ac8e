//! Properties of fair sharing, for random sessions, weights and costs.

use gt_ir::entitlement::{Entitlement, PolicyKind};
use gt_policy::{Fair, Policy, QUANTUM, SLICE, policy};
use proptest::prelude::*;

fn entitlement(team: u32, user: u32, weight: u32) -> Entitlement {
    Entitlement {
        team: format!("team {team}"),
        user: format!("user {user}"),
        weight,
        ..Entitlement::default()
    }
}

/// Serves sessions that always have work until `until` nanoseconds of device time are used; returns
/// the time that each has used.
fn serve(
    policy: &mut Fair<u32>,
    ready: &[u32],
    cost: impl Fn(u32, u64) -> u64,
    until: u64,
) -> Vec<u64> {
    let mut used = vec![0; ready.len()];
    let (mut time, mut turn) = (0, 0);
    while time < until {
        let index = policy.next(ready).expect("somebody is ready");
        let cost = cost(ready[index], turn);
        policy.charge(ready[index], cost);
        used[index] += cost;
        time += cost;
        turn += 1;
    }
    used
}

proptest! {
    /// Shares differ from the weights by a slice and one operation at most, whatever operations cost.
    #[test]
    fn time_is_divided_by_weights(
        weights in prop::collection::vec(1u32..20, 2..8),
        costs in prop::collection::vec(1u64..1_000_000, 8),
        seed in any::<u64>(),
    ) {
        let mut fair = Fair::default();
        let ready: Vec<u32> = (0..weights.len() as u32).collect();
        for (session, weight) in ready.iter().zip(&weights) {
            fair.admit(*session, &entitlement(0, 0, *weight));
            fair.wake(*session);
        }
        let cost = |session: u32, turn: u64| {
            1 + costs[session as usize % costs.len()] * ((turn ^ seed) % 7) / 7
        };
        let used = serve(&mut fair, &ready, cost, 400_000_000);
        let most = costs.iter().max().unwrap() + 1 + SLICE;
        for (one, other) in used.iter().zip(&weights).zip(used.iter().zip(&weights).skip(1)) {
            let shares = [one, other].map(|(used, weight)| *used as f64 / f64::from(*weight));
            let allowed = most as f64 * (1.0 / f64::from(*one.1) + 1.0 / f64::from(*other.1)) + 1.0;
            prop_assert!((shares[0] - shares[1]).abs() <= allowed, "{used:?} by {weights:?}");
        }
    }

    /// So are they if sessions think for a moment after each turn, while none of the others is served.
    #[test]
    fn sessions_that_think_keep_their_claims(
        weights in prop::collection::vec(1u32..20, 2..5),
        costs in prop::collection::vec(SLICE / 50..2 * SLICE, 5),
    ) {
        let mut fair = Fair::default();
        let ready: Vec<u32> = (0..weights.len() as u32).collect();
        for (session, weight) in ready.iter().zip(&weights) {
            fair.admit(*session, &entitlement(0, 0, *weight));
            fair.wake(*session);
        }
        let mut used = vec![0; weights.len()];
        let most = *costs.iter().max().unwrap();
        while used.iter().sum::<u64>() < 400 * most {
            let index = fair.next(&ready).unwrap();
            fair.charge(ready[index], costs[index]);
            used[index] += costs[index];
            fair.wake(ready[index]);
        }
        let allowed = most + SLICE;
        for (one, other) in used.iter().zip(&weights).zip(used.iter().zip(&weights).skip(1)) {
            let shares = [one, other].map(|(used, weight)| *used as f64 / f64::from(*weight));
            let allowed = allowed as f64 * (1.0 / f64::from(*one.1) + 1.0 / f64::from(*other.1)) + 1.0;
            prop_assert!((shares[0] - shares[1]).abs() <= allowed, "{used:?} by {weights:?}");
        }
    }

    /// Teams get equal shares whatever the number of their users, and users of a team whatever the number
    /// of their sessions.
    #[test]
    fn teams_come_before_users_and_users_before_sessions(sessions in 1u32..6) {
        let mut fair = Fair::default();
        // Team 0 has user 0 with many sessions, and user 1 with one; team 1 has one session.
        let mut places = vec![(0, 1), (1, 2)];
        places.extend((0..sessions).map(|_| (0, 0)));
        let ready: Vec<u32> = (0..places.len() as u32).collect();
        for (session, (team, user)) in ready.iter().zip(&places) {
            fair.admit(*session, &entitlement(*team, *user, 1));
            fair.wake(*session);
        }
        let time = 1_000 * SLICE;
        let used = serve(&mut fair, &ready, |_, _| SLICE / 7, time);
        let near = |used: u64, wanted: u64| used.abs_diff(wanted) <= 6 * SLICE;
        prop_assert!(near(used[0], time / 4) && near(used[1], time / 2), "{used:?}");
        prop_assert!(used[2..].iter().all(|used| near(*used, time / 4 / u64::from(sessions))));
    }

    /// A session that was idle is served soon, and catches up on a quantum at most.
    #[test]
    fn idleness_is_no_credit(idle in 1u64..100, cost in 1_000u64..1_000_000) {
        let mut fair = Fair::default();
        for session in [1, 2] {
            fair.admit(session, &entitlement(session, 0, 1));
            fair.wake(session);
        }
        serve(&mut fair, &[1], |_, _| cost, idle * 10_000_000);
        fair.wake(2);
        prop_assert_eq!(fair.next(&[1, 2]), Some(1));
        let used = serve(&mut fair, &[1, 2], |_, _| cost, 100_000_000);
        prop_assert!(used[1] >= used[0], "{used:?}");
        prop_assert!(used[1] - used[0] <= QUANTUM + SLICE + 2 * cost, "{used:?}");
    }

    /// What sessions that are gone have used is no claim of one that comes after them.
    #[test]
    fn sessions_that_came_one_by_one_share_equally(before in 1u64..100, cost in 1_000u64..1_000_000) {
        let mut fair = Fair::default();
        for (session, until) in [(1, before * 100_000_000), (2, cost)] {
            fair.admit(session, &entitlement(session, 0, 1));
            fair.wake(session);
            serve(&mut fair, &[session], |_, _| cost, until);
            fair.retire(1);
        }
        fair.admit(3, &entitlement(3, 0, 1));
        fair.wake(3);
        let used = serve(&mut fair, &[2, 3], |_, _| cost, 400_000_000);
        prop_assert!(used[1].abs_diff(used[0]) <= QUANTUM + SLICE + 2 * cost, "{used:?}");
    }

    /// A session that was idle beside one that has left has no claim to the time of that one.
    #[test]
    fn idleness_beside_one_that_left_is_no_credit(idle in 1u64..100, cost in 1_000u64..1_000_000) {
        let mut fair = Fair::default();
        for session in [1, 2] {
            fair.admit(session, &entitlement(session, 0, 1));
            fair.wake(session);
        }
        serve(&mut fair, &[1], |_, _| cost, idle * 100_000_000);
        fair.retire(1);
        fair.wake(2);
        serve(&mut fair, &[2], |_, _| cost, cost);
        fair.admit(3, &entitlement(3, 0, 1));
        fair.wake(3);
        let used = serve(&mut fair, &[2, 3], |_, _| cost, 400_000_000);
        prop_assert!(used[1].abs_diff(used[0]) <= QUANTUM + SLICE + 2 * cost, "{used:?}");
    }

    /// Retired sessions leave no nodes behind.
    #[test]
    fn whoever_is_gone_is_forgotten(order in prop::collection::vec((0u32..6, 0u32..3, 0u32..3), 1..60)) {
        let mut fair = Fair::default();
        let mut there = Vec::new();
        for (session, team, user) in order {
            if let Some(place) = there.iter().position(|other| *other == session) {
                there.remove(place);
                fair.retire(session);
            } else {
                there.push(session);
                fair.admit(session, &entitlement(team, user, 1));
                fair.wake(session);
            }
            let chosen = fair.next(&there);
            prop_assert_eq!(chosen.is_some(), !there.is_empty());
            chosen.into_iter().for_each(|chosen| fair.charge(there[chosen], 5));
        }
        for session in there {
            fair.retire(session);
        }
        prop_assert!(fair.is_empty(), "{fair:?}");
    }
}

fn ranked(priority: u32) -> Entitlement {
    Entitlement { priority, ..Entitlement::default() }
}

#[test]
fn with_fifo_whoever_came_first_is_served_until_idle() {
    let mut fifo = policy(PolicyKind::Fifo, SLICE);
    for session in [1, 2, 3] {
        fifo.admit(session, &Entitlement::default());
    }
    [2, 1].into_iter().for_each(|session| fifo.wake(session));
    for _ in 0..3 {
        assert_eq!(fifo.next(&[1, 2]), Some(1));
        fifo.charge(2, 1_000_000_000);
    }
    fifo.wake(3);
    assert_eq!(fifo.next(&[3, 1]), Some(1), "1 came before 3");
    fifo.wake(2);
    assert_eq!(fifo.next(&[2, 3]), Some(1), "2 has come anew");
    assert_eq!(fifo.next(&[]), None);
}

#[test]
fn with_priority_the_highest_are_served_alone_and_equals_share() {
    let mut priority = policy(PolicyKind::Priority, SLICE);
    for (session, rank) in [(1, 0), (2, 5), (3, 5)] {
        priority.admit(session, &ranked(rank));
        priority.wake(session);
    }
    let mut used = [0u64; 4];
    for _ in 0..40 {
        let ready = [1, 2, 3];
        let next = ready[priority.next(&ready).unwrap()];
        priority.charge(next, SLICE);
        used[next as usize] += 1;
    }
    assert_eq!(used[1], 0);
    assert!(used[2].abs_diff(used[3]) <= 2, "{used:?}");
    assert_eq!(priority.next(&[1]), Some(0), "nobody else has work");
    priority.admit(1, &ranked(9));
    assert_eq!(priority.next(&[1, 2, 3]), Some(0));
}

/// A boosted session is next, but not beyond its share.
#[test]
fn a_session_that_others_wait_for_is_next_within_its_share() {
    let mut fair = Fair::default();
    let ready = [1, 2, 3];
    for session in ready {
        fair.admit(session, &entitlement(0, 0, 1));
        fair.wake(session);
    }
    assert_eq!(fair.next(&ready), Some(0));
    fair.charge(1, SLICE / 2);
    fair.boost(3);
    assert_eq!(fair.next(&ready), Some(2), "before the one that was served last");
    fair.charge(3, 2 * SLICE);
    fair.boost(3);
    for _ in 0..3 {
        let next = fair.next(&ready).unwrap();
        assert_ne!(next, 2, "it is more than a slice ahead");
        fair.charge(ready[next], SLICE / 2);
    }
    // When the other sessions have caught up, it is still boosted.
    fair.charge(1, SLICE);
    fair.charge(2, SLICE);
    assert_eq!(fair.next(&ready), Some(2));
    fair.boost(3);
    fair.retire(3);
    assert!([Some(0), Some(1)].contains(&fair.next(&[1, 2])));
}
