//! A session: one client's stream of commands.
//!
//! - [`stream`]: the unsent commands: hot path detector, batch, and the next ids.
//! - [`outbox`]: the shared state of a session's clones: the stream behind a lock, and the driver.
//! - [`issue`]: appending instructions and data; the references to their results.
//! - [`element`]: elements of a value, which are fetched in blocks.
//! - [`kept`]: what it keeps under names; [`publishing`]: requests about publications.
//! - [`request`]: requests to the dispatcher, and waiting for their answers.

mod element;
mod issue;
mod kept;
mod outbox;
mod publishing;
mod request;
mod stream;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Weak};

use gt_ir::status::inspection::HeldTensors;
use gt_ir::{ClientCommand, Rescale};

use crate::config::registry;
use crate::context::invalidate_recording;
use crate::driver::{Driver, HeldLister, Interrupt};
use crate::error::{ClientError, Result};
use crate::hotpath;
pub(crate) use element::{BlockElement, ElementBlock};
pub(crate) use issue::{BatchedValue, StreamValue};
pub use kept::KeptName;
use outbox::SessionState;
pub use request::{Asked, AskedStatus};
pub(crate) use request::{PendingAnswer, error_in};

/// A connection of the client to a dispatcher, with its stream of commands. Clones share it; it
/// ends when the last clone and tensor are dropped, or at [`Session::close`].
#[derive(Clone)]
pub struct Session(Arc<SessionState>);

/// Waits until a session has room for more instructions.
pub type MakeRoom = fn(&Session) -> Result<()>;

/// A reference to a session that does not keep it alive.
#[derive(Clone)]
pub struct WeakSession(Weak<SessionState>);

impl Session {
    /// Starts a session over a driver.
    pub fn new(driver: Arc<dyn Driver>) -> Session {
        Session(SessionState::new(driver))
    }

    /// Returns whether both are the same session.
    pub fn is(&self, other: &Session) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns its number among the sessions of this process, from 1 on.
    pub fn number(&self) -> u64 {
        self.0.number
    }

    /// Returns whether other references to it exist: clones, or tensors.
    pub fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    /// Returns a reference that does not keep the session alive.
    pub fn downgrade(&self) -> WeakSession {
        WeakSession(Arc::downgrade(&self.0))
    }

    /// Restarts the random numbers; equal seeds yield equal numbers.
    pub fn manual_seed(&self, seed: u64) {
        self.set_random_state(seed, 0);
    }

    /// Returns the seed, and the number of random instructions since it was set.
    pub fn random_state(&self) -> (u64, u64) {
        let issued = self.0.random_instructions.load(Ordering::Relaxed);
        (self.0.seed.load(Ordering::Relaxed), issued)
    }

    /// Restores a state from [`Session::random_state`].
    pub fn set_random_state(&self, seed: u64, issued: u64) {
        self.0.seed.store(seed, Ordering::Relaxed);
        self.0.random_instructions.store(issued, Ordering::Relaxed);
    }

    /// Returns the seed and number for the next random instruction.
    pub fn next_random(&self) -> (u64, u64) {
        invalidate_recording();
        let number = self.0.random_instructions.fetch_add(1, Ordering::Relaxed);
        (self.0.seed.load(Ordering::Relaxed), number)
    }

    /// Makes implicit redistributions of more than `limit` bytes errors: those that neither a
    /// signal's scope nor a reduction requires. Returns the previous limit.
    pub fn set_strict(&self, limit: Option<u64>) -> Option<u64> {
        let mut stream = self.0.lock();
        self.0.append(&mut stream, ClientCommand::Strict { limit }, 0, 0);
        std::mem::replace(&mut stream.strict, limit)
    }

    /// Sets the number of slots over which tensors are sharded from now on, and whether each worker
    /// that joins adds one; `None` leaves a setting unchanged.
    ///
    /// # Errors
    /// The number is out of range; the connection was lost.
    pub fn rescale(&self, slots: Option<u32>, elastic: Option<bool>) -> Result<()> {
        if let Some(count) = slots.filter(|count| Rescale::count(*count).is_none()) {
            let most = Rescale::MOST;
            let text = format!("rescale: a session has 1 to {most} slots, {count} given");
            return Err(ClientError::Usage(text));
        }
        invalidate_recording();
        let mut stream = self.0.lock();
        if stream.closed {
            return Err(stream.closed_error());
        }
        // It takes precedence over configurations.
        stream.slots = registry::slots();
        self.0.rescale(&mut stream, Rescale { slots, elastic });
        Ok(())
    }

