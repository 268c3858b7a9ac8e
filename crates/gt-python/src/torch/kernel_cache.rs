//! What the functions of kernels have issued, by what they were called with: the same call again
//! issues the same instructions, and its function need not run.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use gt::program::Program;
use gt::tensor::default_dtype::default_dtype;
use gt::tensor::strides::Strided;
use gt::{DType, Scalar, Tensor, ValueRef, program};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyString};
use rustc_hash::FxHashMap;
use smallvec::SmallVec;

use super::api::TorchApi;
use super::interner::Interner;
use super::results::{KernelResults, ResultForm};
use crate::convert;

/// The most programs of one kernel, and the most instructions in all of them.
const MAX_ENTRIES: usize = 512;
const MAX_INSTRUCTIONS: usize = 1 << 17;
/// How many calls may be unlike all others before a kernel keeps what one in [`SAMPLE_INTERVAL`] issued.
const MISS_ALLOWANCE: u32 = 64;
const SAMPLE_INTERVAL: u32 = 16;

/// What decides which instructions a function issues, apart from the tensors' elements.
#[derive(PartialEq, Eq, Hash)]
pub struct KernelKey(SmallVec<[u64; 24]>);

/// What is kept of a kernel's calls.
pub struct KernelCache<K = RecordedKernel>(Mutex<KernelCacheState<K>>);

struct KernelCacheState<K> {
    entries: FxHashMap<KernelKey, KernelCacheEntry<K>>,
    /// The instructions of all of them.
    instructions: usize,
    clock: u64,
    hits: u32,
    misses: u32,
}

struct KernelCacheEntry<K> {
    record: Arc<K>,
    instructions: usize,
    /// When it was used last.
    last_used: u64,
}

/// A program, and what becomes of its outputs.
pub struct RecordedKernel {
    program: Program,
    form: ResultForm,
}

impl<K> Default for KernelCache<K> {
    fn default() -> KernelCache<K> {
        let entries = FxHashMap::default();
        KernelCache(Mutex::new(KernelCacheState { entries, instructions: 0, clock: 0, hits: 0, misses: 0 }))
    }
}

/// The inputs of a program: a value that is given several times is one of them.
#[derive(Default)]
pub struct InputSet {
    pub values: SmallVec<[ValueRef; 4]>,
    ids: Interner,
}

impl InputSet {
    /// The place of a value among them.
    pub fn intern(&mut self, value: ValueRef) -> usize {
        let (index, is_new) = self.ids.intern(value.identity());
        if is_new {
            self.values.push(value);
        }
        index
    }
}

impl KernelCache {
    /// What a function of tensors and numbers gives. Where it has been called with the like, it is
    /// not called again: what it issued then is issued for these.
    pub fn replay_or_record<'py>(
        &self,
        mut key: KernelKey,
        tensors: &[Tensor],
        numbers: &[f64],
        function: impl FnOnce() -> PyResult<KernelResults<'py>>,
    ) -> PyResult<KernelResults<'py>> {
        let mut inputs = InputSet::default();
        for tensor in tensors {
            key.words(&[inputs.intern(tensor.value_ref()) as u64]);
        }
        let inputs = inputs.values;
        let (record, should_record) = self.find(&key);
        if let Some(record) = record
            && let Some(first) = inputs.first()
            && let Some(outputs) = record.program.run(first.session(), &inputs, numbers)
        {
            return Ok(KernelResults::from_outputs(outputs, &record.form));
        }
        if !should_record {
            return function();
        }
        let (results, recording) = program::record(&inputs, numbers, function);
        let results = results?;
        if let Some(recording) = recording
            && let Some((outputs, form)) = results.outputs()
            && let Some(program) = recording.finish(&outputs)
        {
            let instructions = program.instructions();
            self.insert(key, RecordedKernel { program, form }, instructions);
        }
        Ok(results)
    }
}

impl<K> KernelCache<K> {
    /// Returns whether a large number of calls could not be recorded, so that this one is not
    /// tried. At intervals one is tried, as calls may have changed.
    pub fn is_hopeless(&self) -> bool {
        let mut cache = self.lock();
        if !cache.entries.is_empty() || cache.misses < MISS_ALLOWANCE {
            return false;
        }
        cache.misses = cache.misses.wrapping_add(1).max(MISS_ALLOWANCE);
        !cache.misses.is_multiple_of(MISS_ALLOWANCE)
    }

