//! Tensors in files that workers read and write.

use gt_ir::message::Reply;
use gt_ir::stored::{Save, StoredValues, Written};
use gt_ir::{ClientCommand, Content, SourceId, TensorId};

use super::Tensor;
use crate::driver::Interrupt;
use crate::error::Result;
use crate::session::{PendingAnswer, Session, error_in};
use crate::source;

/// Tensors that workers are writing.
pub struct AskedSave {
    pending: PendingAnswer,
    /// Keeps the values alive until they are on disk.
    tensors: Vec<Tensor>,
}

impl AskedSave {
    /// Waits until all tensors are on disk; returns what was written, by tensor. It can be taken
    /// once. Files are also written if no thread waits.
    ///
    /// # Errors
    /// An operation that made a tensor failed, a file could not be written, the connection was
    /// lost, `interrupt` ended the wait, or the result was taken by an earlier wait.
    pub fn wait(&self, interrupt: Interrupt) -> Result<Vec<Written>> {
        match self.pending.wait(interrupt)?.result {
            Ok(Reply::Saved(written)) => Ok(written),
            other => Err(error_in(other, SourceId::default())),
        }
    }

    /// Returns the session whose workers write the files.
    pub fn session(&self) -> &Session {
        self.pending.session()
    }

    /// Returns the tensors that are written.
    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }
}

impl Session {
    /// Has the workers write tensors into files of a folder, which is created if it is missing.
    /// Each file appears once it is complete. Returns at once.
    ///
    /// # Errors
    /// A tensor is of another session, or is mapped over by `vmap`.
    pub fn save(&self, folder: &str, tensors: &[Tensor]) -> Result<AskedSave> {
        let tensors: Vec<Tensor> = tensors.iter().map(Tensor::without_history).collect();
        let mut ids: Vec<TensorId> = Vec::with_capacity(tensors.len());
        for tensor in &tensors {
            tensor.check_in("save", self)?;
            ids.push(tensor.value().id());
        }
        let (folder, line) = (folder.to_string(), source::current());
        let request = self.request(|request| {
            ClientCommand::Save(Box::new(Save { request, folder, tensors: ids, line }))
        })?;
        Ok(AskedSave { pending: PendingAnswer::new(self, request, false), tensors })
    }

    /// Returns a tensor whose values the workers read from files, each the part that it needs.
    /// Returns at once.
    pub fn load(&self, values: StoredValues) -> Tensor {
        Tensor::from_content(self, Content::Stored(Box::new(values)))
    }
}
