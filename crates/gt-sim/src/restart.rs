//! A dispatcher that is killed, and restarted from the durable records of its journal.
//!
//! The semantics are those of `gt::drivers::network`. Clients keep their messages until these are
//! acknowledged, which is when they are durable, and resend them after a restart; workers keep
//! their snapshots and reconnect.

use std::collections::{BTreeMap, BTreeSet};

use gt_dispatcher::{Dispatcher, FromPeer, History, JournalRecord, Limits, PeerId, ToPeer};
use gt_ir::message::{
    ClientToServer, ClientWelcome, Goodbye, Hello, Resume, ServerToClient, Welcome, WorkerWelcome,
};
use gt_ir::{ClientCommand, RequestId, SessionId};

use crate::links::{End, Load, Mail};
use crate::power::WorkerFolder;
use crate::world::World;

/// The journal of a world, and the ends of its clients' links.
pub(crate) struct DurableWorld {
    limits: Limits,
    records: Vec<JournalRecord>,
    durable: usize,
    clients: BTreeMap<PeerId, SimulatedClient>,
    /// The workers that have not reconnected yet, and read no messages from others.
    joining: BTreeSet<PeerId>,
}

/// A client's end of its link.
struct SimulatedClient {
    hello: Hello,
    sent: Vec<FromPeer>,
    /// The number of messages that have arrived, and of those that are durable.
    arrived: u64,
    acknowledged: u64,
    /// The unanswered requests.
    waits: BTreeSet<RequestId>,
}

/// The token of a peer.
fn token(peer: PeerId) -> u128 {
    u128::from(peer.number) + 1
}

/// A record as it is read from a file.
fn read_back(record: &JournalRecord) -> JournalRecord {
    JournalRecord::decode(&record.encode()).expect("it was just written")
}

fn weight(messages: &[FromPeer]) -> u64 {
    let weight = |message: &FromPeer| match message {
        FromPeer::Client(ClientToServer::Stream(commands)) => {
            commands.iter().map(ClientCommand::weight).sum()
        }
        _ => 0,
    };
    messages.iter().map(weight).sum()
}

impl DurableWorld {
    /// A client sends a message.
    pub fn send(&mut self, client: PeerId, message: &FromPeer) {
        if let FromPeer::Hello(hello) = message {
            let (hello, waits) = (hello.clone(), BTreeSet::new());
            let end =
                SimulatedClient { hello, sent: Vec::new(), arrived: 0, acknowledged: 0, waits };
            self.clients.entry(client).or_insert(end);
            return;
        }
        let Some(end) = self.clients.get_mut(&client) else { return };
        if let FromPeer::Client(ClientToServer::Stream(commands)) = message {
            end.waits.extend(commands.iter().filter_map(ClientCommand::request));
        }
        end.sent.push(message.clone());
    }

    /// Counts a client's message; returns the number that have arrived.
    pub fn arrive(&mut self, client: PeerId, message: &FromPeer) -> u64 {
        let Some(end) = self.clients.get_mut(&client) else { return 0 };
        end.arrived += u64::from(!matches!(message, FromPeer::Hello(_)));
        end.arrived
    }

    /// Returns whether a client still waits for the answer that a message is.
    pub fn is_awaited(&mut self, client: PeerId, message: &ToPeer) -> bool {
        match (message.answer(), self.clients.get_mut(&client)) {
            (Some(answer), Some(end)) => end.waits.remove(&answer.request),
            _ => true,
        }
    }
}

impl World {
    /// Has the dispatcher keep a journal. Each peer's hello has its token.
    pub fn keep_journal(&mut self, limits: Limits) {
        let records: Vec<_> = self.dispatcher.keep_journal().iter().map(read_back).collect();
        let (durable, clients, joining) = (records.len(), BTreeMap::new(), BTreeSet::new());
        self.kept = Some(Box::new(DurableWorld { limits, records, durable, clients, joining }));
    }

    /// Returns the history that the journal has.
    pub fn journal(&self) -> &[JournalRecord] {
        self.kept.as_ref().map_or(&[], |kept| &kept.records)
    }

    /// Returns the token of a peer, if there is a journal.
    pub(crate) fn token(&self, peer: PeerId) -> Option<u128> {
        let owner = self.owners.get(&peer).copied().unwrap_or(peer);
        self.kept.as_ref().map(|_| token(owner))
    }

    /// Makes the journal's records durable. Returns whether there were any.
    pub(crate) fn flush_journal(&mut self) -> bool {
        if self.kept.as_ref().is_none_or(|kept| kept.durable == kept.records.len()) {
            return false;
        }
        self.make_durable();
        self.send_outbox();
        true
    }

    /// Adds to the journal, and perhaps makes it durable.
    pub(crate) fn write_journal(&mut self) {
        let Some(kept) = &mut self.kept else { return };
        kept.records.extend(self.dispatcher.take_journal().iter().map(read_back));
        let fresh = kept.records[kept.durable..].iter();
        // A session that its client knows of can be resumed.
        let begins = fresh.clone().any(|record| matches!(record, JournalRecord::Session { .. }));
        if fresh.len() == 0 || !begins && self.links.chance.below(3) > 0 {
            return;
        }
        self.make_durable();
    }

    fn make_durable(&mut self) {
        let Some(kept) = &mut self.kept else { return };
        let fresh = kept.records[kept.durable..].iter();
        let bases: Vec<(SessionId, u64)> = fresh.filter_map(JournalRecord::awaited).collect();
        if self.links.chance.below(20) == 0 {
            // The journal is rewritten.
            kept.records = self.dispatcher.journal_records().iter().map(read_back).collect();
        }
        kept.durable = kept.records.len();
        kept.clients.values_mut().for_each(|end| end.acknowledged = end.arrived);
        for (session, snapshot) in bases {
            self.dispatcher.snapshot_written(self.now, session, snapshot);
        }
    }

