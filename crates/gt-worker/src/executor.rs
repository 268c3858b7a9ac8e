//! The worker's state machine.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use gt_ir::instruction::Operands;
use gt_ir::message::{Failure, Message, WorkerStats};
use gt_ir::{
    Command, Content, Instruction, Joint, Meta, Operand, Piece, SourceId, TensorId, WorkerId,
};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use crate::composite;
use crate::engine::{Engine, EngineError};
use crate::exchange::Exchanges;
use crate::notes::Notes;
use crate::programs::Programs;
use crate::scripts::Scripts;
use crate::templates::Templates;

/// What a worker sends, and to whom.
#[derive(Clone, PartialEq, Debug)]
pub enum Out {
    Dispatcher(Message),
    Worker(WorkerId, Piece),
}

/// How a worker runs.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// How many instructions that follow one another are given to the engine at once; 1 for each by
    /// itself.
    pub batch_size: usize,
    /// Whether an operation fails that makes a NaN of numbers that are none.
    pub check_nan: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options { batch_size: 1, check_nan: false }
    }
}

/// A worker with any engine, as drivers see it.
pub trait Work: Send {
    /// Runs the commands in order and puts answers onto `out`. What depends on other workers'
    /// pieces waits for them, and everything after it. Leaves `commands` empty.
    fn handle(&mut self, commands: &mut Vec<Command>, out: &mut Vec<Out>);

    /// Takes a piece from another worker, and goes on with what waited for it.
    fn receive(&mut self, piece: Piece, out: &mut Vec<Out>);

    /// Another worker is gone: what waits for its pieces fails.
    fn lose(&mut self, worker: WorkerId, name: &str, out: &mut Vec<Out>);

    /// The joint exchange that is due: all its members are ready. The driver is to send all that
    /// was put onto `out`, which others may wait for, and then have the worker [`Work::join`].
    fn due(&self) -> Option<&Joint>;

    /// Carries out what is due, together with the other members, for which it waits.
    fn join(&mut self, out: &mut Vec<Out>);

    fn stats(&self) -> WorkerStats;

    /// Whether to note events from now on. Their times are by the clock that shows `now`: the
    /// dispatcher's own in its process, and elsewhere one that it translates.
    fn observe(&mut self, on: bool, now: Duration);

    /// Puts what was noted and not sent yet onto `out`: for drivers with nothing else to do.
    fn report(&mut self, out: &mut Vec<Out>);

    /// The process has forked, and this is the child.
    fn after_fork(&mut self);
}

/// Runs commands on an engine. An operation that fails, or panics, fails its output and all that
/// depend on it; the worker goes on.
pub struct Worker<E: Engine> {
    pub(crate) engine: E,
    pub(crate) options: Options,
    pub(crate) tensors: FxHashMap<TensorId, Slot<E::Tensor>>,
    pub(crate) stats: WorkerStats,
    pub(crate) exchanges: Exchanges<E::Tensor>,
    pub(crate) templates: Templates,
    pub(crate) scripts: Scripts,
    pub(crate) programs: Programs<E::Program>,
    pub(crate) notes: Notes,
    /// Batches that wait for pieces from other workers, and where to go on in the first.
    waiting: VecDeque<Vec<Command>>,
    next: usize,
}

pub(crate) enum Slot<T> {
    Ready {
        tensor: T,
        meta: Meta,
    },
    Failed(Arc<Failure>),
    /// Pieces of it are still to come from other workers.
    Pending,
}

impl<E: Engine> Worker<E> {
    /// A worker that calls itself `name`.
    pub fn new(name: String, engine: E) -> Worker<E> {
        let stats =
            WorkerStats { name, engine: engine.name().to_string(), ..WorkerStats::default() };
        Worker {
            engine,
            options: Options::default(),
            tensors: FxHashMap::default(),
            stats,
            exchanges: Exchanges::default(),
            templates: Templates::default(),
            scripts: Scripts::default(),
            programs: Programs::default(),
            notes: Notes::new(),
            waiting: VecDeque::new(),
            next: 0,
        }
    }

