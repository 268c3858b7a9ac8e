//! The operations on matrices: batches of them, a thread for each.

use bytemuck::Pod;
use faer::traits::ComplexField;
use faer::traits::ext::ComplexFieldExt;
use gt_ir::instruction::Operands;
use gt_ir::operation::bool;
use gt_ir::{Attributes, DType, Meta};
use gt_worker::EngineError;
use num_complex::Complex;

use super::{Scalar, Triangle, Unsolved, Vectors};
use crate::element::{self, Element};
use crate::table::tensor;
use crate::tensor::Tensor;
use crate::threads::Threads;
use crate::uninit::Uninit;

/// A number of matrices, and the element type that tensors hold it as.
trait Number: Scalar<Real: Pod> + Pod {
    type Element: Element;
    type RealElement: Element;
    type ComplexElement: Element;
}

macro_rules! numbers {
    ($($number:ty: $element:ty, $real:ty);*) => { $(
        impl Number for $number {
            type Element = $element;
            type RealElement = $real;
            type ComplexElement = element::Complex<$real>;
        }
    )* };
}

numbers! {
    f32: f32, f32;
    f64: f64, f64;
    Complex<f32>: element::Complex<f32>, f32;
    Complex<f64>: element::Complex<f64>, f64
}

/// Makes an operation of a function of the numbers' type.
macro_rules! operations {
    ($($name:ident by $function:ident;)*) => { $(
        pub fn $name(
            threads: &mut Threads,
            operands: Operands<Tensor>,
            attributes: &Attributes,
            outputs: &[Meta],
        ) -> Result<Vec<Tensor>, EngineError> {
            let dtype = operands[0].tensor().map_or(DType::F32, Tensor::dtype);
            match dtype {
                DType::F64 => $function::<f64>(threads, operands, attributes, outputs),
                DType::C64 => $function::<Complex<f32>>(threads, operands, attributes, outputs),
                DType::C128 => $function::<Complex<f64>>(threads, operands, attributes, outputs),
                _ => $function::<f32>(threads, operands, attributes, outputs),
            }
        }
    )* };
}

operations! {
    cholesky by cholesky_of;
    lu by lu_of;
    qr by qr_of;
    geqrf by geqrf_of;
    svd by svd_of;
    eigh by eigh_of;
    eig by eig_of;
    solve by solve_of;
    ldl_factor by ldl_of;
    all_triangular by triangular_of;
    all_ldl_solved by ldl_solve_of;
}

/// Makes an operation with one result of one that gives a list.
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

/// Matrices of a batch.
struct Batch {
    count: usize,
    rows: usize,
    columns: usize,
}

impl Batch {
    fn of(tensor: &Tensor) -> Batch {
        let dims = tensor.shape().dims();
        let (batch, matrix) = dims.split_at(dims.len() - 2);
        Batch { count: batch.iter().product(), rows: matrix[0], columns: matrix[1] }
    }
}

/// An operand, row after row.
fn operand(operands: &mut Operands<Tensor>, index: usize) -> Result<Tensor, EngineError> {
    tensor(operands, index)?.contiguous()
}

/// The elements of a tensor as numbers of matrices.
fn numbers<T: Number>(tensor: &Tensor) -> &[T] {
    bytemuck::cast_slice(tensor.as_slice::<T::Element>())
}

/// A result filled with zeros.
struct Made(Uninit);

impl Made {
    fn new(meta: Meta) -> Result<Made, EngineError> {
        Ok(Made(Uninit::new(meta)?))
    }

    /// The parts for each of `count` matrices, filled with zeros.
    fn parts<E: Element, T: Pod>(&mut self, count: usize) -> Vec<&mut [T]> {
        let mut rest: &mut [T] = bytemuck::cast_slice_mut(self.0.zeroed::<E>());
        let each = rest.len() / count.max(1);
        let next = |_| rest.split_off_mut(..each).expect("a part for each matrix");
        (0..count).map(next).collect()
    }

