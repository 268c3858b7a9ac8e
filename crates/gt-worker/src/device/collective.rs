//! A slot's part in a collective: cuts its blocks, and has the engine carry it out.

use std::sync::Arc;

use gt_ir::exchange::Sender;
use gt_ir::fabric::CollectiveCall;
use gt_ir::message::WorkerToServer;
use gt_ir::sharding::{Block, Reduction};
use gt_ir::{EngineCollective, Exchange, Meta};

use super::Device;
use crate::collective::{CollectiveBlocks, CollectiveMember, Collectives, workers};
use crate::engine::{CollectivePart, Engine, EngineError};
use crate::lane::Lane;
use crate::lane::exchanges::PieceResult;
use crate::lost_workers::LostWorkers;
use crate::work::Out;

impl<E: Engine> Device<E> {
    /// Prepares a slot's blocks of a collective, and sends `CollectiveReady`.
    pub fn begin_engine_collective(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        (collectives, lost): (&mut Collectives<E::Tensor>, &LostWorkers),
        exchange: &Exchange,
        engine_collective: &Arc<EngineCollective>,
        out: &mut Vec<Out>,
    ) {
        lane.exchanges.begin(exchange.transfer);
        let no_room = self.exchange_without_room(lane, exchange);
        if let Some((output, meta)) = exchange.output {
            let bytes = if no_room.is_some() { 0 } else { meta.bytes() as u64 };
            lane.store.wait_for(&mut self.held, output, bytes);
        }
        let Some(rank) = engine_collective.rank_of(lane.id.slot) else {
            let reason =
                format!("this worker is not one of its members: {}", engine_collective.names());
            let failure = self.exchange_failure(exchange, reason);
            return self.finish_exchange(lane, exchange, Err(failure));
        };
        let (engine_collective, boxed) =
            (Arc::clone(engine_collective), Box::new(exchange.clone()));
        let mut part = CollectiveMember { exchange: boxed, engine_collective, rank, blocks: None };
        let members = || part.engine_collective.members.iter();
        // Members are the workers that the slots were on when the exchange was planned.
        let gone = members().find_map(|member| lost.name(member.worker));
        let input = exchange.input.map(|_| self.exchange_input(lane, exchange)).transpose();
        let readiness = match gone {
            Some(name) => {
                let reason =
                    format!("the worker '{name}', which held a part of the tensor, was lost");
                Err(self.exchange_failure(exchange, reason))
            }
            None => match no_room {
                Some(failure) => Err(failure),
                None => input.and_then(|input| self.blocks(&part, input.as_ref())),
            },
        };
        let slots = members().map(|member| member.slot).collect();
        let result = match readiness {
            Ok(blocks) => {
                let epoch = collectives.epoch(&part.engine_collective);
                part.blocks = Some(blocks);
                Ok(epoch)
            }
            Err(failure) => Err((*failure).clone()),
        };
        let (lane, transfer) = (lane.id, exchange.transfer);
        let ready = WorkerToServer::CollectiveReady { lane, transfer, members: slots, result };
        out.push(Out::Server(ready));
        collectives.announced.insert((lane, transfer), part);
    }

    /// Returns a slot's blocks in a collective.
    fn blocks(
        &mut self,
        part: &CollectiveMember<E::Tensor>,
        input: Option<&(E::Tensor, Meta)>,
    ) -> PieceResult<CollectiveBlocks<E::Tensor>> {
        let exchange = &*part.exchange;
        let made = self.cut(part, input);
        let (mut gives, parts) =
            made.map_err(|error| self.exchange_failure(exchange, error.to_string()))?;
        let is_added = exchange.reduction == Some(Reduction::Sum)
            && exchange.output.is_some_and(|(_, meta)| self.engine.can_reduce(meta.dtype));
        let call = if is_added {
            part.engine_collective.call
        } else {
            part.engine_collective.call.without_combining()
        };
        match call {
            // One block is sent to all members, itself included.
            CollectiveCall::AllReduce
            | CollectiveCall::AllGather
            | CollectiveCall::Broadcast { .. } => {
                gives.truncate(1);
                gives.iter_mut().for_each(|(rank, _)| *rank = part.rank);
            }
            CollectiveCall::ReduceScatter => {
                let own = parts.iter().flatten().map(|block| (part.rank, block.clone()));
                gives.extend(own);
                gives.sort_by_key(|(rank, _)| *rank);
            }
            CollectiveCall::AllToAll => {}
        }
        Ok(CollectiveBlocks { call, gives, parts })
    }

