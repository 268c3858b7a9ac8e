//! Exchanges among many slots go from neighbour to neighbour, with the bits of a fold in the slots'
//! order, through delays, failures and deaths.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use gt_client::config::{SignalConfig, registry};
use gt_client::{Session, Tensor, no_grad};
use gt_dispatcher::{Limits, LineageLimits};
use gt_ir::signal::Shard;
use gt_ir::{DType, Shape};
use gt_sim::faults::{Fault, NoticeDelay};
use gt_sim::{Delays, World, driver};

use crate::common::{FAST, Shared, WILD, randn, within};

fn register() {
    for (name, axis) in [("rows", Some(0)), ("columns", Some(1)), ("copies", None)] {
        let shard = Some(Shard::row(None, axis));
        registry::register(name, SignalConfig { shard, ..SignalConfig::default() });
    }
}

/// Opens a session of as many slots as there are workers; tensors are restored when one dies.
fn open(seed: u64, workers: usize, delays: Delays) -> (Shared, Session) {
    register();
    let lineage =
        LineageLimits { bytes: 64 << 20, total: 64 << 20, time: Duration::from_secs(60), kept: 0 };
    let limits = Limits { lineage: Some(lineage), ..Limits::default() };
    let mut world = World::new(seed, workers, delays, limits);
    world.settle();
    let world = Arc::new(Mutex::new(world));
    let (session, _) = driver::connect(&world);
    session.manual_seed(3);
    (world, session)
}

/// Steps of data parallelism: parameters are broadcast, gradients combined on all slots. Returns the
/// parameters and the losses, as bits.
fn train(session: &Session, steps: usize) -> gt_client::Result<Vec<u64>> {
    let x = randn(session, &[900, 96]);
    let x = within("rows", || x.mul(1.0))?;
    let w = randn(session, &[96, 200]);
    let w = within("copies", || w.mul(1.0))?.detach();
    w.set_requires_grad(true)?;
    let mut found = Vec::new();
    for _ in 0..steps {
        let loss = within("rows", || {
            let y = x.matmul(&w)?.relu()?;
            y.mul(&y)?.mean(&[], false)
        })?;
        loss.backward()?;
        let grad = w.grad().expect("the loss depends on it");
        within("copies", || no_grad(|| w.assign(&w.mul_add(&grad, -0.1)?, "step")))?;
        w.set_grad(None)?;
        found.push(loss.item()?.as_f64().to_bits());
    }
    found.extend(w.to_vec()?.iter().map(|value| value.to_bits()));
    Ok(found)
}

/// A sum over rows that are sharded is the left fold of the shards' sums.
fn check_folds(session: &Session, slots: usize, columns: usize) {
    let rows = 3 * slots + 1;
    let x = randn(session, &[rows, 130, columns]);
    let sum = within("rows", || x.mul(1.0).unwrap()).sum(&[0], false).unwrap();
    let copies = within("copies", || sum.mul(1.0).unwrap());
    let scattered = within("rows", || sum.mul(1.0).unwrap());
    let cuts = gt_ir::layout::balanced_cuts(rows, slots);
    let part = |cut: &[usize]| {
        let shard = x.narrow(0, cut[0], cut[1] - cut[0]).unwrap();
        shard.sum(&[0], false).unwrap()
    };
    let mut parts = cuts.windows(2).map(part);
    let first = parts.next().unwrap();
    let folded = parts.fold(first, |sum, part| sum.add(&part).unwrap()).to_vec().unwrap();
    assert!(copies.to_vec().unwrap() == folded, "{slots} slots, all need it");
    assert!(scattered.to_vec().unwrap() == folded, "{slots} slots, each needs a part");
}

#[test]
fn sums_have_the_bits_of_a_fold_in_the_slots_order() {
    for (slots, delays) in [(3, FAST), (4, FAST), (5, FAST), (6, WILD), (9, FAST), (10, WILD)] {
        let (_, session) = open(slots as u64, slots, delays);
        check_folds(&session, slots, 160);
        // What each slot needs comes back by itself.
        check_folds(&session, slots, 2500);
    }
}

#[test]
fn rows_are_gathered_by_all() {
    for (slots, rows) in [(6usize, 300usize), (9, 5), (9, 100), (9, 3001)] {
        let (_, session) = open(1, slots, WILD);
        let x = randn(&session, &[rows, 64]);
        let sharded = within("rows", || x.mul(2.0).unwrap());
        let whole = within("copies", || sharded.mul(1.0).unwrap());
        assert!(whole.to_vec().unwrap() == x.mul(2.0).unwrap().to_vec().unwrap());
    }
}

#[test]
fn training_has_the_same_bits_under_delays_and_deaths() {
    let slots = 9;
    let (world, calm) = open(0, slots, FAST);
    let expected = train(&calm, 5).unwrap();
    // A chain's links, and those of the slot from which and to which values go.
    let pairs = world.lock().unwrap().pieces_pairs.len();
    assert!(pairs <= 2 * slots, "{pairs} pairs of {slots} workers have a link");
    for seed in 0..60 {
        let (world, session) = open(seed, slots, WILD);
        let (at, worker) = (40 + 41 * seed, seed as usize % slots);
        let next = (worker + 1) % slots;
        let notice = NoticeDelay::Soon;
        let fault = match seed % 4 {
            0 => None,
            1 => Some(Fault::Crash { worker, notice, restart: None }),
            2 => Some(Fault::CutPeers { from: worker, to: next, notice }),
            _ => Some(Fault::Drain { worker }),
        };
        fault.into_iter().for_each(|fault| world.lock().unwrap().plan_fault(at, fault));
        assert!(train(&session, 5).unwrap() == expected, "seed {seed}");
    }
}

#[test]
fn a_failure_reaches_all_slots_and_the_next_sum_is_right() {
    let slots = 9;
    let (_, session) = open(7, slots, WILD);
    let index = Tensor::full(&session, Shape::new(&[18]).unwrap(), 99.0, DType::I64);
    let rows = within("rows", || randn(&session, &[18, 4]).mul(1.0).unwrap());
    let failed = rows.index_select(0, &index.unwrap()).unwrap();
    let sum = within("copies", || failed.sum(&[0], false).unwrap().mul(1.0).unwrap());
    let error = sum.to_vec().unwrap_err().to_string();
    assert!(error.contains("index_select") || error.contains("99"), "{error}");
    check_folds(&session, slots, 160);
}
