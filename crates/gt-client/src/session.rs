//! A session: one user's stream of commands.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use gt_ir::explain::{Explanation, PlacedTensor};
use gt_ir::instruction::{Operands, Results};
use gt_ir::message::{Message, WorkerStats};
use gt_ir::status::Status;
use gt_ir::{
    Attributes, ClientCommand, Content, Create, Instruction, Meta, Operation, RequestId, SourceId,
    TensorData, TensorId,
};
use rustc_hash::FxHashMap;

use crate::config::registry;
use crate::driver::{Batches, Driver, Interrupt, Outbox};
use crate::error::{ClientError, Result};
use crate::hotpath::{self, HotPathDetector};
use crate::signal::{self, Scope};
use crate::source;

/// One user's stream. Cloning shares it; it ends when the last clone and tensor are gone, or at
/// [`Session::close`].
#[derive(Clone)]
pub struct Session(Arc<Inner>);

/// A session that this does not keep from ending.
#[derive(Clone)]
pub struct WeakSession(Weak<Inner>);

/// How many sessions there have been in this process.
static COUNT: AtomicU64 = AtomicU64::new(0);

struct Inner {
    number: u64,
    stream: Mutex<Stream>,
    driver: Arc<dyn Driver>,
    /// As the driver wishes.
    batches: Batches,
    seed: AtomicU64,
    random_instructions: AtomicU64,
}

struct Stream {
    next_tensor: u64,
    next_request: u64,
    detector: HotPathDetector,
    batch: Vec<ClientCommand>,
    /// How many instructions the batch stands for,
    weight: usize,
    /// and what it costs to run: see [`Driver::submit`].
    work: u64,
    /// The same of what the detector holds back.
    held_work: u64,
    /// The next tensor when the outbox was flushed last.
    seen: u64,
    /// The signals that the dispatcher knows, and the version of the configuration it knows.
    signals: FxHashMap<u32, u64>,
    strict: Option<u64>,
    closed: bool,
}

impl Stream {
    fn new(settings: hotpath::Settings) -> Stream {
        Stream {
            next_tensor: 0,
            next_request: 0,
            detector: HotPathDetector::new(settings),
            batch: Vec::new(),
            weight: 0,
            work: 0,
            held_work: 0,
            seen: 0,
            signals: FxHashMap::default(),
            strict: None,
            closed: false,
        }
    }

    /// Takes a command, with the region it is issued in, and its cost.
    #[inline]
    fn push(&mut self, command: ClientCommand, region: u32, work: u64) {
        let before = self.batch.len();
        self.detector.process(command, region, &mut self.batch);
        self.held_work += work;
        if self.batch.len() > before {
            self.count(before);
        }
    }

    /// Puts what the detector holds back into the batch.
    fn flush(&mut self) {
        let before = self.batch.len();
        self.detector.flush(&mut self.batch);
        self.count(before);
    }

    /// Counts the commands of the batch from `before` on.
    fn count(&mut self, before: usize) {
        self.weight += self.batch[before..]
            .iter()
            .map(|command| match command {
                ClientCommand::Invoke(_) => command.weight() as usize,
                _ => 1,
            })
            .sum::<usize>();
        self.work += std::mem::take(&mut self.held_work);
    }

    /// Whether anything may be sent: the beginning of an iteration waits for the rest of it.
    #[inline]
    fn has_waiting(&self) -> bool {
        !self.batch.is_empty() || self.detector.is_pending() && !self.detector.is_midway()
    }
}

/// A tensor's place in the stream. The last reference to go emits its free.
pub(crate) struct Value {
    pub id: TensorId,
    pub meta: Meta,
    /// The line that issued it.
    pub source: SourceId,
    pub session: Session,
}

/// A value that was asked for.
pub struct Asked {
    session: Session,
    request: RequestId,
    source: SourceId,
}

impl Asked {
    /// Waits for the value.
    ///
    /// # Errors
    /// The operation that made it failed, the connection was lost, or `interrupt` gave up.
    pub fn wait(&self, interrupt: Interrupt) -> Result<TensorData> {
        match self.session.0.wait(self.request, interrupt)? {
            Message::Value { result: Ok(Content::Data(data)), .. } => Ok(data),
            other => Err(refusal(other, self.source)),
        }
    }
}