    /// Submits all commands of the stream, unfinished iterations of hot paths included.
    pub fn flush(&self) {
        let mut stream = self.0.lock();
        stream.flush();
        if !stream.batch.is_empty() {
            self.0.submit(&mut stream);
        }
    }

    /// Sets when sequences become hot paths. The detector restarts.
    pub fn set_hot_paths(&self, settings: hotpath::Settings) {
        self.0.lock().restart_detector(settings);
    }

    /// Returns the counters of the hot path detector.
    pub fn hot_path_stats(&self) -> hotpath::HotPathStats {
        self.0.lock().detector.get_stats()
    }

    /// Returns whether the driver's window is full, so that the next instruction should wait.
    pub fn is_full(&self) -> bool {
        self.0.driver.is_full()
    }

    /// Sets how the session waits for room before an instruction: an interpreter releases its lock
    /// meanwhile, and checks for signals. Only the first call has an effect.
    pub fn make_room_by(&self, make_room: MakeRoom) {
        let _ = self.0.room.set(make_room);
    }

    /// Sets how the program lists the tensors of the session of this number that it holds, for
    /// people who watch. Only the first call has an effect.
    pub fn list_held_by(&self, list: fn(u64)) {
        self.0.driver.list_held_by(HeldLister { list, session: self.number() });
    }

    /// Sends the list of tensors that was asked for.
    pub fn answer_held(&self, held: HeldTensors) {
        self.0.driver.answer_held(held);
    }

    /// Waits, if the window is full, until more instructions fit: called before each instruction,
    /// so that no program sends more than its credit.
    ///
    /// # Errors
    /// The connection was lost; the wait was interrupted.
    #[inline]
    pub(crate) fn make_room(&self) -> Result<()> {
        if self.is_full() { self.wait_by_caller() } else { Ok(()) }
    }

    /// Like [`Session::make_room`], for data. An interpreter waits before it calls; an error is
    /// raised when a value is requested.
    pub(crate) fn make_room_for_data(&self) {
        if self.is_full() && self.0.room.get().is_none() {
            let _ = self.wait_for_room(&mut || false);
        }
    }

    #[cold]
    fn wait_by_caller(&self) -> Result<()> {
        match self.0.room.get() {
            Some(make_room) => make_room(self),
            None => self.wait_for_room(&mut || false),
        }
    }

    /// Waits until more instructions fit.
    pub fn wait_for_room(&self, interrupt: Interrupt) -> Result<()> {
        let mut stream = self.0.lock();
        if !stream.batch.is_empty() {
            self.0.submit(&mut stream);
        }
        drop(stream);
        self.0.driver.wait_for_room(interrupt)
    }

    /// Ends the session. Its tensors are freed; fetching one is an error afterwards.
    pub fn close(&self) {
        self.flush();
        self.0.lock().closed = true;
        self.0.driver.close();
    }

    /// Ends the session, also if it has a name.
    pub fn end(&self) {
        self.flush();
        self.0.lock().closed = true;
        self.0.driver.end();
    }

    /// Returns why the session is closed, if it is and there is more to say.
    pub fn closing(&self) -> Option<String> {
        self.0.lock().closing.clone()
    }

    /// Returns whether [`Session::close`] was called.
    pub fn is_closed(&self) -> bool {
        self.0.lock().closed
    }

    /// Returns the folders in which its workers may read and write files; `None` if they may access
    /// what this process may.
    pub fn data_roots(&self) -> Option<Vec<String>> {
        self.0.driver.data_roots()
    }

    /// Returns what it is connected to, as text for the user.
    pub fn describe(&self) -> String {
        self.0.driver.describe()
    }

    /// Returns the name under which the dispatcher shows it, such as `train.py ada@box #3`.
    pub fn name(&self) -> String {
        self.0.driver.name()
    }
}

impl WeakSession {
    /// Returns the session, unless it has ended with its last clone and tensor.
    pub fn upgrade(&self) -> Option<Session> {
        self.0.upgrade().map(Session)
    }

    /// Returns whether a reference to the session still exists.
    pub fn is_alive(&self) -> bool {
        self.0.strong_count() > 0
    }
}
