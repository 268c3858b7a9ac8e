//! Measures turns and collectives.

use std::time::Duration;

use super::Device;
use crate::engine::{Engine, estimated_time};

/// The work ([`gt_ir::Operation::work`]) after which a turn ends if another lane is ready.
const TURN_WORK: u64 = 1 << 20;

/// How a turn, or a collective, is measured.
#[derive(Clone, Copy)]
pub(crate) enum Measure {
    /// By the engine's clock, from this time.
    Clock(Duration),
    /// By an estimate of the work done.
    Estimate,
    /// By the device, later; it started at this time of the engine's clock.
    Device(Duration),
}

impl<E: Engine> Device<E> {
    /// Starts a measurement.
    pub fn begin_measure(&mut self) -> Measure {
        if !self.options.is_timed {
            Measure::Estimate
        } else if self.engine.runs_ahead() {
            // Errors are reported by the operations.
            let _ = self.guarded(|engine| {
                engine.begin_turn();
                Ok(())
            });
            Measure::Device(self.engine.now())
        } else {
            Measure::Clock(self.engine.now())
        }
    }

    /// Ends a measurement by the device; returns whether the device supports it.
    pub fn end_turn(&mut self, measure: Measure) -> bool {
        matches!(measure, Measure::Device(_))
            && self.guarded(|engine| Ok(engine.end_turn())).unwrap_or(false)
    }

    /// Returns the nanoseconds so far; 0 if the device reports them later.
    pub fn cost(&self, measure: Measure, work: u64) -> u64 {
        match measure {
            Measure::Clock(begin) => self.engine.now().saturating_sub(begin).as_nanos() as u64,
            Measure::Estimate => estimated_time(work, self.engine.rate()),
            Measure::Device(_) => 0,
        }
    }

    /// The work after which a turn ends if another lane is ready: a tenth of a millisecond's on devices
    /// that are far faster than the host can issue, or slow.
    pub fn turn_work(&self) -> u64 {
        let rated = self.engine.rate() / 10_000;
        match self.engine.runs_ahead() {
            true => TURN_WORK.max(rated),
            false if self.options.is_timed => TURN_WORK.min(rated),
            false => TURN_WORK,
        }
    }
}
