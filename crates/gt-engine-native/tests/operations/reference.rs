//! What every operation means, as plainly as it can be said: loops over float64.

use gt_ir::operation::{bool, int, ints};
use gt_ir::philox::Stream;
use gt_ir::shape::{axes, axis};
use gt_ir::{Attributes, DType, Meta, Operand, Operation, Shape, TensorData};

/// A tensor of float64, which holds every value of the samples exactly.
#[derive(Clone)]
struct Array {
    shape: Shape,
    values: Vec<f64>,
}

impl Array {
    /// The element at a position of a shape this one broadcasts to.
    fn at(&self, position: &[usize]) -> f64 {
        let extra = position.len() - self.shape.rank();
        let strides = self.shape.strides();
        let offset: usize = (0..self.shape.rank())
            .map(
                |axis| {
                    if self.shape[axis] == 1 { 0 } else { position[extra + axis] * strides[axis] }
                },
            )
            .sum();
        self.values[offset]
    }
}

/// Every position of a shape, in row-major order.
fn positions(shape: &Shape) -> Vec<Vec<usize>> {
    (0..shape.numel())
        .map(|mut index| {
            let mut position = vec![0; shape.rank()];
            for axis in (0..shape.rank()).rev() {
                position[axis] = index % shape[axis];
                index /= shape[axis];
            }
            position
        })
        .collect()
}

fn array(operand: &Operand<TensorData>) -> Array {
    match operand {
        Operand::Tensor(data) => Array {
            shape: data.shape,
            values: (0..data.shape.numel()).map(|i| data.element(i).as_f64()).collect(),
        },
        Operand::Scalar(scalar) => Array { shape: Shape::SCALAR, values: vec![scalar.as_f64()] },
    }
}

/// A value as the output's dtype holds it.
fn rounded(dtype: DType, value: f64) -> f64 {
    match dtype {
        DType::Bool => f64::from(u8::from(value != 0.0)),
        DType::U8 => f64::from(value as i64 as u8),
        DType::I8 => f64::from(value as i64 as i8),
        DType::I16 => f64::from(value as i64 as i16),
        DType::I32 => f64::from(value as i64 as i32),
        DType::I64 => value.trunc(),
        DType::F16 => half::f16::from_f64(value).to_f64(),
        DType::BF16 => half::bf16::from_f64(value).to_f64(),
        DType::F32 => f64::from(value as f32),
        DType::F64 => value,
    }
}

/// The result's values.
pub fn compute(
    operation: &Operation,
    operands: &[Operand<TensorData>],
    attributes: &Attributes,
    output: Meta,
) -> Vec<f64> {
    let x: Vec<Array> = operands.iter().map(array).collect();
    let each = |f: &dyn Fn(&[f64]) -> f64| -> Vec<f64> {
        positions(&output.shape)
            .iter()
            .map(|position| f(&x.iter().map(|x| x.at(position)).collect::<Vec<_>>()))
            .collect()
    };
    let values = elementwise(operation.name, attributes)
        .map(|f| each(&*f))
        .or_else(|| created(operation.name, &x, attributes, output))
        .or_else(|| reduced(operation.name, &x, attributes))
        .or_else(|| moved(operation.name, &x, attributes, output))
        .or_else(|| indexed(operation.name, &x, attributes, output))
        .unwrap_or_else(|| panic!("{operation:?} has no reference"));
    values.into_iter().map(|value| rounded(output.dtype, value)).collect()
}

type Function<'a> = Box<dyn Fn(&[f64]) -> f64 + 'a>;

