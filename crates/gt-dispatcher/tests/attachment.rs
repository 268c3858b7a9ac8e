//! Sessions that outlive their clients: who may attach to them, and what is left of them.

use std::time::Duration;

use bytes::Bytes;
use gt_dispatcher::{Dispatcher, Limits, PeerId, ToPeer};
use gt_ir::entitlement::Usage;
use gt_ir::message::{
    Answer, Badge, ClientHello, ClientToServer, ClientWelcome, Reply, Role, ServerToClient,
    ServerToWorker, Welcome, WorkerToServer,
};
use gt_ir::{
    Attach, ClientCommand, Kept, KeptTensor, RequestId, SessionOrigin, TensorId, WorkerCommand,
};

use crate::common::{Program, worker};

/// A dispatcher with a worker that completes everything at once.
struct Cluster {
    dispatcher: Dispatcher,
    now: Duration,
    /// The tensors that the worker was asked to free.
    freed: Vec<TensorId>,
    to_clients: Vec<(PeerId, ToPeer)>,
}

impl Cluster {
    fn new() -> Cluster {
        let dispatcher = Dispatcher::new(String::new(), Limits::default(), None);
        let (freed, to_clients) = (Vec::new(), Vec::new());
        let mut cluster = Cluster { dispatcher, now: Duration::ZERO, freed, to_clients };
        let hello = worker("w".into(), None);
        cluster.dispatcher.handle(Duration::ZERO, PeerId::worker(1), hello);
        cluster.take_outbox();
        cluster
    }

    fn take_outbox(&mut self) {
        let mut out = Vec::new();
        self.dispatcher.take_outbox(&mut out);
        for (peer, message) in out {
            match message {
                ToPeer::Worker(ServerToWorker::Work { lane, commands }) => {
                    let weight = commands.iter().map(WorkerCommand::weight).sum();
                    self.freed.extend(commands.iter().filter_map(|command| match command {
                        WorkerCommand::Free(id) => Some(*id),
                        _ => None,
                    }));
                    let usage = Usage::default();
                    let done = WorkerToServer::LaneDone { lane, weight, usage };
                    self.dispatcher.handle(self.now, peer, done);
                }
                message if peer.role == Role::Client => self.to_clients.push((peer, message)),
                _ => {}
            }
        }
    }

    fn connect(&mut self, number: u64, user: &str, attach: Option<Attach>) -> PeerId {
        let badge = Badge { user: user.into(), team: String::new(), proof: [0; 32] };
        let hello = ClientHello {
            badge: (!user.is_empty()).then(|| Box::new(badge)),
            attach: attach.map(Box::new),
            ..ClientHello::new(SessionOrigin::new(format!("p{number}")))
        };
        let peer = PeerId::client(number);
        self.dispatcher.handle(self.now, peer, gt_ir::message::Hello::Client(hello));
        self.take_outbox();
        peer
    }

    fn send(&mut self, peer: PeerId, message: ClientToServer) {
        self.dispatcher.handle(self.now, peer, message);
        self.take_outbox();
    }

    fn tick(&mut self, now: Duration) {
        self.now = now;
        self.dispatcher.tick(now);
        self.take_outbox();
    }

    fn leave(&mut self, peer: PeerId) {
        self.dispatcher.disconnect(self.now, peer, "killed");
        self.take_outbox();
    }

    /// Returns the welcome of a client, or why it was refused.
    fn answer(&self, peer: PeerId) -> Option<Result<&ClientWelcome, &str>> {
        self.to_clients.iter().rev().find_map(|(to, message)| match message {
            ToPeer::Welcome(Welcome::Client(welcome)) if *to == peer => Some(Ok(welcome)),
            ToPeer::Goodbye(goodbye) if *to == peer => Some(Err(goodbye.reason.as_str())),
            _ => None,
        })
    }

    fn refusal(&self, peer: PeerId) -> &str {
        self.answer(peer).expect("an answer").expect_err("a refusal")
    }

    fn replies(&self, peer: PeerId) -> Vec<&Result<Reply, gt_ir::message::Failure>> {
        let all = self.to_clients.iter().filter_map(|(to, message)| match message {
            ToPeer::Client(ServerToClient::Answer(Answer { result, .. })) if *to == peer => {
                Some(result)
            }
            _ => None,
        });
        all.collect()
    }
}

fn attach(name: &str) -> Attach {
    Attach { name: name.into(), or_create: false, take_over: false, token: None }
}

fn or_create(name: &str) -> Option<Attach> {
    Some(Attach { or_create: true, ..attach(name) })
}

