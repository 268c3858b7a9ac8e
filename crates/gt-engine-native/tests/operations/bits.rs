//! The bits of a result depend on shapes and values, and not on the strides of operands.

use gt_ir::operation::Sample;
use gt_ir::{Attribute, DType, Meta, Operand, Operation, TensorData, ops};

use crate::operations::machine::{Layout, Machine, shape};
use crate::operations::{computed, draw, inputs};

/// Runs an operation with a layout for each operand, and returns all results.
fn run(
    machine: &mut Machine,
    operation: &'static Operation,
    inputs: &[Operand<TensorData>],
    sample: &Sample,
    layouts: impl Fn(usize) -> Layout,
) -> Vec<TensorData> {
    let lay_out = |(index, input): (usize, &Operand<TensorData>)| {
        input.map(|data| machine.lay_out(data, layouts(index)))
    };
    let operands: Vec<_> = inputs.iter().enumerate().map(lay_out).collect();
    let results = machine.run_all(operation, &operands, &sample.attributes);
    let results = results.into_iter().map(|result| {
        let fetched = machine.fetch(result);
        fetched.unwrap_or_else(|failure| panic!("{operation:?} {sample:?}: {}", failure.reason))
    });
    let results = results.collect();
    machine.free_all();
    results
}

/// Returns whether all elements are equal to the last bit; NaNs are equal to each other.
fn is_same(a: &TensorData, b: &TensorData) -> bool {
    let part = match a.dtype {
        DType::C64 => 4,
        DType::C128 => 8,
        dtype => dtype.size(),
    };
    let is_nan = |bytes: &[u8]| match (a.dtype, bytes.len()) {
        (DType::F16, _) => bytes[1] & 0x7c == 0x7c && (bytes[1] & 3 != 0 || bytes[0] != 0),
        (DType::BF16, _) => f32::from_le_bytes([0, 0, bytes[0], bytes[1]]).is_nan(),
        (DType::F32 | DType::C64, _) => f32::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
        (DType::F64 | DType::C128, _) => f64::from_le_bytes(bytes.try_into().unwrap()).is_nan(),
        _ => false,
    };
    (a.dtype, a.shape) == (b.dtype, b.shape)
        && a.bytes
            .chunks(part)
            .zip(b.bytes.chunks(part))
            .all(|(a, b)| a == b || is_nan(a) && is_nan(b))
}

/// Compares the results of each layout, of all operands and of each alone, with those of contiguous
/// operands; returns the differences.
fn check_layouts(
    machine: &mut Machine,
    operation: &'static Operation,
    inputs: &[Operand<TensorData>],
    sample: &Sample,
) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut compare = |machine: &mut Machine, inputs: &[Operand<TensorData>], layout: Layout| {
        let want = run(machine, operation, inputs, sample, |_| Layout::Contiguous);
        for only in (0..inputs.len() + 1).rev() {
            if only < inputs.len() && (inputs.len() < 2 || inputs[only].tensor().is_none()) {
                continue;
            }
            let got = run(machine, operation, inputs, sample, |index| {
                if only == inputs.len() || only == index { layout } else { Layout::Contiguous }
            });
            if !got.iter().zip(&want).all(|(got, want)| is_same(got, want)) {
                let shapes: Vec<_> = inputs.iter().map(|x| x.map(|x| x.shape)).collect();
                wrong.push(format!("{operation:?} {shapes:?} {layout:?}, operand {only}"));
            }
        }
    };
    for layout in [Layout::Permuted, Layout::Sliced, Layout::Flipped] {
        compare(machine, inputs, layout);
    }
    let mut repeated = inputs.to_vec();
    for input in &mut repeated {
        if let Operand::Tensor(data) = input
            && data.shape.rank() > 0
        {
            *data = machine.repeat_first(data);
        }
    }
    compare(machine, &repeated, Layout::Expanded);
    wrong
}

