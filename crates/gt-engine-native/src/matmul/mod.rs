//! Matrix products. Floats and complex numbers are multiplied by gemm, which takes operands of any
//! strides.
//!
//! The order in which an element is summed depends only on the shapes: operands whose strides would
//! make gemm use another order are copied first. [`product`] computes one product on one thread,
//! [`vector`] products with a vector; [`tiles`] one that can be paused.

mod product;
mod tiles;
mod vector;

use gt_ir::instruction::Operands;
use gt_ir::{Attributes, Meta, Shape};
use gt_worker::EngineError;
use smallvec::SmallVec;

use self::product::{is_better_transposed, large, product};
use self::tiles::{TILE_WORK, tiles};
use self::vector::is_by_vector;
use crate::cast;
use crate::copy::Loops;
use crate::element::{Number, compute_dtype, with_number};
use crate::small::{self, StridedMatrix};
use crate::table::tensor;
use crate::tensor::{Tensor, broadcast_strides};
use crate::threads::{SharedPtr, Threads};
use crate::uninit::Uninit;

/// Products with fewer multiplications run on one thread.
const PARALLEL: usize = 1 << 20;
/// The same for a product with a vector, where each number is read for a single multiplication.
const PARALLEL_BY_VECTOR: usize = 1 << 19;
/// The multiplications of a piece, and the most pieces for each thread. Small pieces limit the
/// delay if other programs occupy a processor.
const PIECE: usize = 1 << 22;
const PIECES: usize = 8;

/// gemm sums results of up to this many elements in another order if both operands are contiguous
/// along the depth.
const BY_DEPTH: usize = 256;

/// A matrix is copied to row-major order if it is multiplied with at least this many rows or
/// columns.
const TRANSPOSE_MIN: usize = 128;

/// The lengths of a product: (rows, depth) times (depth, columns).
#[derive(Clone, Copy)]
struct ProductLengths {
    rows: usize,
    depth: usize,
    columns: usize,
}

/// A matrix in memory: its first element, and the strides of rows and columns.
#[derive(Clone, Copy)]
struct Matrix<T> {
    first: SharedPtr<T>,
    row: isize,
    column: isize,
}

impl<T: Copy> Matrix<T> {
    fn data(&self) -> *const T {
        self.first.get().cast_const()
    }

    fn strided(&self) -> StridedMatrix<T> {
        StridedMatrix { first: self.data(), row: self.row, column: self.column }
    }

    /// Returns the submatrix from (row, column) on.
    fn from(self, row: usize, column: usize) -> Matrix<T> {
        self.after(row as isize * self.row + column as isize * self.column)
    }

    /// Returns the matrix that starts `offset` elements later.
    fn after(self, offset: isize) -> Matrix<T> {
        Matrix { first: SharedPtr::new(self.first.get().wrapping_offset(offset)), ..self }
    }
}

pub fn matmul(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    _: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    // f16 and bf16 are multiplied and summed in float32.
    let dtype = compute_dtype(output.dtype);
    let left = cast::to(threads, tensor(&mut operands, 0)?, dtype)?;
    let right = cast::to(threads, tensor(&mut operands, 1)?, dtype)?;
    let mut out = Uninit::new(Meta::new(dtype, output.shape))?;
    let left = forwards(threads, left, 1)?;
    let right = forwards(threads, right, 2)?;
    let (left, right) = fold_batch(threads, left, right)?;
    let (left, right) = in_rows(threads, left, right)?;
    let (left, right) = not_both_by_depth(threads, left, right)?;
    if output.shape.numel() > 0 {
        with_number!(dtype, T => all::<T>(threads, &left, &right, &mut out));
    }
    // SAFETY: `all` has written every element.
    cast::to(threads, unsafe { out.finish() }, output.dtype)
}

/// Copies a matrix whose stride along the summed axis, counted from the last, is negative: gemm
/// would sum in reverse.
fn forwards(threads: &mut Threads, x: Tensor, axis: usize) -> Result<Tensor, EngineError> {
    let is_backwards = x.strides()[x.shape().rank() - axis] < 0;
    if is_backwards { x.contiguous_with(threads) } else { Ok(x) }
}

