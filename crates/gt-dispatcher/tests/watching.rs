//! What watchers receive: events, names and the status; and when events are dropped.

use std::time::Duration;

use gt_dispatcher::{Dispatcher, FromPeer, Limits, PeerId, ToPeer};
use gt_ir::event::{EmitLevel, Event, EventKind, Track};
use gt_ir::message::{
    Badge, ClientHello, ClientToServer, Goodbye, Hello, Named, OperatorHello, Reply, Role,
    ServerToClient, ServerToWatcher, ServerToWorker, WatcherHello, WatcherToServer, WorkerHello,
    WorkerToServer,
};
use gt_ir::status::{Report, Status};
use gt_ir::{ClientCommand, RequestId, SessionId, SessionOrigin};

const CLIENT: PeerId = PeerId::client(1);
const WORKER: PeerId = PeerId::worker(1);
const WATCHER: PeerId = PeerId::watcher(2);
const SLOW: PeerId = PeerId::watcher(3);

/// A dispatcher, and the messages it has sent.
struct World {
    dispatcher: Dispatcher,
    out: Vec<(PeerId, ToPeer)>,
}

impl World {
    fn new() -> World {
        let dispatcher = Dispatcher::new(String::new(), Limits::default(), None);
        World { dispatcher, out: Vec::new() }
    }

    fn send(&mut self, peer: PeerId, message: impl Into<FromPeer>) -> Vec<(PeerId, ToPeer)> {
        self.dispatcher.handle(Duration::from_secs(1), peer, message);
        self.dispatcher.take_outbox(&mut self.out);
        std::mem::take(&mut self.out)
    }

    fn connect(&mut self, peer: PeerId, name: &str) -> Vec<(PeerId, ToPeer)> {
        let hello = match peer.role {
            Role::Client => Hello::Client(ClientHello::new(SessionOrigin::new(name))),
            Role::Worker => Hello::Worker(WorkerHello { rate: 1, ..WorkerHello::new(name) }),
            Role::Watcher => Hello::Watcher(WatcherHello::new(name)),
            Role::Operator => Hello::Operator(OperatorHello::new(name)),
        };
        self.send(peer, hello)
    }

    /// Polls as a watcher: returns names, events and the number dropped.
    fn watch(&mut self, peer: PeerId) -> (Vec<(Named, String)>, Vec<Event>, u64) {
        let mut names = Vec::new();
        for (to, message) in self.send(peer, WatcherToServer::Poll { limit: u32::MAX }) {
            assert_eq!(to, peer);
            match message {
                ToPeer::Watcher(ServerToWatcher::Names(more)) => names.extend(more),
                ToPeer::Watcher(ServerToWatcher::Events { events, dropped }) => {
                    return (names, events, dropped);
                }
                other => panic!("a watcher got {other:?}"),
            }
        }
        panic!("a watcher got no answer")
    }

    fn status(&mut self, peer: PeerId) -> Status {
        let request = RequestId(9);
        let messages = match peer.role {
            Role::Watcher => self.send(peer, WatcherToServer::Status { request, since: 0 }),
            _ => {
                let commands = vec![ClientCommand::Status { request }];
                self.send(peer, ClientToServer::Stream(commands))
            }
        };
        let status = messages.into_iter().find_map(|(to, message)| match message {
            _ if to != peer => None,
            ToPeer::Watcher(ServerToWatcher::Status { status, .. }) => Some(*status),
            message => match &message.answer()?.result {
                Ok(Reply::Status(status)) => Some((**status).clone()),
                _ => None,
            },
        });
        status.expect("the status is answered at once")
    }
}

fn issue(count: usize) -> ClientToServer {
    let times = (Duration::ZERO, Duration::ZERO);
    let event = Event::of_batch(EventKind::Issue, Track::Client, SessionId::NONE, 1, times);
    ClientToServer::Events { events: vec![event; count], dropped: 0 }
}

#[test]
fn events_beyond_a_full_queue_are_dropped_and_counted() {
    let mut world = World::new();
    world.connect(CLIENT, "anna");
    world.connect(WATCHER, "w");
    world.connect(SLOW, "s");
    world.watch(WATCHER);
    world.watch(SLOW);
    let (mut taken, mut sent) = (0, 0);
    for _ in 0..100 {
        world.send(CLIENT, issue(1000));
        sent += 1000;
        let (_, events, dropped) = world.watch(WATCHER);
        assert_eq!(dropped, 0);
        taken += events.len();
    }
    assert_eq!(taken, sent);
    let (_, events, dropped) = world.watch(SLOW);
    assert_eq!(events.len() as u64 + dropped, sent as u64);
    assert!(dropped > 0 && events.len() == 1 << 16);
    assert_eq!(world.status(WATCHER).dropped, dropped);
    // Each drop is reported once.
    assert_eq!(world.watch(SLOW).2, 0);
}

#[test]
fn status_requests_alone_queue_no_events() {
    let mut world = World::new();
    world.connect(CLIENT, "anna");
    world.connect(WATCHER, "w");
    world.status(WATCHER);
    (0..100).for_each(|_| drop(world.send(CLIENT, issue(1000))));
    assert_eq!(world.status(WATCHER).dropped, 0);
    assert_eq!(world.watch(WATCHER).1.len(), 0);
}

/// What clients and workers are asked to emit by messages.
fn levels(messages: &[(PeerId, ToPeer)]) -> Vec<(PeerId, EmitLevel)> {
    let level = |(peer, message): &(PeerId, ToPeer)| match message {
        ToPeer::Client(ServerToClient::Observe { level, .. })
        | ToPeer::Worker(ServerToWorker::Observe { level, .. }) => Some((*peer, *level)),
        _ => None,
    };
    messages.iter().filter_map(level).collect()
}

