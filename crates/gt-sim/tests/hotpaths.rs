//! Loops on many workers: the same numbers with and without templates, and one message for each
//! iteration.

use gt_client::config::{SignalConfig, registry};
use gt_client::hotpath::Settings;
use gt_client::{Tensor, no_grad, source};
use gt_ir::SourceId;
use gt_ir::signal::Shard;
use gt_sim::{Traffic, driver};

use crate::common::{FAST, Shared, WILD, randn, world};

const HOT: Settings = Settings { enabled: true, threshold: 3, compile: false };
const COLD: Settings = Settings { enabled: false, ..HOT };

fn register(name: &str, axis: Option<i64>) {
    let shard = Some(Shard::row(None, axis));
    registry::register(name, SignalConfig { shard, ..SignalConfig::default() });
}

fn within<T>(scope: Option<&str>, body: impl FnOnce() -> T) -> T {
    match scope {
        Some(scope) => crate::common::within(scope, body),
        None => body(),
    }
}

/// A way to train a model: the placements of its data and parameters, and how often its loss is
/// fetched.
#[derive(Clone, Copy)]
struct Schedule {
    data: Option<&'static str>,
    parameters: Option<&'static str>,
    fetches_every: usize,
    /// The number of steps after which another computation interrupts the loop.
    evaluates_every: usize,
}

/// Trains a small network; returns all fetched losses, and the parameters.
fn train(world: &Shared, settings: Settings, plan: Schedule, steps: usize) -> Vec<f64> {
    let (session, _) = driver::connect(world);
    session.set_hot_paths(settings);
    session.manual_seed(3);
    let x = within(plan.data, || randn(&session, &[12, 6]));
    let parameters: Vec<Tensor> = within(plan.parameters, || {
        [&[6usize, 8][..], &[8], &[8, 5], &[5]]
            .iter()
            .map(|dims| {
                let parameter = randn(&session, dims).mul(0.3).unwrap().detach();
                parameter.set_requires_grad(true).unwrap();
                parameter
            })
            .collect()
    });
    let forward = |x: &Tensor| {
        let [w, b, v, c] = [0, 1, 2, 3].map(|index| &parameters[index]);
        let hidden = x.matmul(w).unwrap().add(b).unwrap().tanh().unwrap();
        hidden.matmul(v).unwrap().add(c).unwrap()
    };
    let mut seen = Vec::new();
    for step in 0..steps {
        let y = forward(&x);
        let loss = y.mul(&y).unwrap().mean(&[], false).unwrap();
        loss.backward().unwrap();
        let rate = -0.2 / (1.0 + step as f64 * 0.1);
        for parameter in &parameters {
            let grad = parameter.grad().unwrap();
            no_grad(|| parameter.assign(&parameter.mul_add(&grad, rate).unwrap(), "step")).unwrap();
            parameter.set_grad(None).unwrap();
        }
        if step % plan.fetches_every == plan.fetches_every - 1 {
            seen.push(loss.item().unwrap().as_f64());
        }
        if step % plan.evaluates_every == plan.evaluates_every - 1 {
            no_grad(|| seen.extend(forward(&x).sum(&[0], false).unwrap().to_vec().unwrap()));
        }
    }
    for parameter in &parameters {
        seen.extend(parameter.to_vec().unwrap());
    }
    if settings.enabled && steps > 12 {
        let stats = session.hot_path_stats();
        let share = stats.hot_instructions as f64 / stats.total_instructions as f64;
        assert!(share > 0.5, "{stats:?}");
    }
    seen
}

#[test]
fn loops_give_the_same_numbers() {
    register("hot rows", Some(0));
    register("hot columns", Some(-1));
    register("hot copies", None);
    let places = [None, Some("hot rows"), Some("hot columns"), Some("hot copies")];
    let mut seed = 0;
    for data in places {
        for parameters in places {
            for (fetches_every, evaluates_every) in [(1000, 1000), (1, 1000), (3, 7)] {
                let plan = Schedule { data, parameters, fetches_every, evaluates_every };
                let want = train(&world(1, 1, FAST), COLD, plan, 30);
                for workers in [1, 2, 3] {
                    seed += 1;
                    let delays = if seed % 2 == 0 { FAST } else { WILD };
                    let got = train(&world(seed, workers, delays), HOT, plan, 30);
                    assert_eq!(got.len(), want.len());
                    for (index, (got, want)) in got.iter().zip(&want).enumerate() {
                        assert!(
                            (got - want).abs() < 1e-4 * want.abs().max(1.0),
                            "{data:?} {parameters:?} on {workers}: {index} is {got}, not {want}"
                        );
                    }
                }
            }
        }
    }
}

