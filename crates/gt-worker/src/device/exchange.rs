//! Exchanges: tensors assembled from pieces of other slots.
//!
//! A slot sends its own pieces at once and continues; its output is pending until all pieces have
//! arrived. All slots of a session start its exchanges in the same order, so no cycle of waits can
//! form. A waiting lane does not block other lanes.

use std::sync::Arc;

use gt_ir::exchange::{Receive, Sender};
use gt_ir::instruction::Operands;
use gt_ir::message::Failure;
use gt_ir::ops::slice;
use gt_ir::sharding::Block;
use gt_ir::{Content, DType, Exchange, Meta, Operand, Piece, Shape, SlotId, TransferId, WorkerId};
use smallvec::smallvec;

use super::Device;
use super::assembly::assemble;
use crate::engine::{Engine, EngineError};
use crate::lane::Lane;
use crate::lane::exchanges::{PendingExchange, PieceResult};
use crate::lost_workers::LostWorkers;
use crate::store::Stored;
use crate::work::Out;

impl<E: Engine> Device<E> {
    /// Sends a slot's pieces, and makes the output if all parts have arrived.
    pub fn begin_exchange(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        lost: &LostWorkers,
        exchange: &Exchange,
        out: &mut Vec<Out>,
    ) {
        lane.exchanges.begin(exchange.transfer);
        if !exchange.hops.is_empty() {
            return self.begin_chain(lane, lost, exchange, out);
        }
        let input = self.exchange_input(lane, exchange);
        let (transfer, from) = (exchange.transfer, lane.id.slot);
        for (slot, block) in &exchange.parts.sends {
            if self.events.is_on() {
                let meta = exchange.input.and_then(|input| lane.store.meta(input));
                self.emit_send(exchange, *slot, block, meta);
            }
            let result = match &input {
                Ok((tensor, meta)) => self.read_block(tensor, *meta, block),
                Err(failure) => Err((**failure).clone()),
            };
            let to = gt_ir::LaneId { slot: *slot, ..lane.id };
            // A piece for a lost worker is dropped.
            if let Some(worker) = lane.host(*slot).filter(|worker| lost.name(*worker).is_none()) {
                out.push(Out::Worker(worker, Piece { transfer, number: 0, from, to, result }));
            }
        }
        let Some((output, meta)) = exchange.output else { return };
        if let Some(failure) = self.exchange_without_room(lane, exchange) {
            lane.exchanges.early.remove(&transfer);
            return self.fail(lane, output, failure);
        }
        let mut parts = Vec::with_capacity(exchange.parts.receives.len());
        for Receive { from, .. } in &exchange.parts.receives {
            parts.push(match from {
                Sender::Own(block) => {
                    let part = match &input {
                        Ok((tensor, meta)) => self.own_block(tensor, *meta, block, exchange),
                        Err(failure) => Err(Arc::clone(failure)),
                    };
                    (Some(part), None)
                }
                Sender::Slot(slot) => {
                    (self.lost_part(lane, lost, *slot, exchange).map(Err), lane.host(*slot))
                }
            });
        }
        if parts.is_empty() && meta.shape.numel() > 0 {
            let reason = "it takes a slice that is not within its tensor".into();
            let failure = self.exchange_failure(exchange, reason);
            return self.fail(lane, output, failure);
        }
        lane.exchanges
            .open
            .insert(transfer, PendingExchange { exchange: Box::new(exchange.clone()), parts });
        lane.store.wait_for(&mut self.held, output, meta.bytes() as u64);
        for piece in lane.exchanges.early.remove(&transfer).unwrap_or_default() {
            self.place(lane, piece);
        }
        self.finish_if_complete(lane, transfer);
    }

    /// Receives a piece; returns whether it completes a tensor.
    pub fn take_piece(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        lost: &LostWorkers,
        piece: Piece,
        out: &mut Vec<Out>,
    ) -> bool {
        let transfer = piece.transfer;
        if lane.exchanges.is_over(transfer) {
            return false;
        }
        if lane.exchanges.chains.contains_key(&transfer) {
            return self.take_chain_piece(lane, lost, piece, out);
        }
        if !lane.exchanges.open.contains_key(&transfer) {
            lane.exchanges.early.entry(transfer).or_default().push(piece);
            return false;
        }
        self.place(lane, piece);
        self.finish_if_complete(lane, transfer)
    }

