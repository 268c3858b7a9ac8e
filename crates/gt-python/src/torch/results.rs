//! The results of a call: they become PyTorch's, or are written to the tensors that it changes.

use gt::{Tensor, ValueRef};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyTuple};
use smallvec::{SmallVec, smallvec};

use super::api::TorchApi;
use super::arguments::KernelArguments;
use super::cluster_tensor::{self, StorageView, make, storage_view};
use super::dlpack::{self, CLUSTER};
use super::kernel::{TorchKernel, is_conjugate};
use super::operands::Operands;
use crate::tensor::PyTensor;

/// What a kernel's function gives.
pub enum KernelResults<'py> {
    One(Tensor),
    /// A tuple or list.
    Several(SmallVec<[ResultItem; 4]>),
    /// What is passed on as it is, such as a number, or tensors in lists.
    Other(Bound<'py, PyAny>),
}

/// One of several results.
#[derive(Clone)]
pub enum ResultItem<T = Tensor> {
    Tensor(T),
    None,
    Number(i64),
}

/// In which order the axes of results lie in memory.
pub enum AxisOrders {
    /// Row-major.
    Plain,
    /// As the operands say.
    Elementwise,
    /// That of each result, or its own.
    Given(Vec<Option<Vec<i64>>>),
}

/// Which of a function's results are tensors, and what the others are.
pub enum ResultForm {
    One,
    Several(SmallVec<[ResultItem<()>; 4]>),
}

impl ResultItem {
    /// A result in a tuple; `None` for what is neither a tensor nor always the same.
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

/// The items of a tuple or list.
fn items_of<'py>(of: &Bound<'py, PyAny>) -> Option<Vec<Bound<'py, PyAny>>> {
    match (of.cast::<PyTuple>(), of.cast::<PyList>()) {
        (Ok(items), _) => Some(items.iter().collect()),
        (_, Ok(items)) => Some(items.iter().collect()),
        _ => None,
    }
}

impl<'py> KernelResults<'py> {
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

    /// The tensors, and what they are of a program's outputs; `None` if there is anything else.
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

    /// A program's outputs, as the function gave them.
    pub fn from_outputs(outputs: SmallVec<[ValueRef; 2]>, form: &ResultForm) -> KernelResults<'py> {
        let mut outputs = outputs.into_iter();
        let mut next = || outputs.next().expect("as many as there were").tensor();
        match form {
            ResultForm::One => KernelResults::One(next()),
            ResultForm::Several(items) => {
                KernelResults::Several(items.iter().map(|item| item.map(|()| next())).collect())
            }
        }
    }

    /// The only result.
    pub fn one(self) -> PyResult<Tensor> {
        match self {
            KernelResults::One(tensor) => Ok(tensor),
            KernelResults::Several(_) => Err(PyRuntimeError::new_err("one result is expected")),
            KernelResults::Other(other) => Ok(other.cast::<PyTensor>()?.get().0.clone()),
        }
    }

    /// As PyTorch's.
    pub fn into_torch(
        self,
        py: Python<'py>,
        operands: &Operands<'_, 'py>,
        orders: &AxisOrders,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.in_order(py, operands, orders, &mut 0)
    }

    /// As PyTorch's; `at` counts the tensors.
    fn in_order(
        self,
        py: Python<'py>,
        operands: &Operands<'_, 'py>,
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
                make(py, &tensor, order.as_deref())
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
    /// Writes a result to a tensor, which may show the conjugates of what it holds.
    pub fn store(&self, to: &Bound<'_, PyAny>, view: &StorageView, value: &Tensor) -> PyResult<()> {
        let held = if is_conjugate(to, view)? && value.dtype().is_complex() {
            &cluster_tensor::conjugate(value)?
        } else {
            value
        };
        view.write(to.py(), held, self.name.bind(to.py()).to_str()?)
    }

    /// Writes results to the tensors that were given for them.
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
