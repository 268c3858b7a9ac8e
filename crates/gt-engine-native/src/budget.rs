//! What the engine may allocate in a turn: for results, copies of operands and scratch.
//!
//! The worker sets a budget before a lane's turn and removes it afterwards. A block of memory that
//! exceeds the rest of the budget fails the operation that allocates it, and no other. The budget
//! follows the memory itself: a block that is dropped during the turn returns its bytes, whether it
//! was a result, a temporary or an operand.
//!
//! Blocks of up to [`UNCOUNTED`] bytes do not count: an operation holds few of them at a time, and the
//! worker counts those that are results in the lane's next turn.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};

use gt_worker::EngineError;

/// Blocks up to this size are taken without asking.
pub const UNCOUNTED: usize = 64 << 10;

/// What is left of an engine's budget; without one nothing is counted.
pub struct Budget(AtomicI64);

thread_local! {
    /// The budget of the work that this thread is at.
    static CURRENT: Cell<Option<&'static Budget>> = const { Cell::new(None) };
}

impl Budget {
    /// An engine's, which threads may refer to at any time: so it is never dropped. Engines are few,
    /// and it is eight bytes.
    pub fn new() -> &'static Budget {
        Box::leak(Box::new(Budget(AtomicI64::new(0))))
    }

    /// Begins with this many bytes.
    pub fn set(&self, bytes: u64) {
        self.0.store(bytes.try_into().unwrap_or(i64::MAX), Ordering::Relaxed);
    }
}

/// The budget of the work that this thread is at.
pub fn current() -> Option<&'static Budget> {
    CURRENT.get()
}

/// The work that this thread is at from now on draws on a budget, or on none.
pub fn enter(budget: Option<&'static Budget>) {
    CURRENT.set(budget);
}

/// Takes this many bytes; returns how many are left after that.
///
/// # Errors
/// There are not this many left.
pub fn reserve(bytes: usize) -> Result<u64, EngineError> {
    // A thread that is ending has no budget any more.
    let Some(budget) = CURRENT.try_with(Cell::get).ok().flatten() else { return Ok(u64::MAX) };
    let wanted = i64::try_from(bytes).unwrap_or(i64::MAX);
    let less = |left: i64| (left >= wanted).then(|| left - wanted);
    match budget.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
        Ok(before) => Ok((before - wanted) as u64),
        Err(_) => Err(EngineError::OutOfMemory { bytes }),
    }
}

/// Takes this many bytes that are allocated already, such as received data.
pub fn charge(bytes: usize) {
    add(-i64::try_from(bytes).unwrap_or(i64::MAX));
}

/// Gives back this many bytes.
pub fn release(bytes: usize) {
    add(i64::try_from(bytes).unwrap_or(i64::MAX));
}

fn add(bytes: i64) {
    if let Some(budget) = CURRENT.try_with(Cell::get).ok().flatten() {
        let sum = |left: i64| Some(left.saturating_add(bytes));
        let _ = budget.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
    }
}

/// Bytes taken for scratch that is allocated elsewhere, until it is dropped.
pub struct Scratch(usize);

/// Takes bytes for scratch that is allocated elsewhere: by a library, or as a vector.
///
/// # Errors
/// There are not this many left.
pub fn scratch(bytes: usize) -> Result<Scratch, EngineError> {
    if bytes <= UNCOUNTED {
        return Ok(Scratch(0));
    }
    reserve(bytes)?;
    Ok(Scratch(bytes))
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.0 > 0 {
            release(self.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::buffer::Buffer;

    const MB: usize = 1 << 20;

    #[test]
    fn what_does_not_fit_is_out_of_memory_and_what_is_dropped_comes_back() {
        let budget = Budget::new();
        budget.set(10 * MB as u64);
        enter(Some(budget));
        let first = Buffer::new(6 * MB).unwrap();
        let error = Buffer::new(5 * MB).map(|_| ()).unwrap_err();
        assert_eq!(error, EngineError::OutOfMemory { bytes: 5 * MB });
        assert!(scratch(5 * MB).is_err());
        let small: Vec<_> = (0..1000).map(|_| Buffer::new(UNCOUNTED).unwrap()).collect();
        drop(first);
        let second = Buffer::new(5 * MB).unwrap();
        let third = scratch(5 * MB).unwrap();
        assert!(Buffer::new(UNCOUNTED + 1).is_err());
        drop((second, third, small));
        assert_eq!(reserve(10 * MB), Ok(0));
        enter(None);
        assert_eq!(reserve(10 * MB), Ok(u64::MAX), "nothing is counted without one");
    }

    #[test]
    fn helpers_draw_on_the_budget_of_the_work_that_they_join() {
        let budget = Budget::new();
        budget.set(3 * MB as u64);
        enter(Some(budget));
        let mut threads = crate::threads::Threads::new(2);
        let both = std::sync::Barrier::new(2);
        let got = std::sync::Mutex::new(Vec::new());
        threads.for_each(2, |_| {
            both.wait();
            let made = Buffer::new(2 * MB);
            got.lock().unwrap().push(made.is_ok());
            both.wait();
        });
        let got = got.into_inner().unwrap();
        assert_eq!(got.iter().filter(|made| **made).count(), 1, "{got:?}");
        assert_eq!(reserve(3 * MB), Ok(0), "both have given back what they had");
        enter(None);
    }
}
