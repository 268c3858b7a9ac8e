//! Measures a hot iteration: messages and bytes on the wire, and the dispatcher's time.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use gt_client::config::{SignalConfig, registry};
use gt_client::hotpath::Settings;
use gt_client::{Tensor, signal, source};
use gt_dispatcher::Limits;
use gt_ir::signal::Shard;
use gt_ir::{DType, Shape};
use gt_sim::{Delays, World, driver};

struct Iteration {
    client_bytes: u64,
    worker_bytes: u64,
    messages: u64,
    dispatching: Duration,
}

/// Returns the median cost of an iteration of a loop of `operations` operations on tensors that are
/// sharded over all workers.
fn iteration(workers: usize, operations: usize, hot: bool) -> Iteration {
    let mut world = World::new(1, workers, Delays { least: 1, most: 1 }, Limits::default());
    world.settle();
    let world = Arc::new(Mutex::new(world));
    let (session, _) = driver::connect(&world);
    session.set_hot_paths(Settings { enabled: hot, threshold: 3, compile: false });
    signal::enter("rows", None).expect("it may be entered");
    let shape = Shape::new(&[144, 2]).expect("small");
    let mut x = Tensor::randn(&session, shape, DType::F32).expect("a valid shape");
    signal::exit("rows").expect("entered above");
    let mut passes = Vec::new();
    for _ in 0..41 {
        let before = {
            let world = world.lock().expect("nobody panicked");
            (world.from_clients, world.to_workers, world.dispatching)
        };
        for index in 0..operations {
            source::set(source::intern(&format!("line {index}")));
            x = x.mul(if index % 2 == 0 { 0.5 } else { 2.0 }).expect("a valid product");
        }
        session.flush();
        let mut world = world.lock().expect("nobody panicked");
        world.settle();
        passes.push(Iteration {
            client_bytes: world.from_clients.bytes - before.0.bytes,
            worker_bytes: world.to_workers.bytes - before.1.bytes,
            messages: world.to_workers.messages - before.1.messages,
            dispatching: world.dispatching - before.2,
        });
    }
    let mut last = passes.split_off(20);
    last.sort_by_key(|one| one.dispatching);
    last.swap_remove(last.len() / 2)
}

fn main() {
    let shard = Some(Shard::row(None, Some(0)));
    registry::register("rows", SignalConfig { shard, ..SignalConfig::default() });
    println!(
        "| operations | workers | bytes from the client, hot / cold | bytes to each worker | messages | dispatcher CPU, hot / cold |"
    );
    println!("| --- | --- | --- | --- | --- | --- |");
    for (operations, workers) in [(200, 1), (200, 2), (200, 72), (100, 2), (10_000, 2)] {
        let (hot, cold) =
            (iteration(workers, operations, true), iteration(workers, operations, false));
        println!(
            "| {operations} | {workers} | {} / {} ({:.2} %) | {} / {} | {} / {} | {:.1} / {:.1} us |",
            hot.client_bytes,
            cold.client_bytes,
            100.0 * hot.client_bytes as f64 / cold.client_bytes as f64,
            hot.worker_bytes / workers as u64,
            cold.worker_bytes / workers as u64,
            hot.messages,
            cold.messages,
            hot.dispatching.as_secs_f64() * 1e6,
            cold.dispatching.as_secs_f64() * 1e6,
        );
    }
}
