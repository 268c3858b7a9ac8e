//! Calls that are like earlier ones: what the kernel in Python issued, wrote and gave then is issued,
//! written and given again.

use std::cell::RefCell;

use gt::program::{self, Program, Running};
use gt::{DType, Session, Shape};
use pyo3::ffi;
use pyo3::prelude::*;
use smallvec::SmallVec;

use super::argument::{self, Argument, CLUSTER, Kind};
use super::call::Call;
use super::{Outcome, Results};
use crate::session;
use crate::torch::caller;
use crate::torch::programs::{Key, Programs};
use crate::torch::storage::{self, Content, Storage};

/// An operator's kernel.
pub struct Repeated {
    passes_numbers: bool,
    calls: Programs<Effects>,
}

/// What a call has done.
struct Effects {
    program: Program,
    /// The storages that got other elements, by their place among the call's, and which outputs these
    /// are.
    writes: SmallVec<[(usize, usize); 1]>,
    results: SmallVec<[Given; 1]>,
}

/// A result.
enum Given {
    Nothing,
    /// A number that follows from what the call is known by.
    Integer(u64),
    /// A list of as many tensors, which come next.
    List(u32),
    /// An argument, by its place.
    Argument(usize),
    /// A new tensor over an output.
    Tensor(Layout, usize),
    /// A new tensor whose elements are not defined, over a storage of this dtype and shape.
    Blank(Layout, DType, Shape),
}

/// Where the elements of a new tensor are.
pub struct Layout {
    pub sizes: SmallVec<[i64; 4]>,
    pub strides: SmallVec<[i64; 4]>,
    pub offset: i64,
    pub dtype: DType,
}

/// A call that is being recorded.
struct Pending {
    running: Running,
    key: Key,
    /// The storages of its arguments, and which elements each had.
    storages: SmallVec<[(usize, Option<u64>); 4]>,
    layouts: Vec<Option<Place>>,
}

/// Where a tensor's elements are.
#[derive(PartialEq)]
struct Place(usize, i64, SmallVec<[i64; 4]>, SmallVec<[i64; 4]>);

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

    pub fn begin(&self, arguments: &[Argument], dtype: u8, results: Results) -> Outcome {
        if self.calls.is_hopeless() {
            return Outcome::Call;
        }
        let mut call = Call::new();
        if call.read(arguments, dtype, self.passes_numbers).is_none() {
            return Outcome::Call;
        }
        let (found, wants_more) = self.calls.find(&call.key);
        if let Some(effects) = found
            && effects.repeat(&call, arguments, results).is_some()
        {
            return Outcome::Done;
        }
        if !wants_more {
            return Outcome::Call;
        }
        match with_lock(|_| call.session())
            .and_then(|session| Pending::begin(&session, call, arguments))
        {
            Some(pending) => {
                PENDING.set(Some(pending));
                Outcome::Record
            }
            None => Outcome::Call,
        }
    }

    pub fn finish(&self, arguments: &[Argument], results: &[Argument]) {
        if let Some(pending) = PENDING.take()
            && let Some((key, effects)) = pending.end(arguments, results)
        {
            self.calls.keep(key, effects);
        }
    }
}

impl Effects {
    /// Does it again; `None`, with nothing done, where it cannot.
    fn repeat(&self, call: &Call, arguments: &[Argument], results: Results) -> Option<()> {
        let outputs = with_lock(|py| {
            caller::note(py);
            let session = call.session().filter(|session| !session.is_full())?;
            session::note(&session);
            self.program.run(&session, &call.inputs.values, &call.numbers)
        })?;
        let mut addresses: SmallVec<[usize; 2]> = SmallVec::new();
        for given in &self.results {
            let storage = match given {
                Given::Tensor(_, output) => Storage::of(outputs[*output].clone()),
                Given::Blank(_, dtype, shape) => {
                    Storage { dtype: *dtype, shape: *shape, content: Content::Blank }
                }
                Given::Nothing | Given::Integer(_) | Given::List(_) | Given::Argument(_) => {
                    continue;
                }
            };
            let Some(address) = storage::add(storage) else {
                addresses.into_iter().for_each(storage::remove);
                return None;
            };
            addresses.push(address);
        }
        for &(place, output) in &self.writes {
            storage::set(call.storages.all[place] as usize, outputs[output].clone());
        }
        let mut addresses = addresses.into_iter();
        for given in &self.results {
            let (layout, bytes) = match given {
                Given::Nothing => {
                    results.nothing();
                    continue;
                }
                Given::Integer(number) => {
                    results.integer(*number);
                    continue;
                }
                Given::List(count) => {
                    results.list(*count);
                    continue;
                }
                Given::Argument(place) => {
                    results.argument(&arguments[*place]);
                    continue;
                }
                Given::Tensor(layout, output) => {
                    let meta = outputs[*output].meta();
                    (layout, meta.bytes())
                }
                Given::Blank(layout, dtype, shape) => (layout, shape.numel() * dtype.size()),
            };
            let address = addresses.next().expect("one for each");
            results.tensor(address, bytes, layout);
        }
        Some(())
    }
}

