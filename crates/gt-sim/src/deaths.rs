//! Repeated deaths: a training loop on random numbers, sharded over all slots, while workers and
//! the dispatcher die, in any order, and new workers join. Its results must equal, bit for bit,
//! those of an undisturbed run; if all copies of a tensor are lost, the error must report it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, Once};
use std::time::Duration;

use gt_client::config::{SignalConfig, registry};
use gt_client::hotpath::Settings;
use gt_client::{ClientError, Result, Session, Tensor, signal};
use gt_dispatcher::{Limits, LineageLimits};
use gt_ir::signal::Shard;
use gt_ir::{DType, Shape};

use crate::chance::Chance;
use crate::faults::{Fault, NoticeDelay};
use crate::published::published;
use crate::{Delays, World, driver};

/// The signal scope of the loop.
const SCOPE: &str = "deaths";

/// The faults that disturb a loop, and the options of its cluster.
#[derive(Debug)]
struct DeathSchedule {
    workers: usize,
    delays: Delays,
    /// The limit of the session's log, in bytes.
    lineage: u64,
    journal: bool,
    /// Whether workers have folders for their state.
    states: bool,
    /// Whether values spill to disk.
    spills: bool,
    steps: usize,
    /// The faults, each after a number of messages.
    faults: Vec<(u64, Fault)>,
    /// The steps after which the client dies, and another one continues with what it kept.
    successions: Vec<usize>,
    /// Whether the loop publishes its data, and reads it from there.
    publishes: bool,
}

impl DeathSchedule {
    fn new(seed: u64) -> DeathSchedule {
        let mut chance = Chance::new(seed ^ 0xDEA7_0000_0000_0000);
        let workers = 1 + chance.below(4) as usize;
        let journal = chance.below(2) == 0;
        let mut schedule = DeathSchedule {
            workers,
            delays: Delays { least: 1, most: [1, 100, 5_000][chance.below(3) as usize] },
            lineage: 2048 << (2 * chance.below(4)),
            journal,
            states: journal && seed.is_multiple_of(3),
            spills: chance.below(4) == 0,
            steps: 8 + chance.below(24) as usize,
            faults: Vec::new(),
            successions: Vec::new(),
            publishes: Chance::new(seed ^ 0x5A4E_0000_0000_0000).below(3) == 0,
        };
        let mut at = 0;
        for _ in 0..1 + chance.below(3) {
            // Some at once, some during recovery from the previous one, some long after.
            at += [0, chance.below(30), chance.below(400)][chance.below(3) as usize];
            let worker = chance.below(workers as u64 + 2) as usize;
            let notice = if chance.below(2) == 0 { NoticeDelay::Soon } else { NoticeDelay::Late };
            let after = Duration::from_micros(chance.below(3_000_000));
            let fault = match chance.below(8) {
                0 => Fault::Start,
                1 | 2 if journal => Fault::Restart,
                1 | 2 => Fault::Leave { worker },
                3 => Fault::Crash { worker, notice, restart: None },
                4 | 5 => Fault::Crash { worker, notice, restart: Some(Duration::ZERO) },
                _ => Fault::Crash { worker, notice, restart: Some(after) },
            };
            schedule.faults.push((at, fault));
        }
        if schedule.states {
            let mut power = Chance::new(seed ^ 0x0FF0_0000_0000_0000);
            for _ in 0..1 + power.below(2) {
                schedule.faults.push((power.below(400), Fault::PowerCut));
            }
        }
        let mut drains = Chance::new(seed ^ 0xD4A1_0000_0000_0000);
        if drains.below(3) == 0 {
            let worker = drains.below(workers as u64 + 1) as usize;
            schedule.faults.push((drains.below(400), Fault::Drain { worker }));
        }
        schedule.faults.sort_by_key(|(at, _)| *at);
        let mut clients = Chance::new(seed ^ 0xC11E_0000_0000_0000);
        if clients.below(3) == 0 {
            let steps = schedule.steps as u64;
            let deaths = 0..1 + clients.below(3);
            schedule.successions = deaths.map(|_| clients.below(steps) as usize).collect();
            schedule.successions.sort_unstable();
        }
        schedule
    }

    /// Returns a schedule in which nothing happens but drains: of all workers but one, or of all if
    /// they have folders and are started again.
    fn of_drains(seed: u64) -> DeathSchedule {
        let mut chance = Chance::new(seed ^ 0xD4A2_0000_0000_0000);
        let workers = 2 + chance.below(3) as usize;
        let (journal, states) = (chance.below(2) == 0, chance.below(2) == 0);
        let count = 1 + chance.below(if states { 4 } else { workers as u64 - 1 }) as usize;
        let first = chance.below(workers as u64) as usize;
        let faults = (0..count).map(|at| {
            let worker = (first + at) % workers;
            (chance.below(400), Fault::Drain { worker })
        });
        let mut faults: Vec<_> = faults.collect();
        faults.sort_by_key(|(at, _)| *at);
        DeathSchedule {
            workers,
            journal: journal || states,
            states,
            lineage: 1 << 20,
            faults,
            ..DeathSchedule::new(seed)
        }
    }

