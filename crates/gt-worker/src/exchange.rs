//! Tensors made of pieces from other workers.
//!
//! A worker sends its own pieces at once and goes on; the tensor it makes is pending until all
//! pieces are there. All workers begin the exchanges they share in the same order, so none waits
//! for another in a circle.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use gt_ir::exchange::{Origin, Source};
use gt_ir::instruction::{Attribute, Operands};
use gt_ir::message::Failure;
use gt_ir::ops::{binary, create, shape};
use gt_ir::sharding::{Block, Reduction};
use gt_ir::{
    Content, DType, Exchange, Meta, Operand, Operation, Piece, Scalar, TransferId, WorkerId,
};
use rustc_hash::FxHashMap;
use smallvec::smallvec;

use crate::engine::{Engine, EngineError};
use crate::executor::{Out, Slot, Worker, panic_text};
use crate::joint::Joints;

pub(crate) type Part<T> = Result<T, Arc<Failure>>;

/// The exchanges of a worker that wait for pieces.
pub(crate) struct Exchanges<T> {
    /// Those that the engine carries out.
    pub joints: Joints<T>,
    open: FxHashMap<TransferId, Open<T>>,
    /// Pieces whose exchange has not begun here.
    early: FxHashMap<TransferId, Vec<Piece>>,
    /// Workers that are gone, with their names.
    lost: Vec<(WorkerId, String)>,
    /// The last exchange that each session has begun here: they begin in their order.
    begun: FxHashMap<u32, TransferId>,
    /// The generations of sessions' numbers that have ended: nobody needs their pieces.
    ended: FxHashMap<u32, u64>,
}

struct Open<T> {
    exchange: Box<Exchange>,
    /// In the order of the exchange's sources.
    parts: Vec<Option<Part<T>>>,
}

impl<T> Default for Exchanges<T> {
    fn default() -> Self {
        Exchanges {
            joints: Joints::default(),
            open: FxHashMap::default(),
            early: FxHashMap::default(),
            lost: Vec::new(),
            begun: FxHashMap::default(),
            ended: FxHashMap::default(),
        }
    }
}

impl<T> Exchanges<T> {
    /// Whether no tensor is pending.
    pub fn is_idle(&self) -> bool {
        self.open.is_empty() && self.joints.is_empty()
    }

    /// Forgets what a session's exchanges wait for. Their pieces, which may still come, are
    /// dropped.
    pub fn end_session(&mut self, session: u32) {
        self.joints.end_session(session);
        self.open.retain(|transfer, _| transfer.session() != session);
        self.early.retain(|transfer, _| transfer.session() != session);
        let generation = self.begun.remove(&session).map_or(0, TransferId::generation);
        let ended = self.ended.entry(session).or_default();
        *ended = (*ended).max(generation);
    }

    /// What has come for an exchange that begins only now.
    pub fn take_early(&mut self, transfer: TransferId) -> Vec<Piece> {
        self.early.remove(&transfer).unwrap_or_default()
    }

    /// Whether a piece comes too late: its exchange, or its session, is over.
    fn is_over(&self, transfer: TransferId) -> bool {
        let session = transfer.session();
        self.ended.get(&session).is_some_and(|ended| transfer.generation() <= *ended)
            || (!self.open.contains_key(&transfer)
                && self.begun.get(&session).is_some_and(|last| transfer <= *last))
    }
}

