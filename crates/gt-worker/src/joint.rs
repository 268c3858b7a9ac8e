//! Exchanges that the engines of their members carry out together.
//!
//! An engine that joins others waits for them, and nobody can call it back. So none begins before
//! it is certain that all others will:
//!
//! - A worker carries out its joint exchanges one after another, in the order in which they begin.
//!   All workers begin those that they share in the same order, so none waits in a circle.
//! - When the turn of one has come, the worker announces to every other member that it is ready,
//!   or why it has nothing to give.
//! - Once all members have announced, the exchange is due; or one has failed, then it fails for
//!   all of them, and no engine is called.
//!
//! Who is lost before it is due makes it fail; who is lost later makes the engines fail, at the
//! latest when they are tired of waiting. Their group is then made anew for the next exchange:
//! announcements carry how often that was (the *epoch*), and the highest counts.

use std::collections::VecDeque;
use std::sync::Arc;

use gt_ir::exchange::Origin;
use gt_ir::fabric::{Way, epoch, ready};
use gt_ir::message::Failure;
use gt_ir::sharding::{Block, Reduction};
use gt_ir::{Exchange, Joint, Meta, Piece, TransferId, WorkerId};
use rustc_hash::FxHashMap;

use crate::engine::{Engine, EngineError, Joining};
use crate::exchange::Part;
use crate::executor::{Out, Slot, Worker};

/// The joint exchanges of a worker that have begun, in their order.
pub(crate) struct Joints<T> {
    turns: VecDeque<Turn<T>>,
    /// How often groups have failed, if they have.
    epochs: FxHashMap<Vec<WorkerId>, u64>,
}

struct Turn<T> {
    exchange: Box<Exchange>,
    joint: Arc<Joint>,
    /// This worker's.
    rank: usize,
    /// What it takes part with, or why it cannot.
    input: Part<Option<(T, Meta)>>,
    /// The blocks to give, once it has announced that it is ready.
    blocks: Option<Blocks<T>>,
    /// What each member has announced: that it is ready in an epoch, or its failure.
    said: Vec<Option<Part<u64>>>,
}

/// A worker's own blocks in a joint exchange.
struct Blocks<T> {
    way: Way,
    /// See [`Joining::gives`].
    gives: Vec<(usize, T)>,
    /// What goes into the output, in the order of the sources; `None` comes from others.
    parts: Vec<Option<T>>,
}

impl<T> Turn<T> {
    fn failure(&self, reason: String) -> Arc<Failure> {
        Arc::new(Failure {
            operation: self.exchange.collective.name().to_string(),
            reason,
            worker: self.joint.members[self.rank].name.clone(),
            line: self.exchange.line,
        })
    }
}

impl<T> Default for Joints<T> {
    fn default() -> Self {
        Joints { turns: VecDeque::new(), epochs: FxHashMap::default() }
    }
}

impl<T> Joints<T> {
    pub fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }

    pub fn has(&self, transfer: TransferId) -> bool {
        self.turns.iter().any(|turn| turn.exchange.transfer == transfer)
    }

    /// Takes a member's announcement.
    pub fn hear(&mut self, piece: Piece) {
        let turn = self.turns.iter_mut().find(|turn| turn.exchange.transfer == piece.transfer);
        let Some(turn) = turn else { return };
        let Some(rank) = turn.joint.rank_of(piece.from) else { return };
        // Who was given up, and spoke after all, is not believed.
        if turn.said[rank].is_none() {
            let content = piece.result.map_err(Arc::new);
            turn.said[rank] = Some(content.and_then(|content| {
                let not_one = || turn.failure("a member has announced something else".into());
                epoch(&content).ok_or_else(not_one)
            }));
        }
    }

    /// A session is over. What others count on goes on; the rest is announced as failed when its
    /// turn comes, since others may have begun it.
    pub fn end_session(&mut self, session: u32) {
        for turn in &mut self.turns {
            if turn.blocks.is_none() && turn.exchange.transfer.session() == session {
                turn.input = Err(turn.failure("the session has ended".into()));
            }
        }
    }

    /// What is due, see [`crate::executor::Work::due`].
    pub fn due(&self) -> Option<&Joint> {
        let turn = self.turns.front()?;
        turn.said.iter().all(|said| matches!(said, Some(Ok(_)))).then_some(&*turn.joint)
    }

    fn epoch(&self, joint: &Joint) -> u64 {
        self.epochs.get(&workers(joint)).copied().unwrap_or_default()
    }
}

