//! A use of an operation: its operands with their bounds, and how it is rounded.

use gt_ir::operation::{Graph, Var};
use gt_ir::{Attributes, DType, Operand, Operation, Scalar};

use super::terms::{Pair, Value, magnitude, plus, times, unit};

/// How values are rounded, other than by their dtypes.
#[derive(Clone, Copy, Default)]
pub struct Loses {
    /// The dtype that counts for rounding, if it is another than the results'.
    pub nominal: Option<DType>,
    /// The dtype that float32 factors of products are rounded to, if they are.
    pub factors: Option<DType>,
}

impl Loses {
    /// What a product of two such factors loses in two evaluations.
    pub fn of_factors(self, dtype: DType) -> f64 {
        let is_single = matches!(dtype, DType::F32 | DType::C64);
        self.factors.filter(|_| is_single).map_or(0.0, |factors| 4.0 * unit(factors))
    }
}

/// One use of an operation.
pub struct Use<'a> {
    pub operation: &'static Operation,
    pub operands: &'a [Operand<Pair>],
    pub attributes: &'a Attributes,
    /// The first result; others have the numbers that follow.
    pub result: Var,
    pub loses: Loses,
}

impl Use<'_> {
    /// The dtype that a result is rounded to.
    pub fn dtype(&self, g: &dyn Graph, result: Var) -> DType {
        let dtype = g.meta(result).dtype;
        match self.loses.nominal {
            Some(nominal) if dtype.is_complex() => nominal.to_complex(),
            Some(nominal) if dtype.is_float() => nominal,
            _ => dtype,
        }
    }

    /// An operand's value.
    pub fn value(&self, index: usize) -> Value {
        self.operands[index].map(|pair| pair.value)
    }

    /// An operand's bound. A number that 16 bits do not hold may be rounded or not.
    pub fn bound(&self, g: &dyn Graph, index: usize) -> Option<Value> {
        match self.operands[index] {
            Operand::Tensor(pair) => pair.bound.map(Operand::Tensor),
            Operand::Scalar(scalar) => {
                let dtype = self.dtype(g, self.result);
                let loses = matches!(dtype, DType::F16 | DType::BF16)
                    && f64::from(scalar.as_f64() as f32).to_bits() & ((1 << 45) - 1) != 0;
                let lost = unit(dtype) * scalar.as_f64().abs();
                loses.then_some(Operand::Scalar(Scalar::Float(lost)))
            }
        }
    }

    /// Whether all operands are the same in every evaluation.
    pub fn is_exact(&self, g: &dyn Graph) -> bool {
        (0..self.operands.len()).all(|index| self.bound(g, index).is_none())
    }

    /// |operand| in float64.
    pub fn magnitude(&self, g: &mut dyn Graph, index: usize) -> Value {
        magnitude(g, self.value(index))
    }

    /// The bound of an operand, grown by `relative` of the operand itself.
    pub fn grown(&self, g: &mut dyn Graph, index: usize, relative: f64) -> Option<Value> {
        let bound = self.bound(g, index);
        if relative == 0.0 {
            return bound;
        }
        let length = self.magnitude(g, index);
        let own = times(g, length, relative);
        Some(bound.map_or(own, |bound| plus(g, bound, own)))
    }
}
