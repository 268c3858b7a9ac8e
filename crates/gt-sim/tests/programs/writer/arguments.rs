//! The operands and attributes of a random operation.

use gt_ir::operation::{Family, ParameterKind};
use gt_ir::{Attribute, Attributes, DType, Operation, Scalar, Shape};
use smallvec::smallvec;

use super::{JournalWriter, Known};
use crate::programs::chance::Chance;
use crate::programs::steps::Action;

impl JournalWriter {
    /// Operands that are likely to fit; each with the number that stands in its place, if any.
    pub(super) fn operands(
        &mut self,
        operation: &Operation,
    ) -> Option<Vec<(Known, Option<Scalar>)>> {
        if operation.family == Family::Create {
            return None;
        }
        let first = match operation.name {
            "gather" | "scatter_add" | "index_select" | "index_add" | "index_copy" => {
                return self.indexed(operation);
            }
            "matmul" => return self.factors(),
            "where" => self.pick(|known| known.dtype == DType::Bool)?,
            _ => self.pick(|known| known.dtype != DType::Bool || known.name.is_multiple_of(3))?,
        };
        let mut operands = operation.parameters.iter().filter(|of| of.attribute().is_none());
        let count = match operation.parameters.first().map(|of| of.kind) {
            Some(ParameterKind::Tensors) => 1 + self.chance.below(3),
            _ => operands.by_ref().count(),
        };
        let mut operands = vec![(first.clone(), None)];
        for _ in 1..count {
            let shape = first.shape;
            let number = Scalar::Float(self.chance.below(40) as f64 / 10.0 + 0.25);
            let broadcasts = |known: &Known| {
                known.shape.broadcast(&shape, "").is_ok() && known.name.is_multiple_of(2)
            };
            let second = match self.chance.below(4) {
                0 if operation.name != "cat" => Some((first.clone(), Some(number))),
                1 => Some((first.clone(), None)),
                2 => self.pick(broadcasts).map(|known| (known, None)),
                _ => self.pick(|known| known.shape == shape).map(|known| (known, None)),
            };
            operands.push(second?);
        }
        Some(operands)
    }

    /// Two matrices that fit: one and another, or itself transposed.
    fn factors(&mut self) -> Option<Vec<(Known, Option<Scalar>)>> {
        let left = self.pick(|known| known.shape.rank() >= 2 && known.dtype != DType::Bool)?;
        let inner = left.shape[left.shape.rank() - 1];
        let fits = |known: &Known| {
            let rank = known.shape.rank();
            rank >= 2 && known.shape[rank - 2] == inner && known.dtype == left.dtype
        };
        let right = self.pick(fits)?;
        Some(vec![(left, None), (right, None)])
    }

    /// A tensor, indices into it, and for those that write a tensor of what is written.
    fn indexed(&mut self, operation: &Operation) -> Option<Vec<(Known, Option<Scalar>)>> {
        let x = self.pick(|known| known.shape.rank() > 0 && known.shape.numel() > 0)?;
        let shortest = *x.shape.iter().min().unwrap();
        let dims = match operation.name {
            "gather" | "scatter_add" => x.shape.dims().to_vec(),
            _ => vec![x.shape[0]],
        };
        let shape = Shape::new(&dims).unwrap();
        let below = shortest as i64;
        self.push(Action::Randint { dims, below }, Some((shape, DType::I64, true, false, false)));
        let index = self.known[self.known.len() - 1].clone();
        let mut operands = vec![(x.clone(), None), (index, None)];
        if operation.name != "gather" && operation.name != "index_select" {
            operands.push((x, None));
        }
        // Which of equal indices counts is not the same everywhere.
        (operation.name != "index_copy").then_some(operands)
    }

