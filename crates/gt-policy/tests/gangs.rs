//! Gangs: sessions that are served on several devices in the same order.

use gt_ir::entitlement::Entitlement;
use gt_policy::{Fair, GANG_SLICE, Policy, SLICE};
use proptest::prelude::*;

fn fair(weights: &[u32]) -> Fair<u32> {
    let mut fair = Fair::default();
    for (session, weight) in (0..).zip(weights) {
        fair.admit(session, &Entitlement { weight: *weight, ..Entitlement::default() });
        fair.wake(session);
    }
    fair
}

/// Serves a turn of one of the sessions, which it returns.
fn serve(fair: &mut Fair<u32>, ready: &[u32], cost: u64) -> u32 {
    let next = ready[fair.next(ready).expect("one is ready")];
    fair.charge(next, cost);
    next
}

#[test]
fn the_first_ready_gang_is_served_before_the_others() {
    let mut fair = fair(&[1, 1, 1]);
    fair.coschedule(&[2, 0, 1]);
    for _ in 0..20 {
        assert_eq!(serve(&mut fair, &[0, 1, 2], SLICE / 5), 2);
    }
    // While it waits for data, the next one is.
    assert_eq!(serve(&mut fair, &[0, 1], SLICE / 5), 0);
    // The device is reserved for the first one, and not for one after a ready one.
    assert!(fair.reserves(2, &[0, 1]) && !fair.reserves(0, &[1, 2]) && fair.reserves(0, &[1]));
    assert!(fair.is_before(2, 1) && fair.is_before(0, 1) && !fair.is_before(0, 2));
    fair.retire(2);
    assert_eq!(serve(&mut fair, &[0, 1], SLICE / 5), 0);
    // Without an order, the others catch up.
    fair.coschedule(&[]);
    fair.charge(0, SLICE);
    assert_eq!(serve(&mut fair, &[0, 1], SLICE / 5), 1);
}

/// Other sessions have their turns in the middle of a gang's time slice.
#[test]
fn sessions_that_are_no_gangs_have_their_turns_beside_the_first() {
    let mut fair = fair(&[1, 1, 1]);
    fair.coschedule(&[0, 1]);
    let served: Vec<u32> = (0..36).map(|_| serve(&mut fair, &[0, 1, 2], SLICE / 2)).collect();
    assert!(!served.contains(&1), "{served:?}");
    let single = served.iter().filter(|session| **session == 2).count();
    assert!((15..=18).contains(&single), "{served:?}");
}

/// A session that was idle is served at once, however far the first gang is ahead of the others.
#[test]
fn an_idle_session_is_not_behind_those_that_wait_for_a_gang() {
    let mut fair = fair(&[1, 1, 1]);
    fair.charge(0, GANG_SLICE);
    fair.charge(1, GANG_SLICE);
    fair.coschedule(&[0, 1]);
    for _ in 0..9 {
        assert_eq!(serve(&mut fair, &[0, 1], SLICE), 0);
    }
    fair.coschedule(&[1, 0]);
    assert_eq!(serve(&mut fair, &[0, 1], SLICE / 5), 1);
    fair.wake(2);
    assert_eq!(serve(&mut fair, &[0, 1, 2], SLICE / 5), 2);
}

proptest! {
    /// An order changes who is next, and not what each has in the end: nobody gets ahead by more than
    /// some time slices, whatever the orders are.
    #[test]
    fn orders_leave_shares_as_they_are(
        weights in prop::collection::vec(1u32..8, 2..6),
        orders in prop::collection::vec(prop::collection::vec(0u32..6, 0..6), 1..20),
        costs in prop::collection::vec(SLICE / 100..SLICE, 6),
    ) {
        let mut fair = fair(&weights);
        let ready: Vec<u32> = (0..weights.len() as u32).collect();
        let mut used = vec![0u64; weights.len()];
        for turn in 0..20_000 {
            if turn % 50 == 0 {
                let mut order = orders[turn / 50 % orders.len()].clone();
                order.sort_unstable_by_key(|session| (session * 7 + turn as u32) % 6);
                order.dedup();
                order.retain(|session| ready.contains(session));
                fair.coschedule(&order);
            }
            let next = ready[fair.next(&ready).unwrap()];
            fair.charge(next, costs[next as usize]);
            used[next as usize] += costs[next as usize];
        }
        let shares = used.iter().zip(&weights).map(|(used, weight)| used / u64::from(*weight));
        let (least, most) = (shares.clone().min().unwrap(), shares.max().unwrap());
        prop_assert!(most - least <= 3 * GANG_SLICE, "{used:?} by {weights:?}");
    }
}
