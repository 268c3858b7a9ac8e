//! The native engine as `gt._gt.native`: Python engines call it for operations that they do not
//! implement.

use std::cell::RefCell;

use gt::NativeEngine;
use gt::ir::instruction::{Operands, Results};
use gt::ir::operation::Facts;
use gt::ir::{Attributes, Meta, Operand, Operation, ops};
use gt::worker::{Engine, composite};
use numpy::PyArray1;
use pyo3::exceptions::{PyArithmeticError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyMemoryView, PyTuple};

use super::values;
use crate::operation::attributes;
use crate::{convert, dtype};

thread_local! {
    static NATIVE: RefCell<NativeEngine> = RefCell::new(NativeEngine::new(1));
}

/// A tensor in host memory: its dtype, shape and values.
type HostTensor<'py> = (String, Vec<i64>, Bound<'py, PyMemoryView>);

fn operation(name: &str) -> PyResult<&'static Operation> {
    Operation::from_name(name)
        .ok_or_else(|| PyValueError::new_err(format!("there is no operation '{name}'")))
}

fn meta(given: &Bound<'_, PyAny>) -> PyResult<Meta> {
    let (name, dims): (String, Vec<i64>) = given.extract()?;
    let dtype = dtype::parse(&pyo3::types::PyString::new(given.py(), &name))?;
    Ok(Meta::new(dtype, convert::shape(&dims)?))
}

/// Return a tuple `(dtype, shape)` for each result of an operation. Operands are `(dtype, shape)`
/// or numbers.
///
/// Raises:
///     ValueError: the operation does not exist or does not accept the operands.
#[pyfunction]
fn infer(
    name: &str,
    operands: Vec<Bound<'_, PyAny>>,
    given: &Bound<'_, PyDict>,
) -> PyResult<Vec<(String, Vec<usize>)>> {
    let operation = operation(name)?;
    let metas: PyResult<Vec<_>> = operands
        .iter()
        .map(|operand| match convert::scalar(operand)? {
            Some(scalar) => Ok(Operand::Scalar(scalar)),
            None => Ok(Operand::Tensor(meta(operand)?)),
        })
        .collect();
    let results = results(operation, &metas?, &attributes(operation, given)?)?;
    Ok(results
        .iter()
        .map(|meta| (meta.dtype.name().to_string(), meta.shape.dims().to_vec()))
        .collect())
}

fn results(
    operation: &'static Operation,
    metas: &[Operand<Meta>],
    attributes: &Attributes,
) -> PyResult<Results> {
    operation.results(metas, attributes).map_err(|error| PyValueError::new_err(error.to_string()))
}

/// Compute an operation on the native engine, and return `(dtype, shape, values)` for each result.
///
/// Operands are `(dtype, shape, values)` or numbers; values support the buffer protocol.
#[pyfunction]
fn compute<'py>(
    py: Python<'py>,
    name: &str,
    operands: Vec<Bound<'py, PyAny>>,
    given: &Bound<'py, PyDict>,
) -> PyResult<Vec<HostTensor<'py>>> {
    let operation = operation(name)?;
    let attributes = attributes(operation, given)?;
    // The operands have no result: users see this message without a traceback.
    let failed = |error: gt::worker::EngineError| PyArithmeticError::new_err(error.to_string());
    NATIVE.with_borrow_mut(|native| {
        let mut metas = Vec::new();
        let mut tensors = Operands::new();
        for operand in &operands {
            if let Some(scalar) = convert::scalar(operand)? {
                metas.push(Operand::Scalar(scalar));
                tensors.push(Operand::Scalar(scalar));
                continue;
            }
            let parts = operand.cast::<PyTuple>()?;
            let meta = meta(parts.get_slice(0, 2).as_any())?;
            let data = values::shared(meta, &parts.get_item(2)?)?;
            metas.push(Operand::Tensor(meta));
            tensors.push(Operand::Tensor(native.create(data).map_err(failed)?));
        }
        let results = results(operation, &metas, &attributes)?;
        let made = if operation.further.is_some() {
            native.run_several(operation, tensors, &attributes, &results)
        } else {
            composite::run(native, operation, tensors, &metas, &attributes, results[0])
                .map(|made| vec![made])
        };
        let made = made.map_err(failed)?;
        made.iter()
            .map(|tensor| {
                let data = native.read(tensor).map_err(failed)?;
                let dims = data.shape.iter().map(|&dim| dim as i64).collect();
                let values = PyArray1::from_vec(py, data.bytes.into());
                Ok((data.dtype.name().to_string(), dims, PyMemoryView::from(&values)?))
            })
            .collect()
    })
}

/// Return a dict of what each operation declares: `operands` and `attributes` (names, in order),
/// `autocast` (`"unchanged"`, `"lower"` or `"float32"`) and `result` (`"computed"`, `"view"`,
/// `"repeatedview"`, `"drawn"`, `"usercode"` or `"committed"`).
#[pyfunction]
fn declarations(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let all = PyDict::new(py);
    for operation in ops::ALL {
        let operands = operation.parameters.iter().filter(|of| of.attribute().is_none());
        let operands: Vec<_> = operands.map(|of| of.name).collect();
        let attributes: Vec<_> = operation.attributes().map(|(of, _)| of.name).collect();
        let declared = PyDict::new(py);
        declared.set_item("operands", PyTuple::new(py, operands)?)?;
        declared.set_item("attributes", PyTuple::new(py, attributes)?)?;
        let Facts { autocast, result, .. } = operation.facts;
        declared.set_item("autocast", format!("{autocast:?}").to_lowercase())?;
        declared.set_item("result", format!("{result:?}").to_lowercase())?;
        all.set_item(operation.name, declared)?;
    }
    Ok(all)
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let native = PyModule::new(module.py(), "native")?;
    native.add_function(wrap_pyfunction!(infer, &native)?)?;
    native.add_function(wrap_pyfunction!(compute, &native)?)?;
    native.add_function(wrap_pyfunction!(declarations, &native)?)?;
    module.add_submodule(&native)
}
