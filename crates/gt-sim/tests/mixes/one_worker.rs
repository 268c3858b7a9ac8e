//! Sessions on one worker: who waits for each answer has a full share, beside others who do, and beside
//! floods.

use super::askers::{Habit, MEASURED, floods, mix, shares, waits};
use super::seeds;

#[test]
fn two_that_wait_for_each_answer_have_equal_shares() {
    for seed in seeds() {
        for (slow, quick, index) in
            [(83_000, 1_200, 0.95), (83_000, 11_000, 0.97), (11_000, 1_200, 0.95)]
        {
            let alone = shares(&mix(seed, &[waits(slow)], &[])).1;
            let (jain, sum) = shares(&mix(seed, &[waits(slow), waits(quick)], &[]));
            println!("{seed}: {slow} and {quick}: {jain:.3}, {:.3}", sum / alone);
            assert!(jain >= index, "{seed}: {slow} and {quick}: {jain}");
            assert!(sum / alone >= 0.93, "{seed}: {slow} and {quick}: {sum} of {alone}");
        }
    }
}

#[test]
fn a_small_question_beside_a_flood_is_answered_soon() {
    for seed in seeds() {
        let small = Habit { think: 20_000..20_001, ..waits(20) };
        let times = mix(seed, &[small, floods(83_000)], &[]).remove(0).times();
        let (median, high) = (times[times.len() / 2], times[times.len() * 99 / 100]);
        println!("{seed}: {median:.2}, {high:.2} of {}", times.len());
        assert!(median <= 1.5 && high <= 3.0, "{seed}: {median} and {high}");
    }
}

/// Twenty milliseconds of work every second.
#[test]
fn bursts_beside_floods_take_little_longer_than_alone() {
    for seed in seeds() {
        let bursts = Habit { operations: 20, think: 980_000..980_001, ..waits(1_000) };
        let alone = mix(seed, std::slice::from_ref(&bursts), &[]).remove(0).times();
        let others = [bursts, floods(11_000), floods(11_000), floods(11_000)];
        let times = mix(seed, &others, &[]).remove(0).times();
        let of_alone = |place: usize| times[place] / alone[alone.len() / 2];
        let (median, highest) = (of_alone(times.len() / 2), of_alone(times.len() - 1));
        println!("{seed}: {median:.2}, {highest:.2} of {}", times.len());
        assert!(median <= 1.2 && highest <= 2.0, "{seed}: {median} and {highest}");
    }
}

#[test]
fn weights_hold_for_those_who_wait_for_each_answer() {
    for seed in seeds() {
        for (first, second) in [(10_000, 10_000), (20_000, 10_000), (10_000, 20_000)] {
            let habits = [waits(first), waits(second)];
            let askers = mix(seed, &habits, &[("ada", 10), ("eve", 90)]);
            let [ada, eve] = [0, 1].map(|index| askers[index].used(&MEASURED));
            println!("{seed}: {first} and {second}: {:.2}", eve / ada);
            assert!((eve / ada / 9.0 - 1.0).abs() < 0.12, "{seed}: {ada} and {eve}");
        }
    }
}

/// Tokens one by one, beside a training that is never idle.
#[test]
fn generation_beside_training_has_half_of_its_speed_alone() {
    for seed in seeds() {
        let tokens = Habit { operations: 12, think: 300..600, ..waits(400) };
        let training = Habit { operation: 2_000, operations: 20, ..floods(0) };
        let [tokens_alone, training_alone] = [&tokens, &training]
            .map(|habit| mix(seed, std::slice::from_ref(habit), &[]).remove(0).used(&MEASURED));
        let both = mix(seed, &[tokens, training], &[]);
        let of_alone =
            [both[0].used(&MEASURED) / tokens_alone, both[1].used(&MEASURED) / training_alone];
        println!("{seed}: {of_alone:.3?}");
        assert!(of_alone.iter().all(|part| *part >= 0.45), "{seed}: {of_alone:?}");
    }
}

#[test]
fn many_that_wait_for_each_answer_do_as_much_as_two() {
    for seed in seeds() {
        let [two, eight] = [2, 8].map(|count| shares(&mix(seed, &vec![waits(1_200); count], &[])));
        println!("{seed}: {two:?} and {eight:?}");
        assert!(eight.1 >= 0.99 * two.1 && eight.0 > 0.97, "{seed}: {two:?} and {eight:?}");
    }
}