impl Drop for Value {
    fn drop(&mut self) {
        self.session.0.push(ClientCommand::Free(self.id));
    }
}

impl Session {
    pub fn new(driver: Arc<dyn Driver>) -> Session {
        let inner = Arc::new(Inner {
            number: COUNT.fetch_add(1, Ordering::Relaxed) + 1,
            stream: Mutex::new(Stream::new(hotpath::Settings::from_env())),
            batches: driver.batches(),
            driver,
            seed: AtomicU64::new(0),
            random_instructions: AtomicU64::new(0),
        });
        let outbox: Weak<dyn Outbox> = Arc::downgrade(&(Arc::clone(&inner) as Arc<dyn Outbox>));
        inner.driver.attach(outbox);
        Session(inner)
    }

    /// Whether both are the same session.
    pub fn is(&self, other: &Session) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Its number among the sessions of this process, from 1 on.
    pub fn number(&self) -> u64 {
        self.0.number
    }

    /// Whether anybody else has it, be it as a tensor's.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    pub fn downgrade(&self) -> WeakSession {
        WeakSession(Arc::downgrade(&self.0))
    }

    /// Starts the random numbers anew; the same seed gives the same numbers.
    pub fn manual_seed(&self, seed: u64) {
        self.0.seed.store(seed, Ordering::Relaxed);
        self.0.random_instructions.store(0, Ordering::Relaxed);
    }

    /// Seed and number for the next random instruction.
    pub(crate) fn next_random(&self) -> (u64, u64) {
        let number = self.0.random_instructions.fetch_add(1, Ordering::Relaxed);
        (self.0.seed.load(Ordering::Relaxed), number)
    }

    /// Appends an instruction whose result has the shape and dtype `meta`.
    pub(crate) fn issue(
        &self,
        operation: &'static Operation,
        operands: Operands,
        attributes: Attributes,
        meta: Meta,
        work: u64,
        source: SourceId,
    ) -> Arc<Value> {
        let Scope { signal, compiled: region, .. } = signal::current();
        let mut stream = self.0.lock();
        if signal != 0 {
            self.0.explain_signal(&mut stream, signal);
        }
        let output = TensorId(stream.next_tensor);
        stream.next_tensor += 1;
        let results = Results::from_buf([meta]);
        let instruction =
            Instruction { operation, output, results, operands, attributes, source, signal };
        self.0.append(&mut stream, ClientCommand::Run(instruction), region, work);
        drop(stream);
        Arc::new(Value { id: output, meta, source, session: self.clone() })
    }

    /// Appends a tensor's data.
    pub(crate) fn create(&self, data: TensorData) -> Arc<Value> {
        let meta = Meta::new(data.dtype, data.shape);
        let Scope { signal, compiled: region, .. } = signal::current();
        let mut stream = self.0.lock();
        if signal != 0 {
            self.0.explain_signal(&mut stream, signal);
        }
        let output = TensorId(stream.next_tensor);
        stream.next_tensor += 1;
        let create = Create { output, content: Content::Data(data), signal };
        let work = meta.bytes() as u64;
        self.0.append(&mut stream, ClientCommand::Create(create), region, work);
        drop(stream);
        Arc::new(Value { id: output, meta, source: SourceId::default(), session: self.clone() })
    }

    /// Asks for a tensor's value.
    pub(crate) fn ask(&self, value: &Value) -> Result<Asked> {
        let (tensor, line) = (value.id, source::current());
        let fetch = |request| ClientCommand::Fetch { request, tensor, line };
        let request = self.request(fetch)?;
        Ok(Asked { session: self.clone(), request, source: value.source })
    }

    /// Statistics of all workers.
    pub fn worker_stats(&self, interrupt: Interrupt) -> Result<Vec<WorkerStats>> {
        let request = self.request(|request| ClientCommand::Statistics { request })?;
        match self.0.wait(request, interrupt)? {
            Message::Statistics { workers, .. } => Ok(workers),
            other => Err(refusal(other, SourceId::default())),
        }
    }

    /// How the dispatcher, its workers and its sessions are.
    ///
    /// # Errors
    /// The connection was lost, or `interrupt` gave up.
    pub fn status(&self, interrupt: Interrupt) -> Result<Status> {
        self.ask_status()?.wait(interrupt)
    }

    /// Asks for the status.
    ///
    /// # Errors
    /// The session is closed.
    pub fn ask_status(&self) -> Result<AskedStatus> {
        let request = self.request(|request| ClientCommand::Status { request })?;
        Ok(AskedStatus { session: self.clone(), request })
    }

    /// Begins to record what is planned.
    ///
    /// # Errors
    /// The connection was lost, or `interrupt` gave up.
    pub fn begin_explaining(&self, interrupt: Interrupt) -> Result<()> {
        self.explain(true, interrupt).map(|_| ())
    }

    /// What was planned since [`Session::begin_explaining`].
    pub fn end_explaining(&self, interrupt: Interrupt) -> Result<Explanation> {
        self.explain(false, interrupt)
    }

    fn explain(&self, begin: bool, interrupt: Interrupt) -> Result<Explanation> {
        let request = self.request(|request| ClientCommand::Explain { request, begin })?;
        match self.0.wait(request, interrupt)? {
            Message::Explained { explanation, .. } => Ok(explanation),
            other => Err(refusal(other, SourceId::default())),
        }
    }

    /// Where a tensor is: its layouts, each with its workers.
    pub(crate) fn locate(&self, value: &Value, interrupt: Interrupt) -> Result<Vec<PlacedTensor>> {
        let tensor = value.id;
        let request = self.request(|request| ClientCommand::Locate { request, tensor })?;
        match self.0.wait(request, interrupt)? {
            Message::Located { result: Ok(copies), .. } => Ok(copies),
            other => Err(refusal(other, value.source)),
        }
    }

    /// Makes moves of more than `limit` bytes errors, unless a scope or a sum asks for them. Gives
    /// the limit so far.
    pub fn set_strict(&self, limit: Option<u64>) -> Option<u64> {
        let mut stream = self.0.lock();
        self.0.append(&mut stream, ClientCommand::Strict { limit }, 0, 0);
        std::mem::replace(&mut stream.strict, limit)
    }

    fn request(&self, command: impl FnOnce(RequestId) -> ClientCommand) -> Result<RequestId> {
        let mut stream = self.0.lock();
        if stream.closed {
            return Err(ClientError::Connection("the session is closed".into()));
        }
        let request = RequestId(stream.next_request);
        stream.next_request += 1;
        stream.push(command(request), 0, 0);
        self.0.submit(&mut stream);
        Ok(request)
    }

    /// Sends what waits in the stream.
    pub fn flush(&self) {
        let mut stream = self.0.lock();
        stream.flush();
        if !stream.batch.is_empty() {
            self.0.submit(&mut stream);
        }
    }

    /// Says when sequences become hot paths from now on.
    pub fn set_hot_paths(&self, settings: hotpath::Settings) {
        let mut stream = self.0.lock();
        stream.flush();
        stream.detector = HotPathDetector::new(settings);
    }

    /// What the hot path detector has done so far.
    pub fn hot_path_stats(&self) -> hotpath::Stats {
        self.0.lock().detector.get_stats()
    }

    /// Whether so much is under way that the next instruction should wait for room.
    pub fn is_full(&self) -> bool {
        self.0.driver.is_full()
    }

    /// Waits until there is room for more instructions.
    pub fn wait_for_room(&self, interrupt: Interrupt) -> Result<()> {
        let mut stream = self.0.lock();
        if !stream.batch.is_empty() {
            self.0.submit(&mut stream);
        }
        drop(stream);
        self.0.driver.wait_for_room(interrupt)
    }

    /// Ends the session. Its tensors are freed; fetching one is an error from now on.
    pub fn close(&self) {
        self.flush();
        self.0.lock().closed = true;
        self.0.driver.close();
    }

    pub fn is_closed(&self) -> bool {
        self.0.lock().closed
    }

    /// What it is connected to, for people.
    pub fn describe(&self) -> String {
        self.0.driver.describe()
    }
}

