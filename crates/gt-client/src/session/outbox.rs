//! The shared state of a session's clones: the stream behind a lock, and the driver that takes
//! batches from it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, Weak};

use gt_ir::message::Answer;
use gt_ir::{ClientCommand, RequestId, Rescale, TensorData, TensorId};

use super::MakeRoom;
use super::kept::KeptRegistry;
use super::stream::{SentSignal, Stream};
use crate::config::registry;
use crate::context::names;
use crate::driver::{Batches, Driver, Interrupt, Outbox};
use crate::error::{ClientError, Result};
use crate::hotpath;

/// The number of sessions created in this process.
static COUNT: AtomicU64 = AtomicU64::new(0);

pub(super) struct SessionState {
    pub(super) number: u64,
    stream: Mutex<Stream>,
    /// Locked before the stream.
    pub(super) kept: Mutex<KeptRegistry>,
    /// What it has published that the server may not have stored yet.
    pub(super) unfinished: Mutex<VecDeque<String>>,
    pub(super) driver: Arc<dyn Driver>,
    /// How a caller waits for room, if not as [`Session::wait_for_room`] does.
    pub(super) room: OnceLock<MakeRoom>,
    /// The driver's limits.
    batches: Batches,
    pub(super) seed: AtomicU64,
    /// The number of random instructions since the seed was set.
    pub(super) random_instructions: AtomicU64,
}

impl SessionState {
    /// Creates a stream, which the driver can flush by itself from now on.
    pub(super) fn new(driver: Arc<dyn Driver>) -> Arc<SessionState> {
        let inner = Arc::new(SessionState {
            number: COUNT.fetch_add(1, Ordering::Relaxed) + 1,
            stream: Mutex::new(Stream::new(hotpath::Settings::from_env(), driver.numbers())),
            kept: Mutex::default(),
            unfinished: Mutex::default(),
            room: OnceLock::new(),
            batches: driver.batches(),
            driver,
            seed: AtomicU64::new(0),
            random_instructions: AtomicU64::new(0),
        });
        let outbox: Weak<dyn Outbox> = Arc::downgrade(&(Arc::clone(&inner) as Arc<dyn Outbox>));
        inner.driver.attach(outbox);
        inner
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Stream> {
        self.stream.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    /// Appends a command without cost, which belongs to no region.
    pub(super) fn push(&self, command: ClientCommand) {
        let mut stream = self.lock();
        self.append(&mut stream, command, 0, 0);
    }

    /// Appends a command; submits the batch once it is large enough. A closed session drops it.
    pub(super) fn append(
        &self,
        stream: &mut Stream,
        command: ClientCommand,
        region: u32,
        work: u64,
    ) {
        if stream.closed {
            return;
        }
        let had_waiting = stream.has_waiting();
        stream.push(command, region, work);
        if stream.weight >= self.batches.commands || stream.work >= self.batches.work {
            self.submit(stream);
        } else if !had_waiting && stream.has_waiting() {
            self.driver.nudge();
        }
    }

    /// Submits the batch to the driver.
    pub(super) fn submit(&self, stream: &mut Stream) {
        let work = stream.take_work();
        self.driver.submit(&mut stream.batch, work);
    }

    /// Returns the value of a tensor, if the driver has it, or will after running the unsent
    /// commands.
    pub(super) fn read(&self, tensor: TensorId) -> Option<TensorData> {
        if !self.driver.can_read() {
            return None;
        }
        let mut stream = self.lock();
        if stream.closed {
            return None;
        }
        // A request does the same to the stream: hot paths must not depend on how a value is read.
        let is_held = stream.holds(tensor) || stream.detector.is_pending();
        stream.flush_to_read();
        if is_held && !stream.batch.is_empty() {
            let work = stream.take_work();
            self.driver.submit_to_read(&mut stream.batch, work);
        }
        // The driver works with no lock of the session held.
        drop(stream);
        self.driver.read(tensor)
    }

    /// Sends the session's number of slots, as the last command of its batch.
    pub(super) fn rescale(&self, stream: &mut Stream, rescale: Rescale) {
        self.append(stream, ClientCommand::Rescale(rescale), 0, 0);
        stream.flush();
        self.submit(stream);
    }

    /// Sends a signal's name and configuration, unless the dispatcher has them.
    pub(super) fn define_signal(&self, stream: &mut Stream, signal: u32) {
        let version = registry::version();
        if stream.signals.get(&signal).is_none_or(|sent| sent.version != version) {
            self.define_changed_signal(stream, signal, version);
        }
    }

    /// Sends a signal if it has changed since it was last sent: others may have.
    fn define_changed_signal(&self, stream: &mut Stream, signal: u32, version: u64) {
        let name = names::name(signal).unwrap_or_default();
        let shard = registry::get(&name).and_then(|config| config.shard);
        let slots = registry::slots();
        if slots != stream.slots {
            stream.slots = slots;
            self.rescale(stream, slots);
        }
        let sent = SentSignal { version, shard: shard.clone(), slots };
        let before = stream.signals.insert(signal, sent);
        if before.is_none_or(|before| before.shard != shard || before.slots != slots) {
            self.append(stream, ClientCommand::Signal { number: signal, name, shard }, 0, 0);
        }
    }

    /// Waits for the answer to a request. An interrupted wait cancels the request, so that work for
    /// it alone is skipped.
    pub(super) fn wait(&self, request: RequestId, interrupt: Interrupt) -> Result<Answer> {
        let answer = self.driver.wait(request, interrupt);
        if let Err(ClientError::Interrupted) = &answer {
            self.cancel(request);
        }
        answer
    }

    /// Cancels a request: work for it alone is skipped, and the answer is dropped.
    pub(super) fn drop_request(&self, request: RequestId, is_question: bool) {
        self.driver.abandon(request);
        if is_question {
            self.cancel(request);
        }
    }

    fn cancel(&self, request: RequestId) {
        let mut stream = self.lock();
        if !stream.closed {
            stream.push(ClientCommand::Cancel { request }, 0, 0);
            self.submit(&mut stream);
        }
    }
}

impl Outbox for SessionState {
    fn flush(&self) {
        let mut stream = self.lock();
        stream.flush_if_idle();
        if !stream.batch.is_empty() {
            self.submit(&mut stream);
        }
    }

    fn has_waiting(&self) -> bool {
        self.lock().has_waiting()
    }
}

impl Drop for SessionState {
    fn drop(&mut self) {
        let stream = self.stream.get_mut().unwrap_or_else(|poisoned| poisoned.into_inner());
        if !stream.closed {
            stream.flush();
            self.driver.submit(&mut stream.batch, stream.work);
            self.driver.close();
        }
    }
}
