//! Long calls, which a turn waits for a slice of time.

use super::Turn;
use crate::device::calls::CallEnd;
use crate::device::launch::PartRun;
use crate::engine::Engine;

impl<E: Engine> Turn<'_, E> {
    /// Waits for the lane's call; returns whether it is complete.
    pub(super) fn resume_call(&mut self) -> bool {
        let Some(end) = self.device.resume_call(self.lane) else { return false };
        match end {
            CallEnd::Instruction(work) => self.spent += work,
            CallEnd::Part(run) => self.end_part(run),
            CallEnd::Batch(run, count) => self.end_batch(run, count),
        }
        self.device.fail_ended(self.lane);
        true
    }

    /// Ends a batch of `count` commands that was run as one program, or run them one by one.
    fn end_batch(&mut self, run: PartRun, count: usize) {
        let Some(batch) = self.lane.queue.front() else { return };
        let commands = std::mem::take(&mut batch.commands);
        let (place, next) = (batch.next, batch.next + count);
        if run != PartRun::Done {
            self.device.run_plainly(self.lane, &commands[place..next]);
        }
        if let Some(batch) = self.lane.queue.front() {
            (batch.commands, batch.next) = (commands, next);
        }
    }
}
