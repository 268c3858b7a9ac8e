//! A snapshot of a lane in progress.

use gt_ir::TensorId;
use gt_ir::names::Names;

/// A snapshot of a lane in progress, a part at a time: other lanes have turns in between. The
/// lane's next command waits for its end, so its tensors do not change.
pub(crate) struct Keeping {
    pub names: Names,
    /// The tensors whose values are still to be stored, in reverse order.
    pub missing: Vec<TensorId>,
    /// Whether all are stored; then the new ones are sent to the keeper.
    pub is_kept: bool,
}
