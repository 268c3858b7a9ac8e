//! GT functions as kernels of PyTorch's operators. PyTorch tensors are converted to GT tensors, and
//! the results are converted back or written to the tensors that an operator changes.

use gt::ir::ops::{self, binary, ternary};
use gt::ir::{Operand, Operation};
use gt::{Scalar, Tensor};
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use smallvec::SmallVec;

use super::api::{TORCH_API, TorchApi};
use super::arguments::KernelArguments;
use super::cluster_tensor::{StorageView, create, storage_view};
use super::dlpack::{self, CLUSTER};
use super::kernel_cache::KernelCache;
use super::operands::StridedOperands;
use super::results::{AxisOrders, KernelResults};
use super::thread_context;
use crate::error::IntoPython;
use crate::user_code::LATEST;
use crate::{convert, session};

/// A kernel of a PyTorch operator.
#[pyclass(name = "Kernel", module = "gt._gt", frozen)]
pub struct TorchKernel {
    pub name: Py<PyString>,
    function: Py<PyAny>,
    /// The operation that the function issues, if it takes only tensors and numbers.
    operation: Option<&'static Operation>,
    /// Whether the memory layout of results follows the operands, as in PyTorch's elementwise
    /// loops.
    pub pointwise: bool,
    /// Computes the memory order of each result's axes, for other operators.
    layout: Option<Py<PyAny>>,
    /// The number of axes of the operands for which the operation can be issued directly.
    rank: Option<usize>,
    /// Whether operands may be host tensors.
    pub mixed: bool,
    /// Whether the function passes numbers unchanged to operations.
    pub passes_numbers: bool,
    writes: Writes,
    /// The recorded calls of the function.
    cache: KernelCache,
}

/// The arguments that results are written to.
enum Writes {
    Nothing,
    /// The first argument.
    First,
    /// The keyword arguments with these names.
    Named(Vec<String>),
}

#[pymethods]
impl TorchKernel {
    /// Create a kernel from a GT function.
    ///
    /// Args:
    ///     pointwise: whether the memory layout of results follows the operands.
    ///     writes: "first", or the names of the keyword arguments that results are written to.
    ///     operation: the operation that the function issues for tensors and numbers alone.
    ///     mixed: whether operands may be host tensors.
    ///     rank: the number of axes of operands for which the operation is issued directly.
    ///     passes_numbers: whether the function passes numbers unchanged to operations.
    ///     layout: called with the arguments if an operand is not contiguous; returns the memory
    ///         order of each result's axes, or None for row-major.
    #[new]
    #[allow(clippy::too_many_arguments, reason = "Python names them")]
    #[pyo3(signature = (name, function, pointwise=false, writes=None, operation=None, mixed=false, rank=None, passes_numbers=false, layout=None))]
    fn new(
        py: Python<'_>,
        name: Py<PyString>,
        function: Py<PyAny>,
        pointwise: bool,
        writes: Option<&Bound<'_, PyAny>>,
        operation: Option<&str>,
        mixed: bool,
        rank: Option<usize>,
        passes_numbers: bool,
        layout: Option<Py<PyAny>>,
    ) -> PyResult<TorchKernel> {
        let operation = operation.and_then(|name| {
            let found = ops::ALL.iter().copied().find(|operation| operation.name == name)?;
            let is_plain = found.attributes().next().is_none() && found.further.is_none();
            is_plain.then_some(found)
        });
        let writes = match writes {
            None => Writes::Nothing,
            Some(word) if word.is_instance_of::<PyString>() => Writes::First,
            Some(names) => Writes::Named(names.extract()?),
        };
        let cache = KernelCache::new(name.to_str(py)?);
        Ok(TorchKernel {
            name,
            function,
            operation,
            pointwise,
            layout,
            rank,
            mixed,
            passes_numbers,
            writes,
            cache,
        })
    }