    /// Fails the parts that a lost worker has not sent.
    pub fn lose_peer(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        lost: &LostWorkers,
        worker: WorkerId,
        out: &mut Vec<Out>,
    ) {
        self.lose_chains(lane, lost, worker, out);
        let Some(name) = lost.name(worker) else { return };
        let mut touched: Vec<TransferId> = lane.exchanges.open.keys().copied().collect();
        touched.sort_unstable();
        for transfer in touched {
            let Some(open) = lane.exchanges.open.get_mut(&transfer) else { continue };
            let failure = self.lost_failure(name, &open.exchange);
            let missing = open.parts.iter_mut();
            let missing = missing.filter(|(part, from)| part.is_none() && *from == Some(worker));
            missing.for_each(|(part, _)| *part = Some(Err(Arc::clone(&failure))));
            self.finish_if_complete(lane, transfer);
        }
    }

    pub fn exchange_input(
        &self,
        lane: &Lane<E::Tensor>,
        exchange: &Exchange,
    ) -> PieceResult<(E::Tensor, Meta)> {
        let Some(input) = exchange.input else {
            return Err(self.exchange_failure(exchange, "it has no input".into()));
        };
        match lane.store.get(input) {
            Some(Stored::Ready { tensor, meta, .. }) => Ok((tensor.clone(), *meta)),
            Some(Stored::Failed(failure)) => Err(Arc::clone(failure)),
            Some(Stored::Away(away)) => {
                let name = exchange.collective.name().into();
                Err(self.no_room_for(lane, name, away.elsewhere(), exchange.line))
            }
            Some(Stored::Pending(_)) => unreachable!("it has waited for its input"),
            None => {
                let reason = format!("tensor {input} does not exist on this worker");
                Err(self.exchange_failure(exchange, reason))
            }
        }
    }

    /// Returns the failure of an exchange whose output does not fit in memory.
    pub fn exchange_without_room(
        &self,
        lane: &Lane<E::Tensor>,
        exchange: &Exchange,
    ) -> Option<Arc<Failure>> {
        let bytes = exchange.output?.1.bytes() as u64;
        let is_short = lane.memory.failure_if_short.is_some() && !lane.has_room(bytes, 1);
        let name = || exchange.collective.name().to_string();
        is_short.then(|| self.no_room_for(lane, name(), bytes, exchange.line))
    }

    /// The failure of a part from this slot, if its worker is lost.
    pub fn lost_part(
        &self,
        lane: &Lane<E::Tensor>,
        lost: &LostWorkers,
        slot: SlotId,
        exchange: &Exchange,
    ) -> Option<Arc<Failure>> {
        let name = lost.name(lane.host(slot)?)?;
        Some(self.lost_failure(name, exchange))
    }

    pub fn lost_failure(&self, name: &str, exchange: &Exchange) -> Arc<Failure> {
        let reason = format!("the worker '{name}', which held a part of the tensor, was lost");
        self.exchange_failure(exchange, reason)
    }

    pub fn exchange_failure(&self, exchange: &Exchange, reason: String) -> Arc<Failure> {
        Arc::new(Failure::new(
            exchange.collective.name().to_string(),
            reason,
            self.stats.name.clone(),
            exchange.line,
        ))
    }

    /// Reads a block's values for sending.
    fn read_block(
        &mut self,
        tensor: &E::Tensor,
        meta: Meta,
        block: &Block,
    ) -> Result<Content, Failure> {
        let part = self.take_block(tensor, meta, block);
        let data = part.and_then(|part| self.guarded(|engine| engine.read(&part)));
        data.map(Content::Data).map_err(|error| self.plain_failure("send", error.to_string()))
    }

    fn own_block(
        &mut self,
        tensor: &E::Tensor,
        meta: Meta,
        block: &Block,
        exchange: &Exchange,
    ) -> PieceResult<E::Tensor> {
        let part = self.take_block(tensor, meta, block);
        part.map_err(|error| self.exchange_failure(exchange, error.to_string()))
    }

