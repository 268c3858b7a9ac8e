//! Elements of a value, as iterating over a tensor yields them.
//!
//! Their values are fetched in blocks: a request for one also fetches its neighbours. The
//! instructions that extract an element are issued when it is used in a computation.

use std::sync::atomic::{AtomicBool, AtomicI64};
use std::sync::{Arc, OnceLock};

use gt_ir::instruction::{Operands, Results};
use gt_ir::ops::{shape, slice};
use gt_ir::{
    Attribute, Attributes, Meta, Operand, Operation, Shape, SourceId, TensorData, TensorId,
};
use smallvec::smallvec;

use super::issue::UNKNOWN_COUNT;
use super::{Session, StreamValue};
use crate::context::{self, CallSite, invalidate_recording};
use crate::error::Result;

/// Neighbouring elements of a value with one axis, which are fetched together.
pub(crate) struct ElementBlock {
    of: Arc<StreamValue>,
    start: usize,
    length: usize,
    data: OnceLock<TensorData>,
}

/// One element of a block.
#[derive(Clone)]
pub(crate) struct BlockElement {
    block: Arc<ElementBlock>,
    /// Its index in the block.
    at: usize,
}

impl ElementBlock {
    /// The number of elements of a block: it amortizes a request's fixed cost, and fetches few
    /// unused elements.
    pub const LENGTH: usize = 1024;

    /// Returns the block that starts with an element.
    pub fn from(of: &Arc<StreamValue>, start: usize) -> Arc<ElementBlock> {
        let length = ElementBlock::LENGTH.min(of.meta.shape.numel() - start);
        Arc::new(ElementBlock { of: Arc::clone(of), start, length, data: OnceLock::new() })
    }

    /// Returns the value of exactly the block's elements.
    pub fn value(&self, source: SourceId) -> Result<Arc<StreamValue>> {
        if self.length == self.of.meta.shape.numel() {
            return Ok(Arc::clone(&self.of));
        }
        sliced(&self.of, self.start, self.length, source)
    }
}

impl BlockElement {
    pub fn new(block: &Arc<ElementBlock>, at: usize) -> BlockElement {
        BlockElement { block: Arc::clone(block), at }
    }

    pub fn block(&self) -> &ElementBlock {
        &self.block
    }

    /// Returns the element's value, if its block was fetched.
    pub fn known(&self) -> Option<TensorData> {
        invalidate_recording();
        let data = self.block.data.get()?;
        let size = data.dtype.size();
        let bytes = data.bytes.slice(self.at * size..(self.at + 1) * size);
        Some(TensorData { dtype: data.dtype, shape: Shape::SCALAR, bytes })
    }

    /// Returns the element's value from its block's.
    pub fn keep(&self, block: TensorData) -> TensorData {
        self.block.data.get_or_init(|| block);
        self.known().expect("the block was just fetched")
    }

    /// Issues the instructions that extract the element.
    fn issue(&self, source: SourceId) -> TensorId {
        let place = self.block.start + self.at;
        let one = sliced(&self.block.of, place, 1, source).expect("it is within the value");
        let attributes = smallvec![Attribute::dims(&Shape::SCALAR)];
        let (id, _) = issue(&one, &shape::RESHAPE, attributes, source)
            .expect("one element can do without an axis");
        id
    }
}

impl StreamValue {
    /// Returns its id in the stream. An element gets its id, and its instructions are issued, at
    /// the first call.
    pub fn id(&self) -> TensorId {
        *self.id.get_or_init(|| {
            let element = self.element.get().expect("all but elements have been issued");
            element.issue(self.source)
        })
    }
}

impl Session {
    /// Returns an element whose instructions are issued when it is used.
    pub(crate) fn element(&self, element: BlockElement, source: SourceId) -> Arc<StreamValue> {
        let meta = Meta::new(element.block.of.meta.dtype, Shape::SCALAR);
        Arc::new(StreamValue {
            id: OnceLock::new(),
            meta,
            source,
            session: self.clone(),
            true_count: AtomicI64::new(UNKNOWN_COUNT),
            element: OnceLock::from(element),
            is_committed: AtomicBool::new(false),
            is_kept: AtomicBool::new(false),
            batched: None,
        })
    }
}

/// Slices a value with one axis.
fn sliced(
    of: &StreamValue,
    start: usize,
    length: usize,
    source: SourceId,
) -> Result<Arc<StreamValue>> {
    let attributes = smallvec![
        Attribute::ints(&[start as i64]),
        Attribute::ints(&[length as i64]),
        Attribute::ints(&[1])
    ];
    let (id, meta) = issue(of, &slice::SLICE, attributes, source)?;
    Ok(of.session.value(id, meta, source))
}

fn issue(
    of: &StreamValue,
    operation: &'static Operation,
    attributes: Attributes,
    source: SourceId,
) -> Result<(TensorId, Meta)> {
    let metas = [Operand::Tensor(of.meta)];
    let meta = operation.check(&metas, &attributes)?;
    let work = operation.work(&metas, meta);
    let operands = Operands::from_iter([Operand::Tensor(of.id())]);
    let results = Results::from_buf([meta]);
    let id = context::with(|context| {
        let site = CallSite { context, source };
        of.session.issue(site, operation, operands, attributes, results, &[], work)
    });
    Ok((id, meta))
}
