//! Compares every operation of the instruction set, on each of its samples, with plain loops.

mod bits;
mod edges;
mod indices;
mod machine;
mod products;
mod reference;

use gt_engine_native::simd::{self, InstructionSet};
use gt_ir::operation::{Sample, SampleOperand};
use gt_ir::ops::custom::CUSTOM;
use gt_ir::philox::RandomStream;
use gt_ir::{DType, Meta, Operand, Operation, Scalar, Shape, TensorData, ops};
use machine::{Layout, Machine};

/// Draws values from `low..high`; integers for the exact dtypes.
fn draw(meta: Meta, low: f64, high: f64, number: u64) -> TensorData {
    let stream = RandomStream::new(2026, number);
    let mut bytes = Vec::new();
    for index in 0..meta.shape.numel() as u64 {
        let value = low + (high - low) * stream.uniform_f64(index);
        let value = if meta.dtype.is_float() { value } else { value.floor() };
        TensorData::encode(meta.dtype, Scalar::Float(value), &mut bytes);
    }
    TensorData::new(meta.dtype, meta.shape, bytes.into()).unwrap()
}

fn inputs(sample: &Sample) -> Vec<Operand<TensorData>> {
    let draw = |(index, operand): (usize, &SampleOperand)| match operand {
        SampleOperand::Tensor { meta, low, high } => {
            Operand::Tensor(draw(*meta, *low, *high, index as u64))
        }
        SampleOperand::Scalar(scalar) => Operand::Scalar(*scalar),
    };
    sample.operands.iter().enumerate().map(draw).collect()
}

/// Returns the largest error of a result, relative and absolute.
fn tolerance(dtype: DType) -> f64 {
    match dtype {
        DType::F16 => 4e-3,
        DType::BF16 => 3e-2,
        DType::F32 | DType::C64 => 2e-5,
        DType::F64 | DType::C128 => 1e-12,
        _ => 0.0,
    }
}

fn check(got: &TensorData, want: &[f64], context: &str) {
    assert_eq!(got.shape.numel(), want.len(), "{context}");
    let off = tolerance(got.dtype);
    for (index, &want) in want.iter().enumerate() {
        let got = got.element(index).as_f64();
        let equal = got == want || (got.is_nan() && want.is_nan());
        let near = (got - want).abs() <= off * want.abs().max(1.0);
        assert!(equal || near, "{context}: element {index} is {got}, not {want}");
    }
}

fn values(data: &TensorData) -> Vec<f64> {
    (0..data.shape.numel()).map(|index| data.element(index).as_f64()).collect()
}

/// Computes a sample with every tensor in one layout.
fn compute(
    machine: &mut Machine,
    operation: &'static Operation,
    inputs: &[Operand<TensorData>],
    sample: &Sample,
    layout: Layout,
) -> TensorData {
    let operands: Vec<_> =
        inputs.iter().map(|input| input.map(|data| machine.lay_out(data, layout))).collect();
    let output = machine.run(operation, &operands, &sample.attributes);
    let result = machine
        .fetch(output)
        .unwrap_or_else(|failure| panic!("{operation:?} {sample:?}: {}", failure.reason));
    machine.free_all();
    result
}

/// Iterates over all operations except custom ones, which this engine does not have.
fn computed() -> impl Iterator<Item = &'static Operation> {
    ops::ALL.iter().copied().filter(|operation| **operation != CUSTOM)
}

#[test]
fn every_operation_equals_the_reference() {
    let mut machine = Machine::new(2);
    for operation in computed() {
        for sample in (operation.samples)() {
            let inputs = inputs(&sample);
            let metas = ops::sample::metas(&sample);
            let output = operation.check(&metas, &sample.attributes).unwrap();
            let context = format!("{operation:?} {sample:?}");
            let want = reference::compute(operation, &inputs, &sample.attributes, output);
            let Some(want) = want else { continue };
            for layout in Layout::ALL {
                let got = compute(&mut machine, operation, &inputs, &sample, layout);
                assert_eq!(Meta::new(got.dtype, got.shape), output, "{context}");
                check(&got, &want, &format!("{context} {layout:?}"));
            }
        }
    }
}

/// An expanded operand has equal values along an axis, so the inputs are prepared accordingly.
#[test]
fn expanded_operands_equal_their_copies() {
    let mut machine = Machine::new(2);
    for operation in computed() {
        for sample in (operation.samples)() {
            let mut inputs = inputs(&sample);
            for input in &mut inputs {
                if let Operand::Tensor(data) = input
                    && data.shape.rank() > 0
                {
                    *data = machine.repeat_first(data);
                }
            }
            let plain = compute(&mut machine, operation, &inputs, &sample, Layout::Contiguous);
            let expanded = compute(&mut machine, operation, &inputs, &sample, Layout::Expanded);
            check(&expanded, &values(&plain), &format!("{operation:?} {sample:?} expanded"));
        }
    }
}

/// Loops compiled for older machines have the same results. The limit applies to all tests of this
/// process, whose results must not depend on it.
#[test]
fn every_instruction_set_computes_the_same_bits() {
    let mut machine = Machine::new(1);
    let mut results: Vec<TensorData> = Vec::new();
    for level in [InstructionSet::V4, InstructionSet::V3, InstructionSet::Base] {
        simd::limit(level);
        let mut at = 0;
        for operation in computed() {
            for sample in (operation.samples)() {
                let inputs = inputs(&sample);
                let got = compute(&mut machine, operation, &inputs, &sample, Layout::Contiguous);
                match results.get(at) {
                    Some(want) => check(&got, &values(want), &format!("{operation:?} {level:?}")),
                    None => results.push(got),
                }
                at += 1;
            }
        }
    }
    simd::limit(InstructionSet::V4);
}

