//! All cores in one struct, for the walk through them.

use std::sync::{Arc, Mutex};

use gt_client::driver::{Driver, Interrupt, Outbox};
use gt_dispatcher::log::Log;
use gt_dispatcher::{Dispatcher, FromPeer, Limits, PeerId, ToPeer};
use gt_engine_native::NativeEngine;
use gt_ir::message::{
    Answer, ClientHello, ClientToServer, Hello, ServerToClient, WorkerHello, WorkerToWorker,
};
use gt_ir::{ClientCommand, RequestId, SessionOrigin};
use gt_worker::{Out, Work, Worker, WorkerInput};

pub type Texts = Arc<Mutex<Vec<String>>>;

/// The cores, connected directly: a message is delivered when it is sent. The drivers of gt do this
/// with queues in one process, or over gt-net between processes.
pub struct Parts {
    dispatcher: Dispatcher,
    pub workers: Vec<Worker<NativeEngine>>,
    /// The messages that the client has sent and received.
    pub sent: Vec<ClientCommand>,
    got: Vec<Answer>,
}

const CLIENT: PeerId = PeerId::client(0);

impl Parts {
    fn send(&mut self, peer: PeerId, message: impl Into<FromPeer>) {
        self.dispatcher.handle(std::time::Duration::ZERO, peer, message);
        let mut outbox = Vec::new();
        self.dispatcher.take_outbox(&mut outbox);
        for (peer, message) in outbox {
            match message {
                ToPeer::Client(ServerToClient::Answer(answer)) => self.got.push(answer),
                ToPeer::Worker(message) => self.pass(peer.number as usize, message),
                _ => {}
            }
        }
    }

    /// A worker handles a message, and runs until it has no work.
    fn pass(&mut self, at: usize, message: impl Into<WorkerInput>) {
        let mut out = Vec::new();
        self.workers[at].handle(message.into(), &mut out);
        self.run(at, out);
    }

    /// A worker runs turns until it has no work.
    fn run(&mut self, at: usize, mut out: Vec<Out>) {
        while self.workers[at].step(&mut out) {}
        for out in out {
            match out {
                Out::Server(message) => self.send(PeerId::worker(at as u64), message),
                Out::Worker(to, piece) => {
                    let sender = gt_ir::WorkerId(at as u32);
                    self.pass(to.0 as usize, WorkerToWorker::Piece { sender, piece });
                }
                Out::Backup(..) | Out::Files(_) => panic!("there are no snapshots or files"),
            }
        }
    }
}

/// The trait by which gt-client sends its commands.
pub struct Line(pub Arc<Mutex<Parts>>);

impl Driver for Line {
    fn attach(&self, _outbox: std::sync::Weak<dyn Outbox>) {}
    fn nudge(&self) {}
    fn submit(&self, batch: &mut Vec<ClientCommand>, _work: u64) {
        let mut parts = self.0.lock().unwrap();
        parts.sent.extend(batch.iter().cloned());
        parts.send(CLIENT, ClientToServer::Stream(std::mem::take(batch)));
    }
    fn is_full(&self) -> bool {
        false
    }
    fn wait_for_room(&self, _interrupt: Interrupt) -> gt_client::Result<()> {
        Ok(())
    }
    fn wait(&self, request: RequestId, _interrupt: Interrupt) -> gt_client::Result<Answer> {
        let parts = self.0.lock().unwrap();
        let answer = parts.got.iter().find(|answer| answer.request == request);
        Ok(answer.expect("all is answered at once").clone())
    }
    fn abandon(&self, _request: RequestId) {}
    fn close(&self) {}
    fn data_roots(&self) -> Option<Vec<String>> {
        Some(Vec::new())
    }

    fn describe(&self) -> String {
        "a walk".into()
    }

    fn name(&self) -> String {
        "client".into()
    }
}

/// Returns the cores, with the dispatcher's log and the plans that the workers' engines were asked
/// to prepare.
pub fn start() -> (Arc<Mutex<Parts>>, Texts, Texts) {
    let (log, plans): (Texts, Texts) = Default::default();
    let lines = Arc::clone(&log);
    let sink = Log::new(Box::new(move |line| lines.lock().unwrap().push(line.to_string())));
    let dispatcher = Dispatcher::new(String::new(), Limits::default(), Some(sink));
    let worker = |at: u64| {
        let plans = Arc::clone(&plans);
        let engine = NativeEngine::new(1).when_prepared(move |plan, _, _| {
            plans.lock().unwrap().push(format!("w{at}\n{plan}"));
        });
        Worker::new(format!("w{at}"), engine)
    };
    let workers = vec![worker(0), worker(1)];
    let (sent, got) = (Vec::new(), Vec::new());
    let mut parts = Parts { dispatcher, workers, sent, got };
    for at in 0..2 {
        let hello = WorkerHello { rate: u64::MAX, ..WorkerHello::new(format!("w{at}")) };
        parts.send(PeerId::worker(at), Hello::Worker(hello));
    }
    parts.send(CLIENT, Hello::Client(ClientHello::new(SessionOrigin::new("client"))));
    (Arc::new(Mutex::new(parts)), log, plans)
}
