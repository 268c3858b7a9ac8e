//! Links between workers: workers receive each other's addresses, and report how fast the links are.
//! What a worker cannot send to another one passes through here.

use std::time::Duration;

use gt_ir::message::{Failure, LinkRate, ServerToWorker};
use gt_ir::{LaneId, Piece, SourceId, TransferId, WorkerId};

use super::Dispatcher;
use crate::peer::PeerId;
use crate::workers::RegisteredWorker;

/// The rate, in bytes per second, at which a pair counts whose pieces pass through here: less than
/// nearly all links have.
const RELAYED: u64 = 1 << 20;

/// The largest piece that passes through here. The queue to a worker is bounded, and one that exceeds
/// it costs the worker its link.
const LARGEST_RELAYED: usize = 256 << 20;

impl Dispatcher {
    /// Sends a new worker the addresses of the others, and the others its own.
    pub(super) fn exchange_addresses(&mut self, newcomer: PeerId) {
        let neighbour = |worker: &RegisteredWorker| ServerToWorker::Neighbour {
            worker: worker.id,
            name: worker.name.clone(),
            endpoint: worker.endpoint.clone(),
            machine: worker.machine.clone(),
        };
        let Some(new) = self.peers.workers.get(newcomer) else { return };
        if new.endpoint.is_empty() {
            return;
        }
        for other in self.peers.workers.iter().filter(|other| other.peer != newcomer) {
            self.outbox.push(newcomer, neighbour(other));
            self.outbox.push(other.peer, neighbour(new));
        }
    }

    /// Handles a worker's report about its links. Sessions that have sharded nothing yet are sharded
    /// accordingly; the slots of others are numbered already, and only move to near workers.
    pub(super) fn links_measured(&mut self, from: PeerId, links: &[LinkRate]) {
        if !self.peers.workers.note_links(from, links) {
            return;
        }
        let network = self.peers.workers.network().clone();
        for peer in self.peers.sessions.peers() {
            let Some(session) = self.peers.sessions.get_mut(peer) else { continue };
            session.planning.catalogue.slots.set_network(&network);
        }
    }

    /// Passes a piece on to a worker to which its sender can open no link. Plans then avoid the pair. A
    /// receiver that is lost is recovered from as such.
    pub(super) fn relay(&mut self, now: Duration, from: PeerId, to: WorkerId, piece: Piece) {
        let Some(receiver) = self.peers.workers.by_id(to).map(|worker| worker.peer) else { return };
        if piece.result.as_ref().is_ok_and(|content| content.meta().bytes() > LARGEST_RELAYED) {
            let reason = "the connection could not be made, and it is too large for the server";
            self.undelivered(now, from, piece.transfer, piece.to, reason.to_string());
            return;
        }
        self.links_measured(from, &[LinkRate { to, bytes_per_second: RELAYED }]);
        self.outbox.push(receiver, ServerToWorker::Piece(piece));
    }

    /// Handles a worker's report that it could not send a piece: the session leaves that worker if
    /// it can; otherwise the receiving lane gets a failure instead of the piece.
    pub(super) fn undelivered(
        &mut self,
        now: Duration,
        from: PeerId,
        transfer: TransferId,
        to: LaneId,
        reason: String,
    ) {
        let Some(sender) = self.peers.workers.get(from).map(|worker| worker.id) else { return };
        let Some(client) =
            self.peers.sessions.by_incarnation(to.incarnation).map(|session| session.identity.peer)
        else {
            return;
        };
        if self.leave_worker(now, client, sender) {
            return;
        }
        let Some(sender) = self.peers.workers.by_id(sender) else { return };
        let Some(session) = self.peers.sessions.get(client) else { return };
        let slots = &session.planning.catalogue.slots;
        let receiver = slots.host(to.slot).and_then(|worker| self.peers.workers.by_id(worker));
        let Some(receiver) = receiver else { return };
        let reason = format!(
            "worker '{}' cannot reach worker '{}': {reason}\n  hint: workers on several machines must reach each other; start them with --peer-host ADDRESS",
            sender.name, receiver.name
        );
        let failure = Failure::new("send", reason, sender.name.as_str(), SourceId::default());
        for slot in slots.on(sender.id) {
            let result = Err(failure.clone());
            let piece = Piece { transfer, number: 0, from: slot, to, result };
            self.outbox.push(receiver.peer, ServerToWorker::Piece(piece));
        }
    }
}
