//! Turns in flight: turns whose operations the device has not completed yet, on engines that run
//! ahead.
//!
//! Such a turn costs the time that the device reports after its completion; the host sees only the
//! time to issue it. The worker issues little ahead of the device, so that a session that becomes
//! ready does not wait behind the work of others.

use std::collections::VecDeque;

use gt_ir::LaneId;
use gt_ir::message::WorkerToServer;

use super::Worker;
use crate::engine::Engine;
use crate::work::Out;

/// The most turns in flight when another starts, if sessions share the device: it stays busy while
/// the next turn is issued.
const SHARED: usize = 1;
/// The same for a single session.
const ALONE: usize = 8;

/// The lanes of the turns in flight, in order; `None` for lanes that were dropped.
#[derive(Default)]
pub(super) struct Ahead(VecDeque<Option<LaneId>>);

impl Ahead {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets the lanes, whose names other lanes may get.
    pub fn forget(&mut self) {
        self.0.iter_mut().for_each(|id| *id = None);
    }
}

impl<E: Engine> Worker<E> {
    /// Records that the device will report the time of a lane's turn or collective.
    pub(super) fn await_cost(&mut self, id: LaneId) {
        self.ahead.0.push_back(Some(id));
    }

    /// Waits until few enough turns are in flight that another may start.
    pub(super) fn catch_up(&mut self, out: &mut Vec<Out>) {
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
                self.ready.charge_turn(id.incarnation, cost.max(1), None);
            }
            if let Some(lane) = self.lanes.get_mut(&id) {
                lane.untold += cost;
                if lane.is_done() {
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
    pub(super) fn tell_usage(&mut self, out: &mut Vec<Out>) {
        self.charge_turns(usize::MAX, out);
        for lane in self.lanes.values_mut().filter(|lane| lane.untold > 0) {
            lane.tell_usage(out);
        }
    }

    /// Reports what other lanes hold to the dispatcher, if a lane has reported since `before`, so
    /// that the dispatcher's view of a worker's lanes is of one moment.
    pub(super) fn tell_others(&mut self, before: usize, out: &mut Vec<Out>) {
        let is_told = |out: &Out| matches!(out, Out::Server(WorkerToServer::LaneDone { .. }));
        if self.lanes.len() < 2 || !out[before.min(out.len())..].iter().any(is_told) {
            return;
        }
        for lane in self.lanes.values_mut().filter(|lane| lane.holds_otherwise()) {
            lane.tell_usage(out);
        }
    }
}
