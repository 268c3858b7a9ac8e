//! Preemption: a long call of one session is paused while others have turns.
//!
//! A call that can be paused computes between the worker's steps. Each turn of its lane waits for it
//! for a moment, and is charged for that; when another lane is next, the call is paused at its next
//! cut point. So a short question waits for a part of a long operation, and not for its end.

use gt_ir::LaneId;

use super::Worker;
use crate::engine::Engine;

impl<E: Engine> Worker<E> {
    /// Pauses the call that the device computes, unless it is of lane `next`, whose turn it is.
    /// Returns false if it has not reached a cut point yet.
    pub(super) fn pause_others(&mut self, next: LaneId) -> bool {
        let Some(id) = self.computing.filter(|id| *id != next) else { return true };
        if let Some(lane) = self.lanes.get_mut(&id)
            && !self.device.pause_call(lane)
        {
            return false;
        }
        self.computing = None;
        if self.device.events.is_on {
            self.device.end_event();
        }
        true
    }
}
