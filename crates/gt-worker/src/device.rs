//! The device: the state that all lanes of a worker share (engine, programs, statistics, events),
//! and the execution of single commands on it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use gt_ir::instruction::Operands;
use gt_ir::message::Failure;
use gt_ir::statistics::WorkerStats;
use gt_ir::stored::{SavePart, SavedBlock};
use gt_ir::{Content, Create, Instruction, Meta, Operand, SourceId, TensorId, WorkerCommand};
use smallvec::SmallVec;

use crate::composite;
use crate::engine::{Engine, EngineError};
use crate::events::Emitter;
use crate::lane::Lane;
use crate::memory::need_of;
use crate::programs::ProgramCache;
use crate::store::{HeldTotals, SpillPlace, Stored};
use crate::work::{FileJob, Options, Out, ToSave};

pub(crate) struct Device<E: Engine> {
    pub engine: E,
    pub options: Options,
    pub stats: WorkerStats,
    pub held: HeldTotals,
    pub programs: ProgramCache<E::Program, E::Tensor>,
    pub events: Emitter,
}

/// Shapes and dtypes of operands.
pub(crate) type Metas = SmallVec<[Operand<Meta>; 3]>;

impl<E: Engine> Device<E> {
    pub fn new(name: String, engine: E) -> Device<E> {
        let stats =
            WorkerStats { name, engine: engine.name().to_string(), ..WorkerStats::default() };
        Device {
            engine,
            options: Options::default(),
            stats,
            held: HeldTotals::default(),
            programs: ProgramCache::default(),
            events: Emitter::new(),
        }
    }

    /// Fails an instruction for which there is no memory: for its results, or for operands to be
    /// unspilled.
    #[cold]
    fn fail_without_room(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        instruction: &Instruction,
        results: u64,
    ) {
        let reads: SmallVec<[TensorId; 4]> = instruction.reads().collect();
        let (title, bytes) = (instruction.title().into(), results + lane.store.elsewhere(&reads));
        let failure = self.no_room_for(lane, title, bytes, instruction.source);
        self.fail_outputs(lane, instruction, &failure);
    }

    /// Runs an instruction and returns its work. Operands freed by `dying`, the commands that
    /// follow, are passed by value, so that the engine may reuse their memory.
    pub fn run(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        instruction: &Instruction,
        dying: &[WorkerCommand],
    ) -> u64 {
        self.stats.operations_total += 1;
        if let Some(parts) = instruction.commit() {
            self.commit(lane, instruction, &parts);
            return 1;
        }
        if lane.memory.gives_up.is_some()
            && let room = lane.room(instruction.results.len())
            && let Some(need) = need_of(&self.engine, instruction, dying, &lane.store, room)
        {
            self.fail_without_room(lane, instruction, need);
            return 1;
        }
        let mut operands: Operands<E::Tensor> = SmallVec::new();
        let mut metas: Metas = SmallVec::new();
        for (index, operand) in instruction.operands.iter().enumerate() {
            let id = match operand {
                Operand::Scalar(scalar) => {
                    operands.push(Operand::Scalar(*scalar));
                    metas.push(Operand::Scalar(*scalar));
                    continue;
                }
                Operand::Tensor(id) => *id,
            };
            match lane.store.get_used(id) {
                Some(Stored::Ready { tensor, meta, .. }) => {
                    metas.push(Operand::Tensor(*meta));
                    let again = instruction.operands[index + 1..].contains(operand);
                    let dies = |command: &WorkerCommand| matches!(command, WorkerCommand::Free(freed) if *freed == id);
                    if !again && dying.iter().any(dies) {
                        let Some((tensor, meta)) = lane.store.take(id) else {
                            unreachable!("it was there a line ago");
                        };
                        self.release(lane, id, &meta);
                        operands.push(Operand::Tensor(tensor));
                    } else {
                        operands.push(Operand::Tensor(tensor.clone()));
                    }
                }
                Some(Stored::Failed(failure)) => {
                    let found = Arc::clone(failure);
                    let first = lane.store.first_failure(instruction.reads());
                    let failure = first.map_or(found, Arc::clone);
                    self.fail_outputs(lane, instruction, &failure);
                    return 1;
                }
                // There was no memory to unspill it.
                Some(Stored::Away(_)) => {
                    self.fail_without_room(lane, instruction, 0);
                    return 1;
                }
                Some(Stored::Pending(_)) => unreachable!("it has waited for its operands"),
                None => {
                    let reason = format!("tensor {id} does not exist on this worker");
                    let failure = self.failure(instruction, &[], reason);
                    self.fail_outputs(lane, instruction, &failure);
                    return 1;
                }
            }
        }
        if self.events.is_on {
            metas.iter().filter_map(Operand::tensor).for_each(|meta| self.events.reads(meta));
        }
        match self.compute(instruction, operands, &metas) {
            Ok(made) => {
                for ((id, meta), tensor) in instruction.outputs().zip(made) {
                    self.keep(lane, (id, tensor, meta, instruction.source), instruction.reads());
                }
                instruction.operation.work(&metas, instruction.meta())
            }
            Err(error) => {
                let failure = self.failure(instruction, &metas, self.explain(lane, &error));
                let largest = self.largest_if_full(lane, &error);
                let failure = Failure { largest, ..Arc::unwrap_or_clone(failure) };
                self.fail_outputs(lane, instruction, &Arc::new(failure));
                1
            }
        }
    }

