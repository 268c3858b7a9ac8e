//! Calls of operations, as seen by inference, sharding and gradient rules.

use crate::dtype::DType;
use crate::error::{Error, Result};
use crate::instruction::{Attribute, Attributes, Operand};
use crate::shape::Shape;

/// Shape and dtype of a tensor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Meta {
    pub dtype: DType,
    pub shape: Shape,
}

impl Meta {
    pub fn new(dtype: DType, shape: Shape) -> Meta {
        Meta { dtype, shape }
    }

    /// The size of the values in bytes.
    pub fn bytes(&self) -> usize {
        self.shape.numel() * self.dtype.size()
    }
}

/// A call of an operation, as seen by its inference rule.
pub struct Call<'a> {
    pub operation: &'static str,
    pub operands: &'a [Operand<Meta>],
    pub attributes: &'a Attributes,
}

impl Call<'_> {
    /// The operand at `index`, which must be a tensor.
    pub fn tensor(&self, index: usize) -> Result<Meta> {
        self.operands[index].tensor().copied().ok_or_else(|| Error::BadAttribute {
            operation: self.operation,
            attribute: "operand",
            given: "a number".to_string(),
            expected: "a tensor",
        })
    }

    pub fn int(&self, index: usize) -> i64 {
        int(self.attributes, index)
    }

    pub fn ints(&self, index: usize) -> &[i64] {
        ints(self.attributes, index)
    }

    pub fn bool(&self, index: usize) -> bool {
        bool(self.attributes, index)
    }

    pub fn dtype(&self, index: usize) -> Option<DType> {
        dtype(self.attributes, index)
    }
}

/// Attribute `index`, which the operation declares as an int.
pub fn int(attributes: &Attributes, index: usize) -> i64 {
    match attributes[index] {
        Attribute::Int(value) => value,
        ref other => panic!("attribute {index} is {}, declared an int", other.kind()),
    }
}

/// Attribute `index`, which the operation declares as a float.
pub fn float(attributes: &Attributes, index: usize) -> f64 {
    match attributes[index] {
        Attribute::Float(value) => value,
        ref other => panic!("attribute {index} is {}, declared a float", other.kind()),
    }
}

/// Attribute `index`, which the operation declares as a list of ints.
pub fn ints(attributes: &Attributes, index: usize) -> &[i64] {
    match &attributes[index] {
        Attribute::Ints(values) => values,
        other => panic!("attribute {index} is {}, declared a list", other.kind()),
    }
}

/// Attribute `index`, which the operation declares as a bool.
pub fn bool(attributes: &Attributes, index: usize) -> bool {
    match attributes[index] {
        Attribute::Bool(value) => value,
        ref other => panic!("attribute {index} is {}, declared a bool", other.kind()),
    }
}

/// Attribute `index`, which the operation declares as a dtype; `None` for the default.
pub fn dtype(attributes: &Attributes, index: usize) -> Option<DType> {
    match attributes[index] {
        Attribute::DType(dtype) => Some(dtype),
        Attribute::None => None,
        ref other => panic!("attribute {index} is {}, declared a dtype", other.kind()),
    }
}
