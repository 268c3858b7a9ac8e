//! Collectives of engines: the same numbers as by pieces, the same error for all members, and no
//! endless waits.

use std::sync::{Arc, Mutex};

use gt_client::config::{SignalConfig, registry};
use gt_client::hotpath::Settings;
use gt_client::{Session, Tensor, no_grad};
use gt_dispatcher::{Limits, PeerId};
use gt_ir::signal::Shard;
use gt_ir::{DType, WorkerId};
use gt_sim::fabric::Hub;
use gt_sim::{Delays, World, driver};

use crate::common::{FAST, Shared, WILD, randn, within, world};

/// Creates a world whose engines have collectives, and the hub where they meet.
fn joining(seed: u64, workers: usize, delays: Delays) -> (Shared, Arc<Hub>) {
    let hub = Arc::new(Hub::default());
    let limits = Limits::default();
    let mut world = World::with_hub(seed, workers, delays, limits, Some(Arc::clone(&hub)));
    world.settle();
    (Arc::new(Mutex::new(world)), hub)
}

fn register(name: &str, workers: Option<Vec<u32>>, axis: Option<i64>) {
    let shard = Some(Shard::row(workers, axis));
    registry::register(name, SignalConfig { shard, ..SignalConfig::default() });
}

/// Steps of training with a batch of odd length in parts, and its losses.
fn train(session: &Session, steps: usize) -> Vec<f64> {
    register("batch", None, Some(0));
    register("copies", None, None);
    session.set_hot_paths(Settings { enabled: true, threshold: 3, compile: false });
    session.manual_seed(3);
    let x = within("batch", || randn(session, &[13, 6]));
    let w = within("copies", || randn(session, &[6, 5]));
    w.set_requires_grad(true).unwrap();
    let step = || {
        let loss = within("batch", || {
            let hidden = x.matmul(&w).unwrap().relu().unwrap();
            hidden.mul(&hidden).unwrap().mean(&[], false).unwrap()
        });
        loss.backward().unwrap();
        let grad = w.grad().expect("the loss depends on it");
        no_grad(|| w.assign(&w.mul_add(&grad, -0.1).unwrap(), "step")).unwrap();
        w.set_grad(None).unwrap();
        loss
    };
    // Seen at the end: until then, iterations are one message each.
    let losses: Vec<Tensor> = (0..steps).map(|_| step()).collect();
    let stats = session.hot_path_stats();
    assert!(2 * stats.hot_instructions > stats.total_instructions, "{stats:?}");
    losses.iter().map(|loss| loss.item().unwrap().as_f64()).collect()
}

#[track_caller]
fn assert_close(got: &[f64], want: &[f64]) {
    let fine = |(got, want): (&f64, &f64)| (got - want).abs() <= 1e-5 * want.abs().max(1e-3);
    assert!(got.iter().zip(want).all(fine), "{got:?}, in pieces it is {want:?}");
}

/// Hot paths: each iteration invokes a template whose exchanges are collectives.
#[test]
fn training_gives_the_numbers_that_pieces_give() {
    for workers in [2, 3, 4] {
        let want = train(&driver::connect(&world(1, workers, FAST)).0, 20);
        for seed in 0..10 {
            let (world, hub) = joining(seed, workers, WILD);
            let (session, _) = driver::connect(&world);
            assert_close(&train(&session, 20), &want);
            assert!(hub.completed() >= 20, "{} calls", hub.completed());
        }
    }
}

/// Tensors that engines exchange do not pass through the workers: only announcements do.
#[test]
fn data_goes_by_the_engines_alone() {
    register("rows", None, Some(0));
    register("columns", None, Some(1));
    let (world, _) = joining(1, 3, FAST);
    let (session, _) = driver::connect(&world);
    let x = within("rows", || randn(&session, &[300, 300]));
    let y = within("columns", || x.matmul(&x).unwrap().exp().unwrap());
    y.sum(&[], false).unwrap().item().unwrap();
    assert!(world.lock().unwrap().pieces_bytes < 1000);
}

