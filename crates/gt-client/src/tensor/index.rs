//! Reading and writing parts of a tensor: `x[1:, None, mask]`, `x[index] = value`.

use gt_ir::instruction::Attribute;
use gt_ir::ops::{index as ops, shape as shape_ops};
use gt_ir::shape::axis;
use gt_ir::{DType, Error, Operand, Scalar, Shape};
use smallvec::{SmallVec, smallvec};

use super::Tensor;
use super::elementwise::Value;
use crate::driver::Interrupt;
use crate::error::Result;

/// One entry of an index expression.
#[derive(Clone)]
pub enum Index {
    At(i64),
    /// As Python's slices: negative ends count from the back, ends are cut to the axis.
    Slice {
        start: Option<i64>,
        stop: Option<i64>,
        step: i64,
    },
    NewAxis,
    Ellipsis,
    /// Integers: places along one axis. Bool: a mask over as many axes as it has.
    Tensor(Tensor),
}

/// An index expression resolved against a shape: a region first, then axes rearranged, then
/// places named by tensors.
struct Resolved {
    starts: SmallVec<[i64; 8]>,
    sizes: SmallVec<[i64; 8]>,
    steps: SmallVec<[i64; 8]>,
    /// The region's shape with indexed axes taken away and new ones put in.
    dims: SmallVec<[i64; 8]>,
    /// For each tensor: the axis of `dims` it indexes.
    tensors: Vec<(usize, Tensor)>,
}

impl Tensor {
    /// The part that an index expression names. A bool mask has to be fetched first, since the
    /// shape of the result depends on its values.
    #[track_caller]
    pub fn index(&self, entries: &[Index], interrupt: Interrupt) -> Result<Tensor> {
        let resolved = self.resolve(entries, interrupt)?;
        let part = self.take_region(&resolved)?;
        if resolved.tensors.is_empty() {
            return Ok(part);
        }
        let places = Places::new(&part.shape(), &resolved.tensors)?;
        let rows = part.permute(&places.order)?.reshape(&places.flat_dims)?;
        let picked = rows.index_select(0, &places.flat_index)?;
        picked.reshape(&places.picked_dims)?.permute(&places.back)
    }

    /// This tensor with the part that an index expression names replaced by `value`, which
    /// broadcasts to it.
    #[track_caller]
    pub fn with_index(
        &self,
        entries: &[Index],
        value: Value,
        interrupt: Interrupt,
    ) -> Result<Tensor> {
        // A mask over the whole tensor and one value: no need to know where the mask holds.
        if let [Index::Tensor(mask)] = entries
            && mask.dtype() == DType::Bool
            && mask.shape() == self.shape()
            && value.0.tensor().is_none_or(|value| value.shape().numel() == 1)
        {
            let value = match value.0 {
                Operand::Tensor(tensor) => {
                    Operand::Tensor(tensor.cast(self.dtype())?.reshape(&[])?)
                }
                Operand::Scalar(scalar) => Operand::Scalar(scalar),
            };
            let value = match &value {
                Operand::Tensor(tensor) => Value(Operand::Tensor(tensor)),
                Operand::Scalar(scalar) => Value(Operand::Scalar(*scalar)),
            };
            return Tensor::select(mask, value, self)?.cast(self.dtype());
        }
        let resolved = self.resolve(entries, interrupt)?;
        let region: SmallVec<[usize; 8]> = resolved.dims.iter().map(|&dim| dim as usize).collect();
        let region = Shape::new(&region)?;
        let new_part = if resolved.tensors.is_empty() {
            self.value_for(value, &region)?
        } else {
            let part = self.take_region(&resolved)?;
            let places = Places::new(&part.shape(), &resolved.tensors)?;
            let rows = part.permute(&places.order)?.reshape(&places.flat_dims)?;
            let value = self.value_for(value, &places.result_shape())?;
            let source = value.permute(&places.forth())?.reshape(&places.source_dims())?;
            let operands = [
                Operand::Tensor(&rows),
                Operand::Tensor(&places.flat_index),
                Operand::Tensor(&source),
            ];
            let attributes = smallvec![Attribute::Int(0)];
            let rows = Tensor::apply(&self.session(), &ops::INDEX_COPY, &operands, attributes)?;
            rows.reshape(&places.ordered_dims)?.permute(&invert(&places.order))?
        };
        let attributes = smallvec![
            Attribute::ints(&resolved.starts),
            Attribute::ints(&resolved.sizes),
            Attribute::ints(&resolved.steps)
        ];
        let new_part = new_part.reshape(&resolved.sizes)?;
        let operands = [Operand::Tensor(self), Operand::Tensor(&new_part)];
        Tensor::apply(&self.session(), &shape_ops::SLICE_ASSIGN, &operands, attributes)
    }

