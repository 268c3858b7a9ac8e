//! What watchers receive: events, names and the status; and when events are dropped.

use std::time::Duration;

use gt_dispatcher::{Dispatcher, Limits, PeerId};
use gt_ir::event::{Event, EventKind, Track};
use gt_ir::message::{Hello, Message, Named, Role};
use gt_ir::status::{Report, Status};
use gt_ir::{ClientCommand, RequestId};

const CLIENT: PeerId = PeerId(1);
const WATCHER: PeerId = PeerId(2);
const SLOW: PeerId = PeerId(3);

/// A dispatcher, and the messages it has sent.
struct World {
    dispatcher: Dispatcher,
    out: Vec<(PeerId, Message)>,
}

impl World {
    fn new() -> World {
        let dispatcher = Dispatcher::new(String::new(), Limits::default(), None);
        World { dispatcher, out: Vec::new() }
    }

    fn send(&mut self, peer: PeerId, role: Role, message: Message) -> Vec<(PeerId, Message)> {
        self.dispatcher.handle(Duration::from_secs(1), peer, role, message);
        self.dispatcher.take_outbox(&mut self.out);
        std::mem::take(&mut self.out)
    }

    fn connect(&mut self, peer: PeerId, role: Role, name: &str) -> Vec<(PeerId, Message)> {
        let hello = Hello { rate: 1, ..Hello::new(role, name) };
        self.send(peer, role, Message::Hello(hello))
    }

    /// Polls as a watcher: returns names, events and the number dropped.
    fn watch(&mut self, peer: PeerId) -> (Vec<(Named, String)>, Vec<Event>, u64) {
        let mut names = Vec::new();
        for (to, message) in self.send(peer, Role::Watcher, Message::Watch { limit: u32::MAX }) {
            assert_eq!(to, peer);
            match message {
                Message::Names(more) => names.extend(more),
                Message::Events { events, dropped } => return (names, events, dropped),
                other => panic!("a watcher got {other:?}"),
            }
        }
        panic!("a watcher got no answer")
    }

    fn status(&mut self, peer: PeerId, role: Role) -> Status {
        let question = Message::Stream(vec![ClientCommand::Status { request: RequestId(9) }]);
        let messages = self.send(peer, role, question);
        let status = messages.into_iter().find_map(|(to, message)| match message {
            Message::Status { status, .. } if to == peer => Some(*status),
            _ => None,
        });
        status.expect("the status is answered at once")
    }
}

fn issue(count: usize) -> Message {
    let times = (Duration::ZERO, Duration::ZERO);
    let event = Event::of_batch(EventKind::Issue, Track::Client, 0, 1, times);
    Message::Events { events: vec![event; count], dropped: 0 }
}

#[test]
fn events_beyond_a_full_queue_are_dropped_and_counted() {
    let mut world = World::new();
    world.connect(CLIENT, Role::Client, "anna");
    world.connect(WATCHER, Role::Watcher, "w");
    world.connect(SLOW, Role::Watcher, "s");
    world.watch(WATCHER);
    world.watch(SLOW);
    let (mut taken, mut sent) = (0, 0);
    for _ in 0..100 {
        world.send(CLIENT, Role::Client, issue(1000));
        sent += 1000;
        let (_, events, dropped) = world.watch(WATCHER);
        assert_eq!(dropped, 0);
        taken += events.len();
    }
    assert_eq!(taken, sent);
    let (_, events, dropped) = world.watch(SLOW);
    assert_eq!(events.len() as u64 + dropped, sent as u64);
    assert!(dropped > 0 && events.len() == 1 << 16);
    assert_eq!(world.status(WATCHER, Role::Watcher).dropped, dropped);
    // Each drop is reported once.
    assert_eq!(world.watch(SLOW).2, 0);
}

#[test]
fn status_requests_alone_queue_no_events() {
    let mut world = World::new();
    world.connect(CLIENT, Role::Client, "anna");
    world.connect(WATCHER, Role::Watcher, "w");
    world.status(WATCHER, Role::Watcher);
    (0..100).for_each(|_| drop(world.send(CLIENT, Role::Client, issue(1000))));
    assert_eq!(world.status(WATCHER, Role::Watcher).dropped, 0);
    assert_eq!(world.watch(WATCHER).1.len(), 0);
}

#[test]
fn the_status_is_answered_without_any_worker() {
    let mut world = World::new();
    world.connect(CLIENT, Role::Client, "anna");
    let status = world.status(CLIENT, Role::Client);
    assert_eq!(status.asker, Some(status.sessions[0].number));
    assert_eq!((status.sessions[0].open, status.workers.len()), (0, 0));
    world.connect(WATCHER, Role::Watcher, "w");
    assert_eq!(world.status(WATCHER, Role::Watcher).asker, None);
}

#[test]
fn client_names_are_reduced_to_one_word() {
    let mut world = World::new();
    world.connect(CLIENT, Role::Client, "anna | \u{1b}[31m\nERROR");
    world.connect(WATCHER, Role::Watcher, "w");
    world.watch(WATCHER);
    world.send(CLIENT, Role::Client, issue(1));
    let (names, events, _) = world.watch(WATCHER);
    assert_eq!(events.len(), 1);
    assert_eq!(names[0].1, "anna____[31m_ERROR#1");
}

#[test]
fn a_watcher_may_only_ask_for_the_status() {
    let mut world = World::new();
    world.connect(CLIENT, Role::Client, "anna");
    world.connect(WATCHER, Role::Watcher, "w");
    let command = Message::Stream(vec![ClientCommand::Statistics { request: RequestId(1) }]);
    let messages = world.send(WATCHER, Role::Watcher, command);
    assert!(messages.iter().any(|(to, message)| *to == WATCHER
        && matches!(message, Message::Goodbye { reason } if reason.contains("only ask"))));
    assert_eq!(world.status(CLIENT, Role::Client).sessions.len(), 1);
}

#[test]
fn a_report_after_the_last_watcher_left_is_dropped() {
    let mut world = World::new();
    world.connect(CLIENT, Role::Worker, "w0");
    let report = |operations| Message::Report(Box::new(Report { operations, ..Report::default() }));
    world.connect(WATCHER, Role::Watcher, "w");
    world.send(CLIENT, Role::Worker, report(5));
    assert_eq!(world.status(WATCHER, Role::Watcher).workers[0].report.operations, 5);
    world.send(WATCHER, Role::Watcher, Message::Goodbye { reason: "done".into() });
    world.send(CLIENT, Role::Worker, report(6));
    world.connect(WATCHER, Role::Watcher, "w");
    assert_eq!(world.status(WATCHER, Role::Watcher).workers[0].report.operations, 0);
}
