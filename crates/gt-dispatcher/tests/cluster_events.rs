//! What watchers read of the past: losses, recoveries, moves, the last errors of sessions, and the
//! last hour.

use std::time::Duration;

use gt_dispatcher::{FromPeer, History, JournalRecord, Limits, LineageLimits, PeerId, ToPeer};
use gt_ir::message::{
    Badge, ClientToServer, Failure, Goodbye, Hello, OperatorHello, OperatorToServer, Reply,
    ServerToClient, ServerToWatcher, ServerToWorker, WatcherHello, WatcherToServer, WorkerToServer,
};
use gt_ir::status::cluster_event::{ClusterEvent, ClusterEventKind, MoveReason};
use gt_ir::status::{LastError, Status};
use gt_ir::{ClientCommand, RequestId, SourceId, WorkerCommand};

use crate::common::{Cluster, Program, client, send, worker};

const WATCHER: PeerId = PeerId::watcher(801);
const OPERATOR: PeerId = PeerId::operator(901);

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Returns a cluster whose server keeps lineages, with a watcher.
fn cluster(workers: u64) -> Cluster {
    let limits = Limits { lineage: Some(LineageLimits::default()), ..Limits::default() };
    let mut cluster = Cluster::with_limits(workers, limits);
    cluster.handle(WATCHER, Hello::Watcher(WatcherHello::new("watcher")));
    cluster
}

/// Sends a message, and returns what a peer gets in answer.
fn ask(cluster: &mut Cluster, peer: PeerId, message: impl Into<FromPeer>) -> Vec<ToPeer> {
    let out = send(&mut cluster.dispatcher, cluster.now, peer, message);
    out.into_iter().filter(|(to, _)| *to == peer).map(|(_, message)| message).collect()
}

fn status_since(cluster: &mut Cluster, peer: PeerId, since: u64) -> Status {
    let request = RequestId(5);
    let answer = ask(cluster, peer, WatcherToServer::Status { request, since });
    let status = answer.into_iter().find_map(|message| match message {
        ToPeer::Watcher(ServerToWatcher::Status { status, .. }) => Some(*status),
        _ => None,
    });
    status.expect("the status is answered at once")
}

fn events(cluster: &mut Cluster) -> Vec<ClusterEvent> {
    status_since(cluster, WATCHER, 0).cluster_events
}

/// Describes events as short texts.
fn described(events: &[ClusterEvent]) -> Vec<String> {
    let text = |event: &ClusterEvent| match &event.kind {
        ClusterEventKind::WorkerJoined { worker, is_back } => format!("{worker} joined {is_back}"),
        ClusterEventKind::WorkerDrains { worker, within } => {
            format!("{worker} drains {}", within.as_secs())
        }
        ClusterEventKind::DrainEnded { worker, .. } => format!("{worker} serves on"),
        ClusterEventKind::WorkerLeft { worker, reason } => format!("{worker} left: {reason}"),
        ClusterEventKind::WorkerLost { worker, reason } => format!("{worker} lost: {reason}"),
        ClusterEventKind::SessionEnded { session, reason } => {
            format!("{} ended: {reason}", session.name)
        }
        ClusterEventKind::RecoveryBegun { session, cause, batches, bytes } => {
            format!("{} is restored from {bytes} B and {batches}: {cause}", session.name)
        }
        ClusterEventKind::Recovered { session, took, .. } => {
            format!("{} restored after {} s", session.name, took.as_secs())
        }
        ClusterEventKind::TensorsLost { session, reason } => {
            format!("{} lost tensors: {reason}", session.name)
        }
        ClusterEventKind::CommandGivenUp { session, .. } => format!("{} gave up", session.name),
        ClusterEventKind::SlotsMoved { session, from, to, slots, reason, .. } => {
            format!("{} moved {slots} from {from} to {to}: {}", session.name, reason.name())
        }
    };
    events.iter().map(text).collect()
}

