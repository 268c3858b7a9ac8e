//! The planner's output: a list of commands for each slot of a session.

use gt_ir::{SlotId, WorkerCommand};

/// A list of commands for each slot.
#[derive(Default)]
pub struct Streams {
    /// By slot.
    lists: Vec<Vec<WorkerCommand>>,
    /// The slots with commands, in the order of their first.
    used: Vec<SlotId>,
}

impl Streams {
    /// Appends a command for a slot.
    #[inline]
    pub fn push(&mut self, slot: SlotId, command: WorkerCommand) {
        let index = slot.0 as usize;
        if index >= self.lists.len() {
            self.lists.resize_with(index + 1, Vec::new);
        }
        let list = &mut self.lists[index];
        if list.is_empty() {
            self.used.push(slot);
        }
        list.push(command);
    }

    /// Reserves room for `count` more commands of a slot.
    pub fn reserve(&mut self, slot: SlotId, count: usize) {
        let index = slot.0 as usize;
        if index >= self.lists.len() {
            self.lists.resize_with(index + 1, Vec::new);
        }
        self.lists[index].reserve(count);
    }

    /// Takes all lists, in the order of the slots' first commands.
    pub fn take(&mut self) -> Vec<(SlotId, Vec<WorkerCommand>)> {
        let lists = &mut self.lists;
        self.used
            .drain(..)
            .map(|slot| (slot, std::mem::take(&mut lists[slot.0 as usize])))
            .collect()
    }
}
