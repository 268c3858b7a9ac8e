//! The line of the user's program that issued an instruction, and the function that it called
//! there.

use std::panic::Location;

use gt_ir::SourceId;

use crate::context;
pub use crate::context::lines::{
    CallId, UserCall, call, intern, intern_call, intern_within, is_of_gradient, lines_from,
    of_gradient, short, text,
};

/// Sets the line of this thread's instructions from now on.
pub fn set(source: SourceId) {
    context::with(|context| context.set_line(source));
}

/// Returns the line that was set last on this thread, or else the Rust caller's line.
#[track_caller]
pub fn current() -> SourceId {
    let caller = Location::caller();
    context::with(|context| context.line(caller))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_restored() {
        set(SourceId(8));
        context::with(|context| {
            context.within_line(SourceId(4), || {
                context.within_line(SourceId(0), || assert_eq!(current(), SourceId(4)));
            });
        });
        assert_eq!(current(), SourceId(8));
        set(SourceId(0));
    }
}