    /// `value` in this tensor's dtype, expanded to `shape`. Leading axes of length 1 that the
    /// shape does not have are dropped, as NumPy and PyTorch do in assignments.
    #[track_caller]
    fn value_for(&self, value: Value, shape: &Shape) -> Result<Tensor> {
        let mut tensor = match value.0 {
            Operand::Tensor(tensor) => tensor.cast(self.dtype())?,
            Operand::Scalar(scalar) => {
                Tensor::full(&self.session(), Shape::SCALAR, scalar, self.dtype())?
            }
        };
        while tensor.rank() > shape.rank() && tensor.shape()[0] == 1 {
            tensor = tensor.squeeze(&[0])?;
        }
        if !tensor.shape().expands_to(shape) {
            return Err(Error::ShapeMismatch {
                operation: "setitem",
                given: tensor.shape(),
                expected: format!("one that expands to the indexed part's {shape}"),
            }
            .into());
        }
        tensor.expand_to(shape)
    }

    #[track_caller]
    fn take_region(&self, resolved: &Resolved) -> Result<Tensor> {
        let whole = resolved.sizes == self.dims() && resolved.steps.iter().all(|&step| step == 1);
        let part = if whole {
            self.clone()
        } else {
            self.region(&resolved.starts, &resolved.sizes, &resolved.steps)?
        };
        if part.dims() == resolved.dims {
            return if whole { part.copy() } else { Ok(part) };
        }
        part.reshape(&resolved.dims)
    }

    fn resolve(&self, entries: &[Index], interrupt: Interrupt) -> Result<Resolved> {
        let shape = self.shape();
        let used: usize = entries
            .iter()
            .map(|entry| match entry {
                Index::At(_) | Index::Slice { .. } => 1,
                Index::Tensor(tensor) if tensor.dtype() == DType::Bool => tensor.rank(),
                Index::Tensor(_) => 1,
                Index::NewAxis | Index::Ellipsis => 0,
            })
            .sum();
        if used > shape.rank() {
            return Err(Error::TooManyIndices { given: used, shape }.into());
        }
        if entries.iter().filter(|entry| matches!(entry, Index::Ellipsis)).count() > 1 {
            return Err(Error::RepeatedEllipsis.into());
        }
        let mut resolved = Resolved {
            starts: SmallVec::new(),
            sizes: SmallVec::new(),
            steps: SmallVec::new(),
            dims: SmallVec::new(),
            tensors: Vec::new(),
        };
        for entry in entries {
            match entry {
                Index::Ellipsis => (0..shape.rank() - used).for_each(|_| resolved.whole(&shape)),
                Index::NewAxis => resolved.dims.push(1),
                Index::At(at) => resolved.at(&shape, *at)?,
                Index::Slice { start, stop, step } => {
                    resolved.slice(&shape, *start, *stop, *step)?;
                }
                Index::Tensor(mask) if mask.dtype() == DType::Bool => {
                    for places in mask_places(&shape, resolved.starts.len(), mask, interrupt)? {
                        resolved.tensors.push((resolved.dims.len(), places));
                        resolved.whole(&shape);
                    }
                }
                Index::Tensor(index) => {
                    resolved.tensors.push((resolved.dims.len(), index.clone()));
                    resolved.whole(&shape);
                }
            }
        }
        while resolved.starts.len() < shape.rank() {
            resolved.whole(&shape);
        }
        Ok(resolved)
    }

