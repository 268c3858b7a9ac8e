//! Sessions that outlive their clients: who may attach to them, and what is left of them.

use std::time::Duration;

use bytes::Bytes;
use gt_dispatcher::PeerId;
use gt_ir::message::{Badge, ClientHello, ClientToServer, Hello, Reply};
use gt_ir::{
    Attach, ClientCommand, DType, Detach, Kept, KeptTensor, Meta, RequestId, SessionOrigin, Shape,
    TensorId,
};

use crate::common::{Cluster, Program};

/// Connects a client of a user, which wants a named session.
fn connect(cluster: &mut Cluster, number: u64, user: &str, attach: Option<Attach>) -> PeerId {
    let badge = Badge { user: user.into(), team: String::new(), proof: [0; 32] };
    let hello = ClientHello {
        badge: (!user.is_empty()).then(|| Box::new(badge)),
        attach: attach.map(Box::new),
        ..ClientHello::new(SessionOrigin::new(format!("p{number}")))
    };
    let peer = PeerId::client(number);
    cluster.handle(peer, Hello::Client(hello));
    peer
}

/// A client's link is lost for good.
fn leave(cluster: &mut Cluster, peer: PeerId) {
    cluster.dispatcher.disconnect(cluster.now, peer, "killed");
    cluster.deliver();
}

fn tick(cluster: &mut Cluster, now: Duration) {
    cluster.now = now;
    cluster.dispatcher.tick(now);
    cluster.deliver();
}

/// Returns whether a client has no answer to its hello.
fn waits(cluster: &Cluster, peer: PeerId) -> bool {
    cluster.welcome(peer).is_none() && cluster.goodbye(peer).is_none()
}

/// Returns why a client was turned away.
fn refusal(cluster: &Cluster, peer: PeerId) -> &str {
    cluster.goodbye(peer).expect("it is refused")
}

/// Returns what a client was answered.
fn replies(cluster: &Cluster, peer: PeerId) -> Vec<&Reply> {
    let all = cluster.to_clients.iter().filter(|(to, _)| *to == peer);
    let replies = all.filter_map(|(_, message)| message.answer()?.result.as_ref().ok());
    replies.collect()
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
    let meta = Meta::new(DType::F32, Shape::new(&[2]).unwrap());
    let tensors = vec![KeptTensor { id: TensorId(0), meta }];
    let structure = Bytes::from_static(b"[]");
    let keep = Kept { name: "state".into(), structure, tensors };
    program.commands.push(ClientCommand::Keep(Box::new(keep)));
    program.fetch(kept);
    program.commands
}

#[test]
fn what_is_kept_stays_and_the_rest_is_freed() {
    let mut cluster = Cluster::new(1);
    let one = connect(&mut cluster, 1, "", or_create("run"));
    let welcome = cluster.welcome(one).unwrap();
    assert!(!welcome.is_attached && welcome.name == "run #1", "{welcome:?}");
    cluster.send(one, program());
    leave(&mut cluster, one);
    assert_eq!(cluster.freed, [TensorId(1)], "what is not kept");
    let two = connect(&mut cluster, 2, "", or_create("run"));
    let welcome = cluster.welcome(two).unwrap();
    assert!(welcome.is_attached);
    assert_eq!((welcome.numbers.tensor, welcome.numbers.request), (2, 1));
    let request = RequestId(1);
    cluster.send(two, vec![ClientCommand::Kept { request }]);
    let [Reply::Kept(kept)] = replies(&cluster, two)[..] else { panic!("one answer") };
    assert_eq!((kept.len(), kept[0].name.as_str()), (1, "state"));
    assert_eq!(cluster.dispatcher.population(), (1, 1), "it is the same session");
    // It ends for good.
    cluster.handle(two, ClientToServer::End);
    assert_eq!(cluster.dispatcher.population(), (0, 1));
    let three = connect(&mut cluster, 3, "", Some(attach("run")));
    assert!(refusal(&cluster, three).contains("there is no session 'run'"));
}

