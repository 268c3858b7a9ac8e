//! What operators ask: errors, the end of workers and sessions, weights, pauses; and revoked users.

use std::time::Duration;

use gt_dispatcher::rules::Rules;
use gt_dispatcher::{Dispatcher, History, JournalRecord, PeerId, ToPeer};
use gt_ir::RequestId;
use gt_ir::message::{
    Attach, Badge, Goodbye, Hello, OperatorHello, OperatorToServer, ServerToClient,
    ServerToOperator, ServerToWatcher, ServerToWorker, WatcherHello, WatcherToServer, Welcome,
    WorkerHello, WorkerToServer,
};

use crate::common::{Cluster, Program, client, send, worker};

const OPERATOR: PeerId = PeerId::operator(901);

/// Returns the answer to an operator's request.
fn ask(cluster: &mut Cluster, message: OperatorToServer) -> Result<String, String> {
    ask_as(cluster, OPERATOR, message)
}

fn ask_as(
    cluster: &mut Cluster,
    operator: PeerId,
    message: OperatorToServer,
) -> Result<String, String> {
    let out = send(&mut cluster.dispatcher, cluster.now, operator, message);
    let answer = out.iter().find_map(|(_, message)| match message {
        ToPeer::Operator(ServerToOperator::Done { result, .. }) => Some(result.clone()),
        _ => None,
    });
    for (peer, message) in out {
        if peer != operator {
            cluster.to_clients.push((peer, message));
        }
    }
    answer.expect("it is answered at once")
}

fn drain(worker: &str) -> OperatorToServer {
    let (request, within) = (RequestId(1), Duration::from_secs(60));
    OperatorToServer::Drain { request, worker: worker.into(), within, force: false }
}

fn cluster(workers: u64) -> Cluster {
    let mut cluster = Cluster::new(workers);
    let hello = Hello::Operator(OperatorHello::new("operator"));
    let out = send(&mut cluster.dispatcher, Duration::ZERO, OPERATOR, hello);
    assert!(matches!(out.as_slice(), [(OPERATOR, ToPeer::Welcome(Welcome::Operator))]));
    cluster
}

#[test]
fn an_unknown_worker_is_refused_with_near_names() {
    let mut cluster = cluster(2);
    let reason = ask(&mut cluster, drain("w3")).unwrap_err();
    assert_eq!(
        reason,
        "there is no worker 'w3': the workers are 'w1', 'w2'\n  hint: did you mean 'w1'?"
    );
    let reason = ask(&mut self::cluster(0), drain("w1")).unwrap_err();
    assert_eq!(reason, "there is no worker 'w1': none is connected");
}

#[test]
fn an_idle_worker_is_drained_at_once_and_takes_nothing_more() {
    let mut cluster = cluster(2);
    let done = ask(&mut cluster, drain("w1")).unwrap();
    assert_eq!(done, "the worker 'w1' is drained, after 0.00 s");
    let to_worker: Vec<&ToPeer> = cluster
        .to_clients
        .iter()
        .filter(|(peer, _)| *peer == PeerId::worker(1))
        .map(|(_, message)| message)
        .collect();
    let ended = ServerToWorker::DrainEnded { refused: None };
    assert!(to_worker.contains(&&ToPeer::Worker(ended)));
    let goodbye = Goodbye { reason: "drained".into() };
    assert!(to_worker.contains(&&ToPeer::Goodbye(goodbye)));
    assert_eq!(cluster.dispatcher.population(), (0, 1));
}

#[test]
fn the_last_worker_of_a_session_without_a_folder_is_refused() {
    let mut cluster = cluster(1);
    cluster.connect(101);
    let reason = ask(&mut cluster, drain("0")).unwrap_err();
    assert!(reason.contains("'w1' is the last one that is left for the session c101"), "{reason}");
    assert!(reason.contains("--state FOLDER") && reason.contains("--force"), "{reason}");
    // It serves on.
    let mut program = Program::default();
    let ones = program.ones(&[2]);
    program.fetch(ones);
    cluster.send(PeerId::client(101), program.commands);
    assert!(!cluster.stream(1).is_empty() || !cluster.streams.is_empty());
}

