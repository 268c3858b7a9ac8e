//! Commands that publish tensors, and that read publications.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gt_ir::message::{Answer, Failure, Reply};
use gt_ir::publication::PUBLISHED;
use gt_ir::sharding::Block;
use gt_ir::snapshot::{Snapshot, ToPublish};
use gt_ir::stored::PublishedValues;
use gt_ir::{Create, Publish, RequestId, SessionId, SlotId, SourceId, WorkerCommand};

use super::Forward;
use crate::library::{Begun, PublicationStage, PublishedSlot, WaitingFind};
use crate::sessions::ClientSession;

impl Forward<'_> {
    /// Publishes tensors: their slots store them, and others copies of them.
    pub(super) fn publish(&mut self, publish: &Publish) {
        let (client, request) = (self.session.identity.peer, publish.request);
        let result = self.begin_publication(publish).transpose();
        let Some(result) = result else { return };
        let failed = |reason| Failure::new("publish", reason, "", SourceId::default());
        let lineage = self.session.lineage.as_ref();
        if lineage.is_some_and(|lineage| lineage.log.is_answered(request)) {
            return;
        }
        let result = result.map(|name| Reply::Published { name }).map_err(failed);
        self.outbox.push(client, Answer { request, result });
    }

    /// Returns the name with the version; `None` if the session is replayed and has published it
    /// before.
    ///
    /// # Errors
    /// Why it cannot be published.
    fn begin_publication(&mut self, publish: &Publish) -> Result<Option<String>, String> {
        let ClientSession { identity, planning, lineage, .. } = &mut *self.session;
        let entitlement = &identity.entitlement;
        let of = (entitlement.user.as_str(), entitlement.team.as_str());
        if publish.tensors.is_empty() {
            return Err("it contains no tensor\n  hint: gt.publish(NAME, model)".into());
        }
        let Begun::Store(id) = self.library.begin(identity.number, of, publish)? else {
            return Ok(None);
        };
        let catalogue = &mut planning.catalogue;
        let planned = self.planner.to_publish(catalogue, self.streams, &publish.tensors);
        let (tensors, parts) = planned.map_err(|failure| {
            self.library.remove(id);
            format!("a tensor has failed: {}", failure.reason)
        })?;
        let unreachable = lineage.as_ref().map(|lineage| lineage.unreachable.clone());
        let unreachable: BTreeSet<_> = unreachable.unwrap_or_default();
        let mut slots = Vec::with_capacity(parts.len());
        for (slot, parts) in &parts {
            let Some(host) = catalogue.slots.host(*slot) else {
                self.library.remove(id);
                return Err(format!("slot {slot} has no worker\n  hint: publish again later"));
            };
            let copy = self.workers.keeper(host, &unreachable);
            let bytes = |of: &ToPublish| {
                let dtype = tensors.get(of.index.0 as usize).map(|tensor| tensor.meta.dtype);
                dtype.map_or(0, |dtype| (of.block.shape.numel() * dtype.size()) as u64)
            };
            let bytes = parts.iter().map(bytes).sum();
            let (holders, storing) = (Vec::new(), Some((host, copy)));
            slots.push(PublishedSlot { slot: *slot, bytes, holders, storing });
        }
        if let Err(reason) = self.check_quota(id, &slots) {
            self.library.remove(id);
            return Err(reason);
        }
        self.store_parts(id, parts, &slots);
        let Some(publication) = self.library.get_mut(id) else { return Ok(None) };
        (publication.tensors, publication.slots) = (tensors, slots);
        Ok(Some(publication.version_name()))
    }

    /// Has slots store their parts of a publication.
    fn store_parts(
        &mut self,
        session: SessionId,
        parts: BTreeMap<SlotId, Vec<ToPublish>>,
        slots: &[PublishedSlot],
    ) {
        for ((slot, parts), of) in parts.into_iter().zip(slots) {
            let keeper = of.storing.and_then(|(_, copy)| copy);
            let (number, most, published) = (PUBLISHED, u64::MAX, Some(parts));
            let snapshot = Snapshot { session, number, keeper, most, published };
            self.streams.push(slot, WorkerCommand::Snapshot(Box::new(snapshot)));
        }
    }

    /// Checks that a user's publications do not exceed the quotas, with a new one.
    ///
    /// # Errors
    /// They do.
    fn check_quota(&self, id: SessionId, slots: &[PublishedSlot]) -> Result<(), String> {
        let entitlement = &self.session.identity.entitlement;
        for quota in &entitlement.memory {
            for worker in self.workers.iter() {
                let here = slots.iter().filter(|of| of.is_on(worker.id));
                let new: u64 = here.map(|of| of.bytes).sum();
                let others = self.library.iter().filter(|of| {
                    of.id != id && of.user == entitlement.user && of.team == entitlement.team
                });
                let held: u64 = others.map(|of| of.bytes_on(worker.id)).sum();
                if held + new > quota.bytes {
                    return Err(format!(
                        "it has {new} bytes on worker {}, and {} may hold {}, of which publications have {held}\n  hint: gt.unpublish(NAME) what is not needed any more",
                        worker.name, quota.holder, quota.bytes
                    ));
                }
            }
        }
        Ok(())
    }

    /// Answers with a publication, once it can be read.
    pub(super) fn find(&mut self, request: RequestId, name: &str) {
        let identity = &self.session.identity;
        let (client, entitlement) = (identity.peer, &identity.entitlement);
        let result = match self.library.find((&entitlement.user, &entitlement.team), name) {
            Ok(found) if found.stage == PublicationStage::Storing => {
                let waiting = WaitingFind { client, request, publication: found.id };
                return self.library.waiting.push(waiting);
            }
            Ok(found) => {
                self.session.planning.borrowed.find(found.id);
                Ok(Reply::Found(Box::new(found.found())))
            }
            Err(reason) => Err(Failure::new("shared", reason, "", SourceId::default())),
        };
        self.outbox.push(client, Answer { request, result });
    }

    /// Plans a tensor that is read from a publication.
    ///
    /// # Errors
    /// No valid client would read it so.
    pub(super) fn read_published(
        &mut self,
        create: &Create,
        values: &PublishedValues,
    ) -> Result<(), String> {
        let ClientSession { identity, planning, .. } = &mut *self.session;
        let (catalogue, entitlement) = (&mut planning.catalogue, &identity.entitlement);
        catalogue.check_new(create.output)?;
        let found = self.library.get(values.publication).filter(|of| {
            of.stage != PublicationStage::Storing && of.is_for(&entitlement.user, &entitlement.team)
        });
        let Some(publication) = found else {
            let reason = "the publication that the tensor is of has ended\n  hint: gt.published() lists what can be read";
            let failure = Failure::new("shared", reason, "", create.source);
            catalogue.fail(create.output, Arc::new(failure));
            return Ok(());
        };
        let tensor = publication.tensors.get(values.index.0 as usize);
        let is_whole =
            |meta: &gt_ir::Meta| *meta == values.meta && values.need == Block::whole(meta.shape);
        let Some(tensor) = tensor.filter(|tensor| is_whole(&tensor.meta)) else {
            return Err("a tensor of a publication has another shape or dtype".into());
        };
        let of = (create, publication.id, values.index);
        self.planner.read_published(catalogue, self.streams, of, tensor);
        let is_live = |id| catalogue.get(id).is_ok();
        planning.borrowed.add(create.output, publication.id, is_live);
        Ok(())
    }
}
