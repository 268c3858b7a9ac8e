//! Golden streams: a client's commands and the workers' commands that a dispatcher plans from them,
//! as readable programs, compared with the texts in `streams/`. `GT_WRITE_STREAMS=1` rewrites them.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use gt_dispatcher::{Dispatcher, FromPeer, Limits, PeerId, ToPeer};
use gt_ir::explain::PlacedTensor;
use gt_ir::message::{ClientToServer, Reply, ServerToClient, ServerToWorker};
use gt_ir::{ClientCommand, Fabric, RequestId, TensorId};

use super::listing::Listing;
use super::{client, worker};

const CLIENT: PeerId = PeerId::client(100);

/// A dispatcher with workers that never complete a command.
pub struct Golden {
    pub dispatcher: Dispatcher,
    listing: Listing,
    /// The commands that each worker got, by its index.
    workers: Vec<Vec<String>>,
    /// The copies of each tensor, as the dispatcher locates them at the end.
    placements: BTreeMap<TensorId, Vec<PlacedTensor>>,
}

impl Golden {
    pub fn new(workers: usize) -> Golden {
        Golden::with(Limits::default(), vec![None; workers])
    }

    /// Creates a dispatcher with one worker for each of these fabrics.
    pub fn with(limits: Limits, workers: Vec<Option<Fabric>>) -> Golden {
        let mut golden = Golden {
            dispatcher: Dispatcher::new(String::new(), limits, None),
            listing: Listing::default(),
            workers: vec![Vec::new(); workers.len()],
            placements: BTreeMap::new(),
        };
        for (number, fabric) in (0..).zip(workers) {
            golden.handle(PeerId::worker(number), worker(format!("w{number}"), fabric));
        }
        golden.handle(CLIENT, client("client".into(), None));
        golden
    }

    fn handle(&mut self, peer: PeerId, message: impl Into<FromPeer>) {
        self.dispatcher.handle(Duration::ZERO, peer, message);
        let mut out = Vec::new();
        self.dispatcher.take_outbox(&mut out);
        for (peer, message) in out {
            match message {
                ToPeer::Worker(ServerToWorker::Work { lane, commands }) => {
                    let (listing, worker) = (&mut self.listing, peer.number as usize);
                    let lines = commands.iter().map(|command| listing.worker(lane.slot, command));
                    self.workers[worker].extend(lines);
                }
                ToPeer::Client(ServerToClient::Answer(answer)) => {
                    if let Ok(Reply::Located(copies)) = answer.result {
                        self.placements.insert(TensorId(answer.request.0), copies);
                    }
                }
                _ => {}
            }
        }
    }

    /// Compares the client's program and the workers' programs with the golden file of this name. A
    /// comment beside a client's instruction shows the placement of its result at the end.
    pub fn check(mut self, name: &str, batches: impl IntoIterator<Item = Vec<ClientCommand>>) {
        let mut client = Vec::new();
        for batch in batches {
            let lines = batch.iter().map(|command| (command.made(), self.listing.client(command)));
            client.push(lines.collect::<Vec<_>>());
            self.handle(CLIENT, ClientToServer::Stream(batch));
        }
        let made = client.iter().flatten().filter_map(|(made, _)| *made);
        let locate = made.map(|tensor| {
            let request = RequestId(tensor.0);
            ClientCommand::Locate { request, tensor }
        });
        let locate = locate.collect();
        let workers = std::mem::take(&mut self.workers);
        self.workers = vec![Vec::new(); workers.len()];
        self.handle(CLIENT, ClientToServer::Stream(locate));

        let batches = client.iter().map(|lines| {
            let made = lines.iter().filter(|(made, _)| made.is_some());
            let width = made.map(|(_, line)| line.len()).max().unwrap_or(0);
            section("client", lines.iter().map(|(made, line)| self.placed(*made, line, width)))
        });
        let workers = workers.iter().enumerate();
        let workers = workers.map(|(index, lines)| section(&format!("w{index}"), lines));
        let got: String = batches.chain(workers).collect::<Vec<_>>().join("\n");
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/streams").join(name);
        if std::env::var_os("GT_WRITE_STREAMS").is_some() {
            std::fs::write(&path, &got).unwrap();
        }
        let want = std::fs::read_to_string(&path).unwrap_or_default();
        assert_eq!(got, want, "{name}: GT_WRITE_STREAMS=1 rewrites it");
    }

    /// Returns a client's command, padded to this width and followed by the placement of its
    /// result.
    fn placed(&self, made: Option<TensorId>, line: &str, width: usize) -> String {
        let copies = made.and_then(|tensor| self.placements.get(&tensor));
        let Some(copies) = copies.filter(|copies| !copies.is_empty()) else { return line.into() };
        let copies = copies.iter().map(|copy| {
            let workers = copy.workers.iter().map(|worker| format!("w{worker}"));
            format!("{} on {}", copy.placement(), workers.collect::<Vec<_>>().join(", "))
        });
        format!("{line:<width$}  # {}", copies.collect::<Vec<_>>().join("; "))
    }
}

/// Returns a program with its owner's name above it.
fn section(owner: &str, lines: impl IntoIterator<Item = impl AsRef<str>>) -> String {
    let mut text = format!("{owner}:\n");
    for line in lines.into_iter().flat_map(|lines| indented(lines.as_ref())) {
        text += &line;
    }
    text
}

fn indented(lines: &str) -> Vec<String> {
    lines.lines().map(|line| format!("    {line}\n")).collect()
}
