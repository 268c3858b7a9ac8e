//! Selecting, adding and copying whole rows by an index along an axis.

use gt_ir::instruction::Operands;
use gt_ir::{Attributes, DType, Meta, Shape};
use gt_worker::EngineError;

use crate::cast;
use crate::copy::copy_bytes;
use crate::element::{Element, Number, compute_dtype, with_bits, with_element, with_number};
use crate::index::{PART, axis_of, index_below};
use crate::table::tensor;
use crate::tensor::Tensor;
use crate::threads::{SharedPtr, Threads};
use crate::uninit::Uninit;

/// Rows with fewer elements are added by one thread: finding those of a part would take longer.
const NARROW: usize = 16;

/// Views a shape as rows along an axis; returns the number of slices, of rows in a slice, and of
/// elements in a row.
fn rows(shape: &Shape, along: usize) -> (usize, usize, usize) {
    let outer = shape[..along].iter().product();
    let inner = shape[along + 1..].iter().product();
    (outer, shape[along], inner)
}

pub fn index_select(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let x = tensor(&mut operands, 0)?.contiguous_with(threads)?;
    let along = axis_of(attributes, x.shape())?;
    let (outer, length, inner) = rows(x.shape(), along);
    let index = tensor(&mut operands, 1)?;
    let index = index_below(threads, index, length)?;
    let entries = index.as_slice::<i64>();
    let mut out = Uninit::new(output)?;
    assert!(output == Meta::new(x.dtype(), x.shape().with(along, entries.len())));
    let (from, to) = (SharedPtr::new(x.read().cast_mut()), SharedPtr::new(out.write()));
    // Empty rows may have no aligned address.
    let count = if inner == 0 { 0 } else { outer * entries.len() };
    let step = (PART / inner.max(1)).max(1);
    with_bits!(output.dtype.size(), T => threads.for_each(count.div_ceil(step), |part| {
        let (from, to) = (from.get().cast::<T>(), to.get().cast::<T>());
        let numbers = part * step..count.min((part + 1) * step);
        let (mut slice, mut entry) = (numbers.start / entries.len(), numbers.start % entries.len());
        for number in numbers {
            // SAFETY: x is contiguous and has `length` rows in each slice, and the entry is below
            // that; no thread writes it. The output has a row for each slice and entry, and each is
            // in one part.
            unsafe {
                let from = from.add((slice * length + entries[entry] as usize) * inner);
                let to = to.add(number * inner);
                if inner == 1 {
                    to.write(*from);
                } else {
                    copy_bytes(from.cast(), to.cast(), inner * size_of::<T>());
                }
            }
            entry += 1;
            if entry == entries.len() {
                (slice, entry) = (slice + 1, 0);
            }
        }
    }));
    // SAFETY: a row has been written for each slice and entry.
    Ok(unsafe { out.finish() })
}

/// The source rows and the tensor's rows that an index assigns them to.
struct IntoRows {
    out: Tensor,
    index: Tensor,
    source: Tensor,
    along: usize,
}

impl IntoRows {
    fn new(
        threads: &mut Threads,
        mut operands: Operands<Tensor>,
        attributes: &Attributes,
        output: Meta,
        dtype: DType,
    ) -> Result<IntoRows, EngineError> {
        let along = axis_of(attributes, &output.shape)?;
        let index = tensor(&mut operands, 1)?;
        let index = index_below(threads, index, output.shape[along])?;
        let source = tensor(&mut operands, 2)?;
        let source = cast::to(threads, source, dtype)?.contiguous_with(threads)?;
        let x = tensor(&mut operands, 0)?;
        let out = cast::to(threads, x, dtype)?.writable_with(threads)?;
        let given = output.shape.with(along, index.numel());
        assert!(*out.shape() == output.shape && *source.shape() == given, "a row for each entry");
        Ok(IntoRows { out, index, source, along })
    }

    /// Calls `body` with each row of the tensor that an entry selects, and its source row. Each
    /// thread owns a range of the tensor's rows, and processes the entries for them in order.
    fn each<T: Element>(&mut self, threads: &mut Threads, body: impl Fn(&mut [T], &[T]) + Sync) {
        let (outer, length, inner) = rows(self.out.shape(), self.along);
        let (entries, source) = (self.index.as_slice::<i64>(), self.source.as_slice::<T>());
        if source.is_empty() {
            return;
        }
        let is_cut = source.len() >= 2 * PART && (inner >= NARROW || outer >= threads.count());
        let parts = if is_cut { threads.count() } else { 1 };
        let step = (outer * length).div_ceil(parts);
        threads.for_each_part(self.out.as_mut_slice::<T>(), step * inner, |part, to| {
            let own = part * step..part * step + to.len() / inner;
            for slice in own.start / length..own.end.div_ceil(length) {
                let from = source[slice * entries.len() * inner..].chunks_exact(inner);
                for (&entry, from) in entries.iter().zip(from) {
                    let row = slice * length + entry as usize;
                    if own.contains(&row) {
                        body(&mut to[(row - own.start) * inner..][..inner], from);
                    }
                }
            }
        });
    }
}

pub fn index_add(
    threads: &mut Threads,
    operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let dtype = compute_dtype(output.dtype);
    let mut rows = IntoRows::new(threads, operands, attributes, output, dtype)?;
    with_number!(dtype, T => rows.each::<T>(threads, |to, from| {
        for (to, from) in to.iter_mut().zip(from) {
            *to = to.plus(*from);
        }
    }));
    cast::to(threads, rows.out, output.dtype)
}

pub fn index_copy(
    threads: &mut Threads,
    operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let mut rows = IntoRows::new(threads, operands, attributes, output, output.dtype)?;
    with_element!(output.dtype, T => rows.each::<T>(threads, |to, from| to.copy_from_slice(from)));
    Ok(rows.out)
}