/// Two tensors, of which the first is kept; and a request that is not answered.
fn program() -> Vec<ClientCommand> {
    let mut program = Program::default();
    let kept = program.ones(&[2]);
    program.ones(&[3]);
    program.fetch(kept);
    let meta = gt_ir::Meta::new(gt_ir::DType::F32, gt_ir::Shape::new(&[2]).unwrap());
    let tensors = vec![KeptTensor { id: TensorId(0), meta }];
    let structure = Bytes::from_static(b"[]");
    let keep = Kept { name: "state".into(), structure, tensors };
    program.commands.push(ClientCommand::Keep(Box::new(keep)));
    program.commands
}

#[test]
fn what_is_kept_stays_and_the_rest_is_freed() {
    let mut cluster = Cluster::new();
    let one = cluster.connect(1, "", or_create("run"));
    let welcome = cluster.answer(one).unwrap().unwrap();
    assert!(!welcome.is_attached && welcome.name == "run #1", "{welcome:?}");
    cluster.send(one, ClientToServer::Stream(program()));
    cluster.leave(one);
    assert_eq!(cluster.freed, [TensorId(1)], "what is not kept");
    let two = cluster.connect(2, "", or_create("run"));
    let welcome = cluster.answer(two).unwrap().unwrap();
    assert!(welcome.is_attached);
    assert_eq!((welcome.numbers.tensor, welcome.numbers.request), (2, 1));
    let request = RequestId(1);
    cluster.send(two, ClientToServer::Stream(vec![ClientCommand::Kept { request }]));
    let [Ok(Reply::Kept(kept))] = cluster.replies(two)[..] else { panic!("one answer") };
    assert_eq!((kept.len(), kept[0].name.as_str()), (1, "state"));
    assert_eq!(cluster.dispatcher.population(), (1, 1), "it is the same session");
    // It ends for good.
    cluster.send(two, ClientToServer::End);
    assert_eq!(cluster.dispatcher.population(), (0, 1));
    let three = cluster.connect(3, "", Some(attach("run")));
    assert!(cluster.refusal(three).contains("there is no session 'run'"));
}

#[test]
fn a_session_without_a_name_ends_with_its_client() {
    let mut cluster = Cluster::new();
    let one = cluster.connect(1, "", None);
    cluster.send(one, ClientToServer::Stream(program()));
    cluster.leave(one);
    assert_eq!(cluster.dispatcher.population(), (0, 1));
}

#[test]
fn names_belong_to_users() {
    let mut cluster = Cluster::new();
    let ada = cluster.connect(1, "ada", or_create("run"));
    assert!(cluster.answer(ada).unwrap().is_ok());
    // Another user's session of the same name is another session.
    let eve = cluster.connect(2, "eve", Some(attach("run")));
    assert!(cluster.refusal(eve).contains("no session of user eve has a name"));
    let eve = cluster.connect(3, "eve", or_create("run"));
    assert!(!cluster.answer(eve).unwrap().unwrap().is_attached);
    let nobody = cluster.connect(4, "", Some(attach("run")));
    assert!(cluster.refusal(nobody).contains("no session without a user's key"));
}

#[test]
fn the_second_is_told_who_has_it_and_may_take_over() {
    let mut cluster = Cluster::new();
    let one = cluster.connect(1, "ada", or_create("run"));
    cluster.tick(Duration::from_secs(90));
    let two = cluster.connect(2, "ada", Some(attach("run")));
    let reason = cluster.refusal(two);
    assert!(reason.contains("held by p1 ada, for 90 s") && reason.contains("take_over=True"));
    let three = cluster.connect(3, "ada", Some(Attach { take_over: true, ..attach("run") }));
    assert!(cluster.answer(three).unwrap().unwrap().is_attached);
    assert!(cluster.refusal(one).contains("taken over by p3 ada"));
    // The first one's link ends: that changes nothing.
    cluster.leave(one);
    assert_eq!(cluster.dispatcher.population(), (1, 1));
    let four = cluster.connect(4, "ada", Some(attach("run")));
    assert!(cluster.refusal(four).contains("held by p3 ada"));
}

#[test]
fn one_that_would_begin_a_session_waits_until_the_holder_is_known_to_be_gone() {
    let mut cluster = Cluster::new();
    let one = cluster.connect(1, "", or_create("run"));
    let two = cluster.connect(2, "", or_create("run"));
    assert!(cluster.answer(two).is_none(), "it waits");
    assert_eq!(cluster.dispatcher.next_deadline(), Some(Duration::from_secs(9)));
    cluster.dispatcher.set_away(Duration::from_secs(3), one, true);
    cluster.take_outbox();
    assert!(cluster.answer(two).unwrap().unwrap().is_attached, "the link of the first is lost");
    // A holder that lives keeps it.
    let three = cluster.connect(3, "", or_create("run"));
    cluster.tick(Duration::from_secs(8));
    assert!(cluster.answer(three).is_none());
    cluster.tick(Duration::from_secs(9));
    assert!(cluster.refusal(three).contains("is held by p2"));
    // One that gives up is forgotten.
    let four = cluster.connect(4, "", or_create("run"));
    cluster.leave(four);
    cluster.leave(two);
    assert!(cluster.answer(four).is_none());
    assert_eq!(cluster.dispatcher.next_deadline(), None);
}

