//! The gradients of factorizations.
//!
//! M. Giles, "An extended collection of matrix derivative results", 2008, and for complex matrices
//! S. Liao, "Differentiable programming tensor networks", 2019. A g before a name is a gradient.

use smallvec::smallvec;

use super::{LU_ORDER, SOLVE, SOLVE_TRIANGULAR, split};
use crate::instruction::Attribute;
use crate::operation::{Graph, Meta, Saved, Var};
use crate::ops::shape::CAT;
use crate::shape::Shape;

/// The conjugate transpose.
fn adjoint(g: &mut dyn Graph, x: Var) -> Var {
    let turned = g.transpose(x);
    if g.meta(turned).dtype.is_complex() { g.conj(turned) } else { turned }
}

/// a^H b
fn inner(g: &mut dyn Graph, a: Var, b: Var) -> Var {
    let a = adjoint(g, a);
    g.matmul(a, b)
}

/// a b^H
fn outer(g: &mut dyn Graph, a: Var, b: Var) -> Var {
    let b = adjoint(g, b);
    g.matmul(a, b)
}

/// X of A X = B.
fn solve(g: &mut dyn Graph, a: Var, b: Var) -> Var {
    g.emit(&SOLVE, &[a.into(), b.into()], smallvec![])
}

/// X of A X = B with a triangle A.
fn triangular(g: &mut dyn Graph, a: Var, b: Var, upper: bool, unit: bool) -> Var {
    let attributes = smallvec![Attribute::Bool(upper), Attribute::Bool(unit)];
    g.emit(&SOLVE_TRIANGULAR, &[a.into(), b.into()], attributes)
}

/// X of X A = B with a triangle A, by A^H X^H = B^H.
fn triangular_beside(g: &mut dyn Graph, a: Var, b: Var, upper: bool, unit: bool) -> Var {
    let (a, b) = (adjoint(g, a), adjoint(g, b));
    let x = triangular(g, a, b, !upper, unit);
    adjoint(g, x)
}

/// The diagonal, as a matrix with zeros elsewhere.
fn diagonal(g: &mut dyn Graph, x: Var) -> Var {
    let lower = g.tril(x, 0);
    g.triu(lower, 0)
}

/// Rows as columns: [..., n] as [..., n, 1].
fn as_column(g: &mut dyn Graph, x: Var) -> Var {
    let to = [g.shape(x).dims(), &[1]].concat();
    g.reshape(x, Shape::new(&to).expect("no more axes than a matrix"))
}

/// [..., n] as [..., 1, n].
fn as_row(g: &mut dyn Graph, x: Var) -> Var {
    let shape = g.shape(x);
    let (outer, last) = shape.split_at(shape.rank() - 1);
    let to = [outer, &[1], last].concat();
    g.reshape(x, Shape::new(&to).expect("no more axes than a matrix"))
}

/// Rows, from `start` on, of a matrix, or its columns.
fn part(g: &mut dyn Graph, x: Var, axis: usize, start: usize, length: usize) -> Var {
    let shape = g.shape(x);
    let rank = shape.rank();
    let (mut starts, steps) = (vec![0; rank], vec![1; rank]);
    let mut sizes: Vec<i64> = shape.iter().map(|&dim| dim as i64).collect();
    (starts[rank - 2 + axis], sizes[rank - 2 + axis]) = (start as i64, length as i64);
    g.slice(x, &starts, &sizes, &steps)
}

/// Identities as large as matrices.
fn ones_on_diagonal(g: &mut dyn Graph, like: Meta) -> Var {
    let ones = g.full(like.shape, like.dtype, 1i64);
    diagonal(g, ones)
}

/// Identities with a row for each of some values.
fn ones_for(g: &mut dyn Graph, values: Var) -> Var {
    let meta = g.meta(values);
    let count = meta.shape.last().copied().unwrap_or(0);
    let shape = Shape::new(&[meta.shape.dims(), &[count]].concat());
    ones_on_diagonal(g, Meta::new(meta.dtype, shape.expect("no more axes than a matrix")))
}

fn joined(g: &mut dyn Graph, parts: &[Var], axis: usize) -> Var {
    let rank = g.shape(parts[0]).rank();
    let operands: Vec<_> = parts.iter().map(|&part| part.into()).collect();
    let along = Attribute::Int((rank - 2 + axis) as i64);
    g.emit(&CAT, &operands, smallvec![along])
}

