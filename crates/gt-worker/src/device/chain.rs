//! Chains: exchanges in which blocks go from neighbour to neighbour ([`gt_ir::chain`]).
//!
//! What arrives is combined with the slot's own block and passed on at once, also while the lane
//! computes something else: the slots behind it wait for it.

use std::sync::Arc;

use gt_ir::exchange::{OwnBlock, Sender};
use gt_ir::instruction::{Attribute, Operands};
use gt_ir::message::Failure;
use gt_ir::ops::shape;
use gt_ir::sharding::Block;
use gt_ir::{Content, Exchange, LaneId, Meta, Operand, Piece, SlotId, TransferId, WorkerId};
use smallvec::smallvec;

use super::Device;
use super::assembly::{assemble_blocks, combining};
use crate::engine::Engine;
use crate::lane::Lane;
use crate::lane::exchanges::{PendingChain, PieceResult};
use crate::lost_workers::LostWorkers;
use crate::work::Out;

// Not inlined into the paths of direct exchanges, which would be slower with it.
impl<E: Engine> Device<E> {
    /// Begins a slot's part of a chain, and makes the output if all blocks have arrived.
    #[inline(never)]
    pub fn begin_chain(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        lost: &LostWorkers,
        exchange: &Exchange,
        out: &mut Vec<Out>,
    ) {
        let transfer = exchange.transfer;
        let input = self.exchange_input(lane, exchange);
        if let Some((output, meta)) = exchange.output {
            match self.exchange_without_room(lane, exchange) {
                // The other slots need what passes through this one all the same.
                Some(failure) => self.fail(lane, output, failure),
                None => lane.store.wait_for(&mut self.held, output, meta.bytes() as u64),
            }
        }
        let chain = PendingChain::new(exchange, input, |slot| lane.host(slot));
        lane.exchanges.chains.insert(transfer, chain);
        for (index, hop) in exchange.hops.iter().enumerate() {
            if let Sender::Own(block) = &hop.from {
                let value = self.chain_block(lane, transfer, block);
                self.pass_on(lane, lost, transfer, index, value, out);
            }
        }
        for slot in exchange.neighbours().1 {
            if let Some(failure) = self.lost_part(lane, lost, slot, exchange) {
                self.break_chain(lane, lost, transfer, slot, &failure, out);
            }
        }
        for piece in lane.exchanges.early.remove(&transfer).unwrap_or_default() {
            self.take_chain_piece(lane, lost, piece, out);
        }
        self.finish_chain(lane, transfer);
    }

    /// Receives a block of a chain that has begun here; returns whether it completes a tensor.
    #[inline(never)]
    pub fn take_chain_piece(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        lost: &LostWorkers,
        piece: Piece,
        out: &mut Vec<Out>,
    ) -> bool {
        let transfer = piece.transfer;
        // An unexpected piece is dropped: its slot's blocks have failed already.
        let Some(chain) = lane.exchanges.chains.get(&transfer) else { return false };
        let Some(index) = chain.next_from(piece.from) else { return false };
        // One before it was lost on its way, which is reported, or will be.
        let is_expected = piece.result.is_err() || piece.number == chain.received_from(piece.from);
        let expected = (chain.exchange.hops[index].shape(), chain.dtype());
        let exchange = Arc::clone(&chain.exchange);
        let made = if is_expected {
            self.received(&exchange, piece.result, expected)
        } else {
            let reason = "a block of the chain was lost between two workers".into();
            Err(self.exchange_failure(&exchange, reason))
        };
        match made {
            Ok(value) => self.pass_on(lane, lost, transfer, index, Ok(value), out),
            // Nothing else of this slot counts: a block must not be taken for another one.
            Err(failure) => self.break_chain(lane, lost, transfer, piece.from, &failure, out),
        }
        self.finish_chain(lane, transfer)
    }

    /// Fails the blocks that a lost worker has not sent.
    pub fn lose_chains(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        lost: &LostWorkers,
        worker: WorkerId,
        out: &mut Vec<Out>,
    ) {
        let mut touched: Vec<TransferId> = lane.exchanges.chains.keys().copied().collect();
        touched.sort_unstable();
        for transfer in touched {
            let Some(chain) = lane.exchanges.chains.get(&transfer) else { continue };
            let exchange = Arc::clone(&chain.exchange);
            let Some(name) = lost.name(worker) else { return };
            let failure = self.lost_failure(name, &exchange);
            for slot in chain.slots_on(worker) {
                self.break_chain(lane, lost, transfer, slot, &failure, out);
            }
            self.finish_chain(lane, transfer);
        }
    }

    /// Fails all blocks that a slot has not sent yet.
    fn break_chain(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        lost: &LostWorkers,
        transfer: TransferId,
        from: SlotId,
        failure: &Arc<Failure>,
        out: &mut Vec<Out>,
    ) {
        while let Some(chain) = lane.exchanges.chains.get(&transfer)
            && let Some(index) = chain.next_from(from)
        {
            self.pass_on(lane, lost, transfer, index, Err(Arc::clone(failure)), out);
        }
    }

