//! Routes what arrives at a worker to its parts.

use std::time::Duration;

use gt_ir::message::{Failure, ServerToWorker, WorkerToWorker};
use gt_ir::snapshot::Owner;
use gt_ir::{Content, LaneId, Piece, RequestId, TensorId, WorkerCommand, WorkerId};

use super::Worker;
use crate::device::measure::Measure;
use crate::engine::Engine;
use crate::work::{FileResult, Out, WorkerInput};

impl<E: Engine> Worker<E> {
    /// Handles a message, or the result of a file operation.
    pub(super) fn route(&mut self, input: WorkerInput, out: &mut Vec<Out>) {
        match input {
            WorkerInput::Server(message) => self.handle_server(message, out),
            WorkerInput::Worker(WorkerToWorker::Piece { piece, .. }) => self.receive(piece, out),
            WorkerInput::Worker(WorkerToWorker::Backup(backup)) => {
                self.receive_backup(*backup, out);
            }
            // The driver owns the blocks.
            WorkerInput::Worker(WorkerToWorker::Release { .. }) => {}
            WorkerInput::File(result) => self.complete(result, out),
        }
    }

    fn handle_server(&mut self, message: ServerToWorker, out: &mut Vec<Out>) {
        match message {
            ServerToWorker::Work { lane, commands } => self.accept(lane, commands),
            ServerToWorker::Cancel { lane, request } => self.cancel(lane, request),
            ServerToWorker::EndSession { incarnation } => self.end_session(incarnation),
            ServerToWorker::Admit { incarnation, entitlement } => {
                self.ready.admit(incarnation, &entitlement);
                self.limits.admit(incarnation, &entitlement);
            }
            ServerToWorker::SetPolicy(policy_kind) => self.ready.divide(policy_kind),
            ServerToWorker::MemoryTimeout { lane, number, has_waited } => {
                self.memory_timeout(lane, number, has_waited, out);
            }
            ServerToWorker::CollectiveWaits { lane } => self.boost(lane.incarnation),
            ServerToWorker::StartCollective { lane, transfer, sequence, result } => {
                self.resolve_engine_collective(lane, transfer, sequence, result);
            }
            ServerToWorker::Piece(piece) => self.receive(piece, out),
            ServerToWorker::Backup(backup) => self.receive_backup(*backup, out),
            ServerToWorker::Retain { session, snapshot, next } => {
                self.retain(session, snapshot, next);
            }
            ServerToWorker::RetainSessions { sessions, since, oldest } => {
                self.snapshots.retain_sessions(&sessions, since);
                self.retain_publications(&sessions);
                self.device.note_snapshots(self.snapshots.amounts());
                self.end_sessions_before(oldest);
                self.ended.forget_before(oldest);
            }
            ServerToWorker::HandOver { session, slot, snapshot, to } => {
                self.hand_over(Owner { session, slot }, snapshot, to, out);
            }
            ServerToWorker::Neighbour { worker, .. } => self.lost.remove(worker),
            ServerToWorker::WorkerLost { worker, name } => self.lose(worker, &name, out),
            // The driver owns the blocks and the clock.
            ServerToWorker::Release { .. }
            | ServerToWorker::Observe { .. }
            | ServerToWorker::DrainEnded { .. } => {}
        }
    }

    /// Handles the result of a file operation.
    fn complete(&mut self, result: FileResult, out: &mut Vec<Out>) {
        match result {
            FileResult::Loaded { lane, tensor, result } => self.load(lane, tensor, result),
            FileResult::Spilled { lane, tensor, number, result } => {
                self.spilled(lane, tensor, number, result, out);
                self.wake(lane);
            }
            FileResult::SnapshotSpilled { owner, tensor, result } => {
                self.snapshot_spilled(owner, tensor, result);
            }
        }
    }

    fn accept(&mut self, id: LaneId, commands: Vec<WorkerCommand>) {
        if self.ended.has(id.incarnation) {
            return;
        }
        let asks = matches!(commands.last(), Some(WorkerCommand::Fetch { .. }));
        let is_free = |command: &WorkerCommand| matches!(command, WorkerCommand::Free(_));
        let frees = self.shortages.has(id) && commands.iter().any(is_free);
        let lane = self.lane(id);
        let (waits, sequences) = (!lane.queue.is_empty(), lane.templates.len());
        lane.accept(commands);
        let now = lane.templates.len();
        let has_grown = lane.queue.has_grown();
        let stats = &mut self.device.stats;
        stats.hot_sequences = stats.hot_sequences + now as u64 - sequences as u64;
        // A fetch does not wait for instructions whose results have been freed.
        if waits && frees {
            self.free_for_room(id);
        } else if waits && (asks || has_grown) {
            self.look_through(id);
        }
        self.wake(id);
    }

    fn cancel(&mut self, id: LaneId, request: RequestId) {
        if self.lanes.get_mut(&id).is_some_and(|lane| lane.queue.cancel(request)) {
            self.look_through(id);
            self.wake(id);
        }
    }

    fn receive(&mut self, piece: Piece, out: &mut Vec<Out>) {
        if self.ended.has(piece.to.incarnation) {
            return;
        }
        if self.device.events.is_on() {
            self.device.emit_piece(&piece);
        }
        let id = piece.to;
        if self.lane(id).exchanges.is_ahead_of(piece.transfer) {
            self.boost(id.incarnation);
        }
        let Some(lane) = self.lanes.get_mut(&id) else { return };
        let began = lane.exchanges.chains.contains_key(&piece.transfer).then(|| {
            // What a device computes is in the order of its turns; here the processor's time counts.
            let of = |content: &Content| content.meta().shape.numel();
            (self.device.engine.now(), piece.result.as_ref().map_or(0, of))
        });
        let is_complete = self.device.take_piece(lane, &self.lost, piece, out);
        if is_complete {
            lane.exchanges.reserved = Duration::ZERO;
        }
        if let Some((began, elements)) = began {
            let measure = match self.device.options.is_timed {
                true => Measure::Clock(began),
                false => Measure::Estimate,
            };
            let cost = self.device.cost(measure, elements as u64);
            lane.untold += cost;
            self.ready.charge(id.incarnation, cost);
        }
        if is_complete {
            self.wake(id);
        }
    }

    /// The driver has read values from files.
    fn load(&mut self, id: LaneId, tensor: TensorId, result: Result<Content, Failure>) {
        // The session may have ended: then they are dropped.
        if let Some(lane) = self.lanes.get_mut(&id) {
            self.device.load(lane, tensor, result);
            self.wake(id);
        }
    }

    fn lose(&mut self, worker: WorkerId, name: &str, out: &mut Vec<Out>) {
        self.lost.add(worker, name);
        self.collectives.lose(worker);
        let ids: Vec<LaneId> = self.lanes.keys().copied().collect();
        for id in ids {
            if let Some(lane) = self.lanes.get_mut(&id) {
                self.device.lose_peer(lane, &self.lost, worker, out);
            }
            self.wake(id);
        }
        // A failure here has no consequence.
        let _ = self.device.guarded(|engine| {
            engine.close_groups(worker);
            Ok(())
        });
    }
}
