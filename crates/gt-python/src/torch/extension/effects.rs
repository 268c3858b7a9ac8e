//! What a call has done, to be done again for others like it.

use gt::program::Program;
use gt::{DType, Shape, ValueRef};
use smallvec::SmallVec;

use super::Results;
use super::argument::{self, Argument};
use super::call::Call;
use crate::session;
use crate::session::with_lock;
use crate::torch::caller;
use crate::torch::storage::{self, Content, Storage};

/// What a call has issued, written and given.
pub struct Effects {
    pub program: Program,
    /// The storages that got other elements, by their place among the call's, and which outputs these
    /// are.
    pub writes: SmallVec<[(usize, usize); 1]>,
    pub results: SmallVec<[Given; 1]>,
}

/// A result.
pub enum Given {
    Nothing,
    /// A number that follows from what the call is known by.
    Integer(u64),
    /// A list of as many tensors, which come next.
    List(u32),
    /// An argument, by its place.
    Argument(usize),
    /// A new tensor.
    Tensor(Layout, Elements),
}

/// What a new tensor's storage holds.
pub enum Elements {
    /// One of the program's outputs.
    Output(usize),
    /// They are not defined.
    Blank(DType, Shape),
}

/// Where the elements of a new tensor are.
pub struct Layout {
    pub sizes: SmallVec<[i64; 4]>,
    pub strides: SmallVec<[i64; 4]>,
    pub offset: i64,
    pub dtype: DType,
}

impl Effects {
    /// Does it again. `None` where it cannot; what it has issued then was in vain, and no tensor has
    /// changed.
    pub fn repeat(&self, call: &Call, results: Results) -> Option<()> {
        let outputs = with_lock(|py| {
            caller::note(py);
            call.note_indices();
            let session = call.session().filter(|session| !session.is_full())?;
            session::note(&session);
            self.program.run(&session, &call.inputs.values, &call.numbers)
        })?;
        let mut new = self.add_storages(&outputs)?.into_iter();
        for &(place, output) in &self.writes {
            storage::set(call.storages.all[place] as usize, outputs[output].clone());
        }
        for given in &self.results {
            match given {
                Given::Nothing => results.nothing(),
                Given::Integer(number) => results.integer(*number),
                Given::List(count) => results.list(*count),
                Given::Argument(place) => results.argument(&call.arguments[*place]),
                Given::Tensor(layout, _) => {
                    let (address, bytes) = new.next().expect("one for each");
                    results.tensor(address, bytes, layout);
                }
            }
        }
        Some(())
    }

    /// Files the storages of new tensors; gives the address and the bytes of each. `None` if there is
    /// no room for one.
    fn add_storages(&self, outputs: &[ValueRef]) -> Option<SmallVec<[(usize, usize); 2]>> {
        let mut added: SmallVec<[(usize, usize); 2]> = SmallVec::new();
        for given in &self.results {
            let Given::Tensor(_, elements) = given else { continue };
            let storage = match elements {
                Elements::Output(output) => Storage::of(outputs[*output].clone()),
                Elements::Blank(dtype, shape) => {
                    Storage { dtype: *dtype, shape: *shape, content: Content::Blank }
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

impl Layout {
    /// That of a call's result; `None` where it shows other numbers than its storage holds.
    pub fn of(result: &Argument) -> Option<Layout> {
        (result.marks == 0).then_some(Layout {
            sizes: result.sizes().into(),
            strides: result.strides().into(),
            offset: result.offset,
            dtype: argument::dtype(result.dtype)?,
        })
    }
}
