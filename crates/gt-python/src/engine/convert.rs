//! Conversion of operations and plans to the Python objects that engines receive.

use gt::ir::operation::Parameter;
use gt::ir::ops::further::FURTHER;
use gt::ir::trace::{Input, Trace, TraceStep};
use gt::ir::{Attribute, Attributes, DType, Meta, Operand, Operation, Scalar, Shape};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyString, PyTuple};
use rustc_hash::FxHashMap;

/// The classes of `gt.engines.engine`.
pub struct Classes {
    meta: Py<PyAny>,
    kind: Py<PyAny>,
    signature: Py<PyAny>,
    step: Py<PyAny>,
    plan: Py<PyAny>,
}

/// A plan as its engine sees it. Values are renumbered: first the inputs, then the constants, then
/// the random tensors, which are passed in as inputs, then the results of the steps.
pub struct Translation {
    pub plan: Py<PyAny>,
    pub constants: Vec<Scalar>,
    /// The indices, in the original trace, of the steps that generate random numbers.
    pub random: Vec<usize>,
    /// The number of steps that the engine runs.
    pub steps: usize,
}

impl Classes {
    pub fn new(py: Python<'_>) -> PyResult<Classes> {
        let module = py.import("gt.engines.engine")?;
        let class = |name: &str| Ok::<_, PyErr>(module.getattr(name)?.unbind());
        Ok(Classes {
            meta: class("Meta")?,
            kind: class("Kind")?,
            signature: class("Signature")?,
            step: class("Step")?,
            plan: class("Plan")?,
        })
    }

    /// Converts the result of an engine's `describe`.
    pub fn meta(&self, described: &Bound<'_, PyAny>) -> PyResult<Meta> {
        let name: String = described.getattr("dtype")?.extract()?;
        let dtype = DType::ALL.into_iter().find(|dtype| dtype.name() == name).ok_or_else(|| {
            PyValueError::new_err(format!(
                "describe gave the dtype '{name}', which GT does not have"
            ))
        })?;
        let dims: Vec<usize> = described.getattr("shape")?.extract()?;
        let shape = Shape::new(&dims).map_err(|error| PyValueError::new_err(error.to_string()))?;
        Ok(Meta::new(dtype, shape))
    }