#[test]
fn every_operation_has_the_same_bits_for_any_strides() {
    let mut machine = Machine::new(2);
    let mut wrong = Vec::new();
    for operation in computed() {
        for sample in (operation.samples)() {
            wrong.extend(check_layouts(&mut machine, operation, &inputs(&sample), &sample));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// Tensors too large for the loops for small ones: several blocks, tiles and threads.
#[test]
fn large_tensors_have_the_same_bits_for_any_strides() {
    let mut wrong = Vec::new();
    for (dtype, operation, shapes, attributes) in large() {
        let sample =
            Sample { operands: Default::default(), attributes: attributes.into_iter().collect() };
        let tensor = |(number, dims): (usize, &Vec<usize>)| {
            let meta = Meta::new(dtype, shape(dims));
            Operand::Tensor(draw(meta, -1.0, 1.0, number as u64))
        };
        let inputs: Vec<_> = shapes.iter().enumerate().map(tensor).collect();
        for threads in [1, 3] {
            let mut machine = Machine::new(threads);
            let found = check_layouts(&mut machine, operation, &inputs, &sample);
            wrong.extend(found.into_iter().map(|text| format!("{text} {dtype:?} {threads}")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

type Case = (DType, &'static Operation, Vec<Vec<usize>>, Vec<Attribute>);

fn large() -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    let products: [[&[usize]; 2]; 22] = [
        [&[64, 5000], &[5000, 1]],
        [&[64, 5000], &[5000, 32]],
        [&[1, 5000], &[5000, 64]],
        [&[1, 1000], &[1000, 1100]],
        [&[1100, 1000], &[1000, 1]],
        [&[1, 9000], &[9000, 1]],
        [&[7, 9001], &[9001, 3]],
        [&[16, 700], &[700, 16]],
        [&[2, 700], &[700, 100]],
        [&[801, 2], &[2, 700]],
        [&[801, 1], &[1, 700]],
        [&[33, 65], &[65, 34]],
        [&[130, 600], &[600, 140]],
        [&[65, 1500], &[1500, 66]],
        [&[300, 130], &[130, 17]],
        [&[5, 40, 700], &[700, 1]],
        [&[5, 1, 700], &[700, 90]],
        [&[5, 40, 300], &[300, 50]],
        [&[5, 40, 300], &[5, 300, 50]],
        [&[5, 1, 300], &[5, 300, 50]],
        [&[40, 300], &[5, 300, 50]],
        [&[3, 4, 20, 64], &[3, 1, 64, 70]],
    ];
    for dtype in [DType::F32, DType::F64, DType::BF16, DType::C64, DType::C128] {
        for shapes in products {
            let shapes = shapes.map(<[usize]>::to_vec).to_vec();
            cases.push((dtype, &ops::matmul::MATMUL, shapes, vec![]));
        }
    }
    let shapes: [&[usize]; 5] =
        [&[500, 601], &[5, 30_001], &[30_001, 5], &[70_000], &[20, 30, 40, 11]];
    for dtype in [DType::F32, DType::F64, DType::F16, DType::C64] {
        for dims in shapes {
            let rank = dims.len() as i64;
            let mut axes: Vec<Vec<i64>> = vec![vec![], vec![0], vec![rank - 1]];
            axes.extend((rank > 1).then(|| vec![0, rank - 1]));
            axes.extend((rank > 2).then(|| vec![1, 2]));
            for axes in axes {
                let attributes = || vec![Attribute::ints(&axes), Attribute::Bool(true)];
                for operation in [&ops::reduce::SUM, &ops::reduce::MEAN, &ops::reduce::PROD] {
                    cases.push((dtype, operation, vec![dims.to_vec()], attributes()));
                }
                if dtype != DType::C64 {
                    cases.push((dtype, &ops::reduce::AMAX, vec![dims.to_vec()], attributes()));
                }
            }
            for axis in [0, rank - 1] {
                let axis = || vec![Attribute::Int(axis)];
                cases.push((dtype, &ops::cumulative::CUMSUM, vec![dims.to_vec()], axis()));
                if dtype != DType::C64 {
                    cases.push((dtype, &ops::nn::SOFTMAX, vec![dims.to_vec()], axis()));
                    cases.push((dtype, &ops::nn::LOG_SOFTMAX, vec![dims.to_vec()], axis()));
                }
            }
        }
    }
    cases
}