impl<E: Engine> Worker<E> {
    /// Puts a joint exchange behind those that have begun.
    pub(crate) fn begin_joint(
        &mut self,
        exchange: &Exchange,
        joint: &Arc<Joint>,
        out: &mut Vec<Out>,
    ) {
        if let Some((output, _)) = exchange.output {
            self.tensors.insert(output, Slot::Pending);
        }
        let Some(rank) = joint.rank_of(exchange.worker) else {
            let reason = format!("this worker is not one of its members: {}", joint.names());
            let failure = self.exchange_failure(exchange, reason);
            return self.finish_exchange(exchange, Err(failure));
        };
        let input = exchange.input.map(|_| self.exchange_input(exchange)).transpose();
        let lost = joint.members.iter().map(|member| self.lost_part(member.worker, exchange));
        let said = lost.map(|failure| failure.map(Err)).collect();
        let (joint, boxed) = (Arc::clone(joint), Box::new(exchange.clone()));
        let turn = Turn { exchange: boxed, joint, rank, input, blocks: None, said };
        self.exchanges.joints.turns.push_back(turn);
        for piece in self.exchanges.take_early(exchange.transfer) {
            self.exchanges.joints.hear(piece);
        }
        self.take_turns(out);
    }

    /// Announces the exchange whose turn it is; ends those that have failed. Says whether any
    /// has.
    pub(crate) fn take_turns(&mut self, out: &mut Vec<Out>) -> bool {
        let mut has_ended = false;
        while let Some(mut turn) = self.exchanges.joints.turns.pop_front() {
            if turn.said[turn.rank].is_none() {
                self.announce(&mut turn, out);
            }
            let failed = turn.said.iter().flatten().find_map(|said| said.as_ref().err());
            match failed.cloned() {
                // The same failure for all: nobody decides before all have spoken.
                Some(failure) if turn.said.iter().all(Option::is_some) => {
                    self.finish_exchange(&turn.exchange, Err(failure));
                    has_ended = true;
                }
                _ => {
                    self.exchanges.joints.turns.push_front(turn);
                    break;
                }
            }
        }
        has_ended
    }

    /// Makes the blocks ready that a worker gives, and tells the other members.
    fn announce(&mut self, turn: &mut Turn<E::Tensor>, out: &mut Vec<Out>) {
        let said = self.blocks(turn).map(|blocks| {
            turn.blocks = Some(blocks);
            self.exchanges.joints.epoch(&turn.joint)
        });
        for (rank, member) in turn.joint.members.iter().enumerate() {
            if rank != turn.rank {
                let result = said.clone().map(ready).map_err(|failure| (*failure).clone());
                let (transfer, from) = (turn.exchange.transfer, turn.exchange.worker);
                out.push(Out::Worker(member.worker, Piece { transfer, from, result }));
            }
        }
        turn.said[turn.rank] = Some(said);
    }

    /// A worker's blocks in the exchange whose turn it is.
    fn blocks(&mut self, turn: &Turn<E::Tensor>) -> Part<Blocks<E::Tensor>> {
        let exchange = &*turn.exchange;
        let input = turn.input.clone()?;
        let made = self.cut(turn, input.as_ref());
        let (mut gives, parts) =
            made.map_err(|error| self.exchange_failure(exchange, error.to_string()))?;
        let is_added = exchange.reduction == Some(Reduction::Sum)
            && exchange.output.is_some_and(|(_, meta)| self.engine.adds(meta.dtype));
        let way = if is_added { turn.joint.way } else { turn.joint.way.without_combining() };
        match way {
            // The same block for all; it stands for its own, too.
            Way::AllReduce | Way::AllGather | Way::Broadcast { .. } => {
                gives.truncate(1);
                gives.iter_mut().for_each(|(rank, _)| *rank = turn.rank);
            }
            Way::ReduceScatter => {
                let own = parts.iter().flatten().map(|block| (turn.rank, block.clone()));
                gives.extend(own);
                gives.sort_by_key(|(rank, _)| *rank);
            }
            Way::AllToAll => {}
        }
        Ok(Blocks { way, gives, parts })
    }

