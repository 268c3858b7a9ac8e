//! Matrix products: floats by gemm, which takes operands of any strides as they are.

use std::mem::MaybeUninit;

use gemm::Parallelism;
use gt_ir::instruction::Operands;
use gt_ir::{Attributes, DType, Meta, Shape};
use gt_worker::EngineError;

use crate::buffer::Buffer;
use crate::cast;
use crate::copy::{self, Loops};
use crate::element::{Number, compute_dtype, with_number};
use crate::simd::vectorized;
use crate::small::{self, Strided};
use crate::table::tensor;
use crate::tensor::{Tensor, broadcast_strides};
use crate::threads::{Shared, Threads};
use crate::uninit::Uninit;

/// Products of fewer multiplications stay on one thread.
const PARALLEL: usize = 1 << 20;
/// A piece that a thread takes has about so many, and there are at most so many pieces for each
/// thread: where other programs use the processors, too, a thread that has to wait for one
/// holds up little.
const PIECE: usize = 1 << 22;
const PIECES: usize = 8;

/// A matrix is copied into rows if it is multiplied with so many rows or columns.
const TURNED: usize = 128;

/// The lengths of one product: rows x depth times depth x columns.
#[derive(Clone, Copy)]
struct Lengths {
    rows: usize,
    depth: usize,
    columns: usize,
}

/// A matrix in memory: its first element, and the steps to the next row and column.
#[derive(Clone, Copy)]
struct Matrix<T> {
    first: Shared<T>,
    row: isize,
    column: isize,
}

impl<T: Copy> Matrix<T> {
    fn data(&self) -> *const T {
        self.first.get().cast_const()
    }

    fn strided(&self) -> Strided<T> {
        Strided { first: self.data(), row: self.row, column: self.column }
    }

    /// The matrix from another first element on.
    fn from(self, row: usize, column: usize) -> Matrix<T> {
        self.after(row as isize * self.row + column as isize * self.column)
    }

    /// The matrix whose first element is so many after this one's.
    fn after(self, offset: isize) -> Matrix<T> {
        Matrix { first: Shared::new(self.first.get().wrapping_offset(offset)), ..self }
    }
}

pub fn matmul(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    _: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    // The 16-bit floats are multiplied and summed in float32.
    let dtype = compute_dtype(output.dtype);
    let left = cast::to(threads, tensor(&mut operands, 0)?, dtype)?;
    let right = cast::to(threads, tensor(&mut operands, 1)?, dtype)?;
    let mut out = Uninit::new(Meta::new(dtype, output.shape))?;
    let (left, right) = fold_batch(left, right);
    let (left, right) = in_rows(threads, left, right)?;
    if output.shape.numel() > 0 {
        with_number!(dtype, T => all::<T>(threads, &left, &right, &mut out));
    }
    // SAFETY: `all` has written every element.
    cast::to(threads, unsafe { out.finish() }, output.dtype)
}

/// A batch of matrices times one matrix is one taller matrix times it.
fn fold_batch(left: Tensor, right: Tensor) -> (Tensor, Tensor) {
    let rank = left.shape().rank();
    if rank == 2 || right.shape().rank() > 2 || !left.is_contiguous() {
        return (left, right);
    }
    let depth = left.shape().dims()[rank - 1];
    let rows = left.shape().dims()[..rank - 1].iter().product();
    let tall = Shape::new(&[rows, depth]).expect("a reshape of a shape");
    (left.with_shape(tall), right)
}

/// Matrices whose columns are runs, copied into rows where that is little beside the product: gemm
/// takes them as they are, but copies them slowly.
fn in_rows(
    threads: &mut Threads,
    left: Tensor,
    right: Tensor,
) -> Result<(Tensor, Tensor), EngineError> {
    let by_columns = |x: &Tensor| {
        let rank = x.shape().rank();
        let (row, column) = (x.strides()[rank - 2], x.strides()[rank - 1]);
        row == 1 && column.unsigned_abs() > 1 && x.shape()[rank - 2] > 1
    };
    let rows = left.shape()[left.shape().rank() - 2];
    let columns = right.shape()[right.shape().rank() - 1];
    let turn = |threads: &mut Threads, x: Tensor, others: usize| {
        if others >= TURNED && by_columns(&x) { x.contiguous_with(threads) } else { Ok(x) }
    };
    let right = turn(threads, right, rows)?;
    // A product of long matrices is turned instead.
    let depth = left.shape()[left.shape().rank() - 1];
    let left = if columns < depth { left } else { turn(threads, left, columns)? };
    Ok((left, right))
}

