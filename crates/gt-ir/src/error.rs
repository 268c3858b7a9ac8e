//! Errors in the use of operations, with hints on how to fix them.

use thiserror::Error;

use crate::dtype::DType;
use crate::scalar::Scalar;
use crate::shape::Shape;

pub type Result<T> = std::result::Result<T, Error>;

/// An error in the use of an operation.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum Error {
    #[error(
        "{operation}: shapes {left} and {right} do not broadcast: they differ at axis {axis} of the result\n  hint: each pair of axes, counted from the right, must be equal or have a 1"
    )]
    Broadcast { operation: &'static str, left: Shape, right: Shape, axis: usize },

    #[error(
        "matmul: shapes {left} and {right} do not fit: {left_inner} columns against {right_inner} rows\n  hint: the last axis of the left must equal the second-to-last of the right; did you want .T?"
    )]
    Matmul { left: Shape, right: Shape, left_inner: usize, right_inner: usize },

    #[error(
        "matmul: both tensors must be of one dtype, not {left} and {right}\n  hint: cast one with .to(dtype)"
    )]
    MatmulDTypes { left: DType, right: DType },

    #[error("{operation}: axis {axis} is out of range for a tensor of {rank} axes\n  hint: use {} to {}", -(*.rank.max(&1) as i64), *.rank.max(&1) as i64 - 1)]
    BadAxis { operation: &'static str, axis: i64, rank: usize },

    #[error("{operation}: axis {axis} is given twice")]
    RepeatedAxis { operation: &'static str, axis: usize },

    #[error("{operation}: a tensor of shape {from} has {} elements and cannot take the shape {}", .from.numel(), tuple(.to))]
    Reshape { operation: &'static str, from: Shape, to: Vec<i64> },

    #[error("{operation}: shape {given} does not fit, expected {expected}")]
    ShapeMismatch { operation: &'static str, given: Shape, expected: String },

    #[error("{operation}: dtype {given} does not fit, expected {expected}")]
    DTypeMismatch { operation: &'static str, given: DType, expected: &'static str },

    #[error(
        "unknown dtype '{given}'\n  hint: use one of bool, uint8, int8, int16, int32, int64, float16, bfloat16, float32, float64, complex64, complex128"
    )]
    UnknownDType { given: String },

    #[error("{operation}: index {index} is out of range for axis {axis} of length {length}")]
    BadIndex { operation: &'static str, index: i64, axis: usize, length: usize },

    #[error(
        "{operation}: {number} cannot be stored as {dtype}\n  hint: use a number that {dtype} holds, or a tensor of another dtype"
    )]
    NumberRange { operation: &'static str, number: Scalar, dtype: DType },

    #[error("indexing: {given} indices are too many for a tensor of {} axes, shape {shape}", .shape.rank())]
    TooManyIndices { given: usize, shape: Shape },

    #[error(
        "indexing: a mask of shape {mask} does not fit the indexed tensor of shape {shape} at axis {axis}"
    )]
    MaskShape { mask: Shape, shape: Shape, axis: usize },

    #[error("indexing: index tensors of shapes {} do not broadcast", list(.shapes))]
    IndexShapes { shapes: Vec<Shape> },

    #[error("indexing: `...` may appear only once")]
    RepeatedEllipsis,

    #[error(
        "indexing: a slice step of {step} is not possible, it must be 1 or more\n  hint: use flip() to go backwards"
    )]
    BadStep { step: i64 },

    #[error("{operation}: {given} operands given, expected {expected}")]
    OperandCount { operation: &'static str, given: usize, expected: String },

    #[error("{operation}: argument '{attribute}' is {given}, expected {expected}")]
    BadAttribute {
        operation: &'static str,
        attribute: &'static str,
        given: String,
        expected: &'static str,
    },

    #[error("{operation}: shape {given} does not fit, expected the tensor's own shape {own}")]
    StoredShape { operation: String, given: Shape, own: Shape },

    #[error("{operation}: {parameter} is '{given}', expected one of {}", .words.join(", "))]
    BadWord {
        operation: &'static str,
        parameter: &'static str,
        given: String,
        words: &'static [&'static str],
    },

    #[error("{operation}: cannot reduce an empty axis of a tensor of shape {shape}")]
    EmptyReduction { operation: &'static str, shape: Shape },

    #[error("a tensor may have at most {max} axes, {rank} were given")]
    RankTooHigh { rank: usize, max: usize },

    #[error("a tensor of shape {} is too large to address", tuple(.dims))]
    TooLarge { dims: Vec<usize> },
}

/// Returns numbers as Python shows a tuple.
fn tuple(numbers: &[impl ToString]) -> String {
    let shown: Vec<_> = numbers.iter().map(ToString::to_string).collect();
    format!("({}{})", shown.join(", "), if shown.len() == 1 { "," } else { "" })
}

fn list(shapes: &[Shape]) -> String {
    shapes.iter().map(Shape::to_string).collect::<Vec<_>>().join(", ")
}
