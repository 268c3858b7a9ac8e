//! Messages between two workers.

use super::kinds;
use crate::exchange::Piece;
use crate::ids::WorkerId;
use crate::record;
use crate::snapshot::Backup;

/// From a worker to another.
#[derive(Clone, PartialEq, Debug)]
pub enum WorkerToWorker {
    /// A block for a lane.
    Piece { sender: WorkerId, piece: Piece },
    /// Values of a snapshot, of which the receiver keeps a copy or which it restores.
    Backup(Box<Backup>),
    /// The sender has mapped a shared block of the receiver's; the receiver may release it.
    Release { token: u128 },
}

record!(enum WorkerToWorker {
    1 => Piece { sender, piece },
    2 => Backup(backup),
    3 => Release { token },
});

kinds!(WorkerToWorker);
