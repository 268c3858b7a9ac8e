//! What a session keeps under names, for the program that attaches to it next.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, MutexGuard, PoisonError};

use gt_ir::message::Reply;
use gt_ir::{ClientCommand, Detach, Kept, KeptTensor, SourceId, TensorId};
use rustc_hash::FxHashMap;

use super::request::error_in;
use super::{Session, StreamValue};
use crate::context::invalidate_recording;
use crate::driver::Interrupt;
use crate::error::{ClientError, Result};

/// What a session keeps, and how often each kept tensor is referred to.
#[derive(Default)]
pub(super) struct KeptRegistry {
    names: BTreeMap<String, Arc<Kept>>,
    references: FxHashMap<TensorId, References>,
}

/// What refers to a kept tensor: it is freed when nothing does.
#[derive(Default)]
struct References {
    /// The names that it is kept under, with repetitions.
    names: usize,
    /// Its values in this process.
    values: usize,
}

/// A name, and what is kept under it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KeptName {
    pub name: String,
    pub tensors: usize,
    /// The bytes of the tensors.
    pub bytes: u64,
}

impl KeptRegistry {
    /// Keeps tensors under a name. Returns those that are to be freed.
    fn keep(&mut self, kept: Kept) -> Vec<TensorId> {
        for tensor in &kept.tensors {
            self.references.entry(tensor.id).or_default().names += 1;
        }
        let before = self.names.insert(kept.name.clone(), Arc::new(kept));
        before.map_or_else(Vec::new, |before| self.release(&before))
    }

    /// Checks that what surrounds the tensors does not get too long.
    fn check_room(&self, new: &Kept) -> Result<()> {
        let others = self.names.values().filter(|other| other.name != new.name);
        let bytes = new.bytes() + others.map(|other| other.bytes()).sum::<usize>();
        if bytes <= Kept::MOST_BYTES {
            return Ok(());
        }
        Err(ClientError::usage(format!(
            "keep: with '{}', the names and what surrounds the tensors would have {bytes} bytes, {} are allowed\n  hint: keep numbers in tensors, or gt.unkeep(NAME) what is not needed any more",
            new.name,
            Kept::MOST_BYTES
        )))
    }

    /// Notes that a name is gone. Returns the tensors that are to be freed.
    fn release(&mut self, before: &Kept) -> Vec<TensorId> {
        let ids = before.tensors.iter().map(|tensor| tensor.id);
        ids.filter(|id| self.drop_reference(*id, |of| &mut of.names)).collect()
    }

    /// Drops a reference to a tensor; returns whether it is to be freed.
    fn drop_reference(
        &mut self,
        id: TensorId,
        count: impl FnOnce(&mut References) -> &mut usize,
    ) -> bool {
        let Some(references) = self.references.get_mut(&id) else { return false };
        *count(references) -= 1;
        let is_free = references.names + references.values == 0;
        if is_free {
            self.references.remove(&id);
        }
        is_free
    }
}

impl Session {
    fn kept_names(&self) -> MutexGuard<'_, KeptRegistry> {
        self.0.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Keeps values under a name, instead of what the name had.
    ///
    /// # Errors
    /// Too much surrounds the tensors; the session is closed.
    pub(crate) fn keep_values(&self, kept: Kept, values: &[Arc<StreamValue>]) -> Result<()> {
        invalidate_recording();
        let freed = {
            let mut names = self.kept_names();
            names.check_room(&kept)?;
            for value in values {
                if !value.is_kept.swap(true, Ordering::SeqCst) {
                    names.references.entry(value.id()).or_default().values += 1;
                }
            }
            self.append_now(ClientCommand::Keep(Box::new(kept.clone())))?;
            names.keep(kept)
        };
        freed.into_iter().for_each(|id| self.free(id));
        Ok(())
    }

    /// Returns what is kept under a name, with new values.
    pub(crate) fn kept_values(&self, name: &str) -> Option<(Arc<Kept>, Vec<Arc<StreamValue>>)> {
        let mut names = self.kept_names();
        let kept = Arc::clone(names.names.get(name)?);
        let mut value = |of: &KeptTensor| {
            names.references.entry(of.id).or_default().values += 1;
            let value = self.value(of.id, of.meta, SourceId::default());
            value.is_kept.store(true, Ordering::SeqCst);
            value
        };
        let values = kept.tensors.iter().map(&mut value).collect();
        Some((kept, values))
    }

