//! Elementwise operations: a function of one element of each operand.

use gt_ir::operation::int;
use gt_ir::{Attributes, DType};

use super::Function;

/// Returns the function of an elementwise operation.
pub fn elementwise(
    name: &str,
    attributes: &Attributes,
    output: DType,
) -> Option<Function<'static>> {
    let truth = |x: f64| x != 0.0;
    let number = |x: bool| f64::from(u8::from(x));
    let whole = |f: fn(i64, i64) -> i64| -> Function<'static> {
        Box::new(move |x: &[f64]| f(x[0] as i64, x[1] as i64) as f64)
    };
    let one = |f: fn(f64) -> f64| -> Function { Box::new(move |x: &[f64]| f(x[0])) };
    let two = |f: fn(f64, f64) -> f64| -> Function { Box::new(move |x: &[f64]| f(x[0], x[1])) };
    Some(match name {
        "cast" | "place" | "further" => one(|x| x),
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
        // For bool, converting the integer's complement would yield 1 for both values.
        "bitwise_not" if output == DType::Bool => one(|x| 1.0 - x),
        "bitwise_not" => one(|x| !(x as i64) as f64),
        "isnan" => Box::new(move |x| number(x[0].is_nan())),
        "gelu" if int(attributes, 0) == 1 => one(|x| {
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
