//! A call as read from the extension: its cache key, and its input values and numbers.

use gt::{Session, Shape};
use smallvec::SmallVec;

use super::argument::{
    self, ArgumentKind, CLUSTER, CONJUGATE_OR_NEGATIVE, ExtensionArgument, HOST, WRAPPED_NUMBER,
};
use crate::session;
use crate::torch::arguments::SPECIAL;
use crate::torch::interner::Interner;
use crate::torch::kernel_cache::{InputSet, KernelKey};
use crate::torch::storage::{self, StorageContent};
use crate::torch::thread_context;

/// The prefix of an argument in a key determines what follows, so no two calls have the same key:
/// [`ArgumentKind`] in the first byte, then a dtype, and these marks.
const WHOLE: u64 = 1 << 16;
const WRAPPED: u64 = 1 << 17;
const EMPTY: u64 = 1 << 18;
const VARIABLE: u64 = 1 << 19;

/// PyTorch's number of float64.
const FLOAT64: u8 = 7;

/// A call from the extension.
pub struct ExtensionCall<'a> {
    pub arguments: &'a [ExtensionArgument],
    pub key: KernelKey,
    /// The numbers of its tensors' storages.
    pub storages: Interner,
    /// The elements of those storages that have some.
    pub inputs: InputSet,
    /// The numbers that may vary between calls with the same key.
    pub numbers: SmallVec<[f64; 2]>,
    passes_numbers: bool,
}

impl<'a> ExtensionCall<'a> {
    /// Returns a call whose arguments are not read yet. `passes_numbers` is whether the kernel
    /// passes numbers unchanged to operations; that holds only if all tensors are floating.
    pub fn new(arguments: &'a [ExtensionArgument], passes_numbers: bool) -> ExtensionCall<'a> {
        let is_float =
            |of: &ExtensionArgument| argument::dtype(of.dtype).is_some_and(|of| of.is_float());
        let mut tensors =
            arguments.iter().filter(|of| of.kind == ArgumentKind::Tensor && of.device == CLUSTER);
        ExtensionCall {
            arguments,
            key: KernelKey::new(),
            storages: Interner::default(),
            inputs: InputSet::default(),
            numbers: SmallVec::new(),
            passes_numbers: passes_numbers && tensors.all(is_float),
        }
    }

    /// Reads a call; `None` if its instructions do not follow from its arguments. `dtype` is
    /// PyTorch's default.
    pub fn read(&mut self, dtype: u8) -> Option<()> {
        self.key.words(&[u64::from(dtype)]);
        self.arguments.iter().try_for_each(|given| self.take(given))
    }

    /// Returns the session of its tensors, or else the current one.
    pub fn session(&self) -> Option<Session> {
        match self.inputs.values.first() {
            Some(first) => Some(first.session().clone()),
            None => session::current().ok(),
        }
    }

    /// Records which line uses the index tensors among its arguments.
    pub fn note_indices(&self) {
        for given in self.arguments.iter().filter(|given| given.is_index()) {
            thread_context::note_storage(given.address);
        }
    }

    fn take(&mut self, given: &ExtensionArgument) -> Option<()> {
        let code = given.kind as u64;
        match given.kind {
            ArgumentKind::None => self.key.words(&[code]),
            ArgumentKind::Integer | ArgumentKind::Boolean | ArgumentKind::Device => {
                self.key.words(&[code, given.value])
            }
            ArgumentKind::List => self.key.words(&[code, u64::from(given.count)]),
            ArgumentKind::Float => self.number(f64::from_bits(given.value), code, true),
            ArgumentKind::Text => {
                self.key.words(&[code]);
                self.key.word(std::str::from_utf8(given.text()).ok()?);
            }
            ArgumentKind::Tensor if given.device == HOST => return self.host_tensor(given),
            ArgumentKind::Tensor => return self.tensor(given),
            ArgumentKind::Other => return None,
        }
        Some(())
    }

    fn number(&mut self, number: f64, code: u64, passes: bool) {
        let passes = passes && self.passes_numbers && !number.is_nan();
        if !passes || SPECIAL.contains(&number) {
            return self.key.words(&[code, number.to_bits()]);
        }
        let known = self.numbers.iter().position(|of| *of == number);
        let which = known.unwrap_or_else(|| {
            self.numbers.push(number);
            self.numbers.len() - 1
        });
        self.key.words(&[code | VARIABLE, which as u64]);
    }

    /// Reads a host tensor that has no axes or no elements.
    fn host_tensor(&mut self, given: &ExtensionArgument) -> Option<()> {
        let code = given.kind as u64 | u64::from(given.dtype) << 8;
        if given.sizes().contains(&0) {
            self.key.words(&[code | EMPTY, u64::from(given.count)]);
            self.key.lengths(given.sizes());
            return Some(());
        }
        let is_wrapped = given.marks & WRAPPED_NUMBER != 0;
        let code = if is_wrapped { code | WRAPPED } else { code };
        self.number(given.host_number()?, code, is_wrapped && given.dtype == FLOAT64);
        Some(())
    }

    fn tensor(&mut self, given: &ExtensionArgument) -> Option<()> {
        if given.device != CLUSTER || given.marks & CONJUGATE_OR_NEGATIVE != 0 {
            return None;
        }
        let number = storage::number(given.address)?;
        let sizes = || given.sizes().iter().map(|&size| size as usize);
        let (dtype, shape, elements) = storage::inspect(number, |held| {
            let elements = match &held.content {
                StorageContent::Elements(elements) => Some(Some(elements.clone())),
                // A storage with undefined content is not an input.
                StorageContent::Blank => Some(None),
                StorageContent::Bytes(_) => None,
            };
            (argument::number(held.dtype), held.shape, elements)
        })?;
        let fits = given.dtype == dtype && sizes().eq(shape.iter().copied());
        let is_whole = fits && given.offset == 0 && is_contiguous(given);
        let input = elements?.map_or(0, |elements| self.inputs.intern(elements) as u64 + 1);
        let (place, is_new) = self.storages.intern(number as u64);
        let code = given.kind as u64 | u64::from(given.dtype) << 8;
        let code = code | if is_whole { WHOLE } else { 0 } | u64::from(given.count) << 24;
        self.key.words(&[code, input, place as u64]);
        if !is_new {
            // Of the tensors that share a storage, the key also says which are the same tensor.
            let is_this = |of: &ExtensionArgument| of.kind == given.kind && of.value == given.value;
            self.key.words(&[self.arguments.iter().position(is_this)? as u64]);
        }
        self.key.lengths(given.sizes());
        if !is_whole {
            self.part(given, dtype, shape);
        }
        Some(())
    }

    /// Adds a tensor's layout in a storage of this dtype and shape to the key.
    fn part(&mut self, given: &ExtensionArgument, dtype: u8, shape: Shape) {
        self.key.lengths(given.strides());
        self.key.words(&[given.offset as u64, u64::from(dtype), shape.rank() as u64]);
        shape.iter().for_each(|&length| self.key.words(&[length as u64]));
    }
}

/// Returns whether a tensor has exactly the strides of row-major order.
fn is_contiguous(given: &ExtensionArgument) -> bool {
    let mut step = 1;
    for (&size, &stride) in given.sizes().iter().zip(given.strides()).rev() {
        if stride != step {
            return false;
        }
        step *= size.max(1);
    }
    true
}
