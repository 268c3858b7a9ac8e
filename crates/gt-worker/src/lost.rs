//! The workers that are lost.

use gt_ir::WorkerId;

/// The lost workers, with their names.
#[derive(Default)]
pub(crate) struct Lost(Vec<(WorkerId, String)>);

impl Lost {
    pub fn add(&mut self, worker: WorkerId, name: &str) {
        self.0.push((worker, name.to_string()));
    }

    /// A worker has come back.
    pub fn remove(&mut self, worker: WorkerId) {
        self.0.retain(|(lost, _)| *lost != worker);
    }

    /// The name of a lost worker; `None` if it is not lost.
    pub fn name(&self, worker: WorkerId) -> Option<&str> {
        self.0.iter().find(|(lost, _)| *lost == worker).map(|(_, name)| name.as_str())
    }
}
