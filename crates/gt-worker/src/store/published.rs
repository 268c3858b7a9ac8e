//! The memory of lanes' tensors that publications have as well, where it is not the snapshot store's.
//!
//! It is counted once: for the lane while that has the tensor, and then for the publications, until
//! the last of them ends.

use gt_ir::TensorId;

use super::{HeldTotals, Store};

/// Memory that publications share with a lane.
#[derive(Default, Debug)]
pub(crate) struct PublishedMemory {
    /// The number of publications that have it.
    publications: u32,
    /// The bytes that are counted for them since the lane freed it.
    bytes: u64,
}

impl HeldTotals {
    /// Adds a publication to those that have a tensor's memory, which has a number if there were any;
    /// returns its number.
    fn publish(&mut self, known: Option<u64>) -> u64 {
        let number = known.unwrap_or_else(|| {
            self.last_published += 1;
            self.last_published
        });
        self.published.entry(number).or_default().publications += 1;
        number
    }

    /// Returns whether a publication has this memory.
    pub fn is_published(&self, number: u64) -> bool {
        self.published.contains_key(&number)
    }

    /// Stops counting memory for a lane.
    pub(super) fn leave_published(&mut self, number: u64, bytes: u64) {
        match self.published.get_mut(&number) {
            Some(memory) => {
                memory.bytes += bytes;
                self.releases += 1;
            }
            None => self.remove(bytes),
        }
    }

    /// Removes a publication from those that have this memory.
    pub fn end_published(&mut self, number: u64) {
        let Some(memory) = self.published.get_mut(&number) else { return };
        memory.publications -= 1;
        if memory.publications == 0 {
            let bytes = memory.bytes;
            self.published.remove(&number);
            self.remove(bytes);
        }
    }
}

impl<T> Store<T> {
    /// Marks a tensor as one that another publication has as well; returns the number of its memory.
    pub fn publish(&mut self, held: &mut HeldTotals, id: TensorId) -> u64 {
        let number = held.publish(self.shared.published(id));
        self.shared.publish(id, number);
        number
    }
}
