//! Iteration over a tensor with one axis.

use std::sync::Arc;

use gt_ir::{Error, Shape, SourceId};

use super::Tensor;
use super::index::Index;
use super::strides::Strided;
use super::view_step::ViewStep;
use crate::context::records_gradients;
use crate::error::Result;
use crate::session::{BlockElement, ElementBlock, StreamValue};
use crate::source;

/// The elements of a tensor with one axis: views of it, as indexing returns them. Nothing waits
/// until a value is requested; then the values of a block are fetched together.
pub struct ElementIter {
    of: Tensor,
    /// The tensor's value at the last element, and the current block of it.
    value: Arc<StreamValue>,
    block: Arc<ElementBlock>,
    strided: Strided,
    /// Whether the elements are recorded on the tape, so that each needs its instructions.
    on_tape: bool,
    /// Whether a batch axis is hidden, so that elements cannot be fetched in blocks.
    in_vmap: bool,
    next: usize,
    source: SourceId,
}

impl Tensor {
    /// Returns an iterator over a tensor with one axis.
    ///
    /// # Errors
    /// The tensor has another number of axes.
    pub fn elements(&self) -> Result<ElementIter> {
        if self.rank() != 1 {
            return Err(Error::TooManyIndices { given: 1, shape: self.shape() }.into());
        }
        let value = self.value();
        Ok(ElementIter {
            of: self.clone(),
            block: ElementBlock::from(&value, 0),
            value,
            strided: self.strided(),
            on_tape: self.requires_grad() && records_gradients(),
            in_vmap: self.is_batched(),
            next: 0,
            source: source::current(),
        })
    }

    /// Returns the value, if it is known without a request: that of an element whose block was
    /// fetched.
    pub fn known(&self) -> Option<gt_ir::TensorData> {
        let state = self.fresh();
        let data = state.value.element.get()?.known()?;
        (!state.value.session.is_closed()).then_some(data)
    }
}

impl ElementIter {
    fn element(&self, index: usize) -> Result<Tensor> {
        if self.in_vmap {
            return self.of.index(&[Index::At(index as i64)], &mut || false);
        }
        let element = BlockElement::new(&self.block, index % ElementBlock::LENGTH);
        if self.on_tape {
            let tensor = self.of.index(&[Index::At(index as i64)], &mut || false)?;
            // No other element exists, as the value is new.
            let _ = tensor.lock().value.element.set(element);
            return Ok(tensor);
        }
        let value = self.value.session.element(element, self.source);
        let tensor = Tensor::from_parts(value, None);
        let offset = self.strided.offset + index as i64 * self.strided.strides[0];
        let strided = Strided { offset, ..Strided::contiguous(Shape::SCALAR) };
        tensor.link(&self.of, Some(ViewStep::Element { index }), strided, self.of.detached);
        Ok(tensor)
    }
}

impl Iterator for ElementIter {
    type Item = Result<Tensor>;

    fn next(&mut self) -> Option<Result<Tensor>> {
        let index = self.next;
        let value = self.of.value();
        if value.meta.shape.rank() != 1 || index >= value.meta.shape.numel() {
            return None;
        }
        let first = index - index % ElementBlock::LENGTH;
        if index == first || !Arc::ptr_eq(&value, &self.value) {
            self.block = ElementBlock::from(&value, first);
            self.value = value;
        }
        self.next += 1;
        Some(self.element(index))
    }
}
