//! Reading and writing at places that another tensor names.

use gt_ir::instruction::Operands;
use gt_ir::operation::int;
use gt_ir::shape::axis;
use gt_ir::{Attributes, DType, Meta, Shape};
use gt_worker::EngineError;

use crate::cast;
use crate::copy::Loops;
use crate::element::{Number, compute_dtype, with_bits, with_number};
use crate::table::tensor;
use crate::tensor::Tensor;
use crate::threads::Threads;
use crate::uninit::Uninit;

/// An index tensor, contiguous int64, all of whose entries are below `length`.
pub fn index_below(
    threads: &mut Threads,
    index: Tensor,
    length: usize,
) -> Result<Tensor, EngineError> {
    let index = cast::to(threads, index, DType::I64)?.contiguous()?;
    // As unsigned numbers the negative ones are beyond any length.
    match index.as_slice::<i64>().iter().find(|&&at| at as u64 >= length as u64) {
        Some(&index) => Err(EngineError::IndexOutOfRange { index, length }),
        None => Ok(index),
    }
}

pub fn axis_of(attributes: &Attributes, shape: &Shape) -> Result<usize, EngineError> {
    axis(int(attributes, 0), shape.rank(), "index")
        .map_err(|error| EngineError::Other(error.to_string()))
}

/// Calls `body` with an element's number within the index, and its place along `along`'s axis
/// in a tensor of these strides.
pub fn for_each_place(
    index: &Tensor,
    strides: &[isize; 8],
    along: usize,
    mut body: impl FnMut(usize, isize),
) {
    if index.numel() == 0 {
        return;
    }
    let entries = index.as_slice::<i64>();
    let step = strides[along];
    // The axis itself is walked by the index, not by its own position.
    let mut others = *strides;
    others[along] = 0;
    let loops = Loops::new(index.shape(), &[others]);
    let (inner, stride) = (loops.inner(), loops.inner_stride(0));
    let stride = if index.numel() == 1 { 0 } else { stride };
    loops.for_each_row(0..loops.rows(), |row, offsets| {
        for column in 0..inner {
            let number = row * inner + column;
            body(number, offsets[0] + column as isize * stride + entries[number] as isize * step);
        }
    });
}

pub fn gather(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let x = tensor(&mut operands, 0)?;
    let index = tensor(&mut operands, 1)?;
    if x.shape().rank() == 0 {
        index_below(threads, index, 1)?;
        return Ok(x);
    }
    let along = axis_of(attributes, x.shape())?;
    let index = index_below(threads, index, x.shape()[along])?;
    let mut out = Uninit::new(output)?;
    assert!(output == Meta::new(x.dtype(), *index.shape()), "a value for each index");
    check_places(index.shape(), x.shape(), along);
    let (from, to) = (x.read(), out.write());
    with_bits!(output.dtype.size(), T => {
        let (from, to) = (from.cast::<T>(), to.cast::<T>());
        for_each_place(&index, &x.strides(), along, |number, place| {
            // SAFETY: the places are of elements of x, as `check_places` has found, and the
            // numbers those of the output, which is as large as the index.
            unsafe { to.add(number).write(*from.offset(place)) }
        });
    });
    // SAFETY: the output has an element for each entry of the index, and all have been visited.
    Ok(unsafe { out.finish() })
}

/// Sees to it that every place an index names is one of the tensor: the entries are in range along
/// its axis; along all others the index may be no longer than the tensor.
pub fn check_places(index: &Shape, shape: &Shape, along: usize) {
    let mut axes = index.dims().iter().zip(shape.dims()).enumerate();
    let fits = axes.all(|(axis, (entries, length))| axis == along || entries <= length);
    assert!(index.rank() == shape.rank() && fits, "an index beyond its tensor");
}

pub fn scatter_add(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let dtype = compute_dtype(output.dtype);
    let length = match output.shape.rank() {
        0 => 1,
        _ => output.shape[axis_of(attributes, &output.shape)?],
    };
    let index = tensor(&mut operands, 1)?;
    let index = index_below(threads, index, length)?;
    let source = tensor(&mut operands, 2)?;
    let source = cast::to(threads, source, dtype)?.contiguous()?;
    let x = tensor(&mut operands, 0)?;
    let mut out = cast::to(threads, x, dtype)?.writable()?;
    let along = axis_of(attributes, &output.shape)?;
    assert!(*out.shape() == output.shape && source.shape() == index.shape());
    check_places(index.shape(), &output.shape, along);
    // Without axes there is one place only, whatever the stride.
    let strides = if output.shape.rank() == 0 { [0; 8] } else { out.strides() };
    with_number!(dtype, T => {
        let (to, source) = (out.as_mut_slice::<T>().as_mut_ptr(), source.as_slice::<T>());
        for_each_place(&index, &strides, along, |number, place| {
            // SAFETY: the places are of elements of the output, as `check_places` has found; it is
            // contiguous, and nobody else has it.
            unsafe {
                let at = to.offset(place);
                *at = (*at).plus(source[number]);
            }
        });
    });
    cast::to(threads, out, output.dtype)
}

