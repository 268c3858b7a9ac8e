//! The results of a kernel's function, and their conversion to PyTorch's.

use gt::{Tensor, ValueRef};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyTuple};
use smallvec::{SmallVec, smallvec};

use super::api::TorchApi;
use super::arguments::KernelArguments;
use super::cluster_tensor::{self, StorageView, create, storage_view};
use super::dlpack::{self, CLUSTER};
use super::kernel::{TorchKernel, is_conjugate};
use super::operands::StridedOperands;
use crate::tensor::PyTensor;

/// The results of a kernel's function.
pub enum KernelResults<'py> {
    One(Tensor),
    /// A tuple or list.
    Several(SmallVec<[ResultItem; 4]>),
    /// Other objects, such as a number or nested lists of tensors.
    Other(Bound<'py, PyAny>),
}

/// One of several results.
#[derive(Clone)]
pub enum ResultItem<T = Tensor> {
    Tensor(T),
    None,
    Number(i64),
}

/// The memory order of the axes of results.
pub enum AxisOrders {
    /// Row-major.
    Plain,
    /// Derived from the operands' strides.
    Elementwise,
    /// An order for each result; `None` is row-major.
    Given(Vec<Option<Vec<i64>>>),
}

/// The structure of a function's results, without the tensors.
pub enum ResultForm {
    One,
    Several(SmallVec<[ResultItem<()>; 4]>),
}

impl ResultItem {
    /// Converts an item of a tuple or list; `None` for objects other than tensors, None and ints.
    fn of(item: &Bound<'_, PyAny>) -> Option<ResultItem> {
        if let Ok(tensor) = item.cast::<PyTensor>() {
            return Some(ResultItem::Tensor(tensor.get().0.clone()));
        }
        if item.is_none() {
            return Some(ResultItem::None);
        }
        let number = item.cast_exact::<PyInt>().ok()?;
        number.extract().ok().map(ResultItem::Number)
    }
}

impl<T> ResultItem<T> {
    fn map<'a, U>(&'a self, tensor: impl FnOnce(&'a T) -> U) -> ResultItem<U> {
        match self {
            ResultItem::Tensor(of) => ResultItem::Tensor(tensor(of)),
            ResultItem::None => ResultItem::None,
            ResultItem::Number(number) => ResultItem::Number(*number),
        }
    }

    fn tensor(&self) -> Option<&T> {
        match self {
            ResultItem::Tensor(of) => Some(of),
            _ => None,
        }
    }
}

/// Returns the items of a tuple or list.
fn items_of<'py>(of: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyAny>>> {
    match (of.cast::<PyTuple>(), of.cast::<PyList>()) {
        (Ok(items), _) => Some(items.iter().collect()),
        (_, Ok(items)) => Some(items.iter().collect()),
        _ => None,
    }
}

impl<'py> KernelResults<'py> {
    /// Classifies the result of a function.
    pub fn of(result: Bound<'py, PyAny>) -> KernelResults<'py> {
        if let Ok(tensor) = result.cast::<PyTensor>() {
            return KernelResults::One(tensor.get().0.clone());
        }
        let several =
            items_of(&result).and_then(|items| items.iter().map(ResultItem::of).collect());
        match several {
            Some(items) => KernelResults::Several(items),
            None => KernelResults::Other(result),
        }
    }

    /// Returns the tensors as outputs of a record, and the structure of the results; `None` if they
    /// contain other objects.
    pub fn outputs(&self) -> Option<(SmallVec<[ValueRef; 4]>, ResultForm)> {
        match self {
            KernelResults::One(tensor) => Some((smallvec![tensor.value_ref()], ResultForm::One)),
            KernelResults::Several(items) => Some((
                items.iter().filter_map(ResultItem::tensor).map(Tensor::value_ref).collect(),
                ResultForm::Several(items.iter().map(|item| item.map(|_| ())).collect()),
            )),
            KernelResults::Other(_) => None,
        }
    }

    /// Rebuilds the results from the outputs of a replayed record.
    pub fn from_outputs(outputs: SmallVec<[ValueRef; 2]>, form: &ResultForm) -> KernelResults<'py> {
        let mut outputs = outputs.into_iter();
        let mut next = || outputs.next().expect("one for each tensor").tensor();
        match form {
            ResultForm::One => KernelResults::One(next()),
            ResultForm::Several(items) => {
                KernelResults::Several(items.iter().map(|item| item.map(|()| next())).collect())
            }
        }
    }