/// Tensors of odd lengths that are large enough for several threads, blocks and tiles.
#[test]
fn large_tensors_equal_on_any_number_of_threads() {
    use gt_ir::Attribute;
    let dims = |dims: &[usize]| Meta::new(DType::F32, Shape::new(dims).unwrap());
    let x = Operand::Tensor(draw(dims(&[701, 1003]), -1.0, 1.0, 1));
    let row = Operand::Tensor(draw(dims(&[1003]), -1.0, 1.0, 2));
    let mask =
        Operand::Tensor(draw(Meta { dtype: DType::Bool, ..dims(&[701, 1003]) }, 0.0, 2.0, 3));
    let left = Operand::Tensor(draw(dims(&[301, 203]), -1.0, 1.0, 4));
    let low = Operand::Tensor(draw(dims(&[19, 203]), -1.0, 1.0, 6));
    let right = Operand::Tensor(draw(dims(&[203, 133]), -1.0, 1.0, 5));
    let number = Operand::Scalar(Scalar::Float(-0.5));
    let reduce = |axes: &[i64]| vec![Attribute::ints(axes), Attribute::Bool(false)];
    type Case<'a> = (&'static Operation, Vec<&'a Operand<TensorData>>, Vec<Attribute>);
    let cases: Vec<Case> = vec![
        (&ops::binary::ADD, vec![&x, &row], vec![]),
        (&ops::binary::MUL, vec![&x, &mask], vec![]),
        (&ops::compare::GT, vec![&x, &number], vec![]),
        (&ops::ternary::MUL_ADD, vec![&x, &x, &number], vec![]),
        (&ops::unary::EXP, vec![&x], vec![]),
        (&ops::reduce::SUM, vec![&x], reduce(&[])),
        (&ops::reduce::SUM, vec![&x], reduce(&[0])),
        (&ops::reduce::MEAN, vec![&x], reduce(&[1])),
        (&ops::reduce::AMAX, vec![&mask], reduce(&[0])),
        (&ops::nn::LOG_SOFTMAX, vec![&x], vec![Attribute::Int(1)]),
        (&ops::nn::SOFTMAX, vec![&x], vec![Attribute::Int(0)]),
        (&ops::matmul::MATMUL, vec![&left, &right], vec![]),
        (&ops::matmul::MATMUL, vec![&low, &right], vec![]),
        (&ops::cumulative::CUMSUM, vec![&x], vec![Attribute::Int(0)]),
    ];
    for (operation, operands, attributes) in cases {
        let inputs: Vec<_> = operands.into_iter().cloned().collect();
        let attributes = attributes.into_iter().collect();
        let sample = Sample { operands: Default::default(), attributes };
        let metas: Vec<_> =
            inputs.iter().map(|x| x.map(|data| Meta::new(data.dtype, data.shape))).collect();
        let output = operation.check(&metas, &sample.attributes).unwrap();
        let want = reference::compute(operation, &inputs, &sample.attributes, output);
        let want = want.expect("the operation has a reference");
        for threads in [1, 2, 5] {
            let mut machine = Machine::new(threads);
            for layout in [Layout::Contiguous, Layout::Permuted] {
                let got = compute(&mut machine, operation, &inputs, &sample, layout);
                let context = format!("{operation:?} {threads} {layout:?}");
                // Sums of many numbers in float32 are compared with sums in float64.
                let loose: Vec<f64> = values(&got)
                    .iter()
                    .zip(&want)
                    .map(|(got, want)| if (got - want).abs() < 2e-4 { *got } else { *want })
                    .collect();
                check(&got, &loose, &context);
            }
        }
    }
}

/// The sums over rows of layer normalization are bitwise equal.
#[test]
fn layer_normalization_does_not_depend_on_the_number_of_threads() {
    use gt_ir::Attribute;
    use ops::normalization as n;
    let dims = |dims: &[usize]| Meta::new(DType::F32, Shape::new(dims).unwrap());
    let x = Operand::Tensor(draw(dims(&[701, 303]), -1.0, 1.0, 1));
    let grad = Operand::Tensor(draw(dims(&[701, 303]), -1.0, 1.0, 2));
    let row = Operand::Tensor(draw(dims(&[303]), -1.0, 1.0, 3));
    let cases: [(&'static Operation, Vec<_>); 3] = [
        (&n::LAYER_NORM, vec![x.clone(), row.clone(), row.clone()]),
        (&n::LAYER_NORM_BACKWARD, vec![grad.clone(), x.clone(), row]),
        (&n::LAYER_NORM_WEIGHT_BACKWARD, vec![grad, x]),
    ];
    let attributes = [Attribute::Int(1), Attribute::Float(1e-5)].into_iter().collect();
    let sample = Sample { operands: Default::default(), attributes };
    for (operation, inputs) in cases {
        let with = |threads| {
            let mut machine = Machine::new(threads);
            values(&compute(&mut machine, operation, &inputs, &sample, Layout::Contiguous))
        };
        let alone = with(1);
        for threads in [2, 5] {
            assert!(with(threads) == alone, "{operation:?} {threads}");
        }
    }
}
