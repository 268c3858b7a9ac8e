//! The operator's policy: sessions, workers, wall and idle time of users and teams.

use std::time::Duration;

use crate::common::{client, worker};
use gt_dispatcher::rules::{PolicyRule, Rules};
use gt_dispatcher::{Dispatcher, FromPeer, Limits, PeerId, ToPeer};
use gt_ir::entitlement::{MemoryWait, PolicyKind, Usage};
use gt_ir::message::{
    Badge, ClientToServer, Reply, ServerToClient, ServerToWorker, WorkerToServer,
};
use gt_ir::status::Status;
use gt_ir::{
    Attribute, ClientCommand, Content, Create, DType, Incarnation, Instruction, LaneId, Meta,
    Operand, RequestId, Scalar, Shape, SlotId, SourceId, TensorData, TensorId, ops,
};

const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

struct World {
    dispatcher: Dispatcher,
    now: Duration,
}

type Out = Vec<(u64, ToPeer)>;

impl World {
    fn new(workers: u64, rules: Rules) -> World {
        let dispatcher = Dispatcher::new(String::new(), Limits::default(), None);
        let mut world = World { dispatcher, now: Duration::ZERO };
        assert_eq!(world.dispatcher.set_rules(Duration::ZERO, rules), Vec::<String>::new());
        (1..=workers).for_each(|peer| drop(world.join(peer)));
        world
    }

    fn out(&mut self) -> Out {
        let mut out = Vec::new();
        self.dispatcher.take_outbox(&mut out);
        out.into_iter().map(|(peer, message)| (peer.number, message)).collect()
    }

    /// Connects a worker.
    fn join(&mut self, number: u64) -> Out {
        self.send(PeerId::worker(number), worker(format!("p{number}"), None))
    }

    /// Connects a client of this user, if any.
    fn connect(&mut self, number: u64, user: &str, team: &str) -> Out {
        let badge = Badge { user: user.into(), team: team.into(), proof: [0; 32] };
        let badge = (!user.is_empty()).then_some(badge);
        self.send(PeerId::client(number), client(format!("p{number}"), badge))
    }

    fn send(&mut self, peer: PeerId, message: impl Into<FromPeer>) -> Out {
        self.dispatcher.handle(self.now, peer, message);
        self.out()
    }

    /// Sends a message of the worker 1.
    fn report(&mut self, message: WorkerToServer) -> Out {
        self.send(PeerId::worker(1), message)
    }

    /// Sends a message of the client 11.
    fn say(&mut self, message: ClientToServer) -> Out {
        self.send(PeerId::client(11), message)
    }

    fn tick(&mut self, now: Duration) -> Out {
        self.now = now;
        self.dispatcher.tick(now);
        self.out()
    }

    fn status(&mut self, peer: u64) -> Status {
        let ask = ClientToServer::Stream(vec![ClientCommand::Status { request: RequestId(9) }]);
        let out = self.send(PeerId::client(peer), ask);
        let status = out.iter().find_map(|(_, message)| match &message.answer()?.result {
            Ok(Reply::Status(status)) => Some((**status).clone()),
            _ => None,
        });
        status.expect("answered at once")
    }
}

fn refusal(out: &Out) -> Option<&str> {
    out.iter().find_map(|(_, message)| match message {
        ToPeer::Goodbye(goodbye) => Some(goodbye.reason.as_str()),
        _ => None,
    })
}

fn notice(out: &Out) -> Option<&str> {
    out.iter().find_map(|(_, message)| match message {
        ToPeer::Client(ServerToClient::Notice { text }) => Some(text.as_str()),
        _ => None,
    })
}

fn ada(rule: PolicyRule) -> Rules {
    Rules { users: [("ada".into(), rule)].into(), ..Rules::default() }
}

