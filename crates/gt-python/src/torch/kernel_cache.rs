//! The cache of recorded kernels.
//!
//! The first call of a kernel records the instructions that its function issues. The record is
//! cached under the dtypes, shapes and other arguments of the call, and replayed by later calls
//! with the same key, without running the function.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use gt::ir::cache::{Cache, CacheLimits, CacheStats};
use gt::program::Program;
use gt::tensor::default_dtype::default_dtype;
use gt::tensor::strides::Strided;
use gt::{DType, Scalar, Tensor, ValueRef, program};
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt, PyString};
use smallvec::SmallVec;

use super::api::TorchApi;
use super::interner::Interner;
use super::results::{KernelResults, ResultForm};
use crate::convert;

/// The bounds of the records of one kernel; each weighs its instructions.
const LIMITS: CacheLimits = CacheLimits { entries: 512, weight: 1 << 17 };
/// By how many cache misses may exceed hits; beyond that, a kernel records only every
/// [`SAMPLE_INTERVAL`]-th miss.
const MISS_ALLOWANCE: u64 = 64;
const SAMPLE_INTERVAL: u64 = 16;

/// The properties of a call that determine which instructions its function issues.
#[derive(Clone, PartialEq, Eq, Hash)]
pub struct KernelKey(SmallVec<[u64; 24]>);

/// The recorded calls of one kernel.
pub struct KernelCache<K = RecordedKernel>(Arc<Mutex<KernelCalls<K>>>);

struct KernelCalls<K> {
    records: Cache<KernelKey, Arc<K>>,
    /// The number of calls that were not even looked up.
    skipped: u64,
}

impl<K> KernelCalls<K> {
    /// Returns the number of calls without a record.
    fn misses(&self) -> u64 {
        self.records.stats().misses + self.skipped
    }
}

/// A cache whose statistics are asked for by name.
trait NamedCache: Send + Sync {
    fn stats(&self) -> CacheStats;
}

impl<K: Send + Sync> NamedCache for Mutex<KernelCalls<K>> {
    fn stats(&self) -> CacheStats {
        self.lock().unwrap_or_else(PoisonError::into_inner).records.stats()
    }
}

/// The caches of all kernels of this process, with the kernels' names.
static CACHES: Mutex<Vec<(String, Weak<dyn NamedCache>)>> = Mutex::new(Vec::new());

/// Returns the statistics of the caches that were used, by kernel. The caches of a kernel's calls
/// and of its Python function count together.
pub fn stats() -> BTreeMap<String, CacheStats> {
    let caches = CACHES.lock().unwrap_or_else(PoisonError::into_inner);
    let mut all: BTreeMap<String, CacheStats> = BTreeMap::new();
    for (name, cache) in caches.iter() {
        let Some(stats) = cache.upgrade().map(|cache| cache.stats()) else { continue };
        if stats.hits + stats.misses > 0 {
            *all.entry(name.clone()).or_default() += stats;
        }
    }
    all
}

/// The recorded instructions of one call, and how its results are formed from their outputs.
pub struct RecordedKernel {
    program: Program,
    form: ResultForm,
}

impl<K: Send + Sync + 'static> KernelCache<K> {
    /// Returns an empty cache for the calls of a kernel of this name.
    pub fn new(kernel: &str) -> KernelCache<K> {
        let calls = Arc::new(Mutex::new(KernelCalls { records: Cache::new(LIMITS), skipped: 0 }));
        let named: Weak<dyn NamedCache> =
            Arc::downgrade(&(Arc::clone(&calls) as Arc<dyn NamedCache>));
        let mut caches = CACHES.lock().unwrap_or_else(PoisonError::into_inner);
        caches.push((kernel.to_string(), named));
        KernelCache(calls)
    }
}

/// The distinct input values of a call, in the order of their first occurrence.
#[derive(Default)]
pub struct InputSet {
    pub values: SmallVec<[ValueRef; 4]>,
    ids: Interner,
}

impl InputSet {
    /// Returns the index of a value, adding it if it is new.
    pub fn intern(&mut self, value: ValueRef) -> usize {
        let (index, is_new) = self.ids.intern(value.identity());
        if is_new {
            self.values.push(value);
        }
        index
    }
}

impl KernelCache {
    /// Returns the results of a function of tensors and numbers. If a call with the same key was
    /// recorded, its instructions are replayed; otherwise the function is called, and recorded.
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
        let mut calls = self.lock();
        if !calls.records.is_empty() || calls.misses() < MISS_ALLOWANCE {
            return false;
        }
        calls.skipped += 1;
        !calls.misses().is_multiple_of(MISS_ALLOWANCE)
    }

    /// Returns the record of a key, and whether a call should be recorded if there is none.
    pub fn find(&self, key: &KernelKey) -> (Option<Arc<K>>, bool) {
        let mut calls = self.lock();
        let found = calls.records.get(key).map(|record| Arc::clone(record));
        let misses = calls.misses();
        let should_record = misses < calls.records.stats().hits + MISS_ALLOWANCE;
        (found, should_record || misses.is_multiple_of(SAMPLE_INTERVAL))
    }

    /// Caches the record of a call with this number of instructions.
    pub fn insert(&self, key: KernelKey, record: K, instructions: usize) {
        let evicted = self.lock().records.insert(key, Arc::new(record), instructions);
        // Many records may go at once: they are dropped without the lock.
        drop(evicted);
    }

    fn lock(&self) -> MutexGuard<'_, KernelCalls<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl KernelKey {
    /// Returns a key of the default dtype.
    pub fn new() -> KernelKey {
        KernelKey(SmallVec::from_slice(&[default_dtype() as u64]))
    }

    /// Adds a tensor's dtype and shape.
    pub fn tensor(&mut self, tensor: &Tensor) {
        let meta = tensor.meta();
        self.0.extend([1, meta.dtype as u64, meta.shape.rank() as u64]);
        self.0.extend(meta.shape.iter().map(|&length| length as u64));
    }

    /// Adds the dtype and layout of a view.
    pub fn strided(&mut self, dtype: DType, to: &Strided) {
        let rank = to.shape.rank();
        self.0.extend([9, dtype as u64, rank as u64, to.offset as u64]);
        self.0.extend(to.shape.iter().map(|&length| length as u64));
        self.0.extend(to.strides[..rank].iter().map(|&stride| stride as u64));
    }

    /// Adds a string: an argument's name or value.
    pub fn word(&mut self, word: &str) {
        self.0.extend([2, word.len() as u64]);
        self.0.extend(word.as_bytes().chunks(8).map(|chunk| {
            let mut bytes = [0; 8];
            bytes[..chunk.len()].copy_from_slice(chunk);
            u64::from_ne_bytes(bytes)
        }));
    }

    /// Adds a number whose value may vary.
    pub fn number(&mut self) {
        self.0.push(10);
    }

    /// Adds lengths or strides.
    pub fn lengths(&mut self, lengths: &[i64]) {
        self.0.extend(lengths.iter().map(|&length| length as u64));
    }

    /// Adds raw words.
    pub fn words(&mut self, words: &[u64]) {
        self.0.extend_from_slice(words);
    }

    /// Begins a list.
    pub fn list(&mut self, length: usize) {
        self.0.extend([3, length as u64]);
    }

    /// Adds an argument that is not a tensor; returns whether its type is supported.
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
            // PyTorch's dtype objects are unique and live as long as the process.
            self.0.extend([8, given.as_ptr() as u64]);
        } else if let Ok(text) = given.cast::<PyString>() {
            self.word(text.to_str()?);
        } else {
            return Ok(false);
        }
        Ok(true)
    }
}