    /// Slices a block out of a tensor.
    pub fn take_block(
        &mut self,
        tensor: &E::Tensor,
        meta: Meta,
        block: &Block,
    ) -> Result<E::Tensor, EngineError> {
        if block.shape == meta.shape {
            return Ok(tensor.clone());
        }
        let rank = meta.shape.rank();
        let is_within = block.shape.rank() == rank
            && (0..rank).all(|axis| block.starts[axis] + block.shape[axis] <= meta.shape[axis]);
        if !is_within {
            let reason = format!("a block of {} is not within {}", block.shape, meta.shape);
            return Err(EngineError::Other(reason));
        }
        let operands: Operands<E::Tensor> = smallvec![Operand::Tensor(tensor.clone())];
        let output = Meta::new(meta.dtype, block.shape);
        self.guarded(|engine| engine.run(&slice::SLICE, operands, &block.region(), output))
    }

    /// Puts a piece into its open exchange.
    fn place(&mut self, lane: &mut Lane<E::Tensor>, piece: Piece) {
        let Some(open) = lane.exchanges.open.get_mut(&piece.transfer) else { return };
        let is_from =
            |received: &Receive| matches!(received.from, Sender::Slot(slot) if slot == piece.from);
        let receives = open.exchange.parts.receives.iter().zip(&mut open.parts);
        let waiting = receives
            .filter(|(received, (part, _))| part.is_none() && is_from(received))
            .map(|(received, (part, _))| (received.at.shape, part))
            .next();
        // An unexpected piece is dropped: its part has failed already, as its worker was considered
        // lost.
        let Some((shape, part)) = waiting else { return };
        let dtype = open.exchange.output.map(|(_, meta)| meta.dtype);
        let made = self.received(&open.exchange, piece.result, (Some(shape), dtype));
        *part = Some(made.map(|(tensor, _)| tensor));
    }

    /// Returns the tensor of a piece, whose shape and dtype are checked as far as they are expected.
    pub fn received(
        &mut self,
        exchange: &Exchange,
        result: Result<Content, Failure>,
        (shape, dtype): (Option<Shape>, Option<DType>),
    ) -> PieceResult<(E::Tensor, Meta)> {
        let made = match result.map_err(Arc::new)? {
            Content::Data(data) => {
                let meta = Meta::new(data.dtype, data.shape);
                if shape.is_none_or(|shape| shape == meta.shape)
                    && dtype.is_none_or(|dtype| dtype == meta.dtype)
                {
                    let made = self.guarded(|engine| engine.create(data));
                    made.map(|tensor| (tensor, meta)).map_err(|error| error.to_string())
                } else {
                    let shape = shape.unwrap_or(meta.shape);
                    Err(format!("a piece is {} {}, expected {shape}", meta.dtype, meta.shape))
                }
            }
            Content::Shared { .. } | Content::Stored(_) | Content::Published(_) => {
                Err("the values were not read by the driver".into())
            }
        };
        made.map_err(|reason| self.exchange_failure(exchange, reason))
    }

    /// Makes the output if all parts have arrived; returns whether they have.
    fn finish_if_complete(&mut self, lane: &mut Lane<E::Tensor>, transfer: TransferId) -> bool {
        let is_complete =
            |open: &PendingExchange<E::Tensor>| open.parts.iter().all(|(part, _)| part.is_some());
        if !lane.exchanges.open.get(&transfer).is_some_and(is_complete) {
            return false;
        }
        let Some(PendingExchange { exchange, parts }) = lane.exchanges.open.remove(&transfer)
        else {
            return false;
        };
        let parts: Vec<_> = parts.into_iter().filter_map(|(part, _)| part).collect();
        // Of several failures the first in program order is reported.
        let failures = parts.iter().filter_map(|part| part.as_ref().err());
        let failed = failures.min_by_key(|failure| failure.order()).cloned();
        let parts = failed.map_or_else(|| parts.into_iter().collect(), Err);
        self.finish_exchange(lane, &exchange, parts);
        true
    }

    /// Makes an exchange's output from its parts.
    pub fn finish_exchange(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        exchange: &Exchange,
        parts: PieceResult<Vec<E::Tensor>>,
    ) {
        let Some((output, meta)) = exchange.output else { return };
        // The output may have been freed while it was pending.
        if !lane.store.is_pending(output) {
            return;
        }
        let made = parts.and_then(|parts| {
            self.guarded(|engine| assemble(engine, exchange, parts, meta))
                .map_err(|error| self.exchange_failure(exchange, error.to_string()))
        });
        match made {
            Ok(tensor) => {
                let value = (output, tensor, meta, exchange.line);
                self.keep(lane, value, exchange.input.into_iter());
            }
            Err(failure) => self.fail(lane, output, failure),
        }
    }
}
