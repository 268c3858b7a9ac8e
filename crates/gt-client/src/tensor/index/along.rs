//! Adding along one axis, at the positions of an index tensor.

use gt_ir::instruction::Attribute;
use gt_ir::ops::index as ops;
use gt_ir::{Operand, Operation};
use smallvec::smallvec;

use super::{Index, Tensor};
use crate::error::Result;

impl Tensor {
    /// Adds the values of `source` at the positions of an index along an axis, like
    /// `torch.scatter_add`. If the index is shorter than `source`, the rest is ignored.
    #[track_caller]
    pub fn scatter_add(&self, axis: i64, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        let (wanted, given) = (index.shape(), source.shape());
        let fits = |(wanted, given): (&usize, &usize)| wanted <= given;
        if wanted != given
            && wanted.rank() == given.rank()
            && wanted.iter().zip(given.iter()).all(fits)
        {
            let part =
                |&length: &usize| Index::Slice { start: None, stop: Some(length as i64), step: 1 };
            let parts: Vec<_> = wanted.iter().map(part).collect();
            let source = source.index(&parts, &mut || false)?;
            return self.write_at(&ops::SCATTER_ADD, axis, index, &source);
        }
        self.write_at(&ops::SCATTER_ADD, axis, index, source)
    }

    /// Adds the slices of `source` at the positions of an index along an axis, like
    /// `torch.index_add`.
    #[track_caller]
    pub fn index_add(&self, axis: i64, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        self.write_at(&ops::INDEX_ADD, axis, index, source)
    }

    /// Applies an operation that writes `source` at the positions of an index along an axis.
    #[track_caller]
    fn write_at(
        &self,
        operation: &'static Operation,
        axis: i64,
        index: &Tensor,
        source: &Tensor,
    ) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), Operand::Tensor(index), Operand::Tensor(source)];
        Tensor::apply(&self.session(), operation, &operands, smallvec![Attribute::Int(axis)])
    }
}
