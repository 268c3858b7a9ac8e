//! What watchers are shown of one session, and that showing it changes nothing.

use std::time::Duration;

use gt_dispatcher::{PeerId, ToPeer};
use gt_ir::message::{
    Badge, ClientToServer, Hello, Reply, ServerToClient, ServerToWatcher, WatcherHello,
    WatcherToServer,
};
use gt_ir::status::inspection::{HeldTensor, HeldTensors, Inspection};
use gt_ir::{
    ClientCommand, DType, Instruction, Meta, Operand, RequestId, SessionId, Shape, SourceId, ops,
};

use crate::common::{Cluster, Program, Repeated, client, send};

const WATCHER: PeerId = PeerId::watcher(801);
const CLIENT: PeerId = PeerId::client(101);

/// Returns a cluster of two workers with a watcher and a client.
fn cluster() -> Cluster {
    let mut cluster = Cluster::new(2);
    cluster.handle(WATCHER, Hello::Watcher(WatcherHello::new("watcher")));
    cluster.connect(101);
    cluster
}

/// Asks for the details of a session; also returns what its client is sent.
fn inspect(
    cluster: &mut Cluster,
    watcher: PeerId,
    session: u32,
    explain: bool,
) -> (Result<Inspection, String>, Vec<ServerToClient>) {
    let (request, session) = (RequestId(5), SessionId(session));
    let message = WatcherToServer::Inspect { request, session, explain };
    let (mut answer, mut asked) = (None, Vec::new());
    for (_, message) in send(&mut cluster.dispatcher, cluster.now, watcher, message) {
        match message {
            ToPeer::Watcher(ServerToWatcher::Inspected { request: of, result }) => {
                assert_eq!(of, request);
                answer = Some(result.map(|inspection| *inspection));
            }
            ToPeer::Client(message) => asked.push(message),
            other => panic!("{other:?}"),
        }
    }
    (answer.expect("it is answered at once"), asked)
}

fn details(cluster: &mut Cluster, explain: bool) -> Inspection {
    inspect(cluster, WATCHER, 1, explain).0.unwrap()
}

/// A loop on rows that are sharded over both workers. Its product needs all rows of its sum.
fn sharded_loop(program: &mut Program) -> Repeated {
    program.shard_rows();
    let left = program.ones(&[4, 4]);
    let right = program.ones(&[4, 4]);
    program.define(3, &[], |program: &mut Program| -> Vec<Instruction> {
        let sum = program.step(&ops::binary::ADD, &[left, right], &[]);
        let all = Operand::Tensor(sum.output);
        let product = program.step(&ops::matmul::MATMUL, &[left, all], &[]);
        let line = |step: Instruction, line| Instruction { source: SourceId(line), ..step };
        vec![line(sum, 7), line(product, 8)]
    })
}

/// Sends the batches of a loop; `between` is called before each of them.
fn run(cluster: &mut Cluster, mut between: impl FnMut(&mut Cluster, usize)) {
    let mut program = Program::default();
    let mut repeated = sharded_loop(&mut program);
    for round in 0..6 {
        cluster.now = Duration::from_millis(100 * round as u64);
        between(cluster, round);
        program.invoke(&mut repeated, &[]);
        let commands = std::mem::take(&mut program.commands);
        cluster.send(CLIENT, commands);
    }
}

#[test]
fn instructions_and_hot_paths_are_counted_from_the_first_question_on() {
    let mut cluster = cluster();
    let mut first = None;
    run(&mut cluster, |cluster, round| {
        if round == 2 {
            first = Some(details(cluster, false));
        }
    });
    let first = first.unwrap();
    assert_eq!((first.session, first.since), (SessionId(1), Duration::from_millis(200)));
    assert!(first.stream.is_empty());
    assert_eq!((first.hot_paths[0].instructions, first.hot_paths[0].steps), (4, 2));
    let later = details(&mut cluster, false);
    let counts: Vec<_> =
        later.stream.iter().map(|of| (&*of.operation, &*of.signal, of.count, of.hot)).collect();
    assert_eq!(counts, [("add", "rows", 4, 4), ("matmul", "rows", 4, 4)]);
    assert_eq!(later.stream[0].bytes, 4 * 64);
    assert_eq!((later.hot_paths[0].number, later.hot_paths[0].instructions), (3, 12));
    assert_eq!(later.hot_paths[0].operations, "add,matmul");
    // The client is asked for the lines once, and they are shown from then on.
    let lines = vec![(SourceId(7), "train.py:7".into()), (SourceId(8), "train.py:8".into())];
    cluster.handle(CLIENT, ClientToServer::Lines { lines });
    let named = details(&mut cluster, false);
    assert_eq!(named.stream[0].line, "train.py:7");
    assert_eq!(named.hot_paths[0].lines, "train.py:7,train.py:8");
    // Nobody has asked for a while: what was counted is dropped with the next batch.
    cluster.now += Duration::from_secs(60);
    cluster.send(
        CLIENT,
        vec![ClientCommand::Fetch {
            request: RequestId(1),
            tensor: gt_ir::TensorId(0),
            line: SourceId(0),
        }],
    );
    assert!(details(&mut cluster, false).stream.is_empty());
}

