//! Iterating over a tensor with one axis.

use std::sync::Arc;

use gt_ir::{Error, Shape, SourceId};

use super::Tensor;
use super::index::Index;
use super::step::Step;
use super::strides::Strided;
use crate::error::Result;
use crate::session::{Block, Element, Value};
use crate::source;
use crate::tape::grad_enabled;

/// The elements of a tensor with one axis: views of it, as indexing gives them. Nothing is awaited
/// before a value is asked for; then those of a block come at once.
pub struct Elements {
    of: Tensor,
    /// The tensor's value at the last step, and the block of it that is gone through.
    value: Arc<Value>,
    block: Arc<Block>,
    strided: Strided,
    /// Whether the elements are recorded for gradients, which needs their instructions.
    on_tape: bool,
    next: usize,
    source: SourceId,
}

impl Tensor {
    /// Iterates over a tensor with one axis.
    ///
    /// # Errors
    /// Another number of axes.
    pub fn elements(&self) -> Result<Elements> {
        if self.rank() != 1 {
            return Err(Error::TooManyIndices { given: 1, shape: self.shape() }.into());
        }
        let value = self.value();
        Ok(Elements {
            of: self.clone(),
            block: Block::from(&value, 0),
            value,
            strided: self.strided(),
            on_tape: self.requires_grad() && grad_enabled(),
            next: 0,
            source: source::current(),
        })
    }

    /// The value where it is known without a request, as that of an element is once its neighbour's
    /// was fetched.
    pub fn known(&self) -> Option<gt_ir::TensorData> {
        let state = self.fresh();
        let data = state.value.element.get()?.known()?;
        (!state.value.session.is_closed()).then_some(data)
    }
}

impl Elements {
    fn element(&self, place: usize) -> Result<Tensor> {
        let element = Element::new(&self.block, place % Block::LENGTH);
        if self.on_tape {
            let tensor = self.of.index(&[Index::At(place as i64)], &mut || false)?;
            // No other element is there, as the value is new.
            let _ = tensor.lock().value.element.set(element);
            return Ok(tensor);
        }
        let value = self.value.session.element(element, self.source);
        let tensor = Tensor::from_parts(value, None);
        let offset = self.strided.offset + place as i64 * self.strided.strides[0];
        let strided = Strided { offset, ..Strided::contiguous(Shape::SCALAR) };
        tensor.link(&self.of, Some(Step::Element { place }), strided, self.of.bare);
        Ok(tensor)
    }
}

impl Iterator for Elements {
    type Item = Result<Tensor>;

    fn next(&mut self) -> Option<Result<Tensor>> {
        let place = self.next;
        let value = self.of.value();
        if value.meta.shape.rank() != 1 || place >= value.meta.shape.numel() {
            return None;
        }
        let first = place - place % Block::LENGTH;
        if place == first || !Arc::ptr_eq(&value, &self.value) {
            self.block = Block::from(&value, first);
            self.value = value;
        }
        self.next += 1;
        Some(self.element(place))
    }
}
