//! The operations: converts tensors to matrices in memory. f16 and bf16 are computed in float32.

use gt_ir::instruction::Operands;
use gt_ir::operation::{bool, float};
use gt_ir::{Attributes, DType, Meta, Operand};
use gt_worker::EngineError;

use super::backward::{self, AttentionGradients, ForwardResults};
use super::heads::{Heads, in_rows};
use super::scores::{ScoreInputs, ScoreMask};
use super::{AttentionFloat, AttentionLengths, forward};
use crate::cast;
use crate::element::compute_dtype;
use crate::table::tensor;
use crate::tensor::Tensor;
use crate::threads::Threads;
use crate::uninit::Uninit;

/// Query, key, value and mask in the compute dtype.
struct AttentionOperation {
    dtype: DType,
    lengths: AttentionLengths,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Operand<Tensor>,
    scale: f64,
}

impl AttentionOperation {
    /// Takes query, key, value and mask from the operands, starting at index `first`.
    fn new(
        threads: &mut Threads,
        operands: &mut Operands<Tensor>,
        first: usize,
        attributes: &Attributes,
    ) -> Result<AttentionOperation, EngineError> {
        let query = tensor(operands, first)?;
        let dtype = compute_dtype(query.dtype());
        let query = in_rows_of(threads, query, dtype)?;
        let key = tensor(operands, first + 1)?;
        let key = in_rows_of(threads, key, dtype)?;
        let value = tensor(operands, first + 2)?;
        let value = in_rows_of(threads, value, dtype)?;
        let rank = query.shape().rank();
        let (batch, queries) = (&query.shape()[..rank - 2], query.shape()[rank - 2]);
        let lengths = AttentionLengths {
            heads: batch.iter().product(),
            queries,
            keys: key.shape()[rank - 2],
            width: query.shape()[rank - 1],
            values: value.shape()[rank - 1],
            is_causal: bool(attributes, 0),
        };
        let mask = match operands[first + 3].clone() {
            Operand::Scalar(number) => Operand::Scalar(number),
            Operand::Tensor(mask) => {
                let dtype = if mask.dtype() == DType::Bool { DType::Bool } else { dtype };
                let mask = cast::to(threads, mask, dtype)?.contiguous_with(threads)?;
                Operand::Tensor(mask.expand(&query.shape().with(rank - 1, lengths.keys)))
            }
        };
        let scale = float(attributes, 1);
        Ok(AttentionOperation { dtype, lengths, query, key, value, mask, scale })
    }

    fn inputs<T: AttentionFloat>(&self) -> ScoreInputs<'_, T> {
        ScoreInputs {
            lengths: self.lengths,
            query: Heads::new(&self.query),
            key: Heads::new(&self.key),
            value: Heads::new(&self.value),
            mask: match &self.mask {
                Operand::Scalar(number) => ScoreMask::Number(T::from_scalar(*number)),
                Operand::Tensor(mask) if mask.dtype() == DType::Bool => {
                    ScoreMask::Seen(Heads::new(mask))
                }
                Operand::Tensor(mask) => ScoreMask::Added(Heads::new(mask)),
            },
            scale: T::from_f64(self.scale),
        }
    }
}

/// Returns the tensor cast to a dtype, with contiguous rows.
fn in_rows_of(threads: &mut Threads, x: Tensor, dtype: DType) -> Result<Tensor, EngineError> {
    let x = cast::to(threads, x, dtype)?;
    in_rows(threads, x)
}

/// Returns the output, and the logarithm of the sum of exp(scores) for each query.
pub fn attention(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<Tensor>, EngineError> {
    let [output, logsumexp] = *outputs else {
        return Err(EngineError::Other("_attention has two results".to_string()));
    };
    let operation = AttentionOperation::new(threads, &mut operands, 0, attributes)?;
    let mut out = Uninit::new(Meta::new(operation.dtype, output.shape))?;
    let mut sums = Uninit::new(logsumexp)?;
    match operation.dtype {
        DType::F64 => run_forward::<f64>(threads, &operation, &mut out, &mut sums),
        _ => run_forward::<f32>(threads, &operation, &mut out, &mut sums),
    }
    // SAFETY: `run_forward` has written every element of both tensors.
    let (out, sums) = unsafe { (out.finish(), sums.finish()) };
    Ok(vec![cast::to(threads, out, output.dtype)?, sums])
}

fn run_forward<T: AttentionFloat>(
    threads: &mut Threads,
    operation: &AttentionOperation,
    out: &mut Uninit,
    sums: &mut Uninit,
) {
    forward::run::<T>(threads, &operation.inputs(), out.slots(), sums.slots());
}

/// Returns the gradients for query, key and value.
pub fn attention_backward(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<Tensor>, EngineError> {
    let operation = AttentionOperation::new(threads, &mut operands, 1, attributes)?;
    let dtype = operation.dtype;
    let grad = tensor(&mut operands, 0)?;
    let grad = in_rows_of(threads, grad, dtype)?;
    let output = tensor(&mut operands, 5)?;
    let output = in_rows_of(threads, output, dtype)?;
    let sums = tensor(&mut operands, 6)?.contiguous_with(threads)?;
    let new = |meta: &Meta| Uninit::new(Meta::new(dtype, meta.shape));
    let mut out = outputs.iter().map(new).collect::<Result<Vec<_>, _>>()?;
    let [query, key, value] = &mut out[..] else {
        return Err(EngineError::Other("_attention_backward has three results".to_string()));
    };
    let (given, to) = ([&grad, &output, &sums], [query, key, value]);
    match dtype {
        DType::F64 => run_backward::<f64>(threads, &operation, given, to)?,
        _ => run_backward::<f32>(threads, &operation, given, to)?,
    }
    out.into_iter()
        .zip(outputs)
        // SAFETY: `run_backward` has written every element of all three tensors.
        .map(|(out, meta)| cast::to(threads, unsafe { out.finish() }, meta.dtype))
        .collect()
}

fn run_backward<T: AttentionFloat>(
    threads: &mut Threads,
    operation: &AttentionOperation,
    [grad, output, sums]: [&Tensor; 3],
    [query, key, value]: [&mut Uninit; 3],
) -> Result<(), EngineError> {
    let given = ForwardResults {
        grad: Heads::new(grad),
        output: Heads::new(output),
        logsumexp: sums.as_slice(),
    };
    let to = AttentionGradients { query: query.slots(), key: key.slots(), value: value.slots() };
    backward::run::<T>(threads, &operation.inputs(), &given, to)
}
