//! vmap: maps a function over a batch axis.
//!
//! Each running `vmap` has a [`Level`]; levels nest. [`boundary`]: tensors that enter and leave a
//! `vmap`. What happens in between is in `batching`.

mod boundary;

use std::sync::Arc;

pub(crate) use boundary::without_ended;

pub use crate::context::level::{Level, Randomness};
use crate::context::{self, Context};
use crate::session::Session;

impl Level {
    /// Starts a level on this thread.
    pub fn enter(session: &Session, size: usize, randomness: Randomness) -> Arc<Level> {
        let level = Level::new(session.number(), session.next_tensor(), size, randomness);
        let level = Arc::new(level);
        context::with(|context| context.enter_level(Arc::clone(&level)));
        level
    }

    /// Ends the level, and those within it.
    pub fn exit(&self) {
        context::with(|context| context.exit_level(self));
    }
}

/// Returns whether this thread is inside a `vmap`.
pub fn is_active() -> bool {
    context::with(Context::is_in_vmap)
}
