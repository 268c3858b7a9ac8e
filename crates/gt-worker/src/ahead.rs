//! Turns that the device has not done yet, on engines whose operations return before that.
//!
//! Such a turn costs what the device says it took, once it has been done: what the host sees is how
//! long it took to ask for it. The worker asks for little ahead of the device, so that whoever comes
//! does not wait behind what others have asked for.

use std::collections::VecDeque;
use std::time::Duration;

use gt_ir::LaneId;
use gt_ir::message::Message;
use gt_ir::standing::Usage;

use crate::device::Device;
use crate::engine::Engine;
use crate::lane::Lane;
use crate::work::Out;
use crate::worker::Worker;

/// How many turns may be under way when another begins, if sessions share the device: it has
/// something to do while the next is asked for.
const SHARED: usize = 1;
/// The same if there is one session.
const ALONE: usize = 64;

/// The lanes whose turns the device has not done yet, in order.
#[derive(Default)]
pub(crate) struct Ahead(VecDeque<LaneId>);

/// How a turn, or a joint exchange, is measured.
#[derive(Clone, Copy)]
pub(crate) enum Measure {
    /// By the engine's clock, from this time.
    Clock(Duration),
    /// By an estimate of the work done.
    Estimate,
    /// By the device, later; it began at this time of the engine's clock.
    Device(Duration),
}

impl<E: Engine> Device<E> {
    /// Begins to measure what comes.
    pub fn begin_measure(&mut self) -> Measure {
        if !self.options.is_timed {
            Measure::Estimate
        } else if self.engine.runs_ahead() {
            // What goes wrong with it is the operations' to report.
            let _ = self.guarded(|engine| {
                engine.begin_turn();
                Ok(())
            });
            Measure::Device(self.engine.now())
        } else {
            Measure::Clock(self.engine.now())
        }
    }

    /// The nanoseconds that it has taken so far; 0 if the device says so later.
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
    /// than the host asks, that of a tenth of a millisecond.
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
    /// A lane's turn, or its joint exchange, is over, and has taken `cost` nanoseconds.
    pub(crate) fn end_measure(&mut self, id: LaneId, measure: Measure, cost: u64) {
        if let Measure::Device(_) = measure {
            let _ = self.device.guarded(|engine| {
                engine.end_turn();
                Ok(())
            });
            self.ahead.0.push_back(id);
        } else if self.ready.is_shared() {
            self.ready.charge_turn(id.session, cost.max(1));
        }
    }

    /// Waits until so little is under way on the device that another turn may begin.
    pub(crate) fn catch_up(&mut self) {
        let limit = match (self.ready.has_next(), self.ready.is_shared()) {
            (false, _) => usize::MAX,
            (true, true) => SHARED,
            (true, false) => ALONE,
        };
        self.charge_turns(limit);
    }

    /// Charges sessions for the turns that the device has done; waits until at most `under_way` are
    /// left.
    fn charge_turns(&mut self, under_way: usize) {
        if self.ahead.0.is_empty() {
            return;
        }
        let done = self.device.guarded(|engine| Ok(engine.turns_done(under_way)));
        for cost in done.unwrap_or_default() {
            let Some(id) = self.ahead.0.pop_front() else { return };
            if self.ready.is_shared() {
                self.ready.charge_turn(id.session, cost.max(1));
            }
            if let Some(lane) = self.lanes.get_mut(&id) {
                lane.untold += cost;
            }
        }
        // A device that fails says nothing any more.
        while self.ahead.0.len() > under_way {
            self.ahead.0.pop_front();
        }
    }

    /// Tells the dispatcher of the device time that it does not know of, as the worker is idle.
    pub(crate) fn tell_usage(&mut self, out: &mut Vec<Out>) {
        self.charge_turns(usize::MAX);
        for lane in self.lanes.values_mut().filter(|lane| lane.untold > 0) {
            let usage = lane.usage(0);
            out.push(Out::Dispatcher(Message::LaneDone { lane: lane.id, weight: 0, usage }));
        }
    }
}

impl<T> Lane<T> {
    /// What it has used and holds, with `more` nanoseconds of device time, for the dispatcher.
    pub fn usage(&mut self, more: u64) -> Usage {
        let device = std::mem::take(&mut self.untold) + more;
        Usage { device, bytes: self.store.bytes(), spilled: self.store.spilled() }
    }
}
