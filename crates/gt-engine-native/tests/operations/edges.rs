//! Cases that samples do not cover: the limits of ranges, NaN, errors, and shared memory.

use gt_engine_native::NativeEngine;
use gt_ir::{Attribute, DType, Operand, Operation, Scalar, TensorData, ops};
use gt_worker::Engine;

use crate::operations::machine::{Machine, shape};

fn data(dtype: DType, dims: &[usize], values: &[f64]) -> TensorData {
    let mut bytes = Vec::new();
    for &value in values {
        let whole = value.fract() == 0.0 && !dtype.is_float();
        let scalar = if whole { Scalar::Int(value as i64) } else { Scalar::Float(value) };
        TensorData::encode(dtype, scalar, &mut bytes);
    }
    TensorData::new(dtype, shape(dims), bytes.into()).unwrap()
}

fn row(dtype: DType, values: &[f64]) -> TensorData {
    data(dtype, &[values.len()], values)
}

type Attributes<'a> = &'a [Attribute];

fn run(
    operation: &'static Operation,
    operands: &[Operand<TensorData>],
    attributes: Attributes,
) -> Result<TensorData, String> {
    let mut machine = Machine::new(2);
    let operands: Vec<_> =
        operands.iter().map(|x| x.map(|data| machine.create(data.clone()))).collect();
    let output = machine.run(operation, &operands, &attributes.iter().cloned().collect());
    machine.fetch(output).map_err(|failure| failure.reason)
}

fn values(data: &TensorData) -> Vec<f64> {
    (0..data.shape.numel()).map(|index| data.element(index).as_f64()).collect()
}

#[track_caller]
fn check(operation: &'static Operation, dtype: DType, operands: &[&[f64]], want: &[f64]) {
    let operands: Vec<_> = operands.iter().map(|x| Operand::Tensor(row(dtype, x))).collect();
    let got = values(&run(operation, &operands, &[]).unwrap());
    let equal = |(got, want): (&f64, &f64)| got == want || (got.is_nan() && want.is_nan());
    assert!(got.iter().zip(want).all(equal), "{operation:?}: {got:?}, not {want:?}");
}

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

#[test]
fn integers_wrap() {
    check(&ops::binary::ADD, DType::U8, &[&[250.0], &[10.0]], &[4.0]);
    check(&ops::binary::MUL, DType::I8, &[&[100.0], &[3.0]], &[44.0]);
    check(&ops::binary::SUB, DType::I16, &[&[-32768.0], &[1.0]], &[32767.0]);
    check(&ops::unary::ABS, DType::I8, &[&[-128.0]], &[-128.0]);
    check(&ops::unary::NEG, DType::U8, &[&[1.0]], &[255.0]);
}

#[test]
fn division_rounds_down_and_remainders_take_the_divisors_sign() {
    for dtype in [DType::I8, DType::I32, DType::I64, DType::F32, DType::F64, DType::BF16] {
        let operands: [&[f64]; 2] = [&[7.0, -7.0, 7.0, -7.0], &[2.0, 2.0, -2.0, -2.0]];
        check(&ops::binary::FLOOR_DIVIDE, dtype, &operands, &[3.0, -4.0, -4.0, 3.0]);
        check(&ops::binary::REMAINDER, dtype, &operands, &[1.0, 1.0, -1.0, -1.0]);
    }
    check(&ops::binary::FLOOR_DIVIDE, DType::I8, &[&[-128.0], &[-1.0]], &[-128.0]);
    let odd: [&[f64]; 2] = [&[5.0, -5.0, 1.0, -1.0, INF], &[0.0, 0.0, INF, INF, 2.0]];
    check(&ops::binary::FLOOR_DIVIDE, DType::F32, &odd, &[INF, -INF, 0.0, -1.0, NAN]);
    check(&ops::binary::REMAINDER, DType::F32, &odd, &[NAN, NAN, 1.0, INF, NAN]);
}

#[test]
fn integer_division_by_zero_is_an_error() {
    for operation in [&ops::binary::FLOOR_DIVIDE, &ops::binary::REMAINDER] {
        let one = Operand::Tensor(row(DType::I64, &[1.0, 2.0]));
        let zero = Operand::Tensor(row(DType::I64, &[1.0, 0.0]));
        assert_eq!(
            run(operation, &[one.clone(), zero], &[]).unwrap_err(),
            "integer division by zero"
        );
        assert!(run(operation, &[one, Operand::Scalar(Scalar::Int(0))], &[]).is_err());
    }
}

