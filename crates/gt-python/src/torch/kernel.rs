//! Functions of GT's as kernels of PyTorch's operators: tensors of PyTorch's become GT's on the way
//! in, and results become PyTorch's on the way out, or are written to the tensors that an operator
//! changes.

use gt::ir::ops::{self, binary, ternary};
use gt::ir::{Operand, Operation};
use gt::{Scalar, Tensor};
use pyo3::exceptions::PyRuntimeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use smallvec::SmallVec;

use super::dlpack::{self, CLUSTER, CPU};
use super::exchange::{self, Place, make, place};
use super::operands::Operands;
use super::side::{TORCH, Torch};
use crate::error::IntoPython;
use crate::tensor::PyTensor;
use crate::{convert, session, source};

/// A kernel.
#[pyclass(module = "gt._gt", frozen)]
pub struct Kernel {
    name: Py<PyString>,
    function: Py<PyAny>,
    /// The operation that the function issues, where it takes tensors and numbers alone.
    operation: Option<&'static Operation>,
    /// Whether results lie in memory as the first operand of their shape does.
    pointwise: bool,
    /// How many axes each operand has to have for the operation to be issued at once.
    rank: Option<usize>,
    /// Whether tensors of the host's may be among the operands.
    mixed: bool,
    writes: Writes,
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
impl Kernel {
    /// A kernel from a function of GT's.
    ///
    /// `writes` is `"first"`, or the names of the arguments that results are written to.
    #[new]
    #[pyo3(signature = (name, function, pointwise=false, writes=None, operation=None, mixed=false, rank=None))]
    fn new(
        name: Py<PyString>,
        function: Py<PyAny>,
        pointwise: bool,
        writes: Option<&Bound<'_, PyAny>>,
        operation: Option<&str>,
        mixed: bool,
        rank: Option<usize>,
    ) -> PyResult<Kernel> {
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
        Ok(Kernel { name, function, operation, pointwise, rank, mixed, writes })
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
        let torch = Torch { tensor, parameter, dtype, dtypes, resize, from_host };
        let _ = TORCH.set(py, torch);
    }