    /// Slices the blocks for other members, and the slot's own parts of the output, out of its
    /// input.
    fn cut(
        &mut self,
        part: &CollectiveMember<E::Tensor>,
        input: Option<&(E::Tensor, Meta)>,
    ) -> Result<Cut<E::Tensor>, EngineError> {
        let mut take = |block: &Block| {
            let (tensor, meta) =
                input.ok_or_else(|| EngineError::Other("it has no input".into()))?;
            self.take_block(tensor, *meta, block)
        };
        let mut gives = Vec::with_capacity(part.exchange.parts.sends.len() + 1);
        for (to, block) in &part.exchange.parts.sends {
            let rank = part.engine_collective.rank_of(*to).ok_or_else(|| {
                EngineError::Other(format!(
                    "slot {to} is not one of {}",
                    part.engine_collective.names()
                ))
            })?;
            gives.push((rank, take(block)?));
        }
        let mut parts = Vec::with_capacity(part.exchange.parts.receives.len());
        for received in &part.exchange.parts.receives {
            parts.push(match &received.from {
                Sender::Own(block) => Some(take(block)?),
                Sender::Slot(_) => None,
            });
        }
        Ok((gives, parts))
    }

    /// Has the engine carry out a collective; returns the parts of the output.
    pub fn join_members(
        &mut self,
        collectives: &mut Collectives<E::Tensor>,
        part: CollectiveMember<E::Tensor>,
        epoch: u64,
        input: Option<Meta>,
    ) -> (Box<Exchange>, PieceResult<Vec<E::Tensor>>) {
        let CollectiveMember { exchange, engine_collective, rank, blocks } = part;
        let Some(CollectiveBlocks { call, gives, parts }) = blocks else {
            let failure = self.exchange_failure(&exchange, "it was not ready".into());
            return (exchange, Err(failure));
        };
        if self.events.is_on() {
            self.emit_join(&exchange, input);
        }
        let gets = gets(&exchange, &engine_collective, rank, call);
        let expected = gets.len();
        let part = CollectivePart {
            engine_collective: &engine_collective,
            call,
            rank,
            epoch,
            gives,
            gets,
        };
        let joined = self.guarded(|engine| engine.run_collective(part)).and_then(|got| {
            let wrong = || format!("the engine gave {} tensors, expected {expected}", got.len());
            if got.len() == expected { Ok(got) } else { Err(EngineError::Other(wrong())) }
        });
        let failures = epoch + u64::from(joined.is_err());
        if failures > 0 {
            collectives.epochs.insert(workers(&engine_collective), failures);
        }
        let made = match joined {
            Ok(whole) if call.combines() => Ok(whole),
            Ok(got) => {
                let mut got = got.into_iter();
                Ok(parts.into_iter().filter_map(|part| part.or_else(|| got.next())).collect())
            }
            Err(error) => {
                let reason = format!(
                    "{error}\n  in a group of {} by {}",
                    engine_collective.names(),
                    engine_collective.kind
                );
                Err(self.exchange_failure(&exchange, reason))
            }
        };
        (exchange, made)
    }
}

/// Blocks by receiving rank, and the parts of the output in the order of the receives; `None` if
/// from another member.
type Cut<T> = (Vec<(usize, T)>, Vec<Option<T>>);

/// See [`CollectivePart::gets`].
fn gets(
    exchange: &Exchange,
    engine_collective: &EngineCollective,
    rank: usize,
    call: CollectiveCall,
) -> Vec<(usize, Meta)> {
    let Some((_, whole)) = exchange.output else { return Vec::new() };
    if call.combines() {
        return vec![(rank, whole)];
    }
    let from_others = exchange.parts.receives.iter().filter_map(|received| match &received.from {
        Sender::Slot(slot) => {
            Some((engine_collective.rank_of(*slot)?, Meta::new(whole.dtype, received.at.shape)))
        }
        Sender::Own(_) => None,
    });
    from_others.collect()
}
