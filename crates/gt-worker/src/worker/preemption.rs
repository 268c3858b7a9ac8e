//! Preemption: a long call of one session is paused while others have turns.
//!
//! A call that can be paused computes between the worker's steps, and each turn of its lane is charged
//! for the time since the last; when another lane is next, the call is paused at its next cut point. So
//! a short question waits for a part of a long operation, and not for its end.
//!
//! Calls are begun that way while another session is interactive: its last turns were short, and it
//! waits for what they computed. Very long ones always are, as long as several sessions are there: one
//! may return to its notebook. Among sessions with long calls, each waits for the end of another's
//! call, or for some time of it: switching more often would gain them nothing, and costs time.

use std::time::Duration;

use gt_ir::{Incarnation, LaneId};
use rustc_hash::FxHashMap;

use super::Worker;
use crate::engine::Engine;
use crate::lane::call::PauseState;

/// The time after which a call is paused for a lane that has long calls itself.
const LONGEST: Duration = Duration::from_millis(50);
/// How long a driver waits for messages at most while a call computes: if other lanes are ready, and
/// if none is.
const LOOK: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(10));
/// The time of the shortest calls that can be paused while another session is interactive, and while
/// none is. To begin one on another thread takes a tenth of a millisecond.
const PAUSABLE_FROM: (Duration, Duration) = (Duration::from_millis(2), Duration::from_millis(20));
/// A turn of this length is long.
const LONG_TURN: Duration = Duration::from_millis(5);
/// How long a lane counts as one with long calls after the last of them.
const SLOW_FOR: Duration = Duration::from_secs(1);
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
    /// Returns the time of the shortest calls of a session's turn that are begun as ones that can be
    /// paused, if any are.
    pub(super) fn pausable_from(&self, incarnation: Incarnation) -> Option<Duration> {
        let device = &self.device;
        if !device.options.pauses || !self.ready.is_shared() || !device.engine.can_pause() {
            return None;
        }
        let (soon, at_rest) = PAUSABLE_FROM;
        let is_soon = !device.options.is_timed
            || self.interactive.has_other(incarnation, device.engine.now());
        Some(if is_soon { soon } else { at_rest })
    }

    /// Returns whether a lane has had long calls lately.
    fn is_slow(&self, id: LaneId) -> bool {
        let last = self.lanes.get(&id).and_then(|lane| lane.last_long);
        let now = self.device.engine.now();
        last.is_some_and(|last| now.saturating_sub(last) < SLOW_FOR)
    }

    /// Records a lane's turn of this length, or a call in several turns of this length so far, and
    /// whether the lane then waits for commands or pieces.
    pub(super) fn note_turn(&mut self, id: LaneId, length: Duration, waits: bool) {
        if !self.device.options.pauses {
            return;
        }
        let now = self.device.engine.now();
        if length >= LONG_TURN
            && let Some(lane) = self.lanes.get_mut(&id)
        {
            lane.last_long = Some(now);
        }
        if waits && !self.is_slow(id) {
            self.interactive.0.insert(id.incarnation, now);
        }
    }

    /// Returns the lane whose turn it is, if `next` is next by the policy: that of the call that the
    /// device computes, unless it has to give way.
    pub(super) fn preempts(&mut self, next: LaneId) -> LaneId {
        let Some(own) = self.computing.filter(|own| *own != next) else { return next };
        let ran = self.lanes.get(&own).and_then(|lane| lane.call.as_ref()).map(|call| call.ran);
        let is_short = ran.is_some_and(|ran| ran < LONGEST);
        if self.device.options.is_timed && is_short && self.is_slow(next) {
            self.ready.again(next);
            return own;
        }
        next
    }

    /// Returns how long the driver waits for messages at most while the device computes a call, if it
    /// does and turns do not wait for it.
    pub(super) fn computes_for(&self) -> Option<Duration> {
        if !self.device.slice.is_zero() {
            return None;
        }
        let call = self.lanes.get(&self.computing?)?.call.as_ref()?;
        let (shared, alone) = LOOK;
        (call.state == PauseState::Running).then_some(match self.ready.len() {
            2.. => shared,
            _ => alone,
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
        if self.device.events.is_on {
            self.device.end_event();
        }
        true
    }
}