    /// Whether all workers return with their state on disk, and no log exceeds its limit: nothing
    /// may be lost.
    fn loses_nothing(&self) -> bool {
        let is_back = |fault: &Fault| match fault {
            Fault::Crash { restart, .. } => restart.is_some(),
            Fault::Leave { .. } => false,
            _ => true,
        };
        self.states
            && self.lineage >= 1 << 15
            && self.faults.iter().all(|(_, fault)| is_back(fault))
    }
}

/// Counters of schedules by outcome.
#[derive(Clone, Copy, Default, Debug)]
pub struct DeathCounters {
    pub schedules: u64,
    /// The loops that ended with the bits of the undisturbed one.
    pub equal: u64,
    /// The loops that ended with an error that all copies of a tensor are lost.
    pub lost: u64,
}

impl DeathCounters {
    pub fn add(&mut self, other: &DeathCounters) {
        self.schedules += other.schedules;
        self.equal += other.equal;
        self.lost += other.lost;
    }
}

/// Shards what the loop computes.
fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let shard = Some(Shard::row(None, Some(0)));
        registry::register(SCOPE, SignalConfig { shard, ..SignalConfig::default() });
    });
}

/// Runs the loop of a seed, undisturbed and disturbed.
///
/// # Errors
/// The bits differ, or a tensor is lost without need.
pub fn run(seed: u64) -> std::result::Result<DeathCounters, String> {
    register();
    let schedule = DeathSchedule::new(seed);
    let tell = |wrong: String| {
        format!("{wrong}\n  seed {seed}: {schedule:?}\n  again: make chaos FIRST={seed} COUNT=1")
    };
    let ran = catch_unwind(AssertUnwindSafe(|| {
        let undisturbed = train(seed, &schedule, &[], &[]);
        (undisturbed, train(seed, &schedule, &schedule.faults, &schedule.successions))
    }));
    let Ok((undisturbed, disturbed)) = ran else { return Err(tell("panic: see above".into())) };
    let wanted = undisturbed.map_err(|lost| tell(format!("undisturbed: {}", lost.error)))?;
    let mut outcome = DeathCounters { schedules: 1, ..DeathCounters::default() };
    match disturbed {
        Ok(got) if got == wanted => outcome.equal = 1,
        Ok(got) => {
            let step = got.iter().zip(&wanted).position(|(got, wanted)| got != wanted);
            return Err(tell(format!("the bits differ from value {step:?} on")));
        }
        Err(LoopError { error, is_told }) => {
            let text = error.to_string();
            let is_told = is_told
                || ["could not be restored", "no worker", "has ended", "was not published"]
                    .iter()
                    .any(|part| text.contains(part));
            if !is_told || schedule.loses_nothing() {
                return Err(tell(format!("it was lost: {text}")));
            }
            outcome.lost = 1;
        }
    }
    Ok(outcome)
}

/// Runs the loop of a seed while workers are drained. Returns how many were.
///
/// # Errors
/// The bits differ, a tensor is lost, or the user is notified of a loss.
pub fn run_drains(seed: u64) -> std::result::Result<u64, String> {
    register();
    let schedule = DeathSchedule::of_drains(seed);
    let tell = |wrong: String| format!("{wrong}\n  seed {seed}: {schedule:?}");
    let undisturbed = train(seed, &schedule, &[], &schedule.successions);
    let wanted = undisturbed.map_err(|lost| tell(format!("undisturbed: {}", lost.error)))?;
    let mut drained = (0, false);
    let got =
        train_counting(seed, &schedule, &schedule.faults, &schedule.successions, &mut drained);
    match got {
        Ok(_) if drained.1 => Err(tell("the user was notified of a loss".into())),
        Ok(got) if got == wanted => Ok(drained.0),
        Ok(_) => Err(tell("the bits differ".into())),
        Err(lost) => Err(tell(format!("it was lost: {}", lost.error))),
    }
}

/// Trains on a cluster with these faults. Returns the bits of every loss and of the final weights.
fn train(
    seed: u64,
    schedule: &DeathSchedule,
    faults: &[(u64, Fault)],
    successions: &[usize],
) -> std::result::Result<Vec<Vec<u64>>, LoopError> {
    train_counting(seed, schedule, faults, successions, &mut (0, false))
}

