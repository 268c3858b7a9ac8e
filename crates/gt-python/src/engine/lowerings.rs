//! The Python functions by which an engine computes single operations, cached by operation and
//! kinds of operands.

use gt::ir::cache::{Cache, CacheLimits};
use gt::ir::instruction::Operands;
use gt::ir::operation::ResultKind;
use gt::ir::ops::custom::{self, CUSTOM};
use gt::ir::{Attributes, DType, Meta, Operand, Operation, Scalar};
use gt::worker::EngineError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use smallvec::SmallVec;

use super::convert::{Classes, attribute, number, number_type};
use super::{EngineTensor, explain};

/// The bound of cached functions.
const MAX_LOWERINGS: CacheLimits = CacheLimits::entries(4096);

/// An operation on operands of some kinds, as bytes: its id, the dtype of its first result, and a
/// byte for each operand. For a custom operation: the id and its name.
type LoweringKey = SmallVec<[u8; 16]>;

/// The functions of an engine, each requested from it when it is first needed.
pub struct LoweringCache {
    known: Cache<LoweringKey, EngineLowering>,
}

impl Default for LoweringCache {
    fn default() -> LoweringCache {
        LoweringCache { known: Cache::new(MAX_LOWERINGS) }
    }
}

/// The function that computes an operation.
struct EngineLowering {
    call: Py<PyAny>,
    /// For each attribute, its name if the function takes it.
    names: SmallVec<[Option<Py<PyString>>; 4]>,
}

/// An operation to compute.
pub struct OperationCall<'a> {
    pub operation: &'static Operation,
    pub operands: &'a Operands<EngineTensor>,
    pub attributes: &'a Attributes,
    /// Shape and dtype of the (first) result.
    pub output: Meta,
}

impl LoweringCache {
    /// Computes an operation, and returns the result of its function.
    ///
    /// # Errors
    /// The engine has no function for it, or the function fails.
    pub fn call<'py>(
        &mut self,
        py: Python<'py>,
        engine: &Bound<'py, PyAny>,
        classes: &Classes,
        call: &OperationCall,
    ) -> Result<Bound<'py, PyAny>, EngineError> {
        let key = key(call);
        let called = match self.known.get(&key) {
            Some(function) => function.call(py, call),
            None => {
                let function = EngineLowering::new(py, engine, classes, call).map_err(explain)?;
                let called = function.call(py, call);
                self.known.insert(key, function, 1);
                called
            }
        };
        called.map_err(|error| explain(reason(engine, classes, call, error)))
    }
}

impl EngineLowering {
    fn new(
        py: Python<'_>,
        engine: &Bound<'_, PyAny>,
        classes: &Classes,
        call: &OperationCall,
    ) -> PyResult<EngineLowering> {
        if call.operation.facts.result == ResultKind::UserCode {
            return EngineLowering::custom(engine, call.attributes);
        }
        let kinds = call.operands.iter().map(|operand| match operand {
            Operand::Tensor(tensor) => classes.kind(py, &tensor.meta),
            Operand::Scalar(scalar) => Ok(number_type(py, scalar)),
        });
        let kinds = PyTuple::new(py, kinds.collect::<PyResult<Vec<_>>>()?)?;
        let name = call.operation.name;
        let signature = classes.signature(py, name, kinds, call.output.dtype)?;
        let function = engine.call_method1("lowering", (signature,))?.unbind();
        let name = |(of, _): (&gt::ir::operation::Parameter, _)| {
            (of.name != "dtype").then(|| PyString::intern(py, of.name).unbind())
        };
        let names = call.operation.named(call.attributes).map(name).collect();
        Ok(EngineLowering { call: function, names })
    }

    /// Returns the function of a custom operation. It takes the user's arguments other than tensors
    /// as one string.
    fn custom(engine: &Bound<'_, PyAny>, attributes: &Attributes) -> PyResult<EngineLowering> {
        let function = engine.call_method1("custom", (custom::name(attributes),))?.unbind();
        let name = |(of, _): (&gt::ir::operation::Parameter, _)| {
            let is_taken = of.name == "arguments";
            is_taken.then(|| PyString::intern(engine.py(), of.name).unbind())
        };
        let names = CUSTOM.named(attributes).map(name).collect();
        Ok(EngineLowering { call: function, names })
    }

    fn call<'py>(&self, py: Python<'py>, call: &OperationCall) -> PyResult<Bound<'py, PyAny>> {
        let operands = PyTuple::new(py, values(py, call.operands))?;
        let function = self.call.bind(py);
        if self.names.iter().all(Option::is_none) {
            return function.call1(operands);
        }
        let given = PyDict::new(py);
        let attributes = call.operation.named(call.attributes);
        for (name, (of, value)) in self.names.iter().zip(attributes) {
            if let Some(name) = name {
                given.set_item(name, attribute(py, of, value)?)?;
            }
        }
        function.call(operands, Some(&given))
    }
}

