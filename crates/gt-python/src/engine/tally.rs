//! Statistics of an engine's compilations.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use gt::ir::statistics::Compilation;
use pyo3::prelude::*;

/// How many compilations of plans are listed.
const REMEMBERED: usize = 16;

/// The time of all compilations, the number of failed ones, and the most recent ones.
#[derive(Default)]
pub struct Tally {
    nanoseconds: AtomicU64,
    failures: AtomicU64,
    /// The most recent successful compilations.
    recent: Mutex<VecDeque<Compilation>>,
}

impl Tally {
    /// Returns the total time of compilations, and the number of failed ones.
    pub fn get(&self) -> (Duration, u64) {
        let time = Duration::from_nanos(self.nanoseconds.load(Ordering::Relaxed));
        (time, self.failures.load(Ordering::Relaxed))
    }

    /// Returns the most recent compilations of plans, and other compilations that the engine
    /// reports.
    pub fn compilations(&self, engine: &Bound<'_, PyAny>) -> Vec<Compilation> {
        let recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<Compilation> = recent.iter().cloned().collect();
        drop(recent);
        let own = engine.call_method0("compiled");
        let own = own.and_then(|own| own.extract::<Vec<(String, String, f64)>>());
        // An engine without the method, or one that fails, reports no others.
        all.extend(own.into_iter().flatten().map(|(operations, reason, seconds)| {
            let time = Duration::try_from_secs_f64(seconds).unwrap_or_default();
            Compilation { operations, reason, time }
        }));
        all
    }

    /// Adds a successful compilation.
    pub fn add(&self, compilation: Compilation) {
        let nanoseconds = compilation.time.as_nanos() as u64;
        self.nanoseconds.fetch_add(nanoseconds, Ordering::Relaxed);
        let mut recent = self.recent.lock().unwrap_or_else(PoisonError::into_inner);
        if recent.len() >= REMEMBERED {
            recent.pop_front();
        }
        recent.push_back(compilation);
    }

    pub fn add_failure(&self) {
        self.failures.fetch_add(1, Ordering::Relaxed);
    }
}
