//! The cores under delays, reordering, deaths and strangers' messages.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use gt_client::{Session, Tensor, no_grad};
use gt_dispatcher::{Limits, PeerId};
use gt_ir::message::ClientToServer;
use gt_ir::{ClientCommand, DType, Meta, Operand, RequestId, Shape, SourceId, TensorId};
use gt_sim::{Delays, World, driver};

const FAST: Delays = Delays { least: 1, most: 1 };
const WILD: Delays = Delays { least: 1, most: 50_000 };

fn world(seed: u64, workers: usize, delays: Delays) -> Arc<Mutex<World>> {
    Arc::new(Mutex::new(World::new(seed, workers, delays, Limits::default())))
}

/// A small training run: some parameters, gradients, updates and fetched losses.
fn train(session: &Session, steps: usize) -> gt_client::Result<Vec<f64>> {
    session.manual_seed(5);
    let x = Tensor::randn(session, Shape::new(&[8, 4])?, DType::F32)?;
    let y = Tensor::randn(session, Shape::new(&[8, 2])?, DType::F32)?;
    let w = Tensor::randn(session, Shape::new(&[4, 2])?, DType::F32)?;
    w.set_requires_grad(true)?;
    let mut losses = Vec::new();
    for _ in 0..steps {
        let difference = x.matmul(&w)?.relu()?.sub(&y)?;
        let loss = difference.mul(&difference)?.mean(&[], false)?;
        loss.backward()?;
        let grad = w.grad().expect("the loss depends on w");
        no_grad(|| w.assign(&w.mul_add(&grad, -0.1)?, "step"))?;
        w.set_grad(None)?;
        losses.push(loss.item()?.as_f64());
    }
    Ok(losses)
}

#[test]
fn delays_and_reordering_change_nothing() {
    let calm = world(0, 1, FAST);
    let expected = train(&driver::connect(&calm).0, 6).unwrap();
    assert!(expected[5] < expected[0], "training makes progress: {expected:?}");
    for seed in 0..50 {
        let wild = world(seed, 1 + seed as usize % 3, WILD);
        let (session, _) = driver::connect(&wild);
        assert_eq!(train(&session, 6).unwrap(), expected, "seed {seed}");
    }
}

#[test]
fn many_clients_do_not_meet() {
    for seed in 0..10 {
        let world = world(seed, 3, WILD);
        let sessions: Vec<Session> = (0..7).map(|_| driver::connect(&world).0).collect();
        // All clients use the same tensor numbers, with values of their own.
        let tensors: Vec<Tensor> = (0..7)
            .map(|client| Tensor::full(&sessions[client], Shape::SCALAR, client as f64, DType::F64))
            .collect::<Result<_, _>>()
            .unwrap();
        for (client, tensor) in tensors.iter().enumerate() {
            let value = tensor.mul(10.0).unwrap().item().unwrap().as_f64();
            assert_eq!(value, client as f64 * 10.0, "seed {seed}");
        }
    }
}

#[test]
fn a_vanished_client_leaves_nothing() {
    let world = world(3, 2, FAST);
    let (stays, _) = driver::connect(&world);
    let (goes, client) = driver::connect(&world);
    let kept = Tensor::ones(&stays, &[3]).unwrap();
    kept.item().unwrap_err();
    kept.fetch().unwrap();
    let lost: Vec<Tensor> = (0..20).map(|_| Tensor::ones(&goes, &[3]).unwrap()).collect();
    lost[19].fetch().unwrap();
    let mut world_now = world.lock().unwrap();
    assert_eq!(world_now.tensors_held(), 21);
    world_now.kill_client(client);
    let killed = world_now.now();
    world_now.settle();
    assert_eq!(world_now.tensors_held(), 1);
    assert!(world_now.now() - killed < Duration::from_secs(1));
}

#[test]
fn a_dead_worker_fails_what_it_held_and_the_session_goes_on() {
    for seed in 0..20 {
        let world = world(seed, 1, WILD);
        let (session, _) = driver::connect(&world);
        let before = Tensor::ones(&session, &[2]).unwrap();
        before.fetch().unwrap();
        let worker = PeerId::worker(1);
        {
            let mut world = world.lock().unwrap();
            world.add_worker();
            world.kill_worker(worker);
        }
        let error = before.add(1.0).unwrap().fetch().unwrap_err().to_string();
        assert!(error.contains("worker-1") && error.contains("lost"), "seed {seed}: {error}");
        let after = Tensor::ones(&session, &[2]).unwrap();
        assert_eq!(after.add(1.0).unwrap().to_vec().unwrap(), [2.0, 2.0], "seed {seed}");
    }
}

#[test]
fn without_a_worker_a_fetch_fails_after_the_limit() {
    let world = world(1, 0, FAST);
    let (session, _) = driver::connect(&world);
    let error = Tensor::ones(&session, &[2]).unwrap().fetch().unwrap_err().to_string();
    assert!(error.contains("no worker") && error.contains("gt worker --address"), "{error}");
    assert!(world.lock().unwrap().now() >= Limits::default().worker_wait);
    // A worker that joins later serves the waiting commands.
    world.lock().unwrap().add_worker();
    assert_eq!(Tensor::ones(&session, &[2]).unwrap().to_vec().unwrap(), [1.0, 1.0]);
}

