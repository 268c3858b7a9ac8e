//! Factorizations of matrices, the last two axes of a tensor, and systems of equations. The axes
//! before them are batches.
//!
//! - Here: what is taken and given. [`gradients`]: the rules.

mod gradients;

use super::sample::{sample, tensor};
use crate::batching::Batching;
use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::instruction::Attribute;
use crate::operation::Defaults;
use crate::operation::Gradient::Each;
use crate::operation::facts::says::*;
use crate::operation::{
    Call, ComplexRule, FIRST, Family, Meta, NO_GRADIENT, OUTPUT, Operation, Sample, takes,
};
use crate::shape::Shape;
use crate::sharding::{Rule, shape_of};
use smallvec::smallvec;

const DTYPES: [DType; 4] = [DType::F32, DType::F64, DType::C64, DType::C128];

const FACTORIZATION: Defaults = Defaults(Operation {
    family: Family::Matmul,
    parameters: &[takes::tensor("input")],
    infer: square,
    complex: ComplexRule::OwnRule,
    saves: OUTPUT,
    sharding: batches,
    samples: || squares(&[]),
    batching: Batching::Leading,
    ..Operation::base().0
});

pub static CHOLESKY: Operation = Operation {
    id: 200,
    name: "_linalg_cholesky",
    doc: "the lower triangle L of A = L L^H, of which the lower triangle is read, and 0 or the order of the first minor that is not positive",
    further: Some(|call, meta| smallvec![info(call, meta)]),
    gradient: Each(&[gradients::cholesky]),
    samples: numbers,
    ..FACTORIZATION.with(facts(Unchanged, Estimated, Computed))
};

pub static LU: Operation = Operation {
    id: 201,
    name: "_linalg_lu",
    doc: "L without its ones and U of P A = L U in one matrix, the rows that were exchanged with each, from 1, and 0 or the first pivot that is 0",
    infer: matrix,
    further: Some(|call, meta| {
        let (_, rows, columns) = split(meta.shape);
        smallvec![per_row(meta, DType::I32, rows.min(columns)), info(call, meta)]
    }),
    gradient: Each(&[gradients::lu]),
    samples: || [squares(&[]), oblong(&[])].concat(),
    ..FACTORIZATION.with(facts(Unchanged, Estimated, Computed))
};

pub static LU_ORDER: Operation = Operation {
    id: 202,
    name: "_linalg_lu_order",
    doc: "the order that exchanges of rows, numbered from 1, bring the rows into",
    parameters: &[takes::tensor("pivots"), takes::int("rows")],
    infer: |call| {
        let meta = call.tensor(0)?;
        let rows = call.int(0);
        let fits = meta.dtype == DType::I32
            && meta
                .shape
                .last()
                .is_some_and(|&count| i64::try_from(count).is_ok_and(|count| count <= rows));
        if !fits {
            return Err(Error::ShapeMismatch {
                operation: call.operation,
                given: meta.shape,
                expected: format!(
                    "int32 numbers, no more than the {rows} rows along the last axis"
                ),
            });
        }
        Ok(Meta::new(DType::I64, meta.shape.with(meta.shape.rank() - 1, rows as usize)))
    },
    saves: 0,
    sharding: |call, output| leading(call, output, 1),
    samples: || {
        let pivots = tensor(DType::I32, &[2, 3], 3.0, 4.0);
        vec![sample(&[pivots], &[Attribute::Int(3)]), sample(&[pivots], &[Attribute::Int(5)])]
    },
    ..FACTORIZATION.with(facts(Unchanged, Estimated, Computed))
};

