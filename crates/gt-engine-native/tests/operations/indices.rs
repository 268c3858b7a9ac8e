//! Operations with an index tensor, large enough for several threads: with odd lengths, repeated
//! entries, along each axis, and with empty indices.

use gt_ir::operation::Sample;
use gt_ir::{Attribute, DType, Meta, Operand, Operation, TensorData, ops};

use crate::operations::machine::{Layout, Machine, shape};
use crate::operations::{check, compute, draw, reference};

type Case = (&'static Operation, Vec<Operand<TensorData>>, Vec<Attribute>);

fn numbers(dtype: DType, dims: &[usize], low: f64, high: f64) -> Operand<TensorData> {
    let number = dims.iter().sum::<usize>() as u64;
    Operand::Tensor(draw(Meta::new(dtype, shape(dims)), low, high, number))
}

/// Returns the operations on a tensor of `dims`, with an index that has `entries` along an axis.
fn cases(dtype: DType, dims: &[usize], along: usize, entries: usize) -> Vec<Case> {
    let mut given = dims.to_vec();
    given[along] = entries;
    let length = dims[along] as f64;
    let x = numbers(dtype, dims, -3.0, 3.0);
    let rows = numbers(dtype, &given, -3.0, 3.0);
    let row_index = numbers(DType::I64, &[entries], 0.0, length);
    // Along other axes, an index of elements may be shorter than the tensor.
    if let Some(axis) = (0..dims.len()).find(|&axis| axis != along) {
        given[axis] -= given[axis].min(1);
    }
    let values = numbers(dtype, &given, -3.0, 3.0);
    let places = numbers(DType::I64, &given, 0.0, length);
    let dim = vec![Attribute::Int(along as i64)];
    let mut all: Vec<Case> = vec![
        (&ops::index::GATHER, vec![x.clone(), places.clone()], dim.clone()),
        (&ops::index::SCATTER_ADD, vec![x.clone(), places.clone(), values.clone()], dim.clone()),
        (&ops::scatter::SCATTER, vec![x.clone(), places.clone(), values.clone()], dim.clone()),
        (&ops::index::INDEX_SELECT, vec![x.clone(), row_index.clone()], dim.clone()),
        (&ops::index::INDEX_ADD, vec![x.clone(), row_index.clone(), rows.clone()], dim.clone()),
        (&ops::index::INDEX_COPY, vec![x.clone(), row_index, rows], dim.clone()),
    ];
    for way in 0..5 {
        let attributes = vec![dim[0].clone(), Attribute::Int(way), Attribute::Bool(way % 2 == 0)];
        let operands = vec![x.clone(), places.clone(), values.clone()];
        all.push((&ops::scatter::SCATTER_REDUCE, operands, attributes));
    }
    all
}

/// Checks that results equal the reference, if there is one, and do not depend on the number of
/// threads.
#[track_caller]
fn check_all(cases: Vec<Case>) {
    for (operation, inputs, attributes) in cases {
        let sample =
            Sample { operands: Default::default(), attributes: attributes.into_iter().collect() };
        let metas: Vec<_> =
            inputs.iter().map(|x| x.map(|data| Meta::new(data.dtype, data.shape))).collect();
        let output = operation.check(&metas, &sample.attributes).unwrap();
        let context = format!("{operation:?} {metas:?} {:?}", sample.attributes);
        let want = reference::compute(operation, &inputs, &sample.attributes, output);
        for layout in [Layout::Contiguous, Layout::Permuted] {
            let run =
                |threads| compute(&mut Machine::new(threads), operation, &inputs, &sample, layout);
            let one = run(1);
            if let Some(want) = &want {
                check(&one, want, &context);
            }
            for threads in [2, 5] {
                assert_eq!(run(threads).bytes, one.bytes, "{context} {threads}");
            }
        }
    }
}

#[test]
fn rows_of_odd_lengths() {
    check_all(cases(DType::F32, &[30_011], 0, 70_001));
    check_all(cases(DType::BF16, &[7], 0, 40_001));
}

#[test]
fn rows_and_columns_of_odd_lengths() {
    check_all(cases(DType::F32, &[701, 67], 0, 1003));
    check_all(cases(DType::F64, &[701, 67], 1, 131));
    check_all(cases(DType::I16, &[13, 301, 5], 1, 1409));
    check_all(cases(DType::F32, &[5, 61, 31], 2, 409));
    check_all(cases(DType::F32, &[3, 401, 37], 0, 7));
}

#[test]
fn an_empty_index_reads_and_writes_nothing() {
    check_all(cases(DType::F32, &[7], 0, 0));
    check_all(cases(DType::F32, &[7, 3], 0, 0));
    check_all(cases(DType::F32, &[7, 3], 1, 0));
    check_all(cases(DType::F32, &[7, 0], 0, 4));
}

#[test]
fn negative_indices() {
    for (low, count) in [(-9.0, 40_001), (0.0, 40_001), (-9.0, 1), (0.0, 0)] {
        let index = numbers(DType::I64, &[count], low, 9.0);
        check_all(vec![(&ops::index::WRAP_INDEX, vec![index], vec![Attribute::Int(9)])]);
    }
}

/// The first entry that is out of range is reported, even if others follow.
#[test]
fn the_first_index_out_of_range_is_reported() {
    let count = 50_000;
    let mut entries = vec![0i64; count];
    (entries[20_000], entries[49_999]) = (11, -12);
    let bytes: Vec<u8> = entries.iter().flat_map(|entry| entry.to_le_bytes()).collect();
    let index = TensorData::new(DType::I64, shape(&[count]), bytes.into()).unwrap();
    let x = numbers(DType::F32, &[11], 0.0, 1.0);
    let source = numbers(DType::F32, &[count], 0.0, 1.0);
    let dim = [Attribute::Int(0)].into_iter().collect();
    let mut machine = Machine::new(2);
    for (operation, with_source) in [
        (&ops::index::GATHER, false),
        (&ops::index::SCATTER_ADD, true),
        (&ops::scatter::SCATTER, true),
        (&ops::index::INDEX_SELECT, false),
        (&ops::index::INDEX_ADD, true),
    ] {
        let mut operands = vec![x.clone(), Operand::Tensor(index.clone())];
        operands.extend(with_source.then(|| source.clone()));
        let operands: Vec<_> =
            operands.iter().map(|x| x.map(|data| machine.create(data.clone()))).collect();
        let output = machine.run(operation, &operands, &dim);
        let reason = machine.fetch(output).unwrap_err().reason;
        assert_eq!(reason, "index 11 is out of range for an axis of length 11", "{operation:?}");
    }
}