#[test]
fn a_session_that_holds_nothing_moves_without_a_lineage_and_another_does_not() {
    let mut cluster = cluster(2);
    let client = cluster.connect(101);
    let done = ask(&mut cluster, drain("w1")).unwrap();
    assert!(done.contains("1 session continues on other workers"), "{done}");
    for number in 3..=4 {
        cluster.handle(PeerId::worker(number), worker(format!("w{number}"), None));
    }
    let mut program = Program::default();
    program.ones(&[2]);
    cluster.send(client, program.commands);
    let refused: Vec<String> =
        ["w2", "w3"].iter().filter_map(|name| ask(&mut cluster, drain(name)).err()).collect();
    assert!(refused.iter().any(|reason| reason.contains("keeps no lineage")), "{refused:?}");
}

#[test]
fn a_worker_that_is_drained_already_says_since_when() {
    let mut dispatcher = Dispatcher::new(
        String::new(),
        gt_dispatcher::Limits {
            lineage: Some(gt_dispatcher::LineageLimits::default()),
            ..gt_dispatcher::Limits::default()
        },
        None,
    );
    let now = Duration::ZERO;
    send(&mut dispatcher, now, OPERATOR, Hello::Operator(OperatorHello::new("operator")));
    for number in 1..=2 {
        let hello = Hello::Worker(WorkerHello::new(format!("w{number}")));
        send(&mut dispatcher, now, PeerId::worker(number), hello);
    }
    send(&mut dispatcher, now, PeerId::client(101), client("c".into(), None));
    let mut program = Program::default();
    program.ones(&[2]);
    let stream = gt_ir::message::ClientToServer::Stream(program.commands);
    send(&mut dispatcher, now, PeerId::client(101), stream);
    // Its commands are in flight, and nothing answers.
    let out = send(&mut dispatcher, now, OPERATOR, drain("w1"));
    assert!(!out.iter().any(|(peer, _)| *peer == OPERATOR), "{out:?}");
    let later = Duration::from_secs(5);
    let out = send(&mut dispatcher, later, OPERATOR, drain("w1"));
    let reasons: Vec<String> = out.iter().filter_map(|(_, message)| refused(message)).collect();
    assert!(reasons[0].contains("is being drained since 5 s, for 55 s more"), "{reasons:?}");
    assert!(reasons[0].contains("it waits for the session c"), "{reasons:?}");
    // A worker that is to be stopped has less time than the operator gave it.
    let within = Duration::from_secs(10);
    send(&mut dispatcher, later, PeerId::worker(1), WorkerToServer::Drain { within });
    assert_eq!(dispatcher.next_deadline().map(|due| due <= later + within), Some(true));
    dispatcher.tick(later + within);
    let mut out = Vec::new();
    dispatcher.take_outbox(&mut out);
    let reasons: Vec<String> = out.iter().filter_map(|(_, message)| refused(message)).collect();
    assert!(reasons[0].contains("could not be drained within 15 s"), "{reasons:?}");
    assert!(reasons[0].contains("hint: it serves on"), "{reasons:?}");
    assert_eq!(dispatcher.population(), (1, 2));
}

fn refused(message: &ToPeer) -> Option<String> {
    match message {
        ToPeer::Operator(ServerToOperator::Done { result: Err(reason), .. }) => {
            Some(reason.clone())
        }
        _ => None,
    }
}

fn badge(user: &str) -> Option<Badge> {
    Some(Badge { user: user.into(), team: String::new(), proof: [0; 32] })
}

