//! Steps that workers have undone: their user is told, though nobody asks for a value that failed.

use std::sync::{Mutex, PoisonError};

use gt_ir::message::Failure;

/// What a session was told of.
#[derive(Default)]
pub struct UndoneSteps(Mutex<Told>);

#[derive(Default)]
struct Told {
    /// The place in the program of the last: several slots tell of one step.
    last: Option<u64>,
    count: u64,
}

impl UndoneSteps {
    /// Tells of a step, unless it was told of; of many steps the first, second, fourth and so on.
    pub fn tell(&self, failure: &Failure) {
        let mut told = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if failure.place.is_some() && told.last == failure.place {
            return;
        }
        (told.last, told.count) = (failure.place, told.count + 1);
        if told.count.is_power_of_two() {
            let count = told.count;
            drop(told);
            let location = gt_client::source::text(failure.line);
            let text = gt_client::failed_text(failure, location.as_deref(), &|_| None);
            tracing::warn!("a step was undone, the {count}. of this session: {text}");
        }
    }
}
