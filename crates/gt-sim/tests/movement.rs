//! Data movement between workers: no more bytes than the best known algorithm needs, in an order
//! that cannot deadlock, and errors instead of waits when a worker dies.

use gt_client::config::{SignalConfig, registry};
use gt_client::{Session, Tensor, no_grad};
use gt_dispatcher::PeerId;
use gt_ir::signal::{MeshAxis, Shard};
use gt_sim::driver;

use crate::common::{FAST, Shared, WILD, randn, within, world};

fn register(name: &str, shard: Shard) {
    registry::register(name, SignalConfig { shard: Some(shard), ..SignalConfig::default() });
}

fn parameter(session: &Session, dims: &[usize]) -> Tensor {
    let parameter = randn(session, dims);
    parameter.set_requires_grad(true).unwrap();
    parameter
}

/// Returns the bytes that workers send each other until all commands that `body` issues are
/// complete.
fn bytes_of(world: &Shared, session: &Session, body: impl FnOnce()) -> u64 {
    let settle = || {
        session.flush();
        let mut world = world.lock().unwrap();
        world.settle();
        world.pieces_bytes
    };
    let before = settle();
    body();
    settle() - before
}

/// One step of training `loss` by plain gradient descent.
fn step(parameters: &[&Tensor], loss: impl FnOnce() -> Tensor) {
    loss().backward().unwrap();
    for parameter in parameters {
        let grad = parameter.grad().expect("the loss depends on it");
        no_grad(|| parameter.assign(&parameter.mul_add(&grad, -0.1).unwrap(), "step")).unwrap();
        parameter.set_grad(None).unwrap();
    }
}

fn mean_square(y: &Tensor) -> Tensor {
    y.mul(y).unwrap().mean(&[], false).unwrap()
}

/// A few numbers, such as partial losses, are not counted.
#[track_caller]
fn assert_bytes(got: u64, want: u64) {
    assert!(got >= want && got < want + 512, "{got} bytes went between workers, expected {want}");
}

/// Data parallelism on n workers: the gradients of W floats are reduce-scattered, then
/// all-gathered. Each takes (n - 1) W floats in all: 8 (n - 1) W bytes.
#[test]
fn data_parallel_steps_move_two_weights() {
    for workers in [2usize, 4] {
        register("data", Shard::row(None, Some(0)));
        register("copies", Shard::row(None, None));
        let world = world(1, workers, FAST);
        let (session, _) = driver::connect(&world);
        let x = within("data", || randn(&session, &[512, 16]));
        let w = within("copies", || parameter(&session, &[16, 64]));
        let forward = || within("data", || mean_square(&x.matmul(&w).unwrap().relu().unwrap()));
        for _ in 0..3 {
            step(&[&w], forward);
        }
        let got = bytes_of(&world, &session, || step(&[&w], forward));
        assert_bytes(got, 8 * (workers as u64 - 1) * 16 * 64);
    }
}

/// Sharded weights: gathered for the step, their gradients reduce-scattered: (n - 1) W floats each
/// time.
#[test]
fn fully_sharded_steps_move_two_weights() {
    register("sharded", Shard::row(None, Some(0)));
    let world = world(2, 4, FAST);
    let (session, _) = driver::connect(&world);
    let (x, w) = within("sharded", || (randn(&session, &[512, 16]), parameter(&session, &[16, 8])));
    let forward = || within("sharded", || mean_square(&x.matmul(&w).unwrap().relu().unwrap()));
    for _ in 0..3 {
        step(&[&w], forward);
    }
    let got = bytes_of(&world, &session, || step(&[&w], forward));
    assert_bytes(got, 8 * 3 * 16 * 8);
}