/// A tensor as rows along an axis: how many of them, how many rows, and a row's length.
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
    let x = tensor(&mut operands, 0)?.contiguous()?;
    let along = axis_of(attributes, x.shape())?;
    let (outer, length, inner) = rows(x.shape(), along);
    let index = tensor(&mut operands, 1)?;
    let index = index_below(threads, index, length)?;
    let entries = index.as_slice::<i64>();
    let mut out = Uninit::new(output)?;
    assert!(output == Meta::new(x.dtype(), x.shape().with(along, entries.len())));
    let (from, to) = (x.read(), out.write());
    with_bits!(output.dtype.size(), T => {
        let (from, to) = (from.cast::<T>(), to.cast::<T>());
        for slice in 0..outer {
            for (number, &entry) in entries.iter().enumerate() {
                // SAFETY: x is contiguous and has `length` rows in each slice, and the entry is
                // below that. The output, which is new, has a row for each entry.
                unsafe {
                    let from = from.add((slice * length + entry as usize) * inner);
                    let to = to.add((slice * entries.len() + number) * inner);
                    if inner == 1 {
                        *to = *from;
                    } else {
                        std::ptr::copy_nonoverlapping(from, to, inner);
                    }
                }
            }
        }
    });
    // SAFETY: a row has been written for each slice and entry.
    Ok(unsafe { out.finish() })
}

/// index_add and index_copy: rows of a source go to rows that an index names.
fn into_rows(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
    adds: bool,
) -> Result<Tensor, EngineError> {
    let dtype = if adds { compute_dtype(output.dtype) } else { output.dtype };
    let along = axis_of(attributes, &output.shape)?;
    let (outer, length, inner) = rows(&output.shape, along);
    let index = tensor(&mut operands, 1)?;
    let index = index_below(threads, index, length)?;
    let source = tensor(&mut operands, 2)?;
    let source = cast::to(threads, source, dtype)?.contiguous()?;
    let x = tensor(&mut operands, 0)?;
    let mut out = cast::to(threads, x, dtype)?.writable()?;
    let entries = index.as_slice::<i64>();
    assert!(*out.shape() == output.shape);
    assert!(*source.shape() == output.shape.with(along, entries.len()), "a row for each index");
    let row = inner * dtype.size();
    let (from, to) = (source.bytes().as_ptr(), out.bytes_mut().as_mut_ptr());
    // Rows of nothing may lie at no aligned address.
    let outer = if row == 0 { 0 } else { outer };
    for slice in 0..outer {
        for (number, &entry) in entries.iter().enumerate() {
            // SAFETY: both tensors are contiguous, and have elements. The source has a row for each slice and entry,
            // and the output `length` rows in each slice, which the entry is below. Nobody else has
            // the output, so that the source does not overlap with it.
            unsafe {
                let from = from.add((slice * entries.len() + number) * row);
                let to = to.add((slice * length + entry as usize) * row);
                if adds {
                    with_number!(dtype, T => add_row::<T>(from.cast(), to.cast(), inner));
                } else {
                    std::ptr::copy_nonoverlapping(from, to, row);
                }
            }
        }
    }
    cast::to(threads, out, output.dtype)
}

/// # Safety
/// Both rows have `n` elements, aligned, and do not overlap. Nobody else has the one that is added
/// to.
unsafe fn add_row<T: Number>(from: *const T, to: *mut T, n: usize) {
    // SAFETY: the caller's promise.
    let (from, to) =
        unsafe { (std::slice::from_raw_parts(from, n), std::slice::from_raw_parts_mut(to, n)) };
    for (to, from) in to.iter_mut().zip(from) {
        *to = to.plus(*from);
    }
}

pub fn index_add(
    threads: &mut Threads,
    operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    into_rows(threads, operands, attributes, output, true)
}

pub fn index_copy(
    threads: &mut Threads,
    operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    into_rows(threads, operands, attributes, output, false)
}

/// Indices counted from the front.
pub fn wrap_index(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let length = int(attributes, 0);
    let index = tensor(&mut operands, 0)?;
    let index = cast::to(threads, index, DType::I64)?.contiguous()?;
    let entries = index.as_slice::<i64>();
    if let Some(&index) = entries.iter().find(|&&at| at >= length || at < -length) {
        return Err(EngineError::IndexOutOfRange { index, length: length.max(0) as usize });
    }
    if entries.iter().all(|&at| at >= 0) {
        return Ok(index);
    }
    let mut out = Uninit::new(output)?;
    let slots = out.slots::<i64>();
    assert!(slots.len() == entries.len());
    for (slot, &at) in slots.iter_mut().zip(entries) {
        slot.write(if at < 0 { at + length } else { at });
    }
    // SAFETY: every element has been written: there are as many entries.
    Ok(unsafe { out.finish() })
}
