//! The commands for each worker, as the planner makes them.

use gt_ir::{Command, WorkerId};

/// A list of commands for each worker.
#[derive(Default)]
pub struct Streams {
    /// Where in `lists` a worker's commands are, by its number.
    places: Vec<Option<usize>>,
    lists: Vec<(WorkerId, Vec<Command>)>,
}

impl Streams {
    pub fn push(&mut self, worker: WorkerId, command: Command) {
        let index = worker.0 as usize;
        if self.places.len() <= index {
            self.places.resize(index + 1, None);
        }
        let place = *self.places[index].get_or_insert_with(|| {
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
