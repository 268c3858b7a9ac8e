//! Turns in flight: turns whose operations the device has not completed yet, on engines that run
//! ahead.
//!
//! Such a turn costs the time that the device reports after its completion; the host sees only the
//! time to issue it. The worker issues little ahead of the device, so that a session that becomes
//! ready does not wait behind the work of others.

use std::collections::VecDeque;
use std::time::Duration;

use gt_ir::LaneId;
use gt_ir::entitlement::Usage;
use gt_ir::message::WorkerToServer;

use crate::device::Device;
use crate::engine::Engine;
use crate::lane::Lane;
use crate::work::Out;
use crate::worker::Worker;

/// The most turns in flight when another starts, if sessions share the device: it stays busy while
/// the next turn is issued.
const SHARED: usize = 1;
/// The same for a single session.
const ALONE: usize = 8;

/// The lanes of the turns in flight, in order; `None` for lanes that were dropped.
#[derive(Default)]
pub(crate) struct Ahead(VecDeque<Option<LaneId>>);

impl Ahead {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets the lanes, whose names other lanes may get.
    pub fn forget(&mut self) {
        self.0.iter_mut().for_each(|id| *id = None);
    }
}

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
            Measure::Estimate => {
                let rate = u128::from(self.engine.rate().max(1));
                (u128::from(work) * 1_000_000_000 / rate) as u64
            }
            Measure::Device(_) => 0,
        }
    }

    /// The work after which a turn ends if another lane is ready: on devices that are far faster
    /// than the host can issue, a tenth of a millisecond's work.
    pub fn turn_work(&self) -> u64 {
        match self.engine.runs_ahead() {
            true => TURN_WORK.max(self.engine.rate() / 10_000),
            false => TURN_WORK,
        }
    }
}

/// The work ([`gt_ir::Operation::work`]) after which a turn ends if another lane is ready.
const TURN_WORK: u64 = 1 << 20;

impl<E: Engine> Worker<E> {
    /// Records that the device will report the time of a lane's turn or collective.
    pub(crate) fn await_cost(&mut self, id: LaneId) {
        self.ahead.0.push_back(Some(id));
    }

    /// Waits until few enough turns are in flight that another may start.
    pub(crate) fn catch_up(&mut self, out: &mut Vec<Out>) {
        let begins = self.ready.has_next() && self.reservation.is_none();
        let limit = match (begins, self.ready.is_shared()) {
            (false, _) => usize::MAX,
            (true, true) => SHARED,
            (true, false) => ALONE,
        };
        self.charge_turns(limit, out);
    }

    /// Charges sessions for completed turns; waits until at most `under_way` are in flight. For
    /// idle lanes the dispatcher is notified at once, as their sessions may end.
    fn charge_turns(&mut self, under_way: usize, out: &mut Vec<Out>) {
        if self.ahead.0.is_empty() {
            return;
        }
        let done = self.device.guarded(|engine| Ok(engine.turns_done(under_way)));
        for cost in done.unwrap_or_default() {
            let Some(id) = self.ahead.0.pop_front() else { return };
            let Some(id) = id else { continue };
            if self.ready.is_shared() {
                self.ready.charge_turn(id.incarnation, cost.max(1));
            }
            if let Some(lane) = self.lanes.get_mut(&id) {
                lane.untold += cost;
                if lane.queue.is_empty() && lane.running.is_none() {
                    lane.tell_usage(out);
                }
            }
        }
        // A device that has failed reports no more times.
        while self.ahead.0.len() > under_way {
            self.ahead.0.pop_front();
        }
    }

    /// Reports unreported device time to the dispatcher, as the worker is idle.
    pub(crate) fn tell_usage(&mut self, out: &mut Vec<Out>) {
        self.charge_turns(usize::MAX, out);
        for lane in self.lanes.values_mut().filter(|lane| lane.untold > 0) {
            lane.tell_usage(out);
        }
    }

    /// Reports what other lanes hold to the dispatcher, if a lane has reported since `before`, so
    /// that the dispatcher's view of a worker's lanes is of one moment.
    pub(crate) fn tell_others(&mut self, before: usize, out: &mut Vec<Out>) {
        let is_told = |out: &Out| matches!(out, Out::Server(WorkerToServer::LaneDone { .. }));
        if self.lanes.len() < 2 || !out[before.min(out.len())..].iter().any(is_told) {
            return;
        }
        for lane in self.lanes.values_mut().filter(|lane| lane.holds_otherwise()) {
            lane.tell_usage(out);
        }
    }
}

impl<T> Lane<T> {
    fn tell_usage(&mut self, out: &mut Vec<Out>) {
        let usage = self.usage(0);
        out.push(Out::Server(WorkerToServer::LaneDone { lane: self.id, weight: 0, usage }));
    }

    /// Returns what it has used and holds, with `more` nanoseconds of device time, for the
    /// dispatcher.
    pub fn usage(&mut self, more: u64) -> Usage {
        let device = std::mem::take(&mut self.untold) + more;
        self.reported = self.holds();
        Usage { device, bytes: self.reported.0, spilled: self.reported.1 }
    }

    /// Returns whether its holdings differ from the last report to the dispatcher.
    fn holds_otherwise(&self) -> bool {
        self.reported != self.holds()
    }

    /// Returns the bytes that it holds in memory, its tensors' records included, and elsewhere.
    fn holds(&self) -> (u64, u64) {
        let records = if self.memory.quota.is_some() { self.records() } else { 0 };
        (self.store.bytes() + records, self.store.spilled())
    }
}