/// Each collective call, for every kind of dtype, in even and uneven parts.
#[test]
fn every_movement_of_every_dtype_is_exact() {
    let columns = |session: &Session, rows: usize, dtype: DType| -> Vec<Vec<f64>> {
        session.manual_seed(7);
        register("rows", None, Some(0));
        register("columns", None, Some(1));
        register("all", None, None);
        register("first", Some(vec![0]), None);
        let whole = || {
            let x = randn(session, &[rows, 4]).mul(3.0).unwrap();
            x.cast(dtype).unwrap()
        };
        let moved = |from: &str, to: &str| {
            let x = within(from, whole);
            within(to, || x.with_signal(to, None).unwrap().to_vec().unwrap())
        };
        let pairs = ["rows", "columns", "all", "first"];
        let mut results = Vec::new();
        for from in pairs {
            for to in pairs {
                results.push(moved(from, to));
            }
        }
        let x = within("rows", whole);
        results.push(within("rows", || x.amax(&[0], false).unwrap().to_vec().unwrap()));
        results.push(within("rows", || x.amin(&[0], false).unwrap().to_vec().unwrap()));
        if dtype != DType::Bool {
            results.push(within("rows", || x.sum(&[0], false).unwrap().to_vec().unwrap()));
        }
        results
    };
    for dtype in [DType::Bool, DType::U8, DType::I16, DType::I64, DType::F16, DType::F64] {
        for (workers, rows) in [(2, 4), (3, 6), (3, 2), (3, 7)] {
            let want = columns(&driver::connect(&world(1, workers, FAST)).0, rows, dtype);
            let (world, hub) = joining(1, workers, WILD);
            let got = columns(&driver::connect(&world).0, rows, dtype);
            assert_eq!(got, want, "{dtype}, {rows} rows on {workers} workers");
            assert!(hub.completed() > 0);
        }
    }
}

/// One part of the input fails: every member's output has its error, no engine is called, and the
/// workers continue.
#[test]
fn the_failure_of_one_input_is_everybodys() {
    register("rows", None, Some(0));
    for seed in 0..20 {
        let (world, hub) = joining(seed, 3, WILD);
        let (session, _) = driver::connect(&world);
        let table = Tensor::ones(&session, &[4, 4]).unwrap();
        let index: Vec<i64> = (0..9).map(|place| if place == 7 { 70 } else { 1 }).collect();
        let index = within("rows", || Tensor::from_slice(&session, &index, &[9]).unwrap());
        let picked = within("rows", || table.index_select(0, &index).unwrap());
        session.flush();
        world.lock().unwrap().settle();
        let calls = hub.completed();
        let total = within("rows", || picked.sum(&[0], false).unwrap().exp().unwrap());
        let error = total.to_vec().unwrap_err().to_string();
        assert!(error.contains("index 70 is out of range"), "seed {seed}: {error}");
        assert_eq!(hub.completed(), calls, "no engine was called");
        let fine = within("rows", || Tensor::ones(&session, &[9, 2]).unwrap());
        let sum = within("rows", || fine.sum(&[0], false).unwrap().add(1.0).unwrap());
        assert_eq!(sum.to_vec().unwrap(), [10.0, 10.0], "seed {seed}");
    }
}

/// Sessions whose groups of workers overlap, under random delays.
#[test]
fn overlapping_groups_do_not_lock() {
    for seed in 0..60u64 {
        let (world, hub) = joining(seed, 4, WILD);
        let groups = [vec![0, 1, 2], vec![2, 1, 0], vec![3, 0], vec![1, 3, 2, 0]];
        let names: Vec<String> =
            (0..4).map(|group| format!("engine_collective group {group}")).collect();
        for (name, group) in names.iter().zip(groups) {
            register(name, Some(group), Some(0));
        }
        let sessions: Vec<Session> = (0..3).map(|_| driver::connect(&world).0).collect();
        sessions.iter().for_each(|session| session.manual_seed(seed));
        let mut results = Vec::new();
        for round in 0..4 {
            for (index, session) in sessions.iter().enumerate() {
                let name = &names[(round + index) % 4];
                let x = within(name, || randn(session, &[12, 6]));
                let moved = x.with_signal(&names[(round * 3 + index + 1) % 4], None).unwrap();
                let product = moved.t().unwrap().matmul(&x).unwrap();
                results.push(product.sum(&[], false).unwrap());
                session.flush();
            }
        }
        let values: Vec<f64> =
            results.iter().rev().map(|sum| sum.item().unwrap().as_f64()).collect();
        assert!(values.iter().all(|value| value.is_finite()), "seed {seed}: {values:?}");
        assert!(hub.completed() > 0);
    }
}

