//! Tensors in files that workers read and write.

use gt_ir::message::Message;
use gt_ir::stored::{Save, StoredValues, Written};
use gt_ir::{ClientCommand, Content, SourceId, TensorId};

use super::Session;
use super::request::{Pending, error_in};
use crate::driver::Interrupt;
use crate::error::Result;
use crate::source;
use crate::tensor::{Tensor, apply};

/// Tensors that are being written.
pub struct AskedSave {
    pending: Pending,
    /// Keeps the values until they are on the disk.
    tensors: Vec<Tensor>,
}

impl AskedSave {
    /// Waits until all is on the disk; gives what was written, by tensor. It can be had once. Files are
    /// written also if nobody waits.
    ///
    /// # Errors
    /// An operation that made a tensor failed, a file could not be written, the connection was lost,
    /// `interrupt` gave up, or there was a wait before.
    pub fn wait(&self, interrupt: Interrupt) -> Result<Vec<Written>> {
        match self.pending.wait(interrupt)? {
            Message::Saved { result: Ok(written), .. } => Ok(written),
            other => Err(error_in(other, SourceId::default())),
        }
    }

    pub fn session(&self) -> &Session {
        self.pending.session()
    }

    pub fn tensors(&self) -> &[Tensor] {
        &self.tensors
    }
}

impl Session {
    /// The folders in which its workers may read and write files; `None` if that is wherever this
    /// process may.
    pub fn data_roots(&self) -> Option<Vec<String>> {
        self.0.driver.data_roots()
    }

    /// Has the workers write tensors into files of a folder, which is made if it is missing. Each
    /// file is there once it is complete. Returns at once.
    ///
    /// # Errors
    /// A tensor is of another session, or has no values of its own.
    pub fn save(&self, folder: &str, tensors: &[Tensor]) -> Result<AskedSave> {
        let tensors: Vec<Tensor> = tensors.iter().map(Tensor::without_history).collect();
        let mut ids: Vec<TensorId> = Vec::with_capacity(tensors.len());
        for tensor in &tensors {
            tensor.check_has_values("save")?;
            if !tensor.session().is(self) {
                return Err(apply::two_sessions("save", self, &tensor.session()));
            }
            ids.push(tensor.value().id());
        }
        let (folder, line) = (folder.to_string(), source::current());
        let request = self.request(|request| {
            ClientCommand::Save(Box::new(Save { request, folder, tensors: ids, line }))
        })?;
        Ok(AskedSave { pending: Pending::new(self, request, false), tensors })
    }

    /// A tensor whose values the workers read from files, each what it needs. Returns at once.
    pub fn load(&self, values: StoredValues) -> Tensor {
        Tensor::from_content(self, Content::Stored(Box::new(values)))
    }
}
