//! What is left of a catalogue when its client is gone.

use gt_ir::TensorId;
use rustc_hash::FxHashSet;

use super::Catalogue;
use crate::planner::streams::Streams;

impl Catalogue {
    /// Frees all tensors but the kept ones, and forgets what the client has set.
    pub fn abandon(&mut self, kept: &FxHashSet<TensorId>, streams: &mut Streams) {
        for id in self.tensors.numbers().into_iter().map(TensorId) {
            if !kept.contains(&id) {
                self.free(id, streams);
            }
        }
        self.signals.clear();
        self.signals_version += 1;
        (self.strict, self.recorder) = (None, None);
    }
}