/// As [`train`]; counts the workers that were drained, and notes whether the user was notified of a
/// loss.
fn train_counting(
    seed: u64,
    schedule: &DeathSchedule,
    faults: &[(u64, Fault)],
    successions: &[usize],
    drained: &mut (u64, bool),
) -> std::result::Result<Vec<Vec<u64>>, LoopError> {
    let bytes = schedule.lineage;
    let time = Duration::from_secs(5);
    let lineage = Some(LineageLimits { bytes, total: 2 * bytes, time, kept: 1 << 20 });
    let limits = Limits { lineage, ..Limits::default() };
    let mut world = World::new(seed, 0, schedule.delays, limits);
    if schedule.journal {
        world.keep_journal(limits);
    }
    if schedule.states {
        world.keep_states();
    }
    if schedule.spills {
        let (memory, spill) = (Some(4096), u64::MAX);
        world.options = gt_worker::Options { memory, spill, spill_from: 0, ..world.options };
    }
    for index in 0..schedule.workers {
        world.start_worker(format!("w{index}"));
        world.settle();
    }
    let begun = world.delivered;
    faults.iter().for_each(|(at, fault)| world.plan_fault(begun + at, *fault));
    let world = Arc::new(Mutex::new(world));
    let mut values = Vec::new();
    let ends = successions.iter().map(|step| step + 1).chain([schedule.steps]);
    for (clients, end) in ends.enumerate() {
        let is_last = end == schedule.steps && clients == successions.len();
        let failed = |error| LoopError { error, is_told: false };
        let (session, client) = match successions {
            [] => driver::connect(&world),
            _ => driver::attach(&world, "loop")
                .map(|(it, client, _)| (it, client))
                .map_err(failed)?,
        };
        // Until a tensor is sharded, each worker that joins adds a slot.
        session.rescale(Some(schedule.workers as u32), None).map_err(failed)?;
        session.set_hot_paths(Settings { enabled: true, threshold: 3, compile: false });
        let part = LoopPart { end, is_last, keeps: !successions.is_empty() };
        let trained = train_on(&session, seed, schedule.publishes, &mut values, part);
        let mut world = world.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let is_told = world.unkept.contains(&client);
        *drained = (world.drained, drained.1 || is_told);
        trained.map_err(|error| LoopError { error, is_told })?;
        if !is_last {
            world.kill_client(client);
        }
    }
    Ok(values)
}

/// Why a loop ended early.
struct LoopError {
    error: ClientError,
    /// Whether its user was notified that its lineage is not kept.
    is_told: bool,
}

/// What a loop continues from: its data, weights and velocity, and the steps done.
struct LoopState {
    tensors: [Tensor; 4],
    step: usize,
}

impl LoopState {
    /// Returns the state that the session keeps, or the first one.
    fn of(session: &Session, seed: u64, publishes: bool) -> Result<LoopState> {
        if let Some(kept) = session.kept("loop") {
            let step = u64::from_le_bytes(kept.structure[..8].try_into().expect("as kept"));
            let Ok(tensors) = kept.tensors.try_into() else { unreachable!("four were kept") };
            return Ok(LoopState { tensors, step: step as usize });
        }
        let mut chance = Chance::new(seed);
        let mut random = |dims: &[usize]| random(session, &mut chance, dims);
        let (x, t, weights) = (random(&[13, 6])?, random(&[13, 5])?, random(&[6, 5])?);
        let x = if publishes { published(session, &x)? } else { x };
        let velocity = Tensor::full(session, Shape::new(&[6, 5])?, 0.0, DType::F32)?;
        Ok(LoopState { tensors: [x, t, weights, velocity], step: 0 })
    }

    fn keep(&self, session: &Session) -> Result<()> {
        let step = (self.step as u64).to_le_bytes().to_vec();
        session.keep("loop", step.into(), &self.tensors)
    }
}

fn random(session: &Session, chance: &mut Chance, dims: &[usize]) -> Result<Tensor> {
    let count = dims.iter().product();
    let values: Vec<f32> =
        (0..count).map(|_| chance.below(1 << 20) as f32 / (1 << 19) as f32 - 1.0).collect();
    Tensor::from_slice(session, &values, dims)
}

/// The part of a loop that one client runs.
struct LoopPart {
    /// The step at which it ends.
    end: usize,
    is_last: bool,
    /// Whether it keeps its state for a successor.
    keeps: bool,
}

/// Trains in a session, from where its predecessor was.
fn train_on(
    session: &Session,
    seed: u64,
    publishes: bool,
    values: &mut Vec<Vec<u64>>,
    LoopPart { end, is_last, keeps }: LoopPart,
) -> Result<()> {
    signal::enter(SCOPE, None)?;
    let trained = (|| {
        let mut state = LoopState::of(session, seed, publishes)?;
        // Steps that were not kept are done again.
        values.truncate(state.step / 3);
        while state.step < end {
            let [x, t, weights, velocity] = &state.tensors;
            let off = x.matmul(weights)?.sub(t)?;
            let gradient = x.t()?.matmul(&off)?;
            let velocity = velocity.mul(0.9)?.add(&gradient)?;
            let weights = weights.sub(&velocity.mul(0.003)?)?;
            if state.step % 3 == 2 {
                values.push(bits(&off.mul(&off)?.sum(&[], false)?)?);
            }
            state.tensors = [x.clone(), t.clone(), weights, velocity];
            state.step += 1;
            if keeps && state.step % 4 == 0 {
                state.keep(session)?;
            }
        }
        if is_last {
            let weights = &state.tensors[2];
            values.push(bits(&weights.t()?.sum(&[1], false)?)?);
            values.push(bits(weights)?);
        }
        Ok::<_, ClientError>(())
    })();
    signal::exit(SCOPE)?;
    trained
}

/// The bits of a tensor's elements.
fn bits(tensor: &Tensor) -> Result<Vec<u64>> {
    Ok(tensor.to_vec()?.into_iter().map(f64::to_bits).collect())
}
