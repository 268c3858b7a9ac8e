//! What environment variables say. One that cannot be understood is told of once, and ignored.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tracing::warn;

/// A switch; `None` if it is not set.
pub fn switch(name: &str) -> Option<bool> {
    read(name, "0 or 1", |text| match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "on" | "yes" => Some(true),
        "0" | "false" | "off" | "no" => Some(false),
        _ => None,
    })
}

/// Whether a variable says anything but 0.
pub fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0")
}

/// A whole number from 1 on; `None` if it is not set.
pub fn count(name: &str) -> Option<u64> {
    read(name, "a whole number from 1 on", |text| text.parse().ok().filter(|&count| count > 0))
}

/// A time in seconds; `None` if it is not set.
pub fn seconds(name: &str) -> Option<Duration> {
    let duration = |seconds: f64| Duration::try_from_secs_f64(seconds).ok();
    read(name, "a number of seconds above 0", |text| {
        text.parse().ok().filter(|&seconds| seconds > 0.0).and_then(duration)
    })
}

fn read<T>(name: &str, expected: &str, parse: impl Fn(&str) -> Option<T>) -> Option<T> {
    let given = std::env::var_os(name).filter(|given| !given.is_empty())?;
    let parsed = given.to_str().map(str::trim).and_then(parse);
    if parsed.is_none() && first_time(name) {
        let given = given.display();
        warn!("{name} is '{given}', expected {expected}: it is ignored");
    }
    parsed
}

/// Whether nobody was told of this variable yet.
fn first_time(name: &str) -> bool {
    static TOLD: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    told.get_or_insert_default().insert(name.to_string())
}