    /// The tensor, whose parts have been had.
    fn finish(self) -> Tensor {
        // SAFETY: `parts` is called for every result, and fills it.
        unsafe { self.0.finish() }
    }
}

/// The part of a batch's numbers that is matrix `index`, of so many numbers each.
fn nth<T>(all: &[T], index: usize, each: usize) -> &[T] {
    &all[index * each..][..each]
}

/// Calls `work` with the parts for each matrix, on the threads that there are.
fn each<P: Send>(threads: &mut Threads, parts: Vec<P>, work: impl Fn(usize, &mut P) + Sync) {
    let mut parts = parts;
    threads.for_each_part(&mut parts, 1, |index, part| work(index, &mut part[0]));
}

/// As [`each`], of what may have no result.
fn each_solved<P: Send>(
    name: &str,
    threads: &mut Threads,
    parts: Vec<P>,
    work: impl Fn(usize, &mut P) -> Result<(), Unsolved> + Sync,
) -> Result<(), EngineError> {
    let mut parts: Vec<_> = parts.into_iter().map(|part| (part, Ok(()))).collect();
    threads.for_each_part(&mut parts, 1, |index, part| {
        let (part, done) = &mut part[0];
        *done = work(index, part);
    });
    let failed = parts.iter().enumerate().find_map(|(index, (_, done))| Some((index, done.err()?)));
    let Some((index, why)) = failed else { return Ok(()) };
    let why = match why {
        Unsolved::NotFinite => "has values that are infinite or not a number",
        Unsolved::NotConverged => "has none that the algorithm converges to",
    };
    Err(EngineError::Other(format!("{name}: matrix {index} of the batch {why}")))
}

