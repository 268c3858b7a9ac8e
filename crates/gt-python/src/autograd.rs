//! Autograd: switching recording and autocast, gradients and backward passes, custom functions,
//! hooks.

use std::sync::Arc;

use gt::tape::{self, AccumulatedHook, BackwardCall, Function, Hook, HookHandle};
use pyo3::exceptions::{PyRuntimeError, PyTypeError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple, PyWeakrefMethods, PyWeakrefReference};

use crate::error::{IntoPython, from_python};
use crate::tensor::PyTensor;
use crate::tensor::gradient::{leaves, options};
use crate::{argument, dtype, session, source};

/// Return whether operations on this thread are recorded for gradients.
#[pyfunction]
fn is_grad_enabled() -> bool {
    gt::grad_enabled()
}

/// Enable or disable recording on this thread, and return whether it was enabled.
#[pyfunction]
fn set_grad_enabled(enabled: bool) -> bool {
    gt::set_grad_enabled(enabled)
}

/// Set the dtype in which this thread computes matrix products and convolutions; None disables
/// autocast.
#[pyfunction]
fn set_autocast(dtype: Option<&Bound<'_, PyAny>>) -> PyResult<()> {
    gt::autocast::set_autocast(dtype::parse_optional(dtype)?);
    Ok(())
}

/// Return whether the arguments of a call include a tensor of 16-bit floats.
#[pyfunction]
fn has_halves(args: &Bound<'_, PyTuple>, kwargs: &Bound<'_, PyDict>) -> bool {
    let is_half = |given: &Bound<'_, PyAny>| {
        given.cast::<PyTensor>().is_ok_and(|tensor| {
            let dtype = tensor.get().0.dtype();
            dtype.is_float() && dtype.size() == 2
        })
    };
    args.iter().any(|given| is_half(&given)) || kwargs.iter().any(|(_, given)| is_half(&given))
}

/// Set the gradients of all parameters to None.
#[pyfunction]
fn forget_gradients(parameters: &Bound<'_, PyList>) -> PyResult<()> {
    for parameter in parameters {
        parameter.cast::<PyTensor>()?.get().0.set_grad(None).py()?;
    }
    Ok(())
}

/// Add gradient * factor in place to each parameter that has a gradient, in one instruction each.
///
/// Return False, without changing any parameter, if one of them is complex.
#[pyfunction]
fn add_scaled_gradients(parameters: &Bound<'_, PyList>, factor: f64) -> PyResult<bool> {
    let py = parameters.py();
    let mut pairs = Vec::with_capacity(parameters.len());
    for parameter in parameters {
        let parameter = parameter.cast_into::<PyTensor>()?;
        let this = &parameter.get().0;
        if this.dtype().is_complex() {
            return Ok(false);
        }
        if let Some(gradient) = this.grad() {
            pairs.push((parameter.clone(), gradient));
        }
    }
    source::note(py);
    for (parameter, gradient) in pairs {
        let this = &parameter.get().0;
        session::ready(py, this)?;
        let sum = this.mul_add(&gradient, factor).py()?;
        this.assign(&sum, "add_scaled_").py()?;
    }
    Ok(true)
}

type Tensors<'py> = Vec<PyRef<'py, PyTensor>>;

/// Return the gradients of the sum of `outputs` with respect to `inputs`; None for an input that no
/// output depends on. `gradients` holds the gradient of each output; None means 1, for an output of
/// one element.
#[pyfunction]
fn grad(
    py: Python<'_>,
    outputs: Tensors<'_>,
    gradients: Vec<Option<PyRef<'_, PyTensor>>>,
    inputs: &Bound<'_, PyAny>,
    retain_graph: &Bound<'_, PyAny>,
    create_graph: &Bound<'_, PyAny>,
) -> PyResult<Vec<Option<PyTensor>>> {
    let options = options("grad", Some(retain_graph), Some(create_graph))?;
    let inputs = leaves("grad", "inputs", inputs)?;
    ready(py, &outputs)?;
    let grads = tape::grad(&roots(&outputs, &gradients), &inputs, options).py()?;
    Ok(grads.into_iter().map(|grad| grad.map(PyTensor)).collect())
}

