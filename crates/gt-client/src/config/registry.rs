//! The signals of this process, by name.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard};

use rustc_hash::FxHashMap;

use gt_ir::Rescale;

use super::SignalConfig;

static SIGNALS: LazyLock<Mutex<FxHashMap<String, SignalConfig>>> = LazyLock::new(Mutex::default);
static SLOTS: Mutex<Rescale> = Mutex::new(Rescale { slots: None, elastic: None });
/// Grows with every change, so that sessions notice.
static VERSION: AtomicU64 = AtomicU64::new(0);

fn lock() -> MutexGuard<'static, FxHashMap<String, SignalConfig>> {
    SIGNALS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Says what a signal means from now on, in all sessions.
pub fn register(name: &str, config: SignalConfig) {
    lock().insert(name.to_string(), config);
    VERSION.fetch_add(1, Ordering::Release);
}

/// Says how many slots sessions have that are not told otherwise.
pub fn set_slots(slots: Rescale) {
    *SLOTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = slots;
    VERSION.fetch_add(1, Ordering::Release);
}

/// How many slots sessions have that are not told otherwise.
pub fn slots() -> Rescale {
    *SLOTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// What a signal means, if anything is said of it.
pub fn get(name: &str) -> Option<SignalConfig> {
    lock().get(name).cloned()
}

/// The names of all signals of which something is said, sorted.
pub fn names() -> Vec<String> {
    let mut names: Vec<String> = lock().keys().cloned().collect();
    names.sort_unstable();
    names
}

/// Forgets all signals.
pub fn clear() {
    lock().clear();
    *SLOTS.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = Rescale::default();
    VERSION.fetch_add(1, Ordering::Release);
}

/// A number that grows with every change.
pub fn version() -> u64 {
    VERSION.load(Ordering::Acquire)
}