fn elementwise(name: &str, attributes: &Attributes) -> Option<Function<'static>> {
    let truth = |x: f64| x != 0.0;
    let number = |x: bool| f64::from(u8::from(x));
    let whole = |f: fn(i64, i64) -> i64| -> Function<'static> {
        Box::new(move |x: &[f64]| f(x[0] as i64, x[1] as i64) as f64)
    };
    let one = |f: fn(f64) -> f64| -> Function { Box::new(move |x: &[f64]| f(x[0])) };
    let two = |f: fn(f64, f64) -> f64| -> Function { Box::new(move |x: &[f64]| f(x[0], x[1])) };
    Some(match name {
        "cast" | "place" => one(|x| x),
        "neg" => one(|x| -x),
        "abs" => one(f64::abs),
        "sign" => one(|x| if x == 0.0 { 0.0 } else { x.signum() }),
        "exp" => one(f64::exp),
        "log" => one(f64::ln),
        "log1p" => one(f64::ln_1p),
        "expm1" => one(f64::exp_m1),
        "sqrt" => one(f64::sqrt),
        "rsqrt" => one(|x| 1.0 / x.sqrt()),
        "sin" => one(f64::sin),
        "cos" => one(f64::cos),
        "erf" => one(libm::erf),
        "sigmoid" => one(|x| 1.0 / (1.0 + (-x).exp())),
        "tanh" => one(f64::tanh),
        "relu" => one(|x| x.max(0.0)),
        "floor" => one(f64::floor),
        "ceil" => one(f64::ceil),
        "round" => one(f64::round_ties_even),
        "logical_not" => Box::new(move |x| number(!truth(x[0]))),
        // For bool the result's rounding would make 1 of every odd bit pattern.
        "bitwise_not" => return None,
        "isnan" => Box::new(move |x| number(x[0].is_nan())),
        "gelu" if bool(attributes, 0) => one(|x| {
            0.5 * x
                * (1.0 + ((2.0 / std::f64::consts::PI).sqrt() * (x + 0.044715 * x.powi(3))).tanh())
        }),
        "gelu" => one(|x| 0.5 * x * (1.0 + libm::erf(x / 2f64.sqrt()))),
        "silu" => one(|x| x / (1.0 + (-x).exp())),
        "softplus" => one(|x| x.exp().ln_1p()),
        "add" => two(|a, b| a + b),
        "sub" => two(|a, b| a - b),
        "mul" => two(|a, b| a * b),
        "div" => two(|a, b| a / b),
        "floor_divide" => two(|a, b| (a / b).floor()),
        "remainder" => two(|a, b| a - b * (a / b).floor()),
        "pow" => two(f64::powf),
        "maximum" => two(f64::max),
        "minimum" => two(f64::min),
        "bitwise_and" => whole(|a, b| a & b),
        "bitwise_or" => whole(|a, b| a | b),
        "bitwise_xor" => whole(|a, b| a ^ b),
        "eq" => Box::new(move |x| number(x[0] == x[1])),
        "ne" => Box::new(move |x| number(x[0] != x[1])),
        "lt" => Box::new(move |x| number(x[0] < x[1])),
        "le" => Box::new(move |x| number(x[0] <= x[1])),
        "gt" => Box::new(move |x| number(x[0] > x[1])),
        "ge" => Box::new(move |x| number(x[0] >= x[1])),
        "logical_and" => Box::new(move |x| number(truth(x[0]) && truth(x[1]))),
        "logical_or" => Box::new(move |x| number(truth(x[0]) || truth(x[1]))),
        "logical_xor" => Box::new(move |x| number(truth(x[0]) != truth(x[1]))),
        "where" => Box::new(move |x| if truth(x[0]) { x[1] } else { x[2] }),
        "clamp" => Box::new(|x| x[0].max(x[1]).min(x[2])),
        "mul_add" => Box::new(|x| x[0] + x[1] * x[2]),
        _ => return None,
    })
}

fn created(name: &str, x: &[Array], attributes: &Attributes, output: Meta) -> Option<Vec<f64>> {
    let n = output.shape.numel();
    let number = |index: usize| x[index].values[0];
    let stream = || Stream::new(number(0) as u64, number(1) as u64);
    // Where each element is in the whole tensor, of which this may be a part.
    let place = |position: &[usize]| match attributes.get(2) {
        Some(gt_ir::Attribute::Ints(part)) if !part.is_empty() => {
            let (starts, whole) = part.split_at(part.len() / 2);
            position.iter().zip(starts).zip(whole).fold(0, |place, ((&at, &start), &length)| {
                place * length as u64 + at as u64 + start as u64
            })
        }
        _ => position
            .iter()
            .zip(output.shape.dims())
            .fold(0, |place, (&at, &length)| place * length as u64 + at as u64),
    };
    let places: Vec<u64> = positions(&output.shape).iter().map(|at| place(at)).collect();
    let indices = places.into_iter();
    Some(match name {
        "full" => vec![number(0); n],
        "arange" => (0..n).map(|i| number(0) + i as f64 * number(1)).collect(),
        "linspace" if n == 1 => vec![number(0)],
        "linspace" => {
            let step = (number(1) - number(0)) / (n.max(2) - 1) as f64;
            (0..n).map(|i| number(0) + i as f64 * step).collect()
        }
        "eye" => {
            positions(&output.shape).iter().map(|at| f64::from(u8::from(at[0] == at[1]))).collect()
        }
        "rand" if output.dtype == DType::F64 => indices.map(|i| stream().uniform_f64(i)).collect(),
        "rand" => indices.map(|i| f64::from(stream().uniform_f32(i))).collect(),
        "randn" => indices.map(|i| stream().normal(i)).collect(),
        "randint" => indices
            .map(|i| stream().integer(i, number(2) as i64, number(3) as i64) as f64)
            .collect(),
        "bitwise_not" => (x[0].values.iter())
            .map(
                |&value| {
                    if output.dtype == DType::Bool { 1.0 - value } else { !(value as i64) as f64 }
                },
            )
            .collect(),
        _ => return None,
    })
}