    /// The same worker, to run otherwise.
    pub fn with_options(mut self, options: Options) -> Worker<E> {
        self.options = options;
        self
    }

    /// Runs commands from `start` until all are done, or one has to wait: gives where it stopped.
    pub(crate) fn run_from(
        &mut self,
        start: usize,
        commands: &[Command],
        out: &mut Vec<Out>,
    ) -> usize {
        let mut next = start;
        while let Some(command) = commands.get(next) {
            let index = next;
            if !self.exchanges.is_idle() && self.has_to_wait(command) {
                return index;
            }
            next += 1;
            let is_batch = self.options.batch_size > 1 && self.exchanges.is_idle();
            // A batch notes itself.
            if self.notes.is_on && !(is_batch && matches!(command, Command::Run(_))) {
                self.note(command);
            }
            match command {
                Command::Run(_) if is_batch => {
                    next = index + self.run_batch(&commands[index..]);
                }
                Command::Run(instruction) => {
                    let rest = &commands[index + 1..];
                    let frees =
                        rest.iter().take_while(|next| matches!(next, Command::Free(_))).count();
                    self.run(instruction, &rest[..frees.min(4)]);
                }
                Command::Create { output, content, .. } => self.create(*output, content.clone()),
                Command::Fetch { request, tensor, .. } => {
                    let result = self.fetch(*tensor);
                    if self.notes.is_on {
                        self.notes.fetches(&result);
                    }
                    out.push(Out::Dispatcher(Message::Value { request: *request, result }));
                }
                Command::Free(id) => self.free(*id),
                Command::EndSession { session } => self.end_session(*session),
                // What is the dispatcher's to answer never comes here.
                Command::Signal { .. }
                | Command::Explain { .. }
                | Command::Locate { .. }
                | Command::Status { .. }
                | Command::Strict { .. } => {}
                Command::Stats { request } => {
                    let workers = vec![self.stats()];
                    let statistics = Message::Statistics { request: *request, workers };
                    out.push(Out::Dispatcher(statistics));
                }
                Command::Describe { session } => {
                    out.push(Out::Dispatcher(self.describe(*session)));
                }
                Command::Exchange(exchange) => self.begin_exchange(exchange, out),
                Command::Define(definition) => self.define(definition),
                Command::Invoke(invocation) => self.invoke(invocation),
                Command::Script(script) => self.learn_script(script),
                Command::Play(play) => {
                    if !self.play(play, out) {
                        return index;
                    }
                }
            }
        }
        commands.len()
    }

    /// Whether a command needs a tensor of which pieces are still to come.
    fn has_to_wait(&self, command: &Command) -> bool {
        let pending = |id: &TensorId| matches!(self.tensors.get(id), Some(Slot::Pending));
        match command {
            Command::Run(instruction) => {
                instruction.operands.iter().filter_map(Operand::tensor).any(pending)
            }
            Command::Fetch { tensor, .. } => pending(tensor),
            Command::Exchange(exchange) => exchange.input.as_ref().is_some_and(pending),
            Command::Invoke(invocation) => self.templates.needs(invocation).iter().any(pending),
            Command::Play(play) => self.scripts.needs(play).iter().any(pending),
            _ => false,
        }
    }

    /// Goes on with what waited.
    fn resume(&mut self, out: &mut Vec<Out>) {
        while let Some(batch) = self.waiting.pop_front() {
            self.next = self.run_from(self.next, &batch, out);
            if self.next < batch.len() {
                self.waiting.push_front(batch);
                return;
            }
            self.next = 0;
            out.push(Out::Dispatcher(Message::Done(weight(&batch))));
        }
    }

