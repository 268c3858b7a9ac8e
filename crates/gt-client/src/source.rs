//! Which line of the user's program issued an instruction.
//!
//! Instructions carry a number; the text it stands for stays in this process.

use std::cell::Cell;
use std::panic::Location;
use std::sync::{LazyLock, Mutex};

use gt_ir::SourceId;
use rustc_hash::FxHashMap;

thread_local! {
    static CURRENT: Cell<SourceId> = const { Cell::new(SourceId(0)) };
}

#[derive(Default)]
struct Lines {
    texts: Vec<String>,
    numbers: FxHashMap<String, u32>,
}

static LINES: LazyLock<Mutex<Lines>> = LazyLock::new(Mutex::default);

/// The number for a line given as `file:line`; the same text always gets the same number.
pub fn intern(text: &str) -> SourceId {
    let mut lines = LINES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if let Some(&number) = lines.numbers.get(text) {
        return SourceId(number);
    }
    lines.texts.push(text.to_string());
    let number = lines.texts.len() as u32;
    lines.numbers.insert(text.to_string(), number);
    SourceId(number)
}

/// The text of a line's number.
pub fn text(source: SourceId) -> Option<String> {
    let lines = LINES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    lines.texts.get((source.0 as usize).checked_sub(1)?).cloned()
}

/// The line that instructions of this thread are issued for from now on.
pub fn set(source: SourceId) {
    CURRENT.set(source);
}

/// The line set last on this thread, or else the caller's of a Rust program.
#[track_caller]
pub(crate) fn current() -> SourceId {
    let set = CURRENT.get();
    if set.0 != 0 { set } else { of_caller() }
}

/// The number of the Rust caller's line, looked up by the address of its location.
#[track_caller]
fn of_caller() -> SourceId {
    thread_local! {
        static KNOWN: std::cell::RefCell<FxHashMap<usize, SourceId>> = Default::default();
    }
    let location = Location::caller();
    KNOWN.with_borrow_mut(|known| {
        *known
            .entry(std::ptr::from_ref(location) as usize)
            .or_insert_with(|| intern(&format!("{}:{}", location.file(), location.line())))
    })
}