    #[pyo3(signature = (*args, **kwargs))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyAny>> {
        source::note(py);
        let torch = TORCH.get(py).expect("`connect` is called before any kernel");
        if let Some(operation) = self.operation
            && let Some((operation, scale)) = scaled(operation, kwargs)?
            && let Some(result) = self.issue(py, torch, operation, args, scale)?
        {
            return Ok(result);
        }
        let mut operands = Operands::of(args);
        let mut given: SmallVec<[Bound<'py, PyAny>; 6]> = SmallVec::new();
        for argument in args.iter_borrowed() {
            given.push(self.argument(torch, &argument, &mut operands)?);
        }
        let mut outs: SmallVec<[Bound<'py, PyAny>; 2]> = SmallVec::new();
        let named = kwargs.map(|_| PyDict::new(py));
        for (name, argument) in kwargs.iter().flat_map(|kwargs| kwargs.iter()) {
            if self.is_written(&name)? {
                outs.push(argument);
            } else if let Some(named) = &named {
                named.set_item(name, self.argument(torch, &argument, &mut operands)?)?;
            }
        }
        let given = PyTuple::new(py, given)?;
        let result = self.function.bind(py).call(given, named.as_ref())?;
        match &self.writes {
            Writes::Nothing => self.result(result, &operands),
            Writes::First => {
                let first = args.get_item(0)?;
                let place = place(&dlpack::view(&first)?)?;
                self.store(&first, &place, &value(&result)?)?;
                Ok(first)
            }
            Writes::Named(_) => self.write_outs(torch, outs, &result),
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
fn is_conjugate(tensor: &Bound<'_, PyAny>, place: &Place) -> PyResult<bool> {
    if !place.dtype.is_complex() {
        return Ok(false);
    }
    tensor.call_method0(intern!(tensor.py(), "is_conj"))?.is_truthy()
}

fn value(result: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    Ok(result.cast::<PyTensor>()?.get().0.clone())
}

impl Kernel {
    /// Issues the operation at once, if all arguments are tensors on the cluster or numbers.
    fn issue<'py>(
        &self,
        py: Python<'py>,
        torch: &Torch,
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
                let view = dlpack::view(&given)?;
                if let Some(number) = view.host_number() {
                    strongest = strongest.max(Some(number.category()));
                    tensors.push(Operand::Scalar(number));
                    continue;
                }
                if view.device.kind != CLUSTER {
                    return Ok(None);
                }
                let place = place(&view)?;
                if place.strided.shape.rank() > 0 {
                    widest = widest.max(Some(place.dtype.category()));
                }
                if place.dtype.is_complex() || (scale.is_some() && !place.dtype.is_float()) {
                    return Ok(None);
                }
                tensors.push(Operand::Tensor(place.read(py)?));
                operands.layouts.push(place.strided);
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
        let result = Tensor::apply(&session, operation, &borrowed, Default::default()).py()?;
        match self.writes {
            Writes::Nothing => {
                let order = if self.pointwise { operands.order(&result) } else { None };
                make(py, &result, order.as_deref()).map(Some)
            }
            Writes::First => {
                let first = args.get_item(0)?;
                place(&dlpack::view(&first)?)?.write(py, &result, self.name.bind(py).to_str()?)?;
                Ok(Some(first))
            }
            Writes::Named(_) => Ok(None),
        }
    }

    /// Whether results are written to the argument with a name.
    fn is_written(&self, name: &Bound<'_, PyAny>) -> PyResult<bool> {
        let Writes::Named(names) = &self.writes else { return Ok(false) };
        let name = name.cast::<PyString>()?.to_str()?;
        Ok(names.iter().any(|of| of == name))
    }

    /// An argument of PyTorch's as one of GT's.
    fn argument<'py>(
        &self,
        torch: &Torch,
        given: &Bound<'py, PyAny>,
        operands: &mut Operands<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = given.py();
        if torch.is_tensor(given)? {
            return self.operand(torch, given, operands);
        }
        if given.get_type().is(&torch.dtype) {
            let found = torch.dtypes.bind(py).get_item(given)?;
            return found.ok_or_else(|| {
                PyRuntimeError::new_err(format!(
                    "{}: a tensor on the cluster cannot have the dtype {given}",
                    self.name
                ))
            });
        }
        if let Ok(list) = given.cast::<PyList>() {
            let items = PyList::empty(py);
            for item in list.iter() {
                items.append(self.argument(torch, &item, operands)?)?;
            }
            return Ok(items.into_any());
        }
        Ok(given.clone())
    }

    fn operand<'py>(
        &self,
        torch: &Torch,
        given: &Bound<'py, PyAny>,
        operands: &mut Operands<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = given.py();
        let view = dlpack::view(given)?;
        match view.device.kind {
            CLUSTER => {
                let place = place(&view)?;
                if self.pointwise {
                    operands.layouts.push(place.strided);
                }
                let tensor = place.read(py)?;
                session::ready(py, &tensor)?;
                let tensor = if is_conjugate(given, &place)? {
                    exchange::conjugate(&tensor)?
                } else {
                    tensor
                };
                Ok(Bound::new(py, PyTensor(tensor))?.into_any())
            }
            CPU if view.rank == 0 => {
                let beside = operands.beside(torch)?;
                torch.from_host.bind(py).call1((given, PyList::new(py, beside)?))
            }
            CPU if self.mixed => torch.from_host.bind(py).call1((given, PyList::empty(py))),
            _ => {
                let device = given.getattr("device")?;
                Err(PyRuntimeError::new_err(format!(
                    "Expected all tensors to be on the same device, but found at least two devices, cluster:0 and {device}! ({})",
                    self.name
                )))
            }
        }
    }

    /// A result of GT's as one of PyTorch's.
    fn result<'py>(
        &self,
        result: Bound<'py, PyAny>,
        operands: &Operands<'_, 'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = result.py();
        if let Ok(tensor) = result.cast::<PyTensor>() {
            let tensor = &tensor.get().0;
            let order = operands.order(tensor);
            return make(py, tensor, order.as_deref());
        }
        let items: Vec<Bound<'py, PyAny>> = match result.cast::<PyTuple>() {
            Ok(items) => items.iter().collect(),
            Err(_) => match result.cast::<PyList>() {
                Ok(items) => items.iter().collect(),
                Err(_) => return Ok(result),
            },
        };
        let items = items.into_iter().map(|item| self.result(item, operands));
        Ok(PyTuple::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any())
    }

    /// Writes a result to a tensor, which may show the conjugates of what it holds.
    fn store(&self, to: &Bound<'_, PyAny>, place: &Place, value: &Tensor) -> PyResult<()> {
        let held = if is_conjugate(to, place)? && value.dtype().is_complex() {
            &exchange::conjugate(value)?
        } else {
            value
        };
        place.write(to.py(), held, self.name.bind(to.py()).to_str()?)
    }

    /// Writes results to the tensors that were given for them.
    fn write_outs<'py>(
        &self,
        torch: &Torch,
        outs: SmallVec<[Bound<'py, PyAny>; 2]>,
        result: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = result.py();
        let values = match result.cast::<PyTensor>() {
            Ok(_) => vec![result.clone()],
            Err(_) => result.try_iter()?.collect::<PyResult<Vec<_>>>()?,
        };
        for (out, result) in outs.iter().zip(&values) {
            let value = value(result)?;
            let view = dlpack::view(out)?;
            if view.device.kind != CLUSTER {
                let device = out.getattr("device")?;
                return Err(PyRuntimeError::new_err(format!(
                    "{}: expected out to be on cluster:0, but it is on {device}",
                    self.name
                )));
            }
            let mut place: Place = place(&view)?;
            if place.strided.shape != value.shape() {
                let size = PyTuple::new(py, value.shape().dims())?;
                torch.resize.bind(py).call1((out, size))?;
                place = self::place(&dlpack::view(out)?)?;
            }
            self.store(out, &place, &value)?;
        }
        match outs.len() {
            1 => Ok(outs[0].clone()),
            _ => Ok(PyTuple::new(py, outs)?.into_any()),
        }
    }
}