    pub(crate) fn run(&mut self, instruction: &Instruction, dying: &[Command]) {
        self.stats.operations_total += 1;
        let mut operands: Operands<E::Tensor> = SmallVec::new();
        let mut metas: SmallVec<[Operand<Meta>; 3]> = SmallVec::new();
        for (index, operand) in instruction.operands.iter().enumerate() {
            match operand {
                Operand::Scalar(scalar) => {
                    operands.push(Operand::Scalar(*scalar));
                    metas.push(Operand::Scalar(*scalar));
                }
                Operand::Tensor(id) => match self.tensors.get(id) {
                    Some(Slot::Ready { tensor, meta }) => {
                        metas.push(Operand::Tensor(*meta));
                        // A tensor that the next commands free is handed over, so that the
                        // engine may write into its memory.
                        let again = instruction.operands[index + 1..].contains(operand);
                        if !again && dying.contains(&Command::Free(*id)) {
                            let Some(Slot::Ready { tensor, meta }) = self.tensors.remove(id) else {
                                unreachable!("it was there a line ago");
                            };
                            self.forget(*id, meta);
                            operands.push(Operand::Tensor(tensor));
                        } else {
                            operands.push(Operand::Tensor(tensor.clone()));
                        }
                    }
                    Some(Slot::Failed(failure)) => {
                        let failure = Arc::clone(failure);
                        return self.fail(instruction.output, failure);
                    }
                    Some(Slot::Pending) => unreachable!("it has waited for its operands"),
                    None => {
                        let reason = format!("tensor {id} does not exist on this worker");
                        let failure = self.failure(instruction, &[], reason);
                        return self.fail(instruction.output, failure);
                    }
                },
            }
        }
        if self.notes.is_on {
            metas.iter().filter_map(Operand::tensor).for_each(|meta| self.notes.reads(meta));
        }
        let operation = instruction.operation;
        let given = if self.options.check_nan { Some(operands.clone()) } else { None };
        let meta = match operation.check(&metas, &instruction.attributes) {
            Ok(meta) => meta,
            Err(error) => {
                let failure = self.failure(instruction, &metas, error.to_string());
                return self.fail(instruction.output, failure);
            }
        };
        let engine = &mut self.engine;
        let attributes = &instruction.attributes;
        let result = catch_unwind(AssertUnwindSafe(|| {
            composite::run(engine, operation, operands, &metas, attributes, meta)
        }));
        match result.unwrap_or_else(|panic| Err(EngineError::Other(panic_text(&*panic)))) {
            Ok(tensor) => {
                if let Some(reason) = given.and_then(|given| self.new_nan(&given, &tensor, meta)) {
                    let failure = self.failure(instruction, &metas, reason);
                    return self.fail(instruction.output, failure);
                }
                self.keep(instruction.output, tensor, meta);
            }
            Err(error) => {
                let reason = self.explain(&error);
                let failure = self.failure(instruction, &metas, reason);
                self.fail(instruction.output, failure);
            }
        }
    }

    /// Says where a result has a NaN that no operand has.
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

    /// What an engine says, and who holds most memory where there is none left.
    pub(crate) fn explain(&self, error: &EngineError) -> String {
        let EngineError::OutOfMemory { .. } = error else { return error.to_string() };
        let mut held: Vec<(u64, Meta, u32)> = self
            .tensors
            .iter()
            .filter_map(|(id, slot)| match slot {
                Slot::Ready { meta, .. } => Some((meta.bytes() as u64, *meta, id.split().0)),
                _ => None,
            })
            .collect();
        held.sort_unstable_by_key(|(bytes, _, session)| (std::cmp::Reverse(*bytes), *session));
        let largest: Vec<String> = held
            .iter()
            .take(3)
            .map(|(bytes, meta, session)| {
                format!("{} {} of session {session} ({bytes} bytes)", meta.dtype, meta.shape)
            })
            .collect();
        format!(
            "{error}; {} {} {} bytes, the largest are {}",
            held.len(),
            if held.len() == 1 { "tensor holds" } else { "tensors hold" },
            self.stats.bytes,
            if largest.is_empty() { "none".to_string() } else { largest.join(", ") }
        )
    }

