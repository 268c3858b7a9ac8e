//! Where a client's tensor is.

use std::sync::Arc;

use gt_ir::message::Failure;

use crate::dispatcher::PeerId;

/// A client's tensor, as the dispatcher knows it.
#[derive(Clone, Debug)]
pub enum TensorHandle {
    /// On this worker, or on its way there.
    On(PeerId),
    /// Lost, or never computed, because of this.
    Failed(Arc<Failure>),
}
