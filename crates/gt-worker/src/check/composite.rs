//! Bounds of composite operations: those of the operations that they consist of.

use gt_ir::operation::{Graph, Operation, Var};
use gt_ir::{Attributes, Meta, Operand};

use super::operands::{Loses, Use};
use super::terms::{Pair, wide};

/// The expansion of a composite, as its definition says.
type Expansion = fn(&mut dyn Graph, &[Operand<Var>], &Attributes) -> Var;

/// The bounds of an operation's results: [`super::rules::bounds`], which walks composites in turn.
pub type Bounds = fn(&mut dyn Graph, &Use, usize) -> Vec<Option<Var>>;

/// A graph that computes what is emitted in float64, with bounds as if values were rounded
/// otherwise.
pub struct Walk<'a> {
    graph: &'a mut dyn Graph,
    pairs: Vec<Pair>,
    loses: Loses,
    bounds: Bounds,
}

impl<'a> Walk<'a> {
    pub fn new(graph: &'a mut dyn Graph, loses: Loses, bounds: Bounds) -> Walk<'a> {
        Walk { graph, pairs: Vec::new(), loses, bounds }
    }

    /// The bound of what the composite makes of these operands.
    pub fn bound(&mut self, body: Expansion, of: &Use) -> Option<Var> {
        let mut operands: Vec<Operand<Var>> = Vec::new();
        for operand in of.operands {
            operands.push(match *operand {
                Operand::Scalar(scalar) => Operand::Scalar(scalar),
                Operand::Tensor(Pair { value, bound }) => {
                    let exact = self.graph.meta(value).dtype.is_exact();
                    let value = if exact {
                        value
                    } else {
                        *wide(self.graph, value.into()).tensor().expect("of a tensor")
                    };
                    Operand::Tensor(self.push(Pair { value, bound }))
                }
            });
        }
        let made = body(self, &operands, of.attributes);
        self.pairs[made.0 as usize].bound
    }

    fn push(&mut self, pair: Pair) -> Var {
        self.pairs.push(pair);
        Var(self.pairs.len() as u32 - 1)
    }
}

impl Graph for Walk<'_> {
    fn emit(
        &mut self,
        operation: &'static Operation,
        operands: &[Operand<Var>],
        attributes: Attributes,
    ) -> Var {
        let pairs: Vec<Operand<Pair>> =
            operands.iter().map(|of| of.map(|var| self.pairs[var.0 as usize])).collect();
        let values: Vec<Operand<Var>> = pairs.iter().map(|of| of.map(|pair| pair.value)).collect();
        let metas: Vec<Operand<Meta>> =
            values.iter().map(|of| of.map(|&var| self.graph.meta(var))).collect();
        let results = operation.results(&metas, &attributes).map_or(1, |results| results.len());
        let result = self.graph.emit(operation, &values, attributes.clone());
        let loses = self.loses;
        let of = Use { operation, operands: &pairs, attributes: &attributes, result, loses };
        let bounds = (self.bounds)(self.graph, &of, results);
        let first = self.pairs.len() as u32;
        for (index, bound) in bounds.into_iter().enumerate() {
            self.push(Pair { value: result.result(index as u32), bound });
        }
        Var(first)
    }

    fn meta(&self, var: Var) -> Meta {
        self.graph.meta(self.pairs[var.0 as usize].value)
    }
}
