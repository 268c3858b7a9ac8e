//! Collectives: exchanges that the members' engines carry out as one collective call.
//!
//! A collective call blocks until all members enter it, and cannot be interrupted. So a lane that
//! reaches a collective prepares its blocks and sends the dispatcher `CollectiveReady`; once all members are
//! ready, each receives `StartCollective`. A worker starts its collectives in the order of their sequence
//! numbers, which is the same on all workers. If a member fails or is lost before that, the
//! exchange fails on all members, and no engine is called.
//!
//! If a member is lost during the call, the engines fail, at the latest by their timeout. The next
//! exchange then needs a new group: members report how often theirs has failed (the *epoch*), and
//! all use the highest.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use gt_ir::exchange::Sender;
use gt_ir::fabric::CollectiveCall;
use gt_ir::message::{Failure, WorkerToServer};
use gt_ir::sharding::{Block, Reduction};
use gt_ir::{EngineCollective, Exchange, Incarnation, LaneId, Meta, TransferId, WorkerId};
use rustc_hash::FxHashMap;

use crate::device::Device;
use crate::engine::{Engine, EngineError, Joining};
use crate::exchange::PieceResult;
use crate::lane::Lane;
use crate::lost_workers::LostWorkers;
use crate::work::Out;
use crate::worker::Worker;

/// The collectives of a worker.
pub(crate) struct Collectives<T> {
    /// Those for which a lane has sent `CollectiveReady`.
    announced: FxHashMap<(LaneId, TransferId), JointPart<T>>,
    /// Those that are ready to start, by sequence number, with their epochs.
    due: BTreeMap<u64, (LaneId, JointPart<T>, u64)>,
    /// The number of failures of each group, if any.
    epochs: FxHashMap<Vec<WorkerId>, u64>,
}

/// A slot's part of a collective.
pub(crate) struct JointPart<T> {
    pub exchange: Box<Exchange>,
    joint: Arc<EngineCollective>,
    /// This slot's rank.
    rank: usize,
    blocks: Option<CollectiveBlocks<T>>,
}

/// A slot's own blocks in a collective.
struct CollectiveBlocks<T> {
    call: CollectiveCall,
    /// See [`Joining::gives`].
    gives: Vec<(usize, T)>,
    /// The parts of the output, in the order of the receives; `None` if from another member.
    parts: Vec<Option<T>>,
}

impl<T> Default for Collectives<T> {
    fn default() -> Self {
        let (announced, epochs) = (FxHashMap::default(), FxHashMap::default());
        Collectives { announced, due: BTreeMap::new(), epochs }
    }
}

impl<T> Collectives<T> {
    /// Returns the next collective to start, see [`crate::work::Work::due`].
    pub fn due(&self) -> Option<&EngineCollective> {
        self.due.first_key_value().map(|(_, (_, part, _))| &*part.joint)
    }

    /// Removes and returns the next collective.
    pub fn take_due(&mut self) -> Option<(LaneId, JointPart<T>, u64)> {
        self.due.pop_first().map(|(_, due)| due)
    }

    /// Marks an exchange as ready to start. If it was cancelled, returns it with the failure.
    pub fn resolve(
        &mut self,
        lane: LaneId,
        transfer: TransferId,
        sequence: u64,
        result: Result<u64, Failure>,
    ) -> Option<(JointPart<T>, Failure)> {
        let part = self.announced.remove(&(lane, transfer))?;
        match result {
            Ok(epoch) => {
                self.due.insert(sequence, (lane, part, epoch));
                None
            }
            Err(failure) => Some((part, failure)),
        }
    }

    /// Returns whether a lane waits for the other members of a collective.
    pub fn has(&self, lane: LaneId) -> bool {
        self.announced.keys().any(|(of, _)| *of == lane)
    }

    /// Returns the number of collectives that are announced or ready to start.
    pub fn len(&self) -> usize {
        self.announced.len() + self.due.len()
    }

    /// Drops a session's collectives, except those that are ready to start: other members will
    /// enter these.
    pub fn end_session(&mut self, incarnation: Incarnation) {
        self.announced.retain(|(lane, _), _| lane.incarnation != incarnation);
    }

    /// Forgets the groups of a lost worker.
    pub fn lose(&mut self, worker: WorkerId) {
        self.epochs.retain(|members, _| !members.contains(&worker));
    }

    fn epoch(&self, joint: &EngineCollective) -> u64 {
        self.epochs.get(&workers(joint)).copied().unwrap_or_default()
    }
}