fn key(call: &OperationCall) -> LoweringKey {
    let id = call.operation.id.to_le_bytes();
    if call.operation.facts.result == ResultKind::UserCode {
        let name = custom::name(call.attributes).unwrap_or_default();
        return id.into_iter().chain(name.into_bytes()).collect();
    }
    let mut key: LoweringKey = SmallVec::from_slice(&[id[0], id[1], call.output.dtype as u8]);
    key.extend(call.operands.iter().map(|operand| match operand {
        Operand::Tensor(EngineTensor { meta, .. }) => {
            (meta.dtype as u8) << 1 | u8::from(meta.shape.rank() > 0)
        }
        Operand::Scalar(Scalar::Bool(_)) => 253,
        Operand::Scalar(Scalar::Int(_)) => 254,
        Operand::Scalar(Scalar::Float(_)) => 255,
    }));
    key
}

fn values<'py>(
    py: Python<'py>,
    operands: &Operands<EngineTensor>,
) -> SmallVec<[Bound<'py, PyAny>; 4]> {
    let value = |operand: &Operand<EngineTensor>| match operand {
        Operand::Tensor(tensor) => tensor.object.bind(py).clone(),
        Operand::Scalar(scalar) => number(py, *scalar),
    };
    operands.iter().map(value).collect()
}

/// Returns the engine's explanation of a function's error, or else the error itself.
fn reason(
    engine: &Bound<'_, PyAny>,
    classes: &Classes,
    call: &OperationCall,
    error: PyErr,
) -> PyErr {
    let py = engine.py();
    let cause = || {
        let step = classes.step(py, call.operation, call.attributes, &call.output)?;
        let operands = PyList::new(py, values(py, call.operands))?;
        engine.call_method1("cause", (error.clone_ref(py), step, operands))
    };
    match cause() {
        Ok(cause) => PyErr::from_value(cause),
        Err(_) => error,
    }
}

/// Compares the results of an engine with their declarations.
#[derive(Default)]
pub struct ResultChecker {
    /// The engine's dtype objects that were seen on described tensors, with GT's dtypes: a known
    /// one saves the call of `describe`.
    dtypes: Vec<(Py<PyAny>, DType)>,
}

impl ResultChecker {
    /// Checks the shape and dtype of a tensor; `of` names the operation that computed it.
    ///
    /// # Errors
    /// They differ from `meta`, or the engine cannot describe the tensor.
    pub fn check(
        &mut self,
        engine: &Bound<'_, PyAny>,
        classes: &Classes,
        tensor: &Bound<'_, PyAny>,
        meta: &Meta,
        of: &str,
    ) -> Result<(), EngineError> {
        let py = engine.py();
        let dtype = tensor.getattr(pyo3::intern!(py, "dtype")).ok();
        let is_known = |dtype: &Bound<'_, PyAny>| {
            let mut known = self.dtypes.iter();
            known.any(|(object, known)| *known == meta.dtype && dtype.is(object))
        };
        if dtype.as_ref().is_some_and(is_known) && has_shape(tensor, meta) {
            return Ok(());
        }
        let given = engine.call_method1("describe", (tensor,));
        let given = given.and_then(|given| classes.meta(&given)).map_err(|error| {
            let kind =
                tensor.get_type().name().map_or_else(|_| "?".into(), |name| name.to_string());
            let why = explain(error);
            EngineError::Other(format!("the engine gave a {kind} for {of}, not described: {why}"))
        })?;
        if given != *meta {
            return Err(EngineError::Other(format!(
                "the engine gave {} {} for {of}, expected {} {}",
                given.dtype, given.shape, meta.dtype, meta.shape
            )));
        }
        if let Some(dtype) = dtype
            && has_shape(tensor, meta)
            && self.dtypes.len() < DType::ALL.len()
        {
            self.dtypes.push((dtype.unbind(), meta.dtype));
        }
        Ok(())
    }
}

/// Returns whether a tensor has the attribute `shape`, equal to that of `meta`.
fn has_shape(tensor: &Bound<'_, PyAny>, meta: &Meta) -> bool {
    let Ok(shape) = tensor.getattr(pyo3::intern!(tensor.py(), "shape")) else { return false };
    let Ok(shape) = shape.cast::<PyTuple>() else { return false };
    let dims = meta.shape.dims();
    shape.len() == dims.len()
        && shape.iter().zip(dims).all(|(given, dim)| given.extract::<usize>().ok() == Some(*dim))
}