    /// Register the PyTorch classes and functions that kernels use: the classes of tensors,
    /// parameters and dtypes, a dict from PyTorch's to GT's dtypes, and functions that resize an
    /// output and copy a host tensor to the cluster.
    #[staticmethod]
    #[pyo3(signature = (*, tensor, parameter, dtype, dtypes, resize, from_host))]
    fn connect(
        py: Python<'_>,
        tensor: Py<PyAny>,
        parameter: Py<PyAny>,
        dtype: Py<PyAny>,
        dtypes: Py<PyDict>,
        resize: Py<PyAny>,
        from_host: Py<PyAny>,
    ) {
        let torch = TorchApi { tensor, parameter, dtype, dtypes, resize, from_host };
        let _ = TORCH_API.set(py, torch);
    }

    /// Whether the function passes numbers unchanged to operations.
    #[getter(passes_numbers)]
    fn does_pass_numbers(&self) -> bool {
        self.passes_numbers || self.operation.is_some()
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.call(py, args, kwargs).map_err(|error| as_torch_raises(py, error))
    }
}

/// Converts a `ValueError`, such as for shapes, to the `RuntimeError` that PyTorch's operators
/// raise.
fn as_torch_raises(py: Python<'_>, error: PyErr) -> PyErr {
    if !error.get_type(py).is(py.get_type::<PyValueError>()) {
        return error;
    }
    let raised = PyRuntimeError::new_err(error.value(py).to_string());
    raised.set_cause(py, Some(error));
    raised
}

impl TorchKernel {
    fn call<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        thread_context::note(py);
        let torch = TORCH_API.get(py).expect("`connect` is called before any kernel");
        if let Some(operation) = self.operation
            && let Some((operation, scale)) = scaled(operation, kwargs)?
            && let Some(result) = self.issue(py, torch, operation, args, scale)?
        {
            return Ok(result);
        }
        thread_context::note_indices(torch, args)?;
        let mut arguments = KernelArguments::read(self, torch, args, kwargs)?;
        if let Some(first) = arguments.tensors.first() {
            LATEST.note_session(&first.session());
        }
        let results = self.results(py, &mut arguments)?;
        match &self.writes {
            Writes::Nothing => {
                let orders = self.orders(py, &arguments.operands, args, kwargs)?;
                results.into_torch(py, &arguments.operands, &orders)
            }
            Writes::First => {
                let first = args.get_item(0)?;
                let view = storage_view(&dlpack::describe(&first)?)?;
                self.store(&first, &view, &results.one()?)?;
                Ok(first)
            }
            Writes::Named(_) => self.write_outs(torch, arguments, results, py),
        }
    }
}

/// Returns the operation to issue, with the factor of the second operand if a sum has the keyword
/// argument `alpha`; `None` if there are other keyword arguments.
fn scaled(
    operation: &'static Operation,
    kwargs: Option<&Bound<'_, PyDict>>,
) -> PyResult<Option<(&'static Operation, Option<Scalar>)>> {
    let Some(kwargs) = kwargs.filter(|kwargs| !kwargs.is_empty()) else {
        return Ok(Some((operation, None)));
    };
    let sign = match operation.id {
        id if id == binary::ADD.id => 1.0,
        id if id == binary::SUB.id => -1.0,
        _ => return Ok(None),
    };
    let alpha = kwargs.get_item(intern!(kwargs.py(), "alpha"))?.filter(|_| kwargs.len() == 1);
    let alpha = alpha.and_then(|alpha| alpha.extract::<f64>().ok());
    Ok(alpha.map(|alpha| (&ternary::MUL_ADD, Some(Scalar::Float(sign * alpha)))))
}

/// Returns whether PyTorch's conjugate bit of a tensor is set, as it may be for operands of
/// products.
pub fn is_conjugate(tensor: &Bound<'_, PyAny>, view: &StorageView) -> PyResult<bool> {
    if !view.dtype.is_complex() {
        return Ok(false);
    }
    tensor.call_method0(intern!(tensor.py(), "is_conj"))?.is_truthy()
}

