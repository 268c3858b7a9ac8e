//! Publications that cannot be stored, copied or found: each request is answered.

use std::time::Duration;

use bytes::Bytes;
use gt_dispatcher::rules::{PolicyRule, Rules};
use gt_dispatcher::{
    Dispatcher, FromPeer, History, JournalRecord, Limits, LineageLimits, PeerId, ToPeer,
};
use gt_ir::message::{
    Answer, Badge, ClientToServer, Failure, Hello, OperatorHello, OperatorToServer, Reply,
    ServerToClient, ServerToOperator, ServerToWorker, WorkerToServer,
};
use gt_ir::publication::{Audience, PUBLISHED};
use gt_ir::sharding::Block;
use gt_ir::snapshot::Unkept;
use gt_ir::stored::PublishedValues;
use gt_ir::{
    ClientCommand, Content, Create, DType, KeptTensor, Meta, Operand, Publish, RequestId,
    SessionId, Shape, SlotId, SourceId, TensorId, WorkerCommand,
};

use crate::common::{Program, client, worker};

const ADA: PeerId = PeerId::client(101);
const BOB: PeerId = PeerId::client(102);
const SHAPE: [usize; 2] = [16, 16];

/// A dispatcher, with clients and workers whose messages the tests write.
struct Server {
    dispatcher: Dispatcher,
    now: Duration,
    out: Vec<(PeerId, ToPeer)>,
}

impl Server {
    /// Returns a server with these workers, and sessions of ada and bob.
    fn new(workers: u64, rules: Rules) -> Server {
        Server::with_limits(workers, rules, Limits { lineage: None, ..Limits::default() })
    }

    fn with_limits(workers: u64, rules: Rules, limits: Limits) -> Server {
        let dispatcher = Dispatcher::new(String::new(), limits, None);
        let mut server = Server { dispatcher, now: Duration::ZERO, out: Vec::new() };
        server.dispatcher.set_rules(Duration::ZERO, rules);
        for number in 1..=workers {
            server.send(PeerId::worker(number), worker(format!("w{number}"), None));
        }
        for (peer, user) in [(ADA, "ada"), (BOB, "bob")] {
            let badge = Badge { user: user.into(), team: "vision".into(), proof: [0; 32] };
            server.send(peer, client(user.into(), Some(badge)));
        }
        server.out.clear();
        server
    }

    fn send(&mut self, peer: PeerId, message: impl Into<FromPeer>) {
        self.dispatcher.handle(self.now, peer, message);
        self.dispatcher.take_outbox(&mut self.out);
    }

    fn stream(&mut self, peer: PeerId, commands: Vec<ClientCommand>) {
        self.send(peer, ClientToServer::Stream(commands));
    }

    fn lose(&mut self, worker: u64) {
        self.dispatcher.disconnect(self.now, PeerId::worker(worker), "killed");
        self.dispatcher.take_outbox(&mut self.out);
    }

    /// Has ada publish a tensor of ones under a name.
    fn publish(&mut self, request: u64, name: &str) {
        let mut program = Program::default();
        program.ones(&SHAPE);
        self.stream(ADA, program.commands);
        self.publish_again(request, name);
    }

    /// Has ada publish her first tensor under a name.
    fn publish_again(&mut self, request: u64, name: &str) {
        let id = TensorId(0);
        let meta = Meta::new(DType::F32, Shape::new(&SHAPE).unwrap());
        let publish = Publish {
            request: RequestId(request),
            name: name.into(),
            audience: Audience::All,
            description: String::new(),
            structure: Bytes::new(),
            tensors: vec![KeptTensor { id, meta }],
            at: 0,
        };
        self.stream(ADA, vec![ClientCommand::Publish(Box::new(publish))]);
    }

    /// Has a client find a publication, and read its tensor; returns its number.
    fn find_and_read(&mut self, peer: PeerId, request: u64, name: &str) -> SessionId {
        self.find(peer, request, name);
        let Some(Ok(Reply::Found(found))) = self.answer(peer, request) else {
            panic!("it is found")
        };
        let meta = found.tensors[0];
        let (publication, index) = (found.publication, TensorId(0));
        let (need, parts) = (Block::whole(meta.shape), Vec::new());
        let values = PublishedValues { publication, index, meta, need, parts };
        let (output, source) = (TensorId(0), SourceId::default());
        let content = Content::Published(Box::new(values));
        let create = Create { output, content, signal: 0, source };
        self.stream(peer, vec![ClientCommand::Create(create)]);
        publication
    }

