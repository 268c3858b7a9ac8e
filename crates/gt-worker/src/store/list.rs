//! Lists of a lane's tensors, for choosing what to spill and for messages.

use gt_ir::{Meta, SourceId, TensorId};

use super::{Store, Stored};

/// A tensor that is ready.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Listed {
    pub id: TensorId,
    pub meta: Meta,
    pub line: SourceId,
    /// The bytes of its buffer.
    pub bytes: u64,
    /// When it was used last, in turns of the worker.
    pub used: u64,
    /// Whether other tensors share the buffer.
    pub is_shared: bool,
}

impl<T> Store<T> {
    /// All tensors that are ready, with what is known of them, in the order of their names: the line
    /// that made each, the bytes of its buffer, and when it was used last.
    pub fn list(&self) -> Vec<Listed> {
        let listed = |(id, stored): (&TensorId, &Stored<T>)| match stored {
            Stored::Ready { meta, line, used, .. } => {
                let shared = self.shared.buffer_of(*id);
                let (bytes, is_shared) = shared.unwrap_or((meta.bytes() as u64, false));
                Some(Listed { id: *id, meta: *meta, line: *line, bytes, used: *used, is_shared })
            }
            _ => None,
        };
        let mut all: Vec<Listed> = self.tensors.iter().filter_map(listed).collect();
        all.sort_unstable_by_key(|listed| listed.id);
        all
    }
}