/// Column-parallel, then row-parallel, as in Megatron: the result, of B x K floats, is all-reduced:
/// 8 (n - 1) B K bytes forward, and none backward without a gradient of x.
#[test]
fn tensor_parallel_steps_move_one_result() {
    register("copied", Shard::row(None, None));
    register("columns", Shard::row(None, Some(1)));
    register("rows", Shard::row(None, Some(0)));
    let world = world(3, 4, FAST);
    let (session, _) = driver::connect(&world);
    let x = within("copied", || randn(&session, &[64, 64]));
    let up = within("columns", || parameter(&session, &[64, 512]));
    let down = within("rows", || parameter(&session, &[512, 64]));
    let forward = || {
        within("copied", || {
            let hidden = x.matmul(&up).unwrap().relu().unwrap();
            mean_square(&hidden.matmul(&down).unwrap())
        })
    };
    for _ in 0..3 {
        step(&[&up, &down], forward);
    }
    let got = bytes_of(&world, &session, || step(&[&up, &down], forward));
    assert_bytes(got, 8 * 3 * 64 * 64);
}

/// Products of sharded matrices, m k by k n, on 4 workers.
#[test]
fn products_move_what_they_must() {
    register("cut rows", Shard::row(None, Some(0)));
    register("cut columns", Shard::row(None, Some(1)));
    register("all of it", Shard::row(None, None));
    let world = world(4, 4, FAST);
    let (session, _) = driver::connect(&world);
    let check = |left: &str, right: &str, [m, k, n]: [usize; 3], want: usize| {
        let a = within(left, || randn(&session, &[m, k]));
        let b = within(right, || randn(&session, &[k, n]));
        let got = bytes_of(&world, &session, || drop(a.matmul(&b).unwrap()));
        assert_eq!(got, want as u64, "{left} @ {right}");
    };
    // Row by replicated, replicated by column: no bytes move.
    check("cut rows", "all of it", [128, 64, 32], 0);
    check("all of it", "cut columns", [128, 64, 32], 0);
    // Column by row: no bytes move, and the result is partial until it is used.
    check("cut columns", "cut rows", [32, 512, 32], 0);
    // Row by row, column by column: the smaller is gathered.
    check("cut rows", "cut rows", [128, 64, 32], 4 * 3 * 64 * 32);
    check("cut columns", "cut columns", [32, 64, 128], 4 * 3 * 32 * 64);
    // Row by column: the smaller is gathered.
    check("cut rows", "cut columns", [128, 64, 32], 4 * 3 * 64 * 32);
}

/// A step of a small transformer block on data x tensor parallel workers, against one worker.
fn block_step(session: &Session, hybrid: bool) -> Vec<f64> {
    session.manual_seed(3);
    let scope = |name: &str, body: &dyn Fn() -> Tensor| {
        if hybrid { within(name, body) } else { body() }
    };
    let x = scope("batch", &|| randn(session, &[18, 8, 16]));
    let qkv = scope("wide", &|| parameter(session, &[16, 48]));
    let out = scope("tall", &|| parameter(session, &[16, 16]));
    let up = scope("wide", &|| parameter(session, &[16, 64]));
    let down = scope("tall", &|| parameter(session, &[64, 16]));
    let mut losses = Vec::new();
    for _ in 0..2 {
        let loss = scope("batch", &|| {
            let parts = x.matmul(&qkv).unwrap().chunk(3, -1).unwrap();
            let scores = parts[0].matmul(&parts[1].transpose(-2, -1).unwrap()).unwrap();
            let mixed = scores.mul(0.25).unwrap().softmax(-1).unwrap().matmul(&parts[2]).unwrap();
            let x = x.add(&mixed.matmul(&out).unwrap()).unwrap();
            let hidden = x.matmul(&up).unwrap().gelu("none").unwrap();
            mean_square(&x.add(&hidden.matmul(&down).unwrap()).unwrap())
        });
        losses.push(loss.item().unwrap().as_f64());
        step(&[&qkv, &out, &up, &down], || loss.mul(0.01).unwrap());
    }
    losses
}

#[test]
fn a_hybrid_step_on_72_workers_equals_one() {
    let grid = |data: Option<i64>, model: Option<i64>| {
        let axis = |name: &str, length, axis| MeshAxis { name: name.into(), length, axis };
        Shard { workers: None, mesh: vec![axis("data", 9, data), axis("model", 8, model)] }
    };
    register("batch", grid(Some(0), None));
    register("wide", grid(None, Some(1)));
    register("tall", grid(None, Some(0)));
    let want = block_step(&driver::connect(&world(5, 1, FAST)).0, false);
    let got = block_step(&driver::connect(&world(5, 72, FAST)).0, true);
    for (got, want) in got.iter().zip(&want) {
        assert!((got - want).abs() < 1e-4 * want.abs(), "{got:?}, one worker gives {want:?}");
    }
}