    /// Returns the publication that a worker was last asked to store, its slot and the worker.
    fn storing(&self) -> (SessionId, SlotId, PeerId) {
        let stored = self.out.iter().rev().find_map(|(peer, message)| match message {
            ToPeer::Worker(ServerToWorker::Work { lane, commands }) => {
                commands.iter().find_map(|command| match command {
                    WorkerCommand::Snapshot(snapshot) if snapshot.published.is_some() => {
                        Some((snapshot.session, lane.slot, *peer))
                    }
                    _ => None,
                })
            }
            _ => None,
        });
        stored.expect("a worker is asked to store a publication")
    }

    /// A worker reports on the values of a publication.
    fn report(&mut self, from: PeerId, of: (SessionId, SlotId), result: Result<u64, Unkept>) {
        let (session, slot) = of;
        let snapshot = PUBLISHED;
        self.send(from, WorkerToServer::BackupStored { session, slot, snapshot, result });
    }

    fn find(&mut self, peer: PeerId, request: u64, name: &str) {
        let (request, name) = (RequestId(request), name.into());
        self.stream(peer, vec![ClientCommand::Find { request, name }]);
    }

    /// Takes the answer to a request, if there is one.
    fn answer(&mut self, peer: PeerId, request: u64) -> Option<Result<Reply, Failure>> {
        let is_it = |(to, message): &(PeerId, ToPeer)| match message {
            ToPeer::Client(ServerToClient::Answer(Answer { request: of, .. })) => {
                *to == peer && of.0 == request
            }
            _ => false,
        };
        let place = self.out.iter().position(is_it)?;
        match self.out.remove(place).1 {
            ToPeer::Client(ServerToClient::Answer(answer)) => Some(answer.result),
            _ => None,
        }
    }

    fn error(&mut self, peer: PeerId, request: u64) -> String {
        let answer = self.answer(peer, request).expect("it is answered");
        answer.expect_err("it is refused").reason
    }

    /// Returns how many drains the messages report as done.
    fn drained(&self) -> usize {
        let is_done = |(_, message): &&(PeerId, ToPeer)| {
            matches!(message, ToPeer::Operator(ServerToOperator::Done { result: Ok(_), .. }))
        };
        self.out.iter().filter(is_done).count()
    }

    /// Returns the workers that were asked to hand values over, and to whom.
    fn handovers(&mut self) -> Vec<(PeerId, Option<u32>)> {
        let out = std::mem::take(&mut self.out);
        let handed = out.iter().filter_map(|(peer, message)| match message {
            ToPeer::Worker(ServerToWorker::HandOver { to, .. }) => Some((*peer, to.map(|it| it.0))),
            _ => None,
        });
        handed.collect()
    }
}

fn withdraw(request: u64, name: &str) -> ClientCommand {
    ClientCommand::Withdraw { request: RequestId(request), name: name.into() }
}

/// Returns a server on which ada has published a model that can be read, its number and slot, and
/// the worker that stored it.
fn published(workers: u64) -> (Server, (SessionId, SlotId), PeerId) {
    published_with(workers, Limits { lineage: None, ..Limits::default() })
}

fn published_with(workers: u64, limits: Limits) -> (Server, (SessionId, SlotId), PeerId) {
    let mut server = Server::with_limits(workers, Rules::default(), limits);
    server.publish(1, "model");
    let (id, slot, host) = server.storing();
    let copy = (1..=workers).map(PeerId::worker).find(|peer| *peer != host);
    server.report(copy.unwrap_or(host), (id, slot), Ok(1024));
    server.find(BOB, 50, "model");
    assert!(matches!(server.answer(BOB, 50), Some(Ok(Reply::Found(_)))));
    server.out.clear();
    (server, (id, slot), host)
}

#[test]
fn each_of_several_withdrawals_is_answered() {
    let (mut server, ..) = published(2);
    server.stream(ADA, vec![withdraw(7, "model"), withdraw(8, "other")]);
    assert_eq!(server.answer(ADA, 7), Some(Ok(Reply::Withdrawn { versions: 1 })));
    assert!(server.error(ADA, 8).contains("there is no publication 'other'"));
}