    /// Returns the only result.
    pub fn one(self) -> PyResult<Tensor> {
        match self {
            KernelResults::One(tensor) => Ok(tensor),
            KernelResults::Several(_) => Err(PyRuntimeError::new_err("one result is expected")),
            KernelResults::Other(other) => Ok(other.cast::<PyTensor>()?.get().0.clone()),
        }
    }

    /// Converts the results to PyTorch tensors.
    pub fn into_torch(
        self,
        py: Python<'py>,
        operands: &StridedOperands<'_, 'py>,
        orders: &AxisOrders,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.in_order(py, operands, orders, &mut 0)
    }

    /// Converts the results; `at` counts the tensors.
    fn in_order(
        self,
        py: Python<'py>,
        operands: &StridedOperands<'_, 'py>,
        orders: &AxisOrders,
        at: &mut usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let each = |of: KernelResults<'py>, at: &mut usize| of.in_order(py, operands, orders, at);
        match self {
            KernelResults::One(tensor) => {
                let order = match orders {
                    AxisOrders::Plain => None,
                    AxisOrders::Elementwise => operands.order(&tensor),
                    AxisOrders::Given(all) => {
                        let given = all.get(*at).and_then(Option::as_deref);
                        given.map(SmallVec::from_slice)
                    }
                };
                *at += 1;
                create(py, &tensor, order.as_deref())
            }
            KernelResults::Several(items) => {
                let items = items.into_iter().map(|item| match item {
                    ResultItem::Tensor(tensor) => each(KernelResults::One(tensor), at),
                    ResultItem::None => Ok(py.None().into_bound(py)),
                    ResultItem::Number(number) => Ok(number.into_pyobject(py)?.into_any()),
                });
                Ok(PyTuple::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any())
            }
            KernelResults::Other(other) => {
                let Some(items) = items_of(&other) else { return Ok(other) };
                let items = items.into_iter().map(|item| each(KernelResults::of(item), at));
                Ok(PyTuple::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any())
            }
        }
    }
}

impl TorchKernel {
    /// Writes a result to a tensor, whose conjugate bit may be set.
    pub fn store(&self, to: &Bound<'_, PyAny>, view: &StorageView, value: &Tensor) -> PyResult<()> {
        let held = if is_conjugate(to, view)? && value.dtype().is_complex() {
            &cluster_tensor::conjugate(value)?
        } else {
            value
        };
        view.write(to.py(), held, self.name.bind(to.py()).to_str()?)
    }

    /// Writes results to the output tensors of the call, resizing them if needed.
    pub fn write_outs<'py>(
        &self,
        torch: &TorchApi,
        arguments: KernelArguments<'_, 'py>,
        results: KernelResults<'py>,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let outs = arguments.outs;
        let items: SmallVec<[ResultItem; 4]> = match results {
            KernelResults::Several(items) => items,
            one => SmallVec::from_iter([ResultItem::Tensor(one.one()?)]),
        };
        for (out, value) in outs.iter().zip(items.iter().filter_map(ResultItem::tensor)) {
            let descriptor = dlpack::describe(out)?;
            if descriptor.device.kind != CLUSTER {
                let device = out.getattr("device")?;
                return Err(PyRuntimeError::new_err(format!(
                    "{}: expected out to be on cluster:0, but it is on {device}",
                    self.name
                )));
            }
            let mut view: StorageView = storage_view(&descriptor)?;
            if view.strided.shape != value.shape() {
                let size = PyTuple::new(py, value.shape().dims())?;
                torch.resize.bind(py).call1((out, size))?;
                view = self::storage_view(&dlpack::describe(out)?)?;
            }
            self.store(out, &view, value)?;
        }
        match outs.len() {
            1 => Ok(outs[0].clone()),
            _ => Ok(PyTuple::new(py, outs)?.into_any()),
        }
    }
}
