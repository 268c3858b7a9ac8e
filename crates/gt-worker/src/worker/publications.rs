//! Publications: what lanes read of them, and their end.

use gt_ir::SessionId;
use gt_ir::snapshot::{Owner, Unkept};

use super::Worker;
use crate::device::ENDED;
use crate::engine::Engine;
use crate::library::WaitingReader;
use crate::work::Out;

/// What to do if values could not be stored.
const AGAIN: &str = "hint: gt.shared requests them again, and workers with more --memory hold more";

impl<E: Engine> Worker<E> {
    /// Gives readers the values of a publication's slot, which have arrived. Those that lack values
    /// of other slots, which are requested already, wait for these.
    pub(super) fn values_arrived(&mut self, owner: Owner, out: &mut Vec<Out>) {
        for reader in self.device.library.take_waiting(owner) {
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

    /// Fails the readers of the values of a publication's slot, which could not be stored here. A
    /// later reader requests them again.
    pub(super) fn values_refused(&mut self, owner: Owner, reason: &Unkept) {
        // Those that arrived before the refusal would never be completed.
        self.snapshots.drop_loose(owner);
        self.device.note_snapshots(self.snapshots.amounts());
        let readers = self.device.library.take_waiting(owner);
        self.fail_readers(readers, &format!("its values could not be stored: {reason}\n  {AGAIN}"));
    }

    /// Fails tensors that wait for published values.
    fn fail_readers(&mut self, readers: Vec<WaitingReader>, reason: &str) {
        for WaitingReader { lane: id, tensor, line, .. } in readers {
            if let Some(lane) = self.lanes.get_mut(&id)
                && lane.store.is_pending(tensor)
            {
                self.device.fail_read(lane, (tensor, line), reason);
                self.wake(id);
            }
        }
    }

    /// Ends a publication: what lanes read of it fails.
    pub(super) fn end_publication(&mut self, publication: SessionId) {
        let readers = self.device.library.end_waiting(publication);
        self.fail_readers(readers, ENDED);
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