    fn create(&mut self, output: TensorId, content: Content) {
        let meta = content.meta();
        let result = match content {
            Content::Data(data) => {
                let engine = &mut self.engine;
                catch_unwind(AssertUnwindSafe(|| engine.create(data)))
                    .unwrap_or_else(|panic| Err(EngineError::Other(panic_text(&*panic))))
            }
            Content::Shared { .. } => {
                Err(EngineError::Other("shared memory was not mapped by the driver".into()))
            }
        };
        match result {
            Ok(tensor) => self.keep(output, tensor, meta),
            Err(error) => {
                let failure = Failure {
                    operation: "create".into(),
                    reason: error.to_string(),
                    worker: self.stats.name.clone(),
                    line: SourceId::default(),
                };
                self.fail(output, Arc::new(failure));
            }
        }
    }

    fn fetch(&mut self, tensor: TensorId) -> Result<Content, Failure> {
        match self.tensors.get(&tensor) {
            Some(Slot::Ready { tensor, meta }) => {
                let engine = &mut self.engine;
                let result = catch_unwind(AssertUnwindSafe(|| engine.read(tensor)));
                let result =
                    result.unwrap_or_else(|panic| Err(EngineError::Other(panic_text(&*panic))));
                debug_assert!(
                    result.as_ref().is_ok_and(|data| Meta::new(data.dtype, data.shape) == *meta)
                        || result.is_err()
                );
                result.map(Content::Data).map_err(|error| Failure {
                    operation: "fetch".into(),
                    reason: error.to_string(),
                    worker: self.stats.name.clone(),
                    line: SourceId::default(),
                })
            }
            Some(Slot::Failed(failure)) => Err((**failure).clone()),
            Some(Slot::Pending) => unreachable!("it has waited for the tensor"),
            None => Err(Failure {
                operation: "fetch".into(),
                reason: format!("tensor {tensor} does not exist on this worker"),
                worker: self.stats.name.clone(),
                line: SourceId::default(),
            }),
        }
    }

    pub(crate) fn keep(&mut self, id: TensorId, tensor: E::Tensor, meta: Meta) {
        self.stats.tensors += 1;
        self.stats.bytes += meta.bytes() as u64;
        self.stats.bytes_peak = self.stats.bytes_peak.max(self.stats.bytes);
        self.notes.hold(id.split().0, meta.bytes() as u64);
        if self.notes.is_on {
            self.notes.makes(&meta);
        }
        if let Some(Slot::Ready { meta, .. }) =
            self.tensors.insert(id, Slot::Ready { tensor, meta })
        {
            self.forget(id, meta);
        }
    }

    /// Takes a tensor out of the statistics.
    pub(crate) fn forget(&mut self, id: TensorId, meta: Meta) {
        self.stats.tensors -= 1;
        self.stats.bytes -= meta.bytes() as u64;
        self.notes.release(id.split().0, meta.bytes() as u64);
    }

    pub(crate) fn free(&mut self, id: TensorId) {
        if let Some(Slot::Ready { meta, .. }) = self.tensors.remove(&id) {
            self.forget(id, meta);
        }
    }

    /// Shape and dtype of a tensor that is there.
    pub(crate) fn meta(&self, id: TensorId) -> Option<Meta> {
        match self.tensors.get(&id) {
            Some(Slot::Ready { meta, .. }) => Some(*meta),
            _ => None,
        }
    }

    fn describe(&self, session: u32) -> Message {
        let mut tensors: Vec<_> = self
            .tensors
            .iter()
            .filter(|(id, _)| id.split().0 == session)
            .filter_map(|(id, slot)| match slot {
                Slot::Ready { meta, .. } => Some((*id, Ok(*meta))),
                Slot::Failed(failure) => Some((*id, Err((**failure).clone()))),
                Slot::Pending => None,
            })
            .collect();
        tensors.sort_unstable_by_key(|(id, _)| *id);
        Message::Described { session, tensors }
    }

