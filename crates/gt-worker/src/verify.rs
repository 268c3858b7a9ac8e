//! Verification of compiled code: a run is compared with the trace's operations run one by one.

use std::hash::Hasher;
use std::time::Duration;

use bytes::Bytes;
use gt_ir::trace::{Input, Trace};
use gt_ir::{Meta, TensorData};
use rustc_hash::FxHasher;

use crate::check::{allowed, difference};
use crate::engine::{Engine, EngineError, guarded, launch_plainly};
use crate::mismatch::{Mismatch, Wrong};
use crate::plan::{InputValue, Plan};

/// The most comparisons of a program. Two are enough if they are conclusive: their outputs are not
/// uniform, which would hide misplaced elements, and the second outputs differ from the first, so
/// that a stale result of the previous run is detected.
const CHECKS: u64 = 4;
const TELLING: u64 = 2;
/// The bytes of inputs, and of results, that are kept to detect whether they are written to.
const KEPT: usize = 256 << 20;

/// The comparisons of a program so far.
pub struct Checks<T> {
    count: u64,
    telling: u64,
    /// The outputs of the last comparison.
    earlier: Vec<Earlier<T>>,
}

/// An output of an earlier run.
struct Earlier<T> {
    /// The digest of the operations' result.
    expected: u64,
    /// The compiled code's result with its digest, if it is kept.
    given: Option<(T, u64)>,
}

impl<T> Default for Checks<T> {
    fn default() -> Self {
        Checks { count: 0, telling: 0, earlier: Vec::new() }
    }
}

/// The verdict of a comparison.
pub enum CheckOutcome {
    /// No difference, but the next run must be compared, too.
    Open,
    Right,
    Wrong(Box<Mismatch>),
    /// It could not be compared, for this reason.
    Unknown(String),
}

/// A run that was compared.
pub struct Checked<T> {
    /// The compiled code's outputs; none if it failed, or may be wrong.
    pub outputs: Option<Vec<T>>,
    pub verdict: CheckOutcome,
    /// The times that the single operations, and the compiled code, took.
    pub plainly: Duration,
    pub taken: Duration,
    /// The inputs that the compiled code has overwritten, restored in new tensors.
    pub restored: Vec<usize>,
}

/// Runs a plan's operations one by one and its compiled code, and compares.
///
/// # Errors
/// The operations fail, or memory is short for the compiled code.
pub fn launch<E: Engine>(
    engine: &mut E,
    plan: &Plan,
    last_uses: &[Option<u32>],
    program: &mut E::Program,
    checks: &mut Checks<E::Tensor>,
    inputs: &mut [InputValue<E::Tensor>],
) -> Result<Checked<E::Tensor>, EngineError> {
    let trace = &plan.trace;
    let is_kept = bytes(trace.inputs.iter().filter_map(|input| match input {
        Input::Tensor(meta) => Some(meta),
        Input::Number(_) => None,
    })) <= KEPT;
    let before = if is_kept { Some(guarded(|| read_inputs(engine, inputs))?) } else { None };
    let start = engine.now();
    let expected = guarded(|| {
        let plain = launch_plainly(engine, trace, last_uses, inputs)?;
        read(engine, &plain)
    })?;
    let plainly = engine.now().saturating_sub(start);
    // A wrong program is run again operation by operation, so the inputs are kept.
    let mut given = inputs.to_vec();
    let start = engine.now();
    let made = guarded(|| engine.launch(program, &mut given));
    let taken = engine.now().saturating_sub(start);
    drop(given);
    // Out of memory says nothing about the program.
    if let Err(error @ EngineError::OutOfMemory { .. }) = made {
        return Err(error);
    }
    let mut data = Vec::new();
    let mut restored = Vec::new();
    let wrong = match &made {
        Err(error) => Ok(Some(Wrong::Failed(error.to_string()))),
        Ok(made) => guarded(|| read(engine, made)).and_then(|read| {
            data = read;
            if let Some(before) = &before {
                restored = restore(engine, before, inputs)?;
            }
            if let Some(&input) = restored.first() {
                return Ok(Some(Wrong::Input(input)));
            }
            if let Some(output) = checks.overwritten(engine)? {
                return Ok(Some(Wrong::Earlier(output)));
            }
            guarded(|| compare(engine, trace, last_uses, inputs, &data, &expected))
        }),
    };
    checks.count += 1;
    let verdict = match wrong {
        Ok(None) => checks.take(&expected, &data, made.as_deref().unwrap_or_default()),
        Ok(Some(wrong)) => {
            let inputs = match before {
                Some(before) => before,
                None => guarded(|| read_inputs(engine, inputs))?,
            };
            let (engine, plan) = (engine.name().to_string(), plan.clone());
            let mismatch = Mismatch { engine, plan, inputs, expected, given: data, wrong };
            CheckOutcome::Wrong(Box::new(mismatch))
        }
        Err(error) => CheckOutcome::Unknown(format!("what could not be compared: {error}")),
    };
    let verdict = match verdict {
        CheckOutcome::Unknown(_) if checks.count < CHECKS => {
            return Ok(Checked {
                outputs: None,
                verdict: CheckOutcome::Open,
                plainly,
                taken,
                restored,
            });
        }
        other => other,
    };
    let is_right = matches!(verdict, CheckOutcome::Open | CheckOutcome::Right);
    let outputs = made.ok().filter(|_| is_right);
    Ok(Checked { outputs, verdict, plainly, taken, restored })
}

