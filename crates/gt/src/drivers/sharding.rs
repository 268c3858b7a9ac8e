//! Automatic sharding of large tensors, configured by `GT_AUTO_SHARD`.

use gt_dispatcher::Dispatcher;
use tracing::warn;

/// The default threshold in bytes.
const LARGE: usize = 1 << 20;

/// Enables automatic sharding if `GT_AUTO_SHARD` is `1` or a threshold in bytes.
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
