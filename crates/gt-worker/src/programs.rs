//! The cache of prepared plans (programs), shared by all lanes.
//!
//! A compiled program's first runs are compared with its operations run one by one ([`verify`]); if
//! they differ, the engine no longer uses the compiled code.

use std::hash::BuildHasher;
use std::sync::Arc;
use std::time::Duration;

use gt_ir::event::Mix;
use gt_ir::message::Failure;
use gt_ir::statistics::{CompilationStats, Sequence};
use gt_ir::{Meta, Scalar, SourceId, TensorId};
use rustc_hash::{FxBuildHasher, FxHashMap};

use crate::device::Device;
use crate::engine::{Engine, EngineError, launch_plainly};
use crate::lane::Lane;
use crate::plan::{InputValue, Plan};
use crate::simplify::simplify;
use crate::verify::{self, CheckOutcome, Checks, guarded};

/// The capacity of the cache; the least recently used program is evicted.
const MOST: usize = 256;
/// The number of programs that statistics list.
const SHOWN: usize = 5;

/// The programs of a worker.
pub(crate) struct ProgramCache<P, T> {
    /// Program numbers by the plan's key.
    numbers: FxHashMap<Vec<u8>, u64>,
    entries: FxHashMap<u64, CachedProgram<P, T>>,
    next: u64,
    clock: u64,
    stats: CompilationStats,
    /// The inputs of the last launch that compiled code had overwritten, and that were restored.
    restored: Vec<usize>,
}

struct CachedProgram<P, T> {
    key: Vec<u8>,
    plan: Plan,
    mix: Mix,
    last_uses: Vec<Option<u32>>,
    /// Whether the plan has a varying attribute.
    varies: bool,
    program: P,
    used: u64,
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
            entries: FxHashMap::default(),
            next: 0,
            clock: 0,
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
        let (start, last_uses) = (engine.now(), plan.last_uses());
        let prepared = guarded(|| engine.prepare(&simplify(&plan)));
        self.stats.compile_time += engine.now().saturating_sub(start);
        let Ok(program) = prepared else {
            self.stats.failures += 1;
            return None;
        };
        if self.entries.len() >= MOST {
            let oldest = self.entries.iter().min_by_key(|(number, entry)| (entry.used, **number));
            if let Some((&number, _)) = oldest
                && let Some(entry) = self.entries.remove(&number)
            {
                self.numbers.remove(&entry.key);
            }
        }
        let number = self.next;
        self.next += 1;
        self.numbers.insert(key.clone(), number);
        let (launches, checks) = (0, Checks::default());
        let (saved, taken) = (Duration::ZERO, Duration::ZERO);
        let used = self.clock;
        let varies = plan.steps.iter().any(|step| !step.varying.is_empty());
        let mix = plan.mix();
        self.entries.insert(
            number,
            CachedProgram {
                key,
                plan,
                mix,
                last_uses,
                varies,
                program,
                used,
                launches,
                checks,
                saved,
                taken,
            },
        );
        Some((number, hash))
    }

    /// Waits until a program can be launched; returns whether it can.
    pub fn settle<E: Engine<Program = P>>(
        &mut self,
        engine: &mut E,
        number: u64,
        at_most: Duration,
    ) -> bool {
        let entry = self.entries.get_mut(&number);
        entry.is_none_or(|entry| engine.settle(&mut entry.program, at_most))
    }

    /// Whether a program is still cached.
    pub fn has(&self, number: u64) -> bool {
        self.entries.contains_key(&number)
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
        self.clock += 1;
        let entry = self.entries.get_mut(&number).expect("the caller has asked whether it is");
        entry.used = self.clock;
        if entry.varies
            && let Err(error) = entry.plan.check_varying(inputs)
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

    /// Runs a program and compares it with its operations run one by one.
    fn launch_checked<E: Engine<Program = P, Tensor = T>>(
        &mut self,
        engine: &mut E,
        number: u64,
        inputs: &mut [InputValue<T>],
    ) -> Result<Vec<T>, EngineError> {
        let entry = self.entries.get_mut(&number).expect("it was there");
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
        guarded(|| launch_plainly(engine, plan, last_uses, inputs))
    }

    /// The mix of a program's activities.
    fn mix(&self, number: u64) -> Mix {
        self.entries.get(&number).map_or_else(Mix::default, |entry| entry.mix)
    }

    /// Whether a program is compiled, rather than run operation by operation.
    fn is_compiled<E: Engine<Program = P, Tensor = T>>(&self, engine: &E, number: u64) -> bool {
        self.entries.get(&number).is_some_and(|entry| engine.is_compiled(&entry.program))
    }

    /// A program's operations, for error messages.
    fn summary(&self, number: u64) -> String {
        self.entries.get(&number).map_or_else(String::new, |entry| entry.plan.summary())
    }

    /// Cache size, compile time and estimated time saved.
    pub fn stats(&self) -> CompilationStats {
        let saved = self
            .entries
            .values()
            .map(|entry| entry.saved.saturating_mul(entry.launches.try_into().unwrap_or(u32::MAX)));
        let cache_size = self.entries.len() as u64;
        CompilationStats { cache_size, time_saved: saved.sum(), ..self.stats }
    }

    /// The programs that have run the most operations.
    pub fn top_sequences(&self) -> Vec<Sequence> {
        let mut entries: Vec<_> = self.entries.iter().collect();
        entries.sort_unstable_by_key(|(number, entry)| {
            (std::cmp::Reverse(entry.launches * entry.plan.steps.len() as u64), **number)
        });
        let sequence = |(_, entry): &(&u64, &CachedProgram<P, T>)| {
            let names = entry.plan.steps.iter().map(|step| step.operation.name);
            let mut operations: Vec<&str> = names.take(9).collect();
            if entry.plan.steps.len() > 8 {
                operations[8] = "...";
            }
            Sequence {
                operations: operations.join(" "),
                length: entry.plan.steps.len() as u64,
                repetitions: entry.launches,
                time: entry.taken,
            }
        };
        entries.iter().take(SHOWN).map(sequence).collect()
    }
}

