//! The cache of prepared plans (programs), shared by all lanes.
//!
//! A compiled program's first runs are compared with its operations run one by one ([`verify`]); if
//! they differ, the engine no longer uses the compiled code.

use std::hash::BuildHasher;
use std::time::Duration;

use gt_ir::cache::{Cache, CacheLimits};
use gt_ir::event::Mix;
use gt_ir::statistics::{CompilationStats, Sequence};
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::engine::pausable::{EngineCall, PausableCall};
use crate::engine::{Engine, EngineError, estimated_time, guarded, launch_plainly};
use crate::plan::{InputValue, Plan, numbers};
use crate::simplify::simplify;
use crate::verify::{self, CheckOutcome, Checks};

/// The capacity of the cache.
const MOST: CacheLimits = CacheLimits::entries(256);
/// The number of programs that statistics list.
const SHOWN: usize = 5;

/// The programs of a worker.
pub(crate) struct ProgramCache<P, T> {
    /// Program numbers by the plan's key.
    numbers: FxHashMap<Vec<u8>, u64>,
    entries: Cache<u64, CachedProgram<P, T>>,
    next: u64,
    stats: CompilationStats,
    /// The inputs of the last launch that compiled code had overwritten, and that were restored.
    restored: Vec<usize>,
}

struct CachedProgram<P, T> {
    key: Vec<u8>,
    plan: Plan,
    mix: Mix,
    /// The estimated work of its operations.
    work: u64,
    last_uses: Vec<Option<u32>>,
    /// Whether the plan has a varying attribute.
    varies: bool,
    program: P,
    launches: u64,
    checks: Checks<T>,
    /// The time saved per launch, measured at the comparison.
    saved: Duration,
    /// The total time of all launches.
    taken: Duration,
}

impl<P, T> Default for ProgramCache<P, T> {
    fn default() -> Self {
        ProgramCache {
            numbers: FxHashMap::default(),
            entries: Cache::new(MOST),
            next: 0,
            stats: CompilationStats::default(),
            restored: Vec::new(),
        }
    }
}

impl<P: Send, T: Clone + Send> ProgramCache<P, T> {
    /// Returns the number of a plan's program, preparing it if it is not cached, and a hash of the
    /// plan. `None` if the engine fails to prepare it.
    pub fn prepare<E: Engine<Program = P, Tensor = T>>(
        &mut self,
        engine: &mut E,
        plan: Plan,
    ) -> Option<(u64, u64)> {
        let key = plan.key();
        let hash = FxBuildHasher.hash_one(&key);
        if let Some(&number) = self.numbers.get(&key) {
            self.stats.cache_hits += 1;
            return Some((number, hash));
        }
        self.stats.cache_misses += 1;
        let (start, last_uses) = (engine.now(), plan.trace.last_uses());
        let prepared = guarded(|| engine.prepare(&simplified(&plan)));
        self.stats.compile_time += engine.now().saturating_sub(start);
        let Ok(program) = prepared else {
            self.stats.failures += 1;
            return None;
        };
        let number = self.next;
        self.next += 1;
        self.numbers.insert(key.clone(), number);
        let (launches, checks) = (0, Checks::default());
        let (saved, taken) = (Duration::ZERO, Duration::ZERO);
        let varies = plan.trace.steps.iter().any(|step| !step.varying.is_empty());
        let (mix, work) = (plan.mix(), plan.work());
        let evicted = self.entries.insert(
            number,
            CachedProgram {
                key,
                plan,
                mix,
                work,
                last_uses,
                varies,
                program,
                launches,
                checks,
                saved,
                taken,
            },
            1,
        );
        for (_, program) in evicted {
            self.numbers.remove(&program.key);
        }
        Some((number, hash))
    }

    /// Waits until a program can be launched; returns whether it can.
    pub fn settle<E: Engine<Program = P>>(
        &mut self,
        engine: &mut E,
        number: u64,
        at_most: Duration,
    ) -> bool {
        let entry = self.entries.peek_mut(&number);
        entry.is_none_or(|entry| engine.settle(&mut entry.program, at_most))
    }

    /// Returns the number of programs that were prepared, as they were not cached.
    pub fn misses(&self) -> u64 {
        self.stats.cache_misses
    }

    /// Takes the inputs of the last launch that compiled code had overwritten, and that were restored.
    pub fn take_restored(&mut self) -> Vec<usize> {
        std::mem::take(&mut self.restored)
    }

    /// Whether a program is still cached.
    pub fn has(&self, number: u64) -> bool {
        self.entries.peek(&number).is_some()
    }

    /// Runs a cached program. The first runs of code that the engine has compiled are compared with
    /// the operations run one by one.
    pub fn launch<E: Engine<Program = P, Tensor = T>>(
        &mut self,
        engine: &mut E,
        number: u64,
        is_warm: bool,
        inputs: &mut [InputValue<T>],
    ) -> Result<Vec<T>, EngineError> {
        let entry = self.entries.get(&number).expect("the caller has asked whether it is");
        if entry.varies
            && let Err(error) = entry.plan.trace.check_varying(numbers(inputs))
        {
            return Err(EngineError::Other(error.to_string()));
        }
        self.stats.cache_hits += u64::from(entry.launches > 0);
        entry.launches += 1;
        if !is_warm {
            let start = engine.now();
            let result = guarded(|| engine.launch_cold(&mut entry.program, inputs));
            entry.taken += engine.now().saturating_sub(start);
            return result;
        }
        if !engine.is_unchecked(&mut entry.program) {
            let start = engine.now();
            let result = guarded(|| engine.launch(&mut entry.program, inputs));
            entry.taken += engine.now().saturating_sub(start);
            return result;
        }
        self.launch_checked(engine, number, inputs)
    }

