//! Data-dependent operations: nonzero, and rows selected by a mask. True values are counted part by
//! part; the prefix sums of the counts are the first output row of each part, so that threads
//! process the parts independently.

use gt_ir::instruction::Operands;
use gt_ir::operation::int;
use gt_ir::{Attributes, DType, Meta};
use gt_worker::EngineError;

use crate::cast;
use crate::element::with_bits;
use crate::table::tensor;
use crate::tensor::Tensor;
use crate::threads::{SharedPtr, Threads};
use crate::uninit::Uninit;

/// Mask values of a part.
const PART: usize = 1 << 15;

/// A mask, with the number of true values before each of its parts.
struct Mask {
    mask: Tensor,
    before: Vec<usize>,
}

impl Mask {
    /// Counts the true values of a mask.
    ///
    /// # Errors
    /// The mask does not have exactly `count` true values.
    fn new(threads: &mut Threads, mask: Tensor, count: usize) -> Result<Mask, EngineError> {
        let mask = cast::to(threads, mask, DType::Bool)?.contiguous_with(threads)?;
        let mut before = vec![0; mask.numel().div_ceil(PART) + 1];
        let values = mask.bytes();
        threads.for_each_part(&mut before[1..], 1, |part, counted| {
            counted[0] =
                values[part * PART..].iter().take(PART).map(|&value| usize::from(value)).sum();
        });
        for part in 1..before.len() {
            before[part] += before[part - 1];
        }
        let found = before[before.len() - 1];
        if found != count {
            let text = format!("the mask has {found} values that are true, expected {count}");
            return Err(EngineError::Other(text));
        }
        Ok(Mask { mask, before })
    }

    /// Calls `body` on several threads for each true value, with its number among them and its
    /// position in the mask. Numbers are below the count, positions below the mask's length, and
    /// each occurs once.
    fn for_each(&self, threads: &mut Threads, body: impl Fn(usize, usize) + Sync) {
        let values = self.mask.bytes();
        threads.for_each(self.before.len() - 1, |part| {
            let (mut number, first) = (self.before[part], part * PART);
            let values = &values[first..values.len().min(first + PART)];
            let (words, rest) = values.as_chunks::<8>();
            for (index, word) in words.iter().enumerate() {
                // A value is a byte of 0 or 1: the lowest set bit is that of the next true value.
                let mut word = u64::from_le_bytes(*word);
                while word != 0 {
                    body(number, first + index * 8 + word.trailing_zeros() as usize / 8);
                    number += 1;
                    word &= word - 1;
                }
            }
            for (index, _) in rest.iter().enumerate().filter(|(_, value)| **value != 0) {
                body(number, first + words.len() * 8 + index);
                number += 1;
            }
        });
    }
}

pub fn nonzero(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let x = tensor(&mut operands, 0)?;
    let (count, shape) = (int(attributes, 0) as usize, *x.shape());
    let mask = Mask::new(threads, x, count)?;
    let mut out = Uninit::new(output)?;
    let rank = shape.rank();
    assert!(output.dtype == DType::I64 && output.shape.dims() == [count, rank]);
    let to = SharedPtr::new(out.write().cast::<i64>());
    mask.for_each(threads, |number, mut place| {
        for axis in (0..rank).rev() {
            // SAFETY: the output has `rank` elements for each of `count` numbers, each of which
            // occurs once.
            unsafe { to.get().add(number * rank + axis).write((place % shape[axis]) as i64) };
            place /= shape[axis];
        }
    });
    // SAFETY: every number below the count has occurred, so all rows have been written.
    Ok(unsafe { out.finish() })
}

pub fn masked_rows(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let x = tensor(&mut operands, 0)?.contiguous_with(threads)?;
    let mask = tensor(&mut operands, 1)?;
    let count = int(attributes, 0) as usize;
    let inner: usize = x.shape()[mask.shape().rank()..].iter().product();
    assert!(x.numel() == mask.numel() * inner && output.shape.numel() == count * inner);
    assert!(x.dtype() == output.dtype);
    let mask = Mask::new(threads, mask, count)?;
    let mut out = Uninit::new(output)?;
    let (from, to) = (SharedPtr::new(x.read().cast_mut()), SharedPtr::new(out.write()));
    with_bits!(output.dtype.size(), T => {
        mask.for_each(threads, |number, place| {
            let (from, to) = (from.get().cast_const().cast::<T>(), to.get().cast::<T>());
            // SAFETY: x is contiguous and has a row for each position of the mask; the output,
            // which is new, has one for each number, each of which occurs once.
            unsafe { copy_row(from.add(place * inner), to.add(number * inner), inner) };
        });
    });
    // SAFETY: every number below the count has occurred, so all rows have been written.
    Ok(unsafe { out.finish() })
}

pub fn masked_rows_scatter(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    _: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let source = tensor(&mut operands, 2)?.contiguous_with(threads)?;
    let mask = tensor(&mut operands, 1)?;
    let inner: usize = output.shape[mask.shape().rank()..].iter().product();
    let count = source.shape().first().copied().unwrap_or(0);
    assert!(output.shape.numel() == mask.numel() * inner && source.numel() == count * inner);
    let mask = Mask::new(threads, mask, count)?;
    let mut out = tensor(&mut operands, 0)?.writable()?;
    assert!(out.meta() == output && source.dtype() == output.dtype);
    let from = SharedPtr::new(source.read().cast_mut());
    let to = SharedPtr::new(out.bytes_mut().as_mut_ptr());
    with_bits!(output.dtype.size(), T => {
        mask.for_each(threads, |number, place| {
            let (from, to) = (from.get().cast_const().cast::<T>(), to.get().cast::<T>());
            // SAFETY: the source is contiguous and has a row for each number; the output, which is
            // not shared, has one for each position of the mask, each of which occurs once.
            unsafe { copy_row(from.add(number * inner), to.add(place * inner), inner) };
        });
    });
    Ok(out)
}

/// # Safety
/// Both rows have `n` elements, aligned, and do not overlap. No other thread accesses the row that
/// is written.
#[inline(always)]
unsafe fn copy_row<T: Copy>(from: *const T, to: *mut T, n: usize) {
    // SAFETY: the caller's promise.
    unsafe {
        match n {
            1 => to.write(*from),
            _ => std::ptr::copy_nonoverlapping(from, to, n),
        }
    }
}
