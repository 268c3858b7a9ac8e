//! Published tensors, which lanes read without copies.

use std::sync::Arc;

use gt_ir::message::{Failure, WorkerToServer};
use gt_ir::publication::PUBLISHED;
use gt_ir::snapshot::{Owner, ToPublish};
use gt_ir::stored::{PublishedPart, PublishedValues};
use gt_ir::{Content, SessionId, SourceId, TensorId};

use super::Device;
use crate::engine::{Engine, EngineError};
use crate::lane::Lane;
use crate::library::{PublishedCharge, WaitingReader, assemble};
use crate::snapshot_store::SnapshotStore;
use crate::work::Out;

/// Why tensors of a publication that has ended cannot be read.
pub(crate) const ENDED: &str = "the publication that the tensor was shared from has ended\n  hint: gt.published() lists what can be read; results that were computed from it stay";

impl<E: Engine> Device<E> {
    /// Gives a lane a published tensor, once its values are here: those of other workers are
    /// requested.
    pub fn read_published(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        id: TensorId,
        (values, line): (Box<PublishedValues>, SourceId),
        snapshots: &SnapshotStore,
        out: &mut Vec<Out>,
    ) {
        if !self.lend(lane, id, (&values, line), snapshots) {
            lane.store.wait_for(&mut self.held, id, 0);
            self.request_values(&values, snapshots, out);
            self.library.wait(WaitingReader { lane: lane.id, tensor: id, values, line });
        }
    }

    /// Requests the values of a publication that are not here.
    pub fn request_values(
        &mut self,
        values: &PublishedValues,
        snapshots: &SnapshotStore,
        out: &mut Vec<Out>,
    ) {
        let publication = values.publication;
        for PublishedPart { slot, .. } in &values.parts {
            let owner = Owner { session: publication, slot: *slot };
            if !snapshots.has(owner, PUBLISHED) && self.library.request(owner) {
                let needs = WorkerToServer::Needs { publication, slot: *slot };
                out.push(Out::Server(needs));
            }
        }
    }

    /// Gives a lane a published tensor, or its failure. Returns false if values are missing.
    pub fn lend(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        id: TensorId,
        (values, line): (&PublishedValues, SourceId),
        snapshots: &SnapshotStore,
    ) -> bool {
        match self.published_tensor(values, snapshots) {
            Ok(None) => return false,
            Ok(Some(tensor)) => {
                lane.store.free(&mut self.held, id);
                lane.store.shared.borrowed.add(id, values);
                let made = (id, tensor, values.meta, line);
                lane.store.keep_charged(&mut self.held, made, 0);
            }
            Err(error) => {
                let failure = self.plain_failure("shared", error.to_string());
                self.fail(lane, id, Arc::new(failure));
            }
        }
        true
    }

    /// Returns the engine's tensor of published values; `None` if some are not here.
    fn published_tensor(
        &mut self,
        values: &PublishedValues,
        snapshots: &SnapshotStore,
    ) -> Result<Option<E::Tensor>, EngineError> {
        if let Some(tensor) = self.library.get(values) {
            return Ok(Some(tensor.clone()));
        }
        let PublishedValues { publication, index, meta, need, parts } = values;
        let mut found = Vec::with_capacity(parts.len());
        for PublishedPart { slot, block } in parts {
            let owner = Owner { session: *publication, slot: *slot };
            match snapshots.value(owner, PUBLISHED, *index) {
                Some(Content::Data(data)) => found.push((*block, data.clone())),
                _ => return Ok(None),
            }
        }
        let is_one = found.len() == 1 && found[0].0 == *need;
        let data = assemble(*meta, need, &found);
        let tensor = self.guarded(|engine| engine.create(data))?;
        // On the host, the memory is that of the snapshot store.
        let is_counted = self.engine.is_on_host() && is_one;
        let bytes = if is_counted { 0 } else { meta.bytes() as u64 };
        self.held.add(bytes);
        let charge = PublishedCharge::Bytes(bytes);
        self.library.add((*publication, *index), *need, tensor.clone(), charge);
        Ok(Some(tensor))
    }

    /// Adds a tensor of a lane, as it is published, unless it is here: a session that is restored
    /// publishes once more.
    pub fn publish(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        publication: SessionId,
        made: &ToPublish,
    ) {
        let (name, block) = ((publication, made.index), made.block);
        // A tensor in a shared buffer would keep all of that.
        if let Some((tensor, ..)) = lane.store.details(made.tensor)
            && !lane.store.shared.has(made.tensor)
            && !self.library.has_block(name, &block)
        {
            let charge = match self.engine.is_on_host() {
                // The memory is that of the snapshot store.
                true => PublishedCharge::Bytes(0),
                false => PublishedCharge::Shared(lane.store.publish(&mut self.held, made.tensor)),
            };
            self.library.add(name, block, tensor, charge);
        }
    }

    /// Drops the tensors of a publication that has ended.
    pub fn end_publication(&mut self, publication: SessionId) {
        for charge in self.library.end(publication) {
            match charge {
                PublishedCharge::Bytes(bytes) => self.held.remove(bytes),
                PublishedCharge::Shared(number) => self.held.end_published(number),
            }
        }
    }

    /// Fails a lane's tensors of a publication that has ended, and views of them.
    pub fn fail_borrowed(&mut self, lane: &mut Lane<E::Tensor>, publication: SessionId) {
        let borrowed = lane.store.shared.borrowed.of(publication);
        // The operands of a running call stay until it ends.
        if lane.call.is_some() && !borrowed.is_empty() {
            return lane.ended.push(publication);
        }
        for id in borrowed {
            let line = lane.store.line(id);
            self.fail_read(lane, (id, line), ENDED);
        }
    }

    /// Fails the tensors of publications that have ended during a lane's call, which is over.
    pub fn fail_ended(&mut self, lane: &mut Lane<E::Tensor>) {
        for publication in std::mem::take(&mut lane.ended) {
            self.fail_borrowed(lane, publication);
        }
    }

    /// Fails a tensor of a publication that cannot be read.
    pub fn fail_read(
        &mut self,
        lane: &mut Lane<E::Tensor>,
        (id, line): (TensorId, SourceId),
        reason: &str,
    ) {
        let failure = self.plain_failure("shared", reason.into());
        self.fail(lane, id, Arc::new(Failure { line, ..failure }));
    }
}