/// gA = L^-H S L^-1, where S is Hermitian with the lower triangle of L^H gL, halved on the diagonal.
pub fn cholesky(g: &mut dyn Graph, s: &Saved) -> Var {
    let factor = s.output();
    let product = inner(g, factor, s.grad);
    let lower = g.tril(product, 0);
    let below = g.tril(product, -1);
    let above = adjoint(g, below);
    let twice = g.add(lower, above);
    let middle = g.mul(twice, 0.5);
    let turned = adjoint(g, factor);
    let left = triangular(g, turned, middle, true, false);
    triangular_beside(g, factor, left, false, false)
}

/// gB = A^-H gX
pub fn triangular_right(g: &mut dyn Graph, s: &Saved) -> Var {
    let turned = adjoint(g, s.tensor(0));
    triangular(g, turned, s.grad, !s.bool(0), s.bool(1))
}

/// gA = -gB X^H, of the triangle.
pub fn triangular_left(g: &mut dyn Graph, s: &Saved) -> Var {
    let right = triangular_right(g, s);
    let product = outer(g, right, s.output());
    let grad = g.neg(product);
    let unit = i64::from(s.bool(1));
    if s.bool(0) { g.triu(grad, unit) } else { g.tril(grad, -unit) }
}

/// gB = A^-H gX
pub fn solve_right(g: &mut dyn Graph, s: &Saved) -> Var {
    let turned = adjoint(g, s.tensor(0));
    solve(g, turned, s.grad)
}

/// gA = -gB X^H
pub fn solve_left(g: &mut dyn Graph, s: &Saved) -> Var {
    let right = solve_right(g, s);
    let product = outer(g, right, s.output());
    g.neg(product)
}

/// Of a square P A = L U: gA = P^T L^-H (tril(L^H gL, -1) + triu(gU U^H)) U^-H. What is below the
/// square, L2 = A2 U^-1, or beside it, U2 = L^-1 A2, is led back to that.
pub fn lu(g: &mut dyn Graph, s: &Saved) -> Var {
    let (packed, grad) = (s.output(), s.grad);
    let (_, rows, columns) = split(s.shape(0));
    let count = rows.min(columns);
    let (low, up) = (part(g, packed, 1, 0, count), part(g, packed, 0, 0, count));
    let (mut grad_low, mut grad_up) = (part(g, grad, 1, 0, count), part(g, grad, 0, 0, count));
    let (low, square_up) = (part(g, low, 0, 0, count), part(g, up, 1, 0, count));
    let mut rest = None;
    if rows > columns {
        // gA2 = gL2 U^-H, and gU takes -L2^H gA2.
        let below = part(g, packed, 0, count, rows - count);
        let grad_below = part(g, grad_low, 0, count, rows - count);
        let turned = adjoint(g, square_up);
        let grad_rest = triangular_beside(g, turned, grad_below, false, false);
        let change = inner(g, below, grad_rest);
        grad_up = g.triu(grad_up, 0);
        grad_up = g.sub(grad_up, change);
        grad_low = part(g, grad_low, 0, 0, count);
        rest = Some((grad_rest, 0));
    } else if columns > rows {
        // gA2 = L^-H gU2, and gL takes -gA2 U2^H.
        let beside = part(g, packed, 1, count, columns - count);
        let grad_beside = part(g, grad_up, 1, count, columns - count);
        let turned = adjoint(g, low);
        let grad_rest = triangular(g, turned, grad_beside, true, true);
        let change = outer(g, grad_rest, beside);
        grad_low = g.tril(grad_low, -1);
        grad_low = g.sub(grad_low, change);
        grad_up = part(g, grad_up, 1, 0, count);
        rest = Some((grad_rest, 1));
    }
    let (grad_low, grad_up) = (g.tril(grad_low, -1), g.triu(grad_up, 0));
    let (triangle, upper) = (unit_lower(g, low), g.triu(square_up, 0));
    let (left, right) = (inner(g, triangle, grad_low), outer(g, grad_up, upper));
    let (left, right) = (g.tril(left, -1), g.triu(right, 0));
    let middle = g.add(left, right);
    let turned = adjoint(g, triangle);
    let solved = triangular(g, turned, middle, true, true);
    let turned = adjoint(g, upper);
    let mut grad = triangular_beside(g, turned, solved, false, false);
    if let Some((rest, axis)) = rest {
        grad = joined(g, &[grad, rest], axis);
    }
    back_in_order(g, grad, s.further[0])
}

