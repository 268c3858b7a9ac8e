//! Functions of GT's as kernels of PyTorch's operators: tensors of PyTorch's become GT's on the way
//! in, and results become PyTorch's on the way out, or are written to the tensors that an operator
//! changes.

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
use super::cluster_tensor::{StorageView, make, storage_view};
use super::dlpack::{self, CLUSTER};
use super::kernel_cache::KernelCache;
use super::operands::Operands;
use super::results::{AxisOrders, KernelResults};
use super::thread_context;
use crate::error::IntoPython;
use crate::{convert, session};

/// A kernel.
#[pyclass(name = "Kernel", module = "gt._gt", frozen)]
pub struct TorchKernel {
    pub name: Py<PyString>,
    function: Py<PyAny>,
    /// The operation that the function issues, where it takes tensors and numbers alone.
    operation: Option<&'static Operation>,
    /// Whether results lie in memory as those of PyTorch's elementwise loops do.
    pub pointwise: bool,
    /// Tells in which order the axes of each result lie in memory, for other operators.
    layout: Option<Py<PyAny>>,
    /// How many axes each operand has to have for the operation to be issued at once.
    rank: Option<usize>,
    /// Whether tensors of the host's may be among the operands.
    pub mixed: bool,
    /// Whether the function passes numbers on to operations as they are.
    pub passes_numbers: bool,
    writes: Writes,
    /// What the function has issued.
    cache: KernelCache,
}

/// The tensors that results are written to.
enum Writes {
    Nothing,
    /// The first argument.
    First,
    /// Those with these names.
    Named(Vec<String>),
}

#[pymethods]
impl TorchKernel {
    /// A kernel from a function of GT's.
    ///
    /// `writes` is `"first"`, or the names of the arguments that results are written to. `layout`
    /// is called with the arguments where an operand does not lie in row-major order, and gives the
    /// order of each result's axes in memory, or None.
    #[new]
    #[allow(clippy::too_many_arguments, reason = "Python names them")]
    #[pyo3(signature = (name, function, pointwise=false, writes=None, operation=None, mixed=false, rank=None, passes_numbers=false, layout=None))]
    fn new(
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
            cache: KernelCache::default(),
        })
    }

    /// Tells kernels what they need of PyTorch's: the classes of tensors and of dtypes, GT's dtypes
    /// by PyTorch's, and two functions.
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

    /// Whether the function passes numbers on to operations as they are.
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

/// Where GT raises a `ValueError`, as for shapes that do not fit, PyTorch's operators raise a
/// `RuntimeError`.
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
            session::note(&first.session());
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

/// The operation with its named argument `alpha`, by which the second operand of a sum is
/// multiplied; `None` where other arguments are named.
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

/// Whether a tensor shows the conjugates of what it holds: products get such tensors as they are.
pub fn is_conjugate(tensor: &Bound<'_, PyAny>, view: &StorageView) -> PyResult<bool> {
    if !view.dtype.is_complex() {
        return Ok(false);
    }
    tensor.call_method0(intern!(tensor.py(), "is_conj"))?.is_truthy()
}

impl TorchKernel {
    /// How results lie in memory.
    fn orders(
        &self,
        py: Python<'_>,
        operands: &Operands<'_, '_>,
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

    /// What the function gives.
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

    /// Issues the operation at once, if all arguments are tensors on the cluster or numbers.
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
        let mut operands = Operands::of(args);
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
            // What a tensor of the host's without axes makes of the others, PyTorch says.
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
        session::note(&session);
        let result = Tensor::apply(&session, operation, &borrowed, Default::default()).py()?;
        match self.writes {
            Writes::Nothing => {
                let order = if self.pointwise { operands.order(&result) } else { None };
                make(py, &result, order.as_deref()).map(Some)
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

    /// Whether results are written to the argument with a name.
    pub fn is_written(&self, name: &str) -> bool {
        matches!(&self.writes, Writes::Named(names) if names.iter().any(|of| of == name))
    }
}
