//! Systems of equations, and row permutations.

use gt_ir::instruction::Operands;
use gt_ir::operation::bool;
use gt_ir::{Attributes, DType, Meta};
use gt_linalg::Triangle;
use gt_worker::EngineError;
use num_complex::Complex;

use super::batch::{
    BatchResults, LinalgNumber, MatrixBatch, each, nth, numbers, operand, operations, scratch,
};
use crate::tensor::Tensor;
use crate::threads::Threads;

operations! {
    solve by solve_of;
    all_triangular by triangular_of;
    all_ldl_solved by ldl_solve_of;
}

/// Defines an operation with one result by a function that returns a list of results.
macro_rules! single {
    ($($name:ident of $function:ident;)*) => { $(
        pub fn $name(
            threads: &mut Threads,
            operands: Operands<Tensor>,
            attributes: &Attributes,
            output: Meta,
        ) -> Result<Tensor, EngineError> {
            let mut made = $function(threads, operands, attributes, &[output])?;
            Ok(made.swap_remove(0))
        }
    )* };
}

single! {
    solve_triangular of all_triangular;
    ldl_solve of all_ldl_solved;
}

fn solve_of<T: LinalgNumber>(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    _: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<Tensor>, EngineError> {
    let (a, b) = (operand(&mut operands, 0)?, operand(&mut operands, 1)?);
    let MatrixBatch { count, rows: n, columns } = MatrixBatch::of(&b);
    let _scratch = scratch::<T>(threads, &MatrixBatch::of(&b), 3 * n * n + 2 * n * columns)?;
    let (mut x, mut info) = (BatchResults::new(outputs[0])?, BatchResults::new(outputs[1])?);
    let parts = x.parts::<T::Element, T>(count).into_iter().zip(info.parts::<i32, i32>(count));
    let (lower, upper) = (
        Triangle { unit: true, ..Triangle::default() },
        Triangle { upper: true, ..Triangle::default() },
    );
    each(threads, parts.collect(), |index, (x, info)| {
        let mut packed = nth(numbers::<T>(&a), index, n * n).to_vec();
        let mut pivots = vec![0; n];
        info[0] = T::lu(&mut packed, n, n, &mut pivots) as i32;
        x.copy_from_slice(nth(numbers::<T>(&b), index, n * columns));
        for (row, &pivot) in pivots.iter().enumerate() {
            let other = pivot as usize - 1;
            if other != row {
                (0..columns).for_each(|at| x.swap(row * columns + at, other * columns + at));
            }
        }
        T::solve_triangular(&packed, lower, x, n, columns, true);
        T::solve_triangular(&packed, upper, x, n, columns, true);
    });
    Ok(vec![x.finish(), info.finish()])
}

fn triangular_of<T: LinalgNumber>(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<Tensor>, EngineError> {
    let (a, b) = (operand(&mut operands, 0)?, operand(&mut operands, 1)?);
    let MatrixBatch { count, rows: n, columns } = MatrixBatch::of(&b);
    let triangle =
        Triangle { upper: bool(attributes, 0), unit: bool(attributes, 1), ..Triangle::default() };
    let _scratch = scratch::<T>(threads, &MatrixBatch::of(&b), n * n + 2 * n * columns)?;
    let mut x = BatchResults::new(outputs[0])?;
    each(threads, x.parts::<T::Element, T>(count), |index, x| {
        x.copy_from_slice(nth(numbers::<T>(&b), index, n * columns));
        T::solve_triangular(nth(numbers::<T>(&a), index, n * n), triangle, x, n, columns, true);
    });
    Ok(vec![x.finish()])
}

fn ldl_solve_of<T: LinalgNumber>(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<Tensor>, EngineError> {
    let (packed, pivots) = (operand(&mut operands, 0)?, operand(&mut operands, 1)?);
    let b = operand(&mut operands, 2)?;
    let MatrixBatch { count, rows: n, columns } = MatrixBatch::of(&b);
    let hermitian = bool(attributes, 0);
    let _scratch = scratch::<T>(threads, &MatrixBatch::of(&b), n * n + 2 * n * columns)?;
    let mut x = BatchResults::new(outputs[0])?;
    each(threads, x.parts::<T::Element, T>(count), |index, x| {
        x.copy_from_slice(nth(numbers::<T>(&b), index, n * columns));
        let packed = nth(numbers::<T>(&packed), index, n * n);
        let pivots = nth(pivots.as_slice::<i32>(), index, n);
        T::ldl_solve(packed, n, hermitian, pivots, x);
    });
    Ok(vec![x.finish()])
}

/// Returns the permutation of rows that the exchanges of pivots produce.
///
/// # Errors
/// A pivot is not a row.
pub fn lu_order(
    _: &mut Threads,
    mut operands: Operands<Tensor>,
    _: &Attributes,
    output: Meta,
) -> Result<Tensor, EngineError> {
    let pivots = operand(&mut operands, 0)?;
    let given = pivots.shape().dims().last().copied().unwrap_or(0);
    let rows = output.shape.last().copied().unwrap_or(0);
    let count = output.shape.numel() / rows.max(1);
    let mut order = BatchResults::new(output)?;
    for (index, order) in order.parts::<i64, i64>(count).into_iter().enumerate() {
        (0..).zip(order.iter_mut()).for_each(|(row, to)| *to = row);
        for (row, &pivot) in nth(pivots.as_slice::<i32>(), index, given).iter().enumerate() {
            let other = usize::try_from(pivot).ok().and_then(|pivot| pivot.checked_sub(1));
            match other.filter(|&other| other < rows) {
                Some(other) => order.swap(row, other),
                None => {
                    let text = format!("pivot {pivot} is not a row from 1 to {rows}");
                    return Err(EngineError::Other(text));
                }
            }
        }
    }
    Ok(order.finish())
}