impl TorchKernel {
    /// Returns the memory order of the results.
    fn orders(
        &self,
        py: Python<'_>,
        operands: &StridedOperands<'_, '_>,
        args: &Bound<'_, PyTuple>,
        kwargs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<AxisOrders> {
        if self.pointwise {
            return Ok(AxisOrders::Elementwise);
        }
        match &self.layout {
            Some(layout) if operands.any_in_other_order() => {
                layout.bind(py).call1((args, kwargs))?.extract().map(AxisOrders::Given)
            }
            _ => Ok(AxisOrders::Plain),
        }
    }

    /// Returns the results of the function, replayed if the call was recorded.
    fn results<'py>(
        &self,
        py: Python<'py>,
        arguments: &mut KernelArguments<'_, 'py>,
    ) -> PyResult<KernelResults<'py>> {
        let key = arguments.key.take();
        let call = || arguments.call(self.function.bind(py)).map(KernelResults::of);
        match key {
            Some(key) => {
                self.cache.replay_or_record(key, &arguments.tensors, &arguments.numbers, call)
            }
            None => call(),
        }
    }

    /// Issues the operation directly; returns `None` unless all arguments are suitable tensors on
    /// the cluster or numbers.
    fn issue<'py>(
        &self,
        py: Python<'py>,
        torch: &TorchApi,
        operation: &'static Operation,
        args: &Bound<'py, PyTuple>,
        scale: Option<Scalar>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if args.len() + usize::from(scale.is_some()) != operation.parameters.len() {
            return Ok(None);
        }
        let mut operands = StridedOperands::of(args);
        let (mut strongest, mut widest) = (None, None);
        let mut tensors: SmallVec<[Operand<Tensor>; 3]> = SmallVec::new();
        for given in args.iter_borrowed() {
            if torch.is_tensor(&given)? {
                let descriptor = dlpack::describe(&given)?;
                if let Some(number) = descriptor.host_number() {
                    strongest = strongest.max(Some(number.category()));
                    tensors.push(Operand::Scalar(number));
                    continue;
                }
                if descriptor.device.kind != CLUSTER {
                    return Ok(None);
                }
                let view = storage_view(&descriptor)?;
                if view.strided.shape.rank() > 0 {
                    widest = widest.max(Some(view.dtype.category()));
                }
                if view.dtype.is_complex() || (scale.is_some() && !view.dtype.is_float()) {
                    return Ok(None);
                }
                tensors.push(Operand::Tensor(view.read(py)?));
                operands.layouts.push(view.strided);
            } else {
                match convert::scalar(&given)? {
                    Some(scalar) => tensors.push(Operand::Scalar(scalar)),
                    None => return Ok(None),
                }
            }
        }
        if strongest > widest {
            // A number of a stronger category promotes the tensors by PyTorch's rules.
            return Ok(None);
        }
        if self.layout.is_some() && operands.any_in_other_order() {
            return Ok(None);
        }
        if self.rank.is_some_and(|rank| !operands.are_batches(rank)) {
            return Ok(None);
        }
        tensors.extend(scale.map(Operand::Scalar));
        let borrowed = tensors.iter().map(|operand| match operand {
            Operand::Tensor(tensor) => Operand::Tensor(tensor),
            Operand::Scalar(scalar) => Operand::Scalar(*scalar),
        });
        let borrowed: SmallVec<[Operand<&Tensor>; 3]> = borrowed.collect();
        let first = borrowed.iter().find_map(Operand::tensor).copied();
        let Some(first) = first else { return Ok(None) };
        let session = session::ready_session(py, first)?;
        LATEST.note_session(&session);
        let result = Tensor::apply(&session, operation, &borrowed, Default::default()).py()?;
        match self.writes {
            Writes::Nothing => {
                let order = if self.pointwise { operands.order(&result) } else { None };
                create(py, &result, order.as_deref()).map(Some)
            }
            Writes::First => {
                let first = args.get_item(0)?;
                storage_view(&dlpack::describe(&first)?)?.write(
                    py,
                    &result,
                    self.name.bind(py).to_str()?,
                )?;
                Ok(Some(first))
            }
            Writes::Named(_) => Ok(None),
        }
    }

    /// Returns whether results are written to the keyword argument with this name.
    pub fn is_written(&self, name: &str) -> bool {
        matches!(&self.writes, Writes::Named(names) if names.iter().any(|of| of == name))
    }
}
