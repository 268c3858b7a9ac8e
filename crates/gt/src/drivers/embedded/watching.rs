//! Watchers of an embedded runtime, in other processes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use gt_dispatcher::PeerId;
use gt_ir::message::Message;
use rustc_hash::FxHashMap;

use super::endpoint::Endpoint;
use super::lock;
use super::runtime::Runtime;

/// The watchers, and where they reach the runtime.
#[derive(Default)]
pub struct Watching {
    /// Whether clients and workers are to emit events.
    is_observed: AtomicBool,
    /// What was sent to each.
    sent: Mutex<FxHashMap<PeerId, Vec<Message>>>,
    has_endpoint: AtomicBool,
    endpoint: Mutex<Option<Endpoint>>,
}

impl Watching {
    pub fn is_observed(&self) -> bool {
        self.is_observed.load(Ordering::Relaxed)
    }

    /// Whether events are wanted from now on; says whether that is new.
    pub fn observe(&self, on: bool) -> bool {
        self.is_observed.swap(on, Ordering::Relaxed) != on
    }

    /// Lets watchers in, if they are not yet.
    pub fn open(&self, runtime: &Arc<Runtime>) {
        if !self.has_endpoint.load(Ordering::Relaxed)
            && !self.has_endpoint.swap(true, Ordering::SeqCst)
        {
            let mut endpoint = lock(&self.endpoint);
            if !runtime.threads.is_closing() {
                *endpoint = Endpoint::open(runtime);
            }
        }
    }

    pub fn close(&self) {
        // Its thread may be serving a watcher, which needs the lock.
        let endpoint = lock(&self.endpoint).take();
        drop(endpoint);
    }

    /// A watcher has come: gives its number, the first that is free from `first` on.
    pub fn add(&self, first: u64) -> PeerId {
        let mut sent = lock(&self.sent);
        let number = (first..).map(PeerId).find(|peer| !sent.contains_key(peer));
        let peer = number.expect("there are fewer than 2^64 watchers");
        sent.insert(peer, Vec::new());
        peer
    }

    pub fn remove(&self, peer: PeerId) {
        lock(&self.sent).remove(&peer);
    }

    /// Keeps a message for a watcher.
    pub fn send(&self, peer: PeerId, message: Message) {
        if let Some(sent) = lock(&self.sent).get_mut(&peer) {
            sent.push(message);
        }
    }

    /// What was sent to a watcher, once that is complete: names come before what they are for.
    pub fn take(&self, peer: PeerId) -> Option<Vec<Message>> {
        let mut sent = lock(&self.sent);
        let sent = sent.get_mut(&peer)?;
        let is_complete = sent.last().is_some_and(|last| !matches!(last, Message::Names(_)));
        is_complete.then(|| std::mem::take(sent))
    }

    /// In the child of a fork: watchers, whose numbers it gives, and the endpoint are the parent's.
    pub fn after_fork(&self) -> Vec<PeerId> {
        let mut watchers: Vec<PeerId> =
            std::mem::take(&mut *lock(&self.sent)).into_keys().collect();
        watchers.sort_unstable();
        if let Some(endpoint) = lock(&self.endpoint).take() {
            endpoint.forget();
        }
        self.has_endpoint.store(false, Ordering::SeqCst);
        watchers
    }
}
