//! The arguments of a kernel call, and their conversion to GT's.

use gt::{Tensor, program};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyFloat, PyList, PyString, PyTuple};
use smallvec::SmallVec;

use super::api::TorchApi;
use super::cluster_tensor::{self, storage_view};
use super::dlpack::{self, CLUSTER, CPU};
use super::kernel::{TorchKernel, is_conjugate};
use super::kernel_cache::KernelKey;
use super::operands::StridedOperands;
use crate::session;
use crate::tensor::PyTensor;

/// Numbers that functions test for, or use as constants. They are part of a kernel's key instead of
/// inputs of its record.
pub const SPECIAL: [f64; 5] = [-1.0, 0.0, 0.5, 1.0, 2.0];

/// The arguments of a kernel call, read.
pub struct KernelArguments<'a, 'py> {
    kernel: &'a TorchKernel,
    torch: &'a TorchApi,
    args: &'a Bound<'py, PyTuple>,
    kwargs: Option<&'a Bound<'py, PyDict>>,
    /// The values of the tensors on the cluster, in the order of the arguments.
    pub tensors: SmallVec<[Tensor; 4]>,
    /// The numbers that the function passes unchanged to operations; they may vary between calls
    /// with the same key.
    pub numbers: SmallVec<[f64; 2]>,
    pub operands: StridedOperands<'a, 'py>,
    /// The output tensors that are passed as keyword arguments.
    pub outs: SmallVec<[Bound<'py, PyAny>; 2]>,
    /// The key of the instructions that the call issues, if they follow from its arguments.
    pub key: Option<KernelKey>,
}

impl<'a, 'py> KernelArguments<'a, 'py> {
    /// Reads the arguments of a call, with the values of tensors on the cluster.
    ///
    /// # Errors
    /// A tensor is on an unsupported device.
    pub fn read(
        kernel: &'a TorchKernel,
        torch: &'a TorchApi,
        args: &'a Bound<'py, PyTuple>,
        kwargs: Option<&'a Bound<'py, PyDict>>,
    ) -> PyResult<KernelArguments<'a, 'py>> {
        let mut read = KernelArguments {
            kernel,
            torch,
            args,
            kwargs,
            tensors: SmallVec::new(),
            numbers: SmallVec::new(),
            operands: StridedOperands::of(args),
            outs: SmallVec::new(),
            key: (!program::is_recording()).then(KernelKey::new),
        };
        for given in args.iter_borrowed() {
            read.take(&given)?;
        }
        for (name, given) in kwargs.iter().flat_map(|kwargs| kwargs.iter()) {
            let name = name.cast::<PyString>()?.to_str()?;
            if kernel.is_written(name) {
                read.outs.push(given);
                continue;
            }
            if let Some(key) = &mut read.key {
                key.word(name);
            }
            read.take(&given)?;
        }
        Ok(read)
    }

    fn take(&mut self, given: &Bound<'py, PyAny>) -> PyResult<()> {
        if self.torch.is_tensor(given)? {
            return self.take_tensor(given);
        }
        if let Ok(list) = given.cast::<PyList>() {
            if let Some(key) = &mut self.key {
                key.list(list.len());
            }
            return list.iter().try_for_each(|item| self.take(&item));
        }
        if self.kernel.passes_numbers
            && self.tensors.iter().all(|tensor| tensor.dtype().is_float())
            && let Ok(number) = given.cast_exact::<PyFloat>()
            && !SPECIAL.contains(&number.value())
            && !self.numbers.contains(&number.value())
        {
            self.numbers.push(number.value());
            if let Some(key) = &mut self.key {
                key.number();
            }
            return Ok(());
        }
        if let Some(key) = &mut self.key
            && !key.value(self.torch, given)?
        {
            self.key = None;
        }
        Ok(())
    }

    fn take_tensor(&mut self, given: &Bound<'py, PyAny>) -> PyResult<()> {
        let py = given.py();
        let descriptor = dlpack::describe(given)?;
        if descriptor.device.kind == CPU && (descriptor.rank == 0 || self.kernel.mixed) {
            // It is copied to the cluster when the function is called.
            self.key = None;
            return Ok(());
        }
        if descriptor.device.kind != CLUSTER {
            let device = given.getattr("device")?;
            return Err(PyRuntimeError::new_err(format!(
                "Expected all tensors to be on the same device, but found at least two devices, cluster:0 and {device}! ({})",
                self.kernel.name
            )));
        }
        let view = storage_view(&descriptor)?;
        self.operands.layouts.push(view.strided);
        let mut tensor = view.read(py)?;
        session::ready(py, &tensor)?;
        if is_conjugate(given, &view)? {
            tensor = cluster_tensor::conjugate(&tensor)?;
        }
        if let Some(key) = &mut self.key {
            key.tensor(&tensor);
        }
        self.tensors.push(tensor);
        Ok(())
    }

    /// Calls a GT function with the arguments; its new tensors belong to their session.
    pub fn call(&self, function: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = function.py();
        let mut tensors = self.tensors.iter();
        let mut given: SmallVec<[Bound<'py, PyAny>; 6]> = SmallVec::new();
        for argument in self.args.iter_borrowed() {
            given.push(self.argument(&argument, &mut tensors)?);
        }
        let named = self.kwargs.map(|_| PyDict::new(py));
        for (name, argument) in self.kwargs.iter().flat_map(|kwargs| kwargs.iter()) {
            if let Some(named) = &named
                && !self.kernel.is_written(name.cast::<PyString>()?.to_str()?)
            {
                named.set_item(name, self.argument(&argument, &mut tensors)?)?;
            }
        }
        let given = PyTuple::new(py, given)?;
        match self.tensors.first() {
            Some(first) => {
                session::within(first.session(), || function.call(given, named.as_ref()))
            }
            None => function.call(given, named.as_ref()),
        }
    }

    /// Converts a PyTorch argument to a GT argument.
    fn argument(
        &self,
        given: &Bound<'py, PyAny>,
        tensors: &mut std::slice::Iter<'_, Tensor>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = given.py();
        if self.torch.is_tensor(given)? {
            let descriptor = dlpack::describe(given)?;
            if descriptor.device.kind == CLUSTER {
                let tensor = tensors.next().expect("read in the same order");
                // A separate tensor: in-place changes by the function must not change the one read.
                return Ok(Bound::new(py, PyTensor(tensor.without_history()))?.into_any());
            }
            let beside = match descriptor.rank {
                0 => self.operands.beside(self.torch)?,
                _ => Vec::new(),
            };
            return self.torch.from_host.bind(py).call1((given, PyList::new(py, beside)?));
        }
        if given.get_type().is(&self.torch.dtype) {
            let found = self.torch.dtypes.bind(py).get_item(given)?;
            return found.ok_or_else(|| {
                PyRuntimeError::new_err(format!(
                    "{}: a tensor on the cluster cannot have the dtype {given}",
                    self.kernel.name
                ))
            });
        }
        if let Ok(list) = given.cast::<PyList>() {
            let items = PyList::empty(py);
            for item in list.iter() {
                items.append(self.argument(&item, tensors)?)?;
            }
            return Ok(items.into_any());
        }
        Ok(given.clone())
    }
}