fn unit_lower(g: &mut dyn Graph, x: Var) -> Var {
    let below = g.tril(x, -1);
    let like = g.meta(x);
    let ones = ones_on_diagonal(g, like);
    g.add(below, ones)
}

/// The rows where they were before the exchanges.
fn back_in_order(g: &mut dyn Graph, rows: Var, pivots: Var) -> Var {
    let meta = g.meta(rows);
    let (_, count, _) = split(meta.shape);
    let order = g.emit(&LU_ORDER, &[pivots.into()], smallvec![Attribute::Int(count as i64)]);
    let order = as_column(g, order);
    let order = g.expand(order, meta.shape);
    let zeros = g.full(meta.shape, meta.dtype, 0i64);
    let axis = meta.shape.rank() as i64 - 2;
    g.scatter_add(zeros, order, rows, axis)
}

/// Of as many rows as columns or more: gA = (gQ + Q S) R^-H, where S is Hermitian with the upper
/// triangle of gR R^H - Q^H gQ. Of fewer rows A = [X Y], and Y = Q V leads back to that.
pub fn qr(g: &mut dyn Graph, s: &Saved) -> Var {
    let (q, r) = (s.output(), s.further[0]);
    let (_, rows, columns) = split(s.shape(0));
    let zeros = |g: &mut dyn Graph| {
        let meta = g.meta(r);
        g.full(meta.shape, meta.dtype, 0i64)
    };
    let grad_r = s.further_grads[0].unwrap_or_else(|| zeros(g));
    if rows >= columns {
        return qr_of_tall(g, (q, r), (s.grad, grad_r));
    }
    let (first, second) = (part(g, r, 1, 0, rows), part(g, grad_r, 1, rows, columns - rows));
    let right = part(g, r, 1, rows, columns - rows);
    let beside = g.matmul(q, right);
    let grad_beside = g.matmul(q, second);
    let change = outer(g, beside, second);
    let grad_q = g.add(s.grad, change);
    let grad_first = part(g, grad_r, 1, 0, rows);
    let grad = qr_of_tall(g, (q, first), (grad_q, grad_first));
    joined(g, &[grad, grad_beside], 1)
}

fn qr_of_tall(g: &mut dyn Graph, (q, r): (Var, Var), (grad_q, grad_r): (Var, Var)) -> Var {
    let (left, right) = (outer(g, grad_r, r), inner(g, q, grad_q));
    let both = g.sub(left, right);
    let (upper, above) = (g.triu(both, 0), g.triu(both, 1));
    let below = adjoint(g, above);
    // The diagonal of a Hermitian matrix is real.
    let off = g.sub(upper, above);
    let real = hermitian_diagonal(g, off);
    let middle = g.add(above, below);
    let middle = g.add(middle, real);
    let product = g.matmul(q, middle);
    let sum = g.add(grad_q, product);
    let turned = adjoint(g, r);
    triangular_beside(g, turned, sum, false, false)
}

/// The real parts of a diagonal matrix.
fn hermitian_diagonal(g: &mut dyn Graph, x: Var) -> Var {
    if !g.meta(x).dtype.is_complex() {
        return x;
    }
    let turned = adjoint(g, x);
    let twice = g.add(x, turned);
    g.mul(twice, 0.5)
}

/// x - x^H
fn skew(g: &mut dyn Graph, x: Var) -> Var {
    let turned = adjoint(g, x);
    g.sub(x, turned)
}

