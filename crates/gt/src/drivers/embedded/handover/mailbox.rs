//! Messages for a state that one thread at a time works on.

use super::sync::{AtomicUsize, Mutex, MutexGuard, Ordering, lock};

/// Any thread may put messages in, and any thread that is at hand works on them: whoever finds
/// another one at it leaves its messages to that one. None is left lying.
pub struct Mailbox<S, M> {
    /// Locked for a moment only. Whoever holds it takes no other lock.
    inbox: Mutex<Vec<M>>,
    /// How many messages are in the inbox.
    count: AtomicUsize,
    /// Held while a thread works on messages.
    state: Mutex<S>,
}

impl<S, M> Mailbox<S, M> {
    pub fn new(state: S) -> Mailbox<S, M> {
        let (inbox, count) = (Mutex::new(Vec::new()), AtomicUsize::new(0));
        Mailbox { inbox, count, state: Mutex::new(state) }
    }

    /// Puts a message in. Somebody is to [`Mailbox::work`] afterwards.
    pub fn put(&self, message: M) {
        self.put_all([message]);
    }

    /// Puts several messages in, with nothing between them.
    pub fn put_all(&self, messages: impl IntoIterator<Item = M>) {
        let mut inbox = lock(&self.inbox);
        inbox.extend(messages);
        self.count.store(inbox.len(), Ordering::SeqCst);
    }

    /// Whether nothing waits. Takes no lock.
    pub fn is_empty(&self) -> bool {
        self.count.load(Ordering::SeqCst) == 0
    }

    fn take(&self) -> Vec<M> {
        let mut inbox = lock(&self.inbox);
        self.count.store(0, Ordering::SeqCst);
        std::mem::take(&mut *inbox)
    }

    /// Works on what there is, unless another thread is at it. Whether there was anything.
    pub fn work(&self, mut on: impl FnMut(&mut S, Vec<M>)) -> bool {
        let mut worked = false;
        while !self.is_empty() {
            // Whoever holds the state looks at the inbox again after letting go of it.
            let Ok(mut state) = self.state.try_lock() else { return worked };
            let messages = self.take();
            if !messages.is_empty() {
                on(&mut state, messages);
                worked = true;
            }
        }
        worked
    }

    /// Works once on the state and what there is, which may be nothing, unless another thread is at
    /// it: then `None`. What comes meanwhile is left to who looks next: the thread that is unparked
    /// for it.
    pub fn try_work<R>(&self, on: impl FnOnce(&mut S, Vec<M>) -> R) -> Option<R> {
        let mut state = self.state.try_lock().ok()?;
        let messages = self.take();
        Some(on(&mut state, messages))
    }

    /// The state, unless another thread works on it. What comes is left, as with
    /// [`Mailbox::try_work`].
    pub fn try_state<R>(&self, on: impl FnOnce(&mut S) -> R) -> Option<R> {
        self.state.try_lock().ok().map(|mut state| on(&mut state))
    }

    /// The state, once nobody else works on it.
    pub fn state(&self) -> MutexGuard<'_, S> {
        lock(&self.state)
    }

    /// Drops what waits.
    pub fn clear(&self) {
        self.take();
    }
}