    fn end_session(&mut self, session: u32) {
        // Which goes first does not matter: all go.
        let ids: Vec<_> =
            self.tensors.keys().copied().filter(|id| id.split().0 == session).collect();
        ids.into_iter().for_each(|id| self.free(id));
        self.exchanges.end_session(session);
        self.templates.end_session(session);
        self.scripts.end_session(session);
        self.notes.end_session(session);
        self.tensors.shrink_to(1024);
        self.engine.release_memory();
    }

    pub(crate) fn fail(&mut self, output: TensorId, failure: Arc<Failure>) {
        self.stats.operations_failed += 1;
        self.tensors.insert(output, Slot::Failed(failure));
    }

    fn failure(
        &self,
        instruction: &Instruction,
        metas: &[Operand<Meta>],
        reason: String,
    ) -> Arc<Failure> {
        Arc::new(Failure {
            operation: describe(instruction, metas),
            reason,
            worker: self.stats.name.clone(),
            line: instruction.source,
        })
    }
}

impl<E: Engine> Work for Worker<E> {
    fn handle(&mut self, commands: &mut Vec<Command>, out: &mut Vec<Out>) {
        if self.waiting.is_empty() {
            self.next = self.run_from(0, commands, out);
            if self.next == commands.len() {
                self.next = 0;
                out.push(Out::Dispatcher(Message::Done(weight(commands))));
                commands.clear();
                return self.pause(out);
            }
        }
        // The end of a session comes before what it waits for, which may never come.
        let ends = commands.iter().filter_map(|command| match command {
            Command::EndSession { session } => Some(*session),
            _ => None,
        });
        let ended: Vec<u32> = ends.collect();
        self.waiting.push_back(std::mem::take(commands));
        if !ended.is_empty() {
            ended.into_iter().for_each(|session| self.abandon(session));
            self.resume(out);
        }
        self.pause(out);
    }

    fn receive(&mut self, piece: Piece, out: &mut Vec<Out>) {
        if self.notes.is_on {
            self.note_piece(&piece);
        }
        if self.take_piece(piece, out) {
            self.resume(out);
        }
        self.pause(out);
    }

    fn lose(&mut self, worker: WorkerId, name: &str, out: &mut Vec<Out>) {
        self.lose_peer(worker, name, out);
        self.resume(out);
        self.pause(out);
    }

    fn due(&self) -> Option<&Joint> {
        self.exchanges.joints.due()
    }

    fn join(&mut self, out: &mut Vec<Out>) {
        self.join_members(out);
        self.resume(out);
        self.pause(out);
    }

    fn observe(&mut self, on: bool, now: Duration) {
        self.notes.observe(on, self.engine.now(), now);
    }

    fn report(&mut self, out: &mut Vec<Out>) {
        self.send_notes(true, out);
    }

    fn stats(&self) -> WorkerStats {
        let mut compilation = self.programs.stats();
        let (time, failures) = self.engine.background();
        compilation.compile_time += time;
        compilation.failures += failures;
        WorkerStats {
            hot_sequences: (self.templates.len() + self.scripts.len()) as u64,
            top_sequences: self.programs.top_sequences(),
            compilation,
            ..self.stats.clone()
        }
    }

    fn after_fork(&mut self) {
        self.engine.after_fork();
    }
}

fn weight(commands: &[Command]) -> u64 {
    commands.iter().map(Command::weight).sum()
}

/// `add of float32 (2, 3) and 1.5`
fn describe(instruction: &Instruction, metas: &[Operand<Meta>]) -> String {
    let operands: Vec<String> = metas
        .iter()
        .map(|operand| match operand {
            Operand::Tensor(meta) => format!("{} {}", meta.dtype, meta.shape),
            Operand::Scalar(scalar) => scalar.to_string(),
        })
        .collect();
    if operands.is_empty() {
        return instruction.operation.name.to_string();
    }
    format!("{} of {}", instruction.operation.name, operands.join(" and "))
}

pub(crate) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message");
    format!("the engine panicked: {text}")
}