#[test]
fn users_and_teams_have_limited_sessions() {
    let most = |sessions| PolicyRule { sessions: Some(sessions), ..PolicyRule::default() };
    let teams = [("vision".into(), most(3))].into();
    let mut world = World::new(1, Rules { teams, ..ada(most(2)) });
    assert_eq!(refusal(&world.connect(11, "ada", "vision")), None);
    assert_eq!(refusal(&world.connect(12, "ada", "")), None);
    let out = world.connect(13, "ada", "vision");
    let reason = refusal(&out).unwrap();
    assert!(reason.starts_with(
        "user ada may have 2 sessions at a time, and has them: p11 ada #1, p12 ada #2"
    ));
    for peer in [14, 15] {
        assert_eq!(refusal(&world.connect(peer, "eve", "vision")), None);
    }
    let out = world.connect(16, "zoe", "vision");
    assert!(refusal(&out).unwrap().starts_with("team vision may have 3 sessions"));
    // A session that ends makes room.
    world.dispatcher.disconnect(world.now, PeerId::client(11), "gone");
    assert_eq!(refusal(&world.connect(17, "ada", "vision")), None);
}

#[test]
fn users_have_limited_workers() {
    let two = PolicyRule { workers: Some(2), ..PolicyRule::default() };
    let mut world = World::new(3, ada(two));
    let hosts = |out: &Out| {
        let welcome = out.iter().any(|(_, message)| matches!(message, ToPeer::Welcome(_)));
        assert!(welcome, "{out:?}");
    };
    hosts(&world.connect(11, "ada", ""));
    hosts(&world.connect(12, "ada", ""));
    let homes: Vec<u32> = world.status(11).workers.iter().map(|worker| worker.homes).collect();
    assert_eq!(homes, [1, 1, 0], "both are on the same two");
    // A fourth worker is not one of ada's two, but one of eve's.
    world.join(4);
    hosts(&world.connect(13, "eve", ""));
    hosts(&world.connect(14, "eve", ""));
    hosts(&world.connect(15, "ada", ""));
    let homes: Vec<u32> = world.status(11).workers.iter().map(|worker| worker.homes).collect();
    assert_eq!(homes, [2, 1, 1, 1]);
    // Another worker replaces a lost one.
    world.dispatcher.disconnect(world.now, PeerId::worker(1), "gone");
    let homes: Vec<u32> = world.status(11).workers.iter().map(|worker| worker.homes).collect();
    assert_eq!(homes.iter().sum::<u32>(), 5, "{homes:?}");
}

#[test]
fn sessions_end_after_their_wall_time_and_are_warned() {
    let wall = PolicyRule { wall: Some(seconds(1000)), ..PolicyRule::default() };
    let mut world = World::new(1, ada(wall));
    world.connect(11, "ada", "");
    world.connect(12, "eve", "");
    assert_eq!(world.dispatcher.next_deadline(), Some(seconds(900)));
    assert_eq!(world.tick(seconds(899)).len(), 0);
    let out = world.tick(seconds(900));
    let wants = "the session p11 ada #1 ends in 100 s: user ada may keep one for 17 min; save what is needed";
    assert_eq!((notice(&out), out.len()), (Some(wants), 1));
    assert_eq!(world.tick(seconds(950)).len(), 0, "warned once");
    assert_eq!(world.dispatcher.next_deadline(), Some(seconds(1000)));
    let out = world.tick(seconds(1000));
    let reason = "it has lasted 17 min, as long as user ada may keep a session";
    assert_eq!((refusal(&out), world.dispatcher.population()), (Some(reason), (1, 1)));
    assert!(out.iter().any(|(to, message)| *to == 1
        && matches!(message, ToPeer::Worker(ServerToWorker::EndSession { .. }))));
}

#[test]
fn idle_sessions_end_and_active_sessions_stay() {
    let idle = PolicyRule { idle: Some(seconds(100)), ..PolicyRule::default() };
    let mut world = World::new(1, Rules { default: idle, ..Rules::default() });
    world.connect(11, "", "");
    assert!(
        notice(&world.tick(seconds(90))).unwrap().contains("has nothing to do and ends in 10 s")
    );
    world.status(11);
    assert_eq!(notice(&world.tick(seconds(100))), None, "a request counts as activity");
    assert!(notice(&world.tick(seconds(180))).is_some(), "warned again");
    let out = world.tick(seconds(190));
    assert!(
        refusal(&out).unwrap().contains("nothing to do for 100 s, as long as all without a user")
    );
    // A clock that jumps, as when the server was suspended, ends no session without a warning.
    world.connect(12, "", "");
    let out = world.tick(seconds(1_000_000));
    assert!(refusal(&out).is_none() && notice(&out).unwrap().contains("ends in 10 s"));
    assert_eq!(world.dispatcher.next_deadline(), Some(seconds(1_000_010)));
    assert_eq!(world.tick(seconds(1_000_009)).len(), 0);
    assert!(refusal(&world.tick(seconds(1_000_010))).is_some());
    assert_eq!(world.dispatcher.population(), (0, 1));
}