    /// The mean time of a program that needs no comparison, or an estimate if it has not been run.
    pub fn checked_time<E: Engine<Program = P>>(
        &mut self,
        engine: &mut E,
        number: u64,
    ) -> Option<Duration> {
        let entry = self.entries.peek_mut(&number)?;
        let is_checked = !engine.is_unchecked(&mut entry.program);
        is_checked.then(|| match u32::try_from(entry.launches) {
            Ok(0) | Err(_) => Duration::from_nanos(estimated_time(entry.work, engine.rate())),
            Ok(launches) => entry.taken / launches,
        })
    }

    /// Begins to run a program that needs no comparison, as a call that can be paused. Returns its
    /// inputs if that is not possible.
    pub fn begin<E: Engine<Program = P, Tensor = T>>(
        &mut self,
        engine: &mut E,
        number: u64,
        inputs: Vec<InputValue<T>>,
    ) -> Result<Box<dyn PausableCall<T>>, Vec<InputValue<T>>> {
        let Some(entry) = self.entries.get(&number) else { return Err(inputs) };
        if entry.varies && entry.plan.trace.check_varying(numbers(&inputs)).is_err() {
            return Err(inputs);
        }
        match engine.begin(EngineCall::Program { program: &entry.program, inputs }) {
            Ok(call) => {
                self.stats.cache_hits += u64::from(entry.launches > 0);
                entry.launches += 1;
                Ok(call)
            }
            Err(EngineCall::Program { inputs, .. }) => Err(inputs),
            Err(EngineCall::Operation(_)) => unreachable!("the call itself is returned"),
        }
    }

    /// Adds the time of a launch that has begun by itself.
    pub fn add_time(&mut self, number: u64, taken: Duration) {
        if let Some(entry) = self.entries.peek_mut(&number) {
            entry.taken += taken;
        }
    }

    /// Runs a program and compares it with its operations run one by one.
    fn launch_checked<E: Engine<Program = P, Tensor = T>>(
        &mut self,
        engine: &mut E,
        number: u64,
        inputs: &mut [InputValue<T>],
    ) -> Result<Vec<T>, EngineError> {
        let entry = self.entries.peek_mut(&number).expect("it was there");
        let CachedProgram { plan, last_uses, program, checks, .. } = entry;
        let checked = verify::launch(engine, plan, last_uses, program, checks, inputs)?;
        entry.taken += checked.taken;
        self.restored = checked.restored;
        match checked.verdict {
            CheckOutcome::Open => {}
            CheckOutcome::Right => {
                engine.judge(&mut entry.program, None);
                entry.saved = checked.plainly.saturating_sub(checked.taken);
                self.stats.checked += 1;
            }
            CheckOutcome::Wrong(mismatch) => {
                let place = engine.report(&mismatch);
                let place = place.map_or(String::new(), |place| format!("; {place} replays it"));
                engine.judge(&mut entry.program, Some(&format!("{mismatch}{place}")));
                self.stats.failures += 1;
            }
            CheckOutcome::Unknown(why) => {
                engine.judge(&mut entry.program, Some(&why));
                self.stats.failures += 1;
            }
        }
        if let Some(outputs) = checked.outputs {
            return Ok(outputs);
        }
        let CachedProgram { plan, last_uses, .. } = entry;
        guarded(|| launch_plainly(engine, &plan.trace, last_uses, inputs))
    }

    /// The mix of a program's activities.
    pub fn mix(&self, number: u64) -> Mix {
        self.entries.peek(&number).map_or_else(Mix::default, |entry| entry.mix)
    }

    /// Whether a program is compiled, rather than run operation by operation.
    pub fn is_compiled<E: Engine<Program = P, Tensor = T>>(&self, engine: &E, number: u64) -> bool {
        self.entries.peek(&number).is_some_and(|entry| engine.is_compiled(&entry.program))
    }

    /// A program's operations, for error messages.
    pub fn summary(&self, number: u64) -> String {
        self.entries.peek(&number).map_or_else(String::new, |entry| entry.plan.trace.summary())
    }

    /// Cache size, compile time and estimated time saved.
    pub fn stats(&self) -> CompilationStats {
        let saved = self.entries.iter().map(|(_, entry)| {
            entry.saved.saturating_mul(entry.launches.try_into().unwrap_or(u32::MAX))
        });
        let cache_size = self.entries.len() as u64;
        CompilationStats { cache_size, time_saved: saved.sum(), ..self.stats }
    }

    /// The programs that have run the most operations.
    pub fn top_sequences(&self) -> Vec<Sequence> {
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_unstable_by_key(|(number, entry)| {
            (std::cmp::Reverse(entry.launches * entry.plan.trace.steps.len() as u64), **number)
        });
        let sequence = |(_, entry): &(&u64, &CachedProgram<P, T>)| {
            let names = entry.plan.trace.steps.iter().map(|step| step.operation.name);
            let mut operations: Vec<&str> = names.take(9).collect();
            if entry.plan.trace.steps.len() > 8 {
                operations[8] = "...";
            }
            Sequence {
                operations: operations.join(" "),
                length: entry.plan.trace.steps.len() as u64,
                repetitions: entry.launches,
                time: entry.taken,
            }
        };
        entries.iter().take(SHOWN).map(sequence).collect()
    }
}

/// Returns an equivalent plan with less work.
fn simplified(plan: &Plan) -> Plan {
    let Plan { trace, dies, compile } = plan;
    Plan { trace: simplify(trace), dies: dies.clone(), compile: *compile }
}
