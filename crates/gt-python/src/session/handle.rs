//! A session that is open in this process, until it is closed.

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use gt::worker::Work;
use gt::{Session, WeakSession};
use pyo3::prelude::*;

use super::fork::ForkBlocker;
use super::wait::{detached, make_room};
use crate::engine;
use crate::error::IntoPython;

/// A session as threads, blocks and Python objects share it. Once it is closed nothing of it is
/// held.
pub struct SessionHandle {
    number: u64,
    /// What it is connected to, for people.
    place: String,
    /// The process that connected it to a server; `None` for one with workers of its own.
    connected_by: Option<u32>,
    /// Its workers' engines need Python's lock.
    runs_python: bool,
    /// Locked for moments, with Python's lock: none has it at a fork.
    session: Mutex<Option<Session>>,
}

/// All sessions of the process that may be open, with the handle that they have, if there is one.
static SESSIONS: Mutex<Vec<RegisteredSession>> = Mutex::new(Vec::new());

/// Sessions without a handle that may have tensors still, and that cannot end while the last of
/// them is dropped: Python's lock is held then, and their workers may need it to come to an end.
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
    /// A session on a server.
    pub fn connect(
        py: Python<'_>,
        _blocker: &ForkBlocker,
        address: &str,
        key_file: Option<&Path>,
        insecure: bool,
        seed: u64,
    ) -> PyResult<Arc<SessionHandle>> {
        let session = detached(py, || gt::connect(address, key_file, insecure)).py()?;
        session.manual_seed(seed);
        Ok(SessionHandle::of_new(py, session, Some(std::process::id()), false))
    }

    /// A session with workers of its own in this process; without a number, one for each GPU.
    pub fn embedded(
        py: Python<'_>,
        _blocker: &ForkBlocker,
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
            None => gt::embedded(workers).py()?,
            Some(engines) => {
                let engines = Mutex::new(engines.into_iter());
                let next = |name: String, _: usize| -> Box<dyn Work> {
                    let engine = lock(&engines).next();
                    gt::worker_on(name, engine.expect("one for each worker"))
                };
                gt::embedded_with(workers, &next).py()?
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
        let (number, place) = (session.number(), session.describe());
        let session = Mutex::new(Some(session));
        Arc::new(SessionHandle { number, place, connected_by, runs_python, session })
    }

    /// The handle of a tensor's session, which may have lost the one it had.
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

    /// Its number among the sessions of this process.
    pub fn number(&self) -> u64 {
        self.number
    }

    /// What it is connected to, for people.
    pub fn place(&self) -> &str {
        &self.place
    }

    /// What somebody leaves who closes it, for people.
    pub fn left_target(&self) -> &str {
        if self.connected_by.is_some() { &self.place } else { "its workers in this process" }
    }

    /// The session, unless it is closed.
    pub fn session(&self) -> Option<Session> {
        lock(&self.session).clone()
    }

    pub fn is_closed(&self) -> bool {
        self.session().is_none_or(|session| session.is_closed())
    }

    /// Starts the random numbers anew, unless it is closed.
    pub fn seed(&self, seed: u64) {
        if let Some(session) = self.session() {
            session.manual_seed(seed);
        }
    }

    /// Ends the session for all who use it.
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

/// Lets go of a handle. If it was the last, its session ends with its last tensor.
pub fn release(py: Python<'_>, handle: Arc<SessionHandle>) {
    if let Some(handle) = Arc::into_inner(handle) {
        let _blocker = ForkBlocker::new();
        detached(py, move || drop(handle));
        collect_orphans(py);
    }
}

/// Ends the orphans that nobody has any more.
fn collect_orphans(py: Python<'_>) {
    let done: Vec<Session> =
        lock(&ORPHANS).extract_if(.., |session| !session.is_shared()).collect();
    if !done.is_empty() {
        let _blocker = ForkBlocker::new();
        detached(py, move || drop(done));
    }
}

/// In a fork, a connection is its parent's, whose threads may have held the session's locks.
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
