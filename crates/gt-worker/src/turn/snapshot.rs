//! A lane's snapshot, as a command in its turn.

use std::sync::Arc;

use gt_ir::message::WorkerToServer;
use gt_ir::names::Names;
use gt_ir::snapshot::{Inventory, Owner, SavedValue, Snapshot, ToPublish, Unkept};
use gt_ir::{Content, Create, SessionId, TensorId};

use super::Turn;
use crate::engine::{Engine, EngineError};
use crate::lane::keeping::Keeping;
use crate::snapshot_store::{MESSAGE, StoredValue, VALUES, ValuePlace, saved};
use crate::store::{SpillPlace, Stored};
use crate::work::Out;

impl<E: Engine> Turn<'_, E> {
    /// Stores values of the lane's tensors, and sends the new ones to the keeper, as many as fit in
    /// one message. Returns whether these were the last.
    pub(crate) fn take_snapshot(&mut self, snapshot: &Snapshot) -> bool {
        let mut keeping = self.lane.keeping.take();
        match self.keep_part(snapshot, &mut keeping) {
            Ok(true) => true,
            Ok(false) => {
                self.lane.keeping = keeping;
                // It is a whole turn if another lane waits.
                self.spent = self.spent.max(self.device.turn_work()) + 1;
                false
            }
            Err(reason) => {
                let (slot, result) = (self.lane.id.slot, Err(reason));
                let Snapshot { session, number, .. } = *snapshot;
                let backed =
                    WorkerToServer::BackupStored { session, slot, snapshot: number, result };
                self.out.push(Out::Server(backed));
                true
            }
        }
    }

    /// # Errors
    /// The reason why the snapshot cannot be stored.
    fn keep_part(
        &mut self,
        snapshot: &Snapshot,
        keeping: &mut Option<Keeping>,
    ) -> Result<bool, Unkept> {
        // What is stored now would never be dropped.
        if snapshot.published.is_some() && self.snapshots.has_ended(snapshot.session) {
            return Err(Unkept::Refused("the publication has ended".into()));
        }
        let owner = Owner { session: snapshot.session, slot: self.lane.id.slot };
        let keeping = match keeping {
            Some(keeping) => keeping,
            None => keeping.insert(self.begin_snapshot(owner, snapshot)?),
        };
        if !keeping.is_kept {
            let (mut values, mut fresh) = (Vec::new(), 0);
            while values.len() < VALUES
                && fresh < MESSAGE as u64
                && let Some(name) = keeping.missing.pop()
            {
                let value = match &snapshot.published {
                    None => self.value_to_keep(name, fresh),
                    Some(all) => self.value_to_publish(owner.session, all, name, fresh),
                };
                let value = value.map_err(Unkept::Refused)?;
                fresh += if value.place == ValuePlace::Mapped { 0 } else { value.saved.bytes() };
                values.push(value);
            }
            self.snapshots.add(owner, values);
            self.device.note_snapshots(self.snapshots.amounts());
            if !keeping.missing.is_empty() {
                return Ok(false);
            }
            // Stored values may have been evicted in favour of tensors meanwhile.
            let names = std::mem::take(&mut keeping.names);
            let runs = match snapshot.published {
                None => self.lane.warmth.counts(self.device.engine.warmup()),
                Some(_) => Vec::new(),
            };
            let inventory = Inventory { names, runs };
            let bytes = self.snapshots.complete(owner, snapshot.number, inventory)?;
            keeping.is_kept = true;
            let is_own = snapshot.keeper.is_some() && snapshot.keeper == self.lane.host(owner.slot);
            if is_own || snapshot.published.is_some() && snapshot.keeper.is_none() {
                // There is no other copy.
                let Owner { session, slot } = owner;
                let (snapshot, result) = (snapshot.number, Ok(bytes));
                let stored = WorkerToServer::BackupStored { session, slot, snapshot, result };
                self.out.push(Out::Server(stored));
                return Ok(true);
            }
        }
        let Some(backup) = self.snapshots.pack(owner, snapshot.number, snapshot.keeper) else {
            return Ok(true);
        };
        let is_last = backup.inventory.is_some();
        self.out.push(Out::backup(snapshot.keeper, backup));
        Ok(is_last)
    }

    /// # Errors
    /// There are too many values.
    fn begin_snapshot(&mut self, owner: Owner, snapshot: &Snapshot) -> Result<Keeping, Unkept> {
        if let Some(published) = &snapshot.published {
            let mut names = Names::default();
            published.iter().for_each(|of| names.insert(of.index));
            let missing = published.iter().rev().map(|of| of.index).collect();
            return Ok(Keeping { names, missing, is_kept: false });
        }
        let most = snapshot.most;
        let bytes = self.lane.store.values() + self.lane.store.spilled();
        if bytes > most {
            return Err(Unkept::Refused(format!(
                "there is no other worker to keep copies, and the server does not keep {bytes} bytes"
            )));
        }
        self.snapshots.outdate(owner, self.lane.undone.changed.drain());
        let names = self.lane.store.names();
        let mut missing: Vec<TensorId> = self.snapshots.missing(owner, &names).iter().collect();
        missing.reverse();
        Ok(Keeping { names, missing, is_kept: false })
    }

    /// Returns the value of a tensor that becomes part of a publication, under its number there.
    ///
    /// # Errors
    /// The reason why it cannot be published.
    fn value_to_publish(
        &mut self,
        publication: SessionId,
        all: &[ToPublish],
        index: TensorId,
        before: u64,
    ) -> Result<StoredValue, String> {
        let at = all.binary_search_by_key(&index, |of| of.index);
        let of = &all[at.map_err(|_| "the tensors are not sorted by their numbers")?];
        let borrowed = self.lane.store.shared.borrowed.has(of.tensor);
        let mut value = match borrowed {
            // A value of another publication, which may end before this one.
            true => self.read_to_keep(of.tensor, before)?,
            false => self.value_to_keep(of.tensor, before)?,
        };
        if let Err(failure) = &value.saved.result {
            return Err(failure.reason.clone());
        }
        value.saved.tensor = index;
        if !borrowed {
            self.device.publish(self.lane, publication, of);
        }
        Ok(value)
    }

    /// Returns a tensor's value, or the publication that has it, beside `before` bytes of others.
    ///
    /// # Errors
    /// The reason why its value cannot be stored.
    fn value_to_keep(&mut self, name: TensorId, before: u64) -> Result<StoredValue, String> {
        if let Some(values) = self.lane.store.shared.borrowed.values(name) {
            let result = Ok(Content::Published(Box::new(values.clone())));
            let line = self.lane.store.line(name);
            return Ok(StoredValue::new(SavedValue { tensor: name, line, result }));
        }
        self.read_to_keep(name, before)
    }

    /// Returns a tensor's value, beside `before` bytes of others.
    ///
    /// # Errors
    /// The reason why its value cannot be stored.
    fn read_to_keep(&mut self, name: TensorId, before: u64) -> Result<StoredValue, String> {
        match self.lane.store.get(name) {
            Some(Stored::Ready { tensor, line, meta, .. }) => {
                let bytes = before + meta.bytes() as u64;
                if bytes > self.device.room_for_snapshots(self.snapshots.amounts()) {
                    return Err("the worker has no memory left for a snapshot".into());
                }
                let (line, tensor) = (*line, tensor.clone());
                let read = self.device.guarded(|engine| engine.read(&tensor));
                let data = read.map_err(|error: EngineError| error.to_string())?;
                Ok(StoredValue::new(saved(name, line, Ok(data))))
            }
            Some(Stored::Failed(failure)) => {
                Ok(StoredValue::new(saved(name, failure.line, Err((**failure).clone()))))
            }
            Some(Stored::Away(away)) => match &away.place {
                SpillPlace::Host(data) | SpillPlace::Writing { data, .. } => {
                    Ok(StoredValue::new(saved(name, away.line, Ok(data.clone()))))
                }
                // The file may be removed: the mapping stays valid.
                SpillPlace::Disk { file, .. } | SpillPlace::Reading { file, .. } => {
                    match &file.mapped {
                        Some(content) => {
                            let (tensor, line) = (name, away.line);
                            let saved = SavedValue { tensor, line, result: Ok(content.clone()) };
                            Ok(StoredValue { saved, place: ValuePlace::Mapped })
                        }
                        None => Err("tensors on the worker's disk cannot be mapped".into()),
                    }
                }
            },
            Some(Stored::Pending(_)) => unreachable!("it has waited for all tensors"),
            None => unreachable!("the lane has it"),
        }
    }

    /// Returns whether the values of the snapshot that the lane restores have not arrived yet. If
    /// they are missing although they should be here, the lane is broken.
    pub(crate) fn lacks_snapshot(
        &mut self,
        session: SessionId,
        snapshot: u64,
        is_here: bool,
    ) -> bool {
        let lane = self.lane.id;
        let owner = Owner { session, slot: lane.slot };
        if self.snapshots.values(owner, snapshot).is_some() {
            return false;
        }
        let name = &self.device.stats.name;
        let lacks =
            |why: &str| format!("the worker '{name}' does not have the session's snapshot: {why}");
        let reason = match (is_here, self.snapshots.is_unwanted(session, snapshot)) {
            _ if self.snapshots.has_dropped(owner, snapshot) => format!(
                "its tensors could not be restored: the worker '{name}' needed the memory of its snapshot for tensors"
            ),
            (true, _) => lacks("it has another one"),
            (false, true) => lacks("others have dropped it"),
            // It is in flight.
            (false, false) => return true,
        };
        self.out.push(Out::Server(WorkerToServer::LaneBroken { lane, reason }));
        true
    }

    /// Creates a tensor from values.
    pub(crate) fn create(&mut self, create: &Create) {
        if let Content::Published(values) = &create.content {
            let (id, of) = (create.output, (values.clone(), create.source));
            return self.device.read_published(self.lane, id, of, self.snapshots, self.out);
        }
        self.device.create(self.lane, create, self.out);
    }

    /// Restores the values of a snapshot.
    pub(crate) fn restore(&mut self, session: SessionId, snapshot: u64) {
        let owner = Owner { session, slot: self.lane.id.slot };
        self.lane.warmth.set(self.snapshots.runs(owner, snapshot));
        for value in self.snapshots.values(owner, snapshot).unwrap_or_default() {
            let SavedValue { tensor, line, result } = value;
            match result {
                Ok(Content::Published(values)) => {
                    let (lane, snapshots) = (&mut *self.lane, &*self.snapshots);
                    self.device.read_published(lane, tensor, (values, line), snapshots, self.out);
                }
                Ok(content) => self.device.make(self.lane, tensor, content, line),
                Err(failure) => self.device.fail(self.lane, tensor, Arc::new(failure)),
            }
        }
        self.snapshots.release(owner, snapshot);
        self.device.note_snapshots(self.snapshots.amounts());
    }
}
