//! Sessions on two workers, whose parts exchange after each operation.

use super::askers::{Habit, MEASURED, Placement, floods, mix, waits};
use super::seeds;

fn sharded(operation: u64) -> Habit {
    Habit {
        operations: 12_000 / operation,
        ahead: 6,
        placement: Placement::All(2),
        ..floods(operation)
    }
}

/// What sessions have used, relative to the first one alone.
fn of_alone(seed: u64, habits: &[Habit], users: &[(&str, u32)]) -> Vec<f64> {
    let alone = mix(seed, &habits[..1], &[])[0].used(&MEASURED);
    let askers = mix(seed, habits, users);
    askers.iter().map(|asker| asker.used(&MEASURED) / alone).collect()
}

#[test]
fn several_on_both_workers_do_as_much_as_one() {
    for seed in seeds() {
        for (operation, count) in [(300, 2), (300, 4), (1_000, 2), (1_000, 4), (5_000, 3)] {
            let parts = of_alone(seed, &vec![sharded(operation); count], &[]);
            let sum: f64 = parts.iter().sum();
            println!("{seed}: {operation}: {sum:.3} {parts:.3?}");
            let is_even = |part: &f64| (part * count as f64 / sum - 1.0).abs() < 0.05;
            assert!(sum >= 0.93 && parts.iter().all(is_even), "{seed}: {operation}: {parts:?}");
        }
    }
}

#[test]
fn shares_on_both_workers_are_by_weights() {
    for seed in seeds() {
        let users = [("ada", 10), ("eve", 30), ("bob", 60)];
        let parts = of_alone(seed, &vec![sharded(1_000); 3], &users);
        println!("{seed}: {parts:.3?}");
        for (part, (user, weight)) in parts.iter().zip(users) {
            let expected = f64::from(weight) / 100.0;
            assert!((part / expected - 1.0).abs() < 0.12, "{seed}: {user} {parts:?}");
        }
    }
}

/// Its workers pause the long operations of the others at the same time.
#[test]
fn one_has_half_of_its_speed_beside_a_flood_on_each_worker() {
    for seed in seeds() {
        let flood = |worker| Habit { placement: Placement::One(worker), ..floods(11_000) };
        let parts = of_alone(seed, &[sharded(1_000), flood(0), flood(1)], &[]);
        println!("{seed}: {parts:.3?}");
        assert!(parts[0] >= 0.45, "{seed}: {parts:?}");
    }
}

#[test]
fn a_small_question_beside_several_is_answered_soon() {
    for seed in seeds() {
        let small = Habit { think: 20_000..20_001, ..waits(20) };
        let mut habits = vec![sharded(1_000); 4];
        habits.push(small);
        let times = mix(seed, &habits, &[]).pop().expect("it is the last").times();
        let (median, high) = (times[times.len() / 2], times[times.len() * 99 / 100]);
        println!("{seed}: {median:.2}, {high:.2} of {}", times.len());
        assert!(median <= 1.5 && high <= 3.0, "{seed}: {median} and {high}");
    }
}