fn compute(cluster: &mut Cluster, client: PeerId) {
    let mut program = Program::default();
    program.ones(&[2]);
    cluster.send(client, program.commands);
}

/// Loses the connection to a worker.
fn lose(cluster: &mut Cluster, number: u64, reason: &str) {
    cluster.dispatcher.disconnect(cluster.now, PeerId::worker(number), reason);
}

#[test]
fn workers_that_join_leave_and_are_lost_are_recorded() {
    let mut cluster = cluster(1);
    cluster.now = seconds(3);
    cluster.handle(PeerId::worker(2), worker("w2".into(), None));
    cluster.now = seconds(4);
    lose(&mut cluster, 1, "its process has ended");
    cluster.handle(PeerId::worker(2), Goodbye { reason: "done".into() });
    let all = events(&mut cluster);
    let expected = [
        "w1 joined false",
        "w2 joined false",
        "w1 lost: its process has ended",
        "w2 left: said goodbye",
    ];
    assert_eq!(described(&all), expected);
    let times: Vec<Duration> = all.iter().map(|event| event.at).collect();
    assert_eq!(times, [seconds(0), seconds(3), seconds(4), seconds(4)]);
    // A watcher gets those that it lacks.
    assert_eq!(status_since(&mut cluster, WATCHER, 3).cluster_events, all[3..]);
    assert_eq!(status_since(&mut cluster, WATCHER, 4).cluster_events, []);
}

#[test]
fn a_recovery_has_its_cause_and_ends_once_everything_is_computed_again() {
    let mut cluster = cluster(2);
    let client = cluster.connect(101);
    compute(&mut cluster, client);
    let before = events(&mut cluster).len();
    cluster.now = seconds(10);
    lose(&mut cluster, 1, "its process has ended");
    let begun = events(&mut cluster);
    let cause = "the worker 'w1' was lost (its process has ended)";
    let expected = [
        "w1 lost: its process has ended".to_string(),
        "c101 #1 moved 1 from w1 to w2: loss".into(),
        format!("c101 #1 is restored from 0 B and 1: {cause}"),
    ];
    assert_eq!(described(&begun[before..]), expected);
    // `ask` has taken the messages that restore it; the time that passes counts, and what a worker
    // has not reported done is not restored.
    cluster.now = seconds(12);
    cluster.dispatcher.tick(cluster.now);
    assert_eq!(events(&mut cluster).len(), begun.len());
}

#[test]
fn a_recovery_ends_when_the_workers_have_computed_what_was_lost() {
    let mut cluster = cluster(2);
    let client = cluster.connect(101);
    compute(&mut cluster, client);
    cluster.now = seconds(10);
    lose(&mut cluster, 1, "its process has ended");
    cluster.now = seconds(13);
    cluster.deliver();
    let all = described(&events(&mut cluster));
    assert_eq!(all.last().map(String::as_str), Some("c101 #1 restored after 3 s"));
    let restored = all.iter().filter(|text| text.contains("restored after"));
    assert_eq!(restored.count(), 1, "{all:?}");
}

#[test]
fn without_a_lineage_lost_tensors_are_recorded() {
    let mut cluster = Cluster::with_limits(1, Limits::default());
    cluster.handle(WATCHER, Hello::Watcher(WatcherHello::new("watcher")));
    let (busy, idle) = (cluster.connect(101), cluster.connect(102));
    compute(&mut cluster, busy);
    lose(&mut cluster, 1, "its process has ended");
    let all = described(&events(&mut cluster));
    let lost = all.iter().filter(|text| text.contains("lost tensors"));
    let lost: Vec<&String> = lost.collect();
    assert_eq!(lost.len(), 1, "{idle:?} had none: {all:?}");
    assert!(lost[0].starts_with("c101 #1 lost tensors: the worker 'w1'"), "{all:?}");
}