impl<E: Engine> Worker<E> {
    /// Sends this worker's pieces, and makes the output if it has all it needs for it.
    pub(crate) fn begin_exchange(&mut self, exchange: &Exchange, out: &mut Vec<Out>) {
        self.exchanges.begun.insert(exchange.transfer.session(), exchange.transfer);
        if let Some(joint) = &exchange.joint {
            return self.begin_joint(exchange, joint, out);
        }
        let input = self.exchange_input(exchange);
        for (to, block) in &exchange.sends {
            if self.notes.is_on {
                self.note_send(exchange, *to, block);
            }
            let result = match &input {
                Ok((tensor, meta)) => self.read_block(tensor, *meta, block),
                Err(failure) => Err((**failure).clone()),
            };
            let (transfer, from) = (exchange.transfer, exchange.worker);
            out.push(Out::Worker(*to, Piece { transfer, from, result }));
        }
        let Some((output, _)) = exchange.output else { return };
        let mut parts = Vec::with_capacity(exchange.sources.len());
        for source in &exchange.sources {
            parts.push(match &source.from {
                Origin::Own(block) => Some(match &input {
                    Ok((tensor, meta)) => self.own_block(tensor, *meta, block, exchange),
                    Err(failure) => Err(Arc::clone(failure)),
                }),
                Origin::Worker(worker) => self.lost_part(*worker, exchange).map(Err),
            });
        }
        let transfer = exchange.transfer;
        self.exchanges.open.insert(transfer, Open { exchange: Box::new(exchange.clone()), parts });
        self.tensors.insert(output, Slot::Pending);
        for piece in self.exchanges.take_early(transfer) {
            self.place(piece);
        }
        self.finish_if_complete(transfer);
    }

    /// Takes a piece; says whether a tensor is complete with it.
    pub(crate) fn take_piece(&mut self, piece: Piece, out: &mut Vec<Out>) -> bool {
        let transfer = piece.transfer;
        if self.exchanges.joints.has(transfer) {
            self.exchanges.joints.hear(piece);
            return self.take_turns(out);
        }
        if self.exchanges.is_over(transfer) {
            return false;
        }
        if !self.exchanges.open.contains_key(&transfer) {
            self.exchanges.early.entry(transfer).or_default().push(piece);
            return false;
        }
        self.place(piece);
        self.finish_if_complete(transfer)
    }

    /// What waits for pieces of a lost worker has failed.
    pub(crate) fn lose_peer(&mut self, worker: WorkerId, name: &str, out: &mut Vec<Out>) {
        self.exchanges.lost.push((worker, name.to_string()));
        self.lose_member(worker, out);
        let mut touched: Vec<TransferId> = self.exchanges.open.keys().copied().collect();
        touched.sort_unstable();
        for transfer in touched {
            let open = &self.exchanges.open[&transfer];
            let waits = |(source, part): (&Source, &Option<Part<E::Tensor>>)| {
                part.is_none() && matches!(source.from, Origin::Worker(from) if from == worker)
            };
            if open.exchange.sources.iter().zip(&open.parts).any(waits) {
                let failure = self.lost_part(worker, &self.exchanges.open[&transfer].exchange);
                let open = self.exchanges.open.get_mut(&transfer).expect("it was there");
                for (source, part) in open.exchange.sources.iter().zip(&mut open.parts) {
                    if part.is_none()
                        && matches!(source.from, Origin::Worker(from) if from == worker)
                    {
                        *part = failure.clone().map(Err);
                    }
                }
                self.finish_if_complete(transfer);
            }
        }
    }

    /// A session is about to end: what it waits for need not come.
    pub(crate) fn abandon(&mut self, session: u32) {
        self.exchanges.joints.end_session(session);
        let open = self.exchanges.open.keys().copied();
        let mut own: Vec<TransferId> = open.filter(|id| id.session() == session).collect();
        own.sort_unstable();
        for transfer in own {
            let exchange = &self.exchanges.open[&transfer].exchange;
            let failure = self.exchange_failure(exchange, "the session has ended".into());
            let open = self.exchanges.open.get_mut(&transfer).expect("it was there");
            for part in open.parts.iter_mut().filter(|part| part.is_none()) {
                *part = Some(Err(Arc::clone(&failure)));
            }
            self.finish_if_complete(transfer);
        }
    }

