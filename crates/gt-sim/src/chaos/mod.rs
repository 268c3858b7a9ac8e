//! Chaos tests: random worlds derived from a seed, and the invariants that hold in all of them.
//!
//! - `schedule`: a world's size, links, sessions and faults. `program`: a session's random program.
//!
//! The invariants: each wait ends in time, with a value or an error that names its cause; each
//! value equals that of a faultless run; a session that no fault affects, or whose tensors can be
//! restored, gets no error; engines never deadlock; all credit is returned; and no state outlives
//! its session.

mod program;
mod schedule;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use gt_client::ClientError;
use gt_dispatcher::{Limits, LineageLimits, PeerId};
use gt_ir::message::ClientToServer;

use crate::chance::Chance;
use crate::fabric::Hub;
use crate::faults::SILENCE;
use crate::{World, driver};
use gt_worker::Options;

use program::{RandomProgram, ReadOutcome};
use schedule::Schedule;

/// The longest wait: several times the sum of the time until a silent peer is considered lost, and
/// the wait for a worker.
const LIMIT: Duration = Duration::from_secs(4 * (15 + 30));
/// How long each command may wait for memory that others hold.
const MEMORY_LIMIT: Duration = Duration::from_secs(5);
/// The longest wait of a session that no fault affects, as links are slow.
const CALM_LIMIT: Duration = Duration::from_secs(10);

/// Counters of successful schedules.
#[derive(Clone, Copy, Default, Debug)]
pub struct ChaosCounters {
    pub schedules: u64,
    pub values: u64,
    pub errors: u64,
    pub messages: u64,
    pub joined: u64,
}

impl ChaosCounters {
    /// Adds another's counters.
    pub fn add(&mut self, other: &ChaosCounters) {
        self.schedules += other.schedules;
        self.values += other.values;
        self.errors += other.errors;
        self.messages += other.messages;
        self.joined += other.joined;
    }
}

/// Runs the schedule of a seed.
///
/// # Errors
/// The invariant that was violated, and how to reproduce it.
pub fn run(seed: u64) -> Result<ChaosCounters, String> {
    program::register();
    let schedule = Schedule::new(seed);
    let ran = catch_unwind(AssertUnwindSafe(|| ScheduleRun::new(seed, &schedule).go()));
    let ran = ran.unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        Err(format!("panic: {}", text.unwrap_or_else(|| "see above".into())))
    });
    ran.map_err(|wrong| {
        format!("{wrong}\n  seed {seed}: {schedule:?}\n  again: make chaos FIRST={seed} COUNT=1")
    })
}

fn lock(world: &Mutex<World>) -> MutexGuard<'_, World> {
    world.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

struct ScheduleRun<'a> {
    schedule: &'a Schedule,
    chance: Chance,
    world: Arc<Mutex<World>>,
    hub: Option<Arc<Hub>>,
    /// The programs of the sessions that have started.
    programs: Vec<Option<(RandomProgram, PeerId)>>,
    outcome: ChaosCounters,
}