#[test]
fn a_withdrawal_of_an_invalid_batch_withdraws_nothing() {
    let (mut server, ..) = published(2);
    let unknown = ClientCommand::Forget { template: 77 };
    let invalid = ClientCommand::Free(TensorId(9999));
    server.stream(BOB, vec![withdraw(7, "model"), unknown, invalid]);
    let mut program = Program::default();
    program.ones(&[2]);
    server.stream(ADA, program.commands);
    server.find(ADA, 9, "model");
    assert!(matches!(server.answer(ADA, 9), Some(Ok(Reply::Found(_)))));
}

#[test]
fn a_find_ends_when_what_it_waits_for_is_refused() {
    let rule = PolicyRule { memory: Some(1500), ..PolicyRule::default() };
    let rules = Rules { teams: [("vision".into(), rule)].into(), ..Rules::default() };
    let mut server = Server::new(1, rules);
    server.publish(1, "model");
    assert!(matches!(server.answer(ADA, 1), Some(Ok(Reply::Published { .. }))));
    let mut program = Program::default();
    let Operand::Tensor(id) = program.ones(&SHAPE) else { panic!("a tensor") };
    let meta = Meta::new(DType::F32, Shape::new(&SHAPE).unwrap());
    // Another user of the team: the quota is that of both together.
    program.commands.push(ClientCommand::Publish(Box::new(Publish {
        request: RequestId(2),
        name: "copy".into(),
        audience: Audience::All,
        description: String::new(),
        structure: Bytes::new(),
        tensors: vec![KeptTensor { id, meta }],
        at: 0,
    })));
    server.stream(BOB, program.commands);
    let error = server.error(BOB, 2);
    assert!(
        error.contains("team vision may hold 1500, of which publications have 1024"),
        "{error}"
    );
    let notices = server
        .out
        .iter()
        .filter(|(_, message)| matches!(message, ToPeer::Client(ServerToClient::Notice { .. })));
    assert_eq!(notices.count(), 0, "the answer has the reason");
    server.find(ADA, 3, "copy");
    assert!(server.error(ADA, 3).contains("there is no publication 'copy'"));
}

#[test]
fn finds_fail_when_the_worker_that_stores_is_lost() {
    let mut server = Server::new(2, Rules::default());
    server.publish(1, "model");
    let (.., host) = server.storing();
    server.find(BOB, 2, "model");
    assert_eq!(server.answer(BOB, 2), None, "it waits until it is stored");
    server.lose(host.number);
    let error = server.error(BOB, 2);
    assert!(error.contains("the worker that stored its values was lost"), "{error}");
}

#[test]
fn a_worker_that_cannot_keep_a_copy_is_not_asked_again_and_again() {
    let (mut server, of, host) = published(2);
    let copy = if host.number == 1 { 2 } else { 1 };
    server.lose(copy);
    server.send(PeerId::worker(3), worker("w3".into(), None));
    let handed = server.handovers();
    assert_eq!(handed.len(), 1, "the new worker gets a copy: {handed:?}");
    server.report(PeerId::worker(3), of, Err(Unkept::Refused("its memory is full".into())));
    assert_eq!(server.handovers(), []);
    server.find(BOB, 60, "model");
    assert!(matches!(server.answer(BOB, 60), Some(Ok(Reply::Found(_)))), "one worker has it");
}

#[test]
fn a_publication_ends_whose_last_values_are_lost() {
    let (mut server, of, host) = published(1);
    server.report(host, of, Err(Unkept::Refused("the file is damaged".into())));
    server.find(BOB, 60, "model");
    assert!(server.error(BOB, 60).contains("there is no publication 'model'"));
}

#[test]
fn a_drain_waits_for_copies_that_are_made() {
    let (mut server, of, _) = published(2);
    server.send(PeerId::worker(3), worker("w3".into(), None));
    server.send(PeerId::operator(901), Hello::Operator(OperatorHello::new("operator")));
    for worker in ["w1", "w2"] {
        let (request, within) = (RequestId(1), Duration::from_secs(60));
        let worker = worker.into();
        let drain = OperatorToServer::Drain { request, worker, within, force: true };
        server.send(PeerId::operator(901), drain);
    }
    assert_eq!(server.drained(), 1, "the second still has the values");
    let handed = server.handovers();
    assert!(handed.iter().any(|(_, to)| *to == Some(2)), "the third gets a copy: {handed:?}");
    server.report(PeerId::worker(3), of, Ok(1024));
    server.now += Duration::from_secs(1);
    server.dispatcher.tick(server.now);
    server.dispatcher.take_outbox(&mut server.out);
    assert_eq!(server.drained(), 1, "the second has left, too");
}