/// A member dies at any moment, also while others wait for it in a call: an error names it, if it
/// held tensors, and the others continue.
#[test]
fn the_death_of_a_member_is_an_error_that_names_it() {
    let mut failed = 0;
    for seed in 0..80u64 {
        let (world, _) = joining(seed, 3, WILD);
        register("engine_collective three", Some(vec![0, 1, 2]), Some(0));
        register("engine_collective rest", None, Some(0));
        let (session, _) = driver::connect(&world);
        let x = within("engine_collective three", || randn(&session, &[9, 6]));
        let y =
            within("engine_collective three", || x.t().unwrap().matmul(&x).unwrap().exp().unwrap());
        session.flush();
        {
            let mut world = world.lock().unwrap();
            for _ in 0..seed / 2 {
                world.step();
            }
            world.kill_worker(PeerId::worker(3));
        }
        // If no tensor was lost, its slot moves, and the values arrive.
        match y.sum(&[], false).unwrap().fetch() {
            Ok(value) => assert!(value.element(0).as_f64().is_finite(), "seed {seed}"),
            Err(error) => {
                let error = error.to_string();
                // The session may have come to know the workers without it.
                let named = error.contains("worker-3") || error.contains("names worker ");
                assert!(named, "seed {seed}: {error}");
                failed += 1;
            }
        }
        let fresh = within("engine_collective rest", || Tensor::ones(&session, &[5, 2]).unwrap());
        let sum = within("engine_collective rest", || {
            fresh.sum(&[0], false).unwrap().exp().unwrap().log()
        });
        let sum: Vec<f64> = sum.unwrap().to_vec().unwrap();
        assert!(sum.iter().all(|value| (value - 5.0).abs() < 1e-5), "seed {seed}: {sum:?}");
    }
    assert!((20..80).contains(&failed), "{failed} of 80 deaths were errors");
}

/// A client that disappears leaves no call incomplete: other sessions' exchanges continue.
#[test]
fn a_vanished_client_leaves_no_member_waiting() {
    for seed in 0..60u64 {
        let (world, _) = joining(seed, 3, WILD);
        register("rows", None, Some(0));
        let (stays, _) = driver::connect(&world);
        let (goes, client) = driver::connect(&world);
        let sum = |session: &Session| {
            let x = within("rows", || randn(session, &[9, 6]));
            within("rows", || x.t().unwrap().matmul(&x).unwrap().exp().unwrap())
        };
        let kept: Vec<Tensor> = (0..3).map(|_| sum(&stays)).collect();
        let lost: Vec<Tensor> = (0..3).map(|_| sum(&goes)).collect();
        stays.flush();
        goes.flush();
        {
            let mut world = world.lock().unwrap();
            for _ in 0..seed {
                world.step();
            }
            world.kill_client(client);
        }
        for y in kept.into_iter().chain([sum(&stays)]) {
            let values: Vec<f64> = y.to_vec().unwrap();
            assert!(values.iter().all(|value| value.is_finite()), "seed {seed}: {values:?}");
        }
        drop(lost);
    }
}

/// A call that fails does so for all members; the next call creates their group again.
#[test]
fn a_group_that_failed_is_made_anew() {
    register("rows", None, Some(0));
    for seed in 0..20 {
        let (world, hub) = joining(seed, 3, WILD);
        let (session, _) = driver::connect(&world);
        let sum = || {
            let x = within("rows", || Tensor::ones(&session, &[6, 6]).unwrap());
            within("rows", || x.sum(&[0], false).unwrap().add(1.0).unwrap())
        };
        assert_eq!(sum().to_vec().unwrap(), [7.0; 6]);
        hub.fail_next(WorkerId(1));
        let error = sum().to_vec().unwrap_err().to_string();
        let named = ["'worker-1'", "'worker-2'", "'worker-3'", "by hub/1"];
        let named = named.iter().all(|name| error.contains(name));
        assert!(named, "seed {seed}: {error}");
        assert_eq!(sum().to_vec().unwrap(), [7.0; 6], "seed {seed}");
    }
}
