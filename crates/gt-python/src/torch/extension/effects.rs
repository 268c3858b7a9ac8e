//! The recorded effects of a call, which later calls with the same key replay.

use gt::program::Program;
use gt::{DType, Shape, ValueRef};
use smallvec::SmallVec;

use super::ExtensionResults;
use super::argument::{self, ExtensionArgument};
use super::call::ExtensionCall;
use crate::session::with_gil;
use crate::torch::storage::{self, Storage};
use crate::torch::thread_context;
use crate::user_code::LATEST;

/// The instructions that a call issued, the storages that it wrote, and its results.
pub struct RecordedEffects {
    pub program: Program,
    /// The written storages, by their index among the call's, each with the output that it
    /// received.
    pub writes: SmallVec<[(usize, usize); 1]>,
    pub results: SmallVec<[RecordedResult; 1]>,
}

/// A recorded result.
pub enum RecordedResult {
    Nothing,
    /// A number that is determined by the call's key.
    Integer(u64),
    /// A list of this many tensors, which follow.
    List(u32),
    /// The argument with an index.
    Argument(usize),
    /// A new tensor.
    Tensor(RecordedLayout, RecordedElements),
}

/// The elements of a new tensor's storage.
pub enum RecordedElements {
    /// One of the program's outputs.
    Output(usize),
    /// Undefined elements.
    Blank(DType, Shape),
}

/// The layout of a new tensor in its storage.
pub struct RecordedLayout {
    pub sizes: SmallVec<[i64; 4]>,
    pub strides: SmallVec<[i64; 4]>,
    pub offset: i64,
    pub dtype: DType,
}

impl RecordedEffects {
    /// Replays the effects for another call. Returns `None` if that is not possible; then no tensor
    /// has changed, though instructions may have been issued.
    pub fn replay(&self, call: &ExtensionCall, results: ExtensionResults) -> Option<()> {
        let is_published = |(place, _): &(usize, usize)| {
            storage::is_published(call.storages.numbers[*place] as usize)
        };
        if self.writes.iter().any(is_published) {
            return None;
        }
        let outputs = with_gil(|py| {
            thread_context::note(py);
            call.note_indices();
            let session = call.session().filter(|session| !session.is_full())?;
            LATEST.note_session(&session);
            self.program.run(&session, &call.inputs.values, &call.numbers)
        })?;
        let mut new = self.add_storages(&outputs)?.into_iter();
        for &(place, output) in &self.writes {
            storage::set(call.storages.numbers[place] as usize, outputs[output].clone());
        }
        for result in &self.results {
            match result {
                RecordedResult::Nothing => results.nothing(),
                RecordedResult::Integer(number) => results.integer(*number),
                RecordedResult::List(count) => results.list(*count),
                RecordedResult::Argument(place) => results.argument(&call.arguments[*place]),
                RecordedResult::Tensor(layout, _) => {
                    let (address, bytes) = new.next().expect("one for each");
                    results.tensor(address, bytes, layout);
                }
            }
        }
        Some(())
    }

    /// Registers the storages of new tensors, and returns the address and bytes of each; `None` if
    /// one cannot be registered.
    fn add_storages(&self, outputs: &[ValueRef]) -> Option<SmallVec<[(usize, usize); 2]>> {
        let mut added: SmallVec<[(usize, usize); 2]> = SmallVec::new();
        for result in &self.results {
            let RecordedResult::Tensor(_, elements) = result else { continue };
            let storage = match elements {
                RecordedElements::Output(output) => Storage::of(outputs[*output].clone()),
                RecordedElements::Blank(dtype, shape) => Storage::blank(*dtype, *shape),
            };
            let bytes = storage.bytes();
            let Some(address) = storage::add(storage) else {
                added.into_iter().for_each(|(address, _)| storage::remove(address));
                return None;
            };
            added.push((address, bytes));
        }
        Some(added)
    }
}

impl RecordedLayout {
    /// Returns the layout of a call's result; `None` if its conjugate or negative bit is set.
    pub fn of(result: &ExtensionArgument) -> Option<RecordedLayout> {
        (result.marks == 0).then_some(RecordedLayout {
            sizes: result.sizes().into(),
            strides: result.strides().into(),
            offset: result.offset,
            dtype: argument::dtype(result.dtype)?,
        })
    }
}
