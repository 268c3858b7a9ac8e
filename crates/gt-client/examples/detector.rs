//! The overhead of the hot path detector in a stream that never repeats: the time to issue an
//! instruction, with and without the detector. The driver drops all commands. Rounds alternate; the
//! medians are printed. With the argument `on` or `off` it runs one round of that kind, for a
//! profiler.

#![allow(clippy::disallowed_methods, reason = "it measures")]

use std::sync::{Arc, Weak};
use std::time::Instant;

use gt_client::driver::{Driver, Interrupt, Outbox};
use gt_client::hotpath::Settings;
use gt_client::{Result, Session, Tensor};
use gt_ir::message::Answer;
use gt_ir::{ClientCommand, RequestId};

/// A driver that drops all commands.
struct Nowhere;

impl Driver for Nowhere {
    fn attach(&self, _: Weak<dyn Outbox>) {}
    fn nudge(&self) {}
    fn submit(&self, batch: &mut Vec<ClientCommand>, _: u64) {
        batch.clear();
    }
    fn is_full(&self) -> bool {
        false
    }
    fn wait_for_room(&self, _: Interrupt) -> Result<()> {
        Ok(())
    }
    fn wait(&self, _: RequestId, _: Interrupt) -> Result<Answer> {
        unreachable!("no request is sent")
    }
    fn abandon(&self, _: RequestId) {}
    fn close(&self) {}
    fn data_roots(&self) -> Option<Vec<String>> {
        Some(Vec::new())
    }

    fn describe(&self) -> String {
        "nowhere".into()
    }

    fn name(&self) -> String {
        "client".into()
    }
}

const INSTRUCTIONS: u32 = 200_000;
const ROUNDS: u64 = 21;

/// Returns the nanoseconds to issue an instruction of a stream without repetitions.
fn issue(look: bool, seed: u64) -> f64 {
    let session = Session::new(Arc::new(Nowhere));
    session.set_hot_paths(Settings { enabled: look, threshold: 3, compile: false });
    let start = |_| Tensor::ones(&session, &[8, 8]).expect("small");
    let mut pool: Vec<Tensor> = (0..8).map(start).collect();
    // Knuth's MMIX generator.
    let mut state = seed;
    let mut random = |below: u64| {
        let next = state.wrapping_mul(6_364_136_223_846_793_005);
        state = next.wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % below
    };
    let begun = Instant::now();
    for _ in 0..INSTRUCTIONS {
        let [a, b, to] = [random(8), random(8), random(8)].map(|index| index as usize);
        let made = match random(7) {
            0 => pool[a].add(&pool[b]),
            1 => pool[a].sub(&pool[b]),
            2 => pool[a].mul(&pool[b]),
            3 => pool[a].maximum(&pool[b]),
            4 => pool[a].exp(),
            5 => pool[a].neg(),
            _ => pool[a].tanh(),
        };
        pool[to] = made.expect("shapes are equal");
    }
    begun.elapsed().as_nanos() as f64 / f64::from(INSTRUCTIONS)
}

fn median(mut times: Vec<f64>) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn main() {
    if let Some(kind) = std::env::args().nth(1) {
        issue(kind == "on", 1);
        return;
    }
    let rounds = (0..ROUNDS).map(|seed| (issue(true, seed), issue(false, seed)));
    let (with, without): (Vec<f64>, Vec<f64>) = rounds.unzip();
    let (with, without) = (median(with), median(without));
    println!("| detector | an instruction | of the other |\n| --- | --- | --- |");
    println!("| off | {without:.0} ns | 1.00 x |");
    println!("| on | {with:.0} ns | {:.2} x |", with / without);
}
