//! Matrix products: floats by gemm, which takes operands of any strides as they are.

use gemm::Parallelism;
use gt_ir::instruction::Operands;
use gt_ir::{Attributes, DType, Meta, Shape};
use gt_worker::EngineError;

use crate::buffer::Buffer;
use crate::cast;
use crate::copy::{self, Loops};
use crate::element::{Number, compute_dtype, with_number};
use crate::simd::vectorized;
use crate::table::tensor;
use crate::tensor::Tensor;
use crate::threads::{Shared, Threads};

/// Products of fewer multiplications stay on one thread.
const PARALLEL: usize = 1 << 20;

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
    data: *const T,
    row: isize,
    column: isize,
}

impl<T> Matrix<T> {
    /// The matrix from another first element on.
    fn from(self, row: usize, column: usize) -> Matrix<T> {
        let offset = row as isize * self.row + column as isize * self.column;
        Matrix { data: self.data.wrapping_offset(offset), ..self }
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
    let mut out = Tensor::empty(Meta::new(dtype, output.shape))?;
    let (left, right) = fold_batch(left, right);
    let (left, right) = in_rows(threads, left, right)?;
    if output.shape.numel() > 0 {
        with_number!(dtype, T => all::<T>(threads, &left, &right, &mut out));
    }
    cast::to(threads, out, output.dtype)
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

/// Multiplies all matrices of the batch.
fn all<T: Number>(threads: &mut Threads, left: &Tensor, right: &Tensor, out: &mut Tensor) {
    let [(rows, depth), (_, columns)] = [left, right].map(|x| {
        (x.shape().iter().rev().nth(1).copied().unwrap_or(1), x.shape()[x.shape().rank() - 1])
    });
    let lengths = Lengths { rows, depth, columns };
    let batch = batch_shape(left, right);
    let strides = |x: &Tensor| {
        let rank = x.shape().rank();
        let matrix = Shape::new(&x.shape()[..rank - 2]).expect("a part of a shape");
        x.view(0, matrix, x.strides()).strides_in(&batch)
    };
    let matrix = |x: &Tensor| {
        let rank = x.shape().rank();
        let (row, column) = (x.strides()[rank - 2], x.strides()[rank - 1]);
        Matrix { data: x.read().cast::<T>(), row, column }
    };
    let loops = Loops::new(&batch, &[strides(left), strides(right)]);
    let (a, b, to) = (Shared(matrix(left)), Shared(matrix(right)), Shared(out.write().cast::<T>()));
    let work = rows * columns * depth.max(1);
    let count = batch.numel();
    if count == 1 {
        // SAFETY: the tensors' own lengths and strides; the output is new.
        return unsafe { split(threads, lengths, a.get(), b.get(), to.get()) };
    }
    let at = |index: usize| {
        let (row, column) = (index / loops.inner(), (index % loops.inner()) as isize);
        let mut offsets = [0, 0];
        loops.for_each_row(row..row + 1, |_, at| offsets = *at);
        [0, 1].map(|k| offsets[k] + column * loops.inner_stride(k))
    };
    let one = |index: usize| {
        let [left, right] = at(index);
        let a = Matrix { data: a.get().data.wrapping_offset(left), ..a.get() };
        let b = Matrix { data: b.get().data.wrapping_offset(right), ..b.get() };
        // SAFETY: matrix `index` of each; those of the output are disjoint.
        unsafe { product(lengths, a, b, to.get().add(index * rows * columns), columns) }
    };
    if work * count < PARALLEL {
        (0..count).for_each(one);
    } else {
        let step = count.div_ceil(threads.count() * 4);
        threads.for_each(count.div_ceil(step), |piece| {
            (piece * step..((piece + 1) * step).min(count)).for_each(one);
        });
    }
}

fn batch_shape(left: &Tensor, right: &Tensor) -> Shape {
    let batch =
        |x: &Tensor| Shape::new(&x.shape()[..x.shape().rank() - 2]).expect("a part of a shape");
    batch(left).broadcast(&batch(right), "matmul").expect("checked by infer")
}

/// One product, over threads where it is large: each takes some rows or columns of the result.
///
/// # Safety
/// The matrices have these lengths, and `out` room for the result.
unsafe fn split<T: Number>(
    threads: &mut Threads,
    lengths: Lengths,
    a: Matrix<T>,
    b: Matrix<T>,
    out: *mut T,
) {
    let Lengths { rows, depth, columns } = lengths;
    if rows * columns * depth < PARALLEL || threads.count() == 1 {
        // SAFETY: the caller's promise.
        return unsafe { product(lengths, a, b, out, columns) };
    }
    // Each piece packs its own part of the right operand, and all of the left as it goes.
    let by_rows = rows > columns;
    let length = if by_rows { rows } else { columns };
    // Whole registers of gemm's kernels.
    let step = length.div_ceil(threads.count()).next_multiple_of(16);
    let (a, b, out) = (Shared(a), Shared(b), Shared(out));
    threads.for_each(length.div_ceil(step), |piece| {
        let start = piece * step;
        let part = step.min(length - start);
        // SAFETY: a part of the result that no other piece writes.
        unsafe {
            if by_rows {
                let lengths = Lengths { rows: part, ..lengths };
                let out = out.get().add(start * columns);
                product(lengths, a.get().from(start, 0), b.get(), out, columns);
            } else {
                let lengths = Lengths { columns: part, ..lengths };
                let b = b.get().from(0, start);
                product(lengths, a.get(), b, out.get().add(start), columns);
            }
        }
    });
}

/// One product on this thread, into rows that are `pitch` elements apart.
///
/// # Safety
/// The matrices have these lengths, and `out` room for the result.
unsafe fn product<T: Number>(
    lengths: Lengths,
    a: Matrix<T>,
    b: Matrix<T>,
    out: *mut T,
    pitch: usize,
) {
    let Lengths { rows, depth, columns } = lengths;
    if matches!(T::DTYPE, DType::F32 | DType::F64) && depth > 0 {
        if is_better_turned(lengths, a, b)
            && let Ok(buffer) = Buffer::new(rows * columns * size_of::<T>())
        {
            let turned = buffer.data().cast::<T>();
            // SAFETY: the caller's promise; the buffer is new and has room for the result.
            return unsafe {
                multiply(lengths, a, b, turned, [1, rows as isize]);
                copy::turn(rows, columns, turned, rows as isize, out, pitch as isize);
            };
        }
        // SAFETY: the caller's promise.
        return unsafe { multiply(lengths, a, b, out, [pitch as isize, 1]) };
    }
    for row in 0..rows {
        // SAFETY: the caller's promise.
        unsafe {
            let out = std::slice::from_raw_parts_mut(out.add(row * pitch), columns);
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

/// One product of floats, its result at the steps given for rows and columns.
///
/// # Safety
/// The matrices have these lengths, and `out` room for the result; T is float32 or float64.
unsafe fn multiply<T: Number>(
    lengths: Lengths,
    a: Matrix<T>,
    b: Matrix<T>,
    out: *mut T,
    [row, column]: [isize; 2],
) {
    // SAFETY: the caller's promise.
    unsafe {
        gemm::gemm(
            lengths.rows,
            lengths.columns,
            lengths.depth,
            out,
            column,
            row,
            false,
            a.data,
            a.column,
            a.row,
            b.data,
            b.column,
            b.row,
            T::ZERO,
            T::ONE,
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
/// `a` has a row of the depth, `b` the lengths.
unsafe fn exact_row<T: Number>(lengths: Lengths, a: Matrix<T>, b: Matrix<T>, out: &mut [T]) {
    vectorized(
        #[inline(always)]
        || {
            out.fill(T::ZERO);
            for k in 0..lengths.depth {
                // SAFETY: k is within the depth, and each column within the columns.
                unsafe {
                    let factor = *a.from(0, k).data;
                    let row = b.from(k, 0);
                    if row.column == 1 {
                        let row = std::slice::from_raw_parts(row.data, out.len());
                        for (out, x) in out.iter_mut().zip(row) {
                            *out = out.plus(factor.times(*x));
                        }
                    } else {
                        for (column, out) in out.iter_mut().enumerate() {
                            *out = out.plus(factor.times(*row.from(0, column).data));
                        }
                    }
                }
            }
        },
    );
}
