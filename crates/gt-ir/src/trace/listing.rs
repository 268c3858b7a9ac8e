//! Traces as text.

use std::fmt::{self, Write};

use super::{Input, Source, Trace, TraceStep};
use crate::instruction::Operand;
use crate::operation::Meta;
use crate::scalar::Scalar;

/// The most operations that a summary names.
const NAMED: usize = 6;

impl Trace {
    /// Returns its operations as `12 operations (matmul add relu ...)`.
    pub fn summary(&self) -> String {
        let names: Vec<&str> =
            self.steps.iter().map(|step| step.operation.name).take(NAMED).collect();
        let more = if self.steps.len() > NAMED { " ..." } else { "" };
        format!("{} operations ({}{more})", self.steps.len(), names.join(" "))
    }

    /// Returns a step as `%7 = add(%3, 0.5) float32 (2, 3)`.
    pub fn line(&self, index: usize) -> String {
        let TraceStep { operation, operands, attributes, varying, output } = &self.steps[index];
        let mut given: Vec<String> = operands.iter().map(source).collect();
        for (of, attribute) in operation.named(attributes) {
            if of.varies && !varying.is_empty() {
                let values: Vec<String> = varying.iter().map(|value| format!("%{value}")).collect();
                given.push(format!("{}=[{}]", of.name, values.join(",")));
            } else {
                given.push(format!("{}={}", of.name, of.shown(attribute)));
            }
        }
        let value = self.value_of(index);
        format!("%{value} = {}({}) {}", operation.name, given.join(", "), tensor(output))
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (value, input) in self.inputs.iter().enumerate() {
            match input {
                Input::Tensor(meta) => writeln!(f, "%{value}: {}", tensor(meta))?,
                Input::Number(Scalar::Bool(_)) => writeln!(f, "%{value}: a bool")?,
                Input::Number(Scalar::Int(_)) => writeln!(f, "%{value}: an integer")?,
                Input::Number(Scalar::Float(_)) => writeln!(f, "%{value}: a number")?,
            }
        }
        for index in 0..self.steps.len() {
            writeln!(f, "{}", self.line(index))?;
        }
        let mut outputs = String::new();
        for value in &self.outputs {
            write!(outputs, " %{value}")?;
        }
        writeln!(f, "outputs:{outputs}")
    }
}

fn source(source: &Source) -> String {
    match source {
        Operand::Tensor(value) => format!("%{value}"),
        Operand::Scalar(constant) => constant.to_string(),
    }
}

fn tensor(meta: &Meta) -> String {
    format!("{} {}", meta.dtype, meta.shape)
}

#[cfg(test)]
mod tests {
    use smallvec::smallvec;

    use super::*;
    use crate::instruction::Attribute;
    use crate::ops::{binary, slice};
    use crate::{DType, Shape};

    #[test]
    fn a_trace_can_be_read() {
        let meta = Meta::new(DType::F32, Shape::new(&[2, 3]).unwrap());
        let inputs =
            vec![Input::Tensor(meta), Input::Number(Scalar::Int(0)), Input::Number(Scalar::Int(1))];
        let mut trace = Trace::new(inputs);
        let half = smallvec![Operand::Tensor(0), Operand::Scalar(Scalar::Float(0.5))];
        trace.push(&|_| true, &binary::ADD, half, smallvec![], smallvec![]).unwrap();
        let region = [[0, 1], [1, 2], [1, 1]].map(|ints| Attribute::ints(&ints));
        let region = region.into_iter().collect();
        let sum = smallvec![Operand::Tensor(3)];
        trace.push(&|_| true, &slice::SLICE, sum, region, smallvec![1, 2]).unwrap();
        trace.outputs = vec![4];
        let expected = "\
%0: float32 (2, 3)
%1: an integer
%2: an integer
%3 = add(%0, 0.5) float32 (2, 3)
%4 = slice(%3, starts=[%1,%2], sizes=[1,2], steps=[1,1]) float32 (1, 2)
outputs: %4
";
        assert_eq!(trace.to_string(), expected);
        assert_eq!(trace.summary(), "2 operations (add slice)");
    }
}
