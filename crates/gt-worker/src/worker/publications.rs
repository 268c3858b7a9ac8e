//! Publications: what lanes read of them, and their end.

use gt_ir::SessionId;

use super::Worker;
use crate::engine::Engine;
use crate::library::WaitingReader;
use crate::work::Out;

impl<E: Engine> Worker<E> {
    /// Gives the readers of a publication the values that have arrived.
    pub(super) fn values_arrived(&mut self, publication: SessionId, out: &mut Vec<Out>) {
        for reader in self.device.library.take_waiting(publication) {
            let WaitingReader { lane: id, tensor, values, line } = reader;
            let Some(lane) = self.lanes.get_mut(&id) else { continue };
            // It may have been freed meanwhile.
            if lane.store.is_pending(tensor) {
                let of = (values, line);
                self.device.read_published(lane, tensor, of, &self.snapshots, out);
                self.wake(id);
            }
        }
    }

    /// Ends a publication: what lanes read of it fails.
    pub(super) fn end_publication(&mut self, publication: SessionId) {
        for reader in self.device.library.take_waiting(publication) {
            if let Some(lane) = self.lanes.get_mut(&reader.lane)
                && lane.store.is_pending(reader.tensor)
            {
                self.device.fail_read(lane, reader.tensor, reader.line);
            }
        }
        self.device.end_publication(publication);
        for lane in self.lanes.values_mut() {
            self.device.fail_borrowed(lane, publication);
        }
        let ids: Vec<_> = self.lanes.keys().copied().collect();
        ids.into_iter().for_each(|id| self.wake(id));
    }

    /// Handles a restarted dispatcher, which does not know the previous lanes. It keeps publications as
    /// it keeps snapshots.
    pub(super) fn renew_publications(&mut self, keeps_snapshots: bool) {
        self.device.library.forget_waiting();
        if !keeps_snapshots {
            self.retain_publications(&[]);
        }
    }

    /// Ends the publications that are none of these sessions.
    pub(super) fn retain_publications(&mut self, sessions: &[SessionId]) {
        let mut ended = self.device.library.publications();
        ended.retain(|publication| !sessions.contains(publication));
        ended.into_iter().for_each(|publication| self.end_publication(publication));
    }
}
