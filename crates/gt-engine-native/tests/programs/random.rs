//! Random traces.

use gt_engine_native::NativeEngine;
use gt_ir::ops::{
    binary as b, compare as c, matmul, nn, reduce as r, shape as s, slice, ternary as t, unary as u,
};
use gt_ir::philox::RandomStream;
use gt_ir::trace::{Input, Source, Trace};
use gt_ir::{Attribute, Attributes, DType, Meta, Operand, Operation, Scalar, Shape};
use gt_worker::Engine;
use smallvec::{SmallVec, smallvec};

/// A stream of random numbers.
pub struct Dice {
    stream: RandomStream,
    /// The number of draws so far.
    pub thrown: u64,
}

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice { stream: RandomStream::new(77, seed), thrown: 0 }
    }

    pub fn below(&mut self, bound: usize) -> usize {
        (self.fraction() * bound as f64) as usize
    }

    pub fn fraction(&mut self) -> f64 {
        self.thrown += 1;
        self.stream.uniform_f64(self.thrown)
    }

    fn pick<T: Copy>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())]
    }
}

const UNARY: &[&Operation] = &[
    &u::NEG,
    &u::ABS,
    &u::SIGN,
    &u::EXP,
    &u::SQRT,
    &u::SIN,
    &u::SIGMOID,
    &u::TANH,
    &u::RELU,
    &u::FLOOR,
    &u::LOGICAL_NOT,
    &u::ISNAN,
    &nn::SILU,
    &u::ERF,
    &u::RSQRT,
];

const BINARY: &[&Operation] = &[
    &b::ADD,
    &b::SUB,
    &b::MUL,
    &b::DIV,
    &b::MAXIMUM,
    &b::MINIMUM,
    &b::POW,
    &b::REMAINDER,
    &c::LT,
    &c::EQ,
    &c::LOGICAL_AND,
    &b::ADD,
    &b::MUL,
    &b::SUB,
];

const REDUCE: &[&Operation] =
    &[&r::SUM, &r::MEAN, &r::AMAX, &r::AMIN, &r::SUM, &r::ARGMAX, &r::ANY];

/// The most elements of a tensor.
const MOST: usize = 1 << 21;

/// Creates a trace of up to 25 steps over inputs of few, related shapes.
pub fn random_trace(dice: &mut Dice) -> Trace {
    let (rows, columns) = dice.pick(&[
        (3, 5),
        (64, 10),
        (1, 7),
        (33, 257),
        (5, 1),
        (130, 1100),
        (2, 9000),
        (6, 6),
        (15, 17),
        (40, 40),
    ]);
    let shapes: [&[usize]; 8] = [
        &[rows, columns],
        &[rows, columns],
        &[columns],
        &[rows, 1],
        &[1, columns],
        &[],
        &[2, rows, columns],
        &[rows, columns],
    ];
    let mut inputs = Vec::new();
    for _ in 0..2 + dice.below(4) {
        let dtype = match dice.below(12) {
            0 => DType::I64,
            1 => DType::Bool,
            2 => DType::F64,
            3 => DType::F16,
            4 => DType::I32,
            5 => DType::BF16,
            _ => DType::F32,
        };
        let meta = Meta::new(dtype, Shape::new(dice.pick(&shapes)).unwrap());
        inputs.push(Input::Tensor(meta));
    }
    for _ in 0..dice.below(3) {
        inputs.push(Input::Number(dice.pick(&[Scalar::Float(0.25), Scalar::Int(3)])));
    }
    let mut trace = Trace::new(inputs);
    let steps = 1 + dice.below(25);
    let mut tries = 0;
    while trace.steps.len() < steps && tries < 200 {
        tries += 1;
        grow(&mut trace, dice);
    }
    let made = trace.inputs.len() as u32..trace.values() as u32;
    trace.outputs = made.filter(|_| dice.below(3) == 0).collect();
    if trace.outputs.is_empty() && !trace.steps.is_empty() {
        trace.outputs.push(trace.values() as u32 - 1);
    }
    trace
}

