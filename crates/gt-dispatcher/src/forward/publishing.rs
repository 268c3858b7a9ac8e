//! Commands that publish tensors, and that read publications.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use gt_ir::entitlement::Entitlement;
use gt_ir::message::{Answer, Failure, Reply};
use gt_ir::publication::PUBLISHED;
use gt_ir::sharding::Block;
use gt_ir::snapshot::{Snapshot, ToPublish};
use gt_ir::stored::PublishedValues;
use gt_ir::{Create, Publish, RequestId, SessionId, SlotId, SourceId, WorkerCommand};

use super::Forward;
use crate::library::{
    Begun, Publication, PublicationStage, PublishedSlot, RefusedPublication, WaitingFind,
};
use crate::sessions::ClientSession;

impl Forward<'_> {
    /// Publishes tensors: their slots store them, and others copies of them.
    pub(super) fn publish(&mut self, publish: &Publish) {
        let request = publish.request;
        let failed = |reason| Failure::new("publish", reason, "", SourceId::default());
        match self.begin_publication(publish) {
            Err(reason) => self.refuse_publication(publish, failed(reason)),
            Ok(_) if self.is_answered(request) => {}
            Ok(name) => {
                let answer = Answer::new(request, Reply::Published { name });
                self.outbox.push(self.session.identity.peer, answer);
            }
        }
    }

    /// Returns whether a request of a session that is replayed was answered.
    fn is_answered(&self, request: RequestId) -> bool {
        let lineage = self.session.lineage.as_ref();
        lineage.is_some_and(|lineage| lineage.log.is_answered(request))
    }

    /// Answers a request to publish with its failure. What had begun ends.
    pub(super) fn refuse_publication(&mut self, publish: &Publish, failure: Failure) {
        let (identity, request) = (&self.session.identity, publish.request);
        let (client, is_answered) = (identity.peer, self.is_answered(request));
        let begun = self.library.of((identity.number, request));
        if let Some(begun) = begun.filter(|of| of.stage == PublicationStage::Storing) {
            let (id, reason) = (begun.id, failure.reason.clone());
            let refused = RefusedPublication { id, reason, is_reported: !is_answered };
            self.library.planned.refused.push(refused);
        }
        if !is_answered {
            self.outbox.push(client, Answer { request, result: Err(failure) });
        }
    }

    /// Returns the name with the version.
    ///
    /// # Errors
    /// Why it cannot be published.
    fn begin_publication(&mut self, publish: &Publish) -> Result<String, String> {
        let ClientSession { identity, planning, lineage, .. } = &mut *self.session;
        let entitlement = &identity.entitlement;
        let of = (entitlement.user.as_str(), entitlement.team.as_str());
        if publish.tensors.is_empty() {
            return Err("it contains no tensor\n  hint: gt.publish(NAME, model)".into());
        }
        let id = match self.library.begin(identity.number, of, publish)? {
            Begun::Store(id) => id,
            Begun::Done(name) => return Ok(name),
        };
        let catalogue = &mut planning.catalogue;
        let planned = self.planner.to_publish(catalogue, self.streams, &publish.tensors);
        let (tensors, parts) =
            planned.map_err(|failure| format!("a tensor has failed: {}", failure.reason))?;
        let unreachable = lineage.as_ref().map(|lineage| lineage.unreachable.clone());
        let unreachable: BTreeSet<_> = unreachable.unwrap_or_default();
        let mut slots = Vec::with_capacity(parts.len());
        for (slot, parts) in &parts {
            let host = catalogue
                .slots
                .host(*slot)
                .ok_or_else(|| format!("slot {slot} has no worker\n  hint: publish again later"))?;
            let copy = self.workers.keeper(host, &unreachable);
            let bytes = |of: &ToPublish| {
                let dtype = tensors.get(of.index.0 as usize).map(|tensor| tensor.meta.dtype);
                dtype.map_or(0, |dtype| (of.block.shape.numel() * dtype.size()) as u64)
            };
            let bytes = parts.iter().map(bytes).sum();
            let (holders, storing) = (Vec::new(), Some((host, copy)));
            slots.push(PublishedSlot { slot: *slot, bytes, holders, storing });
        }
        self.check_quota(id, &slots)?;
        self.store_parts(id, parts, &slots);
        let publication = self.library.get_mut(id).ok_or("it has ended")?;
        (publication.tensors, publication.slots) = (tensors, slots);
        Ok(publication.version_name())
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
        let Entitlement { user, team, .. } = &self.session.identity.entitlement;
        for (holder, rule) in self.rules.of(user, team) {
            let Some(most) = rule.memory else { continue };
            let is_counted = |of: &&Publication| of.id != id && holder.is(&of.user, &of.team);
            for worker in self.workers.iter() {
                let here = slots.iter().filter(|of| of.is_on(worker.id));
                let new: u64 = here.map(|of| of.bytes).sum();
                let others = self.library.iter().filter(is_counted);
                let held: u64 = others.map(|of| of.bytes_on(worker.id)).sum();
                if held + new > most {
                    return Err(format!(
                        "it has {new} bytes on worker {}, and {holder} may hold {most}, of which publications have {held}\n  hint: gt.unpublish(NAME) what is not needed any more",
                        worker.name
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
                // The session may be replayed.
                self.library.cancel(client, request);
                return self.library.waiting.push(waiting);
            }
            Ok(found) => {
                // Its publisher may only wait until it is stored.
                if found.origin.0 != identity.number {
                    self.session.planning.borrowed.find(found.id);
                }
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
