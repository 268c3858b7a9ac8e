//! Handles of the sessions that are open in this process.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak};
use std::time::{Duration, Instant};

use gt::ir::Attach;
use gt::ir::status::inspection::HeldTensors;
use gt::worker::Work;
use gt::{Session, SessionOrigin, WeakSession};
use pyo3::prelude::*;

use super::fork::ForkBlocker;
use super::wait::{detached, make_room};
use crate::engine;
use crate::error::IntoPython;

/// How long the end of a session waits until the server has stored what it published.
const PUBLISHING_TIMEOUT: Duration = Duration::from_secs(60);

/// A session as shared by threads, blocks and Python objects. Once it is closed, the handle keeps
/// nothing of it alive.
pub struct SessionHandle {
    number: u64,
    /// A description of the server or workers that it is connected to, for messages.
    place: String,
    /// The name under which its dispatcher shows it.
    name: String,
    /// How it is connected to a server; `None` for one with workers of its own.
    connection: Option<Arc<Connection>>,
    /// Its workers' engines need the GIL.
    runs_python: bool,
    /// Locked briefly and only with the GIL, so that no other thread holds the lock at a fork.
    session: Mutex<Option<Session>>,
}

/// How a server is reached.
#[derive(Clone)]
pub struct ServerTarget {
    pub address: String,
    pub key_file: Option<PathBuf>,
    pub insecure: bool,
}

/// A session's connection to a server.
struct Connection {
    /// The process that connected it.
    process: u32,
    server: ServerTarget,
    /// The name by which it was attached to.
    attached_name: Option<String>,
}

impl Connection {
    fn new(server: ServerTarget, attached_name: Option<String>) -> Option<Arc<Connection>> {
        Some(Arc::new(Connection { process: std::process::id(), server, attached_name }))
    }
}

/// How the tensors of a session are listed, by its number.
static LIST_HELD: OnceLock<fn(u64)> = OnceLock::new();

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
    connection: Option<Arc<Connection>>,
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
        server: &ServerTarget,
        seed: u64,
    ) -> PyResult<Arc<SessionHandle>> {
        let ServerTarget { address, key_file, insecure } = server;
        let connect = || gt::connect_as(origin, address, key_file.as_deref(), *insecure);
        let session = detached(py, connect).py()?;
        session.manual_seed(seed);
        Ok(SessionHandle::of_new(py, session, Connection::new(server.clone(), None), false))
    }

    /// Attaches to a named session on a server. Returns also whether it existed before.
    pub fn attach(
        py: Python<'_>,
        _blocker: &ForkBlocker,
        origin: SessionOrigin,
        attach: Attach,
        server: ServerTarget,
        seed: u64,
    ) -> PyResult<(Arc<SessionHandle>, bool)> {
        let ServerTarget { address, key_file, insecure } = &server;
        let name = attach.name.clone();
        let attach = || gt::attach(origin, address, key_file.as_deref(), *insecure, attach);
        let (session, existed) = detached(py, attach).py()?;
        session.manual_seed(seed);
        let connection = Connection::new(server, Some(name));
        Ok((SessionHandle::of_new(py, session, connection, false), existed))
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
        connection: Option<Arc<Connection>>,
        runs_python: bool,
    ) -> Arc<SessionHandle> {
        collect_orphans(py);
        session.make_room_by(make_room);
        if let Some(list) = LIST_HELD.get() {
            session.list_held_by(*list);
        }
        let (number, weak) = (session.number(), session.downgrade());
        let handle = SessionHandle::share(session, connection.clone(), runs_python);
        let shared = Arc::downgrade(&handle);
        let entry =
            RegisteredSession { number, session: weak, handle: shared, connection, runs_python };
        let mut all = lock(&SESSIONS);
        all.retain(|entry| entry.session.is_alive());
        all.push(entry);
        handle
    }

    fn share(
        session: Session,
        connection: Option<Arc<Connection>>,
        runs_python: bool,
    ) -> Arc<SessionHandle> {
        let (number, place, name) = (session.number(), session.describe(), session.name());
        let session = Mutex::new(Some(session));
        Arc::new(SessionHandle { number, place, name, connection, runs_python, session })
    }

    /// Returns the handle of a tensor's session; creates one if the previous one was dropped.
    pub fn of(session: Session) -> Arc<SessionHandle> {
        let mut all = lock(&SESSIONS);
        let entry = all.iter_mut().find(|entry| entry.number == session.number());
        let Some(entry) = entry else { return SessionHandle::share(session, None, true) };
        entry.handle.upgrade().unwrap_or_else(|| {
            let handle = SessionHandle::share(session, entry.connection.clone(), entry.runs_python);
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
        if self.is_remote() { &self.place } else { "its workers in this process" }
    }

    /// Whether the session is on a server.
    pub fn is_remote(&self) -> bool {
        self.connection.is_some()
    }

    /// Returns the server that it is on, if any.
    pub fn server(&self) -> Option<&ServerTarget> {
        self.connection.as_ref().map(|connection| &connection.server)
    }

    /// Returns the name by which it was attached to, if it was.
    pub fn attached_name(&self) -> Option<String> {
        self.connection.as_ref()?.attached_name.clone()
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
            detached(py, move || close(&session, self.connection.as_deref()));
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

/// Sets how the tensors of a session that the program holds are listed, for people who watch.
pub fn list_held_by(list: fn(u64)) {
    let _ = LIST_HELD.set(list);
}

/// Sends the list of the tensors of a session, by its number, unless it is closed.
pub fn answer_held(py: Python<'_>, number: u64, held: HeldTensors) {
    let find = |all: &[RegisteredSession]| {
        all.iter().find(|entry| entry.number == number)?.session.upgrade()
    };
    let Some(session) = find(&lock(&SESSIONS)) else { return };
    let _blocker = ForkBlocker::new();
    // It may be the last reference, whose end waits for threads that run Python.
    detached(py, move || session.answer_held(held));
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
fn close(session: &Session, connection: Option<&Connection>) {
    if connection.is_none_or(|connection| connection.process == std::process::id()) {
        // What was published would be given up with the session.
        let until = Instant::now() + PUBLISHING_TIMEOUT;
        if let Err(error) = session.finish_publications(&mut || Instant::now() > until) {
            eprintln!("gt: what the session published may not be stored: {error}");
        }
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
                close(&session, entry.connection.as_deref());
            }
        }
    });
}