    /// Keeps nothing under a name any more. Returns whether there was anything.
    ///
    /// # Errors
    /// The session is closed.
    pub fn unkeep(&self, name: &str) -> Result<bool> {
        let freed = {
            let mut names = self.kept_names();
            let Some(before) = names.names.remove(name) else { return Ok(false) };
            self.append_now(ClientCommand::Unkeep { name: name.to_string() })?;
            names.release(&before)
        };
        freed.into_iter().for_each(|id| self.free(id));
        Ok(true)
    }

    /// Returns the names under which anything is kept, sorted.
    pub fn list_kept(&self) -> Vec<KeptName> {
        let names = self.kept_names();
        let of = |kept: &Arc<Kept>| KeptName {
            name: kept.name.clone(),
            tensors: kept.tensors.len(),
            bytes: kept.tensors.iter().map(|tensor| tensor.meta.bytes() as u64).sum(),
        };
        names.names.values().map(of).collect()
    }

    /// Reads what the session keeps, after attaching to it.
    ///
    /// # Errors
    /// The connection was lost, or `interrupt` ended the wait.
    pub fn read_kept(&self, interrupt: Interrupt) -> Result<()> {
        let request = self.request(|request| ClientCommand::Kept { request })?;
        match self.0.wait(request, interrupt)?.result {
            Ok(Reply::Kept(all)) => {
                let mut names = self.kept_names();
                all.into_iter().for_each(|kept| drop(names.keep(kept)));
                Ok(())
            }
            other => Err(error_in(other, SourceId::default())),
        }
    }

    /// Leaves the session on the server under a name, once the server has received all that was
    /// issued; it is closed here. With a token, it can be attached to only with that.
    ///
    /// # Errors
    /// The name is not valid or taken, the connection was lost, or `interrupt` ended the wait.
    pub fn detach(&self, name: &str, token: Option<u128>, interrupt: Interrupt) -> Result<()> {
        self.flush();
        self.0.driver.settle(interrupt)?;
        let detach = |request| Detach { request, name: name.to_string(), token };
        let request = self.request(|request| ClientCommand::Detach(Box::new(detach(request))))?;
        match self.0.wait(request, interrupt)?.result {
            Ok(Reply::Detached) => {
                self.0.lock().closing = Some(format!(
                    "the session was detached as '{name}', and its tensors are on the server\n  hint: gt.attach({name:?}) continues with it, and gt.kept(NAME) returns what it keeps"
                ));
                self.close();
                Ok(())
            }
            Err(failure) => Err(ClientError::Usage(format!("detach: {}", failure.reason))),
            other => Err(error_in(other, SourceId::default())),
        }
    }

    /// Notes that a value of a kept tensor was dropped. Returns whether the tensor is to be freed.
    pub(super) fn drop_kept_value(&self, id: TensorId) -> bool {
        self.kept_names().drop_reference(id, |of| &mut of.values)
    }

    /// Submits a command at once, after all earlier ones.
    fn append_now(&self, command: ClientCommand) -> Result<()> {
        let mut stream = self.0.lock();
        if stream.closed {
            return Err(stream.closed_error());
        }
        self.0.append(&mut stream, command, 0, 0);
        if !stream.batch.is_empty() {
            self.0.submit(&mut stream);
        }
        Ok(())
    }
}

impl KeptName {
    /// Checks a name for what is kept.
    ///
    /// # Errors
    /// Why it is not valid.
    pub fn check(name: &str) -> std::result::Result<(), String> {
        let (count, most) = (name.chars().count(), Kept::MOST);
        if name.trim().is_empty() {
            return Err(format!("keep: the name is '{name}', which is empty"));
        }
        if count > most {
            return Err(format!("keep: the name has {count} characters, {most} are allowed"));
        }
        match name.chars().find(|letter| letter.is_control()) {
            Some(letter) => Err(format!(
                "keep: the name has the character {letter:?}, expected letters, digits, spaces and punctuation"
            )),
            None => Ok(()),
        }
    }
}
