//! Replaying recorded calls: the instructions, writes and results of an earlier call with the same
//! key.

use std::cell::RefCell;

use super::argument::ExtensionArgument;
use super::call::ExtensionCall;
use super::effects::RecordedEffects;
use super::recording::PendingRecording;
use super::{CallOutcome, ExtensionResults};
use crate::session::with_gil;
use crate::torch::kernel_cache::KernelCache;

/// An operator's kernel, which replays earlier calls.
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
    pub fn new(name: &str, passes_numbers: bool) -> ReplayedKernel {
        ReplayedKernel { passes_numbers, calls: KernelCache::new(name) }
    }

    /// Replays a call if one with the same key was recorded; otherwise returns whether to call the
    /// Python kernel with or without recording. `dtype` is PyTorch's default.
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

    /// Caches the effects of the recorded call.
    pub fn finish(&self, arguments: &[ExtensionArgument], results: &[ExtensionArgument]) {
        if let Some(pending) = PENDING.take()
            && let Some((key, effects)) = pending.end(arguments, results)
        {
            let steps = effects.program.instructions();
            self.calls.insert(key, effects, steps);
        }
    }
}