#[test]
fn a_session_without_a_name_ends_with_its_client() {
    let mut cluster = Cluster::new(1);
    let one = connect(&mut cluster, 1, "", None);
    cluster.send(one, program());
    leave(&mut cluster, one);
    assert_eq!(cluster.dispatcher.population(), (0, 1));
}

#[test]
fn names_belong_to_users() {
    let mut cluster = Cluster::new(1);
    let ada = connect(&mut cluster, 1, "ada", or_create("run"));
    assert!(cluster.welcome(ada).is_some());
    // Another user's session of the same name is another session.
    let eve = connect(&mut cluster, 2, "eve", Some(attach("run")));
    assert!(refusal(&cluster, eve).contains("no session of user eve has a name"));
    let eve = connect(&mut cluster, 3, "eve", or_create("run"));
    assert!(!cluster.welcome(eve).unwrap().is_attached);
    let nobody = connect(&mut cluster, 4, "", Some(attach("run")));
    assert!(refusal(&cluster, nobody).contains("no session without a user's key"));
}

#[test]
fn the_second_is_told_who_has_it_and_may_take_over() {
    let mut cluster = Cluster::new(1);
    let one = connect(&mut cluster, 1, "ada", or_create("run"));
    tick(&mut cluster, Duration::from_secs(90));
    let two = connect(&mut cluster, 2, "ada", Some(attach("run")));
    let reason = refusal(&cluster, two);
    assert!(reason.contains("held by p1 ada, for 90 s") && reason.contains("take_over=True"));
    let three = connect(&mut cluster, 3, "ada", Some(Attach { take_over: true, ..attach("run") }));
    assert!(cluster.welcome(three).unwrap().is_attached);
    assert!(refusal(&cluster, one).contains("taken over by p3 ada"));
    // The first one's link ends: that changes nothing.
    leave(&mut cluster, one);
    assert_eq!(cluster.dispatcher.population(), (1, 1));
    let four = connect(&mut cluster, 4, "ada", Some(attach("run")));
    assert!(refusal(&cluster, four).contains("held by p3 ada"));
}

#[test]
fn one_that_would_begin_a_session_waits_until_the_holder_is_known_to_be_gone() {
    let mut cluster = Cluster::new(1);
    let one = connect(&mut cluster, 1, "", or_create("run"));
    let two = connect(&mut cluster, 2, "", or_create("run"));
    assert!(waits(&cluster, two), "it waits");
    assert_eq!(cluster.dispatcher.next_deadline(), Some(Duration::from_secs(9)));
    cluster.dispatcher.set_away(Duration::from_secs(3), one, true);
    cluster.deliver();
    assert!(cluster.welcome(two).unwrap().is_attached, "the link of the first is lost");
    // A holder that lives keeps it.
    let three = connect(&mut cluster, 3, "", or_create("run"));
    tick(&mut cluster, Duration::from_secs(8));
    assert!(waits(&cluster, three));
    tick(&mut cluster, Duration::from_secs(9));
    assert!(refusal(&cluster, three).contains("is held by p2"));
    // One that gives up is forgotten.
    let four = connect(&mut cluster, 4, "", or_create("run"));
    leave(&mut cluster, four);
    leave(&mut cluster, two);
    assert!(waits(&cluster, four));
    assert_eq!(cluster.dispatcher.next_deadline(), None);
}

#[test]
fn one_that_waits_gets_what_is_kept_and_no_more() {
    let mut cluster = Cluster::new(1);
    let one = connect(&mut cluster, 1, "", or_create("run"));
    cluster.send(one, program());
    let two = connect(&mut cluster, 2, "", or_create("run"));
    leave(&mut cluster, one);
    assert!(cluster.welcome(two).unwrap().is_attached);
    assert_eq!(cluster.freed, [TensorId(1)], "what is not kept");
}