impl WeakSession {
    /// The session, unless it has ended with its last clone and tensor.
    pub fn upgrade(&self) -> Option<Session> {
        self.0.upgrade().map(Session)
    }

    /// Whether somebody has it still.
    pub fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }
}

/// A question for the status that is under way.
pub struct AskedStatus {
    session: Session,
    request: RequestId,
}

impl AskedStatus {
    /// Waits for the answer.
    ///
    /// # Errors
    /// The connection was lost, or `interrupt` gave up.
    pub fn wait(self, interrupt: Interrupt) -> Result<Status> {
        match self.session.0.wait(self.request, interrupt)? {
            Message::Status { status, .. } => Ok(*status),
            other => Err(refusal(other, SourceId::default())),
        }
    }
}

/// The error in an answer that is not the one that was asked for. What failed may not know its line;
/// then it is this one.
fn refusal(answer: Message, line: SourceId) -> ClientError {
    match answer {
        Message::Value { result: Err(failure), .. }
        | Message::Located { result: Err(failure), .. } => {
            let location = source::text(failure.line).or_else(|| source::text(line));
            ClientError::Failed { failure, location }
        }
        other => ClientError::Connection(format!("unexpected answer: {other:?}")),
    }
}

impl Inner {
    /// Waits for the answer to a question. If the wait is interrupted, nobody needs the answer, nor
    /// what is computed for it alone.
    fn wait(&self, request: RequestId, interrupt: Interrupt) -> Result<Message> {
        let answer = self.driver.wait(request, interrupt);
        if let Err(ClientError::Interrupted) = &answer {
            self.cancel(request);
        }
        answer
    }

