//! Handles of the sessions that are open in this process.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use gt::worker::Work;
use gt::{Session, SessionOrigin, WeakSession};
use pyo3::prelude::*;

use super::fork::ForkBlocker;
use super::wait::{detached, make_room};
use crate::engine;
use crate::error::IntoPython;

/// A session as shared by threads, blocks and Python objects. Once it is closed, the handle keeps
/// nothing of it alive.
pub struct SessionHandle {
    number: u64,
    /// A description of the server or workers that it is connected to, for messages.
    place: String,
    /// The name under which its dispatcher shows it.
    name: String,
    /// The process that connected it to a server; `None` for one with workers of its own.
    connected_by: Option<u32>,
    /// Its workers' engines need the GIL.
    runs_python: bool,
    /// Locked briefly and only with the GIL, so that no other thread holds the lock at a fork.
    session: Mutex<Option<Session>>,
}

/// All sessions of the process that may be open, each with its handle, if it has one.
static SESSIONS: Mutex<Vec<RegisteredSession>> = Mutex::new(Vec::new());

/// Sessions without a handle that may still have tensors, and whose engines are in Python. Such a
/// session must not end when its last tensor is dropped: that happens with the GIL held, and its
/// workers may need the GIL to finish.
static ORPHANS: Mutex<Vec<Session>> = Mutex::new(Vec::new());

struct RegisteredSession {
    number: u64,
    session: WeakSession,
    handle: Weak<SessionHandle>,
    connected_by: Option<u32>,
    runs_python: bool,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SessionHandle {
    /// Connects a session to a server.
    pub fn connect(
        py: Python<'_>,
        _blocker: &ForkBlocker,
        origin: SessionOrigin,
        address: &str,
        key_file: Option<&Path>,
        insecure: bool,
        seed: u64,
    ) -> PyResult<Arc<SessionHandle>> {
        let session = detached(py, || gt::connect_as(origin, address, key_file, insecure)).py()?;
        session.manual_seed(seed);
        Ok(SessionHandle::of_new(py, session, Some(std::process::id()), false))
    }

    /// Opens a session with workers of its own in this process; by default one worker for each GPU.
    pub fn embedded(
        py: Python<'_>,
        _blocker: &ForkBlocker,
        origin: SessionOrigin,
        workers: Option<usize>,
        seed: u64,
    ) -> PyResult<Arc<SessionHandle>> {
        let workers = match workers {
            Some(workers) => workers,
            None => engine::default_workers(py)?,
        };
        let engines = engine::embedded_engines(workers)?;
        let runs_python = engines.is_some();
        let session = match engines {
            None => gt::embedded_with(workers, &gt::native_worker, origin).py()?,
            Some(engines) => {
                let engines = Mutex::new(engines.into_iter());
                let next = |name: String, _: usize| -> Box<dyn Work> {
                    let engine = lock(&engines).next();
                    gt::worker_on(name, engine.expect("one for each worker"))
                };
                gt::embedded_with(workers, &next, origin).py()?
            }
        };
        session.manual_seed(seed);
        Ok(SessionHandle::of_new(py, session, None, runs_python))
    }

    fn of_new(
        py: Python<'_>,
        session: Session,
        connected_by: Option<u32>,
        runs_python: bool,
    ) -> Arc<SessionHandle> {
        collect_orphans(py);
        session.make_room_by(make_room);
        let (number, weak) = (session.number(), session.downgrade());
        let handle = SessionHandle::share(session, connected_by, runs_python);
        let shared = Arc::downgrade(&handle);
        let entry =
            RegisteredSession { number, session: weak, handle: shared, connected_by, runs_python };
        let mut all = lock(&SESSIONS);
        all.retain(|entry| entry.session.is_alive());
        all.push(entry);
        handle
    }

    fn share(session: Session, connected_by: Option<u32>, runs_python: bool) -> Arc<SessionHandle> {
        let (number, place, name) = (session.number(), session.describe(), session.name());
        let session = Mutex::new(Some(session));
        Arc::new(SessionHandle { number, place, name, connected_by, runs_python, session })
    }

    /// Returns the handle of a tensor's session; creates one if the previous one was dropped.
    pub fn of(session: Session) -> Arc<SessionHandle> {
        let mut all = lock(&SESSIONS);
        let entry = all.iter_mut().find(|entry| entry.number == session.number());
        let Some(entry) = entry else { return SessionHandle::share(session, None, true) };
        entry.handle.upgrade().unwrap_or_else(|| {
            let handle = SessionHandle::share(session, entry.connected_by, entry.runs_python);
            entry.handle = Arc::downgrade(&handle);
            handle
        })
    }

    /// Returns the session's number within this process.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns a description of the server or workers that it is connected to.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// Returns the name under which its dispatcher shows it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the object of "disconnected from" in messages.
    pub fn left_target(&self) -> &str {
        if self.connected_by.is_some() { &self.place } else { "its workers in this process" }
    }

    /// Whether the session is on a server.
    pub fn is_remote(&self) -> bool {
        self.connected_by.is_some()
    }

    /// Returns the session, unless the handle is closed.
    pub fn session(&self) -> Option<Session> {
        lock(&self.session).clone()
    }

    /// Returns whether the session has ended.
    pub fn is_closed(&self) -> bool {
        self.session().is_none_or(|session| session.is_closed())
    }

    /// Seeds the session's random numbers, unless it is closed.
    pub fn seed(&self, seed: u64) {
        if let Some(session) = self.session() {
            session.manual_seed(seed);
        }
    }

    /// Ends the session for all its users.
    pub fn close(&self, py: Python<'_>) {
        let session = lock(&self.session).take();
        if let Some(session) = session {
            let _blocker = ForkBlocker::new();
            detached(py, move || close(&session, self.connected_by));
        }
        collect_orphans(py);
    }
}

impl Drop for SessionHandle {
    fn drop(&mut self) {
        let session = self.session.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(session) = session
            && self.runs_python
        {
            lock(&ORPHANS).push(session);
        }
    }
}

/// Drops a reference to a handle. After the last one, the session ends with its last tensor.
pub fn release(py: Python<'_>, handle: Arc<SessionHandle>) {
    if let Some(handle) = Arc::into_inner(handle) {
        let _blocker = ForkBlocker::new();
        detached(py, move || drop(handle));
        collect_orphans(py);
    }
}

/// Ends the orphaned sessions whose last tensor was dropped.
fn collect_orphans(py: Python<'_>) {
    let done: Vec<Session> =
        lock(&ORPHANS).extract_if(.., |session| !session.is_shared()).collect();
    if !done.is_empty() {
        let _blocker = ForkBlocker::new();
        detached(py, move || drop(done));
    }
}

/// Closes a session, unless it is a connection inherited from the parent of a fork: that belongs to
/// the parent, whose threads may have held the session's locks.
fn close(session: &Session, connected_by: Option<u32>) {
    if connected_by.is_none_or(|process| process == std::process::id()) {
        session.close();
    }
}

/// Ends all sessions of the process.
pub fn close_all(py: Python<'_>) {
    let all = std::mem::take(&mut *lock(&SESSIONS));
    let _blocker = ForkBlocker::new();
    detached(py, || {
        for entry in all {
            if let Some(session) = entry.session.upgrade() {
                close(&session, entry.connected_by);
            }
        }
    });
}
