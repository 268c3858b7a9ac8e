//! The signals of this process, by name, and how many slots its sessions have.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard};

use rustc_hash::FxHashMap;

use gt_ir::Rescale;

use super::SignalConfig;

/// What is said of sessions.
#[derive(Default)]
struct Registered {
    signals: FxHashMap<String, SignalConfig>,
    slots: Rescale,
}

static REGISTERED: LazyLock<Mutex<Registered>> = LazyLock::new(Mutex::default);
/// Grows with every change, so that sessions notice.
static VERSION: AtomicU64 = AtomicU64::new(0);

fn lock() -> MutexGuard<'static, Registered> {
    REGISTERED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Says what a signal means from now on, in all sessions.
pub fn register(name: &str, config: SignalConfig) {
    lock().signals.insert(name.to_string(), config);
    VERSION.fetch_add(1, Ordering::Release);
}

/// Says how many slots sessions have that are not told otherwise.
pub fn set_slots(slots: Rescale) {
    lock().slots = slots;
    VERSION.fetch_add(1, Ordering::Release);
}

/// How many slots sessions have that are not told otherwise.
pub fn slots() -> Rescale {
    lock().slots
}

/// What a signal means, if anything is said of it.
pub fn get(name: &str) -> Option<SignalConfig> {
    lock().signals.get(name).cloned()
}

/// The names of all signals of which something is said, sorted.
pub fn names() -> Vec<String> {
    let mut names: Vec<String> = lock().signals.keys().cloned().collect();
    names.sort_unstable();
    names
}

/// Forgets all signals, and how many slots sessions have.
pub fn clear() {
    *lock() = Registered::default();
    VERSION.fetch_add(1, Ordering::Release);
}

/// A number that grows with every change.
pub fn version() -> u64 {
    VERSION.load(Ordering::Acquire)
}