fn cholesky_of<T: Number>(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    _: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<Tensor>, EngineError> {
    let a = operand(&mut operands, 0)?;
    let Batch { count, rows: n, .. } = Batch::of(&a);
    let (mut factor, mut info) = (Made::new(outputs[0])?, Made::new(outputs[1])?);
    let parts = factor.parts::<T::Element, T>(count).into_iter().zip(info.parts::<i32, i32>(count));
    each(threads, parts.collect(), |index, (factor, info)| {
        factor.copy_from_slice(nth(numbers::<T>(&a), index, n * n));
        info[0] = super::cholesky(factor, n).map_or_else(|order| order as i32, |()| 0);
    });
    Ok(vec![factor.finish(), info.finish()])
}

fn lu_of<T: Number>(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    _: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<Tensor>, EngineError> {
    let a = operand(&mut operands, 0)?;
    let Batch { count, rows, columns } = Batch::of(&a);
    let (mut packed, mut pivots) = (Made::new(outputs[0])?, Made::new(outputs[1])?);
    let mut info = Made::new(outputs[2])?;
    let parts = packed.parts::<T::Element, T>(count).into_iter();
    let parts = parts.zip(pivots.parts::<i32, i32>(count)).zip(info.parts::<i32, i32>(count));
    each(threads, parts.collect(), |index, ((packed, pivots), info)| {
        packed.copy_from_slice(nth(numbers::<T>(&a), index, rows * columns));
        info[0] = super::lu(packed, rows, columns, pivots) as i32;
    });
    Ok(vec![packed.finish(), pivots.finish(), info.finish()])
}

fn geqrf_of<T: Number>(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    _: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<Tensor>, EngineError> {
    let a = operand(&mut operands, 0)?;
    let Batch { count, rows, columns } = Batch::of(&a);
    let (mut packed, mut tau) = (Made::new(outputs[0])?, Made::new(outputs[1])?);
    let parts = packed.parts::<T::Element, T>(count).into_iter();
    let parts = parts.zip(tau.parts::<T::Element, T>(count));
    each(threads, parts.collect(), |index, (packed, tau)| {
        packed.copy_from_slice(nth(numbers::<T>(&a), index, rows * columns));
        super::qr(packed, rows, columns, tau);
    });
    Ok(vec![packed.finish(), tau.finish()])
}

fn qr_of<T: Number>(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<Tensor>, EngineError> {
    let a = operand(&mut operands, 0)?;
    let Batch { count, rows, columns } = Batch::of(&a);
    let least = rows.min(columns);
    let width = if bool(attributes, 0) { rows } else { least };
    let (mut q, mut r) = (Made::new(outputs[0])?, Made::new(outputs[1])?);
    let parts = q.parts::<T::Element, T>(count).into_iter().zip(r.parts::<T::Element, T>(count));
    each(threads, parts.collect(), |index, (q, r)| {
        let mut packed = nth(numbers::<T>(&a), index, rows * columns).to_vec();
        let mut tau = vec![T::zero(); least];
        super::qr(&mut packed, rows, columns, &mut tau);
        // Reflections are in the first columns alone.
        let vectors: Vec<T> = packed
            .chunks(columns.max(1))
            .flat_map(|row| &row[..least.min(row.len())])
            .copied()
            .collect();
        super::householder_product(&vectors, rows, least, &tau, q, width);
        for (row, (to, from)) in
            r.chunks_mut(columns.max(1)).zip(packed.chunks(columns.max(1))).enumerate()
        {
            let start = row.min(columns);
            to[start..].copy_from_slice(&from[start..]);
        }
    });
    Ok(vec![q.finish(), r.finish()])
}

fn svd_of<T: Number>(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<Tensor>, EngineError> {
    let a = operand(&mut operands, 0)?;
    let Batch { count, rows, columns } = Batch::of(&a);
    let full = bool(attributes, 0);
    let (mut u, mut values) = (Made::new(outputs[0])?, Made::new(outputs[1])?);
    let mut vh = Made::new(outputs[2])?;
    let parts = u.parts::<T::Element, T>(count).into_iter();
    let parts = parts.zip(values.parts::<T::RealElement, T::Real>(count));
    let parts = parts.zip(vh.parts::<T::Element, T>(count));
    each_solved("svd", threads, parts.collect(), |index, ((u, values), vh)| {
        let a = nth(numbers::<T>(&a), index, rows * columns);
        super::svd(a, rows, columns, values, Some(Vectors { u, vh, full }))
    })?;
    Ok(vec![u.finish(), values.finish(), vh.finish()])
}

fn eigh_of<T: Number>(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    _: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<Tensor>, EngineError> {
    let a = operand(&mut operands, 0)?;
    let Batch { count, rows: n, .. } = Batch::of(&a);
    let (mut values, mut vectors) = (Made::new(outputs[0])?, Made::new(outputs[1])?);
    let parts = values.parts::<T::RealElement, T::Real>(count).into_iter();
    let parts = parts.zip(vectors.parts::<T::Element, T>(count));
    each_solved("eigh", threads, parts.collect(), |index, (values, vectors)| {
        super::eigh(nth(numbers::<T>(&a), index, n * n), n, false, values, Some(vectors))
    })?;
    Ok(vec![values.finish(), vectors.finish()])
}

fn eig_of<T: Number>(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    _: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<Tensor>, EngineError>
where
    Complex<<T as ComplexField>::Real>: Pod,
{
    let a = operand(&mut operands, 0)?;
    let Batch { count, rows: n, .. } = Batch::of(&a);
    let (mut values, mut vectors) = (Made::new(outputs[0])?, Made::new(outputs[1])?);
    let parts = values.parts::<T::ComplexElement, Complex<T::Real>>(count).into_iter();
    let parts = parts.zip(vectors.parts::<T::ComplexElement, Complex<T::Real>>(count));
    each_solved("eig", threads, parts.collect(), |index, (values, vectors)| {
        super::eig(nth(numbers::<T>(&a), index, n * n), n, values, Some(vectors))
    })?;
    Ok(vec![values.finish(), vectors.finish()])
}

fn solve_of<T: Number>(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    _: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<Tensor>, EngineError> {
    let (a, b) = (operand(&mut operands, 0)?, operand(&mut operands, 1)?);
    let Batch { count, rows: n, columns } = Batch::of(&b);
    let (mut x, mut info) = (Made::new(outputs[0])?, Made::new(outputs[1])?);
    let parts = x.parts::<T::Element, T>(count).into_iter().zip(info.parts::<i32, i32>(count));
    let (lower, upper) = (
        Triangle { unit: true, ..Triangle::default() },
        Triangle { upper: true, ..Triangle::default() },
    );
    each(threads, parts.collect(), |index, (x, info)| {
        let mut packed = nth(numbers::<T>(&a), index, n * n).to_vec();
        let mut pivots = vec![0; n];
        info[0] = super::lu(&mut packed, n, n, &mut pivots) as i32;
        x.copy_from_slice(nth(numbers::<T>(&b), index, n * columns));
        for (row, &pivot) in pivots.iter().enumerate() {
            let other = pivot as usize - 1;
            if other != row {
                (0..columns).for_each(|at| x.swap(row * columns + at, other * columns + at));
            }
        }
        super::solve_triangular(&packed, lower, x, n, columns, true);
        super::solve_triangular(&packed, upper, x, n, columns, true);
    });
    Ok(vec![x.finish(), info.finish()])
}

fn triangular_of<T: Number>(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<Tensor>, EngineError> {
    let (a, b) = (operand(&mut operands, 0)?, operand(&mut operands, 1)?);
    let Batch { count, rows: n, columns } = Batch::of(&b);
    let triangle =
        Triangle { upper: bool(attributes, 0), unit: bool(attributes, 1), ..Triangle::default() };
    let mut x = Made::new(outputs[0])?;
    each(threads, x.parts::<T::Element, T>(count), |index, x| {
        x.copy_from_slice(nth(numbers::<T>(&b), index, n * columns));
        super::solve_triangular(nth(numbers::<T>(&a), index, n * n), triangle, x, n, columns, true);
    });
    Ok(vec![x.finish()])
}

fn ldl_of<T: Number>(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<Tensor>, EngineError> {
    let a = operand(&mut operands, 0)?;
    let Batch { count, rows: n, .. } = Batch::of(&a);
    let hermitian = bool(attributes, 0);
    let (mut packed, mut pivots) = (Made::new(outputs[0])?, Made::new(outputs[1])?);
    let mut info = Made::new(outputs[2])?;
    let parts = packed.parts::<T::Element, T>(count).into_iter();
    let parts = parts.zip(pivots.parts::<i32, i32>(count)).zip(info.parts::<i32, i32>(count));
    each(threads, parts.collect(), |index, ((packed, pivots), info)| {
        packed.copy_from_slice(nth(numbers::<T>(&a), index, n * n));
        info[0] = super::ldl(packed, n, hermitian, pivots) as i32;
    });
    Ok(vec![packed.finish(), pivots.finish(), info.finish()])
}

fn ldl_solve_of<T: Number>(
    threads: &mut Threads,
    mut operands: Operands<Tensor>,
    attributes: &Attributes,
    outputs: &[Meta],
) -> Result<Vec<Tensor>, EngineError> {
    let (packed, pivots) = (operand(&mut operands, 0)?, operand(&mut operands, 1)?);
    let b = operand(&mut operands, 2)?;
    let Batch { count, rows: n, columns } = Batch::of(&b);
    let hermitian = bool(attributes, 0);
    let mut x = Made::new(outputs[0])?;
    each(threads, x.parts::<T::Element, T>(count), |index, x| {
        x.copy_from_slice(nth(numbers::<T>(&b), index, n * columns));
        let packed = nth(numbers::<T>(&packed), index, n * n);
        let pivots = nth(pivots.as_slice::<i32>(), index, n);
        super::ldl_solve(packed, n, hermitian, pivots, x);
    });
    Ok(vec![x.finish()])
}

/// The order that exchanges of rows bring them into.
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
    let mut order = Made::new(output)?;
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
