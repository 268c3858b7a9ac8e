//! What the last user code ran under, on any thread. The threads of PyTorch's backward passes run no
//! user code that could set a line, a signal or a session, and adopt all three.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use gt::ir::SourceId;
use gt::signal::Scope;
use gt::{Session, WeakSession};

/// The line, the scope and the session of the last user code.
pub struct UserCode {
    line: AtomicU32,
    /// The signal and the gradient signal of the last kernel, in the upper and lower 32 bits.
    scope: AtomicU64,
    /// The session in which a kernel ran last, and its number.
    session: Mutex<Option<WeakSession>>,
    number: AtomicU64,
}

/// That of this process.
pub static LATEST: UserCode = UserCode {
    line: AtomicU32::new(0),
    scope: AtomicU64::new(0),
    session: Mutex::new(None),
    number: AtomicU64::new(0),
};

impl UserCode {
    /// Records the line that runs now.
    #[inline]
    pub fn note_line(&self, line: SourceId) {
        self.line.store(line.0, Ordering::Relaxed);
    }

    /// Returns the line that ran last; 0 if none has.
    pub fn line(&self) -> SourceId {
        SourceId(self.line.load(Ordering::Relaxed))
    }

    /// Records the scope of a kernel that runs now.
    #[inline]
    pub fn note_scope(&self, Scope { signal, backward, .. }: Scope) {
        self.scope.store(u64::from(signal) << 32 | u64::from(backward), Ordering::Relaxed);
    }

    /// Returns the scope of the last kernel.
    pub fn scope(&self) -> Scope {
        let latest = self.scope.load(Ordering::Relaxed);
        Scope { signal: (latest >> 32) as u32, backward: latest as u32, compiled: 0 }
    }

    /// Records the session of a kernel that runs now.
    #[inline]
    pub fn note_session(&self, session: &Session) {
        if self.number.load(Ordering::Relaxed) != session.number() {
            *self.session.lock().unwrap_or_else(PoisonError::into_inner) =
                Some(session.downgrade());
            self.number.store(session.number(), Ordering::Relaxed);
        }
    }

    /// Returns the session of the last kernel, if it is open.
    pub fn session(&self) -> Option<Session> {
        let latest = self.session.lock().unwrap_or_else(PoisonError::into_inner).clone();
        latest?.upgrade().filter(|session| !session.is_closed())
    }
}
