//! A call: what decides which instructions it issues, and for which tensors and numbers.

use gt::Session;
use smallvec::SmallVec;

use super::argument::{self, Argument, CLUSTER, CONJUGATE_OR_NEGATIVE, HOST, Kind, WRAPPED_NUMBER};
use crate::session;
use crate::torch::arguments::SPECIAL;
use crate::torch::places::Places;
use crate::torch::programs::{Inputs, Key};
use crate::torch::storage::{self, Content};

/// A call, read.
pub struct Call {
    pub key: Key,
    /// The numbers of the storages of its tensors.
    pub storages: Places,
    /// The elements of those storages that have some.
    pub inputs: Inputs,
    /// The numbers that may be others.
    pub numbers: SmallVec<[f64; 2]>,
}

impl Call {
    /// Nothing was read yet.
    pub fn new() -> Call {
        Call {
            key: Key::new(),
            storages: Places::default(),
            inputs: Inputs::default(),
            numbers: SmallVec::new(),
        }
    }

    /// Reads a call; `None` where more decides what it issues than can be told. `dtype` is PyTorch's
    /// default; `passes_numbers` says that the kernel hands numbers on to operations as they are.
    pub fn read(&mut self, arguments: &[Argument], dtype: u8, passes_numbers: bool) -> Option<()> {
        let passes_numbers = passes_numbers
            && arguments
                .iter()
                .filter(|of| of.kind == Kind::Tensor && of.device == CLUSTER)
                .all(|of| argument::dtype(of.dtype).is_some_and(|dtype| dtype.is_float()));
        self.key.words(&[u64::from(dtype)]);
        arguments.iter().try_for_each(|given| self.take(given, passes_numbers))
    }

    /// The session that it issues in: its tensors', else the current one.
    pub fn session(&self) -> Option<Session> {
        match self.inputs.values.first() {
            Some(first) => Some(first.session().clone()),
            None => session::current().ok(),
        }
    }

    fn take(&mut self, given: &Argument, passes_numbers: bool) -> Option<()> {
        let code = given.kind as u64;
        match given.kind {
            Kind::None => self.key.words(&[code]),
            Kind::Integer | Kind::Boolean | Kind::Device => self.key.words(&[code, given.value]),
            Kind::List => self.key.words(&[code, u64::from(given.count)]),
            Kind::Float => self.number(f64::from_bits(given.value), code, passes_numbers),
            Kind::Text => {
                self.key.words(&[code]);
                self.key.word(std::str::from_utf8(given.text()).ok()?);
            }
            Kind::Tensor if given.device == HOST && given.sizes().contains(&0) => {
                // It has no elements.
                self.key
                    .words(&[code | u64::from(given.dtype) << 8 | u64::from(given.count) << 16]);
                self.key.lengths(given.sizes());
            }
            Kind::Tensor if given.device == HOST => {
                let number = given.host_number()?;
                let code = code | u64::from(given.dtype) << 8 | u64::from(given.marks) << 16;
                let passes = passes_numbers && given.marks & WRAPPED_NUMBER != 0;
                self.number(number, code, passes && given.dtype == 7);
            }
            Kind::Tensor => return self.tensor(given),
            Kind::Other => return None,
        }
        Some(())
    }

    fn number(&mut self, number: f64, code: u64, passes: bool) {
        if !passes || SPECIAL.contains(&number) || number.is_nan() {
            return self.key.words(&[code, number.to_bits()]);
        }
        let known = self.numbers.iter().position(|of| *of == number);
        let which = known.unwrap_or_else(|| {
            self.numbers.push(number);
            self.numbers.len() - 1
        });
        // No other word that begins an argument has this bit.
        self.key.words(&[code | 1 << 63, which as u64]);
    }

    fn tensor(&mut self, given: &Argument) -> Option<()> {
        if given.device != CLUSTER || given.marks & CONJUGATE_OR_NEGATIVE != 0 {
            return None;
        }
        let number = storage::number(given.address)?;
        let sizes = || given.sizes().iter().map(|&size| size as usize);
        // Elements of a blank storage are not defined.
        let (root, is_whole, elements) = storage::look(number, |held| {
            let dtype = argument::number(held.dtype);
            let fits = given.dtype == dtype && sizes().eq(held.shape.iter().copied());
            let is_whole = fits && given.offset == 0 && is_contiguous(given);
            let root = if is_whole { None } else { Some((dtype, held.shape)) };
            let elements = match &held.content {
                Content::Elements(elements) => Some(Some(elements.clone())),
                Content::Blank => Some(None),
                Content::Bytes(_) => None,
            };
            (root, is_whole, elements)
        })?;
        // Storages of the same elements are one input.
        let input = elements?.map_or(0, |elements| self.inputs.take(elements) as u64 + 1);
        let (place, _) = self.storages.take(number as u64);
        let code = Kind::Tensor as u64 | u64::from(given.dtype) << 8 | u64::from(is_whole) << 16;
        let code = code | u64::from(given.count) << 24 | (place as u64) << 32;
        self.key.words(&[code, input]);
        self.key.lengths(given.sizes());
        if let Some((dtype, shape)) = root {
            self.key.lengths(given.strides());
            let root = u64::from(dtype) | (shape.rank() as u64) << 8;
            self.key.words(&[given.offset as u64, root]);
            shape.iter().for_each(|&length| self.key.words(&[length as u64]));
        }
        Some(())
    }
}

/// Whether a tensor's elements lie in row-major order without gaps, with the strides that say so.
fn is_contiguous(given: &Argument) -> bool {
    let mut step = 1;
    for (&size, &stride) in given.sizes().iter().zip(given.strides()).rev() {
        if stride != step {
            return false;
        }
        step *= size.max(1);
    }
    true
}