#[test]
fn operators_end_pause_and_weigh_the_sessions_of_users() {
    let mut cluster = cluster(1);
    let (ada, bob) = (PeerId::client(101), PeerId::client(102));
    cluster.handle(ada, client("train".into(), badge("ada")));
    cluster.handle(bob, client("train".into(), badge("bob")));
    let request = RequestId(2);
    let weigh = |user: &str, weight| OperatorToServer::Weigh {
        request,
        user: Some(user.into()),
        name: None,
        weight,
    };
    let done = ask(&mut cluster, weigh("ada", Some(3)));
    assert_eq!(done.unwrap(), "the weight of user 'ada' is 3 now");
    let reason = ask(&mut cluster, weigh("adam", Some(3))).unwrap_err();
    assert!(reason.contains("the users are 'ada', 'bob'"), "{reason}");
    assert!(reason.contains("did you mean 'ada'"), "{reason}");
    let admitted = cluster.to_clients.iter().filter_map(|(_, message)| match message {
        ToPeer::Worker(ServerToWorker::Admit { entitlement, .. }) => {
            Some((entitlement.user.clone(), entitlement.user_weight))
        }
        _ => None,
    });
    assert_eq!(admitted.last(), Some(("ada".into(), 3)));
    // It outlasts the policy's being read again.
    cluster.dispatcher.set_rules(cluster.now, Rules::default());
    let done = ask(&mut cluster, weigh("ada", None)).unwrap();
    assert!(done.contains("the policy's again"), "{done}");

    let pause = |name: Option<&str>, user: Option<&str>, is_paused| {
        let (user, name) = (user.map(str::to_string), name.map(str::to_string));
        OperatorToServer::Pause { request, user, name, is_paused }
    };
    let done = ask(&mut cluster, pause(None, Some("ada"), true)).unwrap();
    assert!(done.starts_with("paused train"), "{done}");
    cluster.streams.clear();
    let ones = |cluster: &mut Cluster, of| {
        let mut program = Program::default();
        program.ones(&[2]);
        cluster.send(of, program.commands);
        cluster.streams.len()
    };
    assert_eq!(ones(&mut cluster, ada), 0, "it is paused");
    assert!(ones(&mut cluster, bob) > 0, "the other is not");
    cluster.streams.clear();
    let done = ask(&mut cluster, pause(None, Some("ada"), false)).unwrap();
    assert!(done.starts_with("resumed train"), "{done}");
    let sent = cluster
        .to_clients
        .iter()
        .any(|(_, message)| matches!(message, ToPeer::Worker(ServerToWorker::Work { .. })));
    assert!(sent, "what waited is sent");
    let notices = cluster.to_clients.iter().filter(|(peer, message)| {
        *peer == ada && matches!(message, ToPeer::Client(ServerToClient::Notice { .. }))
    });
    assert_eq!(notices.count(), 2);

    let end = |user: Option<&str>, name: &str| {
        let user = user.map(str::to_string);
        OperatorToServer::EndSession { request, user, name: name.into() }
    };
    let reason = ask(&mut cluster, end(Some("ada"), "trial")).unwrap_err();
    assert!(reason.contains("no session 'trial' of user 'ada': there are 'train"), "{reason}");
    let done = ask(&mut cluster, end(Some("ada"), "#1")).unwrap();
    assert!(done.starts_with("ended the session train"), "{done}");
    assert_eq!(cluster.goodbye(ada), Some("an operator has ended it"));
    assert_eq!(cluster.goodbye(bob), None);
}

#[test]
fn revoked_users_lose_their_sessions_and_get_no_new_ones() {
    let mut cluster = cluster(1);
    let (eve, bob) = (PeerId::client(101), PeerId::client(102));
    cluster.handle(eve, client("train".into(), badge("eve")));
    cluster.handle(bob, client("train".into(), badge("bob")));
    let revoked = [("eve".to_string(), Some("bob".to_string()))].into();
    cluster.dispatcher.set_rules(cluster.now, Rules { revoked, ..Rules::default() });
    cluster.deliver();
    let reason = cluster.goodbye(eve).expect("it has ended");
    assert!(reason.starts_with("the key of user 'eve' is revoked"), "{reason}");
    assert_eq!(cluster.goodbye(bob), None);
    let again = PeerId::client(103);
    cluster.handle(again, client("train".into(), badge("eve")));
    assert!(cluster.goodbye(again).is_some_and(|reason| reason.contains("is revoked")));
    cluster.dispatcher.set_rules(cluster.now, Rules::default());
    let later = PeerId::client(104);
    cluster.handle(later, client("train".into(), badge("eve")));
    assert!(cluster.goodbye(later).is_none() && cluster.welcome(later).is_some());
}