    /// Attributes that are likely to fit a first operand of this shape.
    pub(super) fn attributes(&mut self, operation: &Operation, first: Shape) -> Option<Attributes> {
        let rank = first.rank();
        let chance = &mut self.chance;
        let axis = |chance: &mut Chance| Attribute::Int(chance.below(rank.max(1)) as i64);
        let axes = |chance: &mut Chance| {
            let chosen: Vec<i64> = (0..rank as i64).filter(|_| chance.flag()).collect();
            Attribute::ints(&chosen)
        };
        Some(match operation.name {
            "cast" => {
                let kinds = [DType::F64, DType::I64, DType::I32, DType::I16, DType::U8];
                smallvec![Attribute::DType(chance.one_of(&kinds))]
            }
            "sum" | "mean" | "prod" | "amax" | "amin" | "any" | "all" | "logsumexp" => {
                smallvec![axes(chance), Attribute::Bool(chance.flag())]
            }
            "argmax" | "argmin" => {
                let one: Vec<i64> =
                    (rank > 0).then(|| chance.below(rank) as i64).into_iter().collect();
                smallvec![Attribute::ints(&one), Attribute::Bool(chance.flag())]
            }
            "var" | "std" => {
                smallvec![axes(chance), Attribute::Bool(chance.flag()), Attribute::Int(0)]
            }
            "cumsum" | "softmax" | "log_softmax" | "cat" => smallvec![axis(chance)],
            "gather" | "scatter_add" => smallvec![axis(chance)],
            "index_select" | "index_add" | "index_copy" => smallvec![Attribute::Int(0)],
            "wrap_index" => smallvec![Attribute::Int(8)],
            "tril" | "triu" => smallvec![Attribute::Int(chance.below(5) as i64 - 2)],
            "flip" => smallvec![axes(chance)],
            "permute" => {
                let mut left: Vec<i64> = (0..rank as i64).collect();
                let order: Vec<i64> =
                    (0..rank).map(|_| left.remove(chance.below(left.len()))).collect();
                smallvec![Attribute::ints(&order)]
            }
            "reshape" => smallvec![Attribute::dims(&other_shape(chance, first))],
            "expand" => {
                let mut dims: Vec<usize> = first
                    .iter()
                    .map(|&dim| if dim == 1 { 1 + chance.below(4) } else { dim })
                    .collect();
                if chance.flag() {
                    dims.insert(0, 1 + chance.below(4));
                }
                smallvec![Attribute::dims(&dims)]
            }
            "slice" | "slice_assign" => {
                let (mut starts, mut sizes, mut steps) = (vec![], vec![], vec![]);
                for &dim in first.dims() {
                    let start = if chance.flag() { 0 } else { chance.below(dim) };
                    let step = 1 + chance.below(2);
                    let size = if chance.flag() && start == 0 && step == 1 {
                        dim
                    } else {
                        chance.below((dim - start).div_ceil(step) + 1)
                    };
                    starts.push(start as i64);
                    sizes.push(size as i64);
                    steps.push(step as i64);
                }
                smallvec![
                    Attribute::ints(&starts),
                    Attribute::ints(&sizes),
                    Attribute::ints(&steps)
                ]
            }
            "gelu" => smallvec![Attribute::Int(chance.flag().into())],
            _ if operation.attributes().next().is_none() => smallvec![],
            _ => return None,
        })
    }
}

/// Another shape of as many elements: two axes as one, or one as two.
fn other_shape(chance: &mut Chance, shape: Shape) -> Vec<usize> {
    let mut dims = shape.dims().to_vec();
    for _ in 0..1 + chance.below(2) {
        if dims.len() > 1 && chance.flag() {
            let at = chance.below(dims.len() - 1);
            let merged = dims[at] * dims.remove(at + 1);
            dims[at] = merged;
        } else if !dims.is_empty() && dims.len() < 6 {
            let at = chance.below(dims.len());
            let parts: Vec<usize> =
                (1..=dims[at].max(1)).filter(|part| dims[at].is_multiple_of(*part)).collect();
            let part = chance.one_of(&parts);
            dims[at] /= part;
            dims.insert(at, part);
        }
    }
    dims
}