/// Adds a random step, if the draw is a valid operation.
fn grow(trace: &mut Trace, dice: &mut Dice) {
    let tensors: Vec<u32> =
        (0..trace.values() as u32).filter(|&value| trace.meta(value).tensor().is_some()).collect();
    let numbers: Vec<u32> =
        (0..trace.inputs.len() as u32).filter(|&v| trace.meta(v).tensor().is_none()).collect();
    // Recent values are more likely, to create chains.
    let recent = tensors.len().saturating_sub(4);
    let tensor = |dice: &mut Dice| {
        if dice.below(2) == 0 { dice.pick(&tensors) } else { dice.pick(&tensors[recent..]) }
    };
    let operand = |dice: &mut Dice| -> Source {
        match dice.below(6) {
            0 if !numbers.is_empty() => Operand::Tensor(dice.pick(&numbers)),
            1 => Operand::Scalar(dice.pick(&[
                Scalar::Float(0.5),
                Scalar::Int(2),
                Scalar::Float(3.0),
                Scalar::Bool(true),
            ])),
            _ => Operand::Tensor(tensor(dice)),
        }
    };
    let x = tensor(dice);
    let meta = *trace.meta(x).tensor().unwrap();
    let (shape, rank) = (meta.shape, meta.shape.rank());
    let first: Source = Operand::Tensor(x);
    let (operation, operands, attributes): (&'static Operation, SmallVec<[Source; 3]>, Attributes) =
        match dice.below(20) {
            0..5 => (dice.pick(UNARY), smallvec![first], smallvec![]),
            5..10 => {
                let second = operand(dice);
                let swaps = dice.below(3) == 0;
                let operands =
                    if swaps { smallvec![second, first] } else { smallvec![first, second] };
                (dice.pick(BINARY), operands, smallvec![])
            }
            10..13 if rank > 0 => {
                let axes: Vec<i64> = match dice.below(4) {
                    0 => vec![],
                    1 => vec![rank as i64 - 1],
                    2 => vec![0],
                    _ => vec![dice.below(rank) as i64],
                };
                let keeps = Attribute::Bool(dice.below(3) > 0);
                (dice.pick(REDUCE), smallvec![first], smallvec![Attribute::ints(&axes), keeps])
            }
            13 => {
                let dtype =
                    dice.pick(&[DType::F32, DType::F16, DType::F64, DType::I32, DType::BF16]);
                (&u::CAST, smallvec![first], smallvec![Attribute::DType(dtype)])
            }
            14 if rank == 2 => {
                (&s::PERMUTE, smallvec![first], smallvec![Attribute::ints(&[1i64, 0])])
            }
            15 if rank > 0 => {
                let sizes = shape.with(0, shape[0].div_ceil(2));
                let mut starts = vec![0i64; rank];
                starts[0] = (shape[0] / 3) as i64;
                let steps = vec![1i64; rank];
                let lists = smallvec![
                    Attribute::ints(&starts),
                    Attribute::dims(&sizes),
                    Attribute::ints(&steps)
                ];
                (&slice::SLICE, smallvec![first], lists)
            }
            16 => {
                let (second, third) = (operand(dice), operand(dice));
                let operation = dice.pick(&[&t::MUL_ADD, &t::CLAMP, &t::WHERE]);
                (operation, smallvec![first, second, third], smallvec![])
            }
            17 => {
                let second = Operand::Tensor(tensor(dice));
                (&matmul::MATMUL, smallvec![first, second], smallvec![])
            }
            18 if rank > 0 => {
                let operation = dice.pick(&[&nn::SOFTMAX, &nn::LOG_SOFTMAX]);
                (operation, smallvec![first], smallvec![Attribute::Int(rank as i64 - 1)])
            }
            19 if rank > 0 => {
                (&s::RESHAPE, smallvec![first], smallvec![Attribute::ints(&[shape.numel() as i64])])
            }
            _ => (&nn::GELU, smallvec![first], smallvec![Attribute::Bool(dice.below(2) == 0)]),
        };
    let lowers = |operation: &'static Operation| NativeEngine::new(1).lowers(operation);
    let is_made = trace.push(&lowers, operation, operands, attributes, smallvec![]).is_ok();
    if is_made && trace.steps.last().is_some_and(|step| step.output.shape.numel() > MOST) {
        trace.steps.pop();
    }
}
