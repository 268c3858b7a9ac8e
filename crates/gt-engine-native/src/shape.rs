//! Operations on shapes: views if strides can express the result, else copies.

use gt_ir::instruction::Operands;
use gt_ir::operation::{int, ints};
use gt_ir::shape::{MAX_RANK, axes, axis};
use gt_ir::{Attributes, Meta, Operand, Shape};
use gt_worker::EngineError;
use smallvec::SmallVec;

use crate::cast;
use crate::copy;
use crate::table::tensor;
use crate::tensor::{Strides, Tensor, contiguous_strides};
use crate::threads::Threads;
use crate::uninit::Uninit;

fn invalid(error: gt_ir::Error) -> EngineError {
    EngineError::Other(error.to_string())
}

pub fn reshape(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    _: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let x = tensor(&mut operands, 0)?;
    if x.is_contiguous() {
        return Ok(x.with_shape(output.shape));
    }
    match strides_after(&x, &output.shape) {
        Some(strides) => Ok(x.into_view(0, output.shape, strides)),
        None => Ok(x.contiguous_with(threads)?.with_shape(output.shape)),
    }
}

/// Returns whether [`reshape`] of a tensor is a view.
pub fn is_view(x: &Tensor, to: &Shape) -> bool {
    x.is_contiguous() || strides_after(x, to).is_some()
}

/// Returns the strides that give a tensor's memory another shape, if they exist.
fn strides_after(x: &Tensor, to: &Shape) -> Option<Strides> {
    let from: SmallVec<[(usize, isize); 8]> = (0..x.shape().rank())
        .map(|axis| (x.shape()[axis], x.strides()[axis]))
        .filter(|&(length, _)| length != 1)
        .collect();
    let mut strides = [0; MAX_RANK];
    let (mut old, mut new) = (from.len(), to.rank());
    // From the last axis: the fewest axes of either shape that have the same number of elements.
    while old > 0 {
        let (mut old_count, mut new_count) = (from[old - 1].0, 1);
        let (old_end, new_end) = (old, new);
        old -= 1;
        while old_count != new_count {
            if new_count < old_count {
                new = new.checked_sub(1)?;
                new_count *= to[new];
            } else {
                old = old.checked_sub(1)?;
                old_count *= from[old].0;
            }
        }
        let one_run = (old..old_end - 1)
            .all(|axis| from[axis].1 == from[axis + 1].1 * from[axis + 1].0 as isize);
        if !one_run {
            return None;
        }
        let mut stride = from[old_end - 1].1;
        for axis in (new..new_end).rev() {
            strides[axis] = stride;
            stride *= to[axis] as isize;
        }
    }
    Some(strides)
}

pub fn permute(
    _: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let x = tensor(&mut operands, 0)?;
    let mut strides = [0; MAX_RANK];
    for (to, &from) in ints(attributes, 0).iter().enumerate() {
        strides[to] = x.strides()[axis(from, output.shape.rank(), "permute").map_err(invalid)?];
    }
    Ok(x.into_view(0, output.shape, strides))
}

pub fn expand(
    _: &mut Threads,
    mut operands: Operands<Tensor>,
    _: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let x = tensor(&mut operands, 0)?;
    let strides = x.strides_in(&output.shape);
    Ok(x.into_view(0, output.shape, strides))
}

pub fn flip(
    _: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let x = tensor(&mut operands, 0)?;
    let (mut offset, mut strides) = (0, x.strides());
    for along in axes(ints(attributes, 0), output.shape.rank(), "flip").map_err(invalid)? {
        offset += strides[along] * (output.shape[along] as isize - 1).max(0);
        strides[along] = -strides[along];
    }
    Ok(x.into_view(offset, output.shape, strides))
}

/// Returns the offset and strides of a slice within a tensor.
fn region(x: &Tensor, attributes: &Attributes) -> (isize, Strides) {
    let (starts, steps) = (ints(attributes, 0), ints(attributes, 2));
    let (mut offset, mut strides) = (0, x.strides());
    for axis in 0..x.shape().rank() {
        offset += starts[axis] as isize * strides[axis];
        strides[axis] *= steps[axis] as isize;
    }
    (offset, strides)
}

pub fn slice(
    _: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let x = tensor(&mut operands, 0)?;
    let (offset, strides) = region(&x, attributes);
    Ok(x.into_view(offset, output.shape, strides))
}

pub fn slice_assign(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let value = match &operands[1] {
        Operand::Tensor(tensor) => cast::to(threads, tensor.clone(), output.dtype)?,
        Operand::Scalar(scalar) => Tensor::scalar(*scalar, output.dtype)?,
    };
    // If the value is the tensor itself or a view of it, this copies.
    let mut x = tensor(&mut operands, 0)?.writable()?;
    let (offset, strides) = region(&x, attributes);
    let sizes: SmallVec<[usize; 8]> = ints(attributes, 1).iter().map(|&n| n as usize).collect();
    let shape = Shape::new(&sizes).map_err(invalid)?;
    let mut target = x.region(offset, shape, strides).expect("x is not shared");
    copy::into(&value.expand(&shape), &mut target);
    Ok(x)
}

pub fn cat(
    threads: &mut Threads,
    operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let along = axis(int(attributes, 0), output.shape.rank(), "cat").map_err(invalid)?;
    let mut out = Uninit::new(output)?;
    let strides = contiguous_strides(&output.shape);
    let mut start = 0;
    for operand in operands {
        let Operand::Tensor(part) = operand else {
            return Err(EngineError::Other("cat takes tensors only".into()));
        };
        let part = cast::to(threads, part, output.dtype)?;
        let shape = *part.shape();
        assert!(
            shape.with(along, output.shape[along]) == output.shape,
            "parts differ only along the axis"
        );
        copy::into(&part, &mut out.region(start as isize * strides[along], shape, strides));
        start += shape[along];
    }
    assert!(start == output.shape[along], "parts cover the output");
    // SAFETY: the parts are adjacent along the axis, which they fill, and complete along all
    // others: every element has been written.
    Ok(unsafe { out.finish() })
}

/// Copies a matrix and clears the elements beyond the diagonal.
fn triangle(
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
    cleared: fn(row: i64, columns: i64, diagonal: i64) -> std::ops::Range<i64>,
) -> Result<Tensor, EngineError> {
    let mut x = tensor(&mut operands, 0)?.writable()?;
    let rank = output.shape.rank();
    let (rows, columns) = (output.shape[rank - 2], output.shape[rank - 1] as i64);
    if output.shape.numel() == 0 {
        return Ok(x);
    }
    let size = output.dtype.size();
    let row = columns as usize * size;
    for (index, row) in x.bytes_mut().chunks_exact_mut(row).enumerate() {
        let gone = cleared((index % rows) as i64, columns, int(attributes, 0));
        let (start, end) = (gone.start.clamp(0, columns), gone.end.clamp(0, columns));
        if start < end {
            row[start as usize * size..end as usize * size].fill(0);
        }
    }
    Ok(x)
}

pub fn tril(
    _: &mut Threads,
    operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    triangle(operands, attributes, output, |row, columns, diagonal| {
        row.saturating_add(diagonal).saturating_add(1)..columns
    })
}

pub fn triu(
    _: &mut Threads,
    operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    triangle(operands, attributes, output, |row, _, diagonal| 0..row.saturating_add(diagonal))
}
