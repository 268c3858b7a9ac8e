//! Shorthands on [`Graph`] for gradient rules and composite bodies: `g.mul(a, b)`.

use smallvec::{SmallVec, smallvec};

use super::{
    binary, compare, complex, create, cumulative, index, matmul, nn, reduce, shape, slice, ternary,
    unary,
};
use crate::dtype::DType;
use crate::instruction::{Attribute, Operand};
use crate::operation::{Graph, Operation, Var};
use crate::scalar::Scalar;
use crate::shape::Shape;

type Value = Operand<Var>;

macro_rules! unary_forms {
    ($($name:ident => $operation:path),* $(,)?) => {
        $(pub fn $name(&mut self, a: impl Into<Value>) -> Var {
            self.emit(&$operation, &[a.into()], smallvec![])
        })*
    };
}

macro_rules! binary_forms {
    ($($name:ident => $operation:path),* $(,)?) => {
        $(pub fn $name(&mut self, a: impl Into<Value>, b: impl Into<Value>) -> Var {
            self.emit(&$operation, &[a.into(), b.into()], smallvec![])
        })*
    };
}

impl dyn Graph + '_ {
    unary_forms! {
        neg => unary::NEG, sign => unary::SIGN, exp => unary::EXP, log => unary::LOG,
        sin => unary::SIN, cos => unary::COS, erf => unary::ERF, sqrt => unary::SQRT,
        sigmoid => unary::SIGMOID, tanh => unary::TANH, log1p => unary::LOG1P, abs => unary::ABS,
        logical_not => unary::LOGICAL_NOT, conj => complex::CONJ, sgn => complex::SGN,
        view_as_real => complex::VIEW_AS_REAL, view_as_complex => complex::VIEW_AS_COMPLEX,
    }

    binary_forms! {
        add => binary::ADD, sub => binary::SUB, mul => binary::MUL, div => binary::DIV,
        pow => binary::POW, maximum => binary::MAXIMUM, floor_divide => binary::FLOOR_DIVIDE,
        eq => compare::EQ, ne => compare::NE, gt => compare::GT, lt => compare::LT,
        ge => compare::GE, le => compare::LE, logical_and => compare::LOGICAL_AND, logical_or => compare::LOGICAL_OR,
        matmul => matmul::MATMUL,
    }

    /// An operation without attributes.
    pub fn call(&mut self, operation: &'static Operation, operands: &[Value]) -> Var {
        self.emit(operation, operands, smallvec![])
    }

    pub fn shape(&self, a: Var) -> Shape {
        self.meta(a).shape
    }

    pub fn select(
        &mut self,
        condition: impl Into<Value>,
        a: impl Into<Value>,
        b: impl Into<Value>,
    ) -> Var {
        self.emit(&ternary::WHERE, &[condition.into(), a.into(), b.into()], smallvec![])
    }

    pub fn cast(&mut self, a: Var, dtype: DType) -> Var {
        if self.meta(a).dtype == dtype {
            return a;
        }
        self.emit(&unary::CAST, &[a.into()], smallvec![Attribute::DType(dtype)])
    }

    pub fn full(&mut self, shape: Shape, dtype: DType, value: impl Into<Scalar>) -> Var {
        let attributes = smallvec![Attribute::dims(&shape), Attribute::DType(dtype)];
        self.emit(&create::FULL, &[Operand::Scalar(value.into())], attributes)
    }

    /// Zeros of another value's shape and dtype: the gradient of what is constant in between.
    pub fn zeros_like(&mut self, a: Var) -> Var {
        let meta = self.meta(a);
        self.full(meta.shape, meta.dtype, 0i64)
    }

    fn reduce(&mut self, operation: &'static Operation, a: Var, axes: &[i64], keep: bool) -> Var {
        let attributes = smallvec![Attribute::ints(axes), Attribute::Bool(keep)];
        self.emit(operation, &[a.into()], attributes)
    }

    pub fn sum(&mut self, a: Var, axes: &[i64], keepdims: bool) -> Var {
        self.reduce(&reduce::SUM, a, axes, keepdims)
    }

    pub fn mean(&mut self, a: Var, axes: &[i64], keepdims: bool) -> Var {
        self.reduce(&reduce::MEAN, a, axes, keepdims)
    }

    pub fn amax(&mut self, a: Var, axes: &[i64], keepdims: bool) -> Var {
        self.reduce(&reduce::AMAX, a, axes, keepdims)
    }

    pub fn cumsum(&mut self, a: Var, axis: i64) -> Var {
        self.emit(&cumulative::CUMSUM, &[a.into()], smallvec![Attribute::Int(axis)])
    }

    pub fn softmax(&mut self, a: Var, axis: i64) -> Var {
        self.emit(&nn::SOFTMAX, &[a.into()], smallvec![Attribute::Int(axis)])
    }

    pub fn reshape(&mut self, a: Var, to: Shape) -> Var {
        if self.shape(a) == to {
            return a;
        }
        self.emit(&shape::RESHAPE, &[a.into()], smallvec![Attribute::dims(&to)])
    }

    pub fn expand(&mut self, a: Var, to: Shape) -> Var {
        if self.shape(a) == to {
            return a;
        }
        self.emit(&shape::EXPAND, &[a.into()], smallvec![Attribute::dims(&to)])
    }

    pub fn permute(&mut self, a: Var, order: &[i64]) -> Var {
        self.emit(&shape::PERMUTE, &[a.into()], smallvec![Attribute::ints(order)])
    }

    /// Transposes the last two axes.
    pub fn transpose(&mut self, a: Var) -> Var {
        let rank = self.shape(a).rank() as i64;
        let mut order: SmallVec<[i64; 8]> = (0..rank).collect();
        order.swap(rank as usize - 1, rank as usize - 2);
        self.permute(a, &order)
    }

    pub fn flip(&mut self, a: Var, axis: i64) -> Var {
        self.emit(&shape::FLIP, &[a.into()], smallvec![Attribute::ints(&[axis])])
    }

    pub fn slice(&mut self, a: Var, starts: &[i64], sizes: &[i64], steps: &[i64]) -> Var {
        let attributes =
            smallvec![Attribute::ints(starts), Attribute::ints(sizes), Attribute::ints(steps)];
        self.emit(&slice::SLICE, &[a.into()], attributes)
    }

    pub fn slice_assign(
        &mut self,
        a: Var,
        value: Var,
        starts: &[i64],
        sizes: &[i64],
        steps: &[i64],
    ) -> Var {
        let attributes =
            smallvec![Attribute::ints(starts), Attribute::ints(sizes), Attribute::ints(steps)];
        self.emit(&slice::SLICE_ASSIGN, &[a.into(), value.into()], attributes)
    }

    pub fn tril(&mut self, a: Var, diagonal: i64) -> Var {
        self.emit(&shape::TRIL, &[a.into()], smallvec![Attribute::Int(diagonal)])
    }

    pub fn triu(&mut self, a: Var, diagonal: i64) -> Var {
        self.emit(&shape::TRIU, &[a.into()], smallvec![Attribute::Int(diagonal)])
    }

    pub fn gather(&mut self, a: Var, index: Var, axis: i64) -> Var {
        self.emit(&index::GATHER, &[a.into(), index.into()], smallvec![Attribute::Int(axis)])
    }

    pub fn scatter_add(&mut self, a: Var, index: Var, source: Var, axis: i64) -> Var {
        let operands = [a.into(), index.into(), source.into()];
        self.emit(&index::SCATTER_ADD, &operands, smallvec![Attribute::Int(axis)])
    }

    pub fn index_select(&mut self, a: Var, index: Var, axis: i64) -> Var {
        self.emit(&index::INDEX_SELECT, &[a.into(), index.into()], smallvec![Attribute::Int(axis)])
    }

    pub fn index_add(&mut self, a: Var, index: Var, source: Var, axis: i64) -> Var {
        let operands = [a.into(), index.into(), source.into()];
        self.emit(&index::INDEX_ADD, &operands, smallvec![Attribute::Int(axis)])
    }

    pub fn index_copy(&mut self, a: Var, index: Var, source: Var, axis: i64) -> Var {
        let operands = [a.into(), index.into(), source.into()];
        self.emit(&index::INDEX_COPY, &operands, smallvec![Attribute::Int(axis)])
    }

    /// `a` summed over the axes along which `to` was broadcast: the gradient of broadcasting.
    pub fn unbroadcast(&mut self, a: Var, to: Shape) -> Var {
        let from = self.shape(a);
        if from == to {
            return a;
        }
        let extra = from.rank() - to.rank();
        let axes: SmallVec<[i64; 8]> = (0..from.rank())
            .filter(|&axis| axis < extra || (to[axis - extra] == 1 && from[axis] != 1))
            .map(|axis| axis as i64)
            .collect();
        let summed = if axes.is_empty() { a } else { self.sum(a, &axes, true) };
        self.reshape(summed, to)
    }

    /// Restores the reduced `axes` of a tensor as axes of length 1, expanded to `shape` on request.
    pub fn restore(&mut self, reduced: Var, shape: Shape, axes: &[i64], expand: bool) -> Var {
        let axes = crate::shape::axes(axes, shape.rank(), "restore").expect("checked by infer");
        let kept = axes.iter().fold(shape, |kept, &axis| kept.with(axis, 1));
        let reshaped = self.reshape(reduced, kept);
        if expand { self.expand(reshaped, shape) } else { reshaped }
    }
}