/// Return for each tensor of `on` whether `result` depends on it.
#[pyfunction]
fn depends(result: PyRef<'_, PyTensor>, on: Tensors<'_>) -> Vec<bool> {
    let on: Vec<_> = on.iter().map(|tensor| tensor.0.clone()).collect();
    tape::depends(&result.0, &on)
}

/// Add the gradients of `outputs` to the `grad` of all leaves that they depend on, or of `inputs`.
#[pyfunction]
fn backward(
    py: Python<'_>,
    outputs: Tensors<'_>,
    gradients: Vec<Option<PyRef<'_, PyTensor>>>,
    inputs: Option<&Bound<'_, PyAny>>,
    retain_graph: &Bound<'_, PyAny>,
    create_graph: &Bound<'_, PyAny>,
) -> PyResult<()> {
    let options = options("backward", Some(retain_graph), Some(create_graph))?;
    let inputs = inputs.map(|given| leaves("backward", "inputs", given)).transpose()?;
    ready(py, &outputs)?;
    let roots = roots(&outputs, &gradients);
    match inputs {
        None => tape::backward(&roots, options).py(),
        Some(inputs) => tape::backward_to(&roots, &inputs, options).py(),
    }
}

/// Waits for room in the session's window, and records the user's line for the next instructions.
fn ready(py: Python<'_>, outputs: &[PyRef<'_, PyTensor>]) -> PyResult<()> {
    outputs.first().map_or(Ok(()), |output| session::ready(py, &output.0))?;
    source::note(py);
    Ok(())
}

fn roots<'a>(
    outputs: &'a [PyRef<'_, PyTensor>],
    gradients: &'a [Option<PyRef<'_, PyTensor>>],
) -> Vec<tape::Root<'a>> {
    let gradients = gradients.iter().map(|gradient| gradient.as_ref().map(|given| &given.0));
    outputs.iter().map(|output| &output.0).zip(gradients).collect()
}

/// Record a custom function on the tape, and return its outputs.
///
/// Args:
///     differentiable: for each output, whether gradients flow through it.
///     kept: the indices of the outputs that are saved for the backward pass.
///     backward: called as `backward(grads, saved)` with the outputs' gradients and the saved
///         outputs; returns the gradient of each input, or None.
#[pyfunction]
fn record_function(
    name: String,
    inputs: Vec<PyRef<'_, PyTensor>>,
    outputs: Vec<PyRef<'_, PyTensor>>,
    differentiable: Vec<bool>,
    kept: Vec<usize>,
    backward: Py<PyAny>,
) -> Vec<PyTensor> {
    let tensors = |given: Vec<PyRef<'_, PyTensor>>| -> Vec<gt::Tensor> {
        given.iter().map(|tensor| tensor.0.clone()).collect()
    };
    let call = move |call: BackwardCall<'_>| {
        let result = Python::attach(|py| -> PyResult<Vec<Option<gt::Tensor>>> {
            let given = (tuple(py, call.grads)?, tuple(py, call.kept)?);
            let grads = source::within_gradient(py, || backward.bind(py).call1(given))?;
            let grads: Vec<Option<PyRef<'_, PyTensor>>> = grads.extract()?;
            Ok(grads.into_iter().map(|grad| grad.map(|grad| grad.0.clone())).collect())
        });
        result.map_err(from_python)
    };
    let function = Function {
        name,
        inputs: &tensors(inputs),
        outputs: &tensors(outputs),
        differentiable: &differentiable,
        kept: &kept,
        backward: Box::new(call),
    };
    function.record().into_iter().map(PyTensor).collect()
}

/// Return a tensor with the current value and history of another one, unaffected by later changes
/// to it.
#[pyfunction]
fn snapshot(tensor: &PyTensor) -> PyTensor {
    PyTensor(tensor.0.snapshot())
}

fn tuple<'py>(py: Python<'py>, tensors: &[gt::Tensor]) -> PyResult<Bound<'py, PyTuple>> {
    PyTuple::new(py, tensors.iter().map(|tensor| PyTensor(tensor.clone())))
}

/// The handle of a registered hook. `remove()`, or the end of a `with` block, unregisters the hook.
#[pyclass(module = "gt", frozen)]
pub struct RemovableHandle(HookHandle);