    pub(crate) fn exchange_input(&self, exchange: &Exchange) -> Part<(E::Tensor, Meta)> {
        let Some(input) = exchange.input else {
            return Err(self.exchange_failure(exchange, "it has no input".into()));
        };
        match self.tensors.get(&input) {
            Some(Slot::Ready { tensor, meta }) => Ok((tensor.clone(), *meta)),
            Some(Slot::Failed(failure)) => Err(Arc::clone(failure)),
            Some(Slot::Pending) => unreachable!("it has waited for its input"),
            None => {
                let reason = format!("tensor {input} does not exist on this worker");
                Err(self.exchange_failure(exchange, reason))
            }
        }
    }

    /// The failure of a part that a lost worker does not send any more.
    pub(crate) fn lost_part(&self, worker: WorkerId, exchange: &Exchange) -> Option<Arc<Failure>> {
        let (_, name) = self.exchanges.lost.iter().find(|(lost, _)| *lost == worker)?;
        let reason = format!("the worker '{name}', which held a part of the tensor, was lost");
        Some(self.exchange_failure(exchange, reason))
    }

    pub(crate) fn exchange_failure(&self, exchange: &Exchange, reason: String) -> Arc<Failure> {
        Arc::new(Failure {
            operation: exchange.collective.name().to_string(),
            reason,
            worker: self.stats.name.clone(),
            line: exchange.line,
        })
    }

    /// A block's values, for another worker.
    fn read_block(
        &mut self,
        tensor: &E::Tensor,
        meta: Meta,
        block: &Block,
    ) -> Result<Content, Failure> {
        let part = self.take_block(tensor, meta, block);
        let data = part.and_then(|part| self.guarded(|engine| engine.read(&part)));
        data.map(Content::Data).map_err(|error| Failure {
            operation: "send".into(),
            reason: error.to_string(),
            worker: self.stats.name.clone(),
            line: gt_ir::SourceId::default(),
        })
    }

    fn own_block(
        &mut self,
        tensor: &E::Tensor,
        meta: Meta,
        block: &Block,
        exchange: &Exchange,
    ) -> Part<E::Tensor> {
        let part = self.take_block(tensor, meta, block);
        part.map_err(|error| self.exchange_failure(exchange, error.to_string()))
    }

    pub(crate) fn take_block(
        &mut self,
        tensor: &E::Tensor,
        meta: Meta,
        block: &Block,
    ) -> Result<E::Tensor, EngineError> {
        if block.shape == meta.shape {
            return Ok(tensor.clone());
        }
        let operands: Operands<E::Tensor> = smallvec![Operand::Tensor(tensor.clone())];
        let output = Meta::new(meta.dtype, block.shape);
        self.guarded(|engine| engine.run(&shape::SLICE, operands, &block.region(), output))
    }

    /// Calls the engine; a panic in it becomes an error.
    pub(crate) fn guarded<T>(
        &mut self,
        call: impl FnOnce(&mut E) -> Result<T, EngineError>,
    ) -> Result<T, EngineError> {
        let engine = &mut self.engine;
        catch_unwind(AssertUnwindSafe(|| call(engine)))
            .unwrap_or_else(|panic| Err(EngineError::Other(panic_text(&*panic))))
    }

    /// Puts a piece into its open exchange.
    fn place(&mut self, piece: Piece) {
        let part = match piece.result {
            Ok(Content::Data(data)) => {
                self.guarded(|engine| engine.create(data)).map_err(|error| error.to_string())
            }
            Ok(Content::Shared { .. }) => Err("shared memory was not mapped by the driver".into()),
            Err(failure) => return self.put(piece.transfer, piece.from, Err(Arc::new(failure))),
        };
        let part = part.map_err(|reason| {
            self.exchange_failure(&self.exchanges.open[&piece.transfer].exchange, reason)
        });
        self.put(piece.transfer, piece.from, part);
    }

    fn put(&mut self, transfer: TransferId, from: WorkerId, part: Part<E::Tensor>) {
        let open = self.exchanges.open.get_mut(&transfer).expect("looked up by the caller");
        let slot = open.exchange.sources.iter().zip(&mut open.parts).find(|(source, part)| {
            part.is_none() && matches!(source.from, Origin::Worker(worker) if worker == from)
        });
        // A piece that nobody waits for is dropped: its worker was given up, and spoke after all.
        if let Some((_, slot)) = slot {
            *slot = Some(part);
        }
    }

