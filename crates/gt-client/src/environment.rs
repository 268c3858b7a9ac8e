//! Environment variables. One that cannot be parsed is reported once, and ignored.

use std::collections::HashSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tracing::warn;

/// Returns a boolean; `None` if it is not set.
pub fn switch(name: &str) -> Option<bool> {
    read(name, "0 or 1", |text| match text.to_ascii_lowercase().as_str() {
        "1" | "true" | "on" | "yes" => Some(true),
        "0" | "false" | "off" | "no" => Some(false),
        _ => None,
    })
}

/// Returns whether a variable is set to anything but 0.
pub fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty() && value != "0")
}

/// Returns a positive integer; `None` if it is not set.
pub fn count(name: &str) -> Option<u64> {
    read(name, "a whole number from 1 on", |text| text.parse().ok().filter(|&count| count > 0))
}

/// Returns a time in seconds; `None` if it is not set.
pub fn seconds(name: &str) -> Option<Duration> {
    let duration = |seconds: f64| Duration::try_from_secs_f64(seconds).ok();
    read(name, "a number of seconds above 0", |text| {
        text.parse().ok().filter(|&seconds| seconds > 0.0).and_then(duration)
    })
}

/// Returns a size in bytes, written as `512MiB`, `16GB` or a number of bytes; `None` if it is not
/// set.
pub fn size(name: &str) -> Option<u64> {
    read(name, "a size, as 16GB, 512MiB or a number of bytes", bytes)
}

/// Returns the number of bytes in a text such as `1.5 GiB`; `None` if it is not a size, or 0.
///
/// ```
/// use gt_client::environment::bytes;
/// assert_eq!((bytes("2KiB"), bytes("1.5 GB"), bytes("10")), (Some(2048), Some(1_500_000_000), Some(10)));
/// assert_eq!((bytes("0"), bytes("-1 GB"), bytes("much")), (None, None, None));
/// ```
pub fn bytes(text: &str) -> Option<u64> {
    const UNITS: [(&str, f64); 9] = [
        ("KiB", 1024.0),
        ("MiB", 1_048_576.0),
        ("GiB", 1_073_741_824.0),
        ("TiB", 1_099_511_627_776.0),
        ("KB", 1e3),
        ("MB", 1e6),
        ("GB", 1e9),
        ("TB", 1e12),
        ("B", 1.0),
    ];
    let text = text.trim();
    let unit = UNITS.iter().find(|(unit, _)| text.ends_with(unit));
    let (unit, factor) = unit.copied().unwrap_or(("", 1.0));
    let number: f64 = text.strip_suffix(unit)?.trim_end().parse().ok()?;
    let bytes = number * factor;
    (bytes.is_finite() && (1.0..9e18).contains(&bytes)).then_some(bytes as u64)
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

/// Returns whether this variable was not reported yet.
fn first_time(name: &str) -> bool {
    static REPORTED: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let mut reported = REPORTED.lock().unwrap_or_else(PoisonError::into_inner);
    reported.get_or_insert_default().insert(name.to_string())
}
