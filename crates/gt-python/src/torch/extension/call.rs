//! A call: what decides which instructions it issues, and for which tensors and numbers.

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

/// A call, read.
pub struct ExtensionCall<'a> {
    pub arguments: &'a [ExtensionArgument],
    pub key: KernelKey,
    /// The numbers of the storages of its tensors.
    pub storages: Interner,
    /// The elements of those storages that have some.
    pub inputs: InputSet,
    /// The numbers that may be others.
    pub numbers: SmallVec<[f64; 2]>,
    passes_numbers: bool,
}

impl<'a> ExtensionCall<'a> {
    /// Nothing was read yet. `passes_numbers` says that the kernel hands numbers on to operations
    /// as they are, where all tensors are of floats.
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

    /// The session that it issues in: its tensors', else the current one.
    pub fn session(&self) -> Option<Session> {
        match self.inputs.values.first() {
            Some(first) => Some(first.session().clone()),
            None => session::current().ok(),
        }
    }

    /// Notes which line uses its indices.
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

    /// Takes a tensor of the host's that is a number, or has no elements.
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
                // They are not defined.
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
            // Of those over one storage, which are one tensor.
            let is_this = |of: &ExtensionArgument| of.kind == given.kind && of.value == given.value;
            self.key.words(&[self.arguments.iter().position(is_this)? as u64]);
        }
        self.key.lengths(given.sizes());
        if !is_whole {
            self.part(given, dtype, shape);
        }
        Some(())
    }

    /// Takes where a tensor's elements are in a storage of this dtype and shape.
    fn part(&mut self, given: &ExtensionArgument, dtype: u8, shape: Shape) {
        self.key.lengths(given.strides());
        self.key.words(&[given.offset as u64, u64::from(dtype), shape.rank() as u64]);
        shape.iter().for_each(|&length| self.key.words(&[length as u64]));
    }
}

/// Whether a tensor's elements lie in row-major order without gaps, with the strides that say so.
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
