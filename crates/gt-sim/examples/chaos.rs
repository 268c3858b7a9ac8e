//! Runs the schedules of COUNT seeds on THREADS threads: `chaos FIRST COUNT [THREADS]`. Prints each
//! violated invariant, and how to reproduce it.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Instant;
use std::{env, process, thread};

use gt_sim::chaos::{self, ChaosCounters};
use gt_sim::{deaths, killers};

/// The number of failures after which it stops.
const ENOUGH: usize = 10;

fn main() {
    let numbers: Vec<u64> =
        env::args().skip(1).filter_map(|argument| argument.parse().ok()).collect();
    let &[first, count, ref more @ ..] = numbers.as_slice() else {
        eprintln!("usage: chaos FIRST COUNT [THREADS]");
        process::exit(2);
    };
    let (next, failures) = (AtomicU64::new(first), AtomicUsize::new(0));
    let work = || {
        let (mut total, mut dead) = (ChaosCounters::default(), deaths::DeathCounters::default());
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= first + count || failures.load(Ordering::Relaxed) >= ENOUGH {
                return (total, dead);
            }
            let chaos = chaos::run(seed).map(|outcome| total.add(&outcome));
            let deaths = deaths::run(seed).map(|outcome| dead.add(&outcome));
            let killers = killers::run(seed).map(drop);
            for wrong in [chaos, deaths, killers].into_iter().filter_map(Result::err) {
                eprintln!("{wrong}\n");
                failures.fetch_add(1, Ordering::Relaxed);
            }
        }
    };
    let start = Instant::now();
    let (total, dead) = thread::scope(|scope| {
        let threads: Vec<_> =
            (0..more.first().copied().unwrap_or(1)).map(|_| scope.spawn(work)).collect();
        let none = (ChaosCounters::default(), deaths::DeathCounters::default());
        threads.into_iter().fold(none, |(mut total, mut dead), thread| {
            let (more, deaths) = thread.join().expect("failures are caught");
            total.add(&more);
            dead.add(&deaths);
            (total, dead)
        })
    });
    let seconds = start.elapsed().as_secs_f64();
    let rate = total.schedules as f64 / seconds;
    println!(
        "in {seconds:.1} s, {rate:.0} schedules a second: {total:?}; deaths in turn: {dead:?}"
    );
    let failures = failures.into_inner();
    if failures > 0 {
        println!("{failures} failed");
        process::exit(1);
    }
}
