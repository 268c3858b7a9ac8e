//! Plans commands on a copy of a catalogue, to explain them: nothing is sent, and nothing changes.

use std::panic::{AssertUnwindSafe, catch_unwind};

use gt_ir::ClientCommand;

use super::explain::PlanRecorder;
use super::{Catalogue, Planner, Streams};

impl Planner {
    /// Continues a recording with the plans of commands, up to the first that cannot be planned.
    /// Requests and definitions are ignored.
    pub fn rehearse(
        &mut self,
        catalogue: &Catalogue,
        recorder: PlanRecorder,
        commands: Vec<ClientCommand>,
    ) -> PlanRecorder {
        let stats = self.stats;
        let mut copy = catalogue.clone();
        copy.recorder = Some(recorder);
        let planned = catch_unwind(AssertUnwindSafe(|| {
            let streams = &mut Streams::default();
            let mut commands = commands.into_iter();
            commands.try_for_each(|command| self.compute(&mut copy, streams, command))
        }));
        // An error is reported where the session itself is planned.
        drop(planned);
        self.stats = stats;
        copy.recorder.take().unwrap_or_default()
    }
}