    /// The values at an index along an axis; the index has the tensor's rank.
    #[track_caller]
    pub fn gather(&self, axis: i64, index: &Tensor) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), Operand::Tensor(index)];
        Tensor::apply(&self.session(), &ops::GATHER, &operands, smallvec![Attribute::Int(axis)])
    }

    /// Values added at an index along an axis; those beyond the index's shape are left out.
    #[track_caller]
    pub fn scatter_add(&self, axis: i64, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        let (lengths, had) = (index.shape(), source.shape());
        let longer = |(length, had): (&usize, &usize)| length <= had;
        if lengths != had
            && lengths.rank() == had.rank()
            && lengths.iter().zip(had.iter()).all(longer)
        {
            let part =
                |&length: &usize| Index::Slice { start: None, stop: Some(length as i64), step: 1 };
            let parts: Vec<_> = lengths.iter().map(part).collect();
            let source = source.index(&parts, &mut || false)?;
            return self.write_at(&ops::SCATTER_ADD, axis, index, &source);
        }
        self.write_at(&ops::SCATTER_ADD, axis, index, source)
    }

    /// Slices along an axis added at the places that an index names.
    #[track_caller]
    pub fn index_add(&self, axis: i64, index: &Tensor, source: &Tensor) -> Result<Tensor> {
        self.write_at(&ops::INDEX_ADD, axis, index, source)
    }

    #[track_caller]
    fn write_at(
        &self,
        operation: &'static gt_ir::Operation,
        axis: i64,
        index: &Tensor,
        source: &Tensor,
    ) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), Operand::Tensor(index), Operand::Tensor(source)];
        Tensor::apply(&self.session(), operation, &operands, smallvec![Attribute::Int(axis)])
    }

    /// Slices along an axis in the order an index names.
    #[track_caller]
    pub fn index_select(&self, axis: i64, index: &Tensor) -> Result<Tensor> {
        let operands = [Operand::Tensor(self), Operand::Tensor(index)];
        let attributes = smallvec![Attribute::Int(axis)];
        Tensor::apply(&self.session(), &ops::INDEX_SELECT, &operands, attributes)
    }

    /// The places where the tensor is not zero, one row each. Fetches the tensor.
    #[track_caller]
    pub fn nonzero(&self, interrupt: Interrupt) -> Result<Tensor> {
        let data = self.fetch_with(interrupt)?;
        let places = true_places(&data);
        let flat: Vec<i64> = places.concat();
        let dims = [places.len(), self.rank()];
        Tensor::from_slice(&self.session(), &flat, &dims)
    }
}

impl Resolved {
    fn region(&mut self, start: i64, size: i64, step: i64) {
        self.starts.push(start);
        self.sizes.push(size);
        self.steps.push(step);
    }

    fn whole(&mut self, shape: &Shape) {
        let length = shape[self.starts.len()] as i64;
        self.region(0, length, 1);
        self.dims.push(length);
    }

    fn at(&mut self, shape: &Shape, at: i64) -> Result<()> {
        let axis = self.starts.len();
        let length = shape[axis];
        let place = if at < 0 { at + length as i64 } else { at };
        if place < 0 || place >= length as i64 {
            return Err(Error::BadIndex { operation: "index", index: at, axis, length }.into());
        }
        self.region(place, 1, 1);
        Ok(())
    }

    fn slice(
        &mut self,
        shape: &Shape,
        start: Option<i64>,
        stop: Option<i64>,
        step: i64,
    ) -> Result<()> {
        if step < 1 {
            return Err(Error::BadStep { step }.into());
        }
        let length = shape[self.starts.len()] as i64;
        let cut =
            |end: i64| (if end < 0 { end.saturating_add(length) } else { end }).clamp(0, length);
        let start = start.map_or(0, cut);
        let stop = stop.map_or(length, cut);
        let size = (stop - start).max(0).div_euclid(step)
            + i64::from((stop - start).max(0).rem_euclid(step) != 0);
        self.region(start, size, if size == 0 { 1 } else { step });
        self.dims.push(size);
        Ok(())
    }
}

/// The places where a mask over the axes from `first` on holds: an index for each of its axes.
fn mask_places(
    shape: &Shape,
    first: usize,
    mask: &Tensor,
    interrupt: Interrupt,
) -> Result<Vec<Tensor>> {
    let covered = &shape[first..(first + mask.rank()).min(shape.rank())];
    if covered != mask.shape().dims() || mask.rank() == 0 {
        return Err(Error::ShapeMismatch {
            operation: "index",
            given: mask.shape(),
            expected: format!("a mask as long as the axes it covers, {covered:?} of {shape}"),
        }
        .into());
    }
    let places = true_places(&mask.fetch_with(interrupt)?);
    (0..mask.rank())
        .map(|axis| {
            let along: Vec<i64> = places.iter().map(|place| place[axis]).collect();
            Tensor::from_slice(&mask.session(), &along, &[along.len()])
        })
        .collect()
}

