//! The recording of a Python kernel's call.

use gt::program::{self, Running};
use gt::{Session, ValueRef};
use smallvec::SmallVec;

use super::argument::{ArgumentKind, CLUSTER, ExtensionArgument};
use super::call::ExtensionCall;
use super::effects::{RecordedEffects, RecordedElements, RecordedLayout, RecordedResult};
use crate::torch::kernel_cache::KernelKey;
use crate::torch::storage::{self, StorageContent};

/// A call that is being recorded.
pub struct PendingRecording {
    running: Running,
    key: KernelKey,
    /// The storages of its arguments, with their elements before the call.
    storages: SmallVec<[(usize, Option<ValueRef>); 4]>,
    views: Vec<Option<ArgumentView>>,
}

/// The storage address, offset, sizes and strides of an argument.
#[derive(PartialEq)]
struct ArgumentView(usize, i64, SmallVec<[i64; 4]>, SmallVec<[i64; 4]>);

impl PendingRecording {
    /// Starts recording; `None` if that is not possible.
    pub fn begin(session: &Session, call: ExtensionCall) -> Option<PendingRecording> {
        let running = program::begin(session, &call.inputs.values, &call.numbers)?;
        let numbers = call.storages.numbers.iter().map(|&number| number as usize);
        Some(PendingRecording {
            running,
            storages: numbers.map(|number| (number, elements(number))).collect(),
            views: call.arguments.iter().map(ArgumentView::of).collect(),
            key: call.key,
        })
    }

    /// Returns the effects of the call; `None` if they are unknown.
    pub fn end(
        self,
        arguments: &[ExtensionArgument],
        results: &[ExtensionArgument],
    ) -> Option<(KernelKey, RecordedEffects)> {
        let recording = self.running.end()?;
        if !arguments.iter().map(ArgumentView::of).eq(self.views) {
            return None;
        }
        let mut outputs = Vec::new();
        let writes = writes(&self.storages, &mut outputs)?;
        let mut taken: Vec<usize> = self.storages.iter().map(|(number, _)| *number).collect();
        let results: Option<_> = results
            .iter()
            .map(|result| recorded_result(result, arguments, &mut taken, &mut outputs))
            .collect();
        let results = results?;
        let program = recording.finish(&outputs)?;
        Some((self.key, RecordedEffects { program, writes, results }))
    }
}

/// Returns the storages whose elements have changed, and adds the new elements to the outputs;
/// `None` if a change cannot be recorded.
fn writes(
    storages: &[(usize, Option<ValueRef>)],
    outputs: &mut Vec<ValueRef>,
) -> Option<SmallVec<[(usize, usize); 1]>> {
    let mut writes = SmallVec::new();
    for (place, (number, before)) in storages.iter().enumerate() {
        let before = before.as_ref().map(ValueRef::identity);
        match storage::get(*number)?.content {
            StorageContent::Elements(elements) if before != Some(elements.identity()) => {
                writes.push((place, outputs.len()));
                outputs.push(elements);
            }
            StorageContent::Elements(_) => {}
            StorageContent::Blank if before.is_none() => {}
            StorageContent::Blank | StorageContent::Bytes(_) => return None,
        }
    }
    Some(writes)
}

/// Returns the record of a result: an argument, a new tensor, or no tensor; `None` for others. The
/// elements of a new tensor are added to the outputs. `taken` lists the storages of arguments and
/// earlier results, which a new tensor must not share.
fn recorded_result(
    result: &ExtensionArgument,
    arguments: &[ExtensionArgument],
    taken: &mut Vec<usize>,
    outputs: &mut Vec<ValueRef>,
) -> Option<RecordedResult> {
    match result.kind {
        ArgumentKind::None => return Some(RecordedResult::Nothing),
        ArgumentKind::Integer => return Some(RecordedResult::Integer(result.value)),
        ArgumentKind::List => return Some(RecordedResult::List(result.count)),
        ArgumentKind::Tensor => {}
        _ => return None,
    }
    let is_this =
        |of: &ExtensionArgument| of.kind == ArgumentKind::Tensor && of.value == result.value;
    if let Some(place) = arguments.iter().position(is_this) {
        return Some(RecordedResult::Argument(place));
    }
    let number = storage::number(result.address)?;
    if result.device != CLUSTER || taken.contains(&number) {
        return None;
    }
    taken.push(number);
    let held = storage::get(number)?;
    let elements = match held.content {
        StorageContent::Elements(elements) => {
            outputs.push(elements);
            RecordedElements::Output(outputs.len() - 1)
        }
        StorageContent::Blank => RecordedElements::Blank(held.dtype, held.shape),
        StorageContent::Bytes(_) => return None,
    };
    Some(RecordedResult::Tensor(RecordedLayout::of(result)?, elements))
}

/// Returns the elements of a storage.
fn elements(number: usize) -> Option<ValueRef> {
    storage::inspect(number, |held| match &held.content {
        StorageContent::Elements(elements) => Some(elements.clone()),
        StorageContent::Blank | StorageContent::Bytes(_) => None,
    })?
}

impl ArgumentView {
    fn of(argument: &ExtensionArgument) -> Option<ArgumentView> {
        (argument.kind == ArgumentKind::Tensor && argument.device == CLUSTER).then(|| {
            let (sizes, strides) = (argument.sizes().into(), argument.strides().into());
            ArgumentView(argument.address, argument.offset, sizes, strides)
        })
    }
}