pub static QR: Operation = Operation {
    id: 203,
    name: "_linalg_qr",
    doc: "Q with orthonormal columns, as many as rows if complete, and the upper triangle R of A = Q R",
    parameters: &[takes::tensor("input"), takes::flag("complete")],
    infer: |call| {
        let meta = matrix(call)?;
        let (_, rows, columns) = split(meta.shape);
        let count = if call.bool(0) { rows } else { rows.min(columns) };
        Ok(of(meta, meta.dtype, &[rows, count]))
    },
    further: Some(|call, first| {
        let input = call.operands[0].tensor().copied().unwrap_or(first);
        let (_, _, columns) = split(input.shape);
        let (_, _, count) = split(first.shape);
        smallvec![of(input, input.dtype, &[count, columns])]
    }),
    gradient: Each(&[gradients::qr]),
    samples: || {
        let flags = [Attribute::Bool(false)];
        [squares(&flags), oblong(&flags), squares(&[Attribute::Bool(true)])].concat()
    },
    ..FACTORIZATION.with(facts(Unchanged, Estimated, Computed))
};

pub static GEQRF: Operation = Operation {
    id: 204,
    name: "_linalg_geqrf",
    doc: "R, with the vectors of the reflections whose product is Q below it, and their factors, as LAPACK's geqrf",
    infer: matrix,
    further: Some(|_, meta| {
        let (_, rows, columns) = split(meta.shape);
        smallvec![per_row(meta, meta.dtype, rows.min(columns))]
    }),
    gradient: Each(&[NO_GRADIENT]),
    underived: FIRST,
    samples: || [squares(&[]), oblong(&[])].concat(),
    ..FACTORIZATION.with(facts(Unchanged, Estimated, Computed))
};

pub static SVD: Operation = Operation {
    id: 205,
    name: "_linalg_svd",
    doc: "U, the singular values in descending order and V^H of A = U S V^H; U and V^H are square if full",
    parameters: &[takes::tensor("input"), takes::flag("full_matrices")],
    infer: |call| {
        let meta = matrix(call)?;
        let (_, rows, columns) = split(meta.shape);
        let count = if call.bool(0) { rows } else { rows.min(columns) };
        Ok(of(meta, meta.dtype, &[rows, count]))
    },
    further: Some(|call, first| {
        let input = call.operands[0].tensor().copied().unwrap_or(first);
        let (_, rows, columns) = split(input.shape);
        let count = rows.min(columns);
        let right = if call.bool(0) { columns } else { count };
        smallvec![
            per_row(input, input.dtype.to_real(), count),
            of(input, input.dtype, &[right, columns])
        ]
    }),
    gradient: Each(&[gradients::svd]),
    samples: || {
        let flags = [Attribute::Bool(false)];
        [squares(&flags), oblong(&flags), squares(&[Attribute::Bool(true)])].concat()
    },
    ..FACTORIZATION.with(facts(Unchanged, Arbitrary(&[0, 2]), Computed))
};

pub static EIGH: Operation = Operation {
    id: 206,
    name: "_linalg_eigh",
    doc: "the eigenvalues of a Hermitian matrix, of which the lower triangle is read, in ascending order, and its eigenvectors",
    infer: |call| {
        let meta = square(call)?;
        let (_, rows, _) = split(meta.shape);
        Ok(per_row(meta, meta.dtype.to_real(), rows))
    },
    further: Some(|call, first| smallvec![call.operands[0].tensor().copied().unwrap_or(first)]),
    gradient: Each(&[gradients::eigh]),
    samples: numbers,
    ..FACTORIZATION.with(facts(Unchanged, Arbitrary(&[1]), Computed))
};

pub static EIG: Operation = Operation {
    id: 207,
    name: "_linalg_eig",
    doc: "the eigenvalues of a matrix and its eigenvectors, which are complex",
    infer: |call| {
        let meta = square(call)?;
        let (_, rows, _) = split(meta.shape);
        Ok(per_row(meta, meta.dtype.to_complex(), rows))
    },
    further: Some(|call, first| {
        let input = call.operands[0].tensor().copied().unwrap_or(first);
        smallvec![Meta::new(input.dtype.to_complex(), input.shape)]
    }),
    gradient: Each(&[gradients::eig]),
    ..FACTORIZATION.with(facts(Unchanged, Arbitrary(&[0, 1]), Computed))
};

