//! The exchanges of a lane that wait for pieces.

use std::sync::Arc;
use std::time::Duration;

use gt_ir::exchange::{Hop, Sender};
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
    /// The slot's own values, with which others are combined, until no hop needs them.
    pub input: Option<PieceResult<(T, Meta)>>,
    /// Which hops are done.
    pub is_done: Vec<bool>,
    /// The parts of the output, for the hops that have one.
    pub parts: Vec<Option<PieceResult<T>>>,
    /// The slots before and after this one.
    neighbours: Vec<ChainNeighbour>,
    dtype: Option<DType>,
}

/// A slot next to another in a chain.
struct ChainNeighbour {
    slot: SlotId,
    /// The worker that has had it since the chain began.
    worker: Option<WorkerId>,
    /// How many blocks were sent to it.
    sent: u32,
}

impl<T> PendingChain<T> {
    pub fn new(
        exchange: &Exchange,
        input: PieceResult<(T, Meta)>,
        host: impl Fn(SlotId) -> Option<WorkerId>,
    ) -> PendingChain<T> {
        let (mut slots, from) = exchange.neighbours();
        slots.extend(from);
        slots.sort_unstable();
        slots.dedup();
        let neighbour = |slot| ChainNeighbour { slot, worker: host(slot), sent: 0 };
        let output = exchange.output.map(|(_, meta)| meta.dtype);
        PendingChain {
            exchange: Arc::new(exchange.clone()),
            dtype: output.or_else(|| input.as_ref().ok().map(|(_, meta)| meta.dtype)),
            input: Some(input),
            is_done: vec![false; exchange.hops.len()],
            parts: exchange.hops.iter().map(|_| None).collect(),
            neighbours: slots.into_iter().map(neighbour).collect(),
        }
    }

    /// Returns the hop of the next block from a slot.
    pub fn next_from(&self, slot: SlotId) -> Option<usize> {
        self.hops_from(slot).find(|index| !self.is_done[*index])
    }

    /// Returns how many blocks from a slot have gone through.
    pub fn received_from(&self, slot: SlotId) -> u32 {
        self.hops_from(slot).filter(|index| self.is_done[*index]).count() as u32
    }

    fn hops_from(&self, slot: SlotId) -> impl Iterator<Item = usize> {
        let hops = self.exchange.hops.iter().enumerate();
        hops.filter(move |(_, hop)| matches!(hop.from, Sender::Slot(from) if from == slot))
            .map(|(index, _)| index)
    }

    /// Returns the worker of a slot to which a block is sent now, and the block's number among those.
    pub fn next_to(&mut self, slot: SlotId) -> (Option<WorkerId>, u32) {
        match self.neighbours.iter_mut().find(|neighbour| neighbour.slot == slot) {
            None => (None, 0),
            Some(neighbour) => {
                neighbour.sent += 1;
                (neighbour.worker, neighbour.sent - 1)
            }
        }
    }

    /// Returns the neighbours that a worker has.
    pub fn slots_on(&self, worker: WorkerId) -> Vec<SlotId> {
        let there = self.neighbours.iter().filter(|neighbour| neighbour.worker == Some(worker));
        there.map(|neighbour| neighbour.slot).collect()
    }

    /// Drops the input if no hop needs it any more.
    pub fn release_input(&mut self) {
        let mut hops = self.exchange.hops.iter().zip(&self.is_done);
        let needs = |(hop, done): (&Hop, &bool)| {
            !done && (hop.with.is_some() || matches!(hop.from, Sender::Own(_)))
        };
        if self.input.is_some() && !hops.any(needs) {
            self.input = None;
        }
    }

    /// Returns the dtype of the blocks, if this slot has an output or an input.
    pub fn dtype(&self) -> Option<DType> {
        self.dtype
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
        // What arrived for one before is too late.
        if !self.early.is_empty() {
            self.early.retain(|early, _| *early >= transfer);
        }
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