#[test]
fn an_heir_inherits_what_a_revoked_user_has_published() {
    let (mut server, ..) = published(2);
    server.publish_again(3, "other");
    let revoked = |heir: Option<&str>| {
        let revoked = [("ada".to_string(), heir.map(str::to_string))].into();
        Rules { revoked, ..Rules::default() }
    };
    server.dispatcher.set_rules(server.now, revoked(Some("bob")));
    server.find(BOB, 60, "bob/model@1");
    assert!(matches!(server.answer(BOB, 60), Some(Ok(Reply::Found(_)))));
    server.find(BOB, 61, "other");
    assert!(server.error(BOB, 61).contains("there is no publication 'other'"), "it was not stored");
    server.stream(BOB, vec![withdraw(62, "model")]);
    assert_eq!(server.answer(BOB, 62), Some(Ok(Reply::Withdrawn { versions: 1 })));

    let (mut server, ..) = published(2);
    server.dispatcher.set_rules(server.now, revoked(None));
    server.find(BOB, 60, "ada/model");
    assert!(server.error(BOB, 60).contains("there is no publication 'ada/model'"));
}

#[test]
fn a_withdrawn_publication_stays_until_its_readers_are_restored() {
    let limits = Limits { lineage: Some(LineageLimits::default()), ..Limits::default() };
    let (mut server, ..) = published_with(2, limits);
    server.find_and_read(BOB, 60, "model");
    server.stream(ADA, vec![withdraw(7, "model")]);
    let mut history = History::default();
    server.dispatcher.journal_records().into_iter().for_each(|record| history.add(record));
    // The server is restarted. The policy revokes another user.
    let mut dispatcher = Dispatcher::new(String::new(), limits, None);
    let rules = Rules { revoked: [("eve".to_string(), None)].into(), ..Rules::default() };
    dispatcher.set_rules(server.now, rules);
    dispatcher.expect_workers(server.now, &mut history);
    let is_kept = |dispatcher: &Dispatcher| {
        let records = dispatcher.journal_records();
        records.iter().any(|record| matches!(record, JournalRecord::Publication(_)))
    };
    assert!(is_kept(&dispatcher), "no session is adopted yet");
    for (number, session) in (201..).zip(history.take_sessions()) {
        dispatcher.adopt(server.now, PeerId::client(number), session).unwrap();
    }
    dispatcher.tick(server.now);
    assert!(is_kept(&dispatcher), "what bob's session reads is not known yet");
}

#[test]
fn values_go_through_the_server_only_for_those_that_need_them() {
    let (mut server, of, host) = published(2);
    let unreachable = || Err(Unkept::Unreachable("the link broke".into()));
    for _ in 0..5 {
        server.report(host, of, unreachable());
    }
    assert_eq!(server.handovers(), [], "no worker waits for them");
    server.send(PeerId::worker(3), worker("w3".into(), None));
    let (publication, slot) = of;
    server.send(PeerId::worker(3), WorkerToServer::Needs { publication, slot });
    server.out.clear();
    for _ in 0..5 {
        server.report(host, of, unreachable());
    }
    assert_eq!(server.handovers(), [(host, None)], "once for the worker that waits");
}

#[test]
fn a_publication_is_stored_once_if_the_copy_cannot_be_sent() {
    let mut server = Server::new(2, Rules::default());
    server.publish(1, "model");
    let (id, slot, host) = server.storing();
    server.report(host, (id, slot), Err(Unkept::Unreachable("no route".into())));
    server.find(BOB, 2, "model");
    assert!(matches!(server.answer(BOB, 2), Some(Ok(Reply::Found(_)))));
    assert!(!server.handovers().is_empty(), "the copy is made otherwise");
}

#[test]
fn no_version_is_assigned_twice() {
    let (mut server, ..) = published(2);
    server.stream(ADA, vec![withdraw(7, "model")]);
    server.publish_again(8, "model");
    let published = Reply::Published { name: "ada/model@2".into() };
    assert_eq!(server.answer(ADA, 8), Some(Ok(published)));
}
