//! Coscheduling: the lanes of a session on several workers run at the same time.
//!
//! A lane that waits for another slot's piece reserves the device for a moment, although other
//! lanes are ready: the sender may be in the middle of another session's long operation, and serves
//! this session next. From then on both workers serve it at the same time, and pieces arrive soon;
//! otherwise the session would wait for such an operation at each of its exchanges. The session
//! pays for the reservation, and has it only as long as it is next by its share. So workers serve a
//! session together without messages between their schedulers (spin-blocking of implicit
//! coscheduling: Dusseau, Arpaci and Culler, SIGMETRICS 1996).
//!
//! If all other sessions have short turns, these run during the reservation: that costs the session
//! little, and the device is not idle.
//!
//! Two workers that reserve their devices for two sessions, each of which waits for the other
//! worker, would both wait in vain: the session with the lower number has priority.

use std::time::Duration;

use gt_ir::{Incarnation, LaneId};

use super::Worker;
use crate::engine::Engine;
use crate::lane::Lane;

/// Turns of other sessions that are shorter than this run during a reservation: about the time that
/// a piece takes from worker to worker.
const SHORT: Duration = Duration::from_micros(500);

/// The longest reservation: after it, another problem is the cause.
const MOST: Duration = Duration::from_millis(100);

/// How long a driver waits for messages before it asks whether a reservation has ended.
pub(super) const LOOK: Duration = Duration::from_millis(1);

/// A reservation of the device for a lane.
pub(super) struct Reservation {
    lane: LaneId,
    /// The time up to which it is charged.
    paid: Duration,
}

impl Reservation {
    pub fn is_for(&self, incarnation: Incarnation) -> bool {
        self.lane.incarnation == incarnation
    }
}

impl<E: Engine> Worker<E> {
    /// Reserves the device for a lane that waits for pieces, if other lanes are ready but its
    /// session is next.
    pub(super) fn reserve(&mut self, lane: LaneId) {
        let is_long = self.ready.longest_turn() > SHORT;
        if self.device.options.is_timed && is_long && self.may_reserve(lane) {
            self.reservation = Some(Reservation { lane, paid: self.device.engine.now() });
        }
    }

    fn may_reserve(&self, id: LaneId) -> bool {
        // The sender may have started such a turn just before the session's piece arrived there.
        let patience = (SHORT + 2 * self.ready.longest_turn()).min(MOST);
        let is_early = |lane: &Lane<E::Tensor>| lane.exchanges.reserved <= patience;
        self.lanes.get(&id).is_some_and(is_early) && self.ready.reserves(id.incarnation)
    }

    /// Returns whether the device is reserved for a lane that still waits.
    pub(super) fn is_reserved(&mut self) -> bool {
        self.charge_reservation();
        if self.reservation.as_ref().is_some_and(|reservation| !self.may_reserve(reservation.lane))
        {
            self.reservation = None;
        }
        self.reservation.is_some()
    }

    /// Ends the reservation.
    pub(super) fn end_reservation(&mut self) {
        self.charge_reservation();
        self.reservation = None;
    }

    fn charge_reservation(&mut self) {
        let Some(reservation) = &mut self.reservation else { return };
        let now = self.device.engine.now();
        let cost = now.saturating_sub(reservation.paid);
        reservation.paid = now;
        // A busy device is not reserved.
        if !self.ahead.is_empty() {
            return;
        }
        let nanoseconds = cost.as_nanos() as u64;
        self.ready.charge(reservation.lane.incarnation, nanoseconds);
        if let Some(lane) = self.lanes.get_mut(&reservation.lane) {
            lane.untold += nanoseconds;
            lane.exchanges.reserved += cost;
        }
    }

    /// Boosts a session that other workers wait for.
    pub(super) fn boost(&mut self, incarnation: Incarnation) {
        if self
            .reservation
            .as_ref()
            .is_some_and(|reservation| incarnation < reservation.lane.incarnation)
        {
            self.end_reservation();
        }
        self.ready.boost(incarnation);
    }
}