    /// Combines a block with the slot's own, sends it on, and notes it for the output.
    fn pass_on(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        lost: &LostWorkers,
        transfer: TransferId,
        index: usize,
        value: PieceResult<(E::Tensor, Meta)>,
        out: &mut Vec<Out>,
    ) {
        let Some(chain) = lane.exchanges.chains.get_mut(&transfer) else { return };
        chain.is_done[index] = true;
        let exchange = Arc::clone(&chain.exchange);
        let hop = &exchange.hops[index];
        let value = match &hop.with {
            None => value,
            Some(with) => {
                let own = self.chain_block(lane, transfer, &with.block);
                self.add(&exchange, with, value, own)
            }
        };
        if !hop.to.is_empty() {
            let result = match &value {
                Ok((tensor, _)) => self
                    .guarded(|engine| engine.read(tensor))
                    .map(Content::Data)
                    .map_err(|error| self.plain_failure("send", error.to_string())),
                Err(failure) => Err((**failure).clone()),
            };
            for &slot in &hop.to {
                if self.events.is_on()
                    && let Ok(Content::Data(data)) = &result
                {
                    let meta = Meta::new(data.dtype, data.shape);
                    self.emit_send(&exchange, slot, &Block::whole(data.shape), Some(meta));
                }
                let Some(chain) = lane.exchanges.chains.get_mut(&transfer) else { return };
                let (worker, number) = chain.next_to(slot);
                // A piece for a lost worker is dropped.
                if let Some(worker) = worker.filter(|worker| lost.name(*worker).is_none()) {
                    let (from, to) = (lane.id.slot, LaneId { slot, ..lane.id });
                    let result = result.clone();
                    out.push(Out::Worker(worker, Piece { transfer, number, from, to, result }));
                }
            }
        }
        if let Some(kept) = &hop.kept {
            let value = match (&kept.part, value) {
                (Some(part), Ok((tensor, meta))) => {
                    let part = self.take_block(&tensor, meta, part);
                    part.map_err(|error| self.exchange_failure(&exchange, error.to_string()))
                }
                (_, value) => value.map(|(tensor, _)| tensor),
            };
            if let Some(chain) = lane.exchanges.chains.get_mut(&transfer) {
                chain.parts[index] = Some(value);
            }
        }
        if let Some(chain) = lane.exchanges.chains.get_mut(&transfer) {
            chain.release_input();
        }
    }

    /// Returns a block of the chain's input on this slot.
    fn chain_block(
        &mut self,
        lane: &Lane<E::Tensor>,
        transfer: TransferId,
        block: &Block,
    ) -> PieceResult<(E::Tensor, Meta)> {
        let Some(chain) = lane.exchanges.chains.get(&transfer) else {
            unreachable!("a chain stays until its last hop is done")
        };
        let Some(input) = &chain.input else {
            unreachable!("it stays until the last hop that needs it")
        };
        let (tensor, meta) = input.as_ref().map_err(Arc::clone)?;
        let part = self.take_block(tensor, *meta, block);
        let meta = Meta::new(meta.dtype, block.shape);
        part.map(|part| (part, meta))
            .map_err(|error| self.exchange_failure(&chain.exchange, error.to_string()))
    }

    /// Combines what came with the slot's own block, in this order. Of two failures the first in
    /// program order is reported.
    fn add(
        &mut self,
        exchange: &Exchange,
        with: &OwnBlock,
        came: PieceResult<(E::Tensor, Meta)>,
        own: PieceResult<(E::Tensor, Meta)>,
    ) -> PieceResult<(E::Tensor, Meta)> {
        let ((came, before), own) = match (came, own) {
            (Ok(came), Ok((own, _))) => (came, own),
            (Err(one), Err(other)) => {
                return Err(if other.order() < one.order() { other } else { one });
            }
            (Err(failure), Ok(_)) | (Ok(_), Err(failure)) => return Err(failure),
        };
        let operands: Operands<E::Tensor> = smallvec![Operand::Tensor(came), Operand::Tensor(own)];
        let (operation, attributes, shape) = match (with.axis, exchange.reduction) {
            (Some(axis), _) => {
                let length = before.shape[axis as usize] + with.block.shape[axis as usize];
                let joined = before.shape.with(axis as usize, length);
                (&shape::CAT, smallvec![Attribute::Int(i64::from(axis))], joined)
            }
            (None, Some(reduction)) => {
                (combining(reduction, before.dtype), smallvec![], before.shape)
            }
            (None, None) => {
                return Err(self.exchange_failure(exchange, "it combines nothing".into()));
            }
        };
        let meta = Meta::new(before.dtype, shape);
        let made = self.guarded(|engine| engine.run(operation, operands, &attributes, meta));
        made.map(|tensor| (tensor, meta))
            .map_err(|error| self.exchange_failure(exchange, error.to_string()))
    }

    /// Makes the output if all blocks have gone through; returns whether they have.
    fn finish_chain(&mut self, lane: &mut Lane<E::Tensor>, transfer: TransferId) -> bool {
        let is_complete = |chain: &PendingChain<E::Tensor>| chain.is_done.iter().all(|done| *done);
        if !lane.exchanges.chains.get(&transfer).is_some_and(is_complete) {
            return false;
        }
        let Some(PendingChain { exchange, parts, .. }) = lane.exchanges.chains.remove(&transfer)
        else {
            return false;
        };
        let Some((output, meta)) = exchange.output else { return true };
        // The output may have been freed, or have failed, while it was pending.
        if !lane.store.is_pending(output) {
            return true;
        }
        let failures = parts.iter().flatten().filter_map(|part| part.as_ref().err());
        let failed = failures.min_by_key(|failure| failure.order()).cloned();
        let kept = exchange.hops.iter().filter_map(|hop| hop.kept.as_ref());
        let blocks: Vec<Block> = kept.map(|kept| kept.at).collect();
        let parts = parts.into_iter().flatten().collect::<PieceResult<Vec<E::Tensor>>>();
        let made = failed.map_or(parts, Err).and_then(|parts| {
            self.guarded(|engine| assemble_blocks(engine, &blocks, parts, meta))
                .map_err(|error| self.exchange_failure(&exchange, error.to_string()))
        });
        match made {
            Ok(tensor) => {
                let value = (output, tensor, meta, exchange.line);
                self.keep(lane, value, exchange.input.into_iter());
            }
            Err(failure) => self.fail(lane, output, failure),
        }
        true
    }
}