    /// Kills and restarts the dispatcher.
    pub(crate) fn restart(&mut self) {
        let Some(mut kept) = self.kept.take() else { return };
        self.links.retain(|flight| match flight.load {
            Load::Message(_) => flight.from != End::Server && flight.to != End::Server,
            Load::NoticeDelay => flight.to != End::Server,
            Load::Turn | Load::Start(..) => true,
        });
        let mut history = History::default();
        kept.records.drain(..).take(kept.durable).for_each(|record| history.add(record));
        self.dispatcher = Dispatcher::new(String::new(), kept.limits, None);
        self.dispatcher.expect_workers(self.now, &mut history);
        let mut taken = BTreeMap::new();
        for session in history.take_sessions() {
            let known = session.hello.resume.as_ref().map_or(0, |resume| resume.token);
            let client = kept.clients.keys().find(|client| token(**client) == known).copied();
            let Some(client) = client else { continue };
            if !self.is_connected(client) {
                if session.is_named() {
                    let is_detached = session.is_detached;
                    let adopted = self.dispatcher.adopt(self.now, client, session);
                    if adopted.is_ok() && !is_detached {
                        self.dispatcher.disconnect(self.now, client, "it did not come back");
                    }
                }
                continue;
            }
            let received = session.received;
            match self.dispatcher.adopt(self.now, client, session) {
                Ok(()) => drop(taken.insert(client, received)),
                Err(reason) => {
                    // Its lineage was not kept.
                    self.credit.remove(&client);
                    kept.clients.remove(&client);
                    let reason = format!("the session has ended: {reason}");
                    let goodbye = Goodbye { reason };
                    self.mailboxes.entry(client).or_default().push(goodbye.into());
                }
            }
        }
        kept.records = self.dispatcher.keep_journal().iter().map(read_back).collect();
        kept.durable = kept.records.len();
        // Those that are gone may have left named sessions, which their tokens identify.
        let ends = kept.clients.keys().copied().filter(|client| self.is_connected(*client));
        let ends: Vec<PeerId> = ends.collect();
        for client in ends {
            let Some(end) = kept.clients.get_mut(&client) else { continue };
            let base = taken.get(&client).map_or(0, |received| end.acknowledged.max(*received));
            (end.arrived, end.acknowledged) = (base, base);
            let again = end.sent[base as usize..].to_vec();
            let (hello, waits) = (end.hello.clone(), end.waits.iter().copied().collect());
            let resume = Resume { sent: end.sent.len() as u64, waits, ..Resume::default() };
            let open = weight(&again);
            self.credit.insert(client, open);
            if let Some(mailbox) = self.mailboxes.get_mut(&client) {
                mailbox.retain(|message| {
                    !matches!(message, ToPeer::Client(ServerToClient::Credit(_)))
                });
                mailbox.push(renewed(open));
            }
            if taken.contains_key(&client) {
                self.dispatcher.client_returned(self.now, client, &resume);
            } else {
                self.links.send(self.now, client, End::Server, Mail::Server(hello.into()));
            }
            for message in again {
                self.links.send(self.now, client, End::Server, Mail::Server(message));
            }
        }
        self.kept = Some(kept);
        self.rejoin();
        self.send_outbox();
    }

    /// Whether a client's link is not broken.
    fn is_connected(&self, client: PeerId) -> bool {
        self.mailboxes.contains_key(&client) && !self.links.is_broken(client, End::Server)
    }

    /// The running workers reconnect.
    fn rejoin(&mut self) {
        self.sent.clear();
        // Messages that waited for a worker's disk were for the old dispatcher.
        self.states.values_mut().for_each(WorkerFolder::forget);
        let there: Vec<PeerId> = self.workers.keys().copied().collect();
        for peer in there {
            if self.links.is_broken(peer, End::Server) {
                continue;
            }
            let (mut out, name) = (Vec::new(), self.names[&peer].clone());
            if let Some(worker) = self.workers.get_mut(&peer) {
                worker.renew(true, &mut out);
            }
            self.send_out(peer, out);
            if let Some(kept) = &mut self.kept {
                kept.joining.insert(peer);
            }
            let hello = self.worker_hello(peer, name).into();
            self.links.send(self.now, peer, End::Server, Mail::Server(hello));
        }
    }

    /// Reports to a worker whether the dispatcher needs its snapshots.
    pub(crate) fn welcome_worker(&mut self, peer: PeerId, welcome: &WorkerWelcome) {
        let mut out = Vec::new();
        self.read_state(peer, welcome.is_renewed);
        let is_joining = self.kept.as_mut().is_some_and(|kept| kept.joining.remove(&peer));
        if let Some(worker) = self.workers.get_mut(&peer).filter(|_| is_joining) {
            worker.renew(welcome.is_renewed, &mut out);
        }
        self.send_out(peer, out);
    }

    /// Returns whether a worker defers a message because it has not reconnected yet.
    pub(crate) fn is_early(&self, to: PeerId) -> bool {
        !self.links.is_broken(End::Server, to)
            && self.kept.as_ref().is_some_and(|kept| kept.joining.contains(&to))
    }
}

/// Notifies a client's driver of the dispatcher's restart, and of the weight in flight.
fn renewed(open: u64) -> ToPeer {
    let (is_kept, is_renewed) = (true, true);
    let welcome = ClientWelcome { window: open, is_kept, is_renewed, ..ClientWelcome::default() };
    Welcome::Client(welcome).into()
}