/// gA = U ((skew(U^H gU) S + S skew(V^H gV)) / E + gS) V^H, where E[j, k] = S[k]^2 - S[j]^2, and what
/// of gU and gV is at right angles to U and V.
pub fn svd(g: &mut dyn Graph, s: &Saved) -> Var {
    let (_, rows, columns) = split(s.shape(0));
    let count = rows.min(columns);
    let values = s.further[0];
    let u = part(g, s.output(), 1, 0, count);
    let vh = part(g, s.further[1], 0, 0, count);
    let grad_u = part(g, s.grad, 1, 0, count);
    let v = adjoint(g, vh);
    let (row, column) = (as_row(g, values), as_column(g, values));
    let ones = ones_for(g, values);
    // (S[k] - S[j]) (S[k] + S[j]) loses fewer digits than the difference of squares.
    let (less, more) = (g.sub(row, column), g.add(row, column));
    let gaps = g.mul(less, more);
    let gaps = g.add(gaps, ones);
    let of_u = inner(g, u, grad_u);
    let of_u = skew(g, of_u);
    let mut middle = g.mul(of_u, row);
    if let Some(grad_vh) = s.further_grads[1] {
        let grad_vh = part(g, grad_vh, 0, 0, count);
        let of_v = g.matmul(grad_vh, v);
        let of_v = adjoint(g, of_v);
        let of_v = skew(g, of_v);
        let of_v = g.mul(of_v, column);
        middle = g.add(middle, of_v);
    }
    middle = g.div(middle, gaps);
    if g.meta(u).dtype.is_complex() {
        let along = diagonal(g, of_u);
        let twice = g.mul(row, 2.0);
        let along = g.div(along, twice);
        let off = diagonal(g, middle);
        middle = g.sub(middle, off);
        middle = g.add(middle, along);
    }
    if let Some(grad_values) = s.further_grads[0] {
        let spread = as_row(g, grad_values);
        let spread = g.mul(ones, spread);
        middle = g.add(middle, spread);
    }
    let left = g.matmul(u, middle);
    let mut grad = g.matmul(left, vh);
    if rows > count {
        let across = g.div(grad_u, row);
        let along = inner(g, u, across);
        let along = g.matmul(u, along);
        let across = g.sub(across, along);
        let across = g.matmul(across, vh);
        grad = g.add(grad, across);
    }
    if let (Some(grad_vh), true) = (s.further_grads[1], columns > count) {
        let grad_vh = part(g, grad_vh, 0, 0, count);
        let across = g.div(grad_vh, column);
        let along = g.matmul(across, v);
        let along = g.matmul(along, vh);
        let across = g.sub(across, along);
        let across = g.matmul(u, across);
        grad = g.add(grad, across);
    }
    grad
}

/// gA = V (V^H gV / E + gL) V^H, where E[j, k] = L[k] - L[j].
pub fn eigh(g: &mut dyn Graph, s: &Saved) -> Var {
    let (values, vectors) = (s.output(), s.further[0]);
    let ones = ones_for(g, values);
    let spread = as_row(g, s.grad);
    let mut middle = g.mul(ones, spread);
    if let Some(grad_vectors) = s.further_grads[0] {
        let (row, column) = (as_row(g, values), as_column(g, values));
        let gaps = g.sub(row, column);
        let gaps = g.add(gaps, ones);
        let product = inner(g, vectors, grad_vectors);
        let own = diagonal(g, product);
        let product = g.sub(product, own);
        let turned = g.div(product, gaps);
        middle = g.add(turned, middle);
    } else {
        let dtype = g.meta(vectors).dtype;
        middle = g.cast(middle, dtype);
    }
    let left = g.matmul(vectors, middle);
    outer(g, left, vectors)
}

/// gA = V^-H ((V^H gV - V^H V diag(Re(V^H gV))) / conj(E) + gL) V^H, where E[j, k] = L[k] - L[j].
pub fn eig(g: &mut dyn Graph, s: &Saved) -> Var {
    let (values, vectors) = (s.output(), s.further[0]);
    let ones = ones_for(g, values);
    let spread = as_row(g, s.grad);
    let mut middle = g.mul(ones, spread);
    if let Some(grad_vectors) = s.further_grads[0] {
        let product = inner(g, vectors, grad_vectors);
        let own = diagonal(g, product);
        let real = hermitian_diagonal(g, own);
        let gram = inner(g, vectors, vectors);
        let along = g.matmul(gram, real);
        let across = g.sub(product, along);
        let own = diagonal(g, across);
        let across = g.sub(across, own);
        let (row, column) = (as_row(g, values), as_column(g, values));
        let gaps = g.sub(row, column);
        let gaps = g.conj(gaps);
        let gaps = g.add(gaps, ones);
        let across = g.div(across, gaps);
        middle = g.add(across, middle);
    }
    let right = outer(g, middle, vectors);
    let turned = adjoint(g, vectors);
    solve(g, turned, right)
}
