//! Random programs give the same under any signals on any number of workers as on one worker
//! without: operations of all kinds, gradients, updates in place.
//!
//! `GT_PROGRAMS=10000` runs more of them, `GT_PROGRAM=seed` one alone. A program that fails is
//! shrunk and printed.
//!
//! - [`steps`]: what a program is, and how it is run; [`scopes`]: the scopes that its steps run in.
//! - [`writer`]: random programs, by the numbers of [`chance`].

mod chance;
mod scopes;
mod steps;
mod writer;

use std::sync::{Arc, Mutex};

use gt_client::Session;
use gt_dispatcher::Limits;
use gt_ir::TensorData;
use gt_sim::{Delays, World, driver};
use gt_worker::Options;

use crate::programs::scopes::register_scopes;
use crate::programs::steps::{Step, run};
use crate::programs::writer::program;

#[test]
fn random_programs_give_the_same_on_any_placement() {
    let seeds = match number("GT_PROGRAM") {
        Some(seed) => seed..seed + 1,
        None => 0..number("GT_PROGRAMS").unwrap_or(400),
    };
    for seed in seeds {
        let workers = 1 + (seed % 8) as usize;
        register_scopes(seed, workers);
        let steps = program(seed);
        if let Err(error) = check(seed, workers, &steps) {
            let small = shrink(seed, workers, &steps);
            let error = check(seed, workers, &small).err().unwrap_or(error);
            let lines: Vec<String> = small.iter().map(|step| format!("{step:?}")).collect();
            panic!("program {seed} on {workers} workers: {error}\n{}", lines.join("\n"));
        }
    }
}

/// Returns what is wrong with a program's results, if anything.
fn check(seed: u64, workers: usize, steps: &[Step]) -> Result<(), String> {
    let outcome = std::panic::catch_unwind(|| {
        let want = run(&new_session(seed, 1, None), seed, steps, false);
        let got = run(&new_session(seed, workers, memory(seed)), seed, steps, true);
        (want, got)
    });
    let (want, got) = outcome.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        text.unwrap_or_else(|| "a panic".into())
    })?;
    if want.len() != got.len() {
        return Err("not as many values".into());
    }
    for ((name, what, want), (_, _, got)) in want.iter().zip(&got) {
        // An operation that fails on one worker may succeed in part on several.
        let Ok(want) = want else { continue };
        let got = match got {
            Ok(got) => got,
            // A single instruction may need more memory than a worker has.
            Err(error) if memory(seed).is_some() && error.contains("it needs") => continue,
            Err(error) => return Err(format!("{what} of {name}: {error}")),
        };
        if (want.dtype, want.shape) != (got.dtype, got.shape) {
            return Err(format!("{what} of {name} is {} {}", got.dtype, got.shape));
        }
        let numbers = |data: &TensorData| -> Vec<f64> {
            (0..data.shape.numel()).map(|i| data.element(i).as_f64()).collect()
        };
        let (want, got) = (numbers(want), numbers(got));
        let scale = want.iter().filter(|x| x.is_finite()).fold(1.0f64, |max, x| max.max(x.abs()));
        // Functions of integers are float32. A value that has lost all its digits is not compared.
        if scale > 1e9 {
            continue;
        }
        for (index, (a, b)) in want.iter().zip(&got).enumerate() {
            let close = (a - b).abs() <= 1e-4 * scale || a == b || (a.is_nan() && b.is_nan());
            if !close {
                return Err(format!("{what} of {name}: element {index} is {b}, expected {a}"));
            }
        }
    }
    Ok(())
}

/// The smallest part of a program that still fails.
fn shrink(seed: u64, workers: usize, steps: &[Step]) -> Vec<Step> {
    let mut steps = steps.to_vec();
    let mut index = steps.len();
    while index > 0 {
        index -= 1;
        let mut fewer = steps.clone();
        fewer.remove(index);
        if check(seed, workers, &fewer).is_err_and(|error| !error.contains("earlier step")) {
            steps = fewer;
            index = index.min(steps.len());
        }
    }
    steps
}

/// The bytes that each worker may hold: little, for every third program.
fn memory(seed: u64) -> Option<u64> {
    seed.is_multiple_of(3).then_some(1 << (9 + seed % 4))
}

fn new_session(seed: u64, workers: usize, memory: Option<u64>) -> Session {
    let delays = Delays { least: 1, most: if seed.is_multiple_of(2) { 5 } else { 5_000 } };
    let mut world = World::new(seed, 0, delays, Limits::default());
    if memory.is_some() {
        world.options = Options { memory, spill: u64::MAX, spill_from: 0, ..world.options };
    }
    for _ in 0..workers {
        world.add_worker();
    }
    world.settle();
    driver::connect(&Arc::new(Mutex::new(world))).0
}

/// The number in an environment variable.
fn number(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}
