//! Measures operations in microseconds: `speed THREADS [NAME]`, on that many threads, and only
//! those whose name contains NAME. `speed.py` measures the same with PyTorch; run them alternately
//! and compare.

use std::time::Instant;

use gt_engine_native::{NativeEngine, Tensor};
use gt_ir::instruction::Operands;
use gt_ir::{
    Attribute, Attributes, DType, Meta, Operand, Operation, Scalar, Shape, TensorData, ops,
};
use gt_worker::Engine;

/// Prints the median time of `work` over 15 rounds, in microseconds.
fn time(name: &str, mut work: impl FnMut()) {
    if !std::env::args().nth(2).is_none_or(|only| name.contains(&only)) {
        return;
    }
    let start = Instant::now();
    let mut calls = 0;
    while start.elapsed().as_millis() < 30 {
        work();
        calls += 1;
    }
    let mut rounds: Vec<f64> = (0..15)
        .map(|_| {
            let start = Instant::now();
            (0..calls).for_each(|_| work());
            start.elapsed().as_secs_f64() * 1e6 / f64::from(calls)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    println!("{name}\t{:.3}", rounds[7]);
}

fn create(engine: &mut NativeEngine, dtype: DType, dims: &[usize]) -> Tensor {
    let shape = Shape::new(dims).unwrap();
    let mut bytes = Vec::new();
    for index in 0..shape.numel() {
        let value = (index * 7919 % 1000) as f64 / 500.0 - 1.0;
        let value = if dtype == DType::Bool { (index % 2) as f64 } else { value };
        TensorData::encode(dtype, Scalar::Float(value), &mut bytes);
    }
    engine.create(TensorData::new(dtype, shape, bytes.into()).unwrap()).unwrap()
}

/// Measures a call as a worker makes it: operands are cloned, and the result is dropped.
fn bench(
    engine: &mut NativeEngine,
    name: &str,
    operation: &'static Operation,
    operands: &[Operand<Tensor>],
    attributes: &[Attribute],
) {
    let attributes: Attributes = attributes.iter().cloned().collect();
    let metas: Vec<Operand<Meta>> = operands.iter().map(|x| x.map(Tensor::meta)).collect();
    let output = operation.check(&metas, &attributes).unwrap();
    time(name, || {
        let operands: Operands<Tensor> = operands.iter().cloned().collect();
        engine.run(operation, operands, &attributes, output).unwrap();
    });
}

fn main() {
    let threads = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(2);
    let mut engine = NativeEngine::new(threads);
    let e = &mut engine;
    let mut f32 = |dims: &[usize]| Operand::Tensor(create(e, DType::F32, dims));
    let (small, eight) = (f32(&[64]), f32(&[8]));
    let (square, image, weight, grad) =
        (f32(&[1000, 1000]), f32(&[64, 784]), f32(&[784, 256]), f32(&[64, 256]));
    let (hidden, flat, million, row) =
        (f32(&[64, 256]), f32(&[200_000]), f32(&[1_000_000]), f32(&[256]));
    let positive = {
        let meta = flat.tensor().unwrap().meta();
        let bytes = (0..200_000).flat_map(|i| ((i % 999 + 1) as f32 / 999.0).to_le_bytes());
        let data = TensorData::new(meta.dtype, meta.shape, bytes.collect::<Vec<u8>>().into());
        Operand::Tensor(NativeEngine::new(1).create(data.unwrap()).unwrap())
    };
    let (logits, tall) = (f32(&[64, 10]), f32(&[1000, 784]));
    let batch = f32(&[32, 64, 64]);
    let layers = [f32(&[2048, 1024]), f32(&[1024])];
    let places = {
        let shape = Shape::new(&[1_000_000]).unwrap();
        let bytes = (0..1_000_000i64).flat_map(|i| (i * 7919 % 1_000_000).to_le_bytes());
        let data = TensorData::new(DType::I64, shape, bytes.collect::<Vec<u8>>().into());
        Operand::Tensor(NativeEngine::new(1).create(data.unwrap()).unwrap())
    };
    let squares = [("matmul 8", 8), ("matmul 16", 16), ("matmul 24", 24), ("matmul 32", 32)];
    let squares = squares.map(|(name, n)| (name, f32(&[n, n])));
    let odd = [f32(&[7, 13]), f32(&[13, 5]), f32(&[33, 65]), f32(&[1, 64]), f32(&[64, 64])];
    let (f32_column, tall_column) = (f32(&[64, 1]), f32(&[65, 33]));
    let mask = Operand::Tensor(create(&mut engine, DType::Bool, &[64, 256]));
    let number = |value: f64| Operand::Scalar(Scalar::Float(value));
    let transposed = |x: &Operand<Tensor>, engine: &mut NativeEngine| {
        let meta = x.tensor().unwrap().meta();
        let output = Meta::new(meta.dtype, Shape::new(&[meta.shape[1], meta.shape[0]]).unwrap());
        let order: Attributes = [Attribute::ints(&[1i64, 0])].into_iter().collect();
        let operands = std::iter::once(x.clone()).collect();
        Operand::Tensor(engine.run(&ops::shape::PERMUTE, operands, &order, output).unwrap())
    };
    let (weight_t, image_t) = (transposed(&weight, &mut engine), transposed(&image, &mut engine));
    let reduce = |axes: &[i64]| [Attribute::ints(axes), Attribute::Bool(false)];
    let mut run = |name, operation, operands: &[Operand<Tensor>], attributes: &[Attribute]| {
        bench(&mut engine, name, operation, operands, attributes);
    };
    run("add 8", &ops::binary::ADD, &[eight.clone(), eight], &[]);
    run("add 64", &ops::binary::ADD, &[small.clone(), small.clone()], &[]);
    run("add 64 number", &ops::binary::ADD, &[small, number(1.5)], &[]);
    for (name, square) in squares {
        run(name, &ops::matmul::MATMUL, &[square.clone(), square], &[]);
    }
    let [short, narrow, wide, line, matrix] = odd;
    run("matmul 7x13x5", &ops::matmul::MATMUL, &[short, narrow], &[]);
    run("matmul 1x64x64", &ops::matmul::MATMUL, &[line, matrix.clone()], &[]);
    run("matmul 64x64x1", &ops::matmul::MATMUL, &[matrix, f32_column], &[]);
    run("matmul 33x65x33", &ops::matmul::MATMUL, &[wide, tall_column], &[]);
    run("matmul 1000", &ops::matmul::MATMUL, &[square.clone(), square.clone()], &[]);
    run("matmul 64x784x256", &ops::matmul::MATMUL, &[image, weight], &[]);
    run("matmul 64x256x784 t", &ops::matmul::MATMUL, &[grad.clone(), weight_t], &[]);
    run("matmul 784x64x256 t", &ops::matmul::MATMUL, &[image_t, grad.clone()], &[]);
    run("matmul 32x64x64x64", &ops::matmul::MATMUL, &[batch.clone(), batch], &[]);
    run("add row 64x256", &ops::binary::ADD, &[hidden.clone(), row], &[]);
    run("relu 64x256", &ops::unary::RELU, std::slice::from_ref(&hidden), &[]);
    run("gt 64x256", &ops::compare::GT, &[hidden.clone(), number(0.0)], &[]);
    run("mul mask 64x256", &ops::binary::MUL, &[hidden.clone(), mask], &[]);
    run("sum axis 0 64x256", &ops::reduce::SUM, std::slice::from_ref(&hidden), &reduce(&[0]));
    run("sum axis 1 64x256", &ops::reduce::SUM, std::slice::from_ref(&hidden), &reduce(&[1]));
    run("mean 64x256", &ops::reduce::MEAN, std::slice::from_ref(&hidden), &reduce(&[]));
    run("argmax 64x256", &ops::reduce::ARGMAX, std::slice::from_ref(&hidden), &reduce(&[1]));
    run("mul_add 200k", &ops::ternary::MUL_ADD, &[flat.clone(), flat.clone(), number(-0.01)], &[]);
    run("exp 200k", &ops::unary::EXP, std::slice::from_ref(&flat), &[]);
    run("tanh 200k", &ops::unary::TANH, std::slice::from_ref(&flat), &[]);
    run("sigmoid 200k", &ops::unary::SIGMOID, std::slice::from_ref(&flat), &[]);
    run("log 200k", &ops::unary::LOG, std::slice::from_ref(&positive), &[]);
    run("sin 200k", &ops::unary::SIN, std::slice::from_ref(&flat), &[]);
    run("erf 200k", &ops::unary::ERF, std::slice::from_ref(&flat), &[]);
    run("gelu 200k", &ops::nn::GELU, std::slice::from_ref(&flat), &[Attribute::Int(0)]);
    run("sqrt 200k", &ops::unary::SQRT, std::slice::from_ref(&positive), &[]);
    let scattered = [million.clone(), places, million.clone()];
    run("scatter_add 1M", &ops::index::SCATTER_ADD, &scattered, &[Attribute::Int(0)]);
    run("add 1M", &ops::binary::ADD, &[million.clone(), million.clone()], &[]);
    run("sum 1M", &ops::reduce::SUM, std::slice::from_ref(&million), &reduce(&[]));
    run("cast f64 1M", &ops::unary::CAST, &[million], &[Attribute::DType(DType::F64)]);
    run("log_softmax 64x10", &ops::nn::LOG_SOFTMAX, &[logits], &[Attribute::Int(1)]);
    run("softmax 1000x784", &ops::nn::SOFTMAX, std::slice::from_ref(&tall), &[Attribute::Int(1)]);
    let (rows, scale) = (&layers[0], &layers[1]);
    let (pair, along) = ([rows.clone(), rows.clone()], [Attribute::Int(1)]);
    run("softmax 2048x1024", &ops::nn::SOFTMAX, &pair[..1], &along);
    run("softmax_backward 2048x1024", &ops::gradients::SOFTMAX_BACKWARD, &pair, &along);
    run("log_softmax_backward 2048x1024", &ops::gradients::LOG_SOFTMAX_BACKWARD, &pair, &along);
    let (normal, stats) =
        (&ops::normalization::LAYER_NORM, [Attribute::Int(1), Attribute::Float(1e-5)]);
    run("layer_norm 2048x1024", normal, &[rows.clone(), scale.clone(), scale.clone()], &stats);
    let backward = &ops::normalization::LAYER_NORM_BACKWARD;
    run("layer_norm_backward", backward, &[rows.clone(), rows.clone(), scale.clone()], &stats);
    let of_weight = &ops::normalization::LAYER_NORM_WEIGHT_BACKWARD;
    run("layer_norm_weight_backward", of_weight, &pair, &stats);
    run("sum axis 0 2048x1024", &ops::reduce::SUM, &pair[..1], &reduce(&[0]));
    let key = [1, 2].map(|n| Operand::Scalar(Scalar::Int(n)));
    let size = [Attribute::dims(&[1_000_000]), Attribute::DType(DType::F32), Attribute::dims(&[])];
    run("rand 1M", &ops::random::RAND, &key, &size);
    run("randn 1M", &ops::random::RANDN, &key, &size);
    let range = [1, 2, 0, 1000].map(|n| Operand::Scalar(Scalar::Int(n)));
    let whole = [Attribute::dims(&[1_000_000]), Attribute::DType(DType::I64), Attribute::dims(&[])];
    run("randint 1M", &ops::random::RANDINT, &range, &whole);
    let double =
        [Attribute::dims(&[1_000_000]), Attribute::DType(DType::F64), Attribute::dims(&[])];
    run("randn f64 1M", &ops::random::RANDN, &key, &double);
    let tall_t = transposed(&tall, &mut engine);
    bench(
        &mut engine,
        "transposed copy 784x1000",
        &ops::shape::RESHAPE,
        &[tall_t],
        &[Attribute::dims(&[784_000])],
    );
}
