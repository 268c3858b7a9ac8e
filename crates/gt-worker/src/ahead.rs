//! Turns that the device has not done yet, on engines whose operations return before that.
//!
//! Such a turn costs what the device says it took, once it has been done: what the host sees is how
//! long it took to ask for it. The worker asks for little ahead of the device, so that whoever comes
//! does not wait behind what others have asked for.

use std::collections::VecDeque;
use std::time::Duration;

use gt_ir::LaneId;
use gt_ir::entitlement::Usage;
use gt_ir::message::Message;

use crate::device::Device;
use crate::engine::Engine;
use crate::lane::Lane;
use crate::work::Out;
use crate::worker::Worker;

/// How many turns may be under way when another begins, if sessions share the device: it has
/// something to do while the next is asked for.
const SHARED: usize = 1;
/// The same if there is one session.
const ALONE: usize = 8;

/// The lanes whose turns the device has not done yet, in order; `None` for those that are gone.
#[derive(Default)]
pub(crate) struct Ahead(VecDeque<Option<LaneId>>);

impl Ahead {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The lanes are gone, and others may have their names.
    pub fn forget(&mut self) {
        self.0.iter_mut().for_each(|id| *id = None);
    }
}

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

    /// Ends what is measured by the device; returns whether that can be.
    pub fn end_turn(&mut self, measure: Measure) -> bool {
        matches!(measure, Measure::Device(_))
            && self.guarded(|engine| Ok(engine.end_turn())).unwrap_or(false)
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
    /// The device will say what a lane's turn, or its joint exchange, has taken.
    pub(crate) fn await_cost(&mut self, id: LaneId) {
        self.ahead.0.push_back(Some(id));
    }

    /// Waits until so little is under way on the device that another turn may begin.
    pub(crate) fn catch_up(&mut self, out: &mut Vec<Out>) {
        let begins = self.ready.has_next() && self.hold.is_none();
        let limit = match (begins, self.ready.is_shared()) {
            (false, _) => usize::MAX,
            (true, true) => SHARED,
            (true, false) => ALONE,
        };
        self.charge_turns(limit, out);
    }

    /// Charges sessions for the turns that the device has done; waits until at most `under_way` are
    /// left. The dispatcher is told at once of those of lanes that have nothing to do: their sessions
    /// may end.
    fn charge_turns(&mut self, under_way: usize, out: &mut Vec<Out>) {
        if self.ahead.0.is_empty() {
            return;
        }
        let done = self.device.guarded(|engine| Ok(engine.turns_done(under_way)));
        for cost in done.unwrap_or_default() {
            let Some(id) = self.ahead.0.pop_front() else { return };
            let Some(id) = id else { continue };
            if self.ready.is_shared() {
                self.ready.charge_turn(id.session, cost.max(1));
            }
            if let Some(lane) = self.lanes.get_mut(&id) {
                lane.untold += cost;
                if lane.queue.is_empty() && lane.running.is_none() {
                    lane.tell_usage(out);
                }
            }
        }
        // A device that fails says nothing any more.
        while self.ahead.0.len() > under_way {
            self.ahead.0.pop_front();
        }
    }

    /// Tells the dispatcher of the device time that it does not know of, as the worker is idle.
    pub(crate) fn tell_usage(&mut self, out: &mut Vec<Out>) {
        self.charge_turns(usize::MAX, out);
        for lane in self.lanes.values_mut().filter(|lane| lane.untold > 0) {
            lane.tell_usage(out);
        }
    }

    /// Tells the dispatcher what other lanes hold, where one has said so since `before`: what it knows of
    /// a worker's lanes is of one moment.
    pub(crate) fn tell_others(&mut self, before: usize, out: &mut Vec<Out>) {
        let is_told = |out: &Out| matches!(out, Out::Dispatcher(Message::LaneDone { .. }));
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
        out.push(Out::Dispatcher(Message::LaneDone { lane: self.id, weight: 0, usage }));
    }

    /// What it has used and holds, with `more` nanoseconds of device time, for the dispatcher.
    pub fn usage(&mut self, more: u64) -> Usage {
        let device = std::mem::take(&mut self.untold) + more;
        self.told = self.holds();
        Usage { device, bytes: self.told.0, spilled: self.told.1 }
    }

    /// Whether it holds something else than the dispatcher was told last.
    fn holds_otherwise(&self) -> bool {
        self.told != self.holds()
    }

    /// The bytes that it holds in memory, with what records count for its quotas, and elsewhere.
    fn holds(&self) -> (u64, u64) {
        let records = if self.memory.quota.is_some() { self.records() } else { 0 };
        (self.store.bytes() + records, self.store.spilled())
    }
}