    /// Checks and computes an instruction.
    ///
    /// # Errors
    /// The instruction is not valid, or the engine fails.
    fn compute(
        &mut self,
        instruction: &Instruction,
        operands: Operands<E::Tensor>,
        metas: &Metas,
    ) -> Result<SmallVec<[E::Tensor; 1]>, EngineError> {
        let (operation, attributes) = (instruction.operation, &instruction.attributes);
        instruction.check(metas).map_err(EngineError::Other)?;
        let meta = instruction.meta();
        let given = if self.options.check_nan { Some(operands.clone()) } else { None };
        let engine = &mut self.engine;
        let result = catch_unwind(AssertUnwindSafe(|| {
            if operation.further.is_some() {
                let results = &instruction.results;
                let made = composite::run_several(engine, operation, operands, attributes, results);
                return made.map(SmallVec::from_vec);
            }
            let made = composite::run(engine, operation, operands, metas, attributes, meta);
            made.map(|made| SmallVec::from_buf([made]))
        }));
        let result = result.unwrap_or_else(|panic| Err(EngineError::Other(panic_text(&*panic))));
        let made = result?;
        match given.and_then(|given| self.new_nan(&given, &made[0], meta)) {
            Some(reason) => Err(EngineError::Other(reason)),
            None => Ok(made),
        }
    }

    /// The error of a result with a NaN whose operands have none.
    fn new_nan(
        &mut self,
        operands: &Operands<E::Tensor>,
        result: &E::Tensor,
        meta: Meta,
    ) -> Option<String> {
        if !meta.dtype.is_float() {
            return None;
        }
        let engine = &mut self.engine;
        let mut nan_in = |tensor: &E::Tensor| {
            let data = engine.read(tensor).ok()?;
            (0..data.shape.numel()).find(|&index| data.element(index).as_f64().is_nan())
        };
        let index = nan_in(result)?;
        let is_nan = |operand: &Operand<E::Tensor>| match operand {
            Operand::Tensor(tensor) => nan_in(tensor).is_some(),
            Operand::Scalar(scalar) => scalar.as_f64().is_nan(),
        };
        if operands.iter().any(is_nan) {
            return None;
        }
        Some(format!(
            "the result has a NaN, first as element {index} of {}, and no operand has one (GT_CHECK_NAN)",
            meta.shape.numel()
        ))
    }

    /// Creates a tensor from data; from values in files once the driver has read them.
    pub fn create(&mut self, lane: &mut Lane<E::Tensor>, create: &Create, out: &mut Vec<Out>) {
        let tensor = create.output;
        let bytes = create.content.meta().bytes() as u64;
        if lane.memory.gives_up.is_some() && !lane.has_room(bytes, 1) {
            let failure = self.no_room_for(lane, "create".into(), bytes, create.source);
            return self.fail(lane, tensor, failure);
        }
        match create.content.clone() {
            Content::Stored(values) => {
                lane.store.wait_for(&mut self.held, tensor, bytes);
                out.push(Out::Files(FileJob::Read { lane: lane.id, tensor, values }));
            }
            content => self.make(lane, tensor, content, create.source),
        }
    }

    /// The driver has read a tensor's values from files. It may have been freed meanwhile.
    pub fn load(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        tensor: TensorId,
        result: Result<Content, Failure>,
    ) {
        if self.take_restored(lane, tensor, &result) || !lane.store.is_pending(tensor) {
            return;
        }
        match result {
            Ok(content) => self.make(lane, tensor, content, SourceId::default()),
            Err(failure) => {
                let failure = Failure { worker: self.stats.name.clone(), ..failure };
                self.fail(lane, tensor, Arc::new(failure));
            }
        }
    }

