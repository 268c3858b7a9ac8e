//! Routes what arrives from peers to the parts of the dispatcher.

use std::time::Duration;

use bytes::Bytes;
use gt_ir::ClientCommand;
use gt_ir::message::{
    ClientToServer, ServerToClient, ServerToWatcher, WatcherToServer, WorkerToServer,
};

use super::Dispatcher;
use super::cluster_events::SAID_GOODBYE;
use crate::peer::{FromPeer, PeerId};

impl Dispatcher {
    /// Handles what arrives from a peer.
    pub fn handle(&mut self, now: Duration, peer: PeerId, message: impl Into<FromPeer>) {
        match message.into() {
            FromPeer::Hello(hello) => self.handshake(now, peer, hello),
            FromPeer::Client(message) => self.handle_client(now, peer, message),
            FromPeer::Worker(message) => self.handle_worker(now, peer, message),
            FromPeer::Watcher(message) => self.handle_watcher(now, peer, message),
            FromPeer::Operator(message) => self.operate(now, peer, message),
            FromPeer::Goodbye(_) => {
                if let Some(worker) = self.peers.workers.get_mut(peer) {
                    worker.is_stopped = true;
                }
                self.disconnect(now, peer, SAID_GOODBYE);
            }
        }
    }

    /// Handles a client's stream, of which these are the frames. `received` counts the client's
    /// messages up to and including this one.
    pub fn handle_stream(
        &mut self,
        now: Duration,
        peer: PeerId,
        batch: Vec<ClientCommand>,
        frames: Vec<Bytes>,
        received: u64,
    ) {
        if let Some(session) = self.peers.sessions.get_mut(peer) {
            session.queue.received = received;
        }
        self.receive(now, peer, batch, Some(frames));
    }

    fn handle_client(&mut self, now: Duration, peer: PeerId, message: ClientToServer) {
        match message {
            ClientToServer::Stream(batch) => self.receive(now, peer, batch, None),
            ClientToServer::AwaitCredit => self.client_waits(now, peer),
            ClientToServer::Received { request } => {
                if let Some(session) = self.peers.sessions.get_mut(peer) {
                    session.unread.remove(request);
                }
                self.pump(now);
            }
            ClientToServer::Confirmed { snapshot } => {
                self.snapshot_confirmed(peer, snapshot);
                self.pump(now);
            }
            ClientToServer::Release { token } => self.release_from_client(now, token),
            ClientToServer::Observed { sent, here } => {
                self.observability.measure(now, &mut self.outbox, peer, sent, here);
            }
            ClientToServer::Lines { lines } => self.take_lines(peer, lines),
            ClientToServer::Held(held) => self.take_held(now, peer, *held),
            ClientToServer::End => self.refuse(now, peer, "its user has ended it".into()),
            ClientToServer::Events { events, dropped } => {
                let peers = &self.peers;
                self.observability.take_client_events(now, peer, events, dropped, peers);
            }
        }
    }

    fn handle_worker(&mut self, now: Duration, peer: PeerId, message: WorkerToServer) {
        match message {
            WorkerToServer::LaneDone { lane, weight, usage } => {
                self.lane_done(now, peer, lane, weight, usage);
            }
            WorkerToServer::LaneBroken { lane, reason } => {
                if let Some(client) = self.client_of(lane, peer) {
                    self.refuse(now, client, reason);
                }
            }
            WorkerToServer::StepUndone { lane, failure } => {
                if let Some(client) = self.client_of(lane, peer) {
                    self.note_error(now, client, &failure);
                    self.outbox.push(client, ServerToClient::StepUndone(failure));
                }
            }
            WorkerToServer::MemoryWait { lane, wait } => self.memory_wait(now, peer, lane, wait),
            WorkerToServer::Value { request, result } => self.answer(now, peer, request, result),
            WorkerToServer::Saved { request, result } => {
                if let (Err(failure), Some(client)) = (&result, self.answers.saver(request)) {
                    self.note_error(now, client, failure);
                }
                self.answers.saved(&mut self.outbox, request, peer, result);
            }
            WorkerToServer::Statistics { request, statistics } => {
                self.answers.survey(&mut self.outbox, request, peer, Some(*statistics));
            }
            WorkerToServer::CollectiveReady { lane, transfer, members, result } => {
                if self.is_on(lane, peer) {
                    let messages = self.collectives.ready(lane, transfer, members, result);
                    self.send_to_lanes(lane.incarnation, messages);
                }
            }
            WorkerToServer::Undelivered { transfer, to, reason } => {
                self.undelivered(now, peer, transfer, to, reason);
            }
            WorkerToServer::Backup(backup) => self.keep_backup(now, peer, *backup),
            WorkerToServer::BackupStored { session, slot, snapshot, result } => {
                self.backup_reported(now, peer, (session, slot), snapshot, result);
                self.pump(now);
            }
            WorkerToServer::Release { token } => {
                self.release_block(now, token);
            }
            WorkerToServer::Observed { sent, here } => {
                self.observability.measure(now, &mut self.outbox, peer, sent, here);
            }
            WorkerToServer::Report(report) => {
                if let Some(worker) = self.peers.workers.get(peer) {
                    self.observability.take_report(worker.id, peer, *report);
                }
            }
            WorkerToServer::Needs { publication, slot } => {
                self.values_needed(now, peer, publication, slot);
            }
            WorkerToServer::Relay { to, piece } => self.relay(now, peer, to, piece),
            WorkerToServer::Links(links) => self.links_measured(peer, &links),
            WorkerToServer::Drain { within } => self.worker_leaves(now, peer, within),
            WorkerToServer::Events { events, dropped } => {
                let peers = &self.peers;
                self.observability.take_worker_events(now, peer, events, dropped, peers);
            }
        }
    }

    fn handle_watcher(&mut self, now: Duration, peer: PeerId, message: WatcherToServer) {
        match message {
            WatcherToServer::Status { request, since } => {
                self.ask_all_lines();
                let mut status = Box::new(self.status(now, peer));
                self.record_minutes(now);
                status.cluster_events = self.events_for(peer, since);
                status.hour = self.observability.hour.minutes();
                *status.counters = self.observability.cluster_events.counters.clone();
                self.outbox.push(peer, ServerToWatcher::Status { request, status });
            }
            WatcherToServer::Inspect { request, session, explain } => {
                self.inspect(now, peer, request, session, explain);
            }
            WatcherToServer::Poll { limit } => {
                self.ask_all_lines();
                self.observability.send_events(now, &mut self.outbox, peer, limit, &self.peers);
            }
        }
    }

    /// Lets the owner of a shared block release it, as its receiver has mapped it. Returns whether
    /// the block is known.
    pub fn release_block(&mut self, now: Duration, token: u128) -> bool {
        let owner = self.answers.mapped(token);
        owner.into_iter().for_each(|owner| self.release(now, owner, token));
        owner.is_some()
    }

    /// Handles a client's report that it has mapped a block.
    fn release_from_client(&mut self, now: Duration, token: u128) {
        if !self.release_block(now, token) && self.predecessor.is_some() {
            // A worker lent the block before the server was restarted.
            let workers = self.peers.workers.iter();
            workers.for_each(|worker| self.outbox.release(worker.peer, token));
        }
    }
}