impl<T: Clone> Checks<T> {
    /// Records a comparison without a difference.
    fn take(&mut self, expected: &[TensorData], given: &[TensorData], made: &[T]) -> CheckOutcome {
        let digests: Vec<u64> = expected.iter().map(digest).collect();
        let is_new = |(index, digest): (usize, &u64)| {
            self.earlier.get(index).is_none_or(|earlier| earlier.expected != *digest)
        };
        let tells = !expected.iter().any(is_uniform) && digests.iter().enumerate().all(is_new);
        self.telling += u64::from(tells);
        if self.telling >= TELLING || self.count >= CHECKS {
            self.earlier.clear();
            return CheckOutcome::Right;
        }
        let is_kept = expected.iter().map(|data| data.bytes.len()).sum::<usize>() <= KEPT;
        let tensors = made.iter().zip(given);
        let given = tensors.map(|(made, data)| is_kept.then(|| (made.clone(), digest(data))));
        let both = digests.into_iter().zip(given);
        self.earlier = both.map(|(expected, given)| Earlier { expected, given }).collect();
        CheckOutcome::Open
    }

    /// Returns the first result of the previous run that has changed since.
    fn overwritten<E: Engine<Tensor = T>>(
        &mut self,
        engine: &mut E,
    ) -> Result<Option<usize>, EngineError> {
        for (index, earlier) in self.earlier.iter().enumerate() {
            if let Some((tensor, digest_then)) = &earlier.given
                && digest(&engine.read(tensor)?) != *digest_then
            {
                return Ok(Some(index));
            }
        }
        Ok(None)
    }
}

/// Returns the first difference between the compiled code's results and the expected ones. Error
/// bounds are computed only if bits differ.
fn compare<E: Engine>(
    engine: &mut E,
    trace: &Trace,
    last_uses: &[Option<u32>],
    inputs: &[InputValue<E::Tensor>],
    given: &[TensorData],
    expected: &[TensorData],
) -> Result<Option<Wrong>, EngineError> {
    if given.len() != expected.len() {
        let text = format!("{} outputs instead of {}", given.len(), expected.len());
        return Ok(Some(Wrong::Form(text)));
    }
    let both = || given.iter().zip(expected);
    let of_form = |data: &TensorData| Meta::new(data.dtype, data.shape);
    if let Some((given, expected)) = both().find(|(a, b)| of_form(a) != of_form(b)) {
        return Ok(Some(Wrong::Form(format!(
            "{} {} instead of {} {}",
            given.dtype, given.shape, expected.dtype, expected.shape
        ))));
    }
    let strict = both().enumerate().find_map(|(index, (given, expected))| {
        Some(Wrong::Output(index, difference(given, expected, None)?))
    });
    if strict.is_none() || engine.is_exact() {
        return Ok(strict);
    }
    let allowed = allowed(engine, trace, last_uses, inputs)?;
    Ok(both().zip(&allowed).enumerate().find_map(|(index, ((given, expected), allowed))| {
        Some(Wrong::Output(index, difference(given, expected, Some(allowed))?))
    }))
}

fn bytes<'a>(metas: impl Iterator<Item = &'a Meta>) -> usize {
    metas.map(Meta::bytes).sum()
}

fn read<E: Engine>(engine: &mut E, tensors: &[E::Tensor]) -> Result<Vec<TensorData>, EngineError> {
    tensors.iter().map(|tensor| engine.read(tensor)).collect()
}

fn read_inputs<E: Engine>(
    engine: &mut E,
    inputs: &[InputValue<E::Tensor>],
) -> Result<Vec<InputValue<TensorData>>, EngineError> {
    let read = |input: &InputValue<E::Tensor>| match input {
        // A copy, as an engine may return the tensor's own memory, which is overwritten later.
        InputValue::Tensor(tensor) => engine.read(tensor).map(|data| {
            let bytes = Bytes::copy_from_slice(&data.bytes);
            InputValue::Tensor(TensorData { bytes, ..data })
        }),
        InputValue::Number(scalar) => Ok(InputValue::Number(*scalar)),
        InputValue::Taken => Ok(InputValue::Taken),
    };
    inputs.iter().map(read).collect()
}

/// Restores the inputs that have changed, and returns their indices.
fn restore<E: Engine>(
    engine: &mut E,
    before: &[InputValue<TensorData>],
    inputs: &mut [InputValue<E::Tensor>],
) -> Result<Vec<usize>, EngineError> {
    let mut restored = Vec::new();
    for (index, (before, input)) in before.iter().zip(inputs).enumerate() {
        if let (InputValue::Tensor(before), InputValue::Tensor(tensor)) = (before, &mut *input)
            && engine.read(tensor)?.bytes != before.bytes
        {
            *tensor = engine.create(before.clone())?;
            restored.push(index);
        }
    }
    Ok(restored)
}

fn digest(data: &TensorData) -> u64 {
    let mut hasher = FxHasher::default();
    hasher.write(&data.bytes);
    hasher.finish()
}

/// Returns whether all elements of a tensor are equal: then a comparison cannot detect misplaced
/// ones.
fn is_uniform(data: &TensorData) -> bool {
    let mut elements = data.bytes.chunks_exact(data.dtype.size());
    let first = elements.next();
    data.shape.numel() > 1 && elements.all(|element| Some(element) == first)
}