    /// Creates a tensor from data in memory.
    pub fn make(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        id: TensorId,
        content: Content,
        line: SourceId,
    ) {
        let meta = content.meta();
        let result = match content {
            Content::Data(data) => self.guarded(|engine| engine.create(data)),
            Content::Shared { .. } | Content::Stored(_) => {
                Err(EngineError::Other("the values were not read by the driver".into()))
            }
        };
        match result {
            Ok(tensor) => self.keep(lane, (id, tensor, meta, line), std::iter::empty()),
            Err(error) => {
                let largest = self.largest_if_full(lane, &error);
                let failure = self.plain_failure("create", error.to_string());
                self.fail(lane, id, Arc::new(Failure { line, largest, ..failure }));
            }
        }
    }

    /// Returns the values of blocks to be written.
    ///
    /// # Errors
    /// The failure of one of them.
    pub fn values_to_save(
        &mut self,
        lane: &Lane<E::Tensor>,
        part: &SavePart,
    ) -> Result<Vec<ToSave>, Failure> {
        let value = |block: &SavedBlock| {
            if let Some(away) = lane.store.away(block.tensor)
                && let SpillPlace::Disk { number, file } = &away.place
            {
                let (number, checksum) = (*number, file.checksum);
                return Ok(ToSave::Spilled { number, meta: away.meta, checksum });
            }
            match self.fetch(lane, block.tensor)? {
                Content::Data(data) => Ok(ToSave::Data(data)),
                _ => Err(self.plain_failure("save", "an engine gave no values".into())),
            }
        };
        part.blocks.iter().map(value).collect()
    }

    /// Returns a tensor's values, if they are in the device's memory and can be read.
    pub fn read(&mut self, lane: &Lane<E::Tensor>, id: TensorId) -> Option<gt_ir::TensorData> {
        match lane.store.get(id) {
            Some(Stored::Ready { tensor, .. }) => self.guarded(|engine| engine.read(tensor)).ok(),
            _ => None,
        }
    }

    /// Reads a tensor's values.
    pub fn fetch(&mut self, lane: &Lane<E::Tensor>, id: TensorId) -> Result<Content, Failure> {
        match lane.store.get(id) {
            Some(Stored::Ready { tensor, .. }) => {
                let result = self.guarded(|engine| engine.read(tensor));
                let failed = |error: EngineError| self.plain_failure("fetch", error.to_string());
                result.map(Content::Data).map_err(failed)
            }
            Some(Stored::Failed(failure)) => Err((**failure).clone()),
            Some(Stored::Away(away)) => {
                if let SpillPlace::Host(data) | SpillPlace::Writing { data, .. } = &away.place {
                    return Ok(Content::Data(data.clone()));
                }
                let failure = self.no_room_for(lane, "fetch".into(), away.elsewhere(), away.line);
                Err((*failure).clone())
            }
            Some(Stored::Pending(_)) => unreachable!("it has waited for the tensor"),
            None => {
                let reason = format!("tensor {id} does not exist on this worker");
                Err(self.plain_failure("fetch", reason))
            }
        }
    }

    pub fn fail(&mut self, lane: &mut Lane<E::Tensor>, id: TensorId, failure: Arc<Failure>) {
        self.stats.operations_failed += 1;
        lane.store.fail(&mut self.held, id, failure);
    }

    pub fn fail_outputs(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        instruction: &Instruction,
        failure: &Arc<Failure>,
    ) {
        self.stats.operations_failed += 1;
        for (id, _) in instruction.outputs() {
            lane.store.fail(&mut self.held, id, Arc::clone(failure));
        }
    }

    pub fn failure(
        &self,
        instruction: &Instruction,
        metas: &[Operand<Meta>],
        reason: String,
    ) -> Arc<Failure> {
        let (operation, worker) = (instruction.describe(metas), self.stats.name.clone());
        let output = instruction.output;
        let place = (output < TensorId::PLANNED).then_some(output.0);
        Arc::new(Failure { place, ..Failure::new(operation, reason, worker, instruction.source) })
    }

    /// A failure that belongs to no line of the program.
    pub fn plain_failure(&self, operation: &str, reason: String) -> Failure {
        Failure::new(operation, reason, self.stats.name.as_str(), SourceId::default())
    }

    /// Calls the engine; a panic in it becomes an error.
    pub fn guarded<T>(
        &mut self,
        call: impl FnOnce(&mut E) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let engine = &mut self.engine;
        catch_unwind(AssertUnwindSafe(|| call(engine)))
            .unwrap_or_else(|panic| Err(EngineError::Other(panic_text(&*panic))))
    }
}

pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    format!("the engine panicked: {text}")
}
