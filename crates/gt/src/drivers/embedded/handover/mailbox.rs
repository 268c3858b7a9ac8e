//! A mailbox: a state that one thread at a time works on, with an inbox for its messages.

use super::sync::{AtomicUsize, Mutex, MutexGuard, Ordering, lock};

/// Any thread may put messages in, and any thread may work on them. A thread that finds another
/// one at work leaves its messages to that one; none is lost.
pub struct Mailbox<S, M> {
    /// Locked briefly; no other lock is taken under it.
    inbox: Mutex<Vec<M>>,
    /// The number of messages in the inbox.
    count: AtomicUsize,
    /// Held while a thread works on messages.
    state: Mutex<S>,
}

impl<S, M> Mailbox<S, M> {
    pub fn new(state: S) -> Mailbox<S, M> {
        let (inbox, count) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
        Mailbox { inbox, count, state: Mutex::new(state) }
    }

    /// Puts a message in. Some thread must call [`Mailbox::work`] afterwards.
    pub fn put(&self, message: M) {
        self.put_all([message]);
    }

    /// Puts several messages in, contiguously.
    pub fn put_all(&self, messages: impl IntoIterator<Item = M>) {
        let mut inbox = lock(&self.inbox);
        inbox.extend(messages);
        self.count.store(inbox.len(), Ordering::SeqCst);
    }

    /// Whether the inbox is empty. Takes no lock.
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    fn take(&self) -> Vec<M> {
        let mut inbox = lock(&self.inbox);
        self.count.store(0, Ordering::SeqCst);
        std::mem::take(&mut *inbox)
    }

    /// Handles messages until the inbox is empty, or another thread is at work. Returns whether
    /// there were any.
    pub fn work(&self, mut on: impl FnMut(&mut S, Vec<M>)) -> bool {
        let mut worked = false;
        while !self.is_empty() {
            // The thread that holds the state checks the inbox again after releasing it.
            let Ok(mut state) = self.state.try_lock() else { return worked };
            let messages = self.take();
            if !messages.is_empty() {
                on(&mut state, messages);
                worked = true;
            }
        }
        worked
    }

    /// Works once on the state and the messages, of which there may be none; `None` if another
    /// thread is at work. Messages that arrive meanwhile are left to the thread that is unparked
    /// for them.
    pub fn try_work<R>(&self, on: impl FnOnce(&mut S, Vec<M>) -> R) -> Option<R> {
        let mut state = self.state.try_lock().ok()?;
        let messages = self.take();
        Some(on(&mut state, messages))
    }

    /// Works on the state alone, unless another thread is at work. Messages are left, as with
    /// [`Mailbox::try_work`].
    pub fn try_state<R>(&self, on: impl FnOnce(&mut S) -> R) -> Option<R> {
        self.state.try_lock().ok().map(|mut state| on(&mut state))
    }

    /// Locks the state; blocks while another thread works on it.
    pub fn state(&self) -> MutexGuard<'_, S> {
        lock(&self.state)
    }

    /// Drops the messages in the inbox.
    pub fn clear(&self) {
        self.take();
    }
}
