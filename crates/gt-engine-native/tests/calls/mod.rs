//! Calls of operations: samples, enlarged samples, and their operands.

use gt_engine_native::{NativeEngine, Tensor};
use gt_ir::instruction::Operands;
use gt_ir::operation::SampleOperand;
use gt_ir::ops;
use gt_ir::{Attribute, Attributes, Meta, Operand, Scalar, Shape, TensorData};
use gt_worker::Engine;

/// The approximate size in bytes that operands are enlarged to.
const LARGE: usize = 8 << 20;

/// Operands and attributes.
pub type Call = (Vec<SampleOperand>, Attributes);

fn meta_of(operand: &SampleOperand) -> Operand<Meta> {
    match operand {
        SampleOperand::Tensor { meta, .. } => Operand::Tensor(*meta),
        SampleOperand::Scalar(scalar) => Operand::Scalar(*scalar),
    }
}

/// The shapes and dtypes of a call's operands.
pub fn metas(call: &Call) -> Vec<Operand<Meta>> {
    call.0.iter().map(meta_of).collect()
}

/// Returns the call with the shapes of its tensors changed; `None` if one cannot be changed.
pub fn reshaped(call: &Call, change: impl Fn(&[usize]) -> Option<Vec<usize>>) -> Option<Call> {
    let mut operands = call.0.clone();
    for operand in &mut operands {
        if let SampleOperand::Tensor { meta, .. } = operand {
            meta.shape = Shape::new(&change(meta.shape.dims())?).ok()?;
        }
    }
    Some((operands, call.1.clone()))
}

/// Returns the attributes with one length replaced by another.
fn with_length(attributes: &Attributes, from: usize, to: usize) -> Attributes {
    let other = |value: i64| if value == from as i64 { to as i64 } else { value };
    let change = |attribute: &Attribute| match attribute {
        Attribute::Ints(values) => {
            Attribute::ints(&values.iter().map(|value| other(*value)).collect::<Vec<_>>())
        }
        Attribute::Int(value) => Attribute::Int(other(*value)),
        same => same.clone(),
    };
    attributes.iter().map(change).collect()
}

/// Returns enlarged calls. All candidates are tried, as only the operation determines which are
/// valid.
pub fn enlarged(call: &Call) -> Vec<Call> {
    let bytes = |operand: &SampleOperand| match operand {
        SampleOperand::Tensor { meta, .. } => meta.bytes(),
        SampleOperand::Scalar(_) => 0,
    };
    let factor = LARGE / call.0.iter().map(bytes).max().unwrap_or(0).max(64);
    let mut lengths: Vec<usize> = Vec::new();
    for operand in &call.0 {
        if let SampleOperand::Tensor { meta, .. } = operand {
            lengths.extend(meta.shape.dims());
        }
    }
    let ints = |attribute: &Attribute| match attribute {
        Attribute::Ints(values) => values.iter().map(|value| *value as usize).collect(),
        _ => Vec::new(),
    };
    lengths.extend(call.1.iter().flat_map(ints));
    lengths.sort_unstable();
    lengths.dedup();
    let mut all = Vec::new();
    for length in lengths.into_iter().filter(|length| (1..1000).contains(length)) {
        let to = length * factor;
        let longer = |dims: &[usize]| {
            Some(dims.iter().map(|old| if *old == length { to } else { *old }).collect())
        };
        for attributes in [call.1.clone(), with_length(&call.1, length, to)] {
            all.extend(reshaped(&(call.0.clone(), attributes), longer));
        }
        // Only the first axis of that length.
        let first = |dims: &[usize]| {
            let mut dims = dims.to_vec();
            if let Some(at) = dims.iter().position(|old| *old == length) {
                dims[at] = to;
            }
            Some(dims)
        };
        all.extend(reshaped(call, first));
    }
    all.extend(reshaped(call, |dims| Some([&[factor], dims].concat())));
    all
}

/// Creates an operand with pseudo-random values; if `is_expanded`, one value is repeated.
pub fn create(
    engine: &mut NativeEngine,
    operand: &SampleOperand,
    is_expanded: bool,
) -> Operand<Tensor> {
    let (meta, low, high) = match operand {
        SampleOperand::Scalar(scalar) => return Operand::Scalar(*scalar),
        SampleOperand::Tensor { meta, low, high } => (*meta, *low, *high),
    };
    // An expanded operand stores one element, which is repeated.
    let shape = meta.shape;
    let stored = match is_expanded {
        true => (0..shape.rank()).fold(shape, |shape, axis| shape.with(axis, 1)),
        false => shape,
    };
    let (mut bytes, mut state) = (Vec::with_capacity(stored.numel() * meta.dtype.size()), 1u64);
    for _ in 0..stored.numel() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        let value = low + (high - low) * ((state >> 33) as f64 / (1u64 << 31) as f64);
        let scalar = match meta.dtype.is_float() || meta.dtype.is_complex() {
            true => Scalar::Float(value),
            false => Scalar::Int(value.floor() as i64),
        };
        TensorData::encode(meta.dtype, scalar, &mut bytes);
    }
    let data = TensorData::new(meta.dtype, stored, bytes.into()).expect("the data match the shape");
    let tensor = engine.create(data).expect("memory is available");
    if !is_expanded {
        return Operand::Tensor(tensor);
    }
    let attributes: Attributes = [Attribute::dims(meta.shape.dims())].into_iter().collect();
    let operands: Operands<Tensor> = [Operand::Tensor(tensor)].into_iter().collect();
    let expanded = engine.run(&ops::shape::EXPAND, operands, &attributes, meta);
    Operand::Tensor(expanded.expect("the shape can be expanded"))
}
