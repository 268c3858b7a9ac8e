//! Memory quotas over a long time, and waits for memory that no session will free.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use gt_client::{Session, Tensor};
use gt_dispatcher::Limits;
use gt_dispatcher::rules::{PolicyRule, Rules};
use gt_ir::{DType, Shape};
use gt_sim::{Delays, World, driver};
use gt_worker::Options;

const FAST: Delays = Delays { least: 10, most: 10 };

fn quota(user: &str, bytes: u64) -> Rules {
    let said = PolicyRule { memory: Some(bytes), ..PolicyRule::default() };
    Rules { users: [(user.into(), said)].into(), ..Rules::default() }
}

fn vector(session: &Session, length: usize) -> Tensor {
    Tensor::full(session, Shape::new(&[length]).unwrap(), 1.0, DType::F32).unwrap()
}

/// Returns the virtual time that a request takes.
fn ask(world: &Arc<Mutex<World>>, session: &Session) -> Duration {
    let begin = world.lock().unwrap().now();
    let sum = vector(session, 10).add(&vector(session, 10)).unwrap().sum(&[], false).unwrap();
    assert_eq!(sum.item().unwrap().as_f64(), 20.0);
    world.lock().unwrap().now() - begin
}

#[test]
fn a_client_over_its_quota_leaves_others_unchanged() {
    let new_world = || {
        let mut world = World::new(1, 1, FAST, Limits::default());
        world.set_rules(quota("ada", 1000));
        world.settle();
        Arc::new(Mutex::new(world))
    };
    let calm = new_world();
    let eve = driver::connect_as(&calm, "eve").0;
    let alone: Duration = (0..1000).map(|_| ask(&calm, &eve)).sum();
    let world = new_world();
    let (ada, eve) = (driver::connect_as(&world, "ada").0, driver::connect_as(&world, "eve").0);
    let kept = vector(&ada, 200);
    kept.fetch().unwrap();
    let (mut beside, mut questions, mut failed) = (Duration::ZERO, 0u32, 0u32);
    while failed < 600 {
        // A flood of far more tensors than fit; the failure of one is fetched.
        let more: Vec<Tensor> = (0..20).map(|_| vector(&ada, 100)).collect();
        for _ in 0..20 {
            beside += ask(&world, &eve);
            questions += 1;
        }
        let error = more[19].fetch().unwrap_err().to_string();
        assert!(error.contains("user ada holds 800 bytes of 1.0 KB"), "{error}");
        failed += 1;
    }
    assert!(failed > 500 && questions > 10_000, "{failed} and {questions}");
    let (alone, beside) = (alone.as_secs_f64() / 1e3, beside.as_secs_f64() / f64::from(questions));
    assert!((beside / alone - 1.0).abs() < 0.01, "{beside} beside, {alone} alone");
}

/// Sessions that wait for each other's memory do not wait forever.
#[test]
fn sessions_that_wait_for_each_other_end_their_waits() {
    for seed in 0..50 {
        let delays = Delays { least: 1, most: 5_000 };
        let mut world = World::new(seed, 0, delays, Limits::default());
        world.options = Options { memory: Some(2_000), ..world.options };
        world.add_worker();
        world.settle();
        let world = Arc::new(Mutex::new(world));
        let sessions = [0, 1].map(|_| driver::connect(&world).0);
        let held: Vec<Tensor> = sessions.iter().map(|session| vector(session, 200)).collect();
        let more: Vec<Tensor> = held.iter().map(|held| held.add(1.0).unwrap()).collect();
        let sums: Vec<Tensor> = more.iter().map(|more| more.sum(&[], false).unwrap()).collect();
        let mut failed = 0;
        for (index, sum) in sums.iter().enumerate() {
            match sum.item() {
                Ok(value) => assert_eq!(value.as_f64(), 400.0),
                Err(error) => {
                    let text = error.to_string();
                    assert!(text.contains("it needs"), "seed {seed}, session {index}: {text}");
                    failed += 1;
                }
            }
        }
        assert!(failed > 0, "seed {seed}: there is no room for both");
        drop((held, more, sums));
        for session in &sessions {
            assert_eq!(
                vector(session, 100).sum(&[], false).unwrap().item().unwrap().as_f64(),
                100.0
            );
        }
    }
}

/// The server keeps a record of each tensor, failed ones included: a session has a limit of
/// tensors, which ends only this session.
#[test]
fn a_session_of_too_many_tensors_is_told_and_ends_alone() {
    let mut world = World::new(1, 1, FAST, Limits { tensors: 1_000, ..Limits::default() });
    world.settle();
    let world = Arc::new(Mutex::new(world));
    let (ada, eve) = (driver::connect_as(&world, "ada").0, driver::connect_as(&world, "eve").0);
    let kept = vector(&eve, 10);
    let all: Vec<Tensor> = (0..900).map(|_| vector(&ada, 10)).collect();
    all[899].fetch().unwrap();
    // The limit counts live tensors, not all tensors ever made.
    drop(all);
    let all: Vec<Tensor> = (0..1_100).map(|_| vector(&ada, 10)).collect();
    let error = all[1_099].fetch().unwrap_err().to_string();
    assert!(error.contains("it has more than 1000 tensors at a time"), "{error}");
    assert_eq!(kept.sum(&[], false).unwrap().item().unwrap().as_f64(), 10.0);
}
