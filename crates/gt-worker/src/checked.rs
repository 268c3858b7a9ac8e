//! A run of compiled code that is compared with the plan's operations run one by one.

use std::hash::Hasher;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::Duration;

use bytes::Bytes;
use gt_ir::{Meta, TensorData};
use rustc_hash::FxHasher;

use crate::check::{Mismatch, Wrong, allowed, difference};
use crate::device::panic_text;
use crate::engine::{Engine, EngineError, launch_plainly};
use crate::plan::{Given, Plan};

/// The most comparisons of a program. Two are enough if they tell something: their outputs are not
/// uniform, which would hide misplaced elements, and those of the second are others than those of
/// the first, so that a result which is left over from the run before shows.
const CHECKS: u64 = 4;
const TELLING: u64 = 2;
/// How many bytes of inputs and of results are kept, each, to see whether they are written to.
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
    /// The digest of what the operations gave.
    expected: u64,
    /// What the compiled code gave, with its digest, if it is kept.
    given: Option<(T, u64)>,
}

impl<T> Default for Checks<T> {
    fn default() -> Self {
        Checks { count: 0, telling: 0, earlier: Vec::new() }
    }
}

/// What a comparison has come to.
pub enum Verdict {
    /// No difference, but the next run is to be compared, too.
    Open,
    Right,
    Wrong(Box<Mismatch>),
    /// It could not be compared, for this reason.
    Unknown(String),
}

/// A run that was compared.
pub struct Checked<T> {
    /// What the compiled code has given; none if it failed, or may be wrong.
    pub outputs: Option<Vec<T>>,
    pub verdict: Verdict,
    /// The time that the operations took one by one, and the compiled code.
    pub plainly: Duration,
    pub taken: Duration,
    /// The inputs that were written to, and have their values again in new tensors.
    pub restored: Vec<usize>,
}

/// Calls an engine; a panic is an error.
pub fn guarded<T>(call: impl FnOnce() -> Result<T, EngineError>) -> Result<T, EngineError> {
    catch_unwind(AssertUnwindSafe(call))
        .unwrap_or_else(|panic| Err(EngineError::Other(panic_text(&*panic))))
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
    inputs: &mut [Given<E::Tensor>],
) -> Result<Checked<E::Tensor>, EngineError> {
    let is_kept = bytes(plan.inputs.iter().filter_map(|input| match input {
        crate::plan::Input::Tensor { meta, .. } => Some(meta),
        crate::plan::Input::Number(_) => None,
    })) <= KEPT;
    let before = if is_kept { Some(guarded(|| read_inputs(engine, inputs))?) } else { None };
    let start = engine.now();
    let expected = guarded(|| {
        let plain = launch_plainly(engine, plan, last_uses, inputs)?;
        read(engine, &plain)
    })?;
    let plainly = engine.now().saturating_sub(start);
    // If the program turns out wrong it is run again, so the inputs are kept.
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
            guarded(|| compare(engine, plan, last_uses, inputs, &data, &expected))
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
            Verdict::Wrong(Box::new(mismatch))
        }
        Err(error) => Verdict::Unknown(format!("what could not be compared: {error}")),
    };
    let verdict = match verdict {
        Verdict::Unknown(_) if checks.count < CHECKS => {
            return Ok(Checked { outputs: None, verdict: Verdict::Open, plainly, taken, restored });
        }
        other => other,
    };
    let is_right = matches!(verdict, Verdict::Open | Verdict::Right);
    let outputs = made.ok().filter(|_| is_right);
    Ok(Checked { outputs, verdict, plainly, taken, restored })
}

impl<T: Clone> Checks<T> {
    /// Notes a comparison without a difference.
    fn take(&mut self, expected: &[TensorData], given: &[TensorData], made: &[T]) -> Verdict {
        let digests: Vec<u64> = expected.iter().map(digest).collect();
        let is_new = |(index, digest): (usize, &u64)| {
            self.earlier.get(index).is_none_or(|earlier| earlier.expected != *digest)
        };
        let tells = !expected.iter().any(is_uniform) && digests.iter().enumerate().all(is_new);
        self.telling += u64::from(tells);
        if self.telling >= TELLING || self.count >= CHECKS {
            self.earlier.clear();
            return Verdict::Right;
        }
        let is_kept = expected.iter().map(|data| data.bytes.len()).sum::<usize>() <= KEPT;
        let tensors = made.iter().zip(given);
        let given = tensors.map(|(made, data)| is_kept.then(|| (made.clone(), digest(data))));
        let both = digests.into_iter().zip(given);
        self.earlier = both.map(|(expected, given)| Earlier { expected, given }).collect();
        Verdict::Open
    }

    /// The first result of the run before that is not any more what it was.
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

/// The first difference between what compiled code gave and what is expected. Bounds are found only
/// where bits differ.
fn compare<E: Engine>(
    engine: &mut E,
    plan: &Plan,
    last_uses: &[Option<u32>],
    inputs: &[Given<E::Tensor>],
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
    let allowed = allowed(engine, plan, last_uses, inputs)?;
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
    inputs: &[Given<E::Tensor>],
) -> Result<Vec<Given<TensorData>>, EngineError> {
    let read = |input: &Given<E::Tensor>| match input {
        // A copy: what an engine gives may be the tensor's own memory, which is written to.
        Given::Tensor(tensor) => engine.read(tensor).map(|data| {
            let bytes = Bytes::copy_from_slice(&data.bytes);
            Given::Tensor(TensorData { bytes, ..data })
        }),
        Given::Number(scalar) => Ok(Given::Number(*scalar)),
        Given::Taken => Ok(Given::Taken),
    };
    inputs.iter().map(read).collect()
}

/// Makes the inputs anew that are not what they were, and gives their places.
fn restore<E: Engine>(
    engine: &mut E,
    before: &[Given<TensorData>],
    inputs: &mut [Given<E::Tensor>],
) -> Result<Vec<usize>, EngineError> {
    let mut restored = Vec::new();
    for (index, (before, input)) in before.iter().zip(inputs).enumerate() {
        if let (Given::Tensor(before), Given::Tensor(tensor)) = (before, &mut *input)
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

/// Whether all elements of a tensor are equal: then a comparison cannot detect misplaced ones.
fn is_uniform(data: &TensorData) -> bool {
    let mut elements = data.bytes.chunks_exact(data.dtype.size());
    let first = elements.next();
    data.shape.numel() > 1 && elements.all(|element| Some(element) == first)
}