#[test]
fn peers_emit_what_watchers_ask_for() {
    let mut world = World::new();
    world.connect(CLIENT, "anna");
    world.connect(WORKER, "w");
    let of_all = |level| vec![(CLIENT, level), (WORKER, level)];
    assert_eq!(levels(&world.connect(WATCHER, "status")), of_all(EmitLevel::Reports));
    let ask = WatcherToServer::Status { request: RequestId(1), since: 0 };
    assert_eq!(levels(&world.send(WATCHER, ask)), []);
    assert_eq!(levels(&world.connect(SLOW, "timeline")), []);
    let poll = || WatcherToServer::Poll { limit: 10 };
    assert_eq!(levels(&world.send(SLOW, poll())), of_all(EmitLevel::Events));
    assert_eq!(levels(&world.send(SLOW, poll())), []);
    // Those that connect later emit as much.
    let later = PeerId::worker(8);
    assert_eq!(levels(&world.connect(later, "v")), [(later, EmitLevel::Events)]);
    let mut levels_after = |peer| {
        let mut found = levels(&world.send(peer, Goodbye { reason: String::new() }));
        found.retain(|(peer, _)| *peer != later);
        found
    };
    assert_eq!(levels_after(SLOW), of_all(EmitLevel::Reports));
    assert_eq!(levels_after(WATCHER), of_all(EmitLevel::Nothing));
}

#[test]
fn the_status_is_answered_without_any_worker() {
    let mut world = World::new();
    world.connect(CLIENT, "anna");
    let status = world.status(CLIENT);
    assert_eq!(status.asker, Some(status.sessions[0].number));
    assert_eq!((status.sessions[0].open, status.workers.len()), (0, 0));
    world.connect(WATCHER, "w");
    assert_eq!(world.status(WATCHER).asker, None);
}

#[test]
fn names_of_clients_cannot_break_lines() {
    let mut world = World::new();
    world.connect(CLIENT, "anna | \u{1b}[31m\nERROR");
    world.connect(WATCHER, "w");
    world.watch(WATCHER);
    world.send(CLIENT, issue(1));
    let (names, events, _) = world.watch(WATCHER);
    assert_eq!(events.len(), 1);
    assert_eq!(names[0].1, "anna _ [31mERROR #1");
}

fn badge(user: &str) -> Option<Box<Badge>> {
    Some(Box::new(Badge { user: user.into(), team: String::new(), proof: [0; 32] }))
}

#[test]
fn a_watcher_with_a_users_key_gets_the_events_of_that_user_alone() {
    let mut world = World::new();
    world.connect(WORKER, "w0");
    let connect = |world: &mut World, number, badge: Option<Box<Badge>>| {
        let peer = PeerId::client(number);
        let hello = ClientHello { badge, ..ClientHello::new(SessionOrigin::new("train.py")) };
        world.send(peer, Hello::Client(hello));
        peer
    };
    let clients = [
        connect(&mut world, 10, badge("ada")),
        connect(&mut world, 11, badge("bob")),
        connect(&mut world, 12, None),
    ];
    let hello = WatcherHello { badge: badge("ada"), ..WatcherHello::new("ada's") };
    world.send(SLOW, Hello::Watcher(hello));
    world.connect(WATCHER, "all");
    assert!(world.watch(SLOW).1.is_empty() && world.watch(WATCHER).1.is_empty());
    for (count, client) in clients.into_iter().enumerate() {
        world.send(client, issue(count + 1));
    }
    let (_, events, _) = world.watch(WATCHER);
    assert_eq!(events.len(), 1 + 2 + 3);
    let own = events[0].session;
    let (names, events, dropped) = world.watch(SLOW);
    assert_eq!((events.len(), events[0].session, dropped), (1, own, 0));
    let [(Named::Session(named), name)] = names.as_slice() else { panic!("{names:?}") };
    assert!(*named == own && name.contains("ada"), "{names:?}");

    // A session that begins later is hers from the next poll on, and bob's never.
    let second = connect(&mut world, 13, badge("ada"));
    connect(&mut world, 14, badge("bob"));
    assert!(world.watch(SLOW).1.is_empty());
    world.send(second, issue(5));
    world.send(PeerId::client(14), issue(7));
    let (_, events, _) = world.watch(SLOW);
    assert_eq!(events.len(), 5);
    assert!(events.iter().all(|event| event.session != own));
}

#[test]
fn events_of_others_do_not_fill_the_queue_of_a_user() {
    let mut world = World::new();
    world.connect(CLIENT, "anna");
    let hello = WatcherHello { badge: badge("ada"), ..WatcherHello::new("ada's") };
    world.send(SLOW, Hello::Watcher(hello));
    world.watch(SLOW);
    (0..100).for_each(|_| drop(world.send(CLIENT, issue(1000))));
    let (names, events, dropped) = world.watch(SLOW);
    assert_eq!((names.len(), events.len(), dropped), (0, 0, 0));
}

#[test]
fn a_report_after_the_last_watcher_left_is_dropped() {
    let mut world = World::new();
    world.connect(WORKER, "w0");
    let report =
        |operations| WorkerToServer::Report(Box::new(Report { operations, ..Report::default() }));
    world.connect(WATCHER, "w");
    world.send(WORKER, report(5));
    assert_eq!(world.status(WATCHER).workers[0].report.operations, 5);
    world.send(WATCHER, Goodbye { reason: "done".into() });
    world.send(WORKER, report(6));
    world.connect(WATCHER, "w");
    assert_eq!(world.status(WATCHER).workers[0].report.operations, 0);
}
