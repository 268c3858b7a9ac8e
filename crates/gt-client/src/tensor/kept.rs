//! Tensors that a session keeps under names.

use std::sync::Arc;

use bytes::Bytes;
use gt_ir::{Kept, KeptTensor};

use super::Tensor;
use crate::error::{ClientError, Result};
use crate::session::{KeptName, Session, StreamValue};

/// What is kept under a name.
pub struct KeptTensors {
    /// The containers, numbers and strings around the tensors, as they were given.
    pub structure: Bytes,
    pub tensors: Vec<Tensor>,
}

impl Session {
    /// Keeps tensors, as they are now, under a name, instead of what the name had. They stay in the
    /// session when it is detached, and when its program ends, if the session has a name.
    /// `structure` is returned with them.
    ///
    /// # Errors
    /// The name is empty or too long, a tensor is of another session or is mapped over by `vmap`,
    /// too much surrounds the tensors, or the session is closed.
    pub fn keep(&self, name: &str, structure: Bytes, tensors: &[Tensor]) -> Result<()> {
        KeptName::check(name).map_err(ClientError::Usage)?;
        let mut values: Vec<Arc<StreamValue>> = Vec::with_capacity(tensors.len());
        for tensor in tensors {
            tensor.check_in("keep", self)?;
            values.push(tensor.value());
        }
        let tensors = values.iter().map(|value| KeptTensor { id: value.id(), meta: value.meta });
        let kept = Kept { name: name.to_string(), structure, tensors: tensors.collect() };
        self.keep_values(kept, &values)
    }

    /// Returns what is kept under a name, as new tensors without history.
    pub fn kept(&self, name: &str) -> Option<KeptTensors> {
        let (kept, values) = self.kept_values(name)?;
        let tensors = values.into_iter().map(|value| Tensor::from_parts(value, None)).collect();
        Some(KeptTensors { structure: kept.structure.clone(), tensors })
    }
}
