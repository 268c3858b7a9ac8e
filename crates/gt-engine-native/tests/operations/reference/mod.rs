//! Reference implementations of the operations: loops over float64, one module for each family.

mod create;
mod elementwise;
mod index;
mod reduce;
mod shape;

use gt_ir::{Attributes, DType, Meta, Operand, Operation, Shape, TensorData};

/// Returns the values of the result; `None` for an operation that `tests/coverage` compares with
/// PyTorch instead.
pub fn compute(
    operation: &Operation,
    operands: &[Operand<TensorData>],
    attributes: &Attributes,
    output: Meta,
) -> Option<Vec<f64>> {
    let x: Vec<Array> = operands.iter().map(array).collect();
    let each = |f: &dyn Fn(&[f64]) -> f64| -> Vec<f64> {
        positions(&output.shape)
            .iter()
            .map(|position| f(&x.iter().map(|x| x.at(position)).collect::<Vec<_>>()))
            .collect()
    };
    let values = elementwise::elementwise(operation.name, attributes, output.dtype)
        .map(|f| each(&*f))
        .or_else(|| create::created(operation.name, &x, attributes, output))
        .or_else(|| reduce::reduced(operation.name, &x, attributes))
        .or_else(|| shape::moved(operation.name, &x, attributes, output))
        .or_else(|| index::masked(operation.name, &x))
        .or_else(|| index::indexed(operation.name, &x, attributes, output))?;
    Some(values.into_iter().map(|value| rounded(output.dtype, value)).collect())
}

/// A function from the operands' elements to an element of the result.
type Function<'a> = Box<dyn Fn(&[f64]) -> f64 + 'a>;

/// A tensor of float64, which represents every value of the samples exactly.
#[derive(Clone)]
struct Array {
    shape: Shape,
    values: Vec<f64>,
}

impl Array {
    /// Returns the element at a position of a shape that this array broadcasts to.
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

/// Returns every position of a shape, in row-major order.
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

/// Converts an operand to float64; a scalar becomes an array of one element.
fn array(operand: &Operand<TensorData>) -> Array {
    match operand {
        Operand::Tensor(data) => Array {
            shape: data.shape,
            values: (0..data.shape.numel()).map(|i| data.element(i).as_f64()).collect(),
        },
        Operand::Scalar(scalar) => Array { shape: Shape::SCALAR, values: vec![scalar.as_f64()] },
    }
}

/// Rounds a value to the output's dtype.
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
        DType::F32 | DType::C64 => f64::from(value as f32),
        DType::F64 | DType::C128 => value,
    }
}