    /// Makes the output if all parts are there; says whether it did.
    fn finish_if_complete(&mut self, transfer: TransferId) -> bool {
        if !self.exchanges.open[&transfer].parts.iter().all(Option::is_some) {
            return false;
        }
        let Open { exchange, parts } =
            self.exchanges.open.remove(&transfer).expect("it was there a line ago");
        let parts = parts.into_iter().flatten().collect();
        self.finish_exchange(&exchange, parts);
        true
    }

    /// Makes an exchange's output from its parts.
    pub(crate) fn finish_exchange(&mut self, exchange: &Exchange, parts: Part<Vec<E::Tensor>>) {
        let Some((output, meta)) = exchange.output else { return };
        // Freed while it was pending?
        if !matches!(self.tensors.get(&output), Some(Slot::Pending)) {
            return;
        }
        let made = parts.and_then(|parts| {
            self.guarded(|engine| assemble(engine, exchange, parts, meta))
                .map_err(|error| self.exchange_failure(exchange, error.to_string()))
        });
        match made {
            Ok(tensor) => self.keep(output, tensor, meta),
            Err(failure) => self.fail(output, failure),
        }
    }
}

/// The output of an exchange from its parts.
fn assemble<E: Engine>(
    engine: &mut E,
    exchange: &Exchange,
    parts: Vec<E::Tensor>,
    meta: Meta,
) -> Result<E::Tensor, EngineError> {
    let mut parts = parts.into_iter();
    if let Some(reduction) = exchange.reduction.filter(|_| !exchange.sources.is_empty()) {
        let operation = combining(reduction, meta.dtype);
        let mut total = parts.next().ok_or_else(nothing)?;
        for part in parts {
            let operands: Operands<E::Tensor> =
                smallvec![Operand::Tensor(total), Operand::Tensor(part)];
            total = engine.run(operation, operands, &smallvec![], meta)?;
        }
        return Ok(total);
    }
    let sources = &exchange.sources;
    if let [only] = sources.as_slice()
        && only.at.shape == meta.shape
    {
        return parts.next().ok_or_else(nothing);
    }
    let blocks: Vec<Block> = sources.iter().map(|source| source.at).collect();
    if let Some(axis) = Block::stacked_axis(&blocks, meta.shape) {
        let operands: Operands<E::Tensor> = parts.map(Operand::Tensor).collect();
        return engine.run(&shape::CAT, operands, &smallvec![Attribute::Int(axis as i64)], meta);
    }
    let attributes = smallvec![Attribute::dims(&meta.shape), Attribute::DType(meta.dtype)];
    let zero: Operands<E::Tensor> = smallvec![Operand::Scalar(Scalar::Int(0))];
    let mut whole = engine.run(&create::FULL, zero, &attributes, meta)?;
    for (source, part) in sources.iter().zip(parts) {
        let operands: Operands<E::Tensor> =
            smallvec![Operand::Tensor(whole), Operand::Tensor(part)];
        whole = engine.run(&shape::SLICE_ASSIGN, operands, &source.at.region(), meta)?;
    }
    Ok(whole)
}

fn nothing() -> EngineError {
    EngineError::Other("an exchange without sources".into())
}

/// The operation that combines two parts. Bools are combined by logic: `or` is the largest.
fn combining(reduction: Reduction, dtype: DType) -> &'static Operation {
    match (reduction, dtype) {
        (Reduction::Max, DType::Bool) => &binary::BITWISE_OR,
        (Reduction::Min, DType::Bool) => &binary::BITWISE_AND,
        (Reduction::Sum, _) => &binary::ADD,
        (Reduction::Prod, _) => &binary::MUL,
        (Reduction::Max, _) => &binary::MAXIMUM,
        (Reduction::Min, _) => &binary::MINIMUM,
    }
}