#[test]
fn one_that_waits_gets_what_is_kept_and_no_more() {
    let mut cluster = Cluster::new();
    let one = cluster.connect(1, "", or_create("run"));
    cluster.send(one, ClientToServer::Stream(program()));
    let two = cluster.connect(2, "", or_create("run"));
    cluster.leave(one);
    assert!(cluster.answer(two).unwrap().unwrap().is_attached);
    assert_eq!(cluster.freed, [TensorId(1)], "what is not kept");
}

#[test]
fn one_that_takes_over_gets_a_session_for_which_another_waits() {
    let mut cluster = Cluster::new();
    let one = cluster.connect(1, "", or_create("run"));
    let two = cluster.connect(2, "", or_create("run"));
    let three = cluster.connect(3, "", Some(Attach { take_over: true, ..attach("run") }));
    assert!(cluster.answer(three).unwrap().unwrap().is_attached);
    assert!(cluster.refusal(one).contains("taken over by p3"));
    assert!(cluster.answer(two).is_none(), "it waits for the third");
    cluster.leave(three);
    assert!(cluster.answer(two).unwrap().unwrap().is_attached);
}

#[test]
fn a_private_session_stays_private() {
    let mut cluster = Cluster::new();
    let private = Attach { token: Some(7), ..or_create("mine").unwrap() };
    let one = cluster.connect(1, "", Some(private.clone()));
    let (request, name) = (RequestId(0), "mine".to_string());
    let detach = ClientCommand::Detach { request, name, token: None };
    cluster.send(one, ClientToServer::Stream(vec![detach]));
    cluster.leave(one);
    let two = cluster.connect(2, "", or_create(" mine "));
    assert!(cluster.refusal(two).contains("is private"));
    let three = cluster.connect(3, "", Some(private));
    assert!(cluster.answer(three).unwrap().unwrap().is_attached);
}

#[test]
fn a_private_session_wants_its_token() {
    let mut cluster = Cluster::new();
    let one = cluster.connect(1, "", None);
    let (request, name, token) = (RequestId(0), "mine".to_string(), Some(7));
    let detach = ClientCommand::Detach { request, name, token };
    cluster.send(one, ClientToServer::Stream(vec![detach]));
    assert!(matches!(cluster.replies(one)[..], [Ok(Reply::Detached)]));
    cluster.leave(one);
    for (number, given) in [(2, None), (3, Some(8)), (4, Some(7 | 1 << 127))] {
        let wanted = Attach { token: given, take_over: true, ..attach("mine") };
        let guesser = cluster.connect(number, "", Some(wanted));
        assert!(cluster.refusal(guesser).contains("is private"));
    }
    let right = cluster.connect(5, "", Some(Attach { token: Some(7), ..attach("mine") }));
    assert!(cluster.answer(right).unwrap().unwrap().is_attached);
}

#[test]
fn a_name_that_is_taken_or_not_valid_is_refused() {
    let mut cluster = Cluster::new();
    cluster.connect(1, "", or_create("run"));
    let two = cluster.connect(2, "", None);
    let names = ["run".to_string(), String::new(), "x".repeat(65), "a\nb".into(), "a|b".into()];
    for (number, name) in (0..).zip(names) {
        let detach = ClientCommand::Detach { request: RequestId(number), name, token: None };
        cluster.send(two, ClientToServer::Stream(vec![detach]));
    }
    let reasons: Vec<String> = cluster
        .replies(two)
        .into_iter()
        .map(|result| result.as_ref().unwrap_err().reason.clone())
        .collect();
    let wanted = ["'run' without a user's key already", "empty", "65 characters", "'\\n'", "'|'"];
    for (reason, wanted) in reasons.iter().zip(wanted) {
        assert!(reason.contains(wanted), "{reason}");
    }
    assert_eq!(reasons.len(), wanted.len());
    let three = cluster.connect(3, "", or_create("a\u{202e}b"));
    assert!(cluster.refusal(three).contains("has the character"));
    cluster.leave(two);
    assert_eq!(cluster.dispatcher.population(), (1, 1), "it has no name");
}

#[test]
fn what_surrounds_kept_tensors_is_bounded() {
    let mut cluster = Cluster::new();
    let one = cluster.connect(1, "", or_create("run"));
    let structure = Bytes::from(vec![0; Kept::MOST_BYTES / 2]);
    for number in 0..2 {
        let kept =
            Kept { name: format!("k{number}"), structure: structure.clone(), tensors: Vec::new() };
        cluster.send(one, ClientToServer::Stream(vec![ClientCommand::Keep(Box::new(kept))]));
    }
    let reason = cluster.refusal(one);
    assert!(reason.contains("are allowed"), "{reason}");
    assert_eq!(cluster.dispatcher.population(), (0, 1));
}
