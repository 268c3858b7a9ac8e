//! Fixtures of the tests of simulated worlds.

pub mod parts;

use std::sync::{Arc, Mutex};

use gt_client::{Session, Tensor, signal};
use gt_dispatcher::Limits;
use gt_ir::{DType, Shape};
use gt_sim::{Delays, World};

pub const FAST: Delays = Delays { least: 1, most: 1 };
pub const WILD: Delays = Delays { least: 1, most: 20_000 };

pub type Shared = Arc<Mutex<World>>;

/// A world whose workers have joined.
pub fn world(seed: u64, workers: usize, delays: Delays) -> Shared {
    let mut world = World::new(seed, workers, delays, Limits::default());
    world.settle();
    Arc::new(Mutex::new(world))
}

/// Runs a function within a signal scope.
pub fn within<T>(scope: &str, body: impl FnOnce() -> T) -> T {
    signal::enter(scope, None).unwrap();
    let result = body();
    signal::exit(scope).unwrap();
    result
}

pub fn randn(session: &Session, dims: &[usize]) -> Tensor {
    Tensor::randn(session, Shape::new(dims).unwrap(), DType::F32).unwrap()
}
