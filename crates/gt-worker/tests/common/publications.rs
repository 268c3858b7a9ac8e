//! Shorthands for publications.

use gt_ir::message::{ServerToWorker, WorkerToServer, WorkerToWorker};
use gt_ir::publication::{FIRST_PUBLICATION, PUBLISHED};
use gt_ir::sharding::Block;
use gt_ir::snapshot::{Backup, Inventory, Owner, SavedValue, Snapshot, ToPublish};
use gt_ir::stored::{PublishedPart, PublishedValues};
use gt_ir::{Content, Create, SessionId, SlotId, SourceId, TensorId, WorkerCommand};
use gt_worker::Out;

use super::{Bench, block, data, meta};

/// A publication, by its number among them.
pub fn publication(number: u32) -> SessionId {
    SessionId(FIRST_PUBLICATION + number)
}

/// Publishes a tensor of `length` numbers as the only one of a publication.
pub fn publish(number: u32, id: u64, length: usize) -> WorkerCommand {
    let of = ToPublish { tensor: TensorId(id), index: TensorId(0), block: block(0, length) };
    publish_all(number, vec![of])
}

pub fn publish_all(number: u32, all: Vec<ToPublish>) -> WorkerCommand {
    WorkerCommand::Snapshot(Box::new(Snapshot {
        session: publication(number),
        number: PUBLISHED,
        keeper: None,
        most: u64::MAX,
        published: Some(all),
    }))
}

/// Reads the only tensor of a publication, which has these parts in its slots.
pub fn shared(id: u64, number: u32, parts: &[(u32, Block)]) -> WorkerCommand {
    let length = parts.iter().map(|(_, part)| part.shape.numel()).sum();
    let part = |&(slot, block): &(u32, Block)| PublishedPart { slot: SlotId(slot), block };
    let values = PublishedValues {
        publication: publication(number),
        index: TensorId(0),
        meta: meta(length),
        need: block(0, length),
        parts: parts.iter().map(part).collect(),
    };
    let content = Content::Published(Box::new(values));
    let create = Create { output: TensorId(id), content, signal: 0, source: SourceId(id as u32) };
    WorkerCommand::Create(Box::new(create))
}

/// The values of the only tensor of a publication in a slot, from another worker.
pub fn values_of(number: u32, slot: u32, numbers: &[f64]) -> Backup {
    let (tensor, line) = (TensorId(0), SourceId(0));
    let result = Ok(Content::Data(data(numbers)));
    Backup {
        owner: Owner { session: publication(number), slot: SlotId(slot) },
        snapshot: PUBLISHED,
        sender: None,
        values: vec![SavedValue { tensor, line, result }],
        inventory: Some(Inventory { names: [tensor].into_iter().collect(), runs: vec![] }),
    }
}

impl Bench {
    /// Delivers values of a snapshot, and runs the worker until it is idle.
    pub fn backup(&mut self, backup: Backup) {
        self.hand(WorkerToWorker::Backup(Box::new(backup)));
        self.run();
    }

    /// Ends a session or a publication.
    pub fn drop_snapshots(&mut self, session: SessionId) {
        self.hand(ServerToWorker::Retain { session, snapshot: None, next: 0 });
        self.run();
    }

    /// Takes the slots whose values were requested.
    pub fn needs(&mut self) -> Vec<u32> {
        let mut slots = Vec::new();
        self.out.retain(|out| match out {
            Out::Server(WorkerToServer::Needs { slot, .. }) => {
                slots.push(slot.0);
                false
            }
            _ => true,
        });
        slots
    }

    /// Returns whether each snapshot of which a part was to be stored is.
    pub fn stored(&self) -> Vec<Result<u64, String>> {
        let stored = self.out.iter().filter_map(|out| match out {
            Out::Server(WorkerToServer::BackupStored { result, .. }) => {
                Some(result.clone().map_err(|reason| reason.to_string()))
            }
            _ => None,
        });
        stored.collect()
    }
}
