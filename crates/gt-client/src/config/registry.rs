//! The signals of this process, by name, and the number of slots of its sessions.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, MutexGuard};

use rustc_hash::FxHashMap;

use gt_ir::Rescale;

use super::SignalConfig;

/// The configuration of sessions.
#[derive(Default)]
struct Registered {
    signals: FxHashMap<String, SignalConfig>,
    slots: Rescale,
}

static REGISTERED: LazyLock<Mutex<Registered>> = LazyLock::new(Mutex::default);
/// Increases with every change, so that sessions notice.
static VERSION: AtomicU64 = AtomicU64::new(0);

fn lock() -> MutexGuard<'static, Registered> {
    REGISTERED.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Configures a signal in all sessions from now on.
pub fn register(name: &str, config: SignalConfig) {
    lock().signals.insert(name.to_string(), config);
    VERSION.fetch_add(1, Ordering::Release);
}

/// Sets the default number of slots of sessions.
pub fn set_slots(slots: Rescale) {
    lock().slots = slots;
    VERSION.fetch_add(1, Ordering::Release);
}

/// Returns the default number of slots of sessions.
pub fn slots() -> Rescale {
    lock().slots
}

/// Returns the configuration of a signal, if any.
pub fn get(name: &str) -> Option<SignalConfig> {
    lock().signals.get(name).cloned()
}

/// Whether a signal has a configuration.
pub fn is_known(name: &str) -> bool {
    lock().signals.contains_key(name)
}

/// Returns the names of all configured signals, sorted.
pub fn names() -> Vec<String> {
    let mut names: Vec<String> = lock().signals.keys().cloned().collect();
    names.sort_unstable();
    names
}

/// Removes all signals, and the number of slots.
pub fn clear() {
    *lock() = Registered::default();
    VERSION.fetch_add(1, Ordering::Release);
}

/// Returns a number that increases with every change.
pub fn version() -> u64 {
    VERSION.load(Ordering::Acquire)
}
