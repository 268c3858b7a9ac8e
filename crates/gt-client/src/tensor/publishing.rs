//! Tensors that are published, and those that others have published.

use std::sync::Arc;

use bytes::Bytes;
use gt_ir::publication::Audience;
use gt_ir::sharding::Block;
use gt_ir::stored::PublishedValues;
use gt_ir::{Content, KeptTensor, Meta, Publish, RequestId, TensorId};

use super::Tensor;
use crate::driver::Interrupt;
use crate::error::Result;
use crate::session::{Session, StreamValue};

/// What a session publishes.
pub struct NewPublication {
    /// The name, without user and version.
    pub name: String,
    pub audience: Audience,
    pub description: String,
    /// The containers, numbers and strings around the tensors.
    pub structure: Bytes,
    /// The time, in seconds since 1970.
    pub at: u64,
}

/// What was published.
pub struct SharedTensors {
    /// The name with user and version.
    pub name: String,
    pub structure: Bytes,
    pub tensors: Vec<Tensor>,
}

impl Session {
    /// Publishes tensors as they are now. Returns the name with user and version.
    ///
    /// # Errors
    /// A tensor is of another session, is mapped over by `vmap` or has failed; the name or the
    /// audience is not valid, a quota is exceeded, the connection was lost, or `interrupt` ended the
    /// wait.
    pub fn publish(
        &self,
        new: NewPublication,
        tensors: &[Tensor],
        interrupt: Interrupt,
    ) -> Result<String> {
        let mut values: Vec<Arc<StreamValue>> = Vec::with_capacity(tensors.len());
        for tensor in tensors {
            tensor.check_in("publish", self)?;
            values.push(tensor.value());
        }
        let NewPublication { name, audience, description, structure, at } = new;
        let tensors = values.iter().map(|value| KeptTensor { id: value.id(), meta: value.meta });
        let publish = Publish {
            request: RequestId(0),
            name,
            audience,
            description,
            structure,
            tensors: tensors.collect(),
            at,
        };
        let name = self.publish_values(publish, interrupt);
        // They stay until the server has planned the request.
        drop(values);
        name
    }

    /// Returns what was published under a name, as new tensors that share its memory.
    ///
    /// # Errors
    /// There is none of this name that the user may read, the connection was lost, `interrupt` ended
    /// the wait; or the session is recorded, and its values cannot be fetched.
    pub fn shared(&self, name: &str, interrupt: Interrupt) -> Result<SharedTensors> {
        let found = self.find(name, &mut *interrupt)?;
        let of = |(number, meta): (usize, &Meta)| {
            let values = PublishedValues {
                publication: found.publication,
                index: TensorId(number as u64),
                meta: *meta,
                need: Block::whole(meta.shape),
                parts: Vec::new(),
            };
            let tensor = Tensor::from_content(self, Content::Published(Box::new(values)));
            tensor.lock().set_published(&tensor.state);
            tensor
        };
        let tensors: Vec<Tensor> = found.tensors.iter().enumerate().map(of).collect();
        // The publication may be withdrawn: this session reads it from now on.
        self.flush();
        if self.records_published() {
            for (number, tensor) in tensors.iter().enumerate() {
                let values = tensor.fetch_with(&mut *interrupt)?;
                let index = TensorId(number as u64);
                self.record_published(found.publication, index, values);
            }
        }
        Ok(SharedTensors { name: found.name, structure: found.structure, tensors })
    }
}
