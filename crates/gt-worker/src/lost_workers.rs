//! Lost workers.

use gt_ir::WorkerId;

/// The lost workers, with their names.
#[derive(Default)]
pub(crate) struct LostWorkers(Vec<(WorkerId, String)>);

impl LostWorkers {
    pub fn add(&mut self, worker: WorkerId, name: &str) {
        self.0.push((worker, name.to_string()));
    }

    /// Removes a worker that has returned.
    pub fn remove(&mut self, worker: WorkerId) {
        self.0.retain(|(lost, _)| *lost != worker);
    }

    /// The name of a lost worker; `None` if it is not lost.
    pub fn name(&self, worker: WorkerId) -> Option<&str> {
        self.0.iter().find(|(lost, _)| *lost == worker).map(|(_, name)| name.as_str())
    }
}