/// Multiplies all matrices of the batch; writes every element of the output.
fn all<T: Number>(threads: &mut Threads, left: &Tensor, right: &Tensor, out: &mut Uninit) {
    let lengths = |x: &Tensor| (x.shape()[x.shape().rank() - 2], x.shape()[x.shape().rank() - 1]);
    let ((rows, depth), (inner, columns)) = (lengths(left), lengths(right));
    let lengths = Lengths { rows, depth, columns };
    let out = out.slots::<T>();
    assert!(left.dtype() == T::DTYPE && right.dtype() == T::DTYPE);
    let matrix = |x: &Tensor| {
        let rank = x.shape().rank();
        let (row, column) = (x.strides()[rank - 2], x.strides()[rank - 1]);
        Matrix { first: Shared::new(x.read().cast::<T>().cast_mut()), row, column }
    };
    let (a, b) = (matrix(left), matrix(right));
    assert!(depth == inner, "the shapes of a product");
    if out.len() == rows * columns {
        // SAFETY: the tensors' own lengths and strides; the output has so many elements.
        return unsafe { split(threads, lengths, a, b, out.as_mut_ptr().cast()) };
    }
    let batch = batch_shape(left, right);
    let count = batch.numel();
    assert!(out.len() == count * rows * columns, "the shapes of a product");
    let strides = |x: &Tensor| broadcast_strides(&matrices(x), &x.strides(), &batch);
    let loops = Loops::new(&batch, &[strides(left), strides(right)]);
    let at = |index: usize| {
        let (row, column) = (index / loops.inner(), (index % loops.inner()) as isize);
        let mut offsets = [0, 0];
        loops.for_each_row(row..row + 1, |_, at| offsets = *at);
        [0, 1].map(|k| offsets[k] + column * loops.inner_stride(k))
    };
    let size = rows * columns;
    let step = if count * size * depth.max(1) < PARALLEL {
        count
    } else {
        count.div_ceil(threads.count() * 4)
    };
    threads.for_each_part(out, step * size, |piece, out| {
        for (index, out) in out.chunks_exact_mut(size).enumerate() {
            let [left, right] = at(piece * step + index);
            // SAFETY: the offsets of a matrix of the batch, to which both tensors broadcast; the
            // part of the output is the one that they give.
            unsafe {
                product(lengths, a.after(left), b.after(right), out.as_mut_ptr().cast(), columns);
            }
        }
    });
}

/// A tensor's shape without the matrices.
fn matrices(x: &Tensor) -> Shape {
    Shape::new(&x.shape()[..x.shape().rank() - 2]).expect("a part of a shape")
}

fn batch_shape(left: &Tensor, right: &Tensor) -> Shape {
    matrices(left).broadcast(&matrices(right), "matmul").expect("checked by infer")
}

/// One product, over threads where it is large: each takes some rows or columns of the result.
///
/// # Safety
/// The matrices can be read in these lengths. `out` has room for the result, row by row, which
/// overlaps with neither and nobody else looks at.
unsafe fn split<T: Number>(
    threads: &mut Threads,
    lengths: Lengths,
    a: Matrix<T>,
    b: Matrix<T>,
    out: *mut T,
) {
    let Lengths { rows, depth, columns } = lengths;
    if rows * columns * depth < PARALLEL || threads.count() == 1 {
        // SAFETY: the caller's promise; the rows follow one another.
        return unsafe { product(lengths, a, b, out, columns) };
    }
    // Each piece packs its own part of the right operand, and all of the left as it goes.
    let by_rows = rows > columns;
    let length = if by_rows { rows } else { columns };
    // Whole registers of gemm's kernels.
    let most = threads.count() * PIECES;
    let pieces = (rows * columns * depth / PIECE).clamp(threads.count(), most);
    let step = length.div_ceil(pieces).next_multiple_of(16);
    let out = Shared::new(out);
    threads.for_each(length.div_ceil(step), |piece| {
        let start = piece * step;
        let part = step.min(length - start);
        // SAFETY: a part of the rows or columns, for the caller's promise is good for all; no other
        // piece writes the same ones.
        unsafe {
            if by_rows {
                let lengths = Lengths { rows: part, ..lengths };
                let out = out.get().add(start * columns);
                product(lengths, a.from(start, 0), b, out, columns);
            } else {
                let lengths = Lengths { columns: part, ..lengths };
                product(lengths, a, b.from(0, start), out.get().add(start), columns);
            }
        }
    });
}

