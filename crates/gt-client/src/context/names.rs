//! Signals by number.

use std::sync::{LazyLock, Mutex, MutexGuard};

use rustc_hash::FxHashMap;

/// Names by number, for the whole process; number 0 has none.
#[derive(Default)]
struct NameInterner {
    list: Vec<String>,
    numbers: FxHashMap<String, u32>,
}

static NAMES: LazyLock<Mutex<NameInterner>> = LazyLock::new(Mutex::default);

fn names() -> MutexGuard<'static, NameInterner> {
    NAMES.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Returns the number of a signal's name.
pub fn number(name: &str) -> u32 {
    let mut names = names();
    if let Some(number) = names.numbers.get(name) {
        return *number;
    }
    names.list.push(name.to_string());
    let number = names.list.len() as u32;
    names.numbers.insert(name.to_string(), number);
    number
}

/// Returns the name of a signal's number.
pub fn name(number: u32) -> Option<String> {
    names().list.get((number as usize).checked_sub(1)?).cloned()
}
