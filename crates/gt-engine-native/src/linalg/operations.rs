//! The factorizations.

use bytemuck::Pod;
use gt_ir::instruction::Operands;
use gt_ir::operation::bool;
use gt_ir::{Attributes, DType, Meta};
use gt_linalg::Vectors;
use gt_worker::EngineError;
use num_complex::Complex;

use super::batch::{
    BatchResults, LinalgNumber, MatrixBatch, each, each_solved, nth, numbers, operand, operations,
    scratch,
};
use crate::tensor::Tensor;
use crate::threads::Threads;

operations! {
    cholesky by cholesky_of;
    lu by lu_of;
    qr by qr_of;
    geqrf by geqrf_of;
    svd by svd_of;
    eigh by eigh_of;
    eig by eig_of;
    ldl_factor by ldl_of;
}

fn cholesky_of<T: LinalgNumber>(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    _: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<Tensor>, EngineError> {
    let a = operand(&mut operands, 0)?;
    let MatrixBatch { count, rows: n, .. } = MatrixBatch::of(&a);
    let _scratch = scratch::<T>(threads, &MatrixBatch::of(&a), 2 * n * n)?;
    let (mut factor, mut info) = (BatchResults::new(outputs[0])?, BatchResults::new(outputs[1])?);
    let parts = factor.parts::<T::Element, T>(count).into_iter().zip(info.parts::<i32, i32>(count));
    each(threads, parts.collect(), |index, (factor, info)| {
        factor.copy_from_slice(nth(numbers::<T>(&a), index, n * n));
        info[0] = T::cholesky(factor, n).map_or_else(|order| order as i32, |()| 0);
    });
    Ok(vec![factor.finish(), info.finish()])
}

fn lu_of<T: LinalgNumber>(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    _: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<Tensor>, EngineError> {
    let a = operand(&mut operands, 0)?;
    let MatrixBatch { count, rows, columns } = MatrixBatch::of(&a);
    let _scratch = scratch::<T>(threads, &MatrixBatch::of(&a), 2 * rows * columns)?;
    let (mut packed, mut pivots) = (BatchResults::new(outputs[0])?, BatchResults::new(outputs[1])?);
    let mut info = BatchResults::new(outputs[2])?;
    let parts = packed.parts::<T::Element, T>(count).into_iter();
    let parts = parts.zip(pivots.parts::<i32, i32>(count)).zip(info.parts::<i32, i32>(count));
    each(threads, parts.collect(), |index, ((packed, pivots), info)| {
        packed.copy_from_slice(nth(numbers::<T>(&a), index, rows * columns));
        info[0] = T::lu(packed, rows, columns, pivots) as i32;
    });
    Ok(vec![packed.finish(), pivots.finish(), info.finish()])
}

fn geqrf_of<T: LinalgNumber>(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    _: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<Tensor>, EngineError> {
    let a = operand(&mut operands, 0)?;
    let MatrixBatch { count, rows, columns } = MatrixBatch::of(&a);
    let _scratch = scratch::<T>(threads, &MatrixBatch::of(&a), 2 * rows * columns)?;
    let (mut packed, mut tau) = (BatchResults::new(outputs[0])?, BatchResults::new(outputs[1])?);
    let parts = packed.parts::<T::Element, T>(count).into_iter();
    let parts = parts.zip(tau.parts::<T::Element, T>(count));
    each(threads, parts.collect(), |index, (packed, tau)| {
        packed.copy_from_slice(nth(numbers::<T>(&a), index, rows * columns));
        T::qr(packed, rows, columns, tau);
    });
    Ok(vec![packed.finish(), tau.finish()])
}

fn qr_of<T: LinalgNumber>(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<Tensor>, EngineError> {
    let a = operand(&mut operands, 0)?;
    let MatrixBatch { count, rows, columns } = MatrixBatch::of(&a);
    let least = rows.min(columns);
    let width = if bool(attributes, 0) { rows } else { least };
    let _scratch = scratch::<T>(threads, &MatrixBatch::of(&a), 8 * rows * columns.max(width))?;
    let (mut q, mut r) = (BatchResults::new(outputs[0])?, BatchResults::new(outputs[1])?);
    let parts = q.parts::<T::Element, T>(count).into_iter().zip(r.parts::<T::Element, T>(count));
    each(threads, parts.collect(), |index, (q, r)| {
        let mut packed = nth(numbers::<T>(&a), index, rows * columns).to_vec();
        let mut tau = vec![T::ZERO; least];
        T::qr(&mut packed, rows, columns, &mut tau);
        // The reflectors are in the first columns only.
        let vectors: Vec<T> = packed
            .chunks(columns.max(1))
            .flat_map(|row| &row[..least.min(row.len())])
            .copied()
            .collect();
        T::householder_product(&vectors, rows, least, &tau, q, width);
        for (row, (to, from)) in
            r.chunks_mut(columns.max(1)).zip(packed.chunks(columns.max(1))).enumerate()
        {
            let start = row.min(columns);
            to[start..].copy_from_slice(&from[start..]);
        }
    });
    Ok(vec![q.finish(), r.finish()])
}

fn svd_of<T: LinalgNumber>(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<Tensor>, EngineError> {
    let a = operand(&mut operands, 0)?;
    let MatrixBatch { count, rows, columns } = MatrixBatch::of(&a);
    let full = bool(attributes, 0);
    let (least, most) = (rows.min(columns), rows.max(columns));
    let bases = if full { most * most } else { least * least };
    let needs = 8 * rows * columns + 4 * bases;
    let _scratch = scratch::<T>(threads, &MatrixBatch::of(&a), needs)?;
    let (mut u, mut values) = (BatchResults::new(outputs[0])?, BatchResults::new(outputs[1])?);
    let mut vh = BatchResults::new(outputs[2])?;
    let parts = u.parts::<T::Element, T>(count).into_iter();
    let parts = parts.zip(values.parts::<T::RealElement, T::Real>(count));
    let parts = parts.zip(vh.parts::<T::Element, T>(count));
    each_solved("svd", threads, parts.collect(), |index, ((u, values), vh)| {
        let a = nth(numbers::<T>(&a), index, rows * columns);
        T::svd(a, rows, columns, values, Some(Vectors { u, vh, full }))
    })?;
    Ok(vec![u.finish(), values.finish(), vh.finish()])
}

fn eigh_of<T: LinalgNumber>(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    _: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<Tensor>, EngineError> {
    let a = operand(&mut operands, 0)?;
    let MatrixBatch { count, rows: n, .. } = MatrixBatch::of(&a);
    let _scratch = scratch::<T>(threads, &MatrixBatch::of(&a), 6 * n * n)?;
    let (mut values, mut vectors) =
        (BatchResults::new(outputs[0])?, BatchResults::new(outputs[1])?);
    let parts = values.parts::<T::RealElement, T::Real>(count).into_iter();
    let parts = parts.zip(vectors.parts::<T::Element, T>(count));
    each_solved("eigh", threads, parts.collect(), |index, (values, vectors)| {
        T::eigh(nth(numbers::<T>(&a), index, n * n), n, false, values, Some(vectors))
    })?;
    Ok(vec![values.finish(), vectors.finish()])
}

fn eig_of<T: LinalgNumber>(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    _: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<Tensor>, EngineError>
where
    Complex<<T as gt_linalg::MatrixElement>::Real>: Pod,
{
    let a = operand(&mut operands, 0)?;
    let MatrixBatch { count, rows: n, .. } = MatrixBatch::of(&a);
    let _scratch = scratch::<T>(threads, &MatrixBatch::of(&a), 16 * n * n)?;
    let (mut values, mut vectors) =
        (BatchResults::new(outputs[0])?, BatchResults::new(outputs[1])?);
    let parts = values.parts::<T::ComplexElement, Complex<T::Real>>(count).into_iter();
    let parts = parts.zip(vectors.parts::<T::ComplexElement, Complex<T::Real>>(count));
    each_solved("eig", threads, parts.collect(), |index, (values, vectors)| {
        T::eig(nth(numbers::<T>(&a), index, n * n), n, values, Some(vectors))
    })?;
    Ok(vec![values.finish(), vectors.finish()])
}

fn ldl_of<T: LinalgNumber>(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<Tensor>, EngineError> {
    let a = operand(&mut operands, 0)?;
    let MatrixBatch { count, rows: n, .. } = MatrixBatch::of(&a);
    let _scratch = scratch::<T>(threads, &MatrixBatch::of(&a), 2 * n * n)?;
    let hermitian = bool(attributes, 0);
    let (mut packed, mut pivots) = (BatchResults::new(outputs[0])?, BatchResults::new(outputs[1])?);
    let mut info = BatchResults::new(outputs[2])?;
    let parts = packed.parts::<T::Element, T>(count).into_iter();
    let parts = parts.zip(pivots.parts::<i32, i32>(count)).zip(info.parts::<i32, i32>(count));
    each(threads, parts.collect(), |index, ((packed, pivots), info)| {
        packed.copy_from_slice(nth(numbers::<T>(&a), index, n * n));
        info[0] = T::ldl(packed, n, hermitian, pivots) as i32;
    });
    Ok(vec![packed.finish(), pivots.finish(), info.finish()])
}