    /// What is kept of a call like this, and whether it is worth it to keep more.
    pub fn find(&self, key: &KernelKey) -> (Option<Arc<K>>, bool) {
        let mut cache = self.lock();
        cache.clock += 1;
        let clock = cache.clock;
        let found = cache.entries.get_mut(key).map(|entry| {
            entry.last_used = clock;
            Arc::clone(&entry.record)
        });
        match &found {
            Some(_) => cache.hits = cache.hits.saturating_add(1),
            None => cache.misses = cache.misses.saturating_add(1),
        }
        let should_record = cache.misses < cache.hits.saturating_add(MISS_ALLOWANCE);
        (found, should_record || cache.misses.is_multiple_of(SAMPLE_INTERVAL))
    }

    /// Caches the record of a call, of `steps` instructions.
    pub fn insert(&self, key: KernelKey, record: K, instructions: usize) {
        let mut cache = self.lock();
        if cache.entries.len() >= MAX_ENTRIES || cache.instructions >= MAX_INSTRUCTIONS {
            cache.evict_older_half();
        }
        let entry = KernelCacheEntry { record: Arc::new(record), instructions, last_used: cache.clock };
        cache.instructions += instructions;
        if let Some(before) = cache.entries.insert(key, entry) {
            cache.instructions -= before.instructions;
        }
    }

    fn lock(&self) -> MutexGuard<'_, KernelCacheState<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K> KernelCacheState<K> {
    /// Forgets those that were not used for longest.
    fn evict_older_half(&mut self) {
        let mut times: Vec<u64> = self.entries.values().map(|entry| entry.last_used).collect();
        times.sort_unstable();
        let median = times.get(times.len() / 2).copied().unwrap_or_default();
        self.entries.retain(|_, entry| entry.last_used >= median);
        self.instructions = self.entries.values().map(|entry| entry.instructions).sum();
    }
}

impl KernelKey {
    pub fn new() -> KernelKey {
        KernelKey(SmallVec::from_slice(&[default_dtype() as u64]))
    }

    pub fn tensor(&mut self, tensor: &Tensor) {
        let meta = tensor.meta();
        self.0.extend([1, meta.dtype as u64, meta.shape.rank() as u64]);
        self.0.extend(meta.shape.iter().map(|&length| length as u64));
    }

    /// Takes what a view shows.
    pub fn strided(&mut self, dtype: DType, to: &Strided) {
        let rank = to.shape.rank();
        self.0.extend([9, dtype as u64, rank as u64, to.offset as u64]);
        self.0.extend(to.shape.iter().map(|&length| length as u64));
        self.0.extend(to.strides[..rank].iter().map(|&stride| stride as u64));
    }

    /// Takes a word: an argument's name, or one of the few that an operator knows.
    pub fn word(&mut self, word: &str) {
        self.0.extend([2, word.len() as u64]);
        self.0.extend(word.as_bytes().chunks(8).map(|chunk| {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(bytes)
        }));
    }

    /// Takes a number that may be another one.
    pub fn number(&mut self) {
        self.0.push(10);
    }

    pub fn lengths(&mut self, lengths: &[i64]) {
        self.0.extend(lengths.iter().map(|&length| length as u64));
    }

    /// Takes what is none of the others.
    pub fn words(&mut self, words: &[u64]) {
        self.0.extend_from_slice(words);
    }

    /// Begins a list.
    pub fn list(&mut self, length: usize) {
        self.0.extend([3, length as u64]);
    }

    /// Takes what is no tensor; whether it can.
    pub fn value(&mut self, torch: &TorchApi, given: &Bound<'_, PyAny>) -> PyResult<bool> {
        if given.is_none() {
            self.0.push(4);
        } else if given.is_instance_of::<PyFloat>() || given.is_instance_of::<PyInt>() {
            let Ok(Some(scalar)) = convert::scalar(given) else { return Ok(false) };
            self.0.extend(match scalar {
                Scalar::Float(value) => [5, value.to_bits()],
                Scalar::Int(value) => [6, value as u64],
                Scalar::Bool(value) => [7, u64::from(value)],
            });
        } else if given.get_type().is(&torch.dtype) {
            // There is one object for each, which lives as long as the process.
            self.0.extend([8, given.as_ptr() as u64]);
        } else if let Ok(text) = given.cast::<PyString>() {
            self.word(text.to_str()?);
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}
