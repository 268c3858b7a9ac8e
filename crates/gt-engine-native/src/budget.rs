//! The memory budget of a turn, for results, copies of operands and scratch memory.
//!
//! The worker sets a budget before a lane's turn and removes it afterwards. An allocation that
//! exceeds the rest of the budget fails the operation that makes it, and no other. The budget
//! follows the memory itself: a block that is dropped during the turn returns its bytes, whether it
//! was a result, a temporary or an operand.
//!
//! Blocks of up to [`UNCOUNTED`] bytes are not counted: an operation holds few of them at a time,
//! and the worker counts those that are results in the lane's next turn.

use std::cell::Cell;
use std::sync::atomic::{AtomicI64, Ordering};

use gt_worker::EngineError;

/// Blocks up to this size are not counted.
pub const UNCOUNTED: usize = 64 << 10;

/// The bytes left of an engine's budget. Without a budget nothing is counted.
pub struct Budget(AtomicI64);

thread_local! {
    /// The budget that this thread currently allocates from.
    static CURRENT: Cell<Option<&'static Budget>> = const { Cell::new(None) };
}

impl Budget {
    /// Creates the budget of an engine. Threads may refer to it at any time, so it is leaked:
    /// engines are few, and a budget is eight bytes.
    pub fn new() -> &'static Budget {
        Box::leak(Box::new(Budget(AtomicI64::new(0))))
    }

    /// Sets the bytes that are left.
    pub fn set(&self, bytes: u64) {
        self.0.store(bytes.try_into().unwrap_or(i64::MAX), Ordering::Relaxed);
    }

    /// Returns the bytes that are left.
    pub fn left(&self) -> u64 {
        self.0.load(Ordering::Relaxed).max(0) as u64
    }
}

/// Returns the budget that this thread currently allocates from.
pub fn current() -> Option<&'static Budget> {
    CURRENT.get()
}

/// Makes this thread allocate from a budget, or without one.
pub fn enter(budget: Option<&'static Budget>) {
    CURRENT.set(budget);
}

/// Reserves bytes; returns the number of bytes left after that.
///
/// # Errors
/// Fewer bytes are left.
pub fn reserve(bytes: usize) -> Result<u64, EngineError> {
    // A thread that is shutting down has no budget any more.
    let Some(budget) = CURRENT.try_with(Cell::get).ok().flatten() else { return Ok(u64::MAX) };
    let wanted = i64::try_from(bytes).unwrap_or(i64::MAX);
    let less = |left: i64| (left >= wanted).then(|| left - wanted);
    match budget.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less) {
        Ok(before) => Ok((before - wanted) as u64),
        Err(_) => Err(EngineError::OutOfMemory { bytes }),
    }
}

/// Charges bytes that are allocated already, such as received data.
pub fn charge(bytes: usize) {
    add(-i64::try_from(bytes).unwrap_or(i64::MAX));
}

/// Returns bytes to the budget.
pub fn release(bytes: usize) {
    add(i64::try_from(bytes).unwrap_or(i64::MAX));
}

fn add(bytes: i64) {
    if let Some(budget) = CURRENT.try_with(Cell::get).ok().flatten() {
        let sum = |left: i64| Some(left.saturating_add(bytes));
        let _ = budget.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, sum);
    }
}

/// Bytes reserved for scratch memory that is allocated elsewhere, until this is dropped.
pub struct Scratch(usize);

/// Reserves bytes for scratch memory that is allocated elsewhere, by a library or as a vector.
///
/// # Errors
/// Fewer bytes are left.
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
    fn exceeding_the_budget_is_out_of_memory_and_drops_release() {
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
        assert_eq!(reserve(10 * MB), Ok(u64::MAX), "no budget is set");
    }

    #[test]
    fn helpers_charge_the_budget_of_the_job_they_join() {
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
        assert_eq!(reserve(3 * MB), Ok(0), "both threads have released their blocks");
        enter(None);
    }
}
