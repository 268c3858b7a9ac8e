//! A lane's snapshot, as a command in its turn.

use std::sync::Arc;

use gt_ir::TensorId;
use gt_ir::message::Message;
use gt_ir::snapshot::{Owner, SavedValue, Snapshot, Unkept};

use super::saved;
use super::values::{Value, ValuePlace, bytes_of};
use crate::engine::{Engine, EngineError};
use crate::store::{Place, Stored};
use crate::turn::Turn;
use crate::work::Out;

impl<E: Engine> Turn<'_, E> {
    /// Keeps the values of all tensors of the lane, and sends those that are new to the keeper.
    pub(crate) fn take_snapshot(&mut self, snapshot: &Snapshot) {
        let Snapshot { session, number, keeper, most } = *snapshot;
        let slot = self.lane.id.slot;
        let owner = Owner { session, slot };
        let names = self.lane.store.names();
        let (mut values, mut fresh) = (Vec::new(), 0);
        let bytes = self.lane.store.bytes() + self.lane.store.spilled();
        if bytes > most {
            let result = Err(Unkept::Refused(format!(
                "there is no other worker to keep copies, and the server does not keep {bytes} bytes"
            )));
            let backed = Message::Backed { session, slot, snapshot: number, result };
            return self.out.push(Out::Dispatcher(backed));
        }
        self.vault.outdate(owner, self.lane.undone.changed.drain());
        for name in &names {
            if self.vault.has(owner, *name) {
                continue;
            }
            match self.value_to_keep(*name, fresh) {
                Ok(value) => {
                    fresh +=
                        if value.place == ValuePlace::Disk { 0 } else { bytes_of(&value.saved) };
                    values.push(value);
                }
                Err(reason) => {
                    let result = Err(Unkept::Refused(reason));
                    let backed = Message::Backed { session, slot, snapshot: number, result };
                    return self.out.push(Out::Dispatcher(backed));
                }
            }
        }
        self.vault.keep(owner, number, names, values);
        self.device.note_snapshots(self.vault.amounts());
        for backup in self.vault.pack(owner, number, keeper) {
            self.out.push(Out::backup(keeper, backup));
        }
    }

    /// A tensor's value, beside `before` bytes of others.
    ///
    /// # Errors
    /// Why there is none to be kept.
    fn value_to_keep(&mut self, name: TensorId, before: u64) -> Result<Value, String> {
        match self.lane.store.get(name) {
            Some(Stored::Ready { tensor, line, meta, .. }) => {
                let bytes = before + meta.bytes() as u64;
                if bytes > self.device.room_for_snapshots(self.vault.amounts()) {
                    return Err("the worker has no memory left for a snapshot".into());
                }
                let (line, tensor) = (*line, tensor.clone());
                let read = self.device.guarded(|engine| engine.read(&tensor));
                let data = read.map_err(|error: EngineError| error.to_string())?;
                Ok(Value::new(saved(name, line, Ok(data))))
            }
            Some(Stored::Failed(failure)) => {
                Ok(Value::new(saved(name, failure.line, Err((**failure).clone()))))
            }
            Some(Stored::Away(away)) => match &away.place {
                Place::Host(data) | Place::Writing { data, .. } => {
                    Ok(Value::new(saved(name, away.line, Ok(data.clone()))))
                }
                // The file may be removed: what is mapped stays as long as it is.
                Place::Disk { file, .. } | Place::Reading { file, .. } => match &file.mapped {
                    Some(content) => {
                        let (tensor, line) = (name, away.line);
                        let saved = SavedValue { tensor, line, result: Ok(content.clone()) };
                        Ok(Value { saved, place: ValuePlace::Disk })
                    }
                    None => Err("tensors on the worker's disk cannot be mapped".into()),
                },
            },
            Some(Stored::Pending(_)) => unreachable!("it has waited for all tensors"),
            None => unreachable!("the lane has it"),
        }
    }

    /// Whether the values of a snapshot that the lane is to take back have not come yet, or are not
    /// here although they should be: then the lane is broken.
    pub(crate) fn lacks_snapshot(&mut self, session: u32, snapshot: u64, is_here: bool) -> bool {
        let lane = self.lane.id;
        let owner = Owner { session, slot: lane.slot };
        if self.vault.values(owner, snapshot).is_some() {
            return false;
        }
        let why = match (is_here, self.vault.is_unwanted(session, snapshot)) {
            _ if self.vault.has_dropped(owner, snapshot) => "it needed the memory for tensors",
            (true, _) => "it has another one",
            (false, true) => "others have dropped it",
            // It is on its way.
            (false, false) => return true,
        };
        let name = &self.device.stats.name;
        let reason = format!("the worker '{name}' does not have the session's snapshot: {why}");
        self.out.push(Out::Dispatcher(Message::LaneBroken { lane, reason }));
        true
    }

    /// Takes back the values of a snapshot.
    pub(crate) fn restore(&mut self, session: u32, snapshot: u64) {
        let owner = Owner { session, slot: self.lane.id.slot };
        for value in self.vault.values(owner, snapshot).unwrap_or_default() {
            let SavedValue { tensor, line, result } = value;
            match result {
                Ok(content) => self.device.make(self.lane, tensor, content, line),
                Err(failure) => self.device.fail(self.lane, tensor, Arc::new(failure)),
            }
        }
    }
}
