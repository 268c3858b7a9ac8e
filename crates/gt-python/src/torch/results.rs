//! The results of a call: they become PyTorch's, or are written to the tensors that it changes.

use gt::{Tensor, ValueRef};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyInt, PyList, PyTuple};
use smallvec::{SmallVec, smallvec};

use super::arguments::Arguments;
use super::dlpack::{self, CLUSTER};
use super::exchange::{self, Place, make, place};
use super::kernel::{Kernel, is_conjugate};
use super::operands::Operands;
use super::side::Torch;
use crate::tensor::PyTensor;

/// What a kernel's function gives.
pub enum Results<'py> {
    One(Tensor),
    /// A tuple or list.
    Several(SmallVec<[Item; 4]>),
    /// What is passed on as it is, such as a number, or tensors in lists.
    Other(Bound<'py, PyAny>),
}

/// One of several results.
#[derive(Clone)]
pub enum Item<T = Tensor> {
    Tensor(T),
    None,
    Number(i64),
}

/// In which order the axes of results lie in memory.
pub enum Orders {
    /// Row-major.
    Plain,
    /// As the operands say.
    Elementwise,
    /// That of each result, or its own.
    Given(Vec<Option<Vec<i64>>>),
}

/// Which of a function's results are tensors, and what the others are.
pub enum Form {
    One,
    Several(SmallVec<[Item<()>; 4]>),
}

impl Item {
    /// A result in a tuple; `None` for what is neither a tensor nor always the same.
    fn of(item: &Bound<'_, PyAny>) -> Option<Item> {
        if let Ok(tensor) = item.cast::<PyTensor>() {
            return Some(Item::Tensor(tensor.get().0.clone()));
        }
        if item.is_none() {
            return Some(Item::None);
        }
        let number = item.cast_exact::<PyInt>().ok()?;
        number.extract().ok().map(Item::Number)
    }
}

impl<T> Item<T> {
    fn map<'a, U>(&'a self, tensor: impl FnOnce(&'a T) -> U) -> Item<U> {
        match self {
            Item::Tensor(of) => Item::Tensor(tensor(of)),
            Item::None => Item::None,
            Item::Number(number) => Item::Number(*number),
        }
    }

    fn tensor(&self) -> Option<&T> {
        match self {
            Item::Tensor(of) => Some(of),
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

impl<'py> Results<'py> {
    pub fn of(result: Bound<'py, PyAny>) -> Results<'py> {
        if let Ok(tensor) = result.cast::<PyTensor>() {
            return Results::One(tensor.get().0.clone());
        }
        let several = items_of(&result).and_then(|items| items.iter().map(Item::of).collect());
        match several {
            Some(items) => Results::Several(items),
            None => Results::Other(result),
        }
    }

    /// The tensors, and what they are of a program's outputs; `None` if there is anything else.
    pub fn outputs(&self) -> Option<(SmallVec<[ValueRef; 4]>, Form)> {
        match self {
            Results::One(tensor) => Some((smallvec![tensor.value_ref()], Form::One)),
            Results::Several(items) => Some((
                items.iter().filter_map(Item::tensor).map(Tensor::value_ref).collect(),
                Form::Several(items.iter().map(|item| item.map(|_| ())).collect()),
            )),
            Results::Other(_) => None,
        }
    }

    /// A program's outputs, as the function gave them.
    pub fn again(outputs: SmallVec<[ValueRef; 2]>, form: &Form) -> Results<'py> {
        let mut outputs = outputs.into_iter();
        let mut next = || outputs.next().expect("as many as there were").tensor();
        match form {
            Form::One => Results::One(next()),
            Form::Several(items) => {
                Results::Several(items.iter().map(|item| item.map(|()| next())).collect())
            }
        }
    }

    /// The only result.
    pub fn one(self) -> PyResult<Tensor> {
        match self {
            Results::One(tensor) => Ok(tensor),
            Results::Several(_) => Err(PyRuntimeError::new_err("one result is expected")),
            Results::Other(other) => Ok(other.cast::<PyTensor>()?.get().0.clone()),
        }
    }

    /// As PyTorch's.
    pub fn into_torch(
        self,
        py: Python<'py>,
        operands: &Operands<'_, 'py>,
        orders: &Orders,
    ) -> PyResult<Bound<'py, PyAny>> {
        self.in_order(py, operands, orders, &mut 0)
    }

    /// As PyTorch's; `at` counts the tensors.
    fn in_order(
        self,
        py: Python<'py>,
        operands: &Operands<'_, 'py>,
        orders: &Orders,
        at: &mut usize,
    ) -> PyResult<Bound<'py, PyAny>> {
        let each = |of: Results<'py>, at: &mut usize| of.in_order(py, operands, orders, at);
        match self {
            Results::One(tensor) => {
                let order = match orders {
                    Orders::Plain => None,
                    Orders::Elementwise => operands.order(&tensor),
                    Orders::Given(all) => {
                        let given = all.get(*at).and_then(Option::as_deref);
                        given.map(SmallVec::from_slice)
                    }
                };
                *at += 1;
                make(py, &tensor, order.as_deref())
            }
            Results::Several(items) => {
                let items = items.into_iter().map(|item| match item {
                    Item::Tensor(tensor) => each(Results::One(tensor), at),
                    Item::None => Ok(py.None().into_bound(py)),
                    Item::Number(number) => Ok(number.into_pyobject(py)?.into_any()),
                });
                Ok(PyTuple::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any())
            }
            Results::Other(other) => {
                let Some(items) = items_of(&other) else { return Ok(other) };
                let items = items.into_iter().map(|item| each(Results::of(item), at));
                Ok(PyTuple::new(py, items.collect::<PyResult<Vec<_>>>()?)?.into_any())
            }
        }
    }
}

impl Kernel {
    /// Writes a result to a tensor, which may show the conjugates of what it holds.
    pub fn store(&self, to: &Bound<'_, PyAny>, place: &Place, value: &Tensor) -> PyResult<()> {
        let held = if is_conjugate(to, place)? && value.dtype().is_complex() {
            &exchange::conjugate(value)?
        } else {
            value
        };
        place.write(to.py(), held, self.name.bind(to.py()).to_str()?)
    }

    /// Writes results to the tensors that were given for them.
    pub fn write_outs<'py>(
        &self,
        torch: &Torch,
        arguments: Arguments<'_, 'py>,
        results: Results<'py>,
        py: Python<'py>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let outs = arguments.outs;
        let items: SmallVec<[Item; 4]> = match results {
            Results::Several(items) => items,
            one => SmallVec::from_iter([Item::Tensor(one.one()?)]),
        };
        for (out, value) in outs.iter().zip(items.iter().filter_map(Item::tensor)) {
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
            self.store(out, &place, value)?;
        }
        match outs.len() {
            1 => Ok(outs[0].clone()),
            _ => Ok(PyTuple::new(py, outs)?.into_any()),
        }
    }
}