/// The program to run.
pub(crate) struct Launch {
    pub program: u64,
    /// Whether the lane has run it often enough for compiled code.
    pub is_warm: bool,
    /// The number of its operations.
    pub operations: u64,
}

/// A tensor input of a launch.
pub(crate) struct GivenTensor {
    pub id: TensorId,
    pub meta: Meta,
    /// Whether it is not used afterwards.
    pub dies: bool,
}

impl<E: Engine> Device<E> {
    /// The program of a plan: see [`ProgramCache::prepare`].
    pub fn prepare(&mut self, plan: Plan) -> Option<(u64, u64)> {
        if !self.events.is_on {
            return self.programs.prepare(&mut self.engine, plan);
        }
        let (begin, steps) = (self.engine.now(), plan.steps.len());
        let misses = self.programs.stats.cache_misses;
        let program = self.programs.prepare(&mut self.engine, plan);
        if self.programs.stats.cache_misses > misses {
            self.events.compiled(begin, self.engine.now(), steps);
        }
        program
    }

    /// Runs a program, and stores its outputs under their ids. Returns false if it failed: then the
    /// inputs are restored.
    pub fn launch(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        Launch { program, is_warm, operations }: Launch,
        given: &[GivenTensor],
        numbers: impl Iterator<Item = Scalar>,
        kept: impl Iterator<Item = (TensorId, Meta, SourceId)>,
    ) -> bool {
        let mut inputs: Vec<InputValue<E::Tensor>> = Vec::with_capacity(given.len());
        for given in given {
            // A dying input is moved, so that the program holds the only reference.
            let tensor = if given.dies {
                lane.store.take(given.id).map(|(tensor, _)| tensor)
            } else {
                lane.store.ready(given.id).cloned()
            };
            inputs.push(tensor.map_or(InputValue::Taken, InputValue::Tensor));
        }
        inputs.extend(numbers.map(InputValue::Number));
        let launched = self.programs.launch(&mut self.engine, program, is_warm, &mut inputs);
        let outputs = match launched {
            Ok(outputs) => outputs,
            Err(error) => {
                self.restore(lane, program, &error, given, inputs);
                return false;
            }
        };
        for index in std::mem::take(&mut self.programs.restored) {
            if let (Some(of), InputValue::Tensor(tensor)) = (given.get(index), &inputs[index])
                && !of.dies
            {
                lane.store.put_back(of.id, tensor.clone(), of.meta);
            }
        }
        drop(inputs);
        if self.events.is_on {
            self.events.spans(operations, self.programs.mix(program));
        }
        for given in given.iter().filter(|given| given.dies) {
            self.release(lane, given.id, &given.meta);
        }
        for ((id, meta, line), tensor) in kept.zip(outputs) {
            let sources = given.iter().filter(|given| !given.dies).map(|given| given.id);
            self.keep(lane, (id, tensor, meta, line), sources);
        }
        self.stats.operations_total += operations;
        if is_warm && self.programs.is_compiled(&self.engine, program) {
            self.stats.operations_compiled += operations;
        }
        true
    }

    /// Restores the dying inputs of a failed launch. Those that the program has taken are lost: it
    /// may fail after that only if out of memory.
    fn restore(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        program: u64,
        error: &EngineError,
        given: &[GivenTensor],
        inputs: Vec<InputValue<E::Tensor>>,
    ) {
        let mut lost: Option<Arc<Failure>> = None;
        for (given, input) in given.iter().zip(inputs).filter(|(given, _)| given.dies) {
            match input {
                InputValue::Tensor(tensor) => lane.store.put_back(given.id, tensor, given.meta),
                _ => {
                    self.release(lane, given.id, &given.meta);
                    let failure = lost.get_or_insert_with(|| {
                        let (summary, reason) =
                            (self.programs.summary(program), self.explain(lane, error));
                        let (name, line) = (self.stats.name.as_str(), SourceId::default());
                        let largest = self.largest_if_full(lane, error);
                        Arc::new(Failure { largest, ..Failure::new(summary, reason, name, line) })
                    });
                    let failure = Arc::clone(failure);
                    lane.store.fail(&mut self.held, given.id, failure);
                }
            }
        }
    }
}
