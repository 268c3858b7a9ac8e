//! Sessions whose operations kill workers, beside sessions that share those workers. Only the
//! operations that kill are abandoned: their user gets an error that names the operation, the
//! killer's other tensors are intact, and the other sessions compute what they compute undisturbed,
//! bit for bit.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use gt_client::config::{SignalConfig, registry};
use gt_client::hotpath::Settings;
use gt_client::{Result, Session, Tensor, signal};
use gt_dispatcher::{Limits, LineageLimits};
use gt_engine_native::{NativeEngine, Tensor as Value};
use gt_ir::instruction::Operands;
use gt_ir::signal::Shard;
use gt_ir::{Attributes, Meta, Operation};
use gt_worker::{Engine, EngineError};

use crate::chance::Chance;
use crate::forwarding::forward_to_native;
use crate::{Delays, World, driver};

/// The operation that kills workers.
const DEADLY: &str = "tanh";

/// The native engine, in a process that an operation kills.
pub(crate) struct MortalEngine {
    native: NativeEngine,
    died: Arc<AtomicBool>,
}

impl MortalEngine {
    /// Returns an engine that sets `died` when its process has died.
    pub fn new(died: Arc<AtomicBool>) -> MortalEngine {
        MortalEngine { native: NativeEngine::new(1), died }
    }
}

impl Engine for MortalEngine {
    forward_to_native!();

    fn now(&self) -> Duration {
        self.native.now()
    }

    fn name(&self) -> &str {
        "mortal"
    }

    fn run(
        &mut self,
        operation: &'static Operation,
        operands: Operands<Value>,
        attributes: &Attributes,
        output: Meta,
    ) -> std::result::Result<Value, EngineError> {
        if operation.name == DEADLY {
            self.died.store(true, Ordering::Relaxed);
        }
        self.native.run(operation, operands, attributes, output)
    }
}

/// The signal scope whose tensors are sharded over all workers.
const SCOPE: &str = "killers";

/// The sessions that share the workers, and the steps at which they kill.
#[derive(Debug)]
struct KillSchedule {
    workers: usize,
    delays: Delays,
    steps: usize,
    /// For each session the steps at which it kills.
    kills: Vec<Vec<usize>>,
    hot: bool,
}

impl KillSchedule {
    fn new(seed: u64) -> KillSchedule {
        let mut chance = Chance::new(seed ^ 0x0DEA_D000_0000_0000);
        let (sessions, steps) = (2 + chance.below(3) as usize, 8 + chance.below(16) as usize);
        let mut kills: Vec<Vec<usize>> = vec![Vec::new(); sessions];
        let mut kill = |who: u64| {
            let at = chance.below(steps as u64) as usize;
            kills[who as usize].push(at);
        };
        kill(0);
        let others = seed % 3;
        // A second kill of the same session, or one of another.
        if others > 0 {
            kill(others - 1);
        }
        kills.iter_mut().for_each(|steps| {
            steps.sort_unstable();
            steps.dedup();
        });
        // Two that kill at once may kill both workers that hold another session's values.
        let most = if others > 1 { 1 } else { 3 };
        KillSchedule {
            workers: 1 + chance.below(most) as usize,
            delays: Delays { least: 1, most: [1, 100, 5_000][chance.below(3) as usize] },
            steps,
            kills,
            hot: chance.below(2) == 0,
        }
    }
}

/// Runs the schedule of a seed. Returns the number of abandoned operations.
///
/// # Errors
/// A session that kills no worker was harmed, or a killer got another error.
pub fn run(seed: u64) -> std::result::Result<u64, String> {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let shard = Some(Shard::row(None, Some(0)));
        registry::register(SCOPE, SignalConfig { shard, ..SignalConfig::default() });
    });
    let schedule = KillSchedule::new(seed);
    let ran = catch_unwind(AssertUnwindSafe(|| {
        (compute(seed, &schedule, false), compute(seed, &schedule, true))
    }));
    let ran = ran.map_err(|_| "panic: see above".to_string());
    let told = ran.and_then(|(calm, deadly)| compare(&schedule, calm?, deadly?));
    told.map_err(|wrong| {
        format!("{wrong}\n  seed {seed}: {schedule:?}\n  again: make chaos FIRST={seed} COUNT=1")
    })
}

/// The results of a session: the bits of values, and errors.
type Got = Vec<std::result::Result<Vec<u64>, String>>;

