//! Which sequences become hot and when, and the receiver's number of templates.

use crate::hotpath::issuer::{Issuer, number};

#[test]
fn a_compiled_region_is_hot_from_its_second_iteration_on() {
    let mut issuer = Issuer::new();
    let mut x = issuer.create(4);
    for round in 0..6 {
        issuer.region = round + 1;
        for line in 0..5 {
            let next = issuer.add(line, x, number(1.0));
            issuer.free(std::mem::replace(&mut x, next));
        }
        issuer.region = 0;
        // The step between the regions differs each time.
        let next = issuer.add(100 + round, x, number(1.0));
        issuer.free(std::mem::replace(&mut x, next));
    }
    assert_eq!(issuer.detector.get_stats().hot_instructions, 25);
    let receiver = issuer.finish();
    assert_eq!(receiver.templates.len(), 1);
}

#[test]
fn an_iteration_is_midway_between_its_first_and_last_step() {
    let mut issuer = Issuer::new();
    let mut x = issuer.create(4);
    let mut midway = Vec::new();
    for _ in 0..6 {
        for line in 0..20 {
            let next = issuer.add(line, x, number(1.0));
            issuer.free(std::mem::replace(&mut x, next));
            midway.push(issuer.detector.is_midway());
        }
    }
    let hot = midway.iter().position(|midway| *midway).expect("the loop becomes hot");
    assert!(hot > 2 * 20, "after {hot} steps");
    let ends: Vec<_> = (hot..midway.len()).filter(|&step| !midway[step]).collect();
    assert!(ends.len() >= 3 && ends.windows(2).all(|pair| pair[1] - pair[0] == 20), "{ends:?}");
    issuer.finish();
}

#[test]
fn a_stream_that_never_repeats_has_no_hot_path() {
    let mut issuer = Issuer::new();
    let mut x = issuer.create(4);
    for line in 0..5000 {
        let next = issuer.add(line, x, number(1.0));
        issuer.free(std::mem::replace(&mut x, next));
    }
    assert_eq!(issuer.detector.get_stats().hot_instructions, 0);
    issuer.finish();
}

#[test]
fn a_receiver_never_holds_too_many_templates() {
    let mut issuer = Issuer::new();
    // The template of the loop of 16,000 steps replaces those of several others.
    let loops = (0..11).map(|number| (number, 6000)).chain([(11, 16_000), (12, 40)]);
    for (number_of_loop, length) in loops {
        let x = issuer.create(4);
        for _ in 0..5 {
            let mut y = x;
            for step in 0..length {
                y = issuer.add(number_of_loop * 100_000 + step, y, number(1.0));
            }
            issuer.fetch(y);
        }
    }
    assert!(issuer.finish().invocations > 12);
}

/// Returns the number of parts in which a receiver gets hot iterations of `steps` steps; the
/// program waits after each of the first `waits`.
fn parts(steps: u32, iterations: u32, waits: u32) -> usize {
    let mut issuer = Issuer::new();
    let mut x = issuer.create(4);
    for iteration in 0..iterations {
        for line in 0..steps {
            let next = issuer.add(line, x, number(1.0));
            issuer.free(std::mem::replace(&mut x, next));
        }
        if iteration < waits {
            issuer.fetch(x);
        }
    }
    issuer.finish().invocations
}

#[test]
fn iterations_with_waits_are_sent_in_parts() {
    // The loop is hot from its fourth iteration on.
    let whole = parts(300, 20, 0);
    assert!((15..=18).contains(&whole), "{whole}");
    // After 64, 128 and 256 steps, and the rest.
    let waited = parts(300, 20, 20);
    assert!((15 * 4..=18 * 4).contains(&waited), "{waited}");
    // An iteration that is short, or has few steps left, is not split.
    assert!(parts(63, 20, 20) <= 20 && parts(90, 20, 20) <= 20);
    // After 16 iterations without a wait, they are sent whole again.
    let (then, later) = (parts(300, 30, 10), parts(300, 40, 10));
    assert_eq!(later - then, 10);
}
