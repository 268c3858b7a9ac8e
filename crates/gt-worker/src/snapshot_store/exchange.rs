//! Messages about snapshots: receiving copies, handing them over, and dropping them.

use gt_ir::message::WorkerToServer;
use gt_ir::snapshot::{Backup, Owner, Unkept};
use gt_ir::{SessionId, WorkerId};

use crate::engine::Engine;
use crate::work::Out;
use crate::worker::Worker;

impl<E: Engine> Worker<E> {
    /// Stores values of a lane's snapshot; after the last of them, lanes can restore it.
    pub(crate) fn receive_backup(&mut self, backup: Backup, out: &mut Vec<Out>) {
        let (Owner { session, slot }, snapshot) = (backup.owner, backup.snapshot);
        let room = self.device.room_for_snapshots(self.snapshots.amounts());
        let received = self.snapshots.receive(backup, room);
        self.device.note_snapshots(self.snapshots.amounts());
        let Some(result) = received else { return };
        out.push(Out::Server(WorkerToServer::BackupStored { session, slot, snapshot, result }));
        self.wake_unrestored();
    }

    /// Wakes lanes that wait for snapshots.
    fn wake_unrestored(&mut self) {
        let waiting = self.lanes.values().filter(|lane| !lane.is_restored).map(|lane| lane.id);
        for id in waiting.collect::<Vec<_>>() {
            self.wake(id);
        }
    }

    /// Drops a session's snapshots except one, and those from the number `next` on.
    pub(crate) fn retain(&mut self, session: SessionId, snapshot: Option<u64>, next: u64) {
        self.snapshots.retain(session, snapshot, next);
        self.device.note_snapshots(self.snapshots.amounts());
        self.wake_unrestored();
    }

    /// Sends a snapshot to a worker that restores it, or to the dispatcher.
    pub(crate) fn hand_over(
        &mut self,
        owner: Owner,
        snapshot: u64,
        to: Option<WorkerId>,
        out: &mut Vec<Out>,
    ) {
        match self.snapshots.hand_over(owner, snapshot) {
            Some(all) => out.extend(all.into_iter().map(|backup| Out::backup(to, backup))),
            None => {
                let Owner { session, slot } = owner;
                let reason = "the worker that had its values dropped them".into();
                let result = Err(Unkept::Dropped(reason));
                let backed = WorkerToServer::BackupStored { session, slot, snapshot, result };
                out.push(Out::Server(backed));
            }
        }
    }
}