#[test]
fn set_rules_reports_users_on_too_many_workers() {
    let mut world = World::new(2, Rules::default());
    world.connect(11, "ada", "");
    world.connect(12, "ada", "");
    let one = PolicyRule { workers: Some(1), ..PolicyRule::default() };
    let exceeded = world.dispatcher.set_rules(world.now, ada(one));
    assert_eq!(exceeded, ["user ada is on 2 workers, and may be on 1"]);
}

#[test]
fn a_new_policy_ends_no_session_without_a_warning() {
    let wall = |most| ada(PolicyRule { wall: Some(seconds(most)), ..PolicyRule::default() });
    let mut world = World::new(1, wall(1000));
    world.connect(11, "ada", "");
    assert!(notice(&world.tick(seconds(900))).unwrap().contains("ends in 100 s"));
    // With a longer limit, the session is warned again before that is over.
    world.dispatcher.set_rules(world.now, wall(2000));
    assert_eq!(world.tick(seconds(1100)).len(), 0);
    assert!(notice(&world.tick(seconds(1800))).unwrap().contains("ends in 3 min"));
    // With a limit that has passed already, the session gets a full warning time.
    world.dispatcher.set_rules(world.now, wall(500));
    let out = world.tick(seconds(1801));
    assert!(notice(&out).unwrap().contains("ends in 50 s") && refusal(&out).is_none());
    assert_eq!(world.tick(seconds(1850)).len(), 0);
    assert!(refusal(&world.tick(seconds(1851))).is_some());
}

#[test]
fn sessions_of_absent_clients_count_and_are_named() {
    let one = PolicyRule { sessions: Some(1), ..PolicyRule::default() };
    let mut world = World::new(1, ada(one));
    world.connect(11, "ada", "");
    world.dispatcher.set_away(Duration::ZERO, PeerId::client(11), true);
    world.out();
    let out = world.connect(12, "ada", "");
    let reason = refusal(&out).unwrap();
    assert!(reason.contains("p11 ada #1 (whose client is away)") && reason.contains("--grace"));
}

#[test]
fn a_new_policy_applies_to_connected_sessions() {
    let mut world = World::new(2, Rules::default());
    world.connect(11, "ada", "");
    let usage = Usage { device: 5_000_000, bytes: 1000, ..Usage::default() };
    let lane = LaneId { incarnation: Incarnation(1), slot: SlotId(0) };
    world.report(WorkerToServer::LaneDone { lane, weight: 0, usage });
    let rule = PolicyRule { share: Some(9), sessions: Some(0), ..PolicyRule::default() };
    let rules = Rules { policy_kind: PolicyKind::Priority, ..ada(rule) };
    let exceeded = world.dispatcher.set_rules(world.now, rules);
    let wants = ["user ada has 1 sessions, and may have 0"];
    assert_eq!(exceeded, wants);
    let out = world.out();
    let was_sent = |to: u64, wanted: fn(&ToPeer) -> bool| {
        out.iter().any(|(peer, message)| *peer == to && wanted(message))
    };
    for worker in [1, 2] {
        assert!(was_sent(worker, |message| *message
            == ServerToWorker::SetPolicy(PolicyKind::Priority).into()));
        assert!(was_sent(worker, |message| matches!(message,
            ToPeer::Worker(ServerToWorker::Admit { incarnation: Incarnation(1), entitlement }) if entitlement.user_weight == 9)));
    }
    let out = world.join(3);
    assert!(
        out.iter().any(|(to, message)| *to == 3
            && matches!(message, ToPeer::Worker(ServerToWorker::SetPolicy(_))))
    );
    let status = world.status(11);
    let session = &status.sessions[0];
    assert_eq!((session.busy, session.bytes), (Duration::from_millis(5), 1000));
    assert!((session.share - 1.0).abs() < 1e-9, "the only session");
}