#[test]
fn pauses_and_weights_outlive_the_server() {
    let mut first = cluster(1);
    first.dispatcher.keep_journal();
    let badge = Badge { user: "ada".into(), team: String::new(), proof: [0; 32] };
    first.handle(PeerId::client(101), client("c101".into(), Some(badge)));
    let (request, user) = (RequestId(1), "ada".to_string());
    let weigh =
        OperatorToServer::Weigh { request, user: Some(user.clone()), name: None, weight: Some(7) };
    let pause = OperatorToServer::Pause { request, user: Some(user), name: None, is_paused: true };
    ask(&mut first, weigh).unwrap();
    ask(&mut first, pause).unwrap();
    let begun_anew = first.dispatcher.journal_records();
    let continued = first.dispatcher.take_journal();
    for records in [begun_anew, continued] {
        let mut history = History::default();
        records.into_iter().for_each(|record| history.add(record));
        let mut second = cluster(0);
        second.dispatcher.expect_workers(Duration::ZERO, &mut history);
        let (request, user) = (RequestId(2), Some("ada".to_string()));
        let resume = OperatorToServer::Pause { request, user, name: None, is_paused: false };
        let records = second.dispatcher.journal_records();
        let orders = records.iter().find_map(|record| match record {
            JournalRecord::Orders { weights, users, .. } => Some((weights.clone(), users.clone())),
            _ => None,
        });
        assert_eq!(orders, Some((vec![("ada".into(), 7)], vec!["ada".into()])));
        // Its session has not returned.
        assert_eq!(ask(&mut second, resume).unwrap(), "resumed user 'ada', who has no session");
    }
}

fn pause(user: Option<&str>, name: Option<&str>, is_paused: bool) -> OperatorToServer {
    let (user, name) = (user.map(str::to_string), name.map(str::to_string));
    OperatorToServer::Pause { request: RequestId(3), user, name, is_paused }
}

fn end(user: Option<&str>, name: &str) -> OperatorToServer {
    let user = user.map(str::to_string);
    OperatorToServer::EndSession { request: RequestId(4), user, name: name.into() }
}

/// A cluster with sessions of ada (#1) and bob (#2), and ada as an operator.
fn with_users() -> (Cluster, PeerId) {
    let mut cluster = cluster(1);
    cluster.handle(PeerId::client(101), client("train".into(), badge("ada")));
    cluster.handle(PeerId::client(102), client("train".into(), badge("bob")));
    let ada = PeerId::operator(902);
    let hello = OperatorHello { badge: badge("ada").map(Box::new), ..OperatorHello::new("ada") };
    send(&mut cluster.dispatcher, Duration::ZERO, ada, Hello::Operator(hello));
    (cluster, ada)
}

#[test]
fn users_weigh_sessions_of_their_own_against_each_other() {
    let (mut cluster, ada) = with_users();
    cluster.handle(PeerId::client(103), client("other".into(), badge("ada")));
    let weigh = |name: &str, weight| OperatorToServer::Weigh {
        request: RequestId(5),
        user: None,
        name: Some(name.into()),
        weight,
    };
    for (weight, part) in [(0, "the weight is 0"), (u32::MAX, "from 1 to 1000000")] {
        let reason = ask_as(&mut cluster, ada, weigh("#1", Some(weight))).unwrap_err();
        assert!(reason.contains(part), "{reason}");
    }
    let reason = ask_as(&mut cluster, ada, weigh("#2", Some(3))).unwrap_err();
    assert!(reason.contains("no session '#2' of user 'ada'"), "{reason}");
    let done = ask_as(&mut cluster, ada, weigh("#1", Some(3))).unwrap();
    assert!(done.ends_with("among the sessions of its user is 3 now"), "{done}");
    let shares = |cluster: &mut Cluster| {
        let watcher = PeerId::watcher(801);
        cluster.handle(watcher, Hello::Watcher(WatcherHello::new("w")));
        let status = WatcherToServer::Status { request: RequestId(1), since: 0 };
        let out = send(&mut cluster.dispatcher, Duration::ZERO, watcher, status);
        let status = out.into_iter().find_map(|(_, message)| match message {
            ToPeer::Watcher(ServerToWatcher::Status { status, .. }) => Some(status),
            _ => None,
        });
        status.unwrap().sessions.iter().map(|of| of.share).collect::<Vec<f64>>()
    };
    // Users are equal, whatever their sessions are.
    assert_eq!(shares(&mut cluster), [0.375, 0.5, 0.125]);
    // It outlasts the policy's being read again.
    cluster.dispatcher.set_rules(Duration::ZERO, Rules::default());
    assert_eq!(shares(&mut cluster), [0.375, 0.5, 0.125]);
    ask_as(&mut cluster, ada, weigh("#1", None)).unwrap();
    assert_eq!(shares(&mut cluster), [0.25, 0.5, 0.25]);
}

