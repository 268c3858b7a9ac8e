//! The gradients of attention (Dao et al., 2022, appendix B), and of these.
//!
//! With scores S and their logarithms of sums L, weights are P = exp(S - L). Of the output O = P V
//! with gradient dO, the gradient of the scores is dS = P * A, where A = dO V^T - D and D is the sum
//! of dO * O along each row. [`ATTENTION_BACKWARD`] computes this in parts. Where the gradient of a
//! mask or of a gradient is asked for, the same is built here of whole matrices.

use smallvec::{SmallVec, smallvec};

use super::{ATTENTION_BACKWARD, MASK, attributes};
use crate::dtype::DType;
use crate::instruction::Operand;
use crate::operation::{Graph, Saved, Var};

/// A gradient for each operand; `None` for one that takes none.
type Gradients = SmallVec<[Option<Var>; 4]>;

pub fn attention(g: &mut dyn Graph, s: &Saved, wanted: &[bool]) -> Gradients {
    let [query, key, value] = [0, 1, 2].map(|index| s.tensor(index));
    let (output, logsumexp) = (s.output(), s.further[0]);
    if wanted[MASK] || s.further_grads[0].is_some() {
        let operands = [s.grad, query, key, value, output, logsumexp];
        let m = Matrices::new(g, operands, s.operand(MASK), s.bool(0), s.float(1));
        return m.gradients(g, s.further_grads[0]);
    }
    let operands = [
        s.grad.into(),
        query.into(),
        key.into(),
        value.into(),
        s.operand(MASK),
        output.into(),
        logsumexp.into(),
    ];
    let first = g.emit(&ATTENTION_BACKWARD, &operands, attributes(s.bool(0), s.float(1)));
    smallvec![Some(first), Some(first.result(1)), Some(first.result(2)), None]
}

/// With gradients X, Y and Z of the results dQ = c dS K, dK = c dS^T Q and dV = P^T dO.
pub fn backward(g: &mut dyn Graph, s: &Saved, _: &[bool]) -> Gradients {
    let operands = [0, 1, 2, 3, 5, 6].map(|index| s.tensor(index));
    let m = Matrices::new(g, operands, s.operand(1 + MASK), s.bool(0), s.float(1));
    let [x, y, z] = [Some(s.grad), s.further_grads[0], s.further_grads[1]]
        .map(|grad| grad.map(|grad| m.widened(g, grad)));
    let ds = g.mul(m.weights, m.centered);
    let x = x.expect("the gradient of the first result");
    // The gradients of dS, P, A, S and D.
    let mut g_ds = outer(g, x, m.key);
    if let Some(y) = y {
        let more = outer(g, m.query, y);
        g_ds = g.add(g_ds, more);
    }
    let g_ds = g.mul(g_ds, m.scale);
    let mut g_weights = g.mul(g_ds, m.centered);
    if let Some(z) = z {
        let more = outer(g, m.grad, z);
        g_weights = g.add(g_weights, more);
    }
    let g_centered = g.mul(g_ds, m.weights);
    let g_scores = g.mul(g_weights, m.weights);
    let g_sums = g.sum(g_centered, &[-1], true);
    let g_sums = g.neg(g_sums);

    let mut grad = g.matmul(g_centered, m.value);
    let more = g.mul(g_sums, m.output);
    grad = g.add(grad, more);
    if let Some(z) = z {
        let more = g.matmul(m.weights, z);
        grad = g.add(grad, more);
    }
    let mut query = g.matmul(g_scores, m.key);
    if let Some(y) = y {
        let more = g.matmul(ds, y);
        query = g.add(query, more);
    }
    let mut key = inner(g, g_scores, m.query);
    let more = inner(g, ds, x);
    key = g.add(key, more);
    let [query, key] = [query, key].map(|of| g.mul(of, m.scale));
    let value = inner(g, g_centered, m.grad);
    let output = g.mul(g_sums, m.grad);
    let logsumexp = g.sum(g_scores, &[-1], false);
    let logsumexp = g.neg(logsumexp);
    [grad, query, key, value, g_scores, output, logsumexp].into_iter().map(Some).collect()
}

/// a^T b
fn inner(g: &mut dyn Graph, a: Var, b: Var) -> Var {
    let turned = g.transpose(a);
    g.matmul(turned, b)
}

/// a b^T
fn outer(g: &mut dyn Graph, a: Var, b: Var) -> Var {
    let turned = g.transpose(b);
    g.matmul(a, turned)
}

/// The operands in the dtype that is computed in, and matrices of all queries and keys.
struct Matrices {
    dtype: DType,
    scale: f64,
    grad: Var,
    query: Var,
    key: Var,
    value: Var,
    output: Var,
    /// P
    weights: Var,
    /// A
    centered: Var,
}

impl Matrices {
    /// From the output's gradient, query, key, value, the output and its logarithms of sums.
    fn new(
        g: &mut dyn Graph,
        [grad, query, key, value, output, logsumexp]: [Var; 6],
        mask: Operand<Var>,
        is_causal: bool,
        scale: f64,
    ) -> Matrices {
        let dtype = g.meta(logsumexp).dtype;
        let [grad, query, key, value, output] =
            [grad, query, key, value, output].map(|of| g.cast(of, dtype));
        let products = outer(g, query, key);
        let mut scores = g.mul(products, scale);
        scores = match mask {
            Operand::Scalar(number) => {
                g.call(&crate::ops::binary::ADD, &[scores.into(), Operand::Scalar(number)])
            }
            Operand::Tensor(mask) if g.meta(mask).dtype == DType::Bool => {
                g.select(mask, scores, f64::NEG_INFINITY)
            }
            Operand::Tensor(mask) => {
                let mask = g.cast(mask, dtype);
                g.add(scores, mask)
            }
        };
        if is_causal {
            let shape = g.shape(scores);
            let seen = g.full(shape, DType::Bool, true);
            let seen = g.tril(seen, 0);
            scores = g.select(seen, scores, f64::NEG_INFINITY);
        }
        let columns = g.shape(output).with(g.shape(output).rank() - 1, 1);
        let logarithms = g.reshape(logsumexp, columns);
        let logarithms = g.sub(scores, logarithms);
        let weights = g.exp(logarithms);
        let products = g.mul(grad, output);
        let sums = g.sum(products, &[-1], true);
        let centered = outer(g, grad, value);
        let centered = g.sub(centered, sums);
        Matrices { dtype, scale, grad, query, key, value, output, weights, centered }
    }

    /// A gradient in the dtype that is computed in.
    fn widened(&self, g: &mut dyn Graph, x: Var) -> Var {
        g.cast(x, self.dtype)
    }

    /// The gradients for query, key, value and mask, given that of the logarithms of sums, which
    /// are by the scores what the weights are.
    fn gradients(&self, g: &mut dyn Graph, of_logsumexp: Option<Var>) -> Gradients {
        let mut centered = self.centered;
        if let Some(grad) = of_logsumexp {
            let columns = g.shape(self.grad).with(g.shape(self.grad).rank() - 1, 1);
            let grad = g.reshape(grad, columns);
            centered = g.add(centered, grad);
        }
        let ds = g.mul(self.weights, centered);
        let query = g.matmul(ds, self.key);
        let key = inner(g, ds, self.query);
        let [query, key] = [query, key].map(|of| g.mul(of, self.scale));
        let value = inner(g, self.weights, self.grad);
        smallvec![Some(query), Some(key), Some(value), Some(ds)]
    }
}