/// Returns the cost of an iteration of a hot loop of `operations` operations.
fn traffic_of_an_iteration(
    workers: usize,
    operations: usize,
    settings: Settings,
) -> (Traffic, Traffic) {
    register("hot rows", Some(0));
    let world = world(5, workers, FAST);
    let (session, _) = driver::connect(&world);
    session.set_hot_paths(settings);
    let mut x = within(Some("hot rows"), || randn(&session, &[144, 2]));
    let iterate = |x: &mut Tensor| {
        for index in 0..operations {
            // As if each were on its own line.
            source::set(source::intern(&format!("line {index}")));
            let number = if index % 2 == 0 { 0.5 } else { 2.0 };
            *x = x.mul(number).unwrap();
        }
        source::set(SourceId::default());
        session.flush();
        let mut world = world.lock().unwrap();
        world.settle();
        (world.from_clients, world.to_workers)
    };
    let mut before = iterate(&mut x);
    let mut after = before;
    for _ in 0..14 {
        (before, after) = (after, iterate(&mut x));
    }
    let difference = |after: Traffic, before: Traffic| Traffic {
        messages: after.messages - before.messages,
        commands: after.commands - before.commands,
        bytes: after.bytes - before.bytes,
    };
    (difference(after.0, before.0), difference(after.1, before.1))
}

#[test]
fn a_hot_iteration_is_a_message_for_each_worker() {
    for workers in [1, 2, 7, 72] {
        let (client, to_workers) = traffic_of_an_iteration(workers, 200, HOT);
        assert!(client.messages <= 1 && client.commands <= 1, "{client:?}");
        let count = workers as u64;
        assert!(to_workers.messages <= count && to_workers.commands <= count, "{to_workers:?}");
        let (cold, cold_workers) = traffic_of_an_iteration(workers, 200, COLD);
        assert!(client.bytes * 50 <= cold.bytes, "{client:?} instead of {cold:?}");
        assert!(
            to_workers.bytes * 50 <= cold_workers.bytes,
            "{to_workers:?} instead of {cold_workers:?}"
        );
    }
}

#[test]
fn a_hot_pass_costs_the_same_whatever_its_length() {
    for workers in [1, 3] {
        let (short, short_workers) = traffic_of_an_iteration(workers, 100, HOT);
        let (long, long_workers) = traffic_of_an_iteration(workers, 10_000, HOT);
        assert_eq!(
            (short.messages, short_workers.messages),
            (long.messages, long_workers.messages)
        );
        // Numbers take a byte or two more.
        assert!(long.bytes <= short.bytes + 12, "{short:?} {long:?}");
        assert!(long_workers.bytes <= short_workers.bytes + 12 * workers as u64);
    }
}

#[test]
fn a_worker_that_dies_in_a_hot_loop_is_an_error_and_the_others_go_on() {
    register("hot rows", Some(0));
    let world = world(9, 3, FAST);
    let (session, _) = driver::connect(&world);
    session.set_hot_paths(HOT);
    let mut x = within(Some("hot rows"), || randn(&session, &[9, 2]));
    let mut fresh = || {
        for step in 0..40 {
            x = x.mul(0.5).unwrap().add(1.0).unwrap().tanh().unwrap();
            if step == 30 {
                session.flush();
                let mut world = world.lock().unwrap();
                world.settle();
                world.kill_worker(gt_dispatcher::PeerId::worker(2));
            }
        }
        x.to_vec()
    };
    let error = fresh().unwrap_err().to_string();
    assert!(error.contains("lost"), "{error}");
    let mut y = within(Some("hot rows"), || randn(&session, &[9, 2]));
    for _ in 0..40 {
        y = y.mul(0.5).unwrap().add(1.0).unwrap().tanh().unwrap();
    }
    assert_eq!(y.to_vec().unwrap().len(), 18);
}
