//! Whether large tensors are cut over all workers unasked.

use gt_dispatcher::Dispatcher;
use tracing::warn;

/// From this size on, if `GT_AUTO_SHARD` says no other.
const LARGE: usize = 1 << 20;

/// Has a dispatcher shard automatically, if `GT_AUTO_SHARD` asks for it: `1`, or the size in
/// bytes from which on tensors are cut.
pub fn shard_from_environment(dispatcher: &mut Dispatcher) {
    let wanted = std::env::var("GT_AUTO_SHARD").unwrap_or_default();
    match wanted.trim() {
        "" | "0" => {}
        "1" => dispatcher.planner().shard_automatically(LARGE),
        text => match text.parse::<usize>() {
            Ok(bytes) => dispatcher.planner().shard_automatically(bytes),
            Err(_) => {
                warn!("GT_AUTO_SHARD is '{text}', expected 1, 0 or a size in bytes: it is ignored")
            }
        },
    }
}