/// Multiplies a batch of matrices by one matrix as a single tall matrix. This does not depend on
/// strides, so that the order of summation follows from the shapes.
fn fold_batch(
    threads: &mut Threads,
    left: Tensor,
    right: Tensor,
) -> Result<(Tensor, Tensor), EngineError> {
    let rank = left.shape().rank();
    if rank == 2 || right.shape().rank() > 2 {
        return Ok((left, right));
    }
    let left = left.contiguous_with(threads)?;
    let depth = left.shape().dims()[rank - 1];
    let rows = left.shape().dims()[..rank - 1].iter().product();
    let tall = Shape::new(&[rows, depth]).expect("the rank is in range");
    Ok((left.with_shape(tall), right))
}

/// Copies matrices that are contiguous along columns to row-major order, if that is cheap compared
/// with the product: gemm accepts them, but packs them slowly.
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
    let in_rows_if_large = |threads: &mut Threads, x: Tensor, others: usize| {
        if others >= TRANSPOSE_MIN && by_columns(&x) { x.contiguous_with(threads) } else { Ok(x) }
    };
    let right = in_rows_if_large(threads, right, rows)?;
    // If the depth is longer, the result is transposed instead.
    let depth = left.shape()[left.shape().rank() - 1];
    let left = if columns < depth { left } else { in_rows_if_large(threads, left, columns)? };
    Ok((left, right))
}

/// Copies the smaller operand if both are contiguous along the depth and the result is small: gemm
/// would sum it in another order.
fn not_both_by_depth(
    threads: &mut Threads,
    left: Tensor,
    right: Tensor,
) -> Result<(Tensor, Tensor), EngineError> {
    let is_run = |x: &Tensor, axis: usize| x.strides()[x.shape().rank() - axis] == 1;
    let rows = left.shape()[left.shape().rank() - 2];
    let (depth, columns) =
        (right.shape()[right.shape().rank() - 2], right.shape()[right.shape().rank() - 1]);
    let is_summed_so = rows.min(columns) > 1
        && rows * columns <= BY_DEPTH
        && !left.dtype().is_exact()
        && !small::is_small(rows, depth, columns);
    if !is_summed_so || !is_run(&left, 1) || !is_run(&right, 2) {
        return Ok((left, right));
    }
    if columns <= rows {
        return Ok((left, right.contiguous_with(threads)?));
    }
    let rank = left.shape().rank();
    let order: SmallVec<[usize; 8]> = (0..rank - 2).chain([rank - 1, rank - 2]).collect();
    Ok((left.permute(&order).contiguous_with(threads)?.permute(&order), right))
}

