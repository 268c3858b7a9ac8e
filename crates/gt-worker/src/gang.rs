//! Sessions that compute on several workers at the same time.
//!
//! A lane that waits for another slot's piece keeps the device for a moment, although others are
//! ready: its sender may be in the middle of somebody's long operation, and serves the session next.
//! From then on both serve it at the same time, and pieces come soon; without that, the session would
//! wait for such an operation at each of its exchanges. It pays for the time that it keeps the device,
//! and only as long as it is next. So workers serve a session together without asking each other
//! (spin-blocking of implicit coscheduling: Dusseau, Arpaci and Culler, SIGMETRICS 1996).
//!
//! Where all others have short turns, they have them meanwhile: that costs the session little, and the
//! device is not idle.
//!
//! Two workers that keep their devices for two sessions which wait for each other's workers would
//! both wait in vain: the session with the lower number has the right of way.

use std::time::Duration;

use gt_ir::LaneId;

use crate::engine::Engine;
use crate::lane::Lane;
use crate::worker::Worker;

/// Others' turns that are shorter than this may come in between: about what a piece takes from worker
/// to worker.
const SHORT: Duration = Duration::from_micros(500);

/// The device is never kept for longer: something else is wrong.
const MOST: Duration = Duration::from_millis(100);

/// A lane that the device is kept for.
pub(crate) struct Hold {
    lane: LaneId,
    /// Up to this time it is paid for.
    paid: Duration,
}

impl Hold {
    pub fn is_for(&self, session: u32) -> bool {
        self.lane.session == session
    }
}

impl<E: Engine> Worker<E> {
    /// A lane waits for pieces: keeps the device for it if others are ready, but its session is next.
    pub(crate) fn hold(&mut self, lane: LaneId) {
        let is_long = self.ready.longest_turn() > SHORT;
        if self.device.options.is_timed && is_long && self.may_hold(lane) {
            self.hold = Some(Hold { lane, paid: self.device.engine.now() });
        }
    }

    fn may_hold(&self, id: LaneId) -> bool {
        // The sender may have begun such a turn just before the session's piece came there.
        let patience = (SHORT + 2 * self.ready.longest_turn()).min(MOST);
        let is_early = |lane: &Lane<E::Tensor>| lane.exchanges.kept <= patience;
        self.lanes.get(&id).is_some_and(is_early) && self.ready.reserves(id.session)
    }

    /// Whether the device is kept for a lane that still waits.
    pub(crate) fn is_held(&mut self) -> bool {
        self.pay_for_hold();
        if self.hold.as_ref().is_some_and(|hold| !self.may_hold(hold.lane)) {
            self.hold = None;
        }
        self.hold.is_some()
    }

    /// The device is kept no longer.
    pub(crate) fn end_hold(&mut self) {
        self.pay_for_hold();
        self.hold = None;
    }

    fn pay_for_hold(&mut self) {
        let Some(hold) = &mut self.hold else { return };
        let now = self.device.engine.now();
        let cost = now.saturating_sub(hold.paid);
        hold.paid = now;
        // A device that is at work is not kept.
        if !self.ahead.is_empty() {
            return;
        }
        let nanoseconds = cost.as_nanos() as u64;
        self.ready.charge(hold.lane.session, nanoseconds);
        if let Some(lane) = self.lanes.get_mut(&hold.lane) {
            lane.untold += nanoseconds;
            lane.exchanges.kept += cost;
        }
    }

    /// Other workers wait for a session.
    pub(crate) fn boost(&mut self, session: u32) {
        if self.hold.as_ref().is_some_and(|hold| session < hold.lane.session) {
            self.end_hold();
        }
        self.ready.boost(session);
    }
}