#[test]
fn powers_of_integers() {
    let operands: [&[f64]; 2] =
        [&[2.0, 3.0, 0.0, 1.0, -1.0, 7.0], &[-1.0, 4.0, 0.0, -3.0, -3.0, 0.0]];
    check(&ops::binary::POW, DType::I32, &operands, &[0.0, 81.0, 1.0, 1.0, -1.0, 1.0]);
    let x = Operand::Tensor(row(DType::I64, &[2.0]));
    assert!(run(&ops::binary::POW, &[x, Operand::Scalar(Scalar::Int(-1))], &[]).is_err());
}

#[test]
fn nan_propagates() {
    let operands: [&[f64]; 2] = [&[NAN, 1.0, 1.0], &[1.0, NAN, 2.0]];
    check(&ops::binary::MAXIMUM, DType::F32, &operands, &[NAN, NAN, 2.0]);
    check(&ops::binary::MINIMUM, DType::F64, &operands, &[NAN, NAN, 1.0]);
    check(&ops::unary::RELU, DType::F32, &[&[NAN, -1.0]], &[NAN, 0.0]);
    check(&ops::unary::SIGN, DType::F32, &[&[NAN, -INF]], &[0.0, -1.0]);
    let x = Operand::Tensor(row(DType::F32, &[1.0, NAN, 3.0, NAN]));
    let all = [Attribute::ints::<i64>(&[]), Attribute::Bool(false)];
    for (operation, want) in [(&ops::reduce::ARGMAX, 1.0), (&ops::reduce::ARGMIN, 1.0)] {
        assert_eq!(values(&run(operation, std::slice::from_ref(&x), &all).unwrap()), [want]);
    }
    for operation in [&ops::reduce::AMAX, &ops::reduce::AMIN, &ops::reduce::SUM] {
        assert!(values(&run(operation, std::slice::from_ref(&x), &all).unwrap())[0].is_nan());
    }
}

#[test]
fn functions_at_special_values() {
    check(&ops::unary::ROUND, DType::F32, &[&[0.5, 1.5, 2.5, -0.5]], &[0.0, 2.0, 2.0, 0.0]);
    check(&ops::unary::LOG, DType::F16, &[&[0.0, -1.0, INF]], &[-INF, NAN, INF]);
    let far = [1e7f32, -3e9, 0.5, f32::INFINITY].map(f64::from);
    let sines = far.map(|x| f64::from((x as f32).sin()));
    check(&ops::unary::SIN, DType::F32, &[&far], &sines);
    let low = Operand::Tensor(row(DType::F32, &[-INF; 3]));
    let softmax = run(&ops::nn::SOFTMAX, &[low], &[Attribute::Int(0)]).unwrap();
    assert!(values(&softmax).iter().all(|x| x.is_nan()));
}

#[test]
fn reductions_of_empty_tensors() {
    let empty = Operand::Tensor(data(DType::F32, &[0, 3], &[]));
    let flags = [Attribute::ints(&[0i64]), Attribute::Bool(false)];
    let reduced =
        |operation| values(&run(operation, std::slice::from_ref(&empty), &flags).unwrap());
    assert_eq!(reduced(&ops::reduce::SUM), [0.0; 3]);
    assert_eq!(reduced(&ops::reduce::PROD), [1.0; 3]);
    assert_eq!(reduced(&ops::reduce::ANY), [0.0; 3]);
    assert_eq!(reduced(&ops::reduce::ALL), [1.0; 3]);
    assert!(reduced(&ops::reduce::MEAN).iter().all(|x| x.is_nan()));
    let nothing = Operand::Tensor(data(DType::F32, &[2, 0], &[]));
    let product = run(&ops::matmul::MATMUL, &[nothing, empty], &[]).unwrap();
    assert_eq!(values(&product), [0.0; 6]);
}

