//! Properties of think times: when a device is kept idle for a session that is about to ask.

use gt_policy::ThinkTimes;
use proptest::prelude::*;

/// Nanoseconds of a microsecond.
const US: u64 = 1_000;

/// A session that is served for `served`, thinks for each of these times, and is always behind its
/// share, beside another whose operations take `length`. Returns the idle time that it causes, and the
/// time for which it is served.
fn session(served: u64, thinks: &[u64], length: u64) -> (u64, u64) {
    let mut times = ThinkTimes::default();
    let (mut now, mut idle) = (0, 0);
    for think in thinks {
        times.charge(1u32, served);
        now += served;
        times.answer(1, now);
        let asks = now + think;
        // What else begins instead is not interrupted.
        let mut began = now;
        if let Some((session, until)) = times.awaited(now, length, |_| true) {
            assert_eq!(session, 1);
            let kept = until.min(asks) - now;
            times.charge_idle(1, kept);
            idle += kept;
            began = now + kept;
        }
        if began < asks {
            now = began + length * (asks - began).div_ceil(length);
            times.ask(1, began, now);
        } else {
            now = asks;
            times.ask(1, asks, asks);
        }
    }
    (idle, served * thinks.len() as u64)
}

proptest! {
    /// Whatever a session does, it causes no more idle time than a part of its own.
    #[test]
    fn idle_time_is_a_small_part_of_the_time_used(
        served in US..100_000 * US,
        thinks in prop::collection::vec(US..20_000 * US, 1..200),
        length in US..100_000 * US,
    ) {
        let (idle, used) = session(served, &thinks, length);
        prop_assert!(idle * 100 <= used * 8 + 100, "{idle} of {used}");
    }

    /// Not for a session that thinks for long: a device is kept idle for it only to learn that.
    #[test]
    fn who_thinks_for_long_is_not_waited_for(served in 10 * US..1_000 * US, part in 20u64..90) {
        let think = served * part / 100 + 100 * US;
        let (idle, used) = session(served, &[think; 400], 80_000 * US);
        prop_assert!(idle * 100 <= used * 3, "{idle} of {used}");
    }

    /// Nothing is gained if what would begin ends before the session is expected.
    #[test]
    fn nothing_short_is_put_off(think in 200 * US..900 * US, length in US..100 * US) {
        let mut times = ThinkTimes::default();
        let mut now = 0;
        for _ in 0..20 {
            times.charge(1u32, 20_000 * US);
            now += 20_000 * US;
            times.answer(1, now);
            prop_assert_eq!(times.awaited(now, length, |_| true), None);
            now += think;
            times.ask(1, now, now);
        }
    }

    /// Who asks regularly is waited for at each question, and not beyond its share.
    #[test]
    fn who_asks_soon_is_waited_for(served in 5_000 * US..90_000 * US, think in 50 * US..300 * US) {
        let (idle, _) = session(served, &[think; 100], 80_000 * US);
        prop_assert!(idle >= think * 95, "{idle}");
        let mut times = ThinkTimes::default();
        times.charge(1u32, served);
        times.answer(1, served);
        prop_assert!(times.is_any_thinking());
        prop_assert_eq!(times.awaited(served, 80_000 * US, |_| false), None);
        times.retire(1);
        prop_assert!(!times.is_any_thinking());
    }
}

/// A user who looks at a result for a minute, and then continues as before.
#[test]
fn a_long_pause_is_forgotten_soon() {
    let (served, usual) = (20_000 * US, 200 * US);
    let mut thinks = vec![usual; 20];
    thinks.push(60_000_000 * US);
    thinks.extend([usual; 60]);
    let (idle, _) = session(served, &thinks, 80_000 * US);
    assert!(idle >= 65 * usual, "{idle}");
}

/// Frees of tensors between an answer and the next question are no question.
#[test]
fn small_messages_leave_what_was_learnt() {
    let mut times = ThinkTimes::default();
    let mut now = 0;
    for _ in 0..20 {
        times.charge(1u32, 20_000 * US);
        now += 20_000 * US;
        times.answer(1, now);
        let answered = now;
        now += 100 * US;
        times.ask(1, now, now);
        times.charge(1, 5 * US);
        now += 5 * US;
        times.answer(1, now);
        let awaited = times.awaited(now, 80_000 * US, |_| true);
        assert!(awaited.is_some_and(|(_, until)| until > answered + 200 * US), "{awaited:?}");
        now = answered + 200 * US;
        times.ask(1, now, now);
    }
}
