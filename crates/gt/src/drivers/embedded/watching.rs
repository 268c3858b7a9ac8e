//! The watchers of an embedded runtime, which are in other processes.

use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use gt_dispatcher::{PeerId, ToPeer};
use gt_ir::event::EmitLevel;
use gt_ir::message::ServerToWatcher;
use rustc_hash::FxHashMap;

use super::endpoint::WatchSocket;
use super::lock;
use super::runtime::Runtime;

/// How long a watcher's request may take to be answered.
pub const ANSWER_LIMIT: Duration = Duration::from_millis(500);

/// The watchers, and the endpoint that they connect to.
#[derive(Default)]
pub struct Watching {
    /// What workers emit, by its number.
    level: AtomicU8,
    /// The messages for each.
    sent: Mutex<FxHashMap<PeerId, Vec<ToPeer>>>,
    has_endpoint: AtomicBool,
    endpoint: Mutex<Option<WatchSocket>>,
}

impl Watching {
    /// Returns what workers emit.
    pub fn level(&self) -> EmitLevel {
        match self.level.load(Ordering::Relaxed) {
            0 => EmitLevel::Nothing,
            1 => EmitLevel::Reports,
            _ => EmitLevel::Events,
        }
    }

    /// Sets what workers emit.
    pub fn observe(&self, level: EmitLevel) {
        self.level.store(level as u8, Ordering::Relaxed);
    }

    /// Opens the endpoint, unless that was done.
    pub fn open(&self, runtime: &Arc<Runtime>) {
        if !self.has_endpoint.load(Ordering::Relaxed)
            && !self.has_endpoint.swap(true, Ordering::SeqCst)
        {
            let mut endpoint = lock(&self.endpoint);
            if !runtime.threads.is_closing() {
                *endpoint = WatchSocket::open(runtime);
            }
        }
    }

    pub fn close(&self) {
        // Dropped without the lock: its thread may need the lock to serve a watcher.
        let endpoint = lock(&self.endpoint).take();
        drop(endpoint);
    }

    /// Adds a watcher, with the first free link number.
    pub fn add(&self) -> PeerId {
        let mut sent = lock(&self.sent);
        let number = (0..).map(PeerId::watcher).find(|peer| !sent.contains_key(peer));
        let peer = number.expect("there are fewer than 2^64 watchers");
        sent.insert(peer, Vec::new());
        peer
    }

    pub fn remove(&self, peer: PeerId) {
        lock(&self.sent).remove(&peer);
    }

    /// Queues a message for a watcher.
    pub fn send(&self, peer: PeerId, message: ToPeer) {
        if let Some(sent) = lock(&self.sent).get_mut(&peer) {
            sent.push(message);
        }
    }

    /// Takes a watcher's messages once the answer is complete: `Names` precede the events they are
    /// for.
    pub fn take(&self, peer: PeerId) -> Option<Vec<ToPeer>> {
        let mut sent = lock(&self.sent);
        let sent = sent.get_mut(&peer)?;
        let is_complete = sent
            .last()
            .is_some_and(|last| !matches!(last, ToPeer::Watcher(ServerToWatcher::Names(_))));
        is_complete.then(|| std::mem::take(sent))
    }

    /// In the child of a fork: drops the watchers, which are the parent's, and returns their links;
    /// leaves the endpoint to the parent.
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
