//! The client's end of an embedded runtime: commands in flight, answers, and waiting threads.

use std::sync::{Mutex, OnceLock, Weak};
use std::thread::{self, Thread};

use gt_client::driver::{HeldLister, Outbox};
use gt_ir::RequestId;
use gt_ir::message::{Answer, ClientToServer, Goodbye, ServerToClient};

use super::lock;
use crate::drivers::answers::SessionAnswers;
use crate::drivers::issues::{self, Issues};
use crate::drivers::run_ahead::RunAhead;
use crate::drivers::undone::UndoneSteps;

/// The weight of commands that may be in flight.
pub const WINDOW: u64 = 16 << 10;

/// The state of the session's client.
pub struct ClientEnd {
    session: OnceLock<Weak<dyn Outbox>>,
    answers: Mutex<SessionAnswers>,
    /// Why the dispatcher has ended the session.
    refused: OnceLock<String>,
    /// Threads that wait for an answer, or for room in the window.
    waiters: Mutex<Vec<Thread>>,
    pub ahead: RunAhead,
    pub issues: Issues,
    undone: UndoneSteps,
    /// How the program lists the tensors that it holds.
    pub lister: OnceLock<HeldLister>,
}

impl Default for ClientEnd {
    fn default() -> ClientEnd {
        ClientEnd {
            session: OnceLock::new(),
            answers: Mutex::default(),
            refused: OnceLock::new(),
            waiters: Mutex::default(),
            ahead: RunAhead::new(WINDOW),
            issues: Issues::default(),
            undone: UndoneSteps::default(),
            lister: OnceLock::new(),
        }
    }
}

impl ClientEnd {
    pub fn attach(&self, outbox: Weak<dyn Outbox>) {
        let _ = self.session.set(outbox);
    }

    fn session(&self) -> Option<std::sync::Arc<dyn Outbox>> {
        self.session.get().and_then(Weak::upgrade)
    }

    /// Whether the session has buffered commands.
    pub fn has_waiting(&self) -> bool {
        self.session().is_some_and(|session| session.has_waiting())
    }

    /// Has the session submit its buffered commands.
    pub fn flush(&self) {
        if let Some(session) = self.session() {
            session.flush();
        }
    }

    /// Why the dispatcher has ended the session, if it has.
    pub fn refused(&self) -> Option<&str> {
        self.refused.get().map(String::as_str)
    }

    /// Takes a message from the dispatcher; returns the answer if it asks for one.
    pub fn receive(&self, message: ServerToClient) -> Option<ClientToServer> {
        match message {
            ServerToClient::Lines { lines } => return Some(issues::lines(lines)),
            ServerToClient::Credit(weight) => {
                if self.ahead.done(weight) {
                    self.wake_waiters();
                }
            }
            ServerToClient::Answer(answer) => {
                lock(&self.answers).put(answer);
                self.wake_waiters();
            }
            ServerToClient::StepUndone(failure) => self.undone.tell(&failure),
            ServerToClient::Notice { text } => tracing::warn!("{text}"),
            ServerToClient::ListHeld => {
                if let Some(lister) = self.lister.get() {
                    lister.call();
                }
            }
            // The runtime handles it for all of its ends.
            ServerToClient::Observe { .. } => {}
            // This process keeps no snapshots, and hands blocks over.
            ServerToClient::Confirm { .. } | ServerToClient::Release { .. } => {}
        }
        None
    }

    /// The dispatcher has ended the session.
    pub fn end(&self, goodbye: Goodbye) {
        let _ = self.refused.set(goodbye.reason);
        self.wake_waiters();
    }

    pub fn take_answer(&self, request: RequestId) -> Option<Answer> {
        lock(&self.answers).take(request)
    }

    /// The thread that waited for this answer was interrupted.
    pub fn abandon(&self, request: RequestId) {
        lock(&self.answers).abandon(request);
    }

    /// Has this thread unparked on each arrival, until [`ClientEnd::stop_waiting`].
    pub fn wait(&self) {
        lock(&self.waiters).push(thread::current());
    }

    pub fn stop_waiting(&self) {
        let mut waiters = lock(&self.waiters);
        let me = thread::current().id();
        if let Some(index) = waiters.iter().position(|waiter| waiter.id() == me) {
            waiters.swap_remove(index);
        }
    }

    fn wake_waiters(&self) {
        lock(&self.waiters).iter().for_each(Thread::unpark);
    }

    /// In the child of a fork: the waiting threads do not exist.
    pub fn after_fork(&self) {
        lock(&self.waiters).clear();
    }
}