/// The elements that go into each result, for each result in row-major order.
fn groups(x: &Array, gone: &[usize]) -> Vec<Vec<f64>> {
    let kept = gone.iter().fold(x.shape, |shape, &axis| shape.with(axis, 1));
    let mut groups = vec![Vec::new(); kept.numel()];
    for (position, value) in positions(&x.shape).iter().zip(&x.values) {
        let mut index = 0;
        for axis in 0..x.shape.rank() {
            index = index * kept[axis] + if gone.contains(&axis) { 0 } else { position[axis] };
        }
        groups[index].push(*value);
    }
    groups
}

/// The first of the elements that no other is better than.
fn best(values: &[f64], better: fn(f64, f64) -> bool) -> f64 {
    let mut best = 0;
    for (index, &value) in values.iter().enumerate() {
        if better(value, values[best]) {
            best = index;
        }
    }
    best as f64
}

fn reduced(name: &str, x: &[Array], attributes: &Attributes) -> Option<Vec<f64>> {
    let sum = |values: &[f64]| values.iter().sum::<f64>();
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let variance = |values: &[f64]| {
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let squares: f64 = values.iter().map(|x| (x - mean).powi(2)).sum();
        squares / (values.len() as f64 - int(attributes, 2) as f64)
    };
    let truth = |x: bool| f64::from(u8::from(x));
    let f: Function = match name {
        "sum" => Box::new(sum),
        "mean" => Box::new(mean),
        "prod" => Box::new(|values| values.iter().product()),
        "amax" => Box::new(|values| values.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
        "amin" => Box::new(|values| values.iter().copied().fold(f64::INFINITY, f64::min)),
        "argmax" => Box::new(|values| best(values, |a, b| a > b)),
        "argmin" => Box::new(|values| best(values, |a, b| a < b)),
        "var" => Box::new(variance),
        "std" => Box::new(move |values| variance(values).sqrt()),
        "any" => Box::new(move |values| truth(values.iter().any(|&x| x != 0.0))),
        "all" => Box::new(move |values| truth(values.iter().all(|&x| x != 0.0))),
        "logsumexp" => Box::new(|values| values.iter().map(|x| x.exp()).sum::<f64>().ln()),
        "cumsum" | "softmax" | "log_softmax" => return Some(scanned(name, &x[0], attributes)),
        _ => return None,
    };
    let gone = axes(ints(attributes, 0), x[0].shape.rank(), "reference").unwrap();
    Some(groups(&x[0], &gone).iter().map(|values| f(values)).collect())
}

/// What gives a value for each element, from all along an axis.
fn scanned(name: &str, x: &Array, attributes: &Attributes) -> Vec<f64> {
    if x.shape.rank() == 0 {
        return x.values.clone();
    }
    let along = axis(int(attributes, 0), x.shape.rank(), "reference").unwrap();
    let (length, stride) = (x.shape[along], x.shape.strides()[along]);
    let mut out = vec![0.0; x.values.len()];
    for (index, position) in positions(&x.shape).iter().enumerate() {
        let start = index - position[along] * stride;
        let line = |i: usize| x.values[start + i * stride];
        let largest = (0..length).map(line).fold(f64::NEG_INFINITY, f64::max);
        let total = || (0..length).map(|i| (line(i) - largest).exp()).sum::<f64>();
        out[index] = match name {
            "cumsum" if position[along] == 0 => x.values[index],
            "cumsum" => out[index - stride] + x.values[index],
            "softmax" => (x.values[index] - largest).exp() / total(),
            _ => x.values[index] - largest - total().ln(),
        };
    }
    out
}

fn moved(name: &str, x: &[Array], attributes: &Attributes, output: Meta) -> Option<Vec<f64>> {
    let positions = positions(&output.shape);
    let rank = output.shape.rank();
    let inside = |position: &[usize]| -> Option<Vec<usize>> {
        let (starts, sizes, steps) =
            (ints(attributes, 0), ints(attributes, 1), ints(attributes, 2));
        (0..position.len())
            .map(|axis| {
                let from_start = position[axis].checked_sub(starts[axis] as usize)?;
                let step = steps[axis] as usize;
                let within = from_start % step == 0 && from_start / step < sizes[axis] as usize;
                within.then_some(from_start / step)
            })
            .collect()
    };
    let at = |from: &dyn Fn(&[usize]) -> f64| positions.iter().map(|p| from(p)).collect::<Vec<_>>();
    Some(match name {
        "reshape" => x[0].values.clone(),
        "permute" => at(&|position| {
            let mut from = vec![0; rank];
            for (to, &axis_from) in ints(attributes, 0).iter().enumerate() {
                from[axis(axis_from, rank, "reference").unwrap()] = position[to];
            }
            x[0].at(&from)
        }),
        "expand" => at(&|position| x[0].at(position)),
        "flip" => at(&|position| {
            let mut from = position.to_vec();
            for along in axes(ints(attributes, 0), rank, "reference").unwrap() {
                from[along] = output.shape[along] - 1 - from[along];
            }
            x[0].at(&from)
        }),
        "slice" => at(&|position| {
            let from: Vec<usize> = (0..rank)
                .map(|a| {
                    ints(attributes, 0)[a] as usize + position[a] * ints(attributes, 2)[a] as usize
                })
                .collect();
            x[0].at(&from)
        }),
        "slice_assign" => at(&|position| match inside(position) {
            Some(within) => x[1].at(&within),
            None => x[0].at(position),
        }),
        "cat" => at(&|position| {
            let along = axis(int(attributes, 0), rank, "reference").unwrap();
            let mut from = position.to_vec();
            let mut part = 0;
            while from[along] >= x[part].shape[along] {
                from[along] -= x[part].shape[along];
                part += 1;
            }
            x[part].at(&from)
        }),
        "tril" | "triu" => at(&|position| {
            let distance =
                position[rank - 1] as i64 - position[rank - 2] as i64 - int(attributes, 0);
            let kept = if name == "tril" { distance <= 0 } else { distance >= 0 };
            if kept { x[0].at(position) } else { 0.0 }
        }),
        "matmul" => at(&|position| {
            let depth = x[0].shape[x[0].shape.rank() - 1];
            let (batch, cell) = position.split_at(rank - 2);
            // An operand with fewer axes drops those of the batch in front.
            let of = |x: &Array, row: usize, column: usize| {
                let extra = rank - x.shape.rank();
                x.at(&[&batch[extra..], &[row, column]].concat())
            };
            (0..depth).map(|k| of(&x[0], cell[0], k) * of(&x[1], k, cell[1])).sum()
        }),
        _ => return None,
    })
}

fn indexed(name: &str, x: &[Array], attributes: &Attributes, output: Meta) -> Option<Vec<f64>> {
    let rank = x[0].shape.rank();
    let along =
        if name == "wrap_index" { 0 } else { axis(int(attributes, 0), rank, "reference").unwrap() };
    let strides = output.shape.strides();
    let offset = |position: &[usize]| -> usize {
        position.iter().zip(strides).map(|(at, stride)| at * stride).sum()
    };
    let replaced = |position: &[usize], at: f64| {
        let mut position = position.to_vec();
        position[along] = at as usize;
        position
    };
    let mut out = x[0].values.clone();
    Some(match name {
        "gather" => positions(&output.shape)
            .iter()
            .map(|position| x[0].at(&replaced(position, x[1].at(position))))
            .collect(),
        "scatter_add" => {
            for position in positions(&x[1].shape) {
                out[offset(&replaced(&position, x[1].at(&position)))] += x[2].at(&position);
            }
            out
        }
        "index_select" => positions(&output.shape)
            .iter()
            .map(|position| x[0].at(&replaced(position, x[1].values[position[along]])))
            .collect(),
        "index_add" | "index_copy" => {
            for position in positions(&x[2].shape) {
                let to = offset(&replaced(&position, x[1].values[position[along]]));
                let value = x[2].at(&position);
                out[to] = if name == "index_add" { out[to] + value } else { value };
            }
            out
        }
        "wrap_index" => {
            let length = int(attributes, 0) as f64;
            out.iter().map(|&at| if at < 0.0 { at + length } else { at }).collect()
        }
        _ => return None,
    })
}