pub static SOLVE: Operation = Operation {
    id: 208,
    name: "_linalg_solve",
    doc: "X of A X = B, and 0 or the first pivot of A that is 0",
    parameters: &[takes::tensor("A"), takes::tensor("B")],
    infer: system,
    further: Some(|call, meta| smallvec![info(call, meta)]),
    gradient: Each(&[gradients::solve_left, gradients::solve_right]),
    saves: FIRST | OUTPUT,
    samples: || systems(&[]),
    ..FACTORIZATION.with(facts(Unchanged, Estimated, Computed))
};

pub static SOLVE_TRIANGULAR: Operation = Operation {
    id: 209,
    name: "_linalg_solve_triangular",
    doc: "X of A X = B with a triangle A, upper or lower, whose diagonal counts as ones if unitriangular",
    parameters: &[
        takes::tensor("A"),
        takes::tensor("B"),
        takes::flag("upper"),
        takes::flag("unitriangular"),
    ],
    infer: system,
    gradient: Each(&[gradients::triangular_left, gradients::triangular_right]),
    saves: FIRST | OUTPUT,
    samples: || systems(&[Attribute::Bool(true), Attribute::Bool(false)]),
    ..FACTORIZATION.with(facts(Unchanged, Estimated, Computed))
};

pub static LDL_FACTOR: Operation = Operation {
    id: 210,
    name: "_linalg_ldl_factor",
    doc: "L and D of A = L D L^T, or L D L^H if hermitian, in one matrix, the pivots, and 0 or the first block of D that is 0, as LAPACK's sytrf and hetrf",
    parameters: &[takes::tensor("input"), takes::flag("hermitian")],
    further: Some(|call, meta| {
        let (_, rows, _) = split(meta.shape);
        smallvec![per_row(meta, DType::I32, rows), info(call, meta)]
    }),
    gradient: Each(&[NO_GRADIENT]),
    underived: FIRST,
    samples: || squares(&[Attribute::Bool(false)]),
    ..FACTORIZATION.with(facts(Unchanged, Estimated, Computed))
};

pub static LDL_SOLVE: Operation = Operation {
    id: 211,
    name: "_linalg_ldl_solve",
    doc: "X of A X = B, of a matrix that was factored by _linalg_ldl_factor",
    parameters: &[
        takes::tensor("LD"),
        takes::tensor("pivots"),
        takes::tensor("B"),
        takes::flag("hermitian"),
    ],
    infer: |call| {
        let (factors, pivots, right) = (matrix(call)?, call.tensor(1)?, call.tensor(2)?);
        let (_, rows, columns) = split(factors.shape);
        let fits = rows == columns
            && pivots == per_row(factors, DType::I32, rows)
            && right.dtype == factors.dtype
            && right.shape.rank() == factors.shape.rank()
            && right.shape[..right.shape.rank() - 1] == factors.shape[..factors.shape.rank() - 1];
        if fits {
            Ok(right)
        } else {
            Err(unfit(call, right.shape, "as many rows as the factors, and pivots of them"))
        }
    },
    gradient: Each(&[NO_GRADIENT, NO_GRADIENT, NO_GRADIENT]),
    underived: FIRST | 4,
    samples: || {
        let ones = tensor(DType::F32, &[2, 3, 3], 1.0, 2.0);
        let pivots = tensor(DType::I32, &[2, 3], 3.0, 4.0);
        let right = tensor(DType::F32, &[2, 3, 4], -1.0, 1.0);
        vec![sample(&[ones, pivots, right], &[Attribute::Bool(false)])]
    },
    ..FACTORIZATION.with(facts(Unchanged, Estimated, Computed))
};

/// Batch axes, rows and columns.
fn split(shape: Shape) -> (Shape, usize, usize) {
    let (batch, matrix) = shape.split_at(shape.rank() - 2);
    (Shape::new(batch).expect("a part of a shape"), matrix[0], matrix[1])
}

/// Matrices, or rows, of another size and dtype in the same batch.
fn of(meta: Meta, dtype: DType, inner: &[usize]) -> Meta {
    let (batch, _, _) = split(meta.shape);
    let dims = [batch.dims(), inner].concat();
    Meta::new(dtype, Shape::new(&dims).expect("no more axes than before"))
}

fn per_row(meta: Meta, dtype: DType, count: usize) -> Meta {
    of(meta, dtype, &[count])
}