#[test]
fn drains_moves_and_ends_of_sessions_are_recorded() {
    let mut cluster = cluster(2);
    cluster.handle(OPERATOR, Hello::Operator(OperatorHello::new("operator")));
    let (first, second) = (cluster.connect(101), cluster.connect(102));
    let (request, within) = (RequestId(1), seconds(60));
    let drain = OperatorToServer::Drain { request, worker: "w1".into(), within, force: false };
    cluster.handle(OPERATOR, drain);
    let end = OperatorToServer::EndSession { request, user: None, name: "#2".into() };
    cluster.handle(OPERATOR, end);
    // A program that closes its session is no failure.
    cluster.handle(first, Goodbye { reason: "done".into() });
    assert!(cluster.goodbye(second).is_some());
    let all = described(&events(&mut cluster));
    let expected = [
        "w1 joined false",
        "w2 joined false",
        "w1 drains 60",
        "c101 #1 moved 1 from w1 to w2: drain",
        "c102 #2 moved 1 from w1 to w2: drain",
        "w1 left: drained",
        "c102 #2 ended: an operator has ended it",
    ];
    assert_eq!(all, expected);
}

/// Has the only worker fail a client's fetch.
fn fail(cluster: &mut Cluster, client: PeerId) {
    let mut program = Program::default();
    let ones = program.ones(&[2]);
    program.fetch(ones);
    let stream = ClientToServer::Stream(program.commands);
    let out = send(&mut cluster.dispatcher, cluster.now, client, stream);
    let request = out.iter().find_map(|(_, message)| match message {
        ToPeer::Worker(ServerToWorker::Work { commands, .. }) => {
            commands.iter().find_map(|command| match command {
                WorkerCommand::Fetch { request, .. } => Some(*request),
                _ => None,
            })
        }
        _ => None,
    });
    let reason = "index 7 is out of range for an axis of length 3";
    let failure = Failure::new("gather of int64 (2,)", reason, "w1", SourceId(9));
    let (request, result) = (request.expect("it is fetched"), Err(failure));
    cluster.handle(PeerId::worker(1), WorkerToServer::Value { request, result });
}

fn badge(user: &str) -> Option<Badge> {
    Some(Badge { user: user.into(), team: String::new(), proof: [0; 32] })
}

/// Returns the last errors of the sessions, as a client sees them.
fn errors_for(cluster: &mut Cluster, client: PeerId) -> Vec<Option<LastError>> {
    let commands = vec![ClientCommand::Status { request: RequestId(77) }];
    let stream = ClientToServer::Stream(commands);
    let status = ask(cluster, client, stream).into_iter().find_map(|message| {
        match message.answer()?.result.as_ref().ok()? {
            Reply::Status(status) => Some(status.clone()),
            _ => None,
        }
    });
    let status = status.expect("the status is answered at once");
    assert!(status.cluster_events.is_empty() && status.hour.is_empty());
    status.sessions.into_iter().map(|session| session.last_error).collect()
}