    /// Returns the Python `Meta` of a tensor.
    pub fn to_meta<'py>(&self, py: Python<'py>, meta: &Meta) -> PyResult<Bound<'py, PyAny>> {
        let shape = PyTuple::new(py, meta.shape.dims())?;
        self.meta.bind(py).call1((meta.dtype.name(), shape))
    }

    /// Returns the Python `Kind` of a tensor.
    pub fn kind<'py>(&self, py: Python<'py>, meta: &Meta) -> PyResult<Bound<'py, PyAny>> {
        self.kind.bind(py).call1((meta.dtype.name(), meta.shape.rank() > 0))
    }

    /// Returns the Python `Signature` of an operation on operands of these kinds.
    pub fn signature<'py>(
        &self,
        py: Python<'py>,
        operation: &str,
        kinds: Bound<'py, PyTuple>,
        output: DType,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.signature.bind(py).call1((operation, kinds, output.name()))
    }

    /// Returns a Python `Step` outside of a plan, without operands.
    pub fn step<'py>(
        &self,
        py: Python<'py>,
        operation: &'static Operation,
        attributes: &Attributes,
        output: &Meta,
    ) -> PyResult<Bound<'py, PyAny>> {
        let given = PyDict::new(py);
        for (of, value) in operation.named(attributes) {
            given.set_item(of.name, attribute(py, of, value)?)?;
        }
        let arguments = (operation.name, PyTuple::empty(py), given, self.to_meta(py, output)?);
        self.step.bind(py).call1(arguments)
    }

    /// Returns a trace as a Python `Plan`, in which the results of `is_random` steps are inputs.
    pub fn translate(
        &self,
        py: Python<'_>,
        trace: &Trace,
        is_random: fn(&TraceStep) -> bool,
    ) -> PyResult<Translation> {
        let mut constants = Vec::new();
        for step in trace.steps.iter().filter(|step| !is_random(step)) {
            constants.extend(step.operands.iter().filter_map(Operand::scalar));
        }
        let steps = || trace.steps.iter().enumerate();
        let random: Vec<usize> =
            steps().filter(|(_, step)| is_random(step)).map(|(index, _)| index).collect();
        let given = trace.inputs.len();
        let mut numbers: Vec<usize> = (0..given).collect();
        let mut next = given + constants.len() + random.len();
        // An operation with several results produces one value in the translated plan, a tuple, and
        // a `further` step extracts each result.
        let mut tuples: FxHashMap<usize, usize> = FxHashMap::default();
        for (index, step) in steps() {
            let place = random.iter().position(|&other| other == index);
            if step.operation.further.is_some() {
                tuples.insert(given + index, next);
                next += 1;
            }
            numbers.push(match place {
                Some(place) => given + constants.len() + place,
                None => {
                    next += 1;
                    next - 1
                }
            });
        }
        let mut inputs = Vec::new();
        for input in &trace.inputs {
            inputs.push(match input {
                Input::Tensor(meta) => self.to_meta(py, meta)?,
                Input::Number(scalar) => number_type(py, scalar),
            });
        }
        inputs.extend(constants.iter().map(|scalar| number(py, *scalar)));
        for &index in &random {
            inputs.push(self.to_meta(py, &trace.steps[index].output)?);
        }
        let mut made = Vec::new();
        let mut constant = given;
        for (index, step) in steps().filter(|(_, step)| !is_random(step)) {
            let operands = step.operands.iter().map(|source| match source {
                Operand::Tensor(value) if step.is_further() => tuples[&(*value as usize)],
                Operand::Tensor(value) => numbers[*value as usize],
                Operand::Scalar(_) => {
                    constant += 1;
                    constant - 1
                }
            });
            let mut operands: Vec<usize> = operands.collect();
            operands.extend(step.varying.iter().map(|value| numbers[*value as usize]));
            let operands = PyTuple::new(py, operands)?;
            let attributes = self.attributes(py, step)?;
            let output = self.to_meta(py, &step.output)?;
            let arguments = (step.operation.name, operands, attributes, &output);
            made.push(self.step.bind(py).call1(arguments)?);
            if let Some(tuple) = tuples.get(&(given + index)) {
                let place = PyDict::new(py);
                place.set_item("index", 0)?;
                let arguments = (FURTHER.name, (*tuple,), place, output);
                made.push(self.step.bind(py).call1(arguments)?);
            }
        }
        let outputs = trace.outputs.iter().map(|value| numbers[*value as usize]);
        let outputs = PyTuple::new(py, outputs.collect::<Vec<_>>())?;
        let count = made.len();
        let given = (PyTuple::new(py, inputs)?, PyTuple::new(py, made)?, outputs);
        let plan = self.plan.bind(py).call1(given)?.unbind();
        Ok(Translation { plan, constants, random, steps: count })
    }

    /// Returns a step's attributes by name, without the attribute whose values vary: those are
    /// operands.
    fn attributes<'py>(&self, py: Python<'py>, step: &TraceStep) -> PyResult<Bound<'py, PyDict>> {
        let varies = step.operation.varying_attribute().filter(|_| !step.varying.is_empty());
        let dict = PyDict::new(py);
        for (index, (of, value)) in step.operation.named(&step.attributes).enumerate() {
            if varies != Some(index) {
                dict.set_item(of.name, attribute(py, of, value)?)?;
            }
        }
        Ok(dict)
    }
}

/// Returns an attribute's value as a Python object.
pub fn attribute<'py>(
    py: Python<'py>,
    of: &Parameter,
    value: &Attribute,
) -> PyResult<Bound<'py, PyAny>> {
    if let Some(word) = of.word(value) {
        return Ok(PyString::intern(py, word).into_any());
    }
    if let Some(text) = of.text(value) {
        return Ok(PyString::new(py, &text).into_any());
    }
    Ok(match value {
        Attribute::None => py.None().into_bound(py),
        Attribute::Int(value) => value.into_pyobject(py)?.into_any(),
        Attribute::Float(value) => PyFloat::new(py, *value).into_any(),
        Attribute::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
        Attribute::DType(dtype) => PyString::intern(py, dtype.name()).into_any(),
        Attribute::Ints(values) => PyTuple::new(py, values.iter())?.into_any(),
    })
}

/// Returns the Python type of a number.
pub fn number_type<'py>(py: Python<'py>, scalar: &Scalar) -> Bound<'py, PyAny> {
    match scalar {
        Scalar::Bool(_) => py.get_type::<PyBool>().into_any(),
        Scalar::Int(_) => py.get_type::<PyInt>().into_any(),
        Scalar::Float(_) => py.get_type::<PyFloat>().into_any(),
    }
}

/// Returns a number as a Python object.
pub fn number<'py>(py: Python<'py>, scalar: Scalar) -> Bound<'py, PyAny> {
    match scalar {
        Scalar::Bool(value) => PyBool::new(py, value).to_owned().into_any(),
        Scalar::Int(value) => value.into_pyobject(py).expect("ints convert").into_any(),
        Scalar::Float(value) => PyFloat::new(py, value).into_any(),
    }
}