/// The messages of a program on two workers are the same in a cluster of 4 and of 72.
#[test]
fn planning_grows_with_the_group_not_the_cluster() {
    register("pair", Shard::row(Some(vec![0, 1]), Some(0)));
    let messages = |workers: usize| {
        let world = world(6, workers, FAST);
        let (session, _) = driver::connect(&world);
        bytes_of(&world, &session, || {});
        let before = world.lock().unwrap().delivered;
        let x = within("pair", || randn(&session, &[64, 64]));
        for _ in 0..20 {
            within("pair", || mean_square(&x.matmul(&x).unwrap())).item().unwrap();
        }
        world.lock().unwrap().delivered - before
    };
    assert_eq!(messages(4), messages(72));
}

/// Sessions whose groups of workers overlap, under random delays: none waits forever.
#[test]
fn overlapping_groups_do_not_lock() {
    for seed in 0..60u64 {
        let world = world(seed, 4, WILD);
        let groups = [vec![0, 1, 2], vec![2, 1, 0], vec![3, 0], vec![1, 3, 2, 0]];
        let names: Vec<String> = (0..4).map(|group| format!("group {group}")).collect();
        for (name, group) in names.iter().zip(groups) {
            register(name, Shard::row(Some(group), Some(0)));
        }
        let sessions: Vec<Session> = (0..3).map(|_| driver::connect(&world).0).collect();
        let mut results = Vec::new();
        for session in &sessions {
            session.manual_seed(seed);
        }
        for round in 0..4 {
            for (index, session) in sessions.iter().enumerate() {
                let name = &names[(round + index) % 4];
                let x = within(name, || randn(session, &[12, 6]));
                let moved = x.with_signal(&names[(round * 3 + index + 1) % 4], None).unwrap();
                let product = moved.t().unwrap().matmul(&x).unwrap();
                results.push((index, product.sum(&[], false).unwrap()));
                session.flush();
            }
        }
        let values: Vec<f64> =
            results.iter().rev().map(|(_, sum)| sum.item().unwrap().as_f64()).collect();
        assert!(values.iter().all(|value| value.is_finite()), "seed {seed}: {values:?}");
    }
}

/// A worker dies with pieces of an exchange: results that need them have an error that names the
/// worker; other sessions continue.
#[test]
fn a_death_in_the_middle_of_an_exchange_is_an_error_that_names_it() {
    let mut failed = 0;
    for seed in 0..40u64 {
        let world = world(seed, 3, WILD);
        register("three", Shard::row(Some(vec![0, 1, 2]), Some(0)));
        let (session, _) = driver::connect(&world);
        let (other, _) = driver::connect(&world);
        let bystander = Tensor::ones(&other, &[4]).unwrap();
        let x = within("three", || randn(&session, &[9, 6]));
        let y = within("three", || x.t().unwrap().matmul(&x).unwrap().exp().unwrap());
        session.flush();
        {
            let mut world = world.lock().unwrap();
            for _ in 0..seed {
                world.step();
            }
            world.kill_worker(PeerId::worker(3));
        }
        // If no tensor was lost, its slot moves, or the session did not use the worker.
        if let Err(error) = y.sum(&[], false).unwrap().fetch() {
            let error = error.to_string();
            let named = error.contains("names worker")
                || (error.contains("worker-3") && error.contains("lost"));
            assert!(named, "seed {seed}: {error}");
            failed += 1;
        }
        assert_eq!(bystander.add(1.0).unwrap().to_vec().unwrap(), [2.0; 4], "seed {seed}");
        let fresh = Tensor::ones(&session, &[2]).unwrap();
        assert_eq!(fresh.to_vec().unwrap(), [1.0, 1.0], "seed {seed}");
    }
    assert!(failed > 10, "{failed} of 40 deaths were errors");
}
