//! Starts the collectives whose members are all ready.

use std::sync::Arc;
use std::time::Duration;

use gt_ir::message::Failure;
use gt_ir::{LaneId, TransferId};

use super::Worker;
use crate::engine::Engine;

impl<E: Engine> Worker<E> {
    /// Handles `StartCollective`: all members of a collective are ready, or it was cancelled.
    pub(super) fn resolve_engine_collective(
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
    pub(super) fn run_engine_collective(&mut self) {
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