#[test]
fn indices_out_of_range_are_errors() {
    let x = Operand::Tensor(data(DType::F32, &[3, 2], &[0.0; 6]));
    let axis = [Attribute::Int(0)];
    for bad in [3.0, -1.0, 1e18] {
        let index = Operand::Tensor(row(DType::I64, &[0.0, bad]));
        let grid = Operand::Tensor(data(DType::I64, &[1, 2], &[0.0, bad]));
        let rows = Operand::Tensor(data(DType::F32, &[2, 2], &[0.0; 4]));
        let cells = Operand::Tensor(data(DType::F32, &[1, 2], &[0.0; 2]));
        let cases: [(&'static Operation, Vec<Operand<TensorData>>); 5] = [
            (&ops::index::GATHER, vec![x.clone(), grid.clone()]),
            (&ops::index::SCATTER_ADD, vec![x.clone(), grid, cells]),
            (&ops::index::INDEX_SELECT, vec![x.clone(), index.clone()]),
            (&ops::index::INDEX_ADD, vec![x.clone(), index.clone(), rows.clone()]),
            (&ops::index::INDEX_COPY, vec![x.clone(), index, rows]),
        ];
        for (operation, operands) in cases {
            let error = run(operation, &operands, &axis).unwrap_err();
            let want = format!("index {bad} is out of range for an axis of length 3");
            assert_eq!(error, want, "{operation:?}");
        }
    }
    let index = Operand::Tensor(row(DType::I64, &[-4.0]));
    assert!(run(&ops::index::WRAP_INDEX, &[index], &[Attribute::Int(3)]).is_err());
}

#[test]
fn randint_needs_a_range() {
    let numbers = [1, 2, 5, 5].map(|n| Operand::Scalar(Scalar::Int(n)));
    let attributes = [Attribute::dims(&[2]), Attribute::DType(DType::I64), Attribute::dims(&[])];
    assert!(run(&ops::random::RANDINT, &numbers, &attributes).is_err());
}

#[test]
fn random_numbers_stay_below_one_in_every_dtype() {
    for dtype in [DType::F16, DType::BF16, DType::F32, DType::F64] {
        let numbers = [7, 1].map(|n| Operand::Scalar(Scalar::Int(n)));
        let whole = Attribute::dims(&[]);
        let attributes = [Attribute::dims(&[100_000]), Attribute::DType(dtype), whole];
        let result = run(&ops::random::RAND, &numbers, &attributes).unwrap();
        assert!(values(&result).iter().all(|x| (0.0..1.0).contains(x)), "{dtype}");
    }
}

#[test]
fn fetched_and_shared_values_are_not_overwritten() {
    let mut engine = NativeEngine::new(1);
    let add = |engine: &mut NativeEngine, x| {
        let operands = [Operand::Tensor(x), Operand::Scalar(Scalar::Float(1.0))];
        let output = gt_ir::Meta::new(DType::F32, shape(&[40_000]));
        engine.run(&ops::binary::ADD, operands.into_iter().collect(), &Default::default(), output)
    };
    // Uploaded memory is shared with the code that uploaded it.
    let upload = row(DType::F32, &[1.0; 40_000]);
    let x = engine.create(upload.clone()).unwrap();
    let x = add(&mut engine, x).unwrap();
    assert_eq!(upload.element(0).as_f64(), 1.0);
    // Fetched values do not change afterwards.
    let read = engine.read(&x).unwrap();
    let x = add(&mut engine, x).unwrap();
    assert_eq!(
        (read.element(0).as_f64(), engine.read(&x).unwrap().element(0).as_f64()),
        (2.0, 3.0)
    );
    // Nor does a clone; afterwards the last reference is reused.
    let kept = x.clone();
    let x = add(&mut engine, x).unwrap();
    assert_eq!(engine.read(&kept).unwrap().element(39_999).as_f64(), 3.0);
    assert_eq!(engine.read(&x).unwrap().element(39_999).as_f64(), 4.0);
}

#[test]
fn large_uploads_and_fetches_share_their_memory() {
    let mut engine = NativeEngine::new(1);
    let upload = row(DType::F32, &[1.0; 40_000]);
    let x = engine.create(upload.clone()).unwrap();
    assert_eq!(engine.read(&x).unwrap().bytes.as_ptr(), upload.bytes.as_ptr());
    // Unaligned memory is copied.
    let bytes = bytes::Bytes::from(vec![0u8; 400_001]).slice(1..);
    let odd = TensorData::new(DType::F32, shape(&[100_000]), bytes).unwrap();
    let x = engine.create(odd.clone()).unwrap();
    assert_eq!(engine.read(&x).unwrap(), odd);
    let read = (engine.read(&x).unwrap(), engine.read(&x).unwrap());
    assert_eq!(read.0.bytes.as_ptr(), read.1.bytes.as_ptr());
}

#[test]
fn uploaded_bools_become_0_or_1() {
    let bytes = bytes::Bytes::from_static(&[0, 2, 255, 1]);
    let odd = TensorData::new(DType::Bool, shape(&[4]), bytes).unwrap();
    let flags = [Attribute::ints::<i64>(&[]), Attribute::Bool(false)];
    let sum = run(&ops::reduce::SUM, &[Operand::Tensor(odd)], &flags).unwrap();
    assert_eq!(values(&sum), [3.0]);
}

#[test]
fn wrong_data_is_refused() {
    let mut engine = NativeEngine::new(1);
    let short = TensorData { dtype: DType::F32, shape: shape(&[4]), bytes: vec![0; 15].into() };
    assert!(engine.create(short).is_err());
}