impl ScheduleRun<'_> {
    fn new(seed: u64, schedule: &Schedule) -> ScheduleRun<'_> {
        let hub = schedule.joins.then(Arc::<Hub>::default);
        let time = Duration::from_secs(5);
        let lineage = schedule.lineage.map(|bytes| LineageLimits {
            bytes,
            total: 2 * bytes,
            time,
            kept: bytes / 4,
        });
        let lane_window = schedule.lane_window;
        let limits = Limits { lane_window, lineage, ..Limits::default() };
        let mut world = World::with_hub(seed, 0, schedule.delays, limits, hub.clone());
        if schedule.journal {
            world.keep_journal(limits);
        }
        if schedule.memory.is_some() {
            let (memory, spill) = (schedule.memory, u64::MAX);
            world.options = Options { memory, spill, spill_from: 0, ..world.options };
        }
        world.options.pauses = schedule.pauses;
        (0..schedule.workers).for_each(|index| {
            world.start_worker(format!("w{index}"));
            // In order, and before the first session.
            if !schedule.late {
                world.settle();
            }
        });
        schedule.faults.iter().for_each(|(at, fault)| {
            let begun = world.delivered;
            world.plan_fault(begun + at, *fault);
        });
        let world = Arc::new(Mutex::new(world));
        let chance = Chance::new(seed);
        let programs = schedule.sessions.iter().map(|_| None).collect();
        ScheduleRun { schedule, chance, world, hub, programs, outcome: ChaosCounters::default() }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        lock(&self.world)
    }

    fn go(mut self) -> Result<ChaosCounters, String> {
        for _ in 0..self.schedule.steps {
            for _ in 0..self.chance.below(12) {
                self.world().step();
            }
            let index = self.chance.below(self.programs.len() as u64) as usize;
            if self.chance.below(40) == 0 {
                // The session ends with commands in flight; another one replaces it.
                self.programs[index] = None;
            }
            let since = self.world().now();
            let answer = self.program(index).step();
            self.judge(index, since, answer)?;
        }
        for index in 0..self.programs.len() {
            let since = self.world().now();
            for answer in self.program(index).finish() {
                self.judge(index, since, answer)?;
            }
        }
        self.end()
    }

    /// A session's program, created on first use.
    fn program(&mut self, index: usize) -> &mut RandomProgram {
        let ScheduleRun { schedule, chance, world, programs, .. } = self;
        let (program, _) = programs[index].get_or_insert_with(|| {
            let (session, client) = driver::connect(world);
            lock(world).clients.insert(index, client);
            let workers = schedule.sessions[index].clone();
            (RandomProgram::new(session, chance.below(1 << 40), workers), client)
        });
        program
    }

    /// Checks an answer against the invariants.
    fn judge(&mut self, index: usize, since: Duration, answer: ReadOutcome) -> Result<(), String> {
        let is_calm = self.schedule.calm[index];
        let took = self.world().now() - since;
        let limit = match is_calm {
            false if self.schedule.memory.is_some() => {
                LIMIT + MEMORY_LIMIT * self.schedule.steps as u32
            }
            false => LIMIT,
            // Engines that are blocked on a silent member serve no session until it is considered
            // lost.
            true if self.schedule.joins => CALM_LIMIT + SILENCE,
            true => CALM_LIMIT,
        };
        if took > limit {
            return Err(format!("session {index} has waited for {took:?}"));
        }
        match answer {
            ReadOutcome::None => Ok(()),
            ReadOutcome::Right => {
                self.outcome.values += 1;
                Ok(())
            }
            ReadOutcome::Wrong { got, want } => {
                Err(format!("session {index} got {got:?}, expected {want:?}"))
            }
            ReadOutcome::Failed(error) if is_calm => {
                Err(format!("session {index} has lost nothing, and got: {error}"))
            }
            ReadOutcome::Failed(error) => {
                self.outcome.errors += 1;
                self.judge_error(index, &error)
            }
        }
    }

    /// Checks that an error names its cause.
    fn judge_error(&self, index: usize, error: &ClientError) -> Result<(), String> {
        let text = error.to_string();
        let names = match error {
            ClientError::Failed { .. } => {
                let Schedule { lineage, memory, joins, .. } = self.schedule;
                // Tensors with a lineage are restored, unless there is no memory for them, a group
                // of engines breaks up, or their copies are lost as well.
                let client = self.programs[index].as_ref().map(|(_, client)| *client);
                let is_told = client.is_some_and(|client| self.world().unkept.contains(&client));
                let is_kept = lineage.is_some() && memory.is_none() && !joins && !is_told;
                let is_lost = !is_kept || text.contains("could not be restored");
                let named = (0..8).any(|index| text.contains(&format!("'w{index}")));
                let worker = named && is_lost;
                // Commands that wait for a lost worker may hold memory for longer than other
                // sessions wait.
                let is_full = self.schedule.memory.is_some() && text.contains("it needs");
                worker || is_full || text.contains("no worker") || text.contains("names worker")
            }
            ClientError::Connection(reason) => {
                reason.contains("the connection was lost")
                    || reason.contains("could not be restored")
                    || reason.contains("the session has ended")
            }
            _ => false,
        };
        if names {
            Ok(())
        } else {
            Err(format!("session {index} got an error that names nobody: {text}"))
        }
    }

    /// Ends all sessions, and checks that no state is left.
    fn end(mut self) -> Result<ChaosCounters, String> {
        {
            // A late worker serves the queued commands.
            let mut world = self.world();
            world.planned.clear();
            world.start_worker("w7".into());
            // No session frees memory while its client is idle, so all wait for credit.
            for (_, client) in self.programs.iter().flatten() {
                world.send_from_client(*client, ClientToServer::AwaitCredit);
            }
            world.settle();
        }
        let open: Vec<(usize, u64)> = self
            .programs
            .iter()
            .enumerate()
            .map(|(index, program)| {
                (index, program.as_ref().map_or(0, |(_, client)| self.world().credit(*client)))
            })
            .collect();
        for (index, open) in open {
            if open > 0 {
                return Err(format!("session {index} has not got back {open} of its window"));
            }
        }
        self.programs.clear();
        let mut world = self.world();
        world.settle();
        // Peers that were disconnected late are considered lost by then.
        let until = world.now() + SILENCE;
        while world.now() < until && world.step() {}
        let left = world.leftovers();
        let (deadlocks, messages) = (world.deadlocks.clone(), world.delivered);
        drop(world);
        if !left.is_empty() {
            return Err(format!("left over: {left}"));
        }
        if !deadlocks.is_empty() {
            return Err(format!("engines waited for each other in vain: {}", deadlocks.join("; ")));
        }
        self.outcome.schedules = 1;
        self.outcome.messages = messages;
        self.outcome.joined = self.hub.as_ref().map_or(0, |hub| hub.completed());
        Ok(self.outcome)
    }
}
