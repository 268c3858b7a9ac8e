//! The exchanges of a lane that wait for pieces.

use std::sync::Arc;
use std::time::Duration;

use gt_ir::exchange::Sender;
use gt_ir::message::Failure;
use gt_ir::{DType, Exchange, Meta, Piece, SlotId, TransferId, WorkerId};
use rustc_hash::FxHashMap;

pub(crate) type PieceResult<T> = Result<T, Arc<Failure>>;

/// The exchanges of a lane that wait for pieces.
pub(crate) struct Exchanges<T> {
    pub open: FxHashMap<TransferId, PendingExchange<T>>,
    /// Those that go from neighbour to neighbour.
    pub chains: FxHashMap<TransferId, PendingChain<T>>,
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

/// A slot's part of a chain.
pub(crate) struct PendingChain<T> {
    pub exchange: Arc<Exchange>,
    /// The slot's own values, with which others are combined.
    pub input: PieceResult<(T, Meta)>,
    /// Which hops are done.
    pub is_done: Vec<bool>,
    /// The parts of the output, for the hops that have one.
    pub parts: Vec<Option<PieceResult<T>>>,
}

impl<T> PendingChain<T> {
    /// Returns the hop of the next block from a slot.
    pub fn next_from(&self, slot: SlotId) -> Option<usize> {
        let hops = self.exchange.hops.iter().zip(&self.is_done);
        hops.enumerate()
            .find(|(_, (hop, done))| {
                !**done && matches!(hop.from, Sender::Slot(from) if from == slot)
            })
            .map(|(index, _)| index)
    }

    /// Returns the dtype of the blocks, if this slot has an output or an input.
    pub fn dtype(&self) -> Option<DType> {
        let output = self.exchange.output.map(|(_, meta)| meta.dtype);
        output.or_else(|| self.input.as_ref().ok().map(|(_, meta)| meta.dtype))
    }
}

impl<T> Default for Exchanges<T> {
    fn default() -> Self {
        Exchanges {
            open: FxHashMap::default(),
            chains: FxHashMap::default(),
            early: FxHashMap::default(),
            begun: None,
            reserved: Duration::ZERO,
        }
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
        !self.open.is_empty() || !self.chains.is_empty()
    }

    /// Returns whether an exchange has completed: a piece for it is too late.
    pub fn is_over(&self, transfer: TransferId) -> bool {
        !self.open.contains_key(&transfer)
            && !self.chains.contains_key(&transfer)
            && self.begun.is_some_and(|last| transfer <= last)
    }
}