/// Commands that no valid client sends harm no other session.
#[test]
fn forged_streams_hurt_only_their_sender() {
    let world = world(9, 1, FAST);
    let (honest, _) = driver::connect(&world);
    let tensor = Tensor::full(&honest, Shape::SCALAR, 7.0, DType::F32).unwrap();
    tensor.fetch().unwrap();
    let forger = world.lock().unwrap().add_client();
    // A tensor id of the planner's range.
    let secret = TensorId::PLANNED.after(1);
    let line = SourceId(0);
    let forged = [
        ClientCommand::Fetch { request: RequestId(0), tensor: TensorId(0), line },
        ClientCommand::Fetch { request: RequestId(1), tensor: secret, line },
        ClientCommand::Free(secret),
        ClientCommand::Free(TensorId(u64::MAX)),
        ClientCommand::Cancel { request: RequestId(0) },
        ClientCommand::Run(gt_ir::Instruction {
            operation: &gt_ir::ops::binary::ADD,
            output: TensorId(u64::MAX),
            results: [Meta::new(DType::F32, Shape::SCALAR)].into_iter().collect(),
            operands: [Operand::Tensor(secret)].into_iter().collect(),
            attributes: Default::default(),
            source: Default::default(),
            signal: 0,
        }),
    ];
    for command in forged {
        let mut world = world.lock().unwrap();
        world.send_from_client(forger, ClientToServer::Stream(vec![command]));
        world.send_from_client(forger, ClientToServer::Release { token: u128::MAX });
        world.settle();
        for message in world.receive(forger) {
            let leaked = message.answer().is_some_and(|answer| answer.result.is_ok());
            assert!(!leaked, "a forger got a value: {message:?}");
        }
    }
    assert_eq!(tensor.item().unwrap().as_f64(), 7.0);
}

#[test]
fn a_flood_does_not_starve_another_client() {
    let world = world(4, 1, FAST);
    let (flood, _) = driver::connect(&world);
    let (small, _) = driver::connect(&world);
    let start = Tensor::ones(&flood, &[4]).unwrap();
    let mut tensor = start.clone();
    for _ in 0..12_000 {
        tensor = tensor.add(1.0).unwrap();
    }
    flood.flush();
    let before = world.lock().unwrap().delivered;
    Tensor::ones(&small, &[1]).unwrap().fetch().unwrap();
    let steps = world.lock().unwrap().delivered - before;
    assert!(steps < 700, "the small client waited for {steps} messages");
    assert_eq!(tensor.to_vec().unwrap()[0], 12_001.0);
}

/// A session starts on one worker; when a second one joins, both use its tensors, failed ones
/// included.
#[test]
fn a_second_worker_joins_a_session_under_way() {
    for seed in 0..30 {
        let world = world(seed, 1, WILD);
        let (session, _) = driver::connect(&world);
        let rows = Tensor::randn(&session, Shape::new(&[6, 4]).unwrap(), DType::F32).unwrap();
        let want = rows.sum(&[], false).unwrap().item().unwrap().as_f64();
        let index = Tensor::full(&session, Shape::new(&[2]).unwrap(), 9.0, DType::I64).unwrap();
        let failed = rows.index_select(0, &index).unwrap();
        world.lock().unwrap().add_worker();
        world.lock().unwrap().settle();
        let both = gt_client::config::SignalConfig {
            shard: Some(gt_ir::signal::Shard::row(None, Some(0))),
            ..Default::default()
        };
        gt_client::config::registry::register("both workers", both);
        let placed = rows.with_signal("both workers", None).unwrap();
        let got = placed.mul(2.0).unwrap().sum(&[], false).unwrap().item().unwrap().as_f64();
        assert!((got - 2.0 * want).abs() < 1e-4, "seed {seed}: {got}, {want}");
        let error = failed.sum(&[], false).unwrap().item().unwrap_err().to_string();
        assert!(error.contains("index 9"), "seed {seed}: {error}");
        assert!(world.lock().unwrap().pieces_bytes > 0, "both have worked");
    }
}

/// Commands that a dead worker had not run count as complete: the session's window does not shrink.
#[test]
fn many_deaths_leave_the_session_its_window() {
    let world = world(5, 1, FAST);
    let (session, _) = driver::connect(&world);
    let mut worker = PeerId::worker(1);
    for round in 0..20 {
        let mut tensor = Tensor::ones(&session, &[2]).unwrap();
        for _ in 0..3_000 {
            tensor = tensor.add(1.0).unwrap();
            if session.is_full() {
                session.wait_for_room(&mut || false).unwrap();
            }
        }
        session.flush();
        let mut world_now = world.lock().unwrap();
        for _ in 0..3 {
            world_now.step();
        }
        let next = world_now.add_worker();
        world_now.kill_worker(worker);
        worker = next;
        drop(world_now);
        let one = Tensor::ones(&session, &[1]).unwrap();
        assert_eq!(one.to_vec().unwrap(), [1.0], "round {round}");
    }
}
