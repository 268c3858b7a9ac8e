//! The exchanges of a lane that wait for pieces.

use std::sync::Arc;
use std::time::Duration;

use gt_ir::message::Failure;
use gt_ir::{Exchange, Piece, TransferId, WorkerId};
use rustc_hash::FxHashMap;

pub(crate) type PieceResult<T> = Result<T, Arc<Failure>>;

/// The exchanges of a lane that wait for pieces.
pub(crate) struct Exchanges<T> {
    pub open: FxHashMap<TransferId, PendingExchange<T>>,
    /// Pieces that arrived before their exchange started here.
    pub early: FxHashMap<TransferId, Vec<Piece>>,
    /// The last exchange that has started; they start in the order of their transfers.
    pub begun: Option<TransferId>,
    /// How long the device was reserved for the awaited pieces.
    pub reserved: Duration,
}

pub(crate) struct PendingExchange<T> {
    pub exchange: Box<Exchange>,
    /// In the order of the exchange's receives, each with the worker that sends it.
    pub parts: Vec<(Option<PieceResult<T>>, Option<WorkerId>)>,
}

impl<T> Default for Exchanges<T> {
    fn default() -> Self {
        let (open, early) = (FxHashMap::default(), FxHashMap::default());
        Exchanges { open, early, begun: None, reserved: Duration::ZERO }
    }
}

impl<T> Exchanges<T> {
    /// Registers the start of an exchange.
    pub fn begin(&mut self, transfer: TransferId) {
        self.begun = self.begun.max(Some(transfer));
    }

    /// Returns whether an exchange has not started here, although another slot has sent its piece.
    pub fn is_ahead_of(&self, transfer: TransferId) -> bool {
        self.begun.is_none_or(|last| transfer > last)
    }

    /// Whether exchanges wait for pieces.
    pub fn are_open(&self) -> bool {
        !self.open.is_empty()
    }

    /// Returns whether an exchange has completed: a piece for it is too late.
    pub fn is_over(&self, transfer: TransferId) -> bool {
        !self.open.contains_key(&transfer) && self.begun.is_some_and(|last| transfer <= last)
    }
}
