//! ExtensionCallbacks that are like earlier ones: what the kernel in Python issued, wrote and gave
//! then is issued, written and given again.

use std::cell::RefCell;

use super::argument::ExtensionArgument;
use super::call::ExtensionCall;
use super::effects::RecordedEffects;
use super::recording::PendingRecording;
use super::{CallOutcome, ExtensionResults};
use crate::session::with_gil;
use crate::torch::kernel_cache::KernelCache;

/// An operator's kernel.
pub struct ReplayedKernel {
    passes_numbers: bool,
    calls: KernelCache<RecordedEffects>,
}

thread_local! {
    static PENDING: RefCell<Option<PendingRecording>> = const { RefCell::new(None) };
}

/// Drops the call that is being recorded.
pub fn give_up() {
    PENDING.take();
}

impl ReplayedKernel {
    pub fn new(passes_numbers: bool) -> ReplayedKernel {
        ReplayedKernel { passes_numbers, calls: KernelCache::default() }
    }

    /// Does a call again that is like an earlier one, or says who is to do it. `dtype` is PyTorch's
    /// default.
    pub fn begin(
        &self,
        arguments: &[ExtensionArgument],
        dtype: u8,
        results: ExtensionResults,
    ) -> CallOutcome {
        if self.calls.is_hopeless() {
            return CallOutcome::Call;
        }
        let mut call = ExtensionCall::new(arguments, self.passes_numbers);
        if call.read(dtype).is_none() {
            return CallOutcome::Call;
        }
        let (found, should_record) = self.calls.find(&call.key);
        if let Some(effects) = found
            && effects.replay(&call, results).is_some()
        {
            return CallOutcome::Done;
        }
        if !should_record {
            return CallOutcome::Call;
        }
        let session = with_gil(|_| call.session());
        match session.and_then(|session| PendingRecording::begin(&session, call)) {
            Some(pending) => {
                PENDING.set(Some(pending));
                CallOutcome::Record
            }
            None => CallOutcome::Call,
        }
    }

    /// Keeps what the call has done.
    pub fn finish(&self, arguments: &[ExtensionArgument], results: &[ExtensionArgument]) {
        if let Some(pending) = PENDING.take()
            && let Some((key, effects)) = pending.end(arguments, results)
        {
            let steps = effects.program.instructions();
            self.calls.insert(key, effects, steps);
        }
    }
}