fn compare(
    schedule: &KillSchedule,
    calm: Vec<Got>,
    deadly: Vec<Got>,
) -> std::result::Result<u64, String> {
    let mut count = 0;
    for (index, (calm, deadly)) in calm.into_iter().zip(deadly).enumerate() {
        let mut errors = 0;
        for (place, (wanted, got)) in calm.into_iter().zip(deadly).enumerate() {
            match got {
                got if got == wanted => {}
                Ok(_) => return Err(format!("session {index}: the bits of value {place} differ")),
                Err(error) => {
                    let is_told = [DEADLY, "float32 (5, 4)", "80 bytes", "'w"];
                    if !is_told.iter().all(|words| error.contains(words)) {
                        return Err(format!("session {index}, value {place}: {error}"));
                    }
                    errors += 1;
                }
            }
        }
        let kills = schedule.kills[index].len() as u64;
        if errors != kills {
            return Err(format!("session {index} kills {kills} times, and got {errors} errors"));
        }
        count += errors;
    }
    Ok(count)
}

/// Runs all sessions, in any order; deadly operations kill workers, or are harmless.
fn compute(
    seed: u64,
    schedule: &KillSchedule,
    is_deadly: bool,
) -> std::result::Result<Vec<Got>, String> {
    let (bytes, time) = (1 << 20, Duration::from_secs(5));
    let lineage = Some(LineageLimits { bytes, total: 8 * bytes, time, kept: bytes });
    let mut world = World::new(seed, 0, schedule.delays, Limits { lineage, ..Limits::default() });
    world.died = is_deadly.then(Arc::default);
    for index in 0..schedule.workers {
        world.start_worker(format!("w{index}"));
        world.settle();
    }
    let world = Arc::new(Mutex::new(world));
    let mut chance = Chance::new(seed);
    let mut programs = Vec::new();
    for kills in &schedule.kills {
        let (session, _) = driver::connect(&world);
        session.set_hot_paths(Settings { enabled: schedule.hot, threshold: 3, compile: false });
        // A sharded operation would kill several workers at once.
        let is_cut = kills.is_empty() && chance.below(2) == 0;
        let begun = SessionLoop::new(session, Chance::new(chance.below(1 << 40)), kills, is_cut);
        programs.push(begun.map_err(|error| error.to_string())?);
    }
    let mut open: Vec<usize> = (0..programs.len()).collect();
    while !open.is_empty() {
        let place = chance.below(open.len() as u64) as usize;
        for _ in 0..chance.below(20) {
            world.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).step();
        }
        let program = &mut programs[open[place]];
        program.step().map_err(|error| format!("session {}: {error}", open[place]))?;
        if program.at == schedule.steps {
            open.swap_remove(place);
        }
    }
    Ok(programs.into_iter().map(SessionLoop::end).collect())
}

/// A session's loop.
struct SessionLoop<'a> {
    session: Session,
    kills: &'a [usize],
    is_cut: bool,
    chance: Chance,
    x: Tensor,
    weights: Tensor,
    /// The results of deadly operations that were not fetched yet.
    doomed: Vec<Tensor>,
    at: usize,
    got: Got,
}

impl SessionLoop<'_> {
    fn new(
        session: Session,
        mut chance: Chance,
        kills: &[usize],
        is_cut: bool,
    ) -> Result<SessionLoop<'_>> {
        let mut random = |dims: &[usize]| {
            let numbers = (0..dims.iter().product()).map(|_| chance.below(1 << 20) as f32);
            let values: Vec<f32> = numbers.map(|number| number / (1 << 20) as f32 - 0.5).collect();
            Tensor::from_slice(&session, &values, dims)
        };
        let (x, weights) = (random(&[5, 4])?, random(&[4, 4])?);
        let (doomed, got) = (Vec::new(), Vec::new());
        Ok(SessionLoop { session, kills, is_cut, chance, x, weights, doomed, at: 0, got })
    }

    fn step(&mut self) -> Result<()> {
        if self.is_cut {
            signal::enter(SCOPE, None)?;
        }
        let next = self.x.matmul(&self.weights).and_then(|x| x.add(0.3)).and_then(|x| x.mul(0.9));
        if self.is_cut {
            signal::exit(SCOPE)?;
        }
        self.x = next?;
        if self.kills.contains(&self.at) {
            self.doomed.push(self.x.tanh()?);
        }
        self.at += 1;
        match self.chance.below(4) {
            0 => self.ask(|it| it.x.clone()),
            1 if !self.doomed.is_empty() => self.ask(|it| it.doomed.remove(0)),
            2 => self.session.flush(),
            _ => {}
        }
        Ok(())
    }

    fn ask(&mut self, of: impl FnOnce(&mut Self) -> Tensor) {
        let values = of(self).to_vec();
        let bits = |values: Vec<f64>| values.into_iter().map(f64::to_bits).collect();
        self.got.push(values.map(bits).map_err(|error| error.to_string()));
    }

    fn end(mut self) -> Got {
        while !self.doomed.is_empty() {
            self.ask(|it| it.doomed.remove(0));
        }
        self.ask(|it| it.x.clone());
        self.got
    }
}