    /// Cuts the blocks for others, and its own parts of the output, out of a worker's input.
    fn cut(
        &mut self,
        turn: &Turn<E::Tensor>,
        input: Option<&(E::Tensor, Meta)>,
    ) -> Result<Cut<E::Tensor>, EngineError> {
        let mut take = |block: &Block| {
            let (tensor, meta) =
                input.ok_or_else(|| EngineError::Other("it has no input".into()))?;
            self.take_block(tensor, *meta, block)
        };
        let mut gives = Vec::with_capacity(turn.exchange.sends.len() + 1);
        for (to, block) in &turn.exchange.sends {
            let rank = turn.joint.rank_of(*to).ok_or_else(|| {
                EngineError::Other(format!("worker {to} is not one of {}", turn.joint.names()))
            })?;
            gives.push((rank, take(block)?));
        }
        let mut parts = Vec::with_capacity(turn.exchange.sources.len());
        for source in &turn.exchange.sources {
            parts.push(match &source.from {
                Origin::Own(block) => Some(take(block)?),
                Origin::Worker(_) => None,
            });
        }
        Ok((gives, parts))
    }

    /// Has the engine carry out what is due.
    pub(crate) fn join_members(&mut self, out: &mut Vec<Out>) {
        if self.exchanges.joints.due().is_none() {
            return;
        }
        let Some(Turn { exchange, joint, rank, blocks: Some(blocks), said, .. }) =
            self.exchanges.joints.turns.pop_front()
        else {
            unreachable!("what is due was announced")
        };
        if self.notes.is_on {
            self.note_join(&exchange);
        }
        let Blocks { way, gives, parts } = blocks;
        let epoch = said.into_iter().flatten().flatten().max().unwrap_or_default();
        let gets = gets(&exchange, &joint, rank, way);
        let expected = gets.len();
        let part = Joining { joint: &joint, way, rank, epoch, gives, gets };
        let joined = self.guarded(|engine| engine.join(part)).and_then(|got| {
            let wrong = || format!("the engine gave {} tensors, expected {expected}", got.len());
            if got.len() == expected { Ok(got) } else { Err(EngineError::Other(wrong())) }
        });
        let failures = epoch + u64::from(joined.is_err());
        if failures > 0 {
            self.exchanges.joints.epochs.insert(workers(&joint), failures);
        }
        let made = match joined {
            Ok(whole) if way.combines() => Ok(whole),
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
        self.finish_exchange(&exchange, made);
        self.take_turns(out);
    }

    /// A member is lost: what is not carried out yet fails, and its groups are closed.
    pub(crate) fn lose_member(&mut self, worker: WorkerId, out: &mut Vec<Out>) {
        let mut turns = std::mem::take(&mut self.exchanges.joints.turns);
        for turn in &mut turns {
            if let Some(rank) = turn.joint.rank_of(worker) {
                turn.said[rank] = self.lost_part(worker, &turn.exchange).map(Err);
            }
        }
        let joints = &mut self.exchanges.joints;
        joints.turns = turns;
        joints.epochs.retain(|members, _| !members.contains(&worker));
        // Nothing depends on how that goes.
        let _ = self.guarded(|engine| {
            engine.leave(worker);
            Ok(())
        });
        self.take_turns(out);
    }
}

/// What a worker gives to which rank, and its own parts of the output in the order of the
/// sources; `None` comes from others.
type Cut<T> = (Vec<(usize, T)>, Vec<Option<T>>);

/// See [`Joining::gets`].
fn gets(exchange: &Exchange, joint: &Joint, rank: usize, way: Way) -> Vec<(usize, Meta)> {
    let Some((_, whole)) = exchange.output else { return Vec::new() };
    if way.combines() {
        return vec![(rank, whole)];
    }
    let from_others = exchange.sources.iter().filter_map(|source| match &source.from {
        Origin::Worker(worker) => {
            Some((joint.rank_of(*worker)?, Meta::new(whole.dtype, source.at.shape)))
        }
        Origin::Own(_) => None,
    });
    from_others.collect()
}

fn workers(joint: &Joint) -> Vec<WorkerId> {
    joint.members.iter().map(|member| member.worker).collect()
}