/// The index of each element that is not zero.
fn true_places(data: &gt_ir::TensorData) -> Vec<Vec<i64>> {
    let strides = data.shape.strides();
    (0..data.shape.numel())
        .filter(|&flat| data.element(flat).as_f64() != 0.0)
        .map(|flat| {
            let place = |axis: usize| (flat / strides[axis] % data.shape[axis]) as i64;
            (0..data.shape.rank()).map(place).collect()
        })
        .collect()
}

/// How to read and write the places that index tensors name: the indexed axes go to the front
/// and become one axis of rows, which one flat index names.
struct Places {
    /// The axes with the indexed ones in front.
    order: SmallVec<[i64; 8]>,
    /// The lengths in that order.
    ordered_dims: SmallVec<[i64; 8]>,
    /// The same with the indexed axes as one.
    flat_dims: SmallVec<[i64; 8]>,
    flat_index: Tensor,
    /// What is picked: the index's axes, then the rest.
    picked_dims: SmallVec<[i64; 8]>,
    /// Where the index's axes belong in the result.
    back: SmallVec<[i64; 8]>,
}

impl Places {
    #[track_caller]
    fn new(shape: &Shape, tensors: &[(usize, Tensor)]) -> Result<Places> {
        let indexed: Vec<usize> = tensors.iter().map(|(axis, _)| *axis).collect();
        let rest: Vec<usize> = (0..shape.rank()).filter(|axis| !indexed.contains(axis)).collect();
        let order: SmallVec<[i64; 8]> =
            indexed.iter().chain(&rest).map(|&axis| axis as i64).collect();
        let ordered_dims: SmallVec<[i64; 8]> =
            order.iter().map(|&axis| shape[axis as usize] as i64).collect();
        let rows: i64 = ordered_dims[..indexed.len()].iter().product();
        let rest_dims = &ordered_dims[indexed.len()..];
        let flat_dims = [rows].iter().chain(rest_dims).copied().collect();

        let (index, index_shape) = flat_index(shape, tensors)?;
        let count = index.shape().numel() as i64;
        let flat_index = index.reshape(&[count])?;
        let index_dims: Vec<i64> = index_shape.iter().map(|&dim| dim as i64).collect();
        let picked_dims: SmallVec<[i64; 8]> = index_dims.iter().chain(rest_dims).copied().collect();

        // Side by side, the index's axes take the place of the indexed ones; else they come first.
        let adjacent = indexed.windows(2).all(|pair| pair[1] == pair[0] + 1);
        let before = if adjacent { indexed[0] } else { 0 };
        let k = index_dims.len();
        let back = (k..k + before).chain(0..k).chain(k + before..picked_dims.len());
        let back = back.map(|axis| axis as i64).collect();
        Ok(Places { order, ordered_dims, flat_dims, flat_index, picked_dims, back })
    }

    /// From the result's order of axes to that of what is picked.
    fn forth(&self) -> SmallVec<[i64; 8]> {
        invert(&self.back)
    }

    fn result_shape(&self) -> Shape {
        let dims: Vec<usize> =
            self.back.iter().map(|&axis| self.picked_dims[axis as usize] as usize).collect();
        Shape::new(&dims).expect("a permutation of a shape")
    }

    /// The shape in which values are written: one row for each place.
    fn source_dims(&self) -> SmallVec<[i64; 8]> {
        let count = self.flat_index.shape()[0] as i64;
        [count].iter().chain(&self.flat_dims[1..]).copied().collect()
    }
}

/// One index into the indexed axes taken as one, from an index for each.
#[track_caller]
fn flat_index(shape: &Shape, tensors: &[(usize, Tensor)]) -> Result<(Tensor, Shape)> {
    let mut flat: Option<Tensor> = None;
    for (axis, index) in tensors {
        let length = shape[*axis] as i64;
        let wrapped = index.apply_unary(&ops::WRAP_INDEX, smallvec![Attribute::Int(length)])?;
        flat = Some(match flat {
            None => wrapped,
            Some(flat) => flat.mul(Scalar::Int(length))?.add(&wrapped)?,
        });
    }
    let flat = flat.expect("called with one tensor or more");
    let shape = flat.shape();
    Ok((flat, shape))
}

/// The permutation that undoes `order`.
fn invert(order: &[i64]) -> SmallVec<[i64; 8]> {
    let mut back: SmallVec<[i64; 8]> = smallvec![0; order.len()];
    for (to, &from) in order.iter().enumerate() {
        let from = axis(from, order.len(), "permute").expect("a permutation");
        back[from] = to as i64;
    }
    back
}