    /// Nobody waits for the answer to a question any more.
    fn cancel(&self, request: RequestId) {
        let mut stream = self.lock();
        if !stream.closed {
            stream.push(ClientCommand::Cancel { request }, 0, 0);
            self.submit(&mut stream);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Stream> {
        self.stream.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Tells the dispatcher what a signal means, if it does not know.
    fn explain_signal(&self, stream: &mut Stream, signal: u32) {
        let version = registry::version();
        if stream.signals.insert(signal, version) != Some(version) {
            let name = signal::name(signal).unwrap_or_default();
            let shard = registry::get(&name).and_then(|config| config.shard);
            self.append(stream, ClientCommand::Signal { number: signal, name, shard }, 0, 0);
        }
    }

    fn push(&self, command: ClientCommand) {
        let mut stream = self.lock();
        self.append(&mut stream, command, 0, 0);
    }

    fn append(&self, stream: &mut Stream, command: ClientCommand, region: u32, work: u64) {
        if stream.closed {
            return;
        }
        let waited = stream.has_waiting();
        stream.push(command, region, work);
        if stream.weight >= self.batches.commands || stream.work >= self.batches.work {
            self.submit(stream);
        } else if !waited && stream.has_waiting() {
            self.driver.nudge();
        }
    }

    fn submit(&self, stream: &mut Stream) {
        stream.weight = 0;
        let work = std::mem::take(&mut stream.work);
        self.driver.submit(&mut stream.batch, work);
    }
}

impl Outbox for Inner {
    fn flush(&self) {
        let mut stream = self.lock();
        let next = stream.next_tensor;
        let seen = std::mem::replace(&mut stream.seen, next);
        // An iteration is sent whole, or up to where somebody asks for something: where it is cut
        // never depends on time.
        if seen == next && !stream.detector.is_midway() {
            stream.flush();
        }
        if !stream.batch.is_empty() {
            self.submit(&mut stream);
        }
    }

    fn has_waiting(&self) -> bool {
        self.lock().has_waiting()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let stream = self.stream.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        if !stream.closed {
            stream.flush();
            self.driver.submit(&mut stream.batch, stream.work);
            self.driver.close();
        }
    }
}