/// One product on this thread, into rows that are `pitch` elements apart; every element of them is
/// written.
///
/// # Safety
/// The matrices can be read in these lengths. `out` has room for such rows, which overlap with
/// neither and nobody else looks at.
unsafe fn product<T: Number>(
    lengths: Lengths,
    a: Matrix<T>,
    b: Matrix<T>,
    out: *mut T,
    pitch: usize,
) {
    let Lengths { rows, depth, columns } = lengths;
    if !T::DTYPE.is_exact() && small::is_small(rows, depth, columns) {
        // SAFETY: the caller's promise.
        return unsafe {
            small::multiply([rows, depth, columns], a.strided(), b.strided(), out, pitch);
        };
    }
    if !T::DTYPE.is_exact() && depth > 0 {
        if is_better_turned(lengths, a, b)
            && let Ok(buffer) = Buffer::new(rows * columns * size_of::<T>())
        {
            let turned = buffer.data().cast::<T>();
            // SAFETY: the caller's promise; the buffer is new and has room for the result, column
            // by column.
            return unsafe {
                multiply(lengths, a, b, turned, [1, rows as isize]);
                copy::turn(rows, columns, turned, rows as isize, out, pitch as isize);
            };
        }
        // SAFETY: the caller's promise; T is no integer.
        return unsafe { multiply(lengths, a, b, out, [pitch as isize, 1]) };
    }
    for row in 0..rows {
        // SAFETY: the caller's promise, for one of the rows.
        unsafe {
            let out = std::slice::from_raw_parts_mut(out.add(row * pitch).cast(), columns);
            exact_row(lengths, a.from(row, 0), b, out);
        }
    }
}

/// Whether gemm is faster at the result column by column. Row by row it copies a right operand
/// whose columns are runs (a transposed weight) into rows, and a left one slowly; that costs more
/// than to turn a small result.
fn is_better_turned<T>(lengths: Lengths, a: Matrix<T>, b: Matrix<T>) -> bool {
    let Lengths { rows, depth, columns } = lengths;
    if is_turned_left(lengths, a) {
        return true;
    }
    b.row == 1 && b.column != 1 && rows > 1 && rows * (columns + depth) < depth * columns
}

/// Whether the left operand's columns are runs, and the result is the smaller one to turn.
fn is_turned_left<T>(lengths: Lengths, a: Matrix<T>) -> bool {
    let Lengths { rows, depth, columns } = lengths;
    a.row == 1 && a.column != 1 && rows > 1 && (TURNED..depth).contains(&columns)
}

/// One product of floats or complex numbers, its result at the steps given for rows and columns.
///
/// # Safety
/// The matrices can be read in these lengths. `out` has room for the result at those steps, which
/// overlaps with neither and nobody else looks at. T is no integer.
unsafe fn multiply<T: Number>(
    lengths: Lengths,
    a: Matrix<T>,
    b: Matrix<T>,
    out: *mut T,
    steps: [isize; 2],
) {
    // SAFETY: the caller's promise. A complex number of ours is laid out as one of gemm's.
    unsafe {
        match T::DTYPE {
            DType::C64 => multiply_as([gemm::c32::ZERO, gemm::c32::ONE], lengths, a, b, out, steps),
            DType::C128 => {
                multiply_as([gemm::c64::ZERO, gemm::c64::ONE], lengths, a, b, out, steps)
            }
            _ => multiply_as([T::ZERO, T::ONE], lengths, a, b, out, steps),
        }
    }
}

/// As [`multiply`], with the numbers as gemm's `G`, of which 0 and 1 are given.
///
/// # Safety
/// As there; besides, T is laid out as G.
unsafe fn multiply_as<G: Copy + 'static, T: Number>(
    [zero, one]: [G; 2],
    lengths: Lengths,
    a: Matrix<T>,
    b: Matrix<T>,
    out: *mut T,
    [row, column]: [isize; 2],
) {
    // SAFETY: the caller's promise. The output is not read, so that it need not be initialized.
    unsafe {
        gemm::gemm(
            lengths.rows,
            lengths.columns,
            lengths.depth,
            out.cast::<G>(),
            column,
            row,
            false,
            a.data().cast::<G>(),
            a.column,
            a.row,
            b.data().cast::<G>(),
            b.column,
            b.row,
            zero,
            one,
            false,
            false,
            false,
            Parallelism::None,
        );
    }
}

/// A row of an integer product, which wraps.
///
/// # Safety
/// A row of `a`, as long as the depth, can be read, and of `b` as many rows as long as `out`.
unsafe fn exact_row<T: Number>(
    lengths: Lengths,
    a: Matrix<T>,
    b: Matrix<T>,
    out: &mut [MaybeUninit<T>],
) {
    out.fill(MaybeUninit::new(T::ZERO));
    // SAFETY: filled a line ago.
    let out = unsafe { &mut *(std::ptr::from_mut(out) as *mut [T]) };
    vectorized(
        #[inline(always)]
        || {
            for k in 0..lengths.depth {
                // SAFETY: k is within the depth, and each column within the output's length.
                unsafe {
                    let factor = *a.from(0, k).data();
                    let row = b.from(k, 0);
                    if row.column == 1 {
                        let row = std::slice::from_raw_parts(row.data(), out.len());
                        for (out, x) in out.iter_mut().zip(row) {
                            *out = out.plus(factor.times(*x));
                        }
                    } else {
                        for (column, out) in out.iter_mut().enumerate() {
                            *out = out.plus(factor.times(*row.from(0, column).data()));
                        }
                    }
                }
            }
        },
    );
}