#[test]
fn users_pause_resume_and_end_sessions_of_their_own_alone() {
    let (mut cluster, ada) = with_users();
    let weigh = OperatorToServer::Weigh {
        request: RequestId(5),
        user: Some("ada".into()),
        name: None,
        weight: Some(9),
    };
    for message in [weigh, drain("w1"), end(Some("bob"), "#2"), pause(Some("bob"), None, true)] {
        let reason = ask_as(&mut cluster, ada, message).unwrap_err();
        assert!(reason.starts_with("the key is of the user 'ada'"), "{reason}");
        assert!(reason.contains("hint: the rest takes an operator's key"), "{reason}");
    }
    // Sessions of others are as unknown to them as if there were none.
    let reason = ask_as(&mut cluster, ada, end(None, "#2")).unwrap_err();
    assert!(
        reason.contains("no session '#2' of user 'ada'") && !reason.contains("bob"),
        "{reason}"
    );
    assert_eq!(cluster.goodbye(PeerId::client(102)), None);
    let done = ask_as(&mut cluster, ada, pause(None, Some("#1"), true)).unwrap();
    assert!(done.starts_with("paused train"), "{done}");
    let done = ask_as(&mut cluster, ada, pause(Some("ada"), None, true)).unwrap();
    assert_eq!(done, "it is paused already");
    let done = ask_as(&mut cluster, ada, pause(Some("ada"), None, false)).unwrap();
    assert!(done.starts_with("resumed train"), "{done}");
    let done = ask_as(&mut cluster, ada, end(None, "#1")).unwrap();
    assert!(done.starts_with("ended the session train"), "{done}");
    assert_eq!(cluster.goodbye(PeerId::client(101)), Some("its user has ended it"));
}

#[test]
fn users_do_not_resume_what_an_operator_has_paused() {
    let (mut cluster, ada) = with_users();
    // Also where they had paused it themselves before.
    ask_as(&mut cluster, ada, pause(None, Some("#1"), true)).unwrap();
    let done = ask(&mut cluster, pause(None, Some("#1"), true)).unwrap();
    assert!(done.starts_with("paused train"), "{done}");
    for name in [Some("#1"), None] {
        let reason = ask_as(&mut cluster, ada, pause(None, name, false)).unwrap_err();
        assert!(reason.starts_with("an operator has paused the session train"), "{reason}");
    }
    let done = ask_as(&mut cluster, ada, pause(None, Some("#1"), true)).unwrap();
    assert_eq!(done, "it is paused already");
    ask(&mut cluster, pause(None, Some("#1"), false)).unwrap();
    // Operators resume what users have paused.
    ask_as(&mut cluster, ada, pause(None, Some("#1"), true)).unwrap();
    let done = ask(&mut cluster, pause(None, Some("#1"), false)).unwrap();
    assert!(done.starts_with("resumed train"), "{done}");
}

#[test]
fn a_session_cannot_pass_for_another_by_its_name() {
    let mut cluster = cluster(1);
    let (ada, eve) = (PeerId::client(101), PeerId::client(102));
    cluster.handle(ada, client("train".into(), badge("ada")));
    let label = cluster.welcome(ada).unwrap().name.clone();
    assert!(label.ends_with(" #1"), "{label}");
    for (number, name) in ["#1".to_string(), label.clone()].into_iter().enumerate() {
        let eve = PeerId::client(eve.number + number as u64);
        let mut hello = client("train".into(), badge("eve"));
        let attach = Attach { name, or_create: true, take_over: false, token: None };
        let Hello::Client(of) = &mut hello else { unreachable!("it is a client's") };
        of.attach = Some(Box::new(attach));
        cluster.handle(eve, hello);
        assert!(cluster.welcome(eve).is_some(), "{:?}", cluster.goodbye(eve));
    }
    for given in ["#1", &label] {
        let done = ask(&mut cluster, pause(None, Some(given), true)).unwrap();
        assert_eq!(done, format!("paused {label}"));
        ask(&mut cluster, pause(None, Some(given), false)).unwrap();
    }
}