/// Multiplies all matrices of the batch. Writes every element of the output.
fn all<T: Number>(threads: &mut Threads, left: &Tensor, right: &Tensor, out: &mut Uninit) {
    let lengths = |x: &Tensor| (x.shape()[x.shape().rank() - 2], x.shape()[x.shape().rank() - 1]);
    let ((rows, depth), (inner, columns)) = (lengths(left), lengths(right));
    let lengths = ProductLengths { rows, depth, columns };
    let out = out.slots::<T>();
    assert!(left.dtype() == T::DTYPE && right.dtype() == T::DTYPE);
    let matrix = |x: &Tensor| {
        let rank = x.shape().rank();
        let (row, column) = (x.strides()[rank - 2], x.strides()[rank - 1]);
        Matrix { first: SharedPtr::new(x.read().cast::<T>().cast_mut()), row, column }
    };
    let (a, b) = (matrix(left), matrix(right));
    assert!(depth == inner, "the shapes of a product");
    if out.len() == rows * columns {
        // SAFETY: these are the tensors' own lengths and strides; the output has rows times columns
        // elements.
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
    if threads.have_gate() && size * depth >= 2 * TILE_WORK {
        for (index, out) in out.chunks_exact_mut(size).enumerate() {
            let [left, right] = at(index);
            // SAFETY: the offsets are those of a matrix of the batch, to which both tensors
            // broadcast; this call has exclusive access to the part of the output.
            unsafe {
                let (a, b) = (a.after(left), b.after(right));
                split(threads, lengths, a, b, out.as_mut_ptr().cast());
            }
        }
        return;
    }
    let (work, pass) = (size * depth.max(1), threads.pass());
    let most = if threads.have_gate() { (TILE_WORK / work).max(1) } else { count };
    let is_small = count * work < PARALLEL;
    let step = if is_small { count } else { count.div_ceil(threads.ways() * 4).min(most) };
    threads.for_each_part(out, step * size, |piece, out| {
        for (index, out) in out.chunks_exact_mut(size).enumerate() {
            let [left, right] = at(piece * step + index);
            // SAFETY: the offsets are those of a matrix of the batch, to which both tensors
            // broadcast; this call has exclusive access to the part of the output.
            unsafe {
                let (a, b) = (a.after(left), b.after(right));
                product(lengths, a, b, out.as_mut_ptr().cast(), columns, &pass);
            }
        }
    });
}

/// Returns a tensor's shape without the last two axes.
fn matrices(x: &Tensor) -> Shape {
    Shape::new(&x.shape()[..x.shape().rank() - 2]).expect("the rank is in range")
}

fn batch_shape(left: &Tensor, right: &Tensor) -> Shape {
    matrices(left).broadcast(&matrices(right), "matmul").expect("checked by infer")
}

/// Computes one product, on several threads if it is large: each computes some rows or columns of
/// the result.
///
/// # Safety
/// The matrices have these lengths and can be read. `out` has space for the result, row by row,
/// which overlaps with neither matrix and which no other thread accesses.
unsafe fn split<T: Number>(
    threads: &mut Threads,
    lengths: ProductLengths,
    a: Matrix<T>,
    b: Matrix<T>,
    out: *mut T,
) {
    let ProductLengths { rows, depth, columns } = lengths;
    if threads.have_gate() && !is_by_vector::<T>(lengths) {
        // SAFETY: the caller's promise.
        return unsafe { tiles(threads, lengths, a, b, out) };
    }
    let parallel = if is_by_vector::<T>(lengths) { PARALLEL_BY_VECTOR } else { PARALLEL };
    if rows * columns * depth < parallel || threads.ways() == 1 {
        // SAFETY: the caller's promise; the rows are contiguous.
        return unsafe { product(lengths, a, b, out, columns, &|| {}) };
    }
    // Each piece packs its own part of one operand, and all of the other.
    let by_rows = rows > columns;
    let length = if by_rows { rows } else { columns };
    // Multiples of gemm's registers.
    let most = threads.ways() * PIECES;
    let pieces = (rows * columns * depth / PIECE).clamp(threads.ways(), most);
    let least = least_part(length, rows.min(columns));
    let step = length.div_ceil(pieces).next_multiple_of(16).max(least);
    let count = length.div_ceil(step);
    let count = if length - (count - 1) * step < least { count - 1 } else { count };
    let is_transposed = is_better_transposed(lengths, a, b);
    let out = SharedPtr::new(out);
    threads.for_each(count.max(1), |piece| {
        let start = piece * step;
        let part = if piece + 1 >= count { length - start } else { step };
        // SAFETY: a part of the rows or columns, for which the caller's promise holds; no other
        // piece writes the same ones.
        unsafe {
            if by_rows {
                let lengths = ProductLengths { rows: part, ..lengths };
                let out = out.get().add(start * columns);
                large(lengths, a.from(start, 0), b, out, columns, is_transposed, &|| {});
            } else {
                let lengths = ProductLengths { columns: part, ..lengths };
                let out = out.get().add(start);
                large(lengths, a, b.from(0, start), out, columns, is_transposed, &|| {});
            }
        }
    });
}

/// Returns the fewest rows or columns of a part for which gemm sums elements in the same order as
/// for the whole: it uses another order for results of up to 256 elements, and of up to 64 rows and
/// columns.
fn least_part(length: usize, other: usize) -> usize {
    let least = BY_DEPTH / other.max(1) + 1;
    let least = if length > 64 { least.max(65) } else { least };
    least.next_multiple_of(16)
}