/// A number for each matrix of the first operand.
fn info(call: &Call, meta: Meta) -> Meta {
    of(call.operands[0].tensor().copied().unwrap_or(meta), DType::I32, &[])
}

#[cold]
fn unfit(call: &Call, given: Shape, expected: &str) -> Error {
    let expected = expected.to_string();
    Error::ShapeMismatch { operation: call.operation, given, expected }
}

/// The first operand: matrices of numbers that have quotients.
fn matrix(call: &Call) -> Result<Meta> {
    let meta = call.tensor(0)?;
    if !DTYPES.contains(&meta.dtype) {
        let expected = "float32, float64, complex64 or complex128";
        return Err(Error::DTypeMismatch {
            operation: call.operation,
            given: meta.dtype,
            expected,
        });
    }
    if meta.shape.rank() < 2 {
        return Err(unfit(call, meta.shape, "two axes or more, the last two of them matrices"));
    }
    Ok(meta)
}

fn square(call: &Call) -> Result<Meta> {
    let meta = matrix(call)?;
    let (_, rows, columns) = split(meta.shape);
    if rows == columns { Ok(meta) } else { Err(unfit(call, meta.shape, "square matrices")) }
}

/// A square matrix and a right side of as many rows in the same batch.
fn system(call: &Call) -> Result<Meta> {
    let (left, right) = (square(call)?, call.tensor(1)?);
    if left.dtype != right.dtype {
        let expected = "the dtype of A for B, too";
        return Err(Error::DTypeMismatch {
            operation: call.operation,
            given: right.dtype,
            expected,
        });
    }
    let rank = left.shape.rank();
    if right.shape.rank() != rank || right.shape[..rank - 1] != left.shape[..rank - 1] {
        return Err(unfit(call, right.shape, "the batch axes and the rows of A for B, too"));
    }
    Ok(right)
}

/// The axes before those of the matrices may be cut.
fn batches(call: &Call, output: &Meta) -> Rule {
    leading(call, output, 2)
}

/// All axes of the first operand but the last few may be cut, of all others, too.
fn leading(call: &Call, output: &Meta, inner: usize) -> Rule {
    let mut rule = Rule::whole(call, output);
    let shape = shape_of(call, 0);
    for axis in (0..shape.rank() - inner).filter(|&axis| shape[axis] > 1) {
        let shared: Vec<(usize, usize)> =
            (0..call.operands.len()).map(|operand| (operand, axis)).collect();
        rule.share(&shared, Some(axis));
    }
    rule
}

fn squares(attributes: &[Attribute]) -> Vec<Sample> {
    let of = |dtype, dims: &[usize]| sample(&[tensor(dtype, dims, 0.5, 2.0)], attributes);
    DTYPES.iter().flat_map(|&dtype| [of(dtype, &[3, 3]), of(dtype, &[2, 2, 2])]).collect()
}

/// Matrices of one number: others that are drawn are not Hermitian.
fn numbers() -> Vec<Sample> {
    let of = |dtype, dims: &[usize]| sample(&[tensor(dtype, dims, 0.5, 2.0)], &[]);
    [DType::F32, DType::F64]
        .iter()
        .flat_map(|&dtype| [of(dtype, &[1, 1]), of(dtype, &[2, 1, 1])])
        .collect()
}

fn oblong(attributes: &[Attribute]) -> Vec<Sample> {
    let of = |dtype, dims: &[usize]| sample(&[tensor(dtype, dims, 0.5, 2.0)], attributes);
    DTYPES.iter().flat_map(|&dtype| [of(dtype, &[4, 2]), of(dtype, &[2, 2, 3])]).collect()
}

fn systems(attributes: &[Attribute]) -> Vec<Sample> {
    let of = |dtype, left: &[usize], right: &[usize]| {
        sample(&[tensor(dtype, left, 0.5, 2.0), tensor(dtype, right, -1.0, 1.0)], attributes)
    };
    DTYPES
        .iter()
        .flat_map(|&dtype| [of(dtype, &[3, 3], &[3, 2]), of(dtype, &[2, 2, 2], &[2, 2, 1])])
        .collect()
}
