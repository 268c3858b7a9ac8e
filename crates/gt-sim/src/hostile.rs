//! Fuzzing: a hostile client beside a healthy one.
//!
//! Bytes, from a seed or a fuzzer, decide what it sends. They are decoded as commands if possible;
//! these, or else a valid stream, are then mutated: fields are changed, commands dropped, repeated
//! and swapped. The dispatcher, which may be restarted in between, must not fail, the healthy
//! client must get correct numbers, and no memory may leak.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use gt_client::config::{SignalConfig, registry};
use gt_client::hotpath::Settings;
use gt_client::{Session, Tensor, signal};
use gt_dispatcher::{Limits, LineageLimits, PeerId, ToPeer};
use gt_ir::message::{ClientToServer, Goodbye};
use gt_ir::signal::Shard;
use gt_ir::wire::{Record, Source};
use gt_ir::{ClientCommand, Instance};
use rustc_hash::FxHashMap;

use crate::honest::honest;
use crate::mutate::{Choices, mutate};
use crate::{Delays, World, driver};

type Shared = Arc<Mutex<World>>;

/// The number of batches that the hostile client's stream is split into.
const ROUNDS: usize = 6;

/// Has a hostile client send the stream that these bytes decide.
///
/// # Panics
/// One of the conditions above is violated.
pub fn attack(bytes: &[u8]) {
    let mut choices = Choices::new(bytes);
    let delays = Delays { least: 1, most: 1 + choices.below(200) };
    let workers = 1 + choices.below(3) as usize;
    let is_kept = choices.below(2) == 0;
    let (bytes, time) = (4 << 10 << choices.below(8), Duration::from_secs(5));
    let lineage = is_kept.then_some(LineageLimits { bytes, total: 2 * bytes, time, kept: bytes });
    let limits = Limits { lineage, ..Limits::default() };
    let mut world = World::new(choices.below(256), workers, delays, limits);
    if is_kept {
        world.keep_journal(limits);
    }
    let world: Shared = Arc::new(Mutex::new(world));
    lock(&world, World::settle);
    let (healthy, _) = driver::connect(&world);
    healthy.set_hot_paths(Settings { enabled: true, threshold: 3, compile: false });
    let shard = Some(Shard::row(None, Some(0)));
    registry::register("healthy", SignalConfig { shard, ..SignalConfig::default() });
    let mut stream = match Vec::<ClientCommand>::read(&mut Source::new(choices.rest(), &[])) {
        Ok(commands) if !commands.is_empty() => commands,
        _ => honest(),
    };
    mutate(&mut stream, &mut choices);
    if choices.below(4) > 0 {
        agree(&mut stream);
    }
    let length = stream.len().div_ceil(ROUNDS).max(1);
    let batches: Vec<Vec<ClientCommand>> = stream.chunks(length).map(<[_]>::to_vec).collect();
    let mut hostile: Vec<PeerId> = vec![lock(&world, World::add_client)];
    let mut loss = HealthyLoop::new(&healthy);
    for round in 0..2 * ROUNDS {
        let last = hostile[hostile.len() - 1];
        if let Some(batch) = batches.get(round) {
            let message = ClientToServer::Stream(batch.clone());
            lock(&world, |world| world.send_from_client(last, message));
        }
        if is_kept && choices.below(5) == 0 {
            lock(&world, World::restart);
        }
        loss.step();
        if was_ended(&lock(&world, |world| world.receive(last))) {
            hostile.push(lock(&world, World::add_client));
        }
    }
    for client in hostile {
        assert!(lock(&world, |world| world.receive(client)).iter().all(is_sane));
        lock(&world, |world| world.kill_client(client));
    }
    drop(loss);
    healthy.close();
    lock(&world, World::settle);
    assert_eq!(lock(&world, |world| world.tensors_held()), 0, "memory is left behind");
}

fn lock<T>(world: &Shared, body: impl FnOnce(&mut World) -> T) -> T {
    body(&mut world.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

/// Whether a message does not report a panic.
fn is_sane(message: &ToPeer) -> bool {
    match message {
        ToPeer::Goodbye(Goodbye { reason }) => !reason.contains("the planner failed"),
        _ => true,
    }
}

fn was_ended(messages: &[ToPeer]) -> bool {
    if let Some(mad) = messages.iter().find(|message| !is_sane(message)) {
        panic!("{mad:?}");
    }
    messages.iter().any(|message| matches!(message, ToPeer::Goodbye(_)))
}

/// The healthy client: a loop with known results.
struct HealthyLoop {
    tensor: Tensor,
    number: f32,
}

impl HealthyLoop {
    fn new(session: &Session) -> HealthyLoop {
        let tensor = within(|| Tensor::ones(session, &[6]));
        HealthyLoop { tensor, number: 1.0 }
    }

    fn step(&mut self) {
        self.tensor = within(|| self.tensor.mul(0.5)?.add(3.0)?.mul(0.75)?.add(-1.0));
        self.number = (self.number * 0.5 + 3.0) * 0.75 - 1.0;
        let sum = within(|| self.tensor.sum(&[0], false));
        let sum = sum.item().expect("the healthy session goes on").as_f64();
        let want = f64::from(self.number) * 6.0;
        assert!((sum - want).abs() < 1e-4, "{sum} instead of {want}");
    }
}

fn within<T>(body: impl FnOnce() -> gt_client::Result<T>) -> T {
    signal::enter("healthy", None).expect("it is registered");
    let result = body();
    signal::exit("healthy").expect("it was entered");
    result.expect("nothing is wrong with it")
}

/// Corrects the digests of invocations, so that they are not rejected at once.
fn agree(stream: &mut [ClientCommand]) {
    let mut known: FxHashMap<u32, Instance> = FxHashMap::default();
    for command in stream {
        match command {
            ClientCommand::Define(definition) if definition.check_client().is_ok() => {
                known.insert(definition.number, Instance::new((**definition).clone()));
            }
            ClientCommand::Invoke(invocation) => {
                let Some(instance) = known.get_mut(&invocation.template) else { continue };
                let mut tried = instance.clone();
                // On a digest error the bindings have been applied all the same.
                let _ = tried.take(invocation);
                invocation.digest = tried.bindings.digest();
                let _ = instance.take(invocation);
            }
            _ => {}
        }
    }
}