impl<E: Engine> Device<E> {
    /// Prepares a slot's blocks of a collective, and sends `CollectiveReady`.
    pub fn begin_joint(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        (collectives, lost): (&mut Collectives<E::Tensor>, &LostWorkers),
        exchange: &Exchange,
        joint: &Arc<EngineCollective>,
        out: &mut Vec<Out>,
    ) {
        lane.exchanges.begin(exchange.transfer);
        let no_room = self.exchange_without_room(lane, exchange);
        if let Some((output, meta)) = exchange.output {
            let bytes = if no_room.is_some() { 0 } else { meta.bytes() as u64 };
            lane.store.wait_for(&mut self.held, output, bytes);
        }
        let Some(rank) = joint.rank_of(lane.id.slot) else {
            let reason = format!("this worker is not one of its members: {}", joint.names());
            let failure = self.exchange_failure(exchange, reason);
            return self.finish_exchange(lane, exchange, Err(failure));
        };
        let (joint, boxed) = (Arc::clone(joint), Box::new(exchange.clone()));
        let mut part = JointPart { exchange: boxed, joint, rank, blocks: None };
        let members = || part.joint.members.iter();
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
                let epoch = collectives.epoch(&part.joint);
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
        part: &JointPart<E::Tensor>,
        input: Option<&(E::Tensor, Meta)>,
    ) -> PieceResult<CollectiveBlocks<E::Tensor>> {
        let exchange = &*part.exchange;
        let made = self.cut(part, input);
        let (mut gives, parts) =
            made.map_err(|error| self.exchange_failure(exchange, error.to_string()))?;
        let is_added = exchange.reduction == Some(Reduction::Sum)
            && exchange.output.is_some_and(|(_, meta)| self.engine.adds(meta.dtype));
        let call = if is_added { part.joint.call } else { part.joint.call.without_combining() };
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
        part: &JointPart<E::Tensor>,
        input: Option<&(E::Tensor, Meta)>,
    ) -> Result<Cut<E::Tensor>, EngineError> {
        let mut take = |block: &Block| {
            let (tensor, meta) =
                input.ok_or_else(|| EngineError::Other("it has no input".into()))?;
            self.take_block(tensor, *meta, block)
        };
        let mut gives = Vec::with_capacity(part.exchange.parts.sends.len() + 1);
        for (to, block) in &part.exchange.parts.sends {
            let rank = part.joint.rank_of(*to).ok_or_else(|| {
                EngineError::Other(format!("slot {to} is not one of {}", part.joint.names()))
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
        part: JointPart<E::Tensor>,
        epoch: u64,
        input: Option<Meta>,
    ) -> (Box<Exchange>, PieceResult<Vec<E::Tensor>>) {
        let JointPart { exchange, joint, rank, blocks } = part;
        let Some(CollectiveBlocks { call, gives, parts }) = blocks else {
            let failure = self.exchange_failure(&exchange, "it was not ready".into());
            return (exchange, Err(failure));
        };
        if self.events.is_on {
            self.emit_join(&exchange, input);
        }
        let gets = gets(&exchange, &joint, rank, call);
        let expected = gets.len();
        let part = Joining { joint: &joint, call, rank, epoch, gives, gets };
        let joined = self.guarded(|engine| engine.join(part)).and_then(|got| {
            let wrong = || format!("the engine gave {} tensors, expected {expected}", got.len());
            if got.len() == expected { Ok(got) } else { Err(EngineError::Other(wrong())) }
        });
        let failures = epoch + u64::from(joined.is_err());
        if failures > 0 {
            collectives.epochs.insert(workers(&joint), failures);
        }
        let made = match joined {
            Ok(whole) if call.combines() => Ok(whole),
            Ok(got) => {
                let mut got = got.into_iter();
                Ok(parts.into_iter().filter_map(|part| part.or_else(|| got.next())).collect())
            }
            Err(error) => {
                let reason =
                    format!("{error}\n  in a group of {} by {}", joint.names(), joint.kind);
                Err(self.exchange_failure(&exchange, reason))
            }
        };
        (exchange, made)
    }
}

/// Blocks by receiving rank, and the parts of the output in the order of the receives; `None` if
/// from another member.
type Cut<T> = (Vec<(usize, T)>, Vec<Option<T>>);

/// See [`Joining::gets`].
fn gets(
    exchange: &Exchange,
    joint: &EngineCollective,
    rank: usize,
    call: CollectiveCall,
) -> Vec<(usize, Meta)> {
    let Some((_, whole)) = exchange.output else { return Vec::new() };
    if call.combines() {
        return vec![(rank, whole)];
    }
    let from_others = exchange.parts.receives.iter().filter_map(|received| match &received.from {
        Sender::Slot(slot) => {
            Some((joint.rank_of(*slot)?, Meta::new(whole.dtype, received.at.shape)))
        }
        Sender::Own(_) => None,
    });
    from_others.collect()
}

fn workers(joint: &EngineCollective) -> Vec<WorkerId> {
    joint.members.iter().map(|member| member.worker).collect()
}

impl<E: Engine> Worker<E> {
    /// Handles `StartCollective`: all members of a collective are ready, or it was cancelled.
    pub(crate) fn resolve_joint(
        &mut self,
        id: LaneId,
        transfer: TransferId,
        sequence: u64,
        result: Result<u64, Failure>,
    ) {
        let failed = self.collectives.resolve(id, transfer, sequence, result);
        let Some((part, failure)) = failed else { return };
        if let Some(lane) = self.lanes.get_mut(&id) {
            self.device.finish_exchange(lane, &part.exchange, Err(Arc::new(failure)));
            self.wake(id);
        }
    }

    /// Runs the collective that is due, and charges its device time to the session.
    pub(crate) fn run_joint(&mut self) {
        let Some((id, turn, epoch)) = self.collectives.take_due() else { return };
        self.end_reservation();
        self.device.events.turn_to(id.incarnation);
        let input = turn.exchange.input;
        let input = input.and_then(|input| self.lanes.get(&id)?.store.meta(input));
        let bytes = turn.exchange.output.map_or(0, |(_, meta)| meta.bytes() as u64);
        let measure = self.device.begin_measure();
        let (exchange, made) = self.device.join_members(&mut self.collectives, turn, epoch, input);
        let cost = self.device.cost(measure, bytes);
        if self.device.end_turn(measure) {
            self.await_cost(id);
        } else if self.ready.is_shared() {
            self.ready.charge(id.incarnation, cost.max(1));
        }
        // The session may have ended: then the result is dropped.
        if let Some(lane) = self.lanes.get_mut(&id) {
            lane.untold += cost;
            lane.exchanges.reserved = Duration::ZERO;
            self.device.finish_exchange(lane, &exchange, made);
            self.wake(id);
        }
    }
}
