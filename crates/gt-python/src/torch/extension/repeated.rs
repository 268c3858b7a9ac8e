//! Calls that are like earlier ones: what the kernel in Python issued, wrote and gave then is issued,
//! written and given again.

use std::cell::RefCell;

use super::argument::Argument;
use super::call::Call;
use super::effects::Effects;
use super::pending::Pending;
use super::{Outcome, Results};
use crate::session::with_lock;
use crate::torch::programs::Programs;

/// An operator's kernel.
pub struct Repeated {
    passes_numbers: bool,
    calls: Programs<Effects>,
}

thread_local! {
    static PENDING: RefCell<Option<Pending>> = const { RefCell::new(None) };
}

/// Drops the call that is being recorded.
pub fn give_up() {
    PENDING.take();
}

impl Repeated {
    pub fn new(passes_numbers: bool) -> Repeated {
        Repeated { passes_numbers, calls: Programs::default() }
    }

    /// Does a call again that is like an earlier one, or says who is to do it. `dtype` is PyTorch's
    /// default.
    pub fn begin(&self, arguments: &[Argument], dtype: u8, results: Results) -> Outcome {
        if self.calls.is_hopeless() {
            return Outcome::Call;
        }
        let mut call = Call::new(arguments, self.passes_numbers);
        if call.read(dtype).is_none() {
            return Outcome::Call;
        }
        let (found, wants_more) = self.calls.find(&call.key);
        if let Some(effects) = found
            && effects.repeat(&call, results).is_some()
        {
            return Outcome::Done;
        }
        if !wants_more {
            return Outcome::Call;
        }
        let session = with_lock(|_| call.session());
        match session.and_then(|session| Pending::begin(&session, call)) {
            Some(pending) => {
                PENDING.set(Some(pending));
                Outcome::Record
            }
            None => Outcome::Call,
        }
    }

    /// Keeps what the call has done.
    pub fn finish(&self, arguments: &[Argument], results: &[Argument]) {
        if let Some(pending) = PENDING.take()
            && let Some((key, effects)) = pending.end(arguments, results)
        {
            let steps = effects.program.instructions();
            self.calls.keep(key, effects, steps);
        }
    }
}
