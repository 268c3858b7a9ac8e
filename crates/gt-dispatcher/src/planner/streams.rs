//! The commands for each worker, as the planner makes them.

use gt_ir::{Command, WorkerId};
use rustc_hash::FxHashMap;

/// A list of commands for each worker.
#[derive(Default)]
pub struct Streams {
    /// Where in `lists` a worker's commands are.
    places: FxHashMap<WorkerId, usize>,
    lists: Vec<(WorkerId, Vec<Command>)>,
}

impl Streams {
    pub fn push(&mut self, worker: WorkerId, command: Command) {
        let place = *self.places.entry(worker).or_insert_with(|| {
            self.lists.push((worker, Vec::new()));
            self.lists.len() - 1
        });
        self.lists[place].1.push(command);
    }

    /// Puts a whole list in.
    pub fn put(&mut self, worker: WorkerId, commands: Vec<Command>) {
        self.lists.push((worker, commands));
    }

    /// All lists, in the order in which their workers were first given something.
    pub fn take(&mut self) -> Vec<(WorkerId, Vec<Command>)> {
        self.places.clear();
        std::mem::take(&mut self.lists)
    }
}
