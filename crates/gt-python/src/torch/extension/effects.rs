//! What a call has done, to be done again for others like it.

use gt::program::Program;
use gt::{DType, Shape, ValueRef};
use smallvec::SmallVec;

use super::ExtensionResults;
use super::argument::{self, ExtensionArgument};
use super::call::ExtensionCall;
use crate::session;
use crate::session::with_gil;
use crate::torch::storage::{self, Storage, StorageContent};
use crate::torch::thread_context;

/// What a call has issued, written and given.
pub struct RecordedEffects {
    pub program: Program,
    /// The storages that got other elements, by their place among the call's, and which outputs
    /// these are.
    pub writes: SmallVec<[(usize, usize); 1]>,
    pub results: SmallVec<[RecordedResult; 1]>,
}

/// A result.
pub enum RecordedResult {
    Nothing,
    /// A number that follows from what the call is known by.
    Integer(u64),
    /// A list of as many tensors, which come next.
    List(u32),
    /// An argument, by its place.
    Argument(usize),
    /// A new tensor.
    Tensor(RecordedLayout, RecordedElements),
}

/// What a new tensor's storage holds.
pub enum RecordedElements {
    /// One of the program's outputs.
    Output(usize),
    /// They are not defined.
    Blank(DType, Shape),
}

/// Where the elements of a new tensor are.
pub struct RecordedLayout {
    pub sizes: SmallVec<[i64; 4]>,
    pub strides: SmallVec<[i64; 4]>,
    pub offset: i64,
    pub dtype: DType,
}

impl RecordedEffects {
    /// Does it again. `None` where it cannot; what it has issued then was in vain, and no tensor
    /// has changed.
    pub fn replay(&self, call: &ExtensionCall, results: ExtensionResults) -> Option<()> {
        let outputs = with_gil(|py| {
            thread_context::note(py);
            call.note_indices();
            let session = call.session().filter(|session| !session.is_full())?;
            session::note(&session);
            self.program.run(&session, &call.inputs.values, &call.numbers)
        })?;
        let mut new = self.add_storages(&outputs)?.into_iter();
        for &(place, output) in &self.writes {
            storage::set(call.storages.numbers[place] as usize, outputs[output].clone());
        }
        for given in &self.results {
            match given {
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

    /// Files the storages of new tensors; gives the address and the bytes of each. `None` if there
    /// is no room for one.
    fn add_storages(&self, outputs: &[ValueRef]) -> Option<SmallVec<[(usize, usize); 2]>> {
        let mut added: SmallVec<[(usize, usize); 2]> = SmallVec::new();
        for given in &self.results {
            let RecordedResult::Tensor(_, elements) = given else { continue };
            let storage = match elements {
                RecordedElements::Output(output) => Storage::of(outputs[*output].clone()),
                RecordedElements::Blank(dtype, shape) => {
                    Storage { dtype: *dtype, shape: *shape, content: StorageContent::Blank }
                }
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
    /// That of a call's result; `None` where it shows other numbers than its storage holds.
    pub fn of(result: &ExtensionArgument) -> Option<RecordedLayout> {
        (result.marks == 0).then_some(RecordedLayout {
            sizes: result.sizes().into(),
            strides: result.strides().into(),
            offset: result.offset,
            dtype: argument::dtype(result.dtype)?,
        })
    }
}
