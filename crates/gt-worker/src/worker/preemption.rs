//! Preemption: a long call of one session is paused while others have turns.
//!
//! A call that can be paused computes between the worker's steps, and each turn of its lane is
//! charged for the time since the last; when another lane is next, the call is paused at its next
//! cut point. So a short question waits for a part of a long operation, and not for its end.
//!
//! Calls are begun that way while another session is interactive: its last turns were short, and it
//! waits for what they computed. Very long ones always are, as long as the device is shared: one
//! may return to its notebook. A session waits for another's call for a part of what its own turns
//! take: among sessions with long calls, switching more often would gain them nothing, and costs
//! time.

use std::time::Duration;

use gt_ir::{Incarnation, LaneId};
use rustc_hash::FxHashMap;

use super::Worker;
use crate::engine::Engine;
use crate::lane::call::PauseState;

/// A lane waits for another's call for this part of its own session's longest recent turn, of
/// which 100 ms count at most.
const PATIENCE_PART: u32 = 4;
/// The shortest and the longest time for which a driver waits for messages while a call computes.
const LOOK_LEAST: Duration = Duration::from_millis(1);
const LOOK_MOST: Duration = Duration::from_millis(10);
/// The time of the shortest calls that can be paused while another session is interactive. To begin
/// one on another thread takes a tenth of a millisecond.
const PAUSABLE_FROM: Duration = Duration::from_millis(2);
/// The same while no other session is.
const PAUSABLE_AT_REST_FROM: Duration = Duration::from_millis(20);
/// A session with turns of this length is not interactive.
const LONG_TURN: Duration = Duration::from_millis(5);
/// How long a session counts as interactive after its last short turn.
const INTERACTIVE_FOR: Duration = Duration::from_secs(2);

/// The sessions that have waited for short turns, and when each did last.
#[derive(Default)]
pub(super) struct InteractiveSessions(FxHashMap<Incarnation, Duration>);

impl InteractiveSessions {
    /// Returns whether another session was interactive lately.
    fn has_other(&self, than: Incarnation, now: Duration) -> bool {
        let is_recent = |at: &Duration| now.saturating_sub(*at) < INTERACTIVE_FOR;
        self.0.iter().any(|(incarnation, at)| *incarnation != than && is_recent(at))
    }

    pub fn retire(&mut self, incarnation: Incarnation) {
        self.0.remove(&incarnation);
    }
}

impl<E: Engine> Worker<E> {
    /// Returns the time of the shortest calls of a session's turn that are begun as ones that can
    /// be paused, if any are.
    pub(super) fn pausable_from(&self, incarnation: Incarnation) -> Option<Duration> {
        let device = &self.device;
        if !device.options.pauses || !self.ready.is_shared() || !device.engine.can_pause() {
            return None;
        }
        let is_soon = !device.options.is_timed
            || self.interactive.has_other(incarnation, device.engine.now());
        Some(if is_soon { PAUSABLE_FROM } else { PAUSABLE_AT_REST_FROM })
    }

    /// A lane's turn has ended as it waits for commands or pieces.
    pub(super) fn begin_wait(&mut self, id: LaneId) {
        if self.device.options.pauses && self.ready.turn(id.incarnation) < LONG_TURN {
            self.interactive.0.insert(id.incarnation, self.device.engine.now());
        }
    }

    /// Returns the lane whose turn it is, if `next` is next by the policy: that of the call that
    /// the device computes, unless it has to give way.
    pub(super) fn preempts(&mut self, next: LaneId) -> LaneId {
        let Some(own) = self.computing.filter(|own| *own != next) else { return next };
        let call = self.lanes.get(&own).and_then(|lane| lane.call.as_ref());
        let patience = self.ready.turn(next.incarnation) / PATIENCE_PART;
        if self.device.options.is_timed
            && call.is_some_and(|call| call.ran_at(self.device.engine.now()) < patience)
        {
            self.ready.again(next);
            return own;
        }
        next
    }

    /// Returns how long the driver waits for messages at most while the device computes a call, if
    /// it does and turns do not wait for it.
    pub(super) fn computes_for(&self) -> Option<Duration> {
        if !self.device.slice.is_zero() {
            return None;
        }
        let call = self.lanes.get(&self.computing?)?.call.as_ref()?;
        (call.state == PauseState::Running).then(|| match self.ready.len() {
            2.. => {
                let patience = self.ready.shortest_turn() / PATIENCE_PART;
                let ran = call.ran_at(self.device.engine.now());
                patience.saturating_sub(ran).clamp(LOOK_LEAST, LOOK_MOST)
            }
            _ => LOOK_MOST,
        })
    }

    /// Pauses the call that the device computes, unless it is of lane `next`, whose turn it is.
    /// Returns false if it has not reached a cut point yet.
    pub(super) fn pause_others(&mut self, next: LaneId) -> bool {
        let Some(id) = self.computing.filter(|id| *id != next) else { return true };
        if let Some(lane) = self.lanes.get_mut(&id) {
            let Some(computed) = self.device.pause_call(lane) else { return false };
            if self.device.options.is_timed {
                let cost = computed.as_nanos() as u64;
                lane.untold += cost;
                self.ready.charge_turn(id.incarnation, cost, None);
            }
        }
        self.computing = None;
        if self.device.events.is_on() {
            self.device.end_event();
        }
        true
    }
}