#[test]
fn one_step_is_explained_with_its_moves() {
    let mut cluster = cluster();
    run(&mut cluster, |cluster, round| {
        if round == 3 {
            assert!(details(cluster, true).explained.is_none());
        }
    });
    let explained = details(&mut cluster, false).explained.unwrap();
    assert_eq!((explained.at, explained.is_cut), (Duration::from_millis(300), false));
    let steps = &explained.explanation.steps;
    let operations: Vec<_> = steps.iter().map(|step| &*step.operation).collect();
    assert_eq!(operations, ["add", "matmul"]);
    assert_eq!(steps[0].output.placement(), "Shard(0)");
    assert_eq!(steps[0].output.workers, [0, 1]);
    assert!(!steps[1].redistributions.is_empty(), "the right operand is gathered");
    let names: Vec<_> = explained.explanation.slots.iter().map(|(_, name)| &**name).collect();
    assert_eq!(names, ["w1", "w2"]);
}

#[test]
fn workers_are_sent_the_same_while_watchers_ask() {
    let (mut alone, mut watched) = (cluster(), cluster());
    run(&mut alone, |_, _| {});
    run(&mut watched, |cluster, _| drop(details(cluster, true)));
    assert!(details(&mut watched, false).explained.is_some());
    assert!(!alone.streams.is_empty());
    assert_eq!(alone.streams, watched.streams);
}

#[test]
fn a_step_of_single_instructions_lasts_up_to_its_end_or_a_second() {
    let mut cluster = cluster();
    let mut program = Program::default();
    details(&mut cluster, true);
    for round in 0..8 {
        cluster.now = Duration::from_millis(400 * round);
        let x = program.ones(&[2, 2]);
        program.run(&ops::binary::ADD, &[x, x], &[]);
        cluster.send(CLIENT, std::mem::take(&mut program.commands));
    }
    // It begins half a second after the question, as no step ends, and lasts a second.
    let explained = details(&mut cluster, false).explained.unwrap();
    assert_eq!((explained.at, explained.is_cut), (Duration::from_millis(800), true));
    assert_eq!(explained.explanation.steps.len(), 8);
}

#[test]
fn an_explanation_for_the_program_itself_is_not_disturbed() {
    let mut cluster = cluster();
    let mut program = Program::default();
    let request = RequestId(1);
    program.commands.push(ClientCommand::Explain { request, begin: true });
    cluster.send(CLIENT, std::mem::take(&mut program.commands));
    details(&mut cluster, true);
    for _ in 0..3 {
        cluster.now += Duration::from_secs(2);
        program.ones(&[2, 2]);
        cluster.send(CLIENT, std::mem::take(&mut program.commands));
    }
    assert!(details(&mut cluster, false).explained.is_none());
    program.commands.push(ClientCommand::Explain { request: RequestId(2), begin: false });
    cluster.send(CLIENT, std::mem::take(&mut program.commands));
    let steps =
        cluster.to_clients.iter().find_map(|(_, message)| match &message.answer()?.result {
            Ok(Reply::Explained(explanation)) if !explanation.steps.is_empty() => {
                Some(explanation.steps.len())
            }
            _ => None,
        });
    assert_eq!(steps, Some(3));
}

#[test]
fn a_program_is_asked_for_its_tensors_once_it_has_answered() {
    let mut cluster = cluster();
    let held = || {
        let meta = Meta::new(DType::F32, Shape::new(&[4]).unwrap());
        let tensor = HeldTensor {
            variable: "model\n.weight".into(),
            line: "a.py:1".into(),
            meta,
            purpose: String::new(),
        };
        Box::new(HeldTensors { largest: vec![tensor; 99], ..HeldTensors::default() })
    };
    // It was not asked.
    cluster.handle(CLIENT, ClientToServer::Held(held()));
    cluster.now = Duration::from_secs(1);
    let (first, asked) = inspect(&mut cluster, WATCHER, 1, false);
    assert_eq!((first.unwrap().held, asked), (None, vec![ServerToClient::ListHeld]));
    assert_eq!(inspect(&mut cluster, WATCHER, 1, false).1, []);
    cluster.handle(CLIENT, ClientToServer::Held(held()));
    let held = details(&mut cluster, false).held.unwrap();
    assert_eq!((held.at, held.largest.len()), (cluster.now, 50));
    assert_eq!(held.largest[0].variable, "model .weight");
}

#[test]
fn a_users_key_shows_the_details_of_that_users_sessions_alone() {
    let mut cluster = Cluster::new(1);
    let badge = |user: &str| Badge { user: user.into(), team: String::new(), proof: [0; 32] };
    for (number, user) in [(101, "ada"), (102, "bob")] {
        cluster.handle(PeerId::client(number), client("train".into(), Some(badge(user))));
    }
    let badge = Some(Box::new(badge("ada")));
    cluster.handle(WATCHER, Hello::Watcher(WatcherHello { badge, ..WatcherHello::new("w") }));
    assert!(inspect(&mut cluster, WATCHER, 1, false).0.is_ok());
    let (refused, asked) = inspect(&mut cluster, WATCHER, 2, true);
    assert!(refused.unwrap_err().contains("another user's"));
    assert_eq!(asked, []);
    let unknown = inspect(&mut cluster, WATCHER, 9, false).0.unwrap_err();
    assert!(unknown.contains("no session #9"), "{unknown}");
}