#[test]
fn one_that_takes_over_gets_a_session_for_which_another_waits() {
    let mut cluster = Cluster::new(1);
    let one = connect(&mut cluster, 1, "", or_create("run"));
    let two = connect(&mut cluster, 2, "", or_create("run"));
    let three = connect(&mut cluster, 3, "", Some(Attach { take_over: true, ..attach("run") }));
    assert!(cluster.welcome(three).unwrap().is_attached);
    assert!(refusal(&cluster, one).contains("taken over by p3"));
    assert!(waits(&cluster, two), "it waits for the third");
    leave(&mut cluster, three);
    assert!(cluster.welcome(two).unwrap().is_attached);
}

#[test]
fn a_private_session_stays_private() {
    let mut cluster = Cluster::new(1);
    let private = Attach { token: Some(7), ..or_create("mine").unwrap() };
    let one = connect(&mut cluster, 1, "", Some(private.clone()));
    let (request, name) = (RequestId(0), "mine".to_string());
    let detach = ClientCommand::Detach(Box::new(Detach { request, name, token: None }));
    cluster.send(one, vec![detach]);
    leave(&mut cluster, one);
    let two = connect(&mut cluster, 2, "", or_create(" mine "));
    assert!(refusal(&cluster, two).contains("is private"));
    let three = connect(&mut cluster, 3, "", Some(private));
    assert!(cluster.welcome(three).unwrap().is_attached);
}

#[test]
fn a_private_session_wants_its_token() {
    let mut cluster = Cluster::new(1);
    let one = connect(&mut cluster, 1, "", None);
    let (request, name, token) = (RequestId(0), "mine".to_string(), Some(7));
    let detach = ClientCommand::Detach(Box::new(Detach { request, name, token }));
    cluster.send(one, vec![detach]);
    assert!(matches!(replies(&cluster, one)[..], [Reply::Detached]));
    leave(&mut cluster, one);
    for (number, given) in [(2, None), (3, Some(8)), (4, Some(7 | 1 << 127))] {
        let wanted = Attach { token: given, take_over: true, ..attach("mine") };
        let guesser = connect(&mut cluster, number, "", Some(wanted));
        assert!(refusal(&cluster, guesser).contains("is private"));
    }
    let right = connect(&mut cluster, 5, "", Some(Attach { token: Some(7), ..attach("mine") }));
    assert!(cluster.welcome(right).unwrap().is_attached);
}

#[test]
fn a_name_that_is_taken_or_not_valid_is_refused() {
    let mut cluster = Cluster::new(1);
    connect(&mut cluster, 1, "", or_create("run"));
    let two = connect(&mut cluster, 2, "", None);
    let names = ["run".to_string(), String::new(), "x".repeat(65), "a\nb".into(), "a|b".into()];
    for (number, name) in (0..).zip(names) {
        let detach = ClientCommand::Detach(Box::new(Detach {
            request: RequestId(number),
            name,
            token: None,
        }));
        cluster.send(two, vec![detach]);
    }
    let reasons = cluster.errors(two);
    let wanted = ["'run' without a user's key already", "empty", "65 characters", "'\\n'", "'|'"];
    for ((_, reason), wanted) in reasons.iter().zip(wanted) {
        assert!(reason.contains(wanted), "{reason}");
    }
    assert_eq!(reasons.len(), wanted.len());
    let three = connect(&mut cluster, 3, "", or_create("a\u{202e}b"));
    assert!(refusal(&cluster, three).contains("has the character"));
    leave(&mut cluster, two);
    assert_eq!(cluster.dispatcher.population(), (1, 1), "it has no name");
}

#[test]
fn what_surrounds_kept_tensors_is_bounded() {
    let mut cluster = Cluster::new(1);
    let one = connect(&mut cluster, 1, "", or_create("run"));
    let structure = Bytes::from(vec![0; Kept::MOST_BYTES / 2]);
    for number in 0..2 {
        let kept =
            Kept { name: format!("k{number}"), structure: structure.clone(), tensors: Vec::new() };
        cluster.send(one, vec![ClientCommand::Keep(Box::new(kept))]);
    }
    let reason = refusal(&cluster, one);
    assert!(reason.contains("are allowed"), "{reason}");
    assert_eq!(cluster.dispatcher.population(), (0, 1));
}
