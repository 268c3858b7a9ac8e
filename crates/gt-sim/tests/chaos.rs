//! Schedules derived from seeds, and named regressions. `make chaos` runs many more.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use gt_client::Tensor;
use gt_client::config::{SignalConfig, registry};
use gt_dispatcher::{Limits, PeerId};
use gt_sim::chaos::{self, ChaosCounters};
use gt_sim::{Delays, World, driver};
use gt_sim::{deaths, killers};

fn run(seeds: impl IntoIterator<Item = u64>) -> ChaosCounters {
    let mut total = ChaosCounters::default();
    for seed in seeds {
        match chaos::run(seed) {
            Ok(outcome) => total.add(&outcome),
            Err(wrong) => panic!("{wrong}"),
        }
    }
    total
}

#[test]
fn invariants_hold_in_every_schedule() {
    let total = run(0..1_000);
    // Faults occur, and most values arrive nevertheless.
    assert!(total.errors > 500 && total.values > 5 * total.errors / 2, "{total:?}");
    assert!(total.joined > 500, "{total:?}");
}

/// For every order of deaths, the bits are those of an undisturbed run, or an error reports the
/// loss.
#[test]
fn sequential_worker_deaths_change_no_bits() {
    let mut total = deaths::DeathCounters::default();
    for seed in 0..500 {
        match deaths::run(seed) {
            Ok(outcome) => total.add(&outcome),
            Err(wrong) => panic!("{wrong}"),
        }
    }
    assert!(total.equal > 9 * total.schedules / 10, "{total:?}");
}

/// Only an operation that kills workers is abandoned, and its user gets an error; no other session
/// is harmed.
#[test]
fn a_session_that_kills_workers_is_identified() {
    let given_up: u64 =
        (0..300).map(|seed| killers::run(seed).unwrap_or_else(|it| panic!("{it}"))).sum();
    assert!(given_up > 300, "{given_up}");
}

#[test]
#[allow(clippy::disallowed_methods, reason = "it is about threads")]
fn a_schedule_depends_only_on_its_seed() {
    let messages = |seed| run([seed]).messages;
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        // Signals are those of the process: other tests configure theirs meanwhile.
        scope.spawn(|| {
            for _ in 0..1_000_000 {
                if is_done.load(Ordering::Relaxed) {
                    break;
                }
                registry::register("of another test", SignalConfig::default());
                std::thread::yield_now();
            }
        });
        let counts: Vec<_> = (0..20)
            .map(|seed| {
                let before = messages(seed);
                run([seed + 1]);
                (seed, before, messages(seed))
            })
            .collect();
        is_done.store(true, Ordering::Relaxed);
        for (seed, before, after) in counts {
            assert_eq!(after, before, "seed {seed}");
        }
    });
}

/// A collective waited forever for a member that was lost before it was announced.
#[test]
fn collective_exchanges_whose_member_is_lost_early() {
    run([483]);
}

/// A slot that moved to a new worker lost the commands in flight to the old one.
#[test]
fn slots_that_move_while_work_is_in_flight() {
    run([80, 99, 122, 136, 151, 216, 327, 545, 555]);
}

/// A lane that waited for memory again kept its grant, and another lane failed.
#[test]
fn a_session_waiting_for_memory_blocks_no_other() {
    run([36140]);
}

/// A lane failed although other sessions' tensors could be spilled: the same number of bytes was
/// held as at its last attempt, by other tensors.
#[test]
fn a_memory_wait_is_retried_when_other_sessions_are_held() {
    run([23132]);
}

/// Deaths of stopped workers, and unrelated deaths during the trial of a command, were attributed
/// to it.
#[test]
fn external_worker_deaths_are_not_blamed_on_a_session() {
    for seed in [53483, 54840, 54971, 73903, 94974, 98192] {
        deaths::run(seed).unwrap_or_else(|wrong| panic!("{wrong}"));
    }
}

/// A session without a base dropped a batch whose request was in flight, and its next snapshot did
/// not wait for the answer.
#[test]
fn requests_in_flight_are_answered_before_a_new_base() {
    deaths::run(5_017_731).unwrap_or_else(|wrong| panic!("{wrong}"));
}

/// A slot that was handed over had no tensors left at the next snapshot, and its handover was
/// awaited for ever: an idle session was stored every 20 ms, to move its slots.
#[test]
fn a_handover_ends_with_its_base_snapshot() {
    chaos::run(7_009_344).unwrap_or_else(|wrong| panic!("{wrong}"));
}

/// The last trial of a killer destroyed other sessions' values that had no copies yet.
#[test]
fn trials_wait_for_copies_of_others_values() {
    for seed in [1957, 2404, 2503, 3319, 4330, 5002, 5926] {
        killers::run(seed).unwrap_or_else(|wrong| panic!("{wrong}"));
    }
}

/// The virtual clock stopped at recurring deadlines, before a later one.
#[test]
fn waits_for_memory_end_beside_those_of_idle_clients() {
    run([22784, 42976]);
}

/// A session that lost a worker just after a server restart had no slots.
#[test]
fn losses_before_the_first_snapshot_after_a_restart() {
    run([17899, 49198]);
}

/// A number of slots that was not durable at a power cut was mistaken for the previous one.
#[test]
fn power_cuts_change_no_bits() {
    for seed in [1584, 4884] {
        deaths::run(seed).unwrap_or_else(|wrong| panic!("{wrong}"));
    }
}

/// A lane failed although other sessions held memory that could be spilled.
#[test]
fn a_memory_wait_is_retried_when_other_lanes_are_idle() {
    run([3224]);
}

/// Lanes of idle clients waited for memory forever: checking the credit is a wait.
#[test]
fn credit_returns_to_waiting_clients() {
    run([24988, 30664, 34616]);
}

/// Sessions that waited for memory while their clients were idle blocked sessions in trials.
#[test]
fn trials_proceed_beside_stuck_sessions() {
    run([14824, 46600]);
}

/// Two workers were lost one after the other: the server gave the session's snapshot up while a
/// lane on the third was yet to be restored from it, and the lane's error named no lost worker.
#[test]
fn a_lane_is_restored_from_a_snapshot_that_is_given_up_meanwhile() {
    run([9020646]);
}

/// The same without randomness: a worker joins while the last results of a lent slot, which have no
/// copies, are still to be computed.
#[test]
fn a_new_worker_takes_over_no_slot_with_work_in_flight() {
    let delays = Delays { least: 1, most: 1 };
    let world = Arc::new(Mutex::new(World::new(1, 2, delays, Limits::default())));
    world.lock().unwrap().settle();
    let (session, client) = driver::connect(&world);
    Tensor::ones(&session, &[2]).unwrap().fetch().unwrap();
    world.lock().unwrap().kill_worker(PeerId::worker(1));
    world.lock().unwrap().settle();
    drop(Tensor::ones(&session, &[2]).unwrap().add(1.0).unwrap());
    session.flush();
    let mut world = world.lock().unwrap();
    // The dispatcher gets the newcomer's hello before the other worker's report.
    world.add_worker();
    world.settle();
    assert_eq!(world.credit(client), 0);
}
