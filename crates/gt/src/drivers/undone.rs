//! Warnings of optimizer steps that workers have undone, although no failed value was fetched.

use std::sync::{Mutex, PoisonError};

use gt_ir::message::Failure;

/// The undone steps that a session was warned of.
#[derive(Default)]
pub struct UndoneSteps(Mutex<Told>);

#[derive(Default)]
struct Told {
    /// The place in the program of the last one: several slots report the same step.
    last: Option<u64>,
    count: u64,
}

impl UndoneSteps {
    /// Warns of an undone step, once; of many steps it warns of the first, second, fourth, eighth
    /// and so on.
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