#[test]
fn the_last_error_of_a_session_has_its_line_and_only_its_user_and_the_clusters_watchers_read_it() {
    let mut cluster = cluster(1);
    let (ada, bob, own) = (PeerId::client(101), PeerId::client(102), PeerId::client(103));
    cluster.handle(ada, client("train".into(), badge("ada")));
    cluster.handle(bob, client("train".into(), badge("bob")));
    cluster.handle(own, client("other".into(), badge("ada")));
    cluster.now = seconds(7);
    fail(&mut cluster, ada);
    let expected = |line: &str| LastError {
        at: seconds(7),
        operation: "gather of int64 (2,)".into(),
        reason: "index 7 is out of range for an axis of length 3".into(),
        worker: "w1".into(),
        line: line.into(),
    };
    // Its client is asked for the line, which is shown from then on.
    let request = RequestId(5);
    let message = WatcherToServer::Status { request, since: 0 };
    let out = send(&mut cluster.dispatcher, cluster.now, WATCHER, message);
    let asked = out.iter().any(|(peer, message)| match message {
        ToPeer::Client(ServerToClient::Lines { lines }) => {
            *peer == ada && lines.contains(&SourceId(9))
        }
        _ => false,
    });
    assert!(asked, "{out:?}");
    let lines = vec![(SourceId(9), "train.py:31".to_string())];
    cluster.handle(ada, ClientToServer::Lines { lines });
    let shown = |status: Status| -> Vec<Option<LastError>> {
        status.sessions.into_iter().map(|session| session.last_error).collect()
    };
    let known = expected("train.py:31");
    let of_ada = [Some(known), None, None];
    assert_eq!(shown(status_since(&mut cluster, WATCHER, 0)), of_ada);
    assert_eq!(errors_for(&mut cluster, ada), of_ada);
    assert_eq!(errors_for(&mut cluster, own), of_ada);
    assert_eq!(errors_for(&mut cluster, bob), [None, None, None]);
    for (number, user, expected) in [(811, "ada", &of_ada), (812, "bob", &[None, None, None])] {
        let watcher = PeerId::watcher(number);
        let hello = WatcherHello { badge: badge(user).map(Box::new), ..WatcherHello::new("w") };
        cluster.handle(watcher, Hello::Watcher(hello));
        assert_eq!(shown(status_since(&mut cluster, watcher, 0)), *expected, "{user}");
    }
    // Why a session ended may quote its commands.
    cluster.handle(bob, ClientToServer::End);
    let mut reason_for = |watcher| {
        let events = status_since(&mut cluster, watcher, 0).cluster_events;
        events.into_iter().find_map(|event| match event.kind {
            ClusterEventKind::SessionEnded { reason, .. } => Some(reason),
            _ => None,
        })
    };
    assert_eq!(reason_for(PeerId::watcher(811)).as_deref(), Some(""));
    let told = reason_for(WATCHER).expect("it has ended");
    assert!(told.contains("ended"), "{told}");
}

#[test]
fn a_server_that_is_started_again_continues_the_last_hour() {
    let mut before = cluster(2);
    before.dispatcher.set_start(1_000_000);
    before.now = seconds(61);
    before.connect(101);
    let mut history = History::default();
    // The journal of now, and what is written to it later.
    let mut records = before.dispatcher.keep_journal();
    before.now = seconds(125);
    before.connect(102);
    records.extend(before.dispatcher.take_journal());
    for record in records {
        history.add(JournalRecord::decode(&record.encode()).expect("encoded above"));
    }
    let mut after = cluster(0);
    after.dispatcher.set_start(1_000_300);
    after.dispatcher.expect_workers(Duration::ZERO, &mut history);
    after.now = seconds(60);
    let hour = status_since(&mut after, WATCHER, 0).hour;
    let seen: Vec<_> = hour.iter().map(|of| (of.begin, of.workers, of.sessions)).collect();
    assert_eq!(seen, [(-300, 2, 1), (-240, 2, 2), (0, 0, 0)]);
}

#[test]
fn the_last_hour_counts_what_happened_in_each_minute() {
    let mut cluster = cluster(2);
    cluster.connect(101);
    cluster.now = seconds(59);
    assert_eq!(status_since(&mut cluster, WATCHER, 0).hour, []);
    cluster.now = seconds(61);
    cluster.deliver();
    assert_eq!(status_since(&mut cluster, WATCHER, 0).hour.len(), 1);
    lose(&mut cluster, 1, "its process has ended");
    cluster.deliver();
    cluster.now = seconds(200);
    let hour = status_since(&mut cluster, WATCHER, 0).hour;
    let seen: Vec<_> =
        hour.iter().map(|of| (of.begin, of.workers, of.sessions, of.moves, of.losses)).collect();
    assert_eq!(seen, [(0, 2, 1, 0, 0), (60, 1, 1, 1, 1), (120, 1, 1, 0, 0)]);
    let moved = events(&mut cluster).into_iter().any(|event| {
        matches!(event.kind, ClusterEventKind::SlotsMoved { reason: MoveReason::Loss, .. })
    });
    assert!(moved);
}