#[pymethods]
impl RemovableHandle {
    /// Unregister the hook.
    fn remove(&self) {
        self.0.remove();
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    #[pyo3(signature = (*exception))]
    fn __exit__(&self, exception: &Bound<'_, PyTuple>) {
        let _ = exception;
        self.0.remove();
    }
}

/// Returns an argument `hook` that must be a function.
fn function(call: &str, hook: &Bound<'_, PyAny>) -> PyResult<Py<PyAny>> {
    if !hook.is_callable() {
        let text = format!("{call}: hook is {}, expected a function", hook.repr()?);
        return Err(PyTypeError::new_err(text));
    }
    Ok(hook.clone().unbind())
}

/// Returns the error for what a hook returned: PyTorch's kinds of errors.
fn wrong_result(call: &str, expected: &str, given: &Bound<'_, PyAny>) -> PyErr {
    let text = argument::mismatch(call, "what hook returns", expected, given);
    match given.cast::<PyTensor>() {
        Ok(_) => PyRuntimeError::new_err(text),
        Err(_) => PyTypeError::new_err(text),
    }
}

#[pymethods]
impl PyTensor {
    /// Call `hook(grad)` whenever this tensor's gradient is computed. If the hook returns a tensor,
    /// it replaces the gradient.
    fn register_hook(&self, hook: &Bound<'_, PyAny>) -> PyResult<RemovableHandle> {
        let hook = function("register_hook", hook)?;
        let call: Hook = Arc::new(move |grad| {
            let result = Python::attach(|py| -> PyResult<Option<gt::Tensor>> {
                let given = hook.bind(py).call1((PyTensor(grad.clone()),))?;
                match given.cast::<PyTensor>() {
                    Ok(other) => Ok(Some(other.get().0.clone())),
                    Err(_) if given.is_none() => Ok(None),
                    Err(_) => Err(wrong_result("register_hook", "a tensor or None", &given)),
                }
            });
            result.map_err(from_python)
        });
        self.0.register_hook(call).map(RemovableHandle).py()
    }

    /// Call `hook(tensor)` after a backward pass has accumulated this leaf's gradient in `grad`. The
    /// hook may change the tensor and its `grad`, as an optimizer does. It is called while the
    /// tensor exists; the graph of a pass does not keep it alive.
    ///
    /// Raises:
    ///     RuntimeError: the tensor does not require gradients, or is not a leaf.
    fn register_post_accumulate_grad_hook(
        slf: &Bound<'_, Self>,
        hook: &Bound<'_, PyAny>,
    ) -> PyResult<RemovableHandle> {
        const NAME: &str = "register_post_accumulate_grad_hook";
        let hook = function(NAME, hook)?;
        // The tensor has the hook, so a strong reference would keep both forever.
        let tensor = PyWeakrefReference::new(slf)?.unbind();
        let call: AccumulatedHook = Arc::new(move || {
            let result = Python::attach(|py| -> PyResult<()> {
                let Some(tensor) = tensor.bind(py).upgrade() else { return Ok(()) };
                let given = hook.bind(py).call1((&tensor,))?;
                if given.is_none() || given.is(&tensor) {
                    return Ok(());
                }
                Err(wrong_result(NAME, "None", &given))
            });
            result.map_err(from_python)
        });
        slf.get().0.register_post_accumulate_grad_hook(call).map(RemovableHandle).py()
    }

    /// Store this tensor's gradient in `grad` during backward passes, although it is not a leaf.
    fn retain_grad(&self) -> PyResult<()> {
        self.0.retain_grad().py()
    }

    /// Whether `retain_grad()` was called on this tensor, which is not a leaf.
    #[getter]
    fn retains_grad(&self) -> bool {
        self.0.retains_grad()
    }
}

pub fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(is_grad_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(set_grad_enabled, module)?)?;
    module.add_function(wrap_pyfunction!(set_autocast, module)?)?;
    module.add_function(wrap_pyfunction!(has_halves, module)?)?;
    module.add_function(wrap_pyfunction!(forget_gradients, module)?)?;
    module.add_function(wrap_pyfunction!(add_scaled_gradients, module)?)?;
    module.add_class::<RemovableHandle>()?;
    module.add_function(wrap_pyfunction!(record_function, module)?)?;
    module.add_function(wrap_pyfunction!(snapshot, module)?)?;
    module.add_function(wrap_pyfunction!(backward, module)?)?;
    module.add_function(wrap_pyfunction!(depends, module)?)?;
    module.add_function(wrap_pyfunction!(grad, module)?)
}