/// Returns whether a lane was notified that it has received all commands of its session.
fn has_all(out: &Out) -> bool {
    let is_it = |message: &ToPeer| {
        matches!(message, ToPeer::Worker(ServerToWorker::MemoryTimeout { has_waited: false, .. }))
    };
    out.iter().any(|(_, message)| is_it(message))
}

fn short(lane: LaneId, number: u64) -> WorkerToServer {
    let wait = MemoryWait { number, bytes: 800, holder: "user ada".into() };
    WorkerToServer::MemoryWait { lane, wait: Some(wait) }
}

/// Commands that a client has not sent yet may free memory: only once it waits itself has it sent
/// all.
#[test]
fn memory_waits_end_only_when_the_session_has_sent_all() {
    let mut world = World::new(1, Rules::default());
    world.connect(11, "ada", "");
    let lane = LaneId { incarnation: Incarnation(1), slot: SlotId(0) };
    assert!(!has_all(&world.report(short(lane, 1))));
    for second in 1..100 {
        assert!(!has_all(&world.tick(seconds(second))), "its client is silent");
    }
    let ask = |request| {
        let tensor = TensorId(0);
        let fetch = ClientCommand::Fetch { request: RequestId(request), tensor, line: SourceId(0) };
        let meta = Meta::new(DType::F32, Shape::SCALAR);
        let data = TensorData::new(meta.dtype, meta.shape, vec![0; 4].into()).unwrap();
        let (output, content) = (TensorId(request), Content::Data(data));
        let create = Create { output, content, signal: 0, source: SourceId(0) };
        ClientToServer::Stream(vec![ClientCommand::Create(create), fetch])
    };
    assert!(has_all(&world.say(ask(0))), "it waits for a value");
    assert!(!has_all(&world.tick(seconds(100))), "notified once");
    let late = |out: &Out| {
        let mut all = out.iter();
        all.any(|(_, message)| {
            matches!(
                message,
                ToPeer::Worker(ServerToWorker::MemoryTimeout { has_waited: true, .. })
            )
        })
    };
    assert!(late(&world.tick(seconds(106))), "the wait for other sessions is bounded");
    // A lane that begins to wait later finds the stream drained.
    let none = WorkerToServer::MemoryWait { lane, wait: None };
    world.report(none);
    assert!(has_all(&world.report(short(lane, 2))));
}

/// A client without credit has sent all that it can.
#[test]
fn memory_waits_end_when_the_client_waits_for_credit() {
    let mut world = World::new(1, Rules::default());
    world.connect(11, "ada", "");
    let lane = LaneId { incarnation: Incarnation(1), slot: SlotId(0) };
    let fill = |first: u64, count: u64| {
        let full = |output: u64| {
            ClientCommand::Run(Instruction {
                operation: &ops::create::FULL,
                output: TensorId(output),
                results: [Meta::new(DType::F32, Shape::SCALAR)].into_iter().collect(),
                operands: [Operand::Scalar(Scalar::Int(1))].into_iter().collect(),
                attributes: [Attribute::dims(&[]), Attribute::DType(DType::F32)]
                    .into_iter()
                    .collect(),
                source: SourceId(0),
                signal: 0,
            })
        };
        ClientToServer::Stream((first..first + count).map(full).collect())
    };
    world.say(fill(0, 1000));
    assert!(!has_all(&world.report(short(lane, 1))));
    // The client reports that it waits for another reason than its window, but its next commands
    // have not arrived.
    assert!(has_all(&world.say(ClientToServer::AwaitCredit)));
    world.say(fill(1000, 1000));
    assert!(!has_all(&world.report(short(lane, 2))));
    let window = Limits::default().client_window;
    assert!(has_all(&world.say(fill(2000, window))));
}
