//! Anticipation: the device is kept for a session that has just been answered and asks again soon.
//!
//! Otherwise another's long operation begins in that moment, and the session waits for it at each of
//! its questions. The session pays for the idle time, and is waited for as long as it is next by its
//! share. What sessions' think times are, and for which to wait pays: [`gt_policy::ThinkTimes`].

use std::time::Duration;

use gt_ir::{Incarnation, LaneId};

use super::Worker;
use crate::engine::Engine;
use crate::lane::Lane;

/// The shortest turn of others instead of which the device is kept idle: a session that asks in the
/// middle of a shorter one waits little.
const LONG: Duration = Duration::from_micros(500);

/// A message that is handled in this time after a turn may have arrived during the turn.
const LOOK: Duration = Duration::from_micros(100);

/// The session for which the device is kept.
pub(super) struct Anticipated {
    incarnation: Incarnation,
    until: Duration,
    /// The time up to which it is charged.
    paid: Duration,
}

impl<E: Engine> Worker<E> {
    /// A lane's turn has ended as it has no more work; its session may think now.
    pub(super) fn end_question(&mut self, id: LaneId) {
        let incarnation = id.incarnation;
        if !self.device.options.is_timed || self.ready.has(incarnation) {
            return;
        }
        let lanes = self.lanes.range(LaneId::first(incarnation)..);
        let mut own = lanes.take_while(|(id, _)| id.incarnation == incarnation);
        if own.all(|(_, lane)| lane.is_done()) {
            self.ready.think_times.answer(incarnation, nanoseconds(self.device.engine.now()));
        }
    }

    /// Commands of a session have arrived.
    pub(super) fn begin_question(&mut self, incarnation: Incarnation) {
        if self.device.options.is_timed && self.ready.is_shared() && !self.ready.has(incarnation) {
            let now = self.device.engine.now();
            let (began, ended) = self.last_turn;
            // Messages are not looked at during a turn.
            let earliest = if now.saturating_sub(ended) < LOOK { began } else { now };
            self.ready.think_times.ask(incarnation, nanoseconds(earliest), nanoseconds(now));
        }
    }

    /// Returns whether the device is kept for a session that is about to ask.
    pub(super) fn anticipates(&mut self) -> bool {
        if self.anticipated.is_none() && !self.ready.think_times.is_any_thinking() {
            return false;
        }
        let now = self.device.engine.now();
        self.charge_anticipated(now);
        let awaited = match self.computing {
            None => self.ready.awaited(now, LONG),
            Some(_) => None,
        };
        self.anticipated = awaited.map(|(incarnation, until)| {
            let paid = match &self.anticipated {
                Some(Anticipated { incarnation: before, paid, .. }) if *before == incarnation => {
                    *paid
                }
                _ => {
                    self.note_wait(incarnation);
                    now
                }
            };
            Anticipated { incarnation, until, paid }
        });
        self.anticipated.is_some()
    }

    /// Returns how long the device is kept from now on, if it is.
    pub(super) fn anticipates_for(&self) -> Option<Duration> {
        let anticipated = self.anticipated.as_ref()?;
        Some(anticipated.until.saturating_sub(self.device.engine.now()))
    }

    fn first_lane(&mut self, incarnation: Incarnation) -> Option<&mut Lane<E::Tensor>> {
        let (id, lane) = self.lanes.range_mut(LaneId::first(incarnation)..).next()?;
        (id.incarnation == incarnation).then_some(lane)
    }

    fn charge_anticipated(&mut self, now: Duration) {
        let Some(anticipated) = &mut self.anticipated else { return };
        let cost = nanoseconds(now.saturating_sub(anticipated.paid));
        anticipated.paid = now;
        // A busy device is not kept idle.
        if !self.ahead.is_empty() {
            return;
        }
        let incarnation = anticipated.incarnation;
        self.ready.charge(incarnation, cost);
        self.ready.think_times.charge_idle(incarnation, cost);
        if let Some(lane) = self.first_lane(incarnation) {
            lane.untold += cost;
            lane.anticipation.time += cost;
        }
    }

    /// Counts that the device begins to wait for a session.
    fn note_wait(&mut self, incarnation: Incarnation) {
        if let Some(lane) = self.first_lane(incarnation) {
            lane.anticipation.count += 1;
        }
    }
}

fn nanoseconds(time: Duration) -> u64 {
    time.as_nanos() as u64
}