impl Pending {
    fn begin(session: &Session, call: Call, arguments: &[Argument]) -> Option<Pending> {
        let running = program::begin(session, &call.inputs.values, &call.numbers)?;
        let storages =
            call.storages.all.iter().map(|&number| (number as usize, elements(number as usize)));
        Some(Pending {
            running,
            storages: storages.collect(),
            layouts: arguments.iter().map(Place::of).collect(),
            key: call.key,
        })
    }

    /// What the call has done; `None` where that cannot be told.
    fn end(self, arguments: &[Argument], results: &[Argument]) -> Option<(Key, Effects)> {
        let recording = self.running.end()?;
        if !arguments.iter().map(Place::of).eq(self.layouts) {
            return None;
        }
        let (mut outputs, mut writes) = (Vec::new(), SmallVec::new());
        for (place, &(number, before)) in self.storages.iter().enumerate() {
            match storage::get(number)?.content {
                Content::Elements(elements) if before != Some(elements.id()) => {
                    writes.push((place, outputs.len()));
                    outputs.push(elements);
                }
                Content::Elements(_) => {}
                Content::Blank if before.is_none() => {}
                Content::Blank | Content::Bytes(_) => return None,
            }
        }
        let mut taken: Vec<usize> = self.storages.iter().map(|(number, _)| *number).collect();
        let mut given = SmallVec::new();
        for result in results {
            let place = |of: &Argument| of.kind == Kind::Tensor && of.value == result.value;
            match result.kind {
                Kind::None => given.push(Given::Nothing),
                Kind::Integer => given.push(Given::Integer(result.value)),
                Kind::List => given.push(Given::List(result.count)),
                Kind::Tensor => match arguments.iter().position(place) {
                    Some(place) => given.push(Given::Argument(place)),
                    None => {
                        let number = storage::number(result.address)?;
                        if taken.contains(&number) || result.device != CLUSTER {
                            return None;
                        }
                        taken.push(number);
                        let layout = Layout::of(result)?;
                        let held = storage::get(number)?;
                        given.push(match held.content {
                            Content::Elements(elements) => {
                                outputs.push(elements);
                                Given::Tensor(layout, outputs.len() - 1)
                            }
                            Content::Blank => Given::Blank(layout, held.dtype, held.shape),
                            Content::Bytes(_) => return None,
                        });
                    }
                },
                _ => return None,
            }
        }
        let program = recording.finish(&outputs)?;
        Some((self.key, Effects { program, writes, results: given }))
    }
}

/// Runs a function with Python's lock. PyTorch lets go of it around operators, also inside functions
/// that Python has called from here: whether this thread has it, Python alone knows.
fn with_lock<T>(function: impl FnOnce(Python<'_>) -> T) -> T {
    struct Release(ffi::PyGILState_STATE);
    impl Drop for Release {
        fn drop(&mut self) {
            // SAFETY: the state that this thread has got from `PyGILState_Ensure`.
            unsafe { ffi::PyGILState_Release(self.0) };
        }
    }
    // SAFETY: the interpreter runs for as long as PyTorch's operators do; the lock is held until the
    // state is released, after the function.
    unsafe {
        let _release = Release(ffi::PyGILState_Ensure());
        function(Python::assume_attached())
    }
}

/// Which elements a storage has.
fn elements(number: usize) -> Option<u64> {
    storage::look(number, |held| match &held.content {
        Content::Elements(elements) => Some(elements.id()),
        Content::Blank | Content::Bytes(_) => None,
    })?
}

impl Place {
    fn of(argument: &Argument) -> Option<Place> {
        (argument.kind == Kind::Tensor && argument.device == CLUSTER).then(|| {
            let (sizes, strides) = (argument.sizes().into(), argument.strides().into());
            Place(argument.address, argument.offset, sizes, strides)
        })
    }
}

impl Layout {
    fn of(result: &Argument) -> Option<Layout> {
        (result.marks == 0).then_some(Layout {
            sizes: result.sizes().into(),
            strides: result.strides().into(),
            offset: result.offset,
            dtype: argument::dtype(result.dtype)?,
        })
    }
}
